"""The port: an ordered log of one space, and what it holds from before."""

from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from msgspec import Struct

from mew.space import Entry, Event

__all__ = ["Keep", "Kept", "Log", "LogUnavailable", "Mark", "Past"]


class LogUnavailable(Exception):
    """The log cannot be written or read. What was appended may or may not be in it: follow it to know."""


class Mark(Struct, frozen=True):
    """Where a snapshot was made: after which entry, and the numbers of what was shown and at hand then."""

    seq: int
    at: datetime
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class Past:
    """What happened before: a snapshot, if there is one, and the entries after it.

    The entries show all that was at hand when the newest snapshot was made, as far as the log still has it. They are
    read as they are asked for, which may raise `LogUnavailable`.
    """

    mark: Mark | None
    state: bytes
    entries: Iterator[Entry]


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """What of a log must be kept: entries up to this age, so many, in so many bytes. None: all, in this respect."""

    age: timedelta | None = None
    entries: int | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """What a log has now: when its first entry was made, how many there are, and about how many bytes they take.

    `begin` is the number of the last entry that was dropped; 0: none was.
    """

    since: datetime | None = None
    entries: int = 0
    bytes: int = 0
    begin: int = 0


class Log(Protocol):
    """Orders the events of one space. One that is appended has happened when `follow` yields it, and not before."""

    @property
    def keep(self) -> Keep:
        """What it must keep. More than that is dropped after a snapshot, as far as a start does not need it."""

    @property
    def kept(self) -> Kept:
        """What it has."""

    def append(self, at: datetime, event: Event) -> None:
        """Hand over an event, without waiting. Events appended here keep their order.

        Raises:
            LogUnavailable: it was not taken.
        """

    def follow(self, after: int) -> AsyncGenerator[Sequence[Entry], None]:
        """The entries after this sequence number, as they come: those of one turn of the loop together.

        Ends when the log is closed and everything in it was yielded. One follower, which knows the past.

        Raises:
            LogUnavailable: no more can be read, or kept.
        """

    @property
    def is_at_rest(self) -> bool:
        """Whether what happens now need not be appended: nothing is to be kept, and all that was is yielded."""

    def place(self, count: int) -> int:
        """So many events happen now and have the next sequence numbers, this one first; `follow` does not yield them.

        Only where the log is at rest.
        """

    def recall(self) -> Past:
        """What is in the log already; to be read to its end before anything is appended.

        Raises:
            LogUnavailable: it is there and cannot be read.
        """

    def save_snapshot(self, mark: Mark, pieces: Iterable[bytes]) -> None:
        """Keep the state after an entry that was yielded, without waiting; the pieces are made in a thread.

        A snapshot only saves time: one that cannot be kept is told of, and not missed.
        """

    def close(self) -> None:
        """Take no more; what was taken is still yielded."""
