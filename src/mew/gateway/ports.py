"""Where a room meets the rest: what it needs of the world, a connection as it sees it, what it tells the doors."""

from datetime import datetime
from typing import Protocol

from msgspec import Struct

from mew.protocol.envelope import Envelope, EnvelopeId, ParticipantId
from mew.space import Connection

from .outbox import Outbox
from .rate import Bucket

__all__ = ["Accepted", "Counts", "Guest", "Shell"]


class Shell(Protocol):
    """What a room needs of the world."""

    def now(self) -> datetime: ...

    def sends_mail(self) -> bool: ...

    def invite_by_mail(self, to: str, space: str, ack: Envelope) -> None:
        """Send what the inviter was answered, without waiting for it."""

    def connection_url(self, space: str) -> str: ...


class Guest(Protocol):
    """A connection, as the room sees it."""

    id: Connection
    who: ParticipantId
    outbox: Outbox
    bucket: Bucket
    patience: Bucket
    after: EnvelopeId | None
    lenient: bool
    known_by: tuple[Connection, ParticipantId, Bucket] | None
    """What a run of plain envelopes must know of it; None: nothing it says is in one."""
    closed: bool
    """Nothing more is heard from it, or said to it."""

    def close(self, code: int, reason: str) -> None:
        """Say goodbye and close, without waiting for it."""


class Accepted(Struct, frozen=True):
    """An envelope is in the space, where it stands, and what the gateway answered to it."""

    envelope: Envelope
    at: datetime
    reply: Envelope | None = None


class Counts:
    """What the room did so far, for the metrics."""

    __slots__ = ("delivered", "frames", "received", "refused")

    def __init__(self) -> None:
        self.received = self.refused = self.delivered = self.frames = 0
