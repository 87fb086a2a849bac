"""A log of this process, for a space that lives as long as it (§2.2). Keeps only what was not followed yet."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from datetime import datetime

from mew.space import Entry, Event

from .base import Keep, Kept, LogUnavailable, Mark, Past

__all__ = ["MemoryLog"]


class MemoryLog:
    """One writer, one follower, one process."""

    def __init__(self) -> None:
        self._seq = 0
        self._new: list[Entry] = []
        self._follower: asyncio.Future[None] | None = None  # waits for something new
        self._closed = False

    @property
    def keep(self) -> Keep:
        return Keep()

    @property
    def kept(self) -> Kept:
        return Kept()

    def append(self, at: datetime, event: Event) -> None:
        if self._closed:
            raise LogUnavailable("the log is closed")
        self._seq += 1
        self._new.append(Entry(self._seq, at, event))
        if self._follower is not None:
            self._wake(self._follower)

    async def follow(self, after: int) -> AsyncGenerator[Sequence[Entry], None]:
        assert after <= self._seq, f"follow after {after}, but the log ends at {self._seq}"
        loop = asyncio.get_running_loop()
        while self._new or not self._closed:
            if not self._new:
                self._follower = loop.create_future()
                await self._follower
                continue
            batch, self._new = self._new, []
            yield batch

    @property
    def is_at_rest(self) -> bool:
        return self._follower is not None  # else it is on its way to what is new

    def place(self, count: int) -> int:
        assert self._follower is not None, "what is not yielded yet comes first"
        first = self._seq + 1
        self._seq += count
        return first

    def recall(self) -> Past:
        return Past(None, b"", iter(()))

    def save_snapshot(self, mark: Mark, pieces: Iterable[bytes]) -> None:
        """Keeps none: nobody will ask for it."""

    def close(self) -> None:
        self._closed = True
        if self._follower is not None:
            self._wake(self._follower)

    def _wake(self, follower: asyncio.Future[None]) -> None:
        self._follower = None
        if not follower.done():
            follower.set_result(None)
