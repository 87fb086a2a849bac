"""The lines of an export: entries that people and programs can read, with all that proves them.

A line of an entry has its event and its envelope as texts, exactly as they are kept, and what can be read in them as
fields. So whoever checks it needs nothing else, and no tool that writes the JSON anew does harm. What is here belongs
to format 1 and cannot change: a line is made again from what it holds, to be compared.
"""

import json
import re
from datetime import UTC, datetime
from hashlib import sha256
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Raw, Struct

from mew.log.record import Link, Parts, Row, put_together, take_apart

from .calls import called
from .checkpoints import Checkpoint
from .verdict import Place

__all__ = [
    "FORMAT",
    "CheckpointLine",
    "Digest",
    "EntryLine",
    "Header",
    "Line",
    "differences",
    "encode_line",
    "entry_line",
    "rfc3339",
    "row_of",
]

FORMAT: Final = 1
_CALLS: Final = frozenset({"mcp/request", "mcp/proposal"})
# JSON may hold these as they are, and a terminal would act on them: controls, and what turns or hides text.
_UNSEEN: Final = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]")


class Header(Struct, frozen=True, kw_only=True):
    """The first line: of which space, after which entry, and when and by which mew it was written."""

    mew_export: int = FORMAT
    space: str
    after: Place
    made_at: str
    mew: str


class EntryLine(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """An entry. `event`, `envelope` and `hash` prove the rest."""

    seq: int
    at: str
    type: str
    who: str = ""
    kind: str = ""
    id: str = ""
    to: tuple[str, ...] = ()
    correlation_id: tuple[str, ...] = ()
    context: str = ""
    method: str = ""
    name: str = ""
    connection: str = ""
    refusal: str = ""
    event: str
    envelope: str = ""
    hash: str


class CheckpointLine(Struct, frozen=True):
    """Stands right behind the entry it is about."""

    checkpoint: Checkpoint


class LastLine(Struct, frozen=True):
    """That nothing is missing at the end. The digest is over what no entry proves."""

    until: Place
    entries: int
    digest: str


class Line(Struct, frozen=True, gc=False):
    """Any line but the first, as far as it must be understood to be checked."""

    seq: Annotated[int, Meta(ge=0)] | None = None
    at: str = ""
    event: str = ""
    envelope: str = ""
    hash: str = ""
    checkpoint: Checkpoint | None = None
    until: Place | None = None
    entries: int = 0
    digest: str = ""


class Digest:
    """Over the first line, the checkpoints, and where it ends: in that order, as we write them."""

    def __init__(self, header: Header) -> None:
        self._hash = sha256(b"mew/export/1\n" + encode_line(header))

    def add(self, checkpoint: Checkpoint) -> None:
        self._hash.update(encode_line(CheckpointLine(checkpoint)))

    def last_line(self, end: Link, entries: int) -> LastLine:
        whole = self._hash.copy()
        whole.update(f"{end.seq}\n{end.hash.hex()}\n{entries}".encode())
        return LastLine(Place(end.seq, end.hash.hex()), entries, whole.hexdigest())


class _Event(Struct, gc=False):
    type: str
    who: str = ""
    connection: str | None = None
    envelope_id: str = ""
    kind: str = ""
    refusal: str = ""


class _Envelope(Struct, rename={"sender": "from"}, gc=False):
    id: str
    sender: str
    kind: str
    to: tuple[str, ...] = ()
    correlation_id: tuple[str, ...] = ()
    context: str = ""
    payload: Raw = Raw()


_NOT_JSON: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_encoder: Final = msgspec.json.Encoder()
_events: Final = msgspec.json.Decoder(_Event)
_envelopes: Final = msgspec.json.Decoder(_Envelope)


def encode_line(line: object) -> bytes:
    """As we write it, with the end of the line; nothing in it makes a terminal do anything."""
    written = _encoder.encode(line)
    if not written.isascii() or b"\x7f" in written:
        written = _UNSEEN.sub(lambda char: f"\\u{ord(char[0]):04x}", written.decode()).encode()
    return written + b"\n"


def entry_line(row: Row) -> EntryLine:
    """What there is to be read in an entry.

    Raises:
        ValueError: it is no entry.
    """
    seq, at, event, envelope = take_apart(row.content)
    try:
        read = _events.decode(event)
        if envelope:
            return _sent_line(row, at, read, event.decode(), envelope)
        return EntryLine(
            seq=seq,
            at=rfc3339(at),
            type=read.type,
            who=read.who,
            kind=read.kind,
            id=read.envelope_id,
            connection=read.connection or "",
            refusal=read.refusal,
            event=event.decode(),
            hash=row.hash.hex(),
        )
    except _NOT_JSON as error:
        raise ValueError(str(error)) from error


def _sent_line(row: Row, at: datetime, event: _Event, event_text: str, envelope: bytes) -> EntryLine:
    sent = _envelopes.decode(envelope)
    method, name = called(bytes(sent.payload)) if sent.kind in _CALLS else ("", "")
    return EntryLine(
        seq=row.seq,
        at=rfc3339(at),
        type=event.type,
        who=sent.sender,
        kind=sent.kind,
        id=sent.id,
        to=sent.to,
        correlation_id=sent.correlation_id,
        context=sent.context,
        method=method,
        name=name,
        connection=event.connection or "",
        event=event_text,
        envelope=envelope.decode(),
        hash=row.hash.hex(),
    )


def row_of(line: Line) -> Row:
    """The entry as it was kept, if the line is true.

    Raises:
        ValueError: it cannot be one.
    """
    if line.seq is None or not line.event:
        raise ValueError("it has neither an entry nor a checkpoint")
    at = datetime.fromisoformat(line.at)
    if at.tzinfo is None or line.seq >> 63:
        raise ValueError("no moment, or no number")
    content = put_together(Parts(line.seq, at, line.event.encode(), line.envelope.encode()))
    return Row(line.seq, content, bytes.fromhex(line.hash))


def rfc3339(at: datetime) -> str:
    """To the microsecond, which it has."""
    return f"{at.astimezone(UTC).isoformat(timespec='microseconds')[:-6]}Z"


def differences(line: bytes, expected: bytes) -> list[str]:
    """The fields in which a line says something else than this one; how it is written does not matter.

    Raises:
        ValueError: it is not one JSON object with every key once.
    """
    if line == expected:
        return []
    found, wanted = _strictly(line), _strictly(expected)
    return [
        name
        for name in dict.fromkeys((*wanted, *found))
        if name not in found or name not in wanted or found[name] != wanted[name]
    ]


def _strictly(line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line.decode(), object_pairs_hook=_once)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(value, dict):
        raise ValueError("it is no JSON object")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a key in it occurs twice")
    return fields
