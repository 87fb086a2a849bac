"""Detect commits lost to a damaged SQLite write-ahead log (WAL).

SQLite silently treats a frame with a wrong checksum as the end of the log, so a torn write after a crash looks the same
as a damaged disk. But a crash tears at most the last transaction: if a complete transaction and part of another lie
behind the frames that SQLite could read, committed data is lost.
"""

import struct
from contextlib import ExitStack
from enum import Enum, auto
from pathlib import Path
from typing import Final

__all__ = ["WalStatus", "has_lost_commits", "wal_status"]

_MAGIC: Final = (0x377F0682, 0x377F0683)
_HEADER: Final = struct.Struct(">8I")
_FRAME: Final = struct.Struct(">6I")


def has_lost_commits(wal: bytes, frames_read: int) -> bool:
    """Whether a whole transaction and part of another were written behind the frames that SQLite could read."""
    if len(wal) <= _HEADER.size + _FRAME.size:
        return False
    magic, _, page_bytes, _, *salts, sum_1, sum_2 = _HEADER.unpack_from(wal)
    if magic not in _MAGIC or _checksum(wal[:24], "<" if magic == _MAGIC[0] else ">") != (sum_1, sum_2):
        return True  # the frames begin after the header was on its way to the disk
    size = _FRAME.size + page_bytes
    ended = False
    for at in range(_HEADER.size + frames_read * size, len(wal) - size + 1, size):
        _, pages_after_commit, *frame_salts, _, _ = _FRAME.unpack_from(wal, at)
        if frame_salts != salts:
            continue  # left from before the file was begun anew, or spoiled
        if ended:
            return True
        ended = bool(pages_after_commit)
    return False


def _checksum(words: bytes, order: str) -> tuple[int, int]:
    first = second = 0
    for word_1, word_2 in struct.iter_unpack(f"{order}II", words):
        first = (first + word_1 + second) & 0xFFFFFFFF
        second = (second + word_2 + first) & 0xFFFFFFFF
    return first, second


_SALTS: Final = slice(16, 24)  # of the write-ahead file
# Of the file beside it, by which those who have the database open agree: how many frames count, of which beginning.
_AGREED: Final = struct.Struct("=16xI12x8s")
_NOTHING: Final = bytes(8)  # not a frame counts
_TRIES: Final = 5


class WalStatus(Enum):
    """The write-ahead log was read, a part of it is lost to damage, or nobody could look at it."""

    READ = auto()
    LOST = auto()
    UNREAD = auto()


def wal_status(path: Path, files: ExitStack, *, is_blind: bool = False) -> WalStatus:
    """For a database that this process has open and has read from; a gateway may write it meanwhile.

    A reader that `is_blind` to the log has read all only if the log is empty. `files` are to be closed after the
    database: to close one before would end the locks by which this process has it open.
    """
    if is_blind:
        return WalStatus.READ if _is_empty(path.with_name(f"{path.name}-wal")) else WalStatus.UNREAD
    is_doubted = False
    for _ in range(_TRIES):
        found = _look(path, files)
        if found is WalStatus.LOST and not is_doubted:
            is_doubted = True  # somebody may just be opening it: look again
        elif found is not None:
            return found
    return WalStatus.READ  # begun anew each time we looked: there is a gateway that reads and writes it


def _is_empty(wal: Path) -> bool:
    try:
        return wal.stat().st_size == 0
    except FileNotFoundError:
        return True
    except OSError:
        return False


def _look(path: Path, files: ExitStack) -> WalStatus | None:
    """None: it was begun anew while we looked."""
    try:
        # In this order: frames that are written after it was read must not seem to lie behind those that count.
        wal = path.with_name(f"{path.name}-wal").read_bytes()
        if not wal:
            return WalStatus.READ
        shared = files.enter_context(path.with_name(f"{path.name}-shm").open("rb", buffering=0))
        frames, salts = _AGREED.unpack_from(shared.read(_AGREED.size))
    except FileNotFoundError as error:
        return WalStatus.UNREAD if str(error.filename).endswith("-shm") else WalStatus.READ
    except (OSError, struct.error):
        return WalStatus.UNREAD
    if salts not in (wal[_SALTS], _NOTHING):
        return None
    return WalStatus.LOST if has_lost_commits(wal, frames) else WalStatus.READ
