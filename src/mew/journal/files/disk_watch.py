"""Watch the journal files and their disk while a gateway runs.

SQLite goes on writing to a file that was deleted, renamed or replaced, and says nothing: what it writes there is gone
with the process.
"""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from mew.journal.port import JournalUnavailable

from .database import FILE
from .folder import identity
from .high_water import MARKS_FILE

__all__ = ["DiskStatus", "DiskUsage", "FileWatch"]

_WARN_SHARE: Final = 0.8
_GIB: Final = 1 << 30


class DiskUsage(NamedTuple):
    """Bytes in the folder of a journal, snapshots apart; those of its disk, and how many of them are free."""

    journal_bytes: int
    disk_bytes: int
    free_bytes: int

    @classmethod
    def of(cls, folder: Path) -> "DiskUsage":
        """
        Raises:
            OSError: the folder cannot be looked at, or a file in it has just gone.
        """
        with os.scandir(folder) as files:
            size = sum(file.stat().st_size for file in files if file.is_file())
        disk = shutil.disk_usage(folder)
        return cls(size, disk.total, disk.free)

    def warnings(self, warn_bytes: int) -> dict[str, str]:
        """Return what is worth a warning, by the name of what is running short; no file is named."""
        found: dict[str, str] = {}
        used = 1 - self.free_bytes / max(self.disk_bytes, 1)
        if used >= _WARN_SHARE:
            free = f"{self.free_bytes / _GIB:,.1f} GiB are free"
            found["disk"] = f"the disk of the journal is {used:.0%} full ({free})"
        if self.journal_bytes > warn_bytes:
            limit = f"{warn_bytes / _GIB:,.1f} GiB"
            found["size"] = (
                f"the journal takes {self.journal_bytes / _GIB:,.1f} GiB, more than 'journal.warn_bytes' ({limit})"
            )
        return found


@dataclass(slots=True)
class DiskStatus:
    """How much room a journal takes and has, as last looked at, and what is worth a warning."""

    usage: DiskUsage | None = None
    warnings: Mapping[str, str] = field(default_factory=dict)


class FileWatch:
    """Which files a journal has open, to notice that their names lead elsewhere. May be used in any thread."""

    def __init__(self, folder: Path) -> None:
        """For a journal that was just opened."""
        self._found = {
            path: identity(path) for path in (folder / FILE, folder / f"{FILE}-wal", folder / MARKS_FILE)
        }

    def check(self) -> None:
        """
        Raises:
            JournalUnavailable: a file was deleted, renamed or replaced; the message says what to do.
        """
        for path, known in self._found.items():
            now = identity(path)
            if known is None:
                self._found[path] = now  # the write-ahead log is made with the first commit
            elif now != known:
                what = "was deleted or renamed" if now is None else "was replaced by another file"
                raise JournalUnavailable(
                    f"journal {path} {what} while the gateway was running, so nothing is accepted any more;"
                    " stop the gateway, put the file back (or a backup of it), and start the gateway again",
                    summary="a file of the journal was deleted, renamed or replaced; see the log",
                )
