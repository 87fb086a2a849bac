"""How a space is written down, in a log and in a snapshot: JSON, a capability as its source."""

from typing import Any

import msgspec

from mew.protocol.capability import Capability
from mew.protocol.errors import InvalidCapability

__all__ = ["Reader", "to_json"]


def _capability_out(value: Any) -> Any:
    assert isinstance(value, Capability), f"what is stored cannot hold {type(value)}"
    return value.source


def _capability_in(kind: type, value: Any) -> Any:
    assert kind is Capability, f"what is stored cannot hold {kind}"
    try:
        return Capability.parse(value)
    except InvalidCapability as error:
        raise ValueError(str(error)) from error


to_json = msgspec.json.Encoder(enc_hook=_capability_out).encode


class Reader:
    """Reads one type, or one of a union."""

    def __init__(self, kind: Any) -> None:
        self._decoder = msgspec.json.Decoder(kind, dec_hook=_capability_in)

    def read(self, written: bytes) -> Any:
        """What was written.

        Raises:
            ValueError: these bytes are not of that type.
        """
        try:
            return self._decoder.decode(written)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ValueError(str(error)) from error
