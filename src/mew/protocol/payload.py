"""PURE. The payload of an envelope, decoded as far as somebody asks."""

from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from .codec import decode
from .json import NOT_JSON, decode_json

__all__ = ["LARGE_BYTES", "Payload"]

LARGE_BYTES: Final = 16_384
"""From here on it is worth it to read the header of a payload before decoding all of it."""


class Payload:
    """The payload of the envelope in these bytes. A call decodes it whole; `header` skips most of it."""

    __slots__ = ("_envelope",)

    def __init__(self, envelope: bytes) -> None:
        self._envelope = envelope

    def __call__(self) -> Any:
        """Decode it; None if there is none.

        Raises:
            ProtocolError: a reader may not understand it.
        """
        raw = bytes(decode(self._envelope).payload)
        return decode_json(raw) if raw else None

    def header(self) -> dict[str, Any]:
        """The `method` of a JSON-RPC request, and the `name` and `uri` in its `params`, those that are texts.

        Nothing if `params` is not an object. Of a key that occurs twice it is the last.
        """
        try:
            asked = _envelopes.decode(self._envelope).payload
        except NOT_JSON:
            return {}
        params = {"name": _text(asked.params.name), "uri": _text(asked.params.uri)}
        found = {"method": _text(asked.method), "params": _given(params)}
        return _given(found)


class _Params(msgspec.Struct, frozen=True):
    name: Raw | UnsetType = UNSET
    uri: Raw | UnsetType = UNSET


class _Asked(msgspec.Struct, frozen=True):
    method: Raw | UnsetType = UNSET
    params: _Params = _Params()


class _Envelope(msgspec.Struct):
    payload: _Asked = _Asked()


_envelopes: Final = msgspec.json.Decoder(_Envelope)


def _text(raw: Raw | UnsetType) -> str | None:
    if isinstance(raw, UnsetType) or not bytes(raw).startswith(b'"'):
        return None
    return str(msgspec.json.decode(raw))


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}
