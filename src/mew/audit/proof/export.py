"""Export a range of entries: as JSON Lines with proof, or as CSV without.

Entries are checked as they are read: nothing is written that would not be found sound elsewhere.
"""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any, Final

from mew.journal.files.database import Damaged
from mew.journal.port import JournalUnavailable
from mew.journal.reader import JournalReader
from mew.journal.record import ChainBreak, ChainLink, RecordRow, from_microseconds, read_header

from .checkpoints import Checkpoint
from .cross_checks import ChainFollower, checkpoint_claim
from .export_lines import (
    CheckpointLine,
    EntryLine,
    ExportDigest,
    ExportHeader,
    encode_line,
    lines_of,
    rfc3339,
)
from .verification_result import ChainPosition

__all__ = ["ExportRange", "RecordSelection", "as_csv", "as_json_lines", "select"]

COLUMNS: Final = tuple(name for name in EntryLine.__struct_fields__ if name not in ("envelope", "record"))
# With one of these in front a spreadsheet would calculate.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "\0", "＝", "＋", "－", "＠")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRange:
    """Which entries: by number, both ends included, and by time, from `since` on and before `until`."""

    first: int | None = None
    last: int | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class RecordSelection:
    """Records that follow each other, read as they are asked for, after a place in the chain of a space."""

    space: str
    after: ChainLink
    rows: Iterator[RecordRow]


def select(reader: JournalReader, wanted: ExportRange) -> RecordSelection:
    """From the record with the first entry that is wanted to the one before the first, after that, that has none.

    Raises:
        JournalUnavailable: there is none.
        Damaged: what comes before them is not sound. Reading them raises it too.
    """
    begin, end = reader.begin, reader.last
    kept = f"it has those from {begin.seq + 1} to {end}" if end > begin.seq else "it has none"
    first = begin.seq + 1 if wanted.first is None else wanted.first
    last = end if wanted.last is None else wanted.last
    if not begin.seq < first <= end or last < first:
        raise JournalUnavailable(f"{reader.path}: there are no entries from {first} to {last}: {kept}")
    after = begin if first == begin.seq + 1 else _place_before(reader, first)
    rows = _sound(reader, after, min(last, end))
    for row in rows:
        at = _at(row)
        if wanted.since is None or at >= wanted.since:
            if wanted.until is not None and at >= wanted.until:
                break
            return RecordSelection(reader.space, after, _until(chain((row,), rows), wanted.until))
        after = ChainLink(row.last, row.hash)
    raise JournalUnavailable(f"{reader.path}: there are no entries of that time among those asked for")


def as_json_lines(
    selection: RecordSelection, checkpoints: Sequence[Checkpoint], made_at: datetime, version: str
) -> Iterator[bytes]:
    """Line by line: a header, the entries with the checkpoints of these places between them, and the end.

    Raises:
        Damaged: an entry is not sound, or not what a checkpoint says.
    """
    space, after = selection.space, selection.after
    place = ChainPosition(after.seq, after.hash.hex())
    header = ExportHeader(space=space, after=place, made_at=rfc3339(made_at), mew=version)
    digest = ExportDigest(header)
    yield encode_line(header)
    following = ChainFollower(after)
    due = sorted((one for one in checkpoints if one.seq >= after.seq), key=lambda one: one.seq, reverse=True)
    yield from _signed(following, due, digest)
    for row in selection.rows:
        following.end = ChainLink(row.last, row.hash)
        yield from map(encode_line, _readable(row))
        if due and due[-1].seq <= row.last:
            yield from _signed(following, due, digest)
    yield encode_line(digest.last_line(following.end, following.end.seq - after.seq))


def as_csv(selection: RecordSelection) -> Iterator[bytes]:
    """As a table (RFC 4180), a row each; what a spreadsheet would take for a formula has an apostrophe in front.

    Raises:
        Damaged: an entry is not sound.
    """
    writer = csv.writer(_Echo())
    yield _csv(writer, COLUMNS)
    for row in selection.rows:
        for line in _readable(row):
            yield _csv(writer, [_cell(getattr(line, column)) for column in COLUMNS])


class _Echo:
    """A file that hands back what is written to it."""

    def write(self, text: str) -> str:
        return text


def _csv(writer: Any, cells: Sequence[str]) -> bytes:
    text: str = writer.writerow(cells)
    return text.encode()


def _cell(value: object) -> str:
    if not value:
        return ""
    text = " ".join(value) if isinstance(value, tuple) else str(value)
    quoted = f"'{text}" if text.startswith(_FORMULA) else text
    return quoted if quoted.isprintable() else "".join(map(_printable, quoted))


def _printable(char: str) -> str:
    if char.isprintable():
        return char
    return f"\\u{ord(char):04x}" if ord(char) <= 0xFFFF else f"\\U{ord(char):08x}"


def _sound(reader: JournalReader, after: ChainLink, last: int) -> Iterator[RecordRow]:
    begin, following = reader.begin, ChainFollower(after)
    for row in reader.rows(after.seq):
        broken = following.take(row)
        if broken is not None:
            if reader.begin != begin:
                raise JournalUnavailable(
                    f"{reader.path}: its first entries were dropped meanwhile; try again"
                )
            raise _damaged(broken)
        yield row
        if row.last >= last:
            return
    if following.end.seq < last:
        raise _damaged(ChainBreak(following.end.seq + 1, f"entry {following.end.seq + 1} is missing"))


def _damaged(broken: ChainBreak) -> Damaged:
    return Damaged(f"{broken.why}; 'mew audit verify' says what is sound, up to there it can be exported")


def _until(rows: Iterator[RecordRow], until: datetime | None) -> Iterator[RecordRow]:
    for row in rows:
        if until is not None and _at(row) >= until:
            return
        yield row


def _signed(following: ChainFollower, due: list[Checkpoint], digest: ExportDigest) -> Iterator[bytes]:
    """Those about the place where we are, and any that a batch has passed over: those are wrong."""
    while due and due[-1].seq <= following.end.seq:
        checkpoint = due.pop()
        broken = following.hear(checkpoint_claim(checkpoint))
        if broken is not None:
            raise _damaged(broken)
        digest.add(checkpoint)
        yield encode_line(CheckpointLine(checkpoint))


def _place_before(reader: JournalReader, seq: int) -> ChainLink:
    """The place before the record that holds this entry."""
    row = reader.row(seq)
    if row is None:
        raise Damaged(f"entry {seq} is missing; 'mew audit verify' says more")
    before = read_header(row.body).seq - 1
    if before == reader.begin.seq:
        return reader.begin
    earlier = reader.row(before)
    if earlier is None:
        raise Damaged(f"entry {before} is missing; 'mew audit verify' says more")
    return ChainLink(earlier.last, earlier.hash)


def _at(row: RecordRow) -> datetime:
    try:
        return from_microseconds(row.at)
    except ValueError as error:
        raise Damaged(f"entry {row.last} is none that this version of mew knows: {error}") from error


def _readable(row: RecordRow) -> list[EntryLine]:
    try:
        return lines_of(row)
    except ValueError as error:
        raise Damaged(f"entry {row.last} is none that this version of mew knows: {error}") from error
