"""PURE. Whether a write-ahead file of SQLite has transactions behind a place that SQLite cannot read past.

SQLite takes a frame that does not fit its checksum for the end, silently: what a crash cut off looks the same as what
a disk spoiled. But a crash cuts off at most the last transaction: one that was whole and has others behind it is lost.
"""

import struct
from typing import Final

__all__ = ["has_lost_commits"]

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
