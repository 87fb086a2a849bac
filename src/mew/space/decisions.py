"""The decisions a space can return: everything the shell must be able to carry out."""

from datetime import datetime
from typing import TypeAlias

from msgspec import Struct

from mew.protocol.envelope import Envelope, EnvelopeId, ParticipantId
from mew.protocol.envelopes import Envelopes
from mew.protocol.errors import CloseCode, Refusal

from .entries import ConnectionId

__all__ = [
    "Audiences",
    "Decision",
    "Deliver",
    "Disconnect",
    "IssueInvitation",
    "RefusalDetails",
    "Refuse",
    "Reply",
    "WakeAt",
]

Audiences: TypeAlias = tuple[tuple[ParticipantId, ...] | None, ...]


class Deliver(Struct, frozen=True, gc=False):
    """Deliver envelopes, in their order, to everyone; with `only`, each to those it names (None: everyone)."""

    envelopes: Envelopes
    only: Audiences | None = None

    @classmethod
    def one(cls, envelope: Envelope, only: tuple[ParticipantId, ...] | None = None) -> "Deliver":
        """An envelope that the gateway made."""
        return cls(Envelopes.of(envelope), None if only is None else (only,))


class Reply(Struct, frozen=True):
    """A private envelope: to one connection, or without one to all connections of `who`. Never kept."""

    who: ParticipantId
    envelope: Envelope
    connection: ConnectionId | None = None


class RefusalDetails(Struct, frozen=True):
    """A rule says no: which, and in words. `lacked`: a capability that would have been enough, in its short form.

    `stream_id`: the stream that a refused frame was written to.
    """

    refusal: Refusal
    message: str
    retry_after_s: float | None = None
    lacked: str | None = None
    stream_id: str | None = None


class Refuse(Struct, frozen=True):
    """Tell the sender that its envelope was not accepted; nobody else sees it."""

    who: ParticipantId
    envelope_id: EnvelopeId
    kind: str
    refused: RefusalDetails
    connection: ConnectionId | None = None


class Disconnect(Struct, frozen=True):
    """Close these connections. They have left already: no `Left` need follow."""

    connections: tuple[ConnectionId, ...]
    code: CloseCode
    reason: str


class IssueInvitation(Struct, frozen=True):
    """Hand the token made for `envelope` to the inviter alone, and to `email` where there is one."""

    envelope: Envelope
    participant: ParticipantId
    email: str | None = None
    connection: ConnectionId | None = None


class WakeAt(Struct, frozen=True):
    """Append a `TimePassed` when this moment has come."""

    at: datetime


Decision: TypeAlias = Deliver | Reply | Refuse | Disconnect | IssueInvitation | WakeAt
