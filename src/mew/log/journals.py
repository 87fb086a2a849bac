"""The journals of a gateway: a folder for each space, in a folder that no other process has at the same time."""

import os
import sys
from pathlib import Path
from typing import Final

from .base import LogUnavailable
from .database import Durability
from .retention import MayGo, Retention
from .sqlite import SqliteLog

__all__ = ["Journals"]

_LOCK: Final = ".lock"  # no space can have this name


class Journals:
    """Opens the journals in one folder, which is made if need be, for the owner's eyes only."""

    def __init__(
        self,
        folder: Path,
        durability: Durability = Durability.PROCESS,
        retention: Retention | None = None,
    ) -> None:
        """Takes the folder until it is closed.

        Raises:
            LogUnavailable: another process has it, or it cannot be written.
        """
        self.folder = folder
        self.retention = retention or Retention()
        self._durability = durability
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)
        except OSError as error:
            raise LogUnavailable(f"{folder}: the journal cannot be kept here: {error.strerror}") from error
        try:
            _lock(self._lock)
        except OSError as error:
            holder = os.read(self._lock, 32).decode("ascii", "replace").strip()
            os.close(self._lock)
            raise LogUnavailable(
                f"{folder}: another process{f' ({holder})' if holder else ''} keeps its journal here;"
                " stop it, or give this one a folder of its own with 'journal.folder'"
            ) from error
        os.ftruncate(self._lock, 0)
        os.write(self._lock, f"pid {os.getpid()}\n".encode())
        self._ignore()

    def open(self, space: str, may_go: MayGo | None = None) -> SqliteLog:
        """The log of a space; its id is fit to name a folder. `may_go` keeps entries that others still need."""
        return SqliteLog(self.folder / space, space, self._durability, self.retention, may_go)

    def close(self) -> None:
        """Others may have the folder. The logs must be closed."""
        self.retention.close()
        os.close(self._lock)

    def _ignore(self) -> None:
        """Keep git away from what people said."""
        try:
            with (self.folder / ".gitignore").open("x", encoding="ascii") as file:
                file.write("*\n")
        except FileExistsError:
            pass
        except OSError as error:
            raise LogUnavailable(f"{self.folder}: {error.strerror}") from error


def _lock(descriptor: int) -> None:
    if sys.platform == "win32":
        import msvcrt  # not to be had elsewhere

        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl  # not to be had on Windows

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
