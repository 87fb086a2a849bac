"""The envelope (§3): the header every kind shares, its payload left as the bytes that came."""

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, Final, NewType, TypeVar

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from .errors import ProtocolError, Refusal
from .json import decode_json, decode_payload

__all__ = [
    "GATEWAY",
    "NO_PAYLOAD",
    "PROTOCOL",
    "Envelope",
    "EnvelopeId",
    "ParticipantId",
    "is_participant_id",
    "is_reserved_id",
    "similar_id",
]

ParticipantId = NewType("ParticipantId", str)
EnvelopeId = NewType("EnvelopeId", str)

PROTOCOL: Final = "mew/v0.4"
NO_PAYLOAD: Final = Raw()  # itself: another that is empty would be encoded, as nothing after the colon
GATEWAY: Final = ParticipantId("system:gateway")

Payload = TypeVar("Payload")

_PARTICIPANT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,127}", re.ASCII)
_RESERVED = frozenset({"system", "gateway"})
_LOOK_ALIKES = str.maketrans({"I": "l", "1": "l", "0": "o"})

# The space remembers the ids of 65,536 envelopes: unbounded ones would be a way to fill its memory.
_ID_CHARS_MAX: Final = 256
_NAMES_MAX: Final = 1024  # decoded, a short name takes some ten times its bytes

_Name = Annotated[str, Meta(min_length=1, max_length=_ID_CHARS_MAX)]
_Names = Annotated[tuple[_Name, ...], Meta(max_length=_NAMES_MAX)]


class Envelope(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename={"sender": "from"}, gc=False
):
    """One envelope. `sender` is `from` on the wire; fields it does not know stay in the bytes received."""

    protocol: str
    id: _Name
    ts: Annotated[datetime, Meta(tz=True)] | UnsetType = UNSET
    sender: _Name
    to: _Names = ()
    kind: _Name
    correlation_id: _Names = ()
    context: Annotated[str, Meta(max_length=4096)] | UnsetType = UNSET
    payload: Raw = NO_PAYLOAD

    @property
    def content(self) -> dict[str, Any]:
        """The payload as JSON has it, read anew each time; empty where there is none.

        Raises:
            ProtocolError: it is no object.
        """
        content = decode_json(bytes(self.payload) or b"{}")
        if not isinstance(content, dict):
            raise ProtocolError("payload: expected an object", Refusal.INVALID_PAYLOAD)
        return content

    def read(self, shape: type[Payload]) -> Payload:
        """The payload as one of the structs of `mew.protocol.kinds`, or any other type that JSON can be read as.

        Raises:
            ProtocolError: it is not of that shape, with the field that is wrong, or a key in it occurs twice.
        """
        return decode_payload(self.payload, shape)


def is_participant_id(name: str) -> bool:
    """Whether a participant may carry this id: the gateway's own names are not to be had."""
    return _PARTICIPANT_ID.fullmatch(name) is not None and not is_reserved_id(name)


def is_reserved_id(name: str) -> bool:
    """Whether this is one of the gateway's own names (design §3.10)."""
    return name in _RESERVED or ":" in name


def similar_id(name: str, others: Iterable[str]) -> str | None:
    """Return the first of `others`, other than `name` itself, that a person could take for it; None: there is none.

    Such ids differ only in case, or in characters that look alike in many fonts: `0` and `O`; `1`, `l` and `I`.
    """
    folded, drawn = name.lower(), name.translate(_LOOK_ALIKES).lower()
    for other in others:
        if other != name and (other.lower() == folded or other.translate(_LOOK_ALIKES).lower() == drawn):
            return other
    return None
