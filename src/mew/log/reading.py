"""A journal to look at, also while a gateway writes it: what it holds, where it begins, and a state to start from."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from mew.space import Entry
from mew.space.state import SpaceState

from .ahead import Ahead, look_ahead
from .base import LogUnavailable
from .database import Damaged, Database
from .opening import FILE
from .record import Link, Row, first_link, to_entry
from .snapshots import Snapshot, Snapshots

__all__ = ["Dropped", "JournalReader", "entry_of", "journals_in"]


class Dropped(LogUnavailable):
    """What was to be read next is no longer kept: the gateway drops old entries while they are read.

    `begin` is where the journal begins now: who can do without what lies before goes on there.
    """

    def __init__(self, path: Path, after: int, begin: Link) -> None:
        super().__init__(
            f"{path}: what came after entry {after} is no longer kept; the journal begins after entry {begin.seq}"
        )
        self.begin = begin


class JournalReader:
    """Reads and changes nothing. A context: leave it to close the file.

    All methods raise `LogUnavailable` where the system says no, and `Damaged` at what cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        """The journal in the folder of a space.

        Raises:
            LogUnavailable: there is none, or it is of a later version.
            Damaged: what is there cannot be read at all.
        """
        self.folder = folder
        self.path = folder / FILE
        if not self.path.exists():
            raise LogUnavailable(f"{folder}: there is no journal here")
        self._database, self.space = Database.view(self.path)
        self._snapshots = Snapshots(folder)
        self._files = ExitStack()

    def __enter__(self) -> "JournalReader":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._files, suppress(Damaged, LogUnavailable):
            self._database.close()

    @property
    def begin(self) -> Link:
        """What the first entry kept follows; its number is 0 where nothing was dropped."""
        return self._database.begin

    @property
    def last(self) -> int:
        """The number of the last entry now."""
        return self._database.last

    @property
    def is_blind(self) -> bool:
        """Whether nothing can be seen that a gateway wrote ahead of the file, or writes while it is read."""
        return self._database.is_blind

    @property
    def ahead(self) -> Ahead:
        """Whether all that a gateway wrote ahead of the file could be read."""
        return look_ahead(self.path, self._files, is_blind=self.is_blind)

    def fault(self) -> str | None:
        """What SQLite finds wrong with how the file is built, however sound the entries in it; reads all of it."""
        ((found,),) = self._database.ask("PRAGMA quick_check(1)")
        return None if found == "ok" else str(found)

    def snapshots(self) -> list[Snapshot]:
        """Those that are whole, the oldest first."""
        return [one for one in self._snapshots.list() if self._snapshots.load(one) is not None]

    def turns(self) -> Iterator[tuple[int, object]]:
        """All turns as they are kept, each with the number it is kept under: to be checked, not just read."""
        return self._database.turns()

    def rows(self, after: int | None = None) -> Iterator[Row]:
        """The rows after this entry, or from the first on, up to the last there is when the walk comes there.

        Raises:
            Dropped: the next one was there, and is not kept any more. Any other gap is no doing of the gateway.
        """
        for row in self._database.rows(0 if after is None else after):
            if after is not None and row.seq > after + 1:
                self._mind_the_gap(after)
            yield row
            after = row.seq
        if after is not None:
            self._mind_the_gap(after)

    def row(self, seq: int) -> Row | None:
        """One row; None: it is not kept, or not there yet."""
        return self._database.row(seq)

    def entries(self, after: int | None = None) -> Iterator[Entry]:
        """As `rows`; one that this version does not know is `Damaged`."""
        return map(entry_of, self.rows(after))

    def entry(self, seq: int) -> Entry | None:
        """One entry; None: it is not kept, or not there yet."""
        row = self.row(seq)
        return None if row is None else entry_of(row)

    def ask(self, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """The answer to any question in SQL; `turns` has the entries."""
        return self._database.ask(query, values)

    def state_before(self, seq: int) -> SpaceState:
        """The latest state that is kept of a time before this entry: apply the entries after `state.seq` to it.

        Raises:
            LogUnavailable: the first entries are gone, and there is no snapshot that old.
        """
        for snapshot in reversed(self._snapshots.list()):
            written = self._snapshots.load(snapshot) if snapshot.mark.seq < seq else None
            if written is not None and self._fits(snapshot.mark.seq, snapshot.hash):
                with suppress(ValueError):  # another version's
                    return SpaceState.restore(written)
        if self.begin != first_link(self.space):
            raise LogUnavailable(
                f"{self.path}: what happened up to entry {self.begin.seq} is no longer kept,"
                f" and there is no snapshot from before entry {seq}"
            )
        return SpaceState()

    def _mind_the_gap(self, after: int) -> None:
        begin = self.begin
        if begin.seq > after:
            raise Dropped(self.path, after, begin)

    def _fits(self, seq: int, digest: bytes) -> bool:
        begin = self.begin
        if seq == begin.seq:
            return begin.hash == digest
        row = self.row(seq)
        return row is not None and row.hash == digest


def entry_of(row: Row) -> Entry:
    try:
        return to_entry(row)
    except ValueError as error:
        raise Damaged(f"entry {row.seq} is none that this version of mew knows: {error}") from error


def journals_in(folder: Path) -> list[str]:
    """The spaces that have a journal in the folder of a gateway's journals."""
    try:
        return sorted(path.parent.name for path in folder.glob(f"*/{FILE}"))
    except OSError as error:
        raise LogUnavailable(f"{folder}: {error.strerror}") from error
