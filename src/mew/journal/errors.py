"""Translate errors of SQLite and the operating system into journal errors."""

import errno
import shutil
import sqlite3
from pathlib import Path
from typing import Final

from .port import JournalUnavailable

__all__ = ["Busy", "Damaged", "damaged", "meaning_of", "translated", "unavailable"]

# A constraint fails where something is not what it should be, or is there twice.
_DAMAGE: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CONSTRAINT})
_SHORT_READ: Final = sqlite3.SQLITE_IOERR_SHORT_READ
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_FREE_BYTES_MIN: Final = 1 << 20  # with less SQLite may not even be able to open the file


class Damaged(Exception):
    """The file, or a part of it, cannot be read as what it should be. `path`: the file, if SQLite said so."""

    def __init__(self, message: str, path: Path | None = None) -> None:
        super().__init__(message)
        self.path = path


class Busy(JournalUnavailable):
    """Somebody else writes to the file."""


class translated:
    """A context that raises `Damaged` or `JournalUnavailable` for errors of SQLite and the system."""

    __slots__ = ("_path",)

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            return
        if isinstance(error, UnicodeDecodeError) or str(error).startswith("Could not decode"):
            raise Damaged("a text in it cannot be read", self._path) from None  # the error has the text
        if isinstance(error, sqlite3.Error):
            raise meaning_of(self._path, error) from error
        if isinstance(error, OSError):
            raise unavailable(self._path, error) from error


def meaning_of(path: Path, error: sqlite3.Error) -> Damaged | JournalUnavailable:
    """What an error of SQLite means for the journal."""
    code = getattr(error, "sqlite_errorcode", 0)
    if code & 0xFF in _DAMAGE or code == _SHORT_READ:
        return Damaged(str(error), path)
    if code & 0xFF == sqlite3.SQLITE_BUSY:
        return Busy(
            f"journal {path}: another program keeps it locked ({error}); end that program, then restart the gateway"
        )
    if code & 0xFF == sqlite3.SQLITE_FULL or _is_disk_full(path):
        return _full(path)
    if code & 0xFF == sqlite3.SQLITE_IOERR:
        return JournalUnavailable(
            f"journal {path}: the disk refuses to read or write it ({error}); check the disk, its quota and its"
            " file permissions, then restart the gateway",
            summary="the disk of the journal refuses to read or write; see the log",
        )
    return JournalUnavailable(f"{path}: {error}")


def damaged(path: Path, error: Damaged) -> JournalUnavailable:
    """The error for whoever cannot go on with a damaged journal."""
    return JournalUnavailable(
        f"journal {path} is damaged: {error}; stop the gateway, put a backup in its place if you have one, and start"
        " it again: without one it goes on with what can be read, and keeps the damaged file under another name",
        summary="the journal is damaged; see the log",
    )


def unavailable(path: Path, error: OSError) -> JournalUnavailable:
    """What an error of the system means for a file of the journal."""
    return _full(path) if error.errno in _FULL else JournalUnavailable(f"{path}: {error.strerror}")


def _full(path: Path) -> JournalUnavailable:
    return JournalUnavailable(
        f"journal {path}: the disk is full, so nothing can be accepted; free some space there, or have old entries"
        " dropped with 'journal.keep_days' or 'journal.keep_bytes', then restart the gateway",
        summary="the disk of the journal is full",
    )


def _is_disk_full(path: Path) -> bool:
    try:
        return shutil.disk_usage(path.parent).free < _FREE_BYTES_MIN
    except OSError:
        return False
