"""PURE. A digest of what is asked for: by it a request is known to be what was proposed, long after both are gone.

Two that ask for the same have the same one: the order of keys, white space and how a number is written do not matter.
"""

import re
from hashlib import blake2b
from typing import Any, Final

import msgspec

from mew.protocol.json import NOT_JSON, delimiters

__all__ = ["digest_of"]

_BYTES: Final = 16
_FRACTION: Final = re.compile(rb"[0-9](?:\.[0-9]|[eE])")
_encoder: Final = msgspec.json.Encoder(order="sorted")


def digest_of(method: str, params: bytes) -> str:
    """Of a method and the JSON of its params; none are as good as empty ones."""
    digest = blake2b(_encoder.encode(method), digest_size=_BYTES)
    digest.update(_canonical(params or b"{}"))
    return digest.hexdigest()


def _canonical(params: bytes) -> bytes:
    try:
        value = msgspec.json.decode(params)
    except NOT_JSON:
        return params
    if _FRACTION.search(params):
        value = _plain(value)
    written = _encoder.encode(value)
    # Where a key occurs twice, what is asked for depends on who reads it: then it is like nothing but itself.
    return written if delimiters(written) == delimiters(params) else b"?" + params


def _plain(value: Any) -> Any:
    match value:
        case float():
            return int(value) if value.is_integer() else value
        case dict():
            return {name: _plain(item) for name, item in value.items()}
        case list():
            return [_plain(item) for item in value]
        case _:
            return value
