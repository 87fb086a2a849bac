"""PURE. The digest of an MCP call, by which a request is matched to its proposal even after both were trimmed.

Two that ask for the same have the same one: the order of keys, white space and how a number is written do not matter.
"""

import re
from hashlib import blake2b
from typing import Any, Final

import msgspec

from mew.protocol.json import NOT_JSON, delimiters

__all__ = ["AMBIGUOUS", "payload_digest"]

AMBIGUOUS: Final = "?"
_BYTES: Final = 16
_FRACTION: Final = re.compile(rb"[0-9](?:\.[0-9]|[eE])")
_encoder: Final = msgspec.json.Encoder(order="sorted")


def payload_digest(payload: bytes) -> str:
    """Of the method and params in a payload; no params are as good as empty ones. Empty where no method is in it.

    Where a key occurs twice, what is asked for depends on who reads it: then it is like nothing but itself, byte for
    byte, and its digest begins with `AMBIGUOUS`. So it is where a number is too long for most.
    """
    try:
        asked = msgspec.json.decode(payload)
    except NOT_JSON:
        return _digest(payload, mark=AMBIGUOUS)
    if not isinstance(asked, dict) or not isinstance(asked.get("method"), str):
        return ""
    if delimiters(_encoder.encode(asked)) != delimiters(payload):
        return _digest(payload, mark=AMBIGUOUS)
    params = asked.get("params", {})
    if _FRACTION.search(payload):
        params = _plain(params)
    return _digest(_encoder.encode([asked["method"], params]))


def _digest(written: bytes, mark: str = "") -> str:
    return mark + blake2b(written, digest_size=_BYTES).hexdigest()


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
