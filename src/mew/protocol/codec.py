"""Bytes to envelopes and back.

What was checked is what everyone reads: the bytes received are the bytes sent on, so a message that two readers
could understand differently (a key given twice, bad UTF-8, nesting a parser may give up on) is malformed.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec
from msgspec import UNSET, Raw

from mew.speedups import compiled_if_possible

from .envelope import PROTOCOL, Envelope, EnvelopeId
from .errors import ProtocolError, Refusal
from .json import NESTING_MAX, NOT_JSON, TOO_DEEP, delimiters, readable

__all__ = ["decode", "encode", "envelope_id_in", "fields_in", "is_plain", "repeats_a_field"]


def decode(received: bytes) -> Envelope:
    """Read one envelope; its payload stays raw.

    Raises:
        ProtocolError: not one well-formed MEW v0.4 envelope, with what is wrong and where.
    """
    is_sure = is_plain(received)
    try:
        if not is_sure and not received.isascii():
            received.decode()  # msgspec does not look inside the strings it skips
        envelope = _envelopes.decode(received)
    except msgspec.ValidationError as error:
        envelope = _in_a_leap_second(received, error)
    except NOT_JSON as error:
        raise ProtocolError(readable(error)) from None
    if envelope.protocol != PROTOCOL:
        raise ProtocolError(
            f"this gateway speaks {PROTOCOL!r}, the envelope says {envelope.protocol[:64]!r}",
            Refusal.WRONG_VERSION,
        )
    if not is_sure:
        _look_closely(received, envelope)
    return envelope


@compiled_if_possible
def is_plain(received: bytes, /) -> bool:
    """Whether this is an envelope that can be read in one way only; False also if that takes a closer look."""
    return False


def encode(envelope: Envelope) -> bytes:
    return _encoder.encode(envelope)


def envelope_id_in(received: bytes) -> EnvelopeId | None:
    """The id of an envelope that does not decode, so that its refusal can name it; None where there is none.

    Of a large one only the beginning is searched: to refuse it must not cost what accepting it would.
    """
    if len(received) > _LARGE_BYTES:
        near = _ID_NEAR.search(received, 0, _NEAR_BYTES)
        received = b"{" + near[0] + b"}" if near is not None else b""
    try:
        found = msgspec.json.decode(received, type=_OnlyId).id
    except NOT_JSON:
        return None
    return EnvelopeId(found) if found is not UNSET and 0 < len(found) <= 256 else None


def fields_in(received: bytes) -> dict[str, Raw]:
    """The fields of a JSON object, their values left raw and unchecked; of one given twice, the last.

    Raises:
        ProtocolError: not a JSON object.
    """
    try:
        return msgspec.json.decode(received, type=dict[str, Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProtocolError(readable(error)) from None


def repeats_a_field(received: bytes, fields: Mapping[str, Raw]) -> bool:
    """A name that occurs twice is once among the fields, so there are fewer strings in them than in the message."""
    return delimiters(received) != sum(2 + delimiters(bytes(value)) for value in fields.values())


class _OnlyId(msgspec.Struct):
    id: str | msgspec.UnsetType = UNSET


_envelopes = msgspec.json.Decoder(Envelope)
_fields = msgspec.json.Decoder(dict[str, Raw])
_encoder = msgspec.json.Encoder()
_LARGE_BYTES: Final = 16_384
_NEAR_BYTES: Final = 1_024
_ID_NEAR: Final = re.compile(rb'"id"\s*:\s*"[^"\\]*(?:\\.[^"\\]*)*"')
_OPEN_BRACE: Final = ord("{")
_LEAP_SECOND: Final = re.compile(rb'("[^"]*:[0-9]{2}):60(?:\.[0-9]+)?([^0-9"][^"]*")')
_DAY: Final = timedelta(days=1)
_LAST_MINUTE: Final = timedelta(hours=23, minutes=59)
_STRING: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_NOT_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_AS_SQUARE: Final = bytes.maketrans(b"{}", b"[]")


def _in_a_leap_second(received: bytes, error: msgspec.ValidationError) -> Envelope:
    """Read 23:59:60Z, which RFC 3339 has and msgspec has not, as the second before it.

    Raises:
        ProtocolError: for the reason in `error`, if that is not what was wrong.
    """
    try:
        fields = _fields.decode(received)
        fields["ts"] = Raw(_LEAP_SECOND.sub(rb"\1:59\2", bytes(fields.get("ts", b"null"))))
        envelope = _envelopes.decode(_encoder.encode(fields))
    except NOT_JSON:
        raise ProtocolError(readable(error)) from None
    assert isinstance(envelope.ts, datetime), f"{error}, but ts became {fields['ts']!r}"
    at, offset = envelope.ts, envelope.ts.utcoffset()
    if offset is None or (timedelta(hours=at.hour, minutes=at.minute) - offset) % _DAY != _LAST_MINUTE:
        raise ProtocolError(readable(error))
    return envelope


def _look_closely(received: bytes, envelope: Envelope) -> None:
    """What msgspec lets pass, though two readers could understand it differently.

    Raises:
        ProtocolError: it is such.
    """
    if received.count(b"{") + received.count(b"[") > NESTING_MAX:
        _check_nesting(received)
    if envelope.ts is not UNSET and (envelope.ts.tzinfo is not UTC or b'0000"' in received):
        _check_offset(received)
    payload = bytes(envelope.payload)
    if payload and payload[0] != _OPEN_BRACE:
        raise ProtocolError("field 'payload': expected an object")
    if received.count(b'"') != _quotes_expected(envelope, payload):
        _check_unique_fields(received)


def _check_offset(received: bytes) -> None:
    """RFC 3339 has a colon in `+05:30`, and msgspec does without."""
    written: str = msgspec.json.decode(_fields.decode(received)["ts"])
    if written[-1] not in "Zz" and written[-3] != ":":
        raise ProtocolError(f"field 'ts': expected an offset like '+05:30', ends in {written[-6:]!r}")


def _check_nesting(received: bytes) -> None:
    """Drop the strings of a valid JSON text, then take the innermost pairs of brackets away level by level."""
    brackets = _STRING.sub(b"", received).translate(_AS_SQUARE, _NOT_BRACKETS)
    for _ in range(NESTING_MAX):
        brackets = brackets.replace(b"[]", b"")
    if brackets:
        raise ProtocolError(TOO_DEEP)


def _quotes_expected(envelope: Envelope, payload: bytes) -> int:
    """How many quotes the message has if every field occurs once, none is unknown and none escapes a quote.

    Whatever is counted here was in the message, so it has at least as many; a second occurrence of a field adds the
    two around its name. An equal count therefore proves that there is none, at the price of two counts.
    """
    strings = 8  # `protocol`, `id`, `from` and `kind`, each a key and a value
    if envelope.ts is not UNSET:
        strings += 2
    if envelope.to:
        strings += 1 + len(envelope.to)
    if envelope.correlation_id:
        strings += 1 + len(envelope.correlation_id)
    if envelope.context is not UNSET:
        strings += 2
    if payload:
        strings += 1
    return 2 * strings + payload.count(b'"')


def _check_unique_fields(received: bytes) -> None:
    if repeats_a_field(received, _fields.decode(received)):
        raise ProtocolError("a field of the envelope occurs twice")
