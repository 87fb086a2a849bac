"""The lines of an export: entries that people and programs can read, with all that proves them.

Each envelope and each other event has a line, with what can be read in it as fields. The bytes of an envelope are there
as text, exactly as they are kept; the last line of a record has what else the record holds, and its hash. So whoever
checks it needs nothing else, and no tool that writes the JSON anew does harm. What is here belongs to format 2 and
cannot change: the lines are made again from what they hold, to be compared.
"""

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Raw, Struct

from mew.audit.record.facts import REFUSED_LATE
from mew.audit.record.subjects import mcp_call_in
from mew.journal.record import (
    ChainLink,
    RecordHeader,
    RecordRow,
    from_microseconds,
    join_record,
    split_record,
    to_microseconds,
)

from .checkpoints import Checkpoint
from .verification_result import ChainPosition

__all__ = [
    "FORMAT",
    "CheckpointLine",
    "EntryLine",
    "ExportDigest",
    "ExportHeader",
    "ExportLine",
    "differences",
    "encode_line",
    "lines_of",
    "rfc3339",
    "row_of",
]

FORMAT: Final = 2
MADE: Final = "Made"
"""The type of a line with an envelope that the gateway made."""
_CALLS: Final = frozenset({"mcp/request", "mcp/proposal"})
# JSON may hold these as they are, and a terminal would act on them: controls, and what turns or hides text.
_UNSEEN: Final = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]")


class ExportHeader(Struct, frozen=True, kw_only=True):
    """The first line: of which space, after which entry, and when and by which mew it was written."""

    mew_export: int = FORMAT
    space: str
    after: ChainPosition
    made_at: str
    mew: str


class RecordProof(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What else the record holds whose last line this is, and its hash."""

    event: str
    audiences: str = ""
    judged_at: int = 0
    flags: int = 0
    hash: str


class EntryLine(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """An envelope or another event. `n`: as many envelopes of the gateway's, of the same entry, with this one."""

    seq: int
    n: int = 0
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
    envelope: str = ""
    record: RecordProof | None = None


class CheckpointLine(Struct, frozen=True):
    """Stands right behind the entry it is about."""

    checkpoint: Checkpoint


class ExportTrailer(Struct, frozen=True):
    """That nothing is missing at the end. The digest is over what no entry proves."""

    until: ChainPosition
    entries: int
    digest: str


class ExportLine(Struct, frozen=True, gc=False):
    """Any line but the first, as far as it must be understood to be checked."""

    seq: Annotated[int, Meta(ge=0)] | None = None
    n: int = 0
    at: str = ""
    envelope: str = ""
    record: RecordProof | None = None
    checkpoint: Checkpoint | None = None
    until: ChainPosition | None = None
    entries: int = 0
    digest: str = ""


class ExportDigest:
    """Over the first line, the checkpoints, and where it ends: in that order, as we write them."""

    def __init__(self, header: ExportHeader) -> None:
        self._hash = sha256(b"mew/export/2\n" + encode_line(header))

    def add(self, checkpoint: Checkpoint) -> None:
        self._hash.update(encode_line(CheckpointLine(checkpoint)))

    def last_line(self, end: ChainLink, entries: int) -> ExportTrailer:
        whole = self._hash.copy()
        whole.update(f"{end.seq}\n{end.hash.hex()}\n{entries}".encode())
        return ExportTrailer(ChainPosition(end.seq, end.hash.hex()), entries, whole.hexdigest())


class _Event(Struct, gc=False):
    type: str
    who: str = ""
    connection: str | None = None
    envelope_id: str = ""
    kind: str = ""
    refusal: str = ""
    connections: tuple[str | None, ...] = ()
    origins: tuple[int, ...] = ()
    refused: tuple[int, ...] = ()


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


def lines_of(row: RecordRow) -> list[EntryLine]:
    """What there is to be read in a record, a line for each envelope or other event.

    Raises:
        ValueError: it is no record.
    """
    parts = split_record(row.body)
    head = parts.head
    try:
        event = _events.decode(parts.event)
        at = rfc3339(from_microseconds(head.at))
        proof = RecordProof(
            event=parts.event.decode(),
            audiences=parts.audiences.decode(),
            judged_at=head.judged_at,
            flags=head.flags,
            hash=row.hash.hex(),
        )
        own, made = parts.raws[: head.own], parts.raws[head.own :]
        lines = [_sent_line(head.seq + place, at, raw, event, place) for place, raw in enumerate(own)]
        if not own:
            lines = [_event_line(head.seq, at, event)]
        lines += [_envelope_line(head.last, at, MADE, raw, n=n) for n, raw in enumerate(made, 1)]
    except _NOT_JSON as error:
        raise ValueError(str(error)) from error
    return [*lines[:-1], msgspec.structs.replace(lines[-1], record=proof)]


def _event_line(seq: int, at: str, event: _Event) -> EntryLine:
    return EntryLine(
        seq=seq,
        at=at,
        type=event.type,
        who=event.who,
        kind=event.kind,
        id=event.envelope_id,
        connection=event.connection or "",
        refusal=event.refusal,
    )


def _sent_line(seq: int, at: str, raw: bytes, event: _Event, place: int) -> EntryLine:
    origin = event.origins[place] if place < len(event.origins) else 0
    connection = event.connections[origin] if origin < len(event.connections) else None
    refusal = REFUSED_LATE if place in event.refused else ""
    return _envelope_line(seq, at, event.type, raw, connection=connection or "", refusal=refusal)


def _envelope_line(
    seq: int, at: str, kind: str, raw: bytes, *, n: int = 0, connection: str = "", refusal: str = ""
) -> EntryLine:
    sent = _envelopes.decode(raw)
    method, name = mcp_call_in(bytes(sent.payload)) if sent.kind in _CALLS else ("", "")
    return EntryLine(
        seq=seq,
        n=n,
        at=at,
        type=kind,
        who=sent.sender,
        kind=sent.kind,
        id=sent.id,
        to=sent.to,
        correlation_id=sent.correlation_id,
        context=sent.context,
        method=method,
        name=name,
        connection=connection,
        refusal=refusal,
        envelope=raw.decode(),
    )


def row_of(lines: Sequence[ExportLine]) -> RecordRow:
    """The record as it was kept, if its lines are true; the last of them has the proof.

    Raises:
        ValueError: they cannot be those of a record.
    """
    first, proof = lines[0], lines[-1].record
    if first.seq is None or proof is None:
        raise ValueError("it has neither an entry nor a checkpoint")
    at = datetime.fromisoformat(first.at)
    if at.tzinfo is None or first.seq >> 62:
        raise ValueError("no moment, or no number")
    raws = tuple(line.envelope.encode() for line in lines if line.envelope)
    made = sum(line.n > 0 for line in lines)
    event, audiences = proof.event.encode(), proof.audiences.encode()
    head = RecordHeader(
        first.seq,
        to_microseconds(at),
        proof.judged_at,
        len(raws) - made,
        made,
        len(event),
        len(audiences),
        proof.flags,
    )
    return RecordRow(
        0, head.last, head.at, join_record(head, event, audiences, raws), bytes.fromhex(proof.hash)
    )


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
