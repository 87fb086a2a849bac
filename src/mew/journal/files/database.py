"""The SQLite file with all records of a gateway, in the order they were committed.

Records are appended under ascending numbers and found by number alone. An index by space and entry, kept up to date by
every commit, would cost more than the rest of the transaction: `mew.journal.files.locator` has it, written behind.
"""

import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from mew.journal.errors import Busy, Damaged, meaning_of, translated
from mew.journal.port import JournalUnavailable
from mew.journal.record import ChainLink, RecordRow, genesis_link

__all__ = [
    "FILE",
    "Busy",
    "Columns",
    "Damaged",
    "Database",
    "Durability",
    "SpaceRow",
    "checkpoint",
    "sync_folders",
    "tidy",
    "translated",
]

FILE: Final = "journal.db"
FORMAT: Final = 2
_APPLICATION: Final = 0x6D657734  # "mew4"
_BUSY_MS: Final = 5_000
_RETRY_S: Final = 0.01
_READ_ROWS: Final = 64
_NUMBER_MAX: Final = (1 << 63) - 1
_CANNOT_SHARE: Final = frozenset({sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY})
_RECORDS: Final = (
    "CREATE TABLE records (n INTEGER PRIMARY KEY, space INTEGER NOT NULL, last INTEGER NOT NULL,"
    " at INTEGER NOT NULL, indexed INTEGER NOT NULL, hash BLOB NOT NULL, body BLOB NOT NULL)"
)
_SPACES: Final = (
    "CREATE TABLE spaces (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, seq INTEGER NOT NULL,"
    " hash BLOB NOT NULL)"
)
_SCHEMA: Final = f"""
BEGIN;
{_RECORDS};
{_SPACES};
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {FORMAT};
COMMIT;
"""
_INSERT: Final = "INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?)"
_COLUMNS: Final = "n, last, at, body, hash"


Columns: TypeAlias = tuple[int, int, int, int, bool, bytes, bytes]
"""A record as it is written: n, space, last, at, whether the index has more to say of it, hash, body."""


class Durability(StrEnum):
    """What a committed entry survives: a killed process, or a power cut too."""

    PROCESS = "process"
    POWER = "power"


class SpaceRow(NamedTuple):
    """A space: its number in this file, its name, and the place that its first record follows."""

    id: int
    name: str
    begin: ChainLink


class Database:
    """An open file. Its methods may be called in any thread, one after the other.

    All raise `JournalUnavailable` if the disk or the system says no, and `Damaged` if the file is not whole.
    """

    def __init__(
        self,
        path: Path,
        connection: sqlite3.Connection,
        durability: Durability | None = None,
        *,
        is_blind: bool = False,
    ) -> None:
        """For `create`, `open`, `view` and `rescue`."""
        self.path = path
        self.is_blind = is_blind
        """Whether only the file itself is seen, and nothing in its write-ahead log."""
        self._connection = connection
        self._is_view = durability is None
        if durability is None:
            return
        with translated(path):
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[durability]}")
            connection.execute("PRAGMA wal_autocheckpoint = 0")
            connection.execute("PRAGMA busy_timeout = 0")  # from now on nobody may be kept waiting by others

    @classmethod
    def create(cls, path: Path, durability: Durability) -> "Database":
        """A new, empty file for its owner alone, in place of any other."""
        draft = path.with_name(f".{path.name}")
        with translated(path):
            for rest in (draft, draft.with_name(f"{draft.name}-journal")):
                rest.unlink(missing_ok=True)  # of an attempt that was cut off
            os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            connection = _connect(draft)
            connection.execute(
                "PRAGMA auto_vacuum = FULL"
            )  # a file from which records are dropped gets shorter
            connection.executescript(_SCHEMA)
            connection.close()
            draft.replace(path)  # whole or not at all
            sync_folders(path.parent, path.parent.parent)
            return cls(path, _connect(path), durability)

    @classmethod
    def open(cls, path: Path, durability: Durability) -> "Database":
        """The file that is there. Waits some seconds for somebody who is just looking at it."""
        with translated(path):
            connection = _connect(path)
            try:
                _check_format(path, connection)
            except BaseException:
                connection.close()
                raise
        return cls(path, connection, durability)

    @classmethod
    def view(cls, path: Path) -> "Database":
        """The file that is there, to be read only, also while another process writes it.

        In a folder where nothing can be written, processes may not be able to share it: then it `is_blind`.
        """
        is_blind = False
        with translated(path):
            connection = _connect(path, "mode=ro")
            try:
                try:
                    _check_format(path, connection)
                except sqlite3.OperationalError as error:
                    if error.sqlite_errorcode & 0xFF not in _CANNOT_SHARE:
                        raise
                    connection.close()
                    connection = _connect(path, "immutable=1")
                    is_blind = True
                    _check_format(path, connection)
            except BaseException:
                connection.close()
                raise
        return cls(path, connection, is_blind=is_blind)

    @classmethod
    def rescue(cls, path: Path) -> "Database":
        """A file that is damaged, to be read as far as it can be, also if it was cut off."""
        with translated(path):
            connection = _connect(path, "mode=ro")
            try:
                connection.execute(
                    "PRAGMA writable_schema = ON"
                )  # or SQLite would not read what is too short
                _check_format(path, connection)
            except BaseException:
                connection.close()
                raise
        return cls(path, connection)

    def copy_to(self, path: Path) -> None:
        """Write all of it, as it is at one moment, into a new file; others may go on writing meanwhile."""
        with translated(self.path), closing(sqlite3.connect(path)) as copy:
            path.chmod(0o600)
            self._connection.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")  # one file, complete by itself

    def spaces(self) -> dict[str, SpaceRow]:
        """All spaces that have records here, by name."""
        found: dict[str, SpaceRow] = {}
        for number, name, seq, digest in self.ask("SELECT id, name, seq, hash FROM spaces"):
            if not (isinstance(name, str) and isinstance(seq, int) and isinstance(digest, bytes)):
                raise Damaged("it does not say where a space begins")
            found[name] = SpaceRow(number, name, ChainLink(seq, digest))
        return found

    def add_space(self, name: str, begin: ChainLink | None = None, number: int | None = None) -> SpaceRow:
        """A space that had no records here, and the place that its first one follows."""
        begin = genesis_link(name) if begin is None else begin
        self.ask("INSERT INTO spaces VALUES (?, ?, ?, ?)", (number, name, *begin))
        return self.spaces()[name]

    def last(self) -> int:
        """The number of the last record; 0: there is none."""
        ((last,),) = self.ask("SELECT max(n) FROM records")
        return int(last or 0)

    def write(self, rows: Sequence[Columns]) -> None:
        """Append records: all or nothing.

        Raises:
            Busy: nothing, now.
        """
        connection = self._connection
        try:
            if len(rows) == 1:
                connection.execute(_INSERT, rows[0])
                return
            connection.execute("BEGIN IMMEDIATE")
            try:
                connection.executemany(_INSERT, rows)
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise meaning_of(self.path, error) from error

    def write_patiently(self, rows: Sequence[Columns]) -> None:
        """Append records once nobody else writes; waits some seconds for that."""
        self.ask(f"PRAGMA busy_timeout = {_BUSY_MS}")
        try:
            self.write(rows)
        finally:
            self.ask("PRAGMA busy_timeout = 0")

    def row(self, n: int) -> RecordRow | None:
        """One record by its number; None: it is not here."""
        found = self.ask(f"SELECT {_COLUMNS} FROM records WHERE n = ?", (n,))
        return _row(found[0]) if found else None

    def rows(self, numbers: Iterable[int]) -> Iterator[RecordRow]:
        """The records with these numbers, in their order; one that is not here is left out."""
        numbers = iter(numbers)
        while some := list(islice(numbers, _READ_ROWS)):
            marks = ", ".join("?" * len(some))
            try:
                found = self.ask(f"SELECT {_COLUMNS} FROM records WHERE n IN ({marks})", some)
            except Damaged:  # one of them: the others are read one by one, up to that one
                for n in some:
                    row = self.row(n)
                    if row is not None:
                        yield row
                continue
            by_number = {row[0]: row for row in found}
            yield from (_row(by_number[n]) for n in some if n in by_number)

    def scan(self, after: int = 0, space: int | None = None) -> Iterator[tuple[int, RecordRow]]:
        """All records after this number, each with the number of its space; or those of one space alone.

        Goes up to the very one that cannot be read.
        """
        some = _READ_ROWS
        which = "" if space is None else f" AND space = {space:d}"
        query = f"SELECT space, {_COLUMNS} FROM records WHERE n > ?{which} ORDER BY n LIMIT ?"
        while True:
            try:
                found = self.ask(query, (after, some))
            except Damaged:
                if some == 1:
                    raise
                some = 1
                continue
            for of, *columns in found:
                row = _row(columns)
                if row.n <= after:
                    raise Damaged("its records are out of order")  # and could be read for ever
                after = row.n
                yield of, row
            if len(found) < some:
                return

    def behind_damage(self, after: int) -> int | None:
        """The least number after this one from which on records can be read; None: there is none.

        Takes a hundred looks or so. Between two damages that lie close together some records may be missed.
        """
        step = 1
        while not self._can_read(after + step):
            step *= 2
            if step > _NUMBER_MAX - after:
                return None
        low, high = after + step // 2, after + step
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._can_read(middle) else (middle, high)
        return high

    def _can_read(self, after: int) -> bool:
        try:
            next(self.scan(after), None)
        except Damaged:
            return False
        return True

    def ask(self, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Run any statement of SQL; return its rows."""
        with translated(self.path):
            return self._connection.execute(query, tuple(values)).fetchall()

    def close(self) -> None:
        """Move everything into the one file and close it. Takes as long as the disk does."""
        with translated(self.path):
            self._connection.close()
        if self._is_view and not self.is_blind:
            tidy(self.path)


def checkpoint(path: Path, *, whole: bool = False) -> tuple[int, int]:
    """Move the write-ahead log into the file; return how many pages it had, and how many of them were moved.

    Beside a writer it goes as far as it can; `whole` waits until it is alone, and the writer must wait meanwhile.

    Raises:
        Busy: somebody else is at it, and was for some seconds.
    """
    query = f"PRAGMA wal_checkpoint({'RESTART' if whole else 'PASSIVE'})"
    until_s = time.monotonic() + _BUSY_MS / 1000
    with translated(path):
        connection = _connect(path)
        try:
            while True:
                _, pages, moved = connection.execute(query).fetchone()
                if pages >= 0:
                    return pages, moved
                if time.monotonic() > until_s:
                    raise Busy(f"{path}: somebody else is checkpointing it")
                time.sleep(_RETRY_S)  # SQLite itself does not wait for this
        finally:
            connection.close()


def sync_folders(*folders: Path) -> None:
    """Have the names in them survive a power cut."""
    if os.name != "posix":
        return
    for folder in folders:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


_SYNCHRONOUS: Final = {Durability.PROCESS: "NORMAL", Durability.POWER: "FULL"}


def _row(columns: Sequence[Any]) -> RecordRow:
    n, last, at, body, digest = columns
    if not (
        isinstance(body, bytes)
        and isinstance(digest, bytes)
        and isinstance(last, int)
        and isinstance(at, int)
    ):
        raise Damaged(f"record {n} has no content")
    return RecordRow(n, last, at, body, digest)


def tidy(path: Path) -> None:
    """Leave no empty files behind after only reading. SQLite deletes them if nobody else has the file open."""
    with suppress(OSError, sqlite3.Error):
        if path.with_name(f"{path.name}-wal").stat().st_size == 0:
            connection = _connect(path)
            try:
                connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            finally:
                connection.close()


def _check_format(path: Path, connection: sqlite3.Connection) -> None:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application == _APPLICATION and version > FORMAT:
        raise JournalUnavailable(f"{path}: written by a later version of mew, format {version}")
    if application != _APPLICATION or version != FORMAT:
        raise Damaged("not a journal")
    tables = connection.execute("SELECT CAST(sql AS BLOB) FROM sqlite_schema WHERE type = 'table'").fetchall()
    if not {(_RECORDS.encode(),), (_SPACES.encode(),)} <= set(tables):
        raise Damaged("its tables are not those of a journal")  # under other columns nothing would be found


def _connect(path: Path, how: str = "mode=rw") -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?{how}"
    wait_s = _BUSY_MS / 1000
    return sqlite3.connect(uri, uri=True, timeout=wait_s, isolation_level=None, check_same_thread=False)
