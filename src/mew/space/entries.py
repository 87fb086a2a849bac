"""What the log of a space holds. What is random or timed was settled before, and is written here."""

from datetime import datetime
from typing import Literal, NewType, TypeAlias

from msgspec import Struct

from mew.protocol.capability import Capability
from mew.protocol.envelope import Envelope, EnvelopeId, ParticipantId
from mew.protocol.errors import Refusal

__all__ = [
    "Configured",
    "Connection",
    "Entry",
    "Event",
    "Identified",
    "Joined",
    "Left",
    "Rules",
    "Sent",
    "TimePassed",
    "Violated",
]

Connection = NewType("Connection", str)


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
    connection: Connection
    resumed: bool | None = None


class Left(Struct, frozen=True, tag=True):
    connection: Connection


class Sent(Struct, frozen=True, tag=True, gc=False):
    """An envelope, with the bytes it came as. No `connection`: it came over HTTP.

    `lenient` exempts it from unique ids. `token_hash` is the hash of the token made for a `space/invite`.
    """

    envelope: Envelope
    raw: bytes
    connection: Connection | None = None
    lenient: bool = False
    token_hash: str = ""

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


Event: TypeAlias = Configured | Identified | Joined | Left | Sent | Violated | TimePassed


class Entry(Struct, frozen=True, gc=False):
    """One event at its place in the order."""

    seq: int
    at: datetime
    event: Event
