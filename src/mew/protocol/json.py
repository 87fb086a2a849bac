"""JSON values and payloads: the only JSON calls in mew beside those of the codec.

A payload that two readers could understand differently, because a key occurs twice in it, is no payload.
"""

import json
import re
from collections import Counter
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw

from .capability.values import Repeated
from .errors import ProtocolError, Refusal

__all__ = [
    "NESTING_MAX",
    "NOT_JSON",
    "TOO_DEEP",
    "decode_json",
    "decode_payload",
    "delimiters",
    "encode_json",
    "readable",
]

NESTING_MAX: Final = 64
NOT_JSON: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
TOO_DEEP: Final = f"nested deeper than {NESTING_MAX} levels"

Payload = TypeVar("Payload")


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
    except NOT_JSON as error:
        raise ProtocolError(readable(error)) from None


def encode_json(value: Any) -> bytes:
    return _encoder.encode(value)


def decode_payload(payload: Raw, shape: type[Payload]) -> Payload:
    """Read a payload that the gateway itself must understand.

    Raises:
        ProtocolError: `invalid_payload`, with the field that is wrong; also when any key occurs twice.
    """
    raw = bytes(payload) or b"{}"
    try:
        read = msgspec.json.decode(raw, type=shape)
        if _encoder.encode(read) != raw and _repeats(raw, msgspec.json.decode(raw)):
            raise ProtocolError("payload: a key occurs twice", Refusal.INVALID_PAYLOAD)
        return read
    except NOT_JSON as error:
        raise ProtocolError(f"payload: {readable(error)}", Refusal.INVALID_PAYLOAD) from None


def delimiters(text: bytes) -> int:
    """How many quotes of a valid JSON text open or close a string."""
    if b"\\" in text:
        text = text.replace(rb"\\", b"").replace(rb"\"", b"")
    return text.count(b'"')


def readable(error: Exception) -> str:
    """What is wrong with a text that does not decode, and where."""
    if isinstance(error, RecursionError):
        return TOO_DEEP
    if isinstance(error, UnicodeDecodeError):
        return "invalid UTF-8"
    wrong = _WRONG_FIELD.fullmatch(str(error))
    return f"field {wrong[2]!r}: {wrong[1][0].lower()}{wrong[1][1:]}" if wrong else str(error)


_encoder = msgspec.json.Encoder()
_WRONG_FIELD: Final = re.compile(r"(.+) - at `\$\.(.+)`")


def _repeats(text: bytes, value: Any) -> bool:
    """Whether an object in a JSON text names a key twice: then the value read from it holds fewer strings."""
    written = _encoder.encode(value)
    return written != text and delimiters(written) != delimiters(text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) == len(pairs):
        return fields
    times = Counter(name for name, _ in pairs)
    return Repeated(pairs, (name for name, count in times.items() if count > 1))
