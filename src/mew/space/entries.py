"""The entries of a space's log. Randomness and time are settled before an entry is appended."""

from datetime import datetime
from typing import Any, Final, Literal, NewType, TypeAlias

import msgspec
from msgspec import Struct

from mew.protocol.capability import Capability
from mew.protocol.envelope import Envelope, EnvelopeId, ParticipantId
from mew.protocol.envelopes import Envelopes
from mew.protocol.errors import InvalidCapability, Refusal

__all__ = [
    "NEVER_JUDGED",
    "Configured",
    "ConnectionId",
    "Entry",
    "Event",
    "Identified",
    "Joined",
    "Left",
    "NodeLeft",
    "Rules",
    "Sent",
    "StoredDecoder",
    "Submission",
    "TimePassed",
    "Violated",
    "to_json",
]

ConnectionId = NewType("ConnectionId", str)


class Rules(Struct, frozen=True):
    """What the operator configured, as far as the space needs it."""

    id: str
    name: str = ""
    description: str = ""
    profiles: dict[ParticipantId, tuple[Capability, ...]] = {}
    defaults: tuple[Capability, ...] = ()
    baseline: tuple[Capability, ...] = ()
    delivery: Literal["everyone", "addressed"] = "everyone"
    announce_violations: bool = False
    streams_max: int = 256
    streams_each_max: int = 32
    revision: int = 0  # of several nodes: rules with a lower one than those in force are ignored


class Configured(Struct, frozen=True, tag=True):
    """The operator's rules, at the start and after each change. `epoch` makes the gateway's ids unique."""

    rules: Rules
    epoch: str


class Identified(Struct, frozen=True, tag=True):
    """An authenticator vouches for a participant and says what it holds; None: what the rules say."""

    who: ParticipantId
    capabilities: tuple[Capability, ...] | None


class Joined(Struct, frozen=True, tag=True):
    """A connection of `who`. `resumed`: whether what it missed follows; None when it did not ask."""

    who: ParticipantId
    connection: ConnectionId
    resumed: bool | None = None


class Left(Struct, frozen=True, tag=True):
    connection: ConnectionId


class NodeLeft(Struct, frozen=True, tag=True):
    """A node has stopped serving the space, by itself or because it died: all its connections end.

    Their names begin with the name of the node and a dot.
    """

    node: str


NEVER_JUDGED: Final = -1
"""Stands for `judged_at` if nobody asked the space before."""


class Sent(Struct, frozen=True, tag=True, gc=False):
    """Envelopes that participants sent, a batch: judged together against one state, which only the last may change.

    `judged_at` is the sequence number of the last state change that their judge had seen. `origins` has the connection
    that each came over; None: HTTP. `lenient`: their senders may use ids of their own again. `token_hash` is the hash
    of the token made for a `space/invite`.
    """

    envelopes: Envelopes
    origins: tuple[ConnectionId | None, ...]
    judged_at: int = NEVER_JUDGED
    lenient: bool = False
    token_hash: str = ""


class Submission(Struct, frozen=True, gc=False):
    """One envelope of a batch that the space acts on."""

    envelope: Envelope
    connection: ConnectionId | None
    token_hash: str

    @property
    def who(self) -> ParticipantId:
        return ParticipantId(self.envelope.sender)


class Violated(Struct, frozen=True, tag=True):
    """An envelope was refused before it reached the log; this is all that is kept of it.

    `lacked`: a capability that would have been enough, in its short form.
    """

    who: ParticipantId
    envelope_id: EnvelopeId
    kind: str
    refusal: Refusal
    lacked: str = ""


class TimePassed(Struct, frozen=True, tag=True):
    """Nothing happened but time: pauses end and grants expire."""


Event: TypeAlias = Configured | Identified | Joined | Left | NodeLeft | Sent | Violated | TimePassed


class Entry(Struct, frozen=True, gc=False):
    """An event at its place in the order. Each envelope of a batch has a number: `seq` is that of the first.

    `size`: how many numbers it takes.
    """

    seq: int
    at: datetime
    event: Event
    size: int = 1

    @property
    def last(self) -> int:
        """The number of its last envelope."""
        return self.seq + self.size - 1


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


class StoredDecoder:
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
