"""One SQLite file with the entries of a space: opened, written a turn at a time, read in order.

A row holds all entries of a turn of the loop, by the number of the last: a row for each costs twice as much.
"""

import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from .base import LogUnavailable
from .record import Link, Row, unpack

__all__ = ["Busy", "Damaged", "Database", "Durability", "checkpoint", "sync_folders"]

FORMAT: Final = 1
_APPLICATION: Final = 0x6D657734  # "mew4"
_BUSY_MS: Final = 5_000
_AGAIN_S: Final = 0.01
_READ_TURNS: Final = 64
_BEFORE_ALL: Final = -(1 << 63)
_DAMAGE: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_NO_ROOM: Final = frozenset({sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY})
_SHORT: Final = sqlite3.SQLITE_IOERR_SHORT_READ
_TURNS: Final = "CREATE TABLE turns (last INTEGER PRIMARY KEY, entries BLOB NOT NULL)"
_JOURNAL: Final = "CREATE TABLE journal (space TEXT NOT NULL, seq INTEGER NOT NULL, hash BLOB NOT NULL)"
_SCHEMA: Final = f"""
BEGIN;
{_TURNS};
{_JOURNAL};
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {FORMAT};
COMMIT;
"""


class Durability(StrEnum):
    """What the entries survive: a killed process, or a power cut too."""

    PROCESS = "process"
    POWER = "power"


class Damaged(Exception):
    """The file, or a part of it, cannot be read as what it should be."""


class Busy(LogUnavailable):
    """Somebody else writes to the file."""


class Database:
    """An open file. Its methods may be called in any thread, one after the other.

    All raise `LogUnavailable` where the disk or the system says no, and `Damaged` where the file is not whole.
    """

    def __init__(
        self,
        path: Path,
        connection: sqlite3.Connection,
        durability: Durability | None = None,
        *,
        is_blind: bool = False,
    ) -> None:
        """For `create`, `open` and `view`."""
        self.path = path
        self.is_blind = is_blind
        """Whether only the file itself is seen, and nothing that was written ahead of it."""
        self._connection = connection
        self._is_view = durability is None
        if durability is None:
            return
        with _told(path):
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[durability]}")
            connection.execute("PRAGMA wal_autocheckpoint = 0")
            connection.execute("PRAGMA busy_timeout = 0")  # from now on nobody may be kept waiting by others

    @classmethod
    def create(cls, path: Path, space: str, after: Link, durability: Durability) -> "Database":
        """A new file for the entries that follow this place, for the owner's eyes only, in place of any other."""
        draft = path.with_name(f".{path.name}")
        with _told(path):
            for rest in (draft, draft.with_name(f"{draft.name}-journal")):
                rest.unlink(missing_ok=True)  # of an attempt that was cut off
            os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            connection = _connect(draft)
            connection.execute(
                "PRAGMA auto_vacuum = FULL"
            )  # so that a file of which something goes gets shorter
            connection.executescript(_SCHEMA)
            connection.execute("INSERT INTO journal VALUES (?, ?, ?)", (space, *after))
            connection.close()
            draft.replace(path)  # whole or not at all
            sync_folders(path.parent, path.parent.parent)
            return cls(path, _connect(path), durability)

    @classmethod
    def open(cls, path: Path, space: str, durability: Durability) -> "Database":
        """The file that is there. One of another space, or of a later version, is not for us.

        Waits some seconds for somebody who is just looking at it.
        """
        with _told(path):
            connection = _connect(path)
            try:
                name = _space_of(path, connection)
                if name != space:
                    raise LogUnavailable(f"{path}: the journal of space {name!r}, not of {space!r}")
            except BaseException:
                connection.close()
                raise
        return cls(path, connection, durability)

    @classmethod
    def view(cls, path: Path) -> tuple["Database", str]:
        """The file that is there, to be read only, also while another process writes it; and whose it is.

        In a folder where nothing can be written there may be no room to agree with others: then it `is_blind`.
        """
        is_blind = False
        with _told(path):
            connection = _connect(path, "mode=ro")
            try:
                try:
                    name = _space_of(path, connection)
                except sqlite3.OperationalError as error:
                    if error.sqlite_errorcode & 0xFF not in _NO_ROOM:
                        raise
                    connection.close()
                    connection = _connect(path, "immutable=1")
                    is_blind = True
                    name = _space_of(path, connection)
            except BaseException:
                connection.close()
                raise
        return cls(path, connection, is_blind=is_blind), name

    @property
    def begin(self) -> Link:
        """What the first entry of this file follows."""
        with _told(self.path):
            found = self._connection.execute("SELECT seq, hash FROM journal").fetchone()
        if found is None or not (isinstance(found[0], int) and isinstance(found[1], bytes)):
            raise Damaged("it does not say where it begins")
        return Link(*found)

    @property
    def last(self) -> int:
        """The number of the last entry, whole or not."""
        with _told(self.path):
            (last,) = self._connection.execute("SELECT max(last) FROM turns").fetchone()
        return self.begin.seq if last is None else int(last)

    def hash_of(self, seq: int) -> bytes | None:
        begin = self.begin
        if seq == begin.seq:
            return begin.hash
        row = self.row(seq)
        return None if row is None else row.hash

    def row(self, seq: int) -> Row | None:
        """One row; None: it is not here."""
        found = self._turns("last >= ? ORDER BY last", seq, 1)
        return next((row for _, entries in found for row in _unpacked(entries) if row.seq == seq), None)

    def write(self, last: int, packed: bytes) -> None:
        """A turn: its entries, and the number of the last. All or nothing.

        Raises:
            Busy: nothing, now.
        """
        with _told(self.path):
            self._connection.execute("INSERT INTO turns VALUES (?, ?)", (last, packed))

    def write_patiently(self, last: int, packed: bytes) -> None:
        """Write, once nobody else does; waits some seconds for that."""
        self._connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
        try:
            self.write(last, packed)
        finally:
            self._connection.execute("PRAGMA busy_timeout = 0")

    def rows(self, after: int) -> Iterator[Row]:
        """The rows after this one in order, up to the very one that cannot be read."""
        for _, entries in self.turns(after):
            yield from (row for row in _unpacked(entries) if row.seq > after)

    def turns(self, after: int = _BEFORE_ALL) -> Iterator[tuple[int, object]]:
        """The turns that end after this entry as they are kept, each with the number it is kept under."""
        last, some = after, _READ_TURNS
        while True:
            try:
                found = self._turns("last > ? ORDER BY last", last, some)
            except Damaged:
                if some == 1:
                    raise
                some = 1
                continue
            for turn in found:
                if turn[0] <= last:
                    raise Damaged("its turns are out of order")  # and could be read for ever
                last = turn[0]
                yield turn
            if len(found) < some:
                return

    def rows_back(self, until: int) -> Iterator[Row]:
        """The rows up to this one, the last first."""
        found = self._turns("last >= ? ORDER BY last", until, 1)
        found = found or self._turns("last < ? ORDER BY last DESC", until, 1)
        while found:
            ((last, entries),) = found
            yield from (row for row in reversed(list(_unpacked(entries))) if row.seq <= until)
            found = self._turns("last < ? ORDER BY last DESC", last, 1)

    def _turns(self, which: str, than: int, limit: int) -> list[tuple[int, object]]:
        query = f"SELECT last, entries FROM turns WHERE {which} LIMIT ?"
        with _told(self.path):
            return self._connection.execute(query, (than, limit)).fetchall()

    def ask(self, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """The answer to any question in SQL."""
        with _told(self.path):
            return self._connection.execute(query, tuple(values)).fetchall()

    def close(self) -> None:
        """Bring everything into the one file and leave it. Takes as long as the disk does."""
        with _told(self.path):
            self._connection.close()
        if self._is_view and not self.is_blind:
            _tidy(self.path)


def checkpoint(path: Path, *, whole: bool = False) -> tuple[int, int]:
    """Bring what was written ahead into the file; return how many pages were ahead, and how many of them are in.

    Beside a writer it goes as far as it can; `whole` waits until it is alone, and the writer must wait meanwhile.

    Raises:
        Busy: somebody else is at it, and was for some seconds.
    """
    query = f"PRAGMA wal_checkpoint({'RESTART' if whole else 'PASSIVE'})"
    until_s = time.monotonic() + _BUSY_MS / 1000
    with _told(path):
        connection = _connect(path)
        try:
            while True:
                _, ahead, done = connection.execute(query).fetchone()
                if ahead >= 0:
                    return ahead, done
                if time.monotonic() > until_s:
                    raise Busy(f"{path}: somebody else brings in what was written ahead")
                time.sleep(_AGAIN_S)  # SQLite itself does not wait for this
        finally:
            connection.close()


_SYNCHRONOUS: Final = {Durability.PROCESS: "NORMAL", Durability.POWER: "FULL"}


def _tidy(path: Path) -> None:
    """Have no empty files left of those who only looked. SQLite deletes them if nobody else has the file open."""
    with suppress(OSError, sqlite3.Error):
        if path.with_name(f"{path.name}-wal").stat().st_size == 0:
            connection = _connect(path)
            try:
                connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
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


def _unpacked(entries: object) -> Iterator[Row]:
    if not isinstance(entries, bytes):
        raise Damaged("a turn without entries")
    try:
        yield from unpack(entries)
    except ValueError as error:
        raise Damaged(str(error)) from error


def _space_of(path: Path, connection: sqlite3.Connection) -> str:
    found = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > FORMAT:
        raise LogUnavailable(f"{path}: written by a later version of mew, format {version}")
    if found != _APPLICATION or version != FORMAT:
        raise Damaged("not a journal")
    tables = connection.execute("SELECT CAST(sql AS BLOB) FROM sqlite_schema WHERE type = 'table'").fetchall()
    if not {(_TURNS.encode(),), (_JOURNAL.encode(),)} <= set(tables):
        raise Damaged("its tables are not those of a journal")  # under other columns nothing would be found
    (name,) = connection.execute("SELECT space FROM journal").fetchone() or ("",)
    return str(name)


def _connect(path: Path, how: str = "mode=rw") -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?{how}"
    wait_s = _BUSY_MS / 1000
    return sqlite3.connect(uri, uri=True, timeout=wait_s, isolation_level=None, check_same_thread=False)


class _told:
    """What SQLite and the system say, as what it means for the log."""

    __slots__ = ("_path",)

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, UnicodeDecodeError) or str(error).startswith("Could not decode"):
            raise Damaged("a text in it cannot be read") from None  # the error has the text
        if isinstance(error, sqlite3.Error):
            code = getattr(error, "sqlite_errorcode", 0)
            if code & 0xFF in _DAMAGE or code == _SHORT:
                raise Damaged(str(error)) from error
            if code & 0xFF == sqlite3.SQLITE_BUSY:
                raise Busy(f"{self._path}: {error}") from error
            raise LogUnavailable(f"{self._path}: {error}") from error
        if isinstance(error, OSError):
            raise LogUnavailable(f"{self._path}: {error.strerror}") from error
