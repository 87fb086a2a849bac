"""A log of this process, for a space that lives as long as it (§2.2). Keeps only what was not followed yet."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import datetime

from mew.space import Entry, Event

from .base import LogUnavailable

__all__ = ["MemoryLog"]


class MemoryLog:
    """One writer, one follower, one process."""

    def __init__(self) -> None:
        self._seq = 0
        self._new: list[Entry] = []
        self._arrived = asyncio.Event()
        self._closed = False

    def append(self, at: datetime, event: Event) -> None:
        if self._closed:
            raise LogUnavailable("the log is closed")
        self._seq += 1
        self._new.append(Entry(self._seq, at, event))
        self._arrived.set()

    async def follow(self, after: int) -> AsyncIterator[Sequence[Entry]]:
        assert after <= self._seq, f"follow after {after}, but the log ends at {self._seq}"
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            batch, self._new = self._new, []
            if batch:
                yield batch
            if self._closed and not self._new:
                return

    def close(self) -> None:
        self._closed = True
        self._arrived.set()
