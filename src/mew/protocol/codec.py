"""Bytes to envelopes and back: the only JSON calls in mew.

What was checked is what everyone reads: the bytes received are the bytes sent on, so a message that two readers
could understand differently (a key given twice, bad UTF-8, nesting a parser may give up on) is malformed.
"""

import json
import re
from collections import Counter
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
]

NESTING_MAX: Final = 64

Payload = TypeVar("Payload")


def decode(received: bytes) -> Envelope:
    """Read one envelope; its payload stays raw.

    Raises:
        ProtocolError: not one well-formed MEW v0.4 envelope, with what is wrong and where.
    """
    _check_text(received)
    try:
        envelope = _envelopes.decode(received)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProtocolError(_readable(error)) from None
    if envelope.protocol != PROTOCOL:
        raise ProtocolError(
            f"this gateway speaks {PROTOCOL!r}, the envelope says {envelope.protocol[:64]!r}",
            Refusal.WRONG_VERSION,
        )
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
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProtocolError(_readable(error)) from None
    if _encoder.encode(value) == received:  # canonical bytes name no key twice
        return value
    return json.loads(received, object_pairs_hook=_object)


def encode_json(value: Any) -> bytes:
    return _encoder.encode(value)


def decode_payload(payload: Raw, shape: type[Payload]) -> Payload:
    """Read a payload that the gateway itself must understand.

    Raises:
        ProtocolError: `invalid_payload`, with the field that is wrong; also when any key occurs twice.
    """
    raw = bytes(payload) or b"{}"
    try:
        if _repeats(decode_json(raw)):
            raise ProtocolError("payload: a key occurs twice", Refusal.INVALID_PAYLOAD)
        return msgspec.json.decode(raw, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProtocolError(f"payload: {_readable(error)}", Refusal.INVALID_PAYLOAD) from None


def envelope_id_in(received: bytes) -> EnvelopeId | None:
    """The id of an envelope that does not decode, so that its refusal can name it; None where there is none."""
    try:
        found = msgspec.json.decode(received, type=_OnlyId).id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return EnvelopeId(found) if found is not UNSET and 0 < len(found) <= 256 else None


class _OnlyId(msgspec.Struct):
    id: str | msgspec.UnsetType = UNSET


_envelopes = msgspec.json.Decoder(Envelope)
_encoder = msgspec.json.Encoder()
_OPEN_BRACE: Final = ord("{")
_STRING: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_NOT_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_AS_SQUARE: Final = bytes.maketrans(b"{}", b"[]")


def _check_text(received: bytes) -> None:
    if not received.isascii():
        try:
            received.decode()
        except UnicodeDecodeError as error:
            raise ProtocolError(f"invalid UTF-8 at byte {error.start}") from None
    if received.count(b"{") + received.count(b"[") > NESTING_MAX and _nests_deeper(received, NESTING_MAX):
        raise ProtocolError(f"nested deeper than {NESTING_MAX} levels")


def _nests_deeper(received: bytes, levels: int) -> bool:
    """Whether brackets nest deeper: strings dropped, then the innermost pairs taken away level by level."""
    brackets = _STRING.sub(b"", received).translate(_AS_SQUARE, _NOT_BRACKETS)
    for _ in range(levels):
        brackets = brackets.replace(b"[]", b"")
    return bool(brackets)


def _quotes_expected(envelope: Envelope, payload: bytes) -> int:
    """How many quotes the message has if every field occurs once, none is unknown and none escapes a quote.

    A field given twice adds at least two, so an equal count proves that there is none, at the price of two counts.
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
    fields = json.loads(received, object_pairs_hook=_object, parse_int=str, parse_float=str)
    if isinstance(fields, Repeated):
        raise ProtocolError(f"field {min(fields.repeated)[:64]!r} occurs twice")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) == len(pairs):
        return fields
    times = Counter(name for name, _ in pairs)
    return Repeated(pairs, (name for name, count in times.items() if count > 1))


def _repeats(value: Any) -> bool:
    if isinstance(value, dict):
        return isinstance(value, Repeated) or any(map(_repeats, value.values()))
    return isinstance(value, list) and any(map(_repeats, value))


def _readable(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return f"nested deeper than {NESTING_MAX} levels"
    return str(error)
