"""The file of an index: made for the one whose folder it is, set aside, and copied while others write it."""

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from mew.log.salvage import keep_aside

__all__ = ["copy_file", "make_file", "set_aside"]

_BUSY_S: Final = 10.0
_NO_ROOM: Final = frozenset({sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY})


def make_file(path: Path) -> None:
    """An empty one, if there is none: for its owner's eyes only, who is the owner of the folder where root asks.

    Raises:
        OSError: it could not be made.
    """
    with suppress(FileExistsError):  # to close one that others have open would end this process's locks on it
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        try:
            if os.name == "posix" and os.geteuid() == 0:
                folder = path.parent.stat()
                os.fchown(descriptor, folder.st_uid, folder.st_gid)  # or the gateway could never write it
        finally:
            os.close(descriptor)


def set_aside(path: Path) -> Path:
    """Keep it under another name, with what was written ahead of it; returns that name.

    Raises:
        OSError: it could not be kept.
    """
    aside = keep_aside(path)
    path.unlink()
    path.with_name(f"{path.name}-shm").unlink(missing_ok=True)
    return aside


def copy_file(path: Path, to: Path) -> None:
    """All that is in it at one moment, also while another process writes it. Changes nothing, if need be.

    Raises:
        OSError: there is none.
        sqlite3.Error: it cannot be read.
    """
    path.stat()
    try:
        _copy(path, to, "mode=ro")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF not in _NO_ROOM:
            raise
        _copy(path, to, "immutable=1")  # nobody has it open: or there would be room to agree


def _copy(path: Path, to: Path, how: str) -> None:
    uri = f"{path.absolute().as_uri()}?{how}"
    with (
        closing(sqlite3.connect(uri, uri=True, timeout=_BUSY_S)) as source,
        closing(sqlite3.connect(to)) as target,
    ):
        source.backup(target)
