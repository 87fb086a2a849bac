"""Locate the records of each space: an index beside the journal, updated asynchronously and rebuilt if lost.

The same file, `index.db`, has what the audit record says of the entries (`mew.audit.record.index`).
"""

import errno
import logging
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Final, NamedTuple

from mew.journal.port import JournalUnavailable
from mew.journal.record import to_microseconds

from .database import FILE, Damaged, Database, tidy, translated
from .folder import make_file, set_aside

__all__ = [
    "INDEX_FILE",
    "Locator",
    "RecordLocation",
    "exclusive",
    "open_index",
    "set_aside_if_damaged",
]

_logger = logging.getLogger(__name__)

INDEX_FILE: Final = "index.db"
_FORMAT: Final = 4
_BUSY_S: Final = 10.0
# Ids are nowhere near each other: with less, most are a page that is read and written again.
_CACHE_KIB: Final = 32 << 10
_SOME: Final = 1_000
_LARGEST: Final = (1 << 63) - 1
_SCHEMA: Final = (
    "CREATE TABLE spaces (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)",
    "CREATE TABLE places (space INTEGER, last INTEGER CHECK (typeof(last) = 'integer'),"
    " at INTEGER CHECK (typeof(at) = 'integer'), bytes INTEGER NOT NULL, n INTEGER NOT NULL,"
    " PRIMARY KEY (space, last)) WITHOUT ROWID",
    "CREATE TABLE progress (located INTEGER NOT NULL, hash BLOB NOT NULL, indexed INTEGER NOT NULL)",
    "INSERT INTO progress VALUES (0, x'', 0)",
    "CREATE TABLE lost (space INTEGER PRIMARY KEY, after INTEGER NOT NULL)",
    f"PRAGMA user_version = {_FORMAT}",
)
# All in SQL: nothing of it keeps other threads from running.
_LOCATE: Final = (
    "INSERT OR IGNORE INTO spaces (name) SELECT name FROM journal.spaces",
    "INSERT OR REPLACE INTO places SELECT own.id, records.last, records.at, length(records.body), records.n"
    " FROM journal.records JOIN journal.spaces AS theirs ON theirs.id = records.space"
    " JOIN spaces AS own ON own.name = theirs.name"
    " WHERE records.n > (SELECT located FROM progress) ORDER BY own.id, records.last",
    "UPDATE progress SET (located, hash) = (SELECT n, hash FROM journal.records ORDER BY n DESC LIMIT 1)"
    " WHERE EXISTS (SELECT 1 FROM journal.records)",
)
_THEIRS: Final = (
    "(SELECT theirs.{column} FROM spaces JOIN journal.spaces AS theirs ON theirs.name = spaces.name"
    " WHERE spaces.id = {space})"
)
_IS_GONE: Final = "NOT EXISTS (SELECT 1 FROM journal.records WHERE records.n = places.n)"
_FORGET_DROPPED: Final = (
    f"DELETE FROM places WHERE last <= {_THEIRS.format(column='seq', space='places.space')} AND {_IS_GONE}"
)
_FIND_LOST: Final = (
    "CREATE TEMP TABLE gone AS SELECT places.space, places.last, places.n FROM places"
    " LEFT JOIN journal.records ON records.n = places.n AND records.last = places.last AND records.at = places.at"
    " AND length(records.body) = places.bytes"
    f" AND records.space = {_THEIRS.format(column='id', space='places.space')} WHERE records.n IS NULL"
)
_FORGET_LOST: Final = (
    "DELETE FROM places WHERE (space, last) IN (SELECT space, last FROM gone)",
    "INSERT INTO lost SELECT first.space, coalesce((SELECT max(places.last) FROM places"
    " WHERE places.space = first.space AND places.last < first.last),"
    f" {_THEIRS.format(column='seq', space='first.space')}, 0)"
    " FROM (SELECT space, min(last) AS last FROM gone GROUP BY space) AS first WHERE TRUE"
    " ON CONFLICT (space) DO UPDATE SET after = min(after, excluded.after)",
    "UPDATE progress SET located = 0, indexed = min(indexed,"
    " coalesce((SELECT max(n) FROM journal.records), 0), coalesce((SELECT min(n) - 1 FROM gone), indexed))",
    "DROP TABLE gone",
)


class RecordLocation(NamedTuple):
    """A record: the number of its last entry, when it was made, its bytes, and its own number in the journal."""

    last: int
    at: int
    bytes: int
    n: int


class Locator:
    """An open index. A context: leave it to close it. Its methods may be called in any thread, one after the other.

    All raise `JournalUnavailable` if the system says no. A file that is no index, or one of another version, is kept
    under another name and made again.
    """

    def __init__(self, folder: Path, index: Path | None = None) -> None:
        """Of the journal in this folder; `index`: the file, if it is elsewhere."""
        self.journal = folder / FILE
        self.path = folder / INDEX_FILE if index is None else index
        self._is_blind = False  # to what is in the journal's write-ahead log
        with translated(self.path):
            self.connection = self._open()

    def __enter__(self) -> "Locator":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def locate(self) -> None:
        """Take in the records that were committed since the last time; a microsecond each.

        Records that the journal has lost are forgotten, and if it is another journal, all are. What else is known of
        their entries is for whoever keeps it to forget: of each space in `lost`, all after that entry.
        """
        with translated(self.path), exclusive(self.connection) as connection:
            ((located, digest),) = connection.execute("SELECT located, hash FROM progress").fetchall()
            query = "SELECT 1 FROM journal.records WHERE n = ? AND hash = ?"
            if located and connection.execute(query, (located, digest)).fetchone() is None:
                _compare(connection)
            for statement in _LOCATE:
                connection.execute(statement)

    def doubt(self) -> None:
        """Records may have gone from the journal that should be there: compare them all, the next time."""
        self.ask("UPDATE progress SET hash = x''")

    @property
    def located(self) -> int:
        """The number of the last record that was taken in."""
        ((located,),) = self.ask("SELECT located FROM progress")
        return int(located)

    @property
    def indexed(self) -> int:
        """The number of the last record of which the audit record has all."""
        ((indexed,),) = self.ask("SELECT indexed FROM progress")
        return int(indexed)

    def space(self, name: str) -> int | None:
        """The number that this index has for a space; None: it knows none of that name."""
        found = self.ask("SELECT id FROM spaces WHERE name = ?", (name,))
        return int(found[0][0]) if found else None

    def places(
        self, space: str, *, after: int = 0, until: int | None = None, newest_first: bool = False
    ) -> Iterator[RecordLocation]:
        """The records of a space that end after one entry, and begin before or with another, in their order."""
        number = self.space(space)
        if number is None:
            return
        low, high = after, self._last_of(number, until)
        order = "DESC" if newest_first else "ASC"
        query = (
            "SELECT last, at, bytes, n FROM places WHERE space = ? AND last > ? AND last <= ?"
            f" ORDER BY last {order} LIMIT {_SOME}"
        )
        while found := [RecordLocation._make(one) for one in self.ask(query, (number, low, high))]:
            yield from found
            if newest_first:
                high = found[-1].last - 1
            else:
                low = found[-1].last

    def holding(
        self, space: str, texts: Sequence[bytes], after: int, until: int, *, newest_first: bool = False
    ) -> list[int]:
        """The numbers of the records that hold one of these texts and end between two entries, in their order."""
        number = self.space(space)
        if number is None:
            return []
        held = " OR ".join(["instr(records.body, ?)"] * len(texts))
        query = (
            "SELECT places.n FROM places CROSS JOIN journal.records ON records.n = places.n"
            f" WHERE places.space = ? AND places.last > ? AND places.last <= ? AND ({held})"
            f" ORDER BY places.last {'DESC' if newest_first else 'ASC'}"
        )
        return [n for (n,) in self.ask(query, (number, after, until, *texts))]

    def find(self, space: str, seq: int) -> RecordLocation | None:
        """The record that holds an entry, or else the next one; None: there is none after it."""
        number = self.space(space)
        query = "SELECT last, at, bytes, n FROM places WHERE space = ? AND last >= ? ORDER BY last LIMIT 1"
        found = self.ask(query, (number, seq))
        return RecordLocation._make(found[0]) if found else None

    def last(self, space: str) -> RecordLocation | None:
        """The last record of a space; None: it has none."""
        query = "SELECT last, at, bytes, n FROM places WHERE space = ? ORDER BY last DESC LIMIT 1"
        found = self.ask(query, (self.space(space),))
        return RecordLocation._make(found[0]) if found else None

    def last_before(self, space: str, moment: datetime) -> int:
        """The number of the last entry before a moment; 0: there is none.

        Times never go back in a journal: this takes some twenty looks, however long it is.
        """
        number, before = self.space(space), to_microseconds(moment)
        first, last = self._end(number, "min"), self._end(number, "max")
        query = "SELECT last, at FROM places WHERE space = ? AND last <= ? ORDER BY last DESC LIMIT 1"
        found = 0
        while first is not None and last is not None and first <= last:
            middle = (first + last) // 2
            rows = self.ask(query, (number, middle))
            if not rows:
                first = middle + 1
            elif rows[0][1] < before:
                found, first = max(found, rows[0][0]), middle + 1
            else:
                last = rows[0][0] - 1
        return found

    def bytes_after(self, space: str, seq: int) -> int:
        """About how many bytes the records after an entry take."""
        query = "SELECT coalesce(sum(bytes), 0) FROM places WHERE space = ? AND last > ?"
        ((size,),) = self.ask(query, (self.space(space), seq))
        return int(size)

    def forget(self, space: str, until: int) -> None:
        """The records of a space up to this entry were dropped from the journal."""
        query = f"DELETE FROM places WHERE space = ? AND last <= ? AND {_IS_GONE}"
        self.ask(query, (self.space(space), until))

    def ask(self, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Run any statement of SQL; return its rows."""
        with translated(self.path):
            return self.connection.execute(query, tuple(values)).fetchall()

    def close(self) -> None:
        with translated(self.path):
            self.connection.close()
        if not self._is_blind:
            tidy(self.journal)

    def _end(self, space: int | None, which: str) -> int | None:
        ((end,),) = self.ask(f"SELECT {which}(last) FROM places WHERE space = ?", (space,))
        return None if end is None else int(end)

    def _last_of(self, space: int, seq: int | None) -> int:
        """The number under which the record is found that holds this entry."""
        if seq is None:
            return _LARGEST
        query = "SELECT min(last) FROM places WHERE space = ? AND last >= ?"
        ((last,),) = self.ask(query, (space, seq))
        return _LARGEST if last is None else int(last)

    def _open(self) -> sqlite3.Connection:
        try:
            return self._opened()
        except _NoIndex as error:
            _logger.warning("the index is made again; what was there is kept as %s", error)
            return self._opened()

    def _opened(self) -> sqlite3.Connection:
        make_file(self.path)
        if not os.access(self.path, os.W_OK):  # SQLite would open it, to read only
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        uri = f"{self.path.absolute().as_uri()}?mode=rw"
        connection = sqlite3.connect(
            uri, uri=True, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version == 0:
                _create(connection)
            elif version != _FORMAT:
                raise sqlite3.DatabaseError(f"of another version of mew, format {version}")
            self._attach(connection)
        except BaseException as error:
            try:
                if _is_no_index(error):  # while it is open: or its write-ahead log would be deleted
                    raise _NoIndex(set_aside(self.path).name) from error
                raise
            finally:
                connection.close()
        return connection

    def _attach(self, connection: sqlite3.Connection) -> None:
        """The journal, to be read only."""
        with closing(Database.view(self.journal)) as journal:
            self._is_blind = journal.is_blind
        how = "immutable=1" if self._is_blind else "mode=ro"
        connection.execute(f"ATTACH '{self.journal.absolute().as_uri()}?{how}' AS journal")


class _NoIndex(Exception):
    """The file is none that can be used, and has this name now."""


def _is_no_index(error: BaseException) -> bool:
    return isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError)


def _compare(connection: sqlite3.Connection) -> None:
    """Forget all that is not in the journal as it was; the rest is to be taken in again."""
    connection.execute(_FORGET_DROPPED)
    connection.execute(_FIND_LOST)
    ((lost,),) = connection.execute("SELECT count(*) FROM gone")
    if lost:
        _logger.warning(
            "the journal is not the one that was indexed; what it has lost is forgotten",
            extra={"records": lost},
        )
    for statement in _FORGET_LOST:
        connection.execute(statement)


def _create(connection: sqlite3.Connection) -> None:
    with exclusive(connection):
        if connection.execute("PRAGMA user_version").fetchone()[0]:
            return  # another process was faster
        for statement in _SCHEMA:
            connection.execute(statement)


@contextmanager
def open_index(folder: Path) -> Iterator[Locator]:
    """The index of the journal in a folder; a copy of it for now, if nothing can be written there.

    Raises:
        JournalUnavailable: there is no journal, or it cannot be read.
        Damaged: it cannot be read as a journal.
    """
    if not (folder / FILE).exists():
        raise JournalUnavailable(f"{folder}: there is no journal here")
    with ExitStack() as stack:
        try:
            locator = Locator(folder)
        except JournalUnavailable:
            elsewhere = Path(stack.enter_context(TemporaryDirectory(prefix="mew-index-")), INDEX_FILE)
            with translated(folder / INDEX_FILE):
                _copy_if_any(folder / INDEX_FILE, elsewhere)
            locator = Locator(folder, elsewhere)
        yield stack.enter_context(locator)


def set_aside_if_damaged(folder: Path) -> bool:
    """Whether the index of the journal in a folder cannot be read as a database; then it is made again.

    What was there is kept under another name.

    Raises:
        JournalUnavailable: the system says no.
    """
    locator = Locator(folder)
    try:
        try:
            fault = str(locator.ask("PRAGMA main.quick_check(1)")[0][0])
        except Damaged as error:
            fault = str(error)
        if fault == "ok":
            return False
        with translated(locator.path):
            aside = set_aside(locator.path)
        _logger.warning("the index is damaged and made again; what was there is kept as %s", aside.name)
        return True
    finally:
        locator.close()


def _copy_if_any(path: Path, to: Path) -> None:
    """All that is in it at one moment, also while another process writes it."""
    if not path.exists():
        return  # it is made from the journal
    try:
        _copy(path, to, "mode=ro")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
            raise
        _copy(path, to, "immutable=1")  # nobody has it open: or it could be shared


def _copy(path: Path, to: Path, how: str) -> None:
    uri = f"{path.absolute().as_uri()}?{how}"
    with (
        closing(sqlite3.connect(uri, uri=True, timeout=_BUSY_S)) as source,
        closing(sqlite3.connect(to)) as target,
    ):
        source.backup(target)


@contextmanager
def exclusive(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """A transaction beside which nobody else writes; all of it or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
