"""The high-water marks: up to where each space was committed, in a small file beside the journal.

A start compares them with the journal. SQLite takes a write-ahead log that was cut off for one that ends there, and
last week's copy of the file is as valid as today's: only something outside of it knows that there was more.

Each space has a slot of fixed size. A mark is written some milliseconds after its commit, so that a crash may leave it
behind the journal but never ahead of it. It is not synced to the disk: after a power cut either may be behind.
"""

import asyncio
import logging
import os
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple
from zlib import crc32

import msgspec

from mew.journal.errors import translated
from mew.journal.files.folder import space_folder
from mew.journal.port import LostEntries
from mew.journal.record import ChainLink, genesis_link

from .database import Columns

__all__ = [
    "LOSSES_FILE",
    "MARKS_FILE",
    "HighWaterMark",
    "HighWaterMarks",
    "high_water_mark",
    "read_losses",
    "record_loss",
]

_logger = logging.getLogger(__name__)

MARKS_FILE: Final = "high-water"
_SLOT_BYTES: Final = 128  # divides a page, so that no slot is ever half written by a process that is killed
_KEY_BYTES: Final = 32
_MARK: Final = struct.Struct(">QQ32s")
_CHECKSUM: Final = struct.Struct(">I")
_CHECKED_BYTES: Final = _KEY_BYTES + _MARK.size
_DELAY_S: Final = 0.01


class HighWaterMark(NamedTuple):
    """The last committed record of a space: its number in the journal, that of its last entry, and its hash."""

    n: int
    seq: int
    hash: bytes

    @property
    def link(self) -> ChainLink:
        return ChainLink(self.seq, self.hash)


class HighWaterMarks:
    """The marks of all spaces in a folder. For the one process that writes the journal."""

    def __init__(self, folder: Path) -> None:
        """Open the file, or make it.

        Raises:
            JournalUnavailable: it cannot be read or written.
        """
        self.path = folder / MARKS_FILE
        self._image = bytearray()
        self._slots: dict[bytes, int] = {}  # where the slot of a space begins, by its key
        self._offsets: dict[int, int] = {}  # the same, by the number of the space in the journal
        self._changed: dict[int, Columns] = {}  # the last record of each space that is not marked yet
        self._writing: asyncio.TimerHandle | None = None
        self._has_failed = False
        with translated(self.path):
            self._load(self.path.read_bytes() if self.path.exists() else b"")
            self._descriptor = os.open(self.path, os.O_CREAT | os.O_WRONLY, 0o600)

    def of(self, space: str) -> HighWaterMark | None:
        """Return the mark of a space; None if it has none."""
        self.write()
        at = self._slots.get(_key(space))
        return None if at is None else _mark_at(self._image, at)

    def track(self, space: str, number: int) -> None:
        """Say which number a space has in the journal: its records are marked from now on."""
        key = _key(space)
        at = self._slots.get(key)
        if at is None:
            at = self._slots[key] = len(self._image)
            self._image += key.ljust(_SLOT_BYTES, b"\0")
        self._offsets[number] = at

    def advance(self, rows: Sequence[Columns]) -> None:
        """Mark records that were committed: some milliseconds later, or at once if no event loop is running."""
        changed = self._changed
        for row in rows:
            changed[row[1]] = row
        if self._writing is None:
            try:
                self._writing = asyncio.get_running_loop().call_later(_DELAY_S, self.write)
            except RuntimeError:
                self.write()

    def reset(self, number: int, mark: HighWaterMark) -> None:
        """Set the mark of a tracked space back to where its journal ends, at once."""
        self._changed[number] = (mark.n, number, mark.seq, 0, False, mark.hash, b"")
        self.write()

    def write(self) -> None:
        """Write the marks that are not in the file yet. A failure is logged: marks may be behind."""
        self._writing = None
        if not self._changed:
            return
        image = self._image
        first, last = len(image), 0
        for number, (n, _, seq, _, _, digest, _) in self._changed.items():
            at = self._offsets[number]
            _MARK.pack_into(image, at + _KEY_BYTES, n, seq, digest)
            _CHECKSUM.pack_into(image, at + _CHECKED_BYTES, crc32(image[at : at + _CHECKED_BYTES]))
            first, last = min(first, at), max(last, at + _SLOT_BYTES)
        self._changed.clear()
        try:
            os.lseek(self._descriptor, first, os.SEEK_SET)
            os.write(self._descriptor, image[first:last])
        except OSError as error:
            if not self._has_failed:
                what = {"file": str(self.path), "error": error.strerror}
                _logger.warning("the journal's high-water mark could not be written", extra=what)
            self._has_failed = True

    def close(self) -> None:
        if self._writing is not None:
            self._writing.cancel()
        self.write()
        os.close(self._descriptor)

    def _load(self, content: bytes) -> None:
        whole = len(content) // _SLOT_BYTES * _SLOT_BYTES
        self._image = bytearray(content[:whole])
        for at in range(0, whole, _SLOT_BYTES):
            key = content[at : at + _KEY_BYTES]
            if any(key):
                self._slots[key] = at
            if _is_damaged(content, at):
                _logger.error(
                    "%s is damaged: for one space nobody can tell whether the end of its journal is missing",
                    self.path,
                )


def high_water_mark(folder: Path, space: str) -> HighWaterMark | None:
    """Return the mark of a space in a folder, also while a gateway writes it; None if there is none.

    Raises:
        JournalUnavailable: the file cannot be read.
    """
    path = folder / MARKS_FILE
    with translated(path):
        content = path.read_bytes() if path.exists() else b""
    key = _key(space)
    for at in range(0, len(content) - _SLOT_BYTES + 1, _SLOT_BYTES):
        if content[at : at + _KEY_BYTES] == key:
            return _mark_at(content, at)
    return None


def _key(space: str) -> bytes:
    return genesis_link(space).hash


def _mark_at(content: bytes | bytearray, at: int) -> HighWaterMark | None:
    mark = HighWaterMark._make(_MARK.unpack_from(content, at + _KEY_BYTES))
    return mark if mark.seq and not _is_damaged(content, at) else None


def _is_damaged(content: bytes | bytearray, at: int) -> bool:
    (checksum,) = _CHECKSUM.unpack_from(content, at + _CHECKED_BYTES)
    is_unused = not any(content[at + _KEY_BYTES : at + _SLOT_BYTES])
    return not is_unused and bool(checksum != crc32(content[at : at + _CHECKED_BYTES]))


LOSSES_FILE: Final = "losses.jsonl"


def read_losses(folder: Path, space: str, begin: int = 0) -> tuple[LostEntries, ...]:
    """Return the losses of a space in what is kept after entry `begin`, the oldest first.

    Raises:
        JournalUnavailable: the file is there and cannot be read.
    """
    path = space_folder(folder, space) / LOSSES_FILE
    with translated(path):
        lines = path.read_bytes().splitlines() if path.exists() else []
    found: list[LostEntries] = []
    for line in lines:
        try:
            found.append(_decoder.decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue  # a crash cut it off: the loss was noticed and written again
    return tuple(loss for loss in found if loss.after >= begin)


def record_loss(folder: Path, space: str, loss: LostEntries) -> None:
    """Append a loss to those of a space; it survives a power cut.

    Raises:
        JournalUnavailable: it may or may not have been written.
    """
    path = space_folder(folder, space) / LOSSES_FILE
    with translated(path):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600), "ab", buffering=0) as file:
            file.write(b"\n" + msgspec.json.encode(loss) + b"\n")  # also behind a line that was cut off
            os.fsync(file.fileno())


_decoder: Final = msgspec.json.Decoder(LostEntries)
