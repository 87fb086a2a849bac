"""Read-only access to the journal of a space, also while a gateway writes it."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Final

from mew.space import Entry
from mew.space.state import SpaceState

from .files.database import FILE, Damaged, Database
from .files.folder import space_folder
from .files.locator import Locator
from .files.snapshots import Snapshots
from .port import JournalUnavailable
from .record import ChainLink, Record, RecordRow, genesis_link, read_header, unpack
from .recovery.wal import WalStatus, wal_status

__all__ = ["EntriesTrimmed", "JournalReader", "record_of", "spaces_in_journal"]

_SPAN: Final = 50_000  # entries that are searched for a text at a time


class EntriesTrimmed(JournalUnavailable):
    """What was to be read next is no longer kept: the gateway drops old entries while they are read.

    `begin` is where the journal begins now: a reader that can do without what lies before goes on there.
    """

    def __init__(self, path: Path, after: int, begin: ChainLink) -> None:
        super().__init__(
            f"{path}: what came after entry {after} is no longer kept; the journal begins after entry {begin.seq}"
        )
        self.begin = begin


class JournalReader:
    """Reads and changes nothing. A context: leave it to close the file.

    All methods raise `JournalUnavailable` if the system says no, and `Damaged` at what cannot be read.
    """

    def __init__(self, locator: Locator, space: str) -> None:
        """The journal that this index is of, and a space in it.

        Raises:
            JournalUnavailable: there is no such space.
        """
        self.space = space
        self.path = locator.journal
        self.folder = locator.journal.parent
        self._locator = locator
        self._database = Database.view(self.path)
        self._files = ExitStack()
        self._snapshots = Snapshots(space_folder(self.folder, space))
        try:
            if space not in self._database.spaces():
                raise JournalUnavailable(f"{self.path}: there is no space {space!r} in it")
            locator.locate()
        except BaseException:
            self._database.close()
            raise

    def __enter__(self) -> "JournalReader":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._files, suppress(Damaged, JournalUnavailable):
            self._database.close()

    @property
    def begin(self) -> ChainLink:
        """What the first entry kept follows; its number is 0 if nothing was dropped."""
        return self._database.spaces()[self.space].begin

    @property
    def last(self) -> int:
        """The number of the last entry now."""
        self._locator.locate()
        place = self._locator.last(self.space)
        return self.begin.seq if place is None else place.last

    @property
    def is_blind(self) -> bool:
        """Whether nothing can be seen that a gateway writes to the write-ahead log."""
        return self._database.is_blind

    @property
    def wal_status(self) -> WalStatus:
        """Whether the whole write-ahead log could be read."""
        return wal_status(self.path, self._files, is_blind=self.is_blind)

    def rows(self, after: int | None = None) -> Iterator[RecordRow]:
        """The records after this entry, or from the first on, in order, up to the last one now.

        Raises:
            Dropped: the next one was there, and is not kept any more. Any other gap is no doing of the gateway.
        """
        places = self._locator.places(self.space, after=after or 0)
        for row in self._database.rows(place.n for place in places):
            if after is not None and _first(row) > after + 1:
                self._mind_the_gap(after)
            yield row
            after = row.last
        if after is not None:
            self._mind_the_gap(after)

    def rows_between(self, after: int, until: int, *, newest_first: bool = False) -> Iterator[RecordRow]:
        """The records with entries after one number, up to and with another."""
        for place in self._locator.places(self.space, after=after, until=until, newest_first=newest_first):
            row = self._database.row(place.n)
            if row is not None:
                yield row

    def rows_with(
        self, texts: Sequence[bytes], after: int, until: int, *, newest_first: bool = False
    ) -> Iterator[tuple[RecordRow | None, int]]:
        """The same, of those that hold one of these texts; each with how many entries were passed over to find it.

        Yields None after each stretch of the way, so that whoever asks may give up. The search itself is done in SQL,
        beside other threads.
        """
        if after >= until:
            return
        ending = self._locator.find(self.space, until) or self._locator.last(self.space)
        until = after if ending is None else ending.last  # so that each record lies in one stretch alone
        while after < until:
            low, high = (
                (max(after, until - _SPAN), until) if newest_first else (after, min(until, after + _SPAN))
            )
            for n in self._locator.holding(self.space, texts, low, high, newest_first=newest_first):
                yield self._database.row(n), 0
            yield None, high - low
            if newest_first:
                until = low
            else:
                after = high

    def row(self, seq: int) -> RecordRow | None:
        """The record that holds an entry; None: it is not kept, or not there yet."""
        place = self._locator.find(self.space, seq)
        row = None if place is None else self._database.row(place.n)
        return row if row is not None and _first(row) <= seq else None

    def records(self, after: int | None = None) -> Iterator[Record]:
        """As `rows`; one that this version does not know is `Damaged`."""
        return map(record_of, self.rows(after))

    def record(self, seq: int) -> Record | None:
        """The record that holds an entry; None: it is not kept, or not there yet."""
        row = self.row(seq)
        return None if row is None else record_of(row)

    def entries(self, after: int | None = None) -> Iterator[Entry]:
        return (record.entry for record in self.records(after))

    def first_since(self, moment: datetime) -> int:
        """The number of the first entry at or after a moment; of the next to come, if there is none."""
        before = self._locator.last_before(self.space, moment)
        return max(before, self.begin.seq) + 1

    def state_before(self, seq: int) -> SpaceState:
        """The latest state that is kept of a time before this entry: apply the entries after `state.seq` to it.

        Raises:
            JournalUnavailable: the first entries are gone, and there is no snapshot that old.
        """
        begin = self.begin
        for snapshot in reversed(self._snapshots.good()):
            if snapshot.seq >= seq or not (snapshot.link == begin or self._fits(snapshot.link)):
                continue
            written = self._snapshots.load(snapshot)
            with suppress(ValueError):  # another version's
                return SpaceState.restore(written or b"")
        if begin != genesis_link(self.space):
            raise JournalUnavailable(
                f"{self.path}: what happened in space {self.space!r} up to entry {begin.seq} is no longer kept,"
                f" and there is no snapshot from before entry {seq}"
            )
        return SpaceState()

    def _fits(self, link: ChainLink) -> bool:
        row = self.row(link.seq)
        return row is not None and (row.last, row.hash) == link

    def _mind_the_gap(self, after: int) -> None:
        begin = self.begin
        if begin.seq > after:
            raise EntriesTrimmed(self.path, after, begin)


def record_of(row: RecordRow) -> Record:
    """
    Raises:
        Damaged: it is none that this version of mew knows.
    """
    try:
        return unpack(row.body)
    except ValueError as error:
        raise Damaged(f"entry {row.last} is none that this version of mew knows: {error}") from error


def spaces_in_journal(folder: Path) -> list[str]:
    """The spaces that have a journal in a folder."""
    if not (folder / FILE).exists():
        return []
    database = Database.view(folder / FILE)
    try:
        return sorted(database.spaces())
    finally:
        database.close()


def _first(row: RecordRow) -> int:
    try:
        return read_header(row.body).seq
    except ValueError as error:
        raise Damaged(f"entry {row.last} cannot be read: {error}") from error
