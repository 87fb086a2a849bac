"""A range of a journal's entries for others: as JSON Lines with their proof, or as a table without.

Entries are checked as they are read: nothing is written that would not be found sound elsewhere.
"""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any, Final

from mew.log.base import LogUnavailable
from mew.log.database import Damaged
from mew.log.reading import JournalReader
from mew.log.record import Break, Link, Row, take_apart

from .checkpoints import Checkpoint
from .lines import CheckpointLine, Digest, EntryLine, Header, encode_line, entry_line, rfc3339
from .verdict import Place
from .witnesses import Following, claim_of

__all__ = ["Selection", "Wanted", "as_csv", "as_json_lines", "select"]

COLUMNS: Final = tuple(
    name for name in EntryLine.__struct_fields__ if name not in ("event", "envelope", "hash")
)
# With one of these in front a spreadsheet would calculate.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "\0", "＝", "＋", "－", "＠")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which entries: by number, both ends included, and by time, from `since` on and before `until`."""

    first: int | None = None
    last: int | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Selection:
    """Entries that follow each other, read as they are asked for, after a place in the chain of a space."""

    space: str
    after: Link
    rows: Iterator[Row]


def select(reader: JournalReader, wanted: Wanted) -> Selection:
    """From the first entry that is wanted to the one before the first, after that, that is not.

    Raises:
        LogUnavailable: there is none.
        Damaged: what comes before them is not sound. Reading them raises it too.
    """
    begin, end = reader.begin, reader.last
    kept = f"it has those from {begin.seq + 1} to {end}" if end > begin.seq else "it has none"
    first = begin.seq + 1 if wanted.first is None else wanted.first
    last = end if wanted.last is None else wanted.last
    if not begin.seq < first <= end or last < first:
        raise LogUnavailable(f"{reader.path}: there are no entries from {first} to {last}: {kept}")
    after = begin if first == begin.seq + 1 else _place(reader, first - 1)
    rows = _sound(reader, after, min(last, end))
    for row in rows:
        if wanted.since is None or _at(row) >= wanted.since:
            if wanted.until is not None and _at(row) >= wanted.until:
                break
            return Selection(reader.space, after, _until(chain((row,), rows), wanted.until))
        after = Link(row.seq, row.hash)
    raise LogUnavailable(f"{reader.path}: there are no entries of that time among those asked for")


def as_json_lines(
    selection: Selection, checkpoints: Sequence[Checkpoint], made_at: datetime, version: str
) -> Iterator[bytes]:
    """Line by line: a header, the entries with the checkpoints of these places between them, and the end.

    Raises:
        Damaged: an entry is not sound, or not what a checkpoint says.
    """
    space, after = selection.space, selection.after
    place = Place(after.seq, after.hash.hex())
    header = Header(space=space, after=place, made_at=rfc3339(made_at), mew=version)
    digest = Digest(header)
    yield encode_line(header)
    following = Following(after)
    due = sorted((one for one in checkpoints if one.seq >= after.seq), key=lambda one: one.seq, reverse=True)
    yield from _signed(following, due, digest)
    for row in selection.rows:
        following.end = Link(row.seq, row.hash)
        yield encode_line(_readable(row))
        if due and due[-1].seq == row.seq:
            yield from _signed(following, due, digest)
    yield encode_line(digest.last_line(following.end, following.end.seq - after.seq))


def as_csv(selection: Selection) -> Iterator[bytes]:
    """As a table (RFC 4180), a row each; what a spreadsheet would take for a formula has an apostrophe in front.

    Raises:
        Damaged: an entry is not sound.
    """
    writer = csv.writer(_Echo())
    yield _csv(writer, COLUMNS)
    for row in selection.rows:
        line = _readable(row)
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


def _sound(reader: JournalReader, after: Link, last: int) -> Iterator[Row]:
    begin, following = reader.begin, Following(after)
    for row in reader.rows(after.seq):
        broken = following.take(row)
        if broken is not None:
            if reader.begin != begin:
                raise LogUnavailable(f"{reader.path}: its first entries were dropped meanwhile; try again")
            raise _damaged(broken)
        yield row
        if row.seq >= last:
            return
    if following.end.seq < last:
        raise _damaged(Break(following.end.seq + 1, f"entry {following.end.seq + 1} is missing"))


def _damaged(broken: Break) -> Damaged:
    return Damaged(f"{broken.why}; 'mew audit verify' says what is sound, up to there it can be exported")


def _until(rows: Iterator[Row], until: datetime | None) -> Iterator[Row]:
    for row in rows:
        if until is not None and _at(row) >= until:
            return
        yield row


def _signed(following: Following, due: list[Checkpoint], digest: Digest) -> Iterator[bytes]:
    """Those about the place where we are."""
    while due and due[-1].seq == following.end.seq:
        checkpoint = due.pop()
        broken = following.hear(claim_of(checkpoint))
        if broken is not None:
            raise _damaged(broken)
        digest.add(checkpoint)
        yield encode_line(CheckpointLine(checkpoint))


def _place(reader: JournalReader, seq: int) -> Link:
    row = reader.row(seq)
    if row is None:
        raise Damaged(f"entry {seq} is missing; 'mew audit verify' says more")
    return Link(row.seq, row.hash)


def _at(row: Row) -> datetime:
    try:
        return take_apart(row.content).at
    except ValueError as error:
        raise Damaged(f"entry {row.seq} is none that this version of mew knows: {error}") from error


def _readable(row: Row) -> EntryLine:
    try:
        return entry_line(row)
    except ValueError as error:
        raise Damaged(f"entry {row.seq} is none that this version of mew knows: {error}") from error
