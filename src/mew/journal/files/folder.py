"""The journal folder: its lock, a subfolder per space, and renaming of damaged files instead of deleting them."""

import hashlib
import os
import sys
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

from mew.journal.port import JournalUnavailable

__all__ = [
    "FolderLock",
    "file_name",
    "free_name",
    "identity",
    "keep_aside",
    "make_file",
    "set_aside",
    "space_folder",
    "spaces_in",
]

_LOCK: Final = ".lock"
_SPACES: Final = "spaces"
_NAME_CHARS_MAX: Final = 200
_NAME_PART_CHARS: Final = 160


def space_folder(folder: Path, space: str) -> Path:
    """Where the snapshots and checkpoints of a space are."""
    return folder / _SPACES / file_name(space)


def file_name(space: str) -> str:
    """The id of a space as the name of a file, percent-encoded; one that is too long for that ends in its hash."""
    name = quote(space, safe="@ ")
    if name.startswith("."):
        name = f"%2E{name[1:]}"
    if len(name) <= _NAME_CHARS_MAX:
        return name
    return f"{name[:_NAME_PART_CHARS].rpartition('%')[0]}-{hashlib.sha256(space.encode()).hexdigest()[:32]}"


def spaces_in(folder: Path) -> list[str]:
    """The spaces that have a folder here."""
    try:
        return sorted(unquote(path.name) for path in (folder / _SPACES).iterdir())
    except FileNotFoundError:
        return []


class FolderLock:
    """Makes the folder if need be, for its owner alone, and keeps other processes out until it is released."""

    def __init__(self, folder: Path) -> None:
        """
        Raises:
            JournalUnavailable: another process has it, or it cannot be written.
        """
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._descriptor = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)
        except OSError as error:
            raise JournalUnavailable(
                f"{folder}: the journal cannot be kept here: {error.strerror}"
            ) from error
        try:
            _lock(self._descriptor)
        except OSError as error:
            holder = os.read(self._descriptor, 32).decode("ascii", "replace").strip()
            os.close(self._descriptor)
            raise JournalUnavailable(
                f"{folder}: another process{f' ({holder})' if holder else ''} keeps its journal here;"
                " stop it, or give this one a folder of its own with 'journal.folder'"
            ) from error
        os.ftruncate(self._descriptor, 0)
        os.write(self._descriptor, f"pid {os.getpid()}\n".encode())
        _ignore(folder)

    def release(self) -> None:
        os.close(self._descriptor)


def identity(path: Path) -> tuple[int, int] | None:
    """Return which file a name leads to, by device and inode; None if it leads to none that can be looked at."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def free_name(path: Path) -> Path:
    """A name beside it under which it can be kept."""
    names = (path.with_name(f"{path.name}.damaged-{n}") for n in count(1))
    return next(name for name in names if not name.exists())


def keep_aside(path: Path) -> Path:
    """Give a database that nobody has open a second name, so that another may take its place.

    Raises:
        OSError: it could not be kept.
    """
    aside = free_name(path)
    os.link(path, aside)
    ahead = path.with_name(f"{path.name}-wal")
    if ahead.exists():  # or it would be taken for the new one's
        ahead.rename(aside.with_name(f"{aside.name}-wal"))
    return aside


def make_file(path: Path) -> None:
    """An empty one, if there is none: for its owner alone, who is the owner of the folder if root asks.

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
    """Keep it under another name, with its write-ahead log; return that name.

    Raises:
        OSError: it could not be kept.
    """
    aside = keep_aside(path)
    path.unlink()
    path.with_name(f"{path.name}-shm").unlink(missing_ok=True)
    return aside


def _ignore(folder: Path) -> None:
    """Keep what people said out of git."""
    try:
        with (folder / ".gitignore").open("x", encoding="ascii") as file:
            file.write("*\n")
    except FileExistsError:
        pass
    except OSError as error:
        raise JournalUnavailable(f"{folder}: {error.strerror}") from error


def _lock(descriptor: int) -> None:
    if sys.platform == "win32":
        import msvcrt  # not available elsewhere

        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl  # not available on Windows

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
