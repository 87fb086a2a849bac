"""Bytes to envelopes and back: the only JSON calls in mew.

What was checked is what everyone reads: the bytes received are the bytes sent on, so a message that two readers
could understand differently (a key given twice, bad UTF-8, nesting a parser may give up on) is malformed.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

import msgspec
from msgspec import UNSET, Raw

from .capability.values import Repeated
from .envelope import PROTOCOL, Envelope, EnvelopeId
from .errors import ProtocolError, Refusal

__all__ = [
    "NESTING_MAX",
    "decode",
    "decode_json",
    "decode_payload",
    "encode",
    "encode_json",
    "envelope_id_in",
    "fields_in",
    "repeats_a_field",
]

NESTING_MAX: Final = 64

Payload = TypeVar("Payload")


def decode(received: bytes) -> Envelope:
    """Read one envelope; its payload stays raw.

    Raises:
        ProtocolError: not one well-formed MEW v0.4 envelope, with what is wrong and where.
    """
    try:
        if not received.isascii():
            received.decode()  # msgspec does not look inside the strings it skips
        envelope = _envelopes.decode(received)
    except msgspec.ValidationError as error:
        envelope = _in_a_leap_second(received, error)
    except _NOT_JSON as error:
        raise ProtocolError(_readable(error)) from None
    if envelope.protocol != PROTOCOL:
        raise ProtocolError(
            f"this gateway speaks {PROTOCOL!r}, the envelope says {envelope.protocol[:64]!r}",
            Refusal.WRONG_VERSION,
        )
    if received.count(b"{") + received.count(b"[") > NESTING_MAX:
        _check_nesting(received)
    payload = bytes(envelope.payload)
    if payload and payload[0] != _OPEN_BRACE:
        raise ProtocolError("field 'payload': expected an object")
    if received.count(b'"') != _quotes_expected(envelope, payload):
        _check_unique_fields(received)
    return envelope


def encode(envelope: Envelope) -> bytes:
    return _encoder.encode(envelope)


def decode_json(received: bytes) -> Any:
    """Read any JSON value; an object in which a key occurs twice becomes a `Repeated`.

    Raises:
        ProtocolError: not JSON.
    """
    try:
        value = msgspec.json.decode(received)
        if not _repeats(received, value):
            return value
        return json.loads(received, object_pairs_hook=_object)
    except _NOT_JSON as error:
        raise ProtocolError(_readable(error)) from None


def encode_json(value: Any) -> bytes:
    return _encoder.encode(value)


def decode_payload(payload: Raw, shape: type[Payload]) -> Payload:
    """Read a payload that the gateway itself must understand.

    Raises:
        ProtocolError: `invalid_payload`, with the field that is wrong; also when any key occurs twice.
    """
    raw = bytes(payload) or b"{}"
    try:
        if _repeats(raw, msgspec.json.decode(raw)):
            raise ProtocolError("payload: a key occurs twice", Refusal.INVALID_PAYLOAD)
        return msgspec.json.decode(raw, type=shape)
    except _NOT_JSON as error:
        raise ProtocolError(f"payload: {_readable(error)}", Refusal.INVALID_PAYLOAD) from None


def envelope_id_in(received: bytes) -> EnvelopeId | None:
    """The id of an envelope that does not decode, so that its refusal can name it; None where there is none."""
    try:
        found = msgspec.json.decode(received, type=_OnlyId).id
    except _NOT_JSON:
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
        raise ProtocolError(_readable(error)) from None


def repeats_a_field(received: bytes, fields: Mapping[str, Raw]) -> bool:
    """A name that occurs twice is once among the fields, so there are fewer strings in them than in the message."""
    return _delimiters(received) != sum(2 + _delimiters(bytes(value)) for value in fields.values())


class _OnlyId(msgspec.Struct):
    id: str | msgspec.UnsetType = UNSET


_envelopes = msgspec.json.Decoder(Envelope)
_fields = msgspec.json.Decoder(dict[str, Raw])
_encoder = msgspec.json.Encoder()
_NOT_JSON: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_OPEN_BRACE: Final = ord("{")
_LEAP_SECOND: Final = re.compile(rb'("[^"]*:[0-9]{2}):60(?:\.[0-9]+)?([^0-9"][^"]*")')
_DAY: Final = timedelta(days=1)
_LAST_MINUTE: Final = timedelta(hours=23, minutes=59)
_TOO_DEEP: Final = f"nested deeper than {NESTING_MAX} levels"
_STRING: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_WRONG_FIELD: Final = re.compile(r"(.+) - at `\$\.(.+)`")
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
    except _NOT_JSON:
        raise ProtocolError(_readable(error)) from None
    assert isinstance(envelope.ts, datetime), f"{error}, but ts became {fields['ts']!r}"
    at, offset = envelope.ts, envelope.ts.utcoffset()
    if offset is None or (timedelta(hours=at.hour, minutes=at.minute) - offset) % _DAY != _LAST_MINUTE:
        raise ProtocolError(_readable(error))
    return envelope


def _check_nesting(received: bytes) -> None:
    """Drop the strings of a valid JSON text, then take the innermost pairs of brackets away level by level."""
    brackets = _STRING.sub(b"", received).translate(_AS_SQUARE, _NOT_BRACKETS)
    for _ in range(NESTING_MAX):
        brackets = brackets.replace(b"[]", b"")
    if brackets:
        raise ProtocolError(_TOO_DEEP)


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


def _repeats(text: bytes, value: Any) -> bool:
    """Whether an object in a JSON text names a key twice: then the value read from it holds fewer strings."""
    written = _encoder.encode(value)
    return written != text and _delimiters(written) != _delimiters(text)


def _delimiters(text: bytes) -> int:
    """How many quotes of a valid JSON text open or close a string."""
    if b"\\" in text:
        text = text.replace(rb"\\", b"").replace(rb"\"", b"")
    return text.count(b'"')


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) == len(pairs):
        return fields
    times = Counter(name for name, _ in pairs)
    return Repeated(pairs, (name for name, count in times.items() if count > 1))


def _readable(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return _TOO_DEEP
    if isinstance(error, UnicodeDecodeError):
        return "invalid UTF-8"
    wrong = _WRONG_FIELD.fullmatch(str(error))
    return f"field {wrong[2]!r}: {wrong[1][0].lower()}{wrong[1][1:]}" if wrong else str(error)
