"""In-memory journals, for spaces that end with the process (§2.2)."""

from collections.abc import Iterable
from datetime import datetime

from mew.space import Entry, Event, Sent

from .port import (
    CommitCallback,
    Follower,
    Journal,
    JournalContents,
    JournalUnavailable,
    RetentionPolicy,
    RetentionStats,
)

__all__ = ["MemoryJournal", "MemoryStorage"]


class MemoryJournal:
    """Assign sequence numbers; store nothing."""

    policy = RetentionPolicy()
    stats = RetentionStats()

    def __init__(self, follower: Follower, seq: int = 0) -> None:
        """`seq`: the number of the last entry before."""
        self._seq = seq
        self._follower = follower
        self._closed = False

    def append(self, at: datetime, event: Event) -> None:
        if self._closed:
            raise JournalUnavailable("the journal is closed")
        size = len(event.envelopes.ids) if type(event) is Sent else 1
        entry = Entry(self._seq + 1, at, event, size)
        self._seq += size
        self._follower(entry)

    def save_snapshot(self, pieces: Iterable[bytes]) -> None:
        """Nothing is kept that it could shorten."""

    def close(self) -> None:
        self._closed = True


class MemoryStorage:
    """Nothing is durable, so every commit is done at once."""

    is_shared = False

    async def prepare(self, spaces: Iterable[str]) -> None:
        """There is nothing to read."""

    def open(self, space: str, follower: Follower) -> tuple[Journal, JournalContents]:
        return MemoryJournal(follower), JournalContents()

    def commit(self, done: CommitCallback) -> None:
        done(None)

    def close(self) -> None:
        """There is nothing to release."""
