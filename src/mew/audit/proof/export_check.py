"""Verify an export from the file alone: every line is intact, and none is missing."""

import os
from collections.abc import Iterator, Sequence
from typing import BinaryIO, Final

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from mew.journal.files.database import Damaged
from mew.journal.port import JournalUnavailable
from mew.journal.record import ChainLink, RecordRow, genesis_link

from .checkpoints import Checkpoint
from .cross_checks import ChainFollower, CheckpointVerifier, checkpoint_claim, entry_time
from .export import RecordSelection
from .export_lines import (
    FORMAT,
    CheckpointLine,
    ExportDigest,
    ExportHeader,
    ExportLine,
    differences,
    encode_line,
    lines_of,
    row_of,
)
from .verification_result import BrokenEntry, EntryTime, VerificationResult, unreadable
from .verify import Walked

__all__ = ["read_export", "verify_export"]

_LINE_BYTES_MAX: Final = 512 << 20  # an envelope has 64 MiB at most, and its quotes are escaped
_TOLD_EVERY: Final = 4 << 20
_NOT_JSON: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_headers: Final = msgspec.json.Decoder(ExportHeader)
_lines: Final = msgspec.json.Decoder(ExportLine)


def verify_export(
    file: BinaryIO, keys: Sequence[Ed25519PublicKey] = (), walked: Walked | None = None
) -> VerificationResult:
    """Whether it is sound, and up to where. `walked` is told of bytes.

    Raises:
        JournalUnavailable: it was written in a later format, or cannot be read.
    """
    lines = _lines_of(file)
    header = _header(next(lines, b""))
    if isinstance(header, str):
        return unreadable(header)
    export = _Export(header, keys)
    broken = export.begin()
    size, done, told = _size(file), 0, 0
    while broken is None:
        line = next(lines, b"")
        broken = export.take(line) if line else export.end()
        if not line:
            break
        done += len(line)
        if walked is not None and done >= told + _TOLD_EVERY:
            told = done
            walked(done, size)
    return export.verdict(broken)


def read_export(file: BinaryIO) -> RecordSelection:
    """Its records, each of which is checked before it is yielded.

    Raises:
        JournalUnavailable: it was written in a later format, or cannot be read.
        Damaged: it is no export. To read an entry that is not what was exported raises it too.
    """
    lines = _lines_of(file)
    header = _header(next(lines, b""))
    if isinstance(header, str):
        raise Damaged(header)
    export = _Export(header, ())
    _demand(export.begin())
    return RecordSelection(header.space, export.after, _rows(lines, export))


def _rows(lines: Iterator[bytes], export: "_Export") -> Iterator[RecordRow]:
    for line in lines:
        _demand(export.take(line))
        if export.row is not None:
            yield export.row
    _demand(export.end())


def _demand(broken: BrokenEntry | None) -> None:
    if broken is not None:
        raise Damaged(broken.why)


def _lines_of(file: BinaryIO) -> Iterator[bytes]:
    try:
        while line := file.readline(_LINE_BYTES_MAX):
            yield line
    except OSError as error:
        raise JournalUnavailable(f"the export cannot be read: {error.strerror}") from error


def _size(file: BinaryIO) -> int:
    try:
        return os.fstat(file.fileno()).st_size
    except OSError:  # it is not on a disk
        return 0


def _header(line: bytes) -> ExportHeader | str:
    """The first line; or what is wrong with it."""
    if not line:
        return "the file is empty"
    try:
        header = _headers.decode(line)
        wrong = differences(line, encode_line(header))
        after = bytes.fromhex(header.after.hash)
    except (*_NOT_JSON, ValueError) as error:
        return f"the first line is not that of an export: {error}"
    if header.mew_export > FORMAT:
        raise JournalUnavailable(f"an export of a later version of mew, format {header.mew_export}")
    if header.mew_export != FORMAT or wrong or header.after.seq < 0 or len(after) != 32:
        return f"the first line is not that of an export{': ' if wrong else ''}{', '.join(wrong)}"
    return header


class _Export:
    """An export, line by line."""

    def __init__(self, header: ExportHeader, keys: Sequence[Ed25519PublicKey]) -> None:
        self.row: RecordRow | None = None  # that the line ended which was taken last, if it did
        self._lines: list[tuple[bytes, ExportLine]] = []  # of the record that has begun
        self._lines_bytes = 0
        self._header = header
        self.after = ChainLink(header.after.seq, bytes.fromhex(header.after.hash))
        self._following = ChainFollower(self.after)
        self._witnesses = CheckpointVerifier(header.space, keys)
        self._digest = ExportDigest(header)
        self._number = 1
        self._first: RecordRow | None = None
        self._latest: RecordRow | None = None
        self._agreed: RecordRow | None = None  # the last of which a checkpoint says the same
        self._is_whole = False

    def begin(self) -> BrokenEntry | None:
        if self.after.seq == 0 and self.after != genesis_link(self._header.space):
            return BrokenEntry(1, f"the chain does not begin as that of a space {self._header.space!r} does")
        return None

    def take(self, written: bytes) -> BrokenEntry | None:
        """The next line; None: it is sound."""
        self._number += 1
        self.row = None
        seq = self._following.end.seq + 1
        where = f"in the record of entry {seq}" if self._lines else f"where entry {seq} should be"
        if self._is_whole:
            return BrokenEntry(None, f"line {self._number} stands behind the last one")
        try:
            line = _lines.decode(written)
            if self._lines and (line.checkpoint is not None or line.until is not None):
                raise ValueError("the record before it is not complete")
            if line.checkpoint is not None:
                return self._checkpoint(written, line.checkpoint)
            if line.until is not None:
                return self._last(written)
            return self._entry(written, line)
        except (*_NOT_JSON, ValueError) as error:
            return BrokenEntry(seq, f"line {self._number}, {where}, is not what was written: {error}")

    def end(self) -> BrokenEntry | None:
        """No line is left."""
        if self._is_whole:
            return None
        end = self._following.end.seq
        return BrokenEntry(end + 1, f"the file breaks off after entry {end}: its last line is missing")

    def verdict(self, broken: BrokenEntry | None) -> VerificationResult:
        begin, last = self.after, self._following.end.seq
        if broken is not None and broken.seq is not None:
            last = max(broken.seq - 1, begin.seq)
        has_some = last > begin.seq
        return VerificationResult(
            space=self._header.space,
            after=self._header.after,
            begins=begin == genesis_link(self._header.space),
            entries=last - begin.seq,
            first=self._point(begin.seq + 1) if has_some else None,
            last=self._point(last) if has_some else None,
            broken=broken,
            checkpoints=self._witnesses.summary(is_done=broken is None),
        )

    def _point(self, seq: int) -> EntryTime:
        return entry_time((self._first, self._latest, self._agreed), seq)

    def _entry(self, written: bytes, line: ExportLine) -> BrokenEntry | None:
        before = self._lines[-1][1] if self._lines else None
        if before is not None and before.seq is not None:
            following = ((before.seq + 1, 0), (before.seq, before.n + 1))
            if (line.seq, line.n) not in following:
                raise ValueError(f"it says that it is entry {line.seq}")
        self._lines.append((written, line))
        self._lines_bytes += len(written)
        if line.record is None:
            if self._lines_bytes > _LINE_BYTES_MAX:
                raise ValueError("the record has no end")
            return None
        lines, self._lines, self._lines_bytes = self._lines, [], 0
        row = row_of([one for _, one in lines])
        broken = self._following.take(row)
        if broken is not None:
            return BrokenEntry(*broken)
        self._first = self._first or row
        self._latest = row
        expected = lines_of(row)
        if len(expected) != len(lines):
            raise ValueError(f"the record has {len(expected)} lines, not {len(lines)}")
        for (text, _), right in zip(lines, expected, strict=True):
            wrong = differences(text, encode_line(right))
            if wrong:
                why = f"its {', '.join(wrong)} is not what it holds"
                return BrokenEntry(right.seq, f"entry {right.seq} is not what was written: {why}")
        self.row = row
        return None

    def _checkpoint(self, written: bytes, checkpoint: Checkpoint) -> BrokenEntry | None:
        end = self._following.end
        if differences(written, encode_line(CheckpointLine(checkpoint))):
            return BrokenEntry(None, f"line {self._number} is not a checkpoint as it was written")
        if checkpoint.seq != end.seq:
            why = f"line {self._number}, a checkpoint of entry {checkpoint.seq}, stands after entry {end.seq}"
            return BrokenEntry(None, why)
        self._digest.add(checkpoint)
        if not self._witnesses.believes(checkpoint):
            return None
        broken = self._following.hear(checkpoint_claim(checkpoint))
        if broken is not None:
            return BrokenEntry(*broken)
        self._witnesses.agree(checkpoint)
        self._agreed = self._latest
        return None

    def _last(self, written: bytes) -> BrokenEntry | None:
        end = self._following.end
        expected = self._digest.last_line(end, end.seq - self.after.seq)
        wrong = differences(written, encode_line(expected))
        if "until" in wrong or "entries" in wrong:
            return BrokenEntry(
                end.seq + 1, f"entry {end.seq + 1} is missing: the last line says where it ends"
            )
        if wrong:
            return BrokenEntry(None, "the first line, the last, or a checkpoint is not what was written")
        self._is_whole = True
        return None
