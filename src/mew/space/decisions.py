"""What a space may decide: the whole list of what the shell must be able to carry out."""

from datetime import datetime
from typing import TypeAlias

from msgspec import Struct

from mew.protocol.envelope import Envelope, EnvelopeId, ParticipantId
from mew.protocol.errors import CloseCode, Refusal

from .entries import Connection

__all__ = ["Answer", "Decision", "Deliver", "Disconnect", "Invite", "Refuse", "Refused", "WakeAt"]


class Deliver(Struct, frozen=True, gc=False):
    """Show an envelope to everyone, or only to `only`. `raw` is empty for one the gateway made."""

    envelope: Envelope
    raw: bytes = b""
    only: tuple[ParticipantId, ...] | None = None


class Answer(Struct, frozen=True):
    """A private envelope: to one connection, or without one to all connections of `who`. Never kept."""

    who: ParticipantId
    envelope: Envelope
    connection: Connection | None = None


class Refused(Struct, frozen=True):
    """A rule says no: which, and in words. `lacked`: a capability that would have been enough, in its short form."""

    refusal: Refusal
    message: str
    retry_after_s: float | None = None
    lacked: str | None = None


class Refuse(Struct, frozen=True):
    """Tell the sender that its envelope was not accepted; nobody else sees it."""

    who: ParticipantId
    envelope_id: EnvelopeId
    kind: str
    refused: Refused
    connection: Connection | None = None


class Disconnect(Struct, frozen=True):
    """Close these connections. They have left already: no `Left` need follow."""

    connections: tuple[Connection, ...]
    code: CloseCode
    reason: str


class Invite(Struct, frozen=True):
    """Hand the token made for `envelope` to the inviter alone, and to `email` where there is one."""

    envelope: Envelope
    participant: ParticipantId
    email: str | None = None
    connection: Connection | None = None


class WakeAt(Struct, frozen=True):
    """Append a `TimePassed` when this moment has come."""

    at: datetime


Decision: TypeAlias = Deliver | Answer | Refuse | Disconnect | Invite | WakeAt
