"""Whether all that was written ahead of a journal's file could be read, asked while it is open to be looked at."""

import struct
from enum import Enum, auto
from pathlib import Path
from typing import Final

from .wal import has_lost_commits

__all__ = ["Ahead", "look_ahead"]

_SALTS: Final = slice(16, 24)  # of the write-ahead file
# Of the file beside it, by which those who have the database open agree: how many frames count, of which beginning.
_AGREED: Final = struct.Struct("=16xI12x8s")
_NOTHING: Final = bytes(8)  # not a frame counts
_TRIES: Final = 5


class Ahead(Enum):
    """What was written ahead: it was read, a part of it is lost to a damage, or nobody could look at it."""

    READ = auto()
    LOST = auto()
    UNREAD = auto()


def look_ahead(path: Path) -> Ahead:
    """For a database that this process has open and has read from; a gateway may write it meanwhile."""
    is_doubted = False
    for _ in range(_TRIES):
        found = _look(path)
        if found is Ahead.LOST and not is_doubted:
            is_doubted = True  # somebody may just be opening it: look again
        elif found is not None:
            return found
    return Ahead.READ  # begun anew each time we looked: there is a gateway that reads and writes it


def _look(path: Path) -> Ahead | None:
    """None: it was begun anew while we looked."""
    try:
        # In this order: frames that are written after it was read must not seem to lie behind those that count.
        wal = path.with_name(f"{path.name}-wal").read_bytes()
        if not wal:
            return Ahead.READ
        frames, salts = _AGREED.unpack_from(path.with_name(f"{path.name}-shm").read_bytes())
    except FileNotFoundError as error:
        return Ahead.UNREAD if str(error.filename).endswith("-shm") else Ahead.READ
    except (OSError, struct.error):
        return Ahead.UNREAD
    if salts not in (wal[_SALTS], _NOTHING):
        return None
    return Ahead.LOST if has_lost_commits(wal, frames) else Ahead.READ
