"""The interfaces of a journal (one space) and of the storage behind all journals."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated, Any, Protocol

from msgspec import Meta, Struct

from mew.protocol.envelopes import Envelopes
from mew.space import Audiences, Decision, Entry, Event

__all__ = [
    "CommitCallback",
    "Delivered",
    "Follower",
    "Journal",
    "JournalContents",
    "JournalStorage",
    "JournalUnavailable",
    "LostEntries",
    "RetentionPolicy",
    "RetentionStats",
    "SharedJournal",
]


class JournalUnavailable(Exception):
    """The journal cannot be written or read. What was appended since the last commit may or may not be in it.

    The message says what, where, and what to do. `summary` says it to anyone who asks: it names no file.
    """

    def __init__(self, message: str, *, summary: str = "the journal cannot be written or read") -> None:
        super().__init__(message)
        self.summary = summary


Follower = Callable[[Entry], Sequence[Decision]]
"""Applies an entry to the space, and returns what it decided: the journal keeps what was delivered because of it."""

CommitCallback = Callable[[JournalUnavailable | None], None]
"""Called when a commit is over: with what went wrong, or with None."""


class Delivered(Struct, frozen=True, gc=False):
    """Envelopes that were delivered because of one entry, in order: their ids, and their bytes.

    `only`: whom each was for; None: everyone. `start`: how many others were delivered before them, because of the same
    entry. Thousands are kept in memory, so the rest of their headers is read again for whoever asks.
    """

    seq: int
    at: datetime
    ids: tuple[str, ...]
    raws: tuple[bytes, ...]
    only: Audiences | None = None
    start: int = 0

    @property
    def envelopes(self) -> Envelopes:
        """Decoded anew each time."""
        return Envelopes.decode(self.raws)


class LostEntries(Struct, frozen=True):
    """Entries after number `after`, up to number `last` as they were counted then, were committed and are missing.

    `since`: when entry `after` was made, if there is one; `noticed`: when the start was made that noticed it.
    """

    after: Annotated[int, Meta(ge=0)]
    last: Annotated[int, Meta(ge=1)]
    noticed: Annotated[datetime, Meta(tz=True)]
    since: Annotated[datetime, Meta(tz=True)] | None = None


def _nothing() -> Iterator[Any]:
    return iter(())


@dataclass(frozen=True, slots=True)
class JournalContents:
    """What a journal holds when it is opened: the newest snapshot, the entries after it, and what was delivered.

    `at` is when the last entry was made, `begin` the number of the last one that is no longer kept (0: all are).
    `delivered` yields all that is kept, the newest first. Both iterators read as they are asked, and may raise
    `JournalUnavailable`; the entries must be read to their end before anything else. `losses`: entries that were
    committed and are missing, among those that are kept. `shared`: the journal, if other nodes append to it too; what
    was delivered is then made again from the entries.
    """

    state: bytes | None = None
    at: datetime | None = None
    begin: int = 0
    entries: Iterator[Entry] = field(default_factory=_nothing)
    delivered: Iterator[Delivered] = field(default_factory=_nothing)
    losses: tuple[LostEntries, ...] = ()
    shared: "SharedJournal | None" = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionPolicy:
    """What must be kept of each space: entries up to this age, this many of them, in this many bytes.

    None: all, in that respect.
    """

    age: timedelta | None = None
    entries: int | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class RetentionStats:
    """What is kept of a space: since when, how many entries, and about how many bytes they take.

    `begin` is the number of the last entry that was dropped; 0: none was.
    """

    since: datetime | None = None
    entries: int = 0
    bytes: int = 0
    begin: int = 0


class Journal(Protocol):
    """The ordered log of one space."""

    def append(self, at: datetime, event: Event) -> None:
        """Give an event its place in the order. The follower is called with it, in that order, at once or later.

        Nothing that the follower decides may reach anyone before the storage has committed.

        Raises:
            JournalUnavailable: the journal is closed.
        """

    @property
    def policy(self) -> RetentionPolicy:
        """What must be kept; the rest is dropped after a snapshot."""

    @property
    def stats(self) -> RetentionStats:
        """What is kept."""

    def save_snapshot(self, pieces: Iterable[bytes]) -> None:
        """Save the state after the last committed entry, without waiting; the pieces are made in a thread.

        A snapshot only saves time at the next start. A failure is logged.
        """

    def close(self) -> None:
        """Accept no more entries."""


class SharedJournal(Protocol):
    """What is different about a journal to which several nodes append.

    Entries come round when all nodes are told of them. A commit is over when all entries that were in the journal when
    it began have come round, those of other nodes too.
    """

    node: str
    """The name of this node: the names of its connections begin with it and a dot."""

    epoch: str
    """The name of the log: the numbers of another say nothing here."""

    in_flight: bool
    """Whether something was appended that has not come round, other than that somebody was refused."""

    def follow(self, came_round: Callable[[Exception | None], None], frame: Callable[[bytes], None]) -> None:
        """Call `came_round` after entries were given to the follower, or with why there are no more of them.

        Call `frame` with what another node publishes, in order with the entries.
        """

    def publish(self, frame: bytes) -> None:
        """Send bytes to the other nodes, in order with what is appended; they are not kept."""


class JournalStorage(Protocol):
    """All journals of a gateway."""

    is_shared: bool
    """Whether other nodes append too; the journals are then to be prepared before they are opened."""

    async def prepare(self, spaces: Iterable[str]) -> None:
        """Read what the journals of these spaces hold, so that they can be opened without waiting.

        Raises:
            JournalUnavailable: they cannot be read.
        """

    def open(self, space: str, follower: Follower) -> tuple[Journal, JournalContents]:
        """Open the journal of a space, and what it holds.

        Raises:
            JournalUnavailable: it cannot be read.
        """

    def commit(self, done: CommitCallback) -> None:
        """Make everything appended since the last commit durable, in one transaction; `done` is called after that.

        It may be called at once or later, but always before another commit begins.
        """

    def close(self) -> None:
        """Release the files. The journals must be closed."""
