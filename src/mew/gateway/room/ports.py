"""Interfaces of a room: its environment, a connection, and the result of a post."""

from datetime import datetime
from typing import Protocol

from msgspec import Struct

from mew.protocol.envelope import Envelope, EnvelopeId, ParticipantId
from mew.space import ConnectionId

from .outbox import Outbox
from .rate_limit import ByteBudget, RateLimiter

__all__ = ["AcceptedPost", "Counters", "RoomConnection", "RoomEnvironment"]


class RoomEnvironment(Protocol):
    """What a room needs from the node: the clock, e-mail and its URL."""

    def now(self) -> datetime: ...

    def sends_mail(self) -> bool: ...

    def invite_by_mail(self, to: str, space: str, ack: Envelope) -> None:
        """Send what the inviter was answered, without waiting for it."""

    def connection_url(self, space: str) -> str: ...


class RoomConnection(Protocol):
    """A connection, as the room sees it. `lenient`: its participant may use ids of its own again."""

    id: ConnectionId
    who: ParticipantId
    outbox: Outbox
    rate_limiter: RateLimiter
    refusal_limiter: RateLimiter
    budget: ByteBudget
    after: EnvelopeId | None
    lenient: bool

    def close(self, code: int, reason: str) -> None:
        """Start the closing handshake without waiting."""

    def pause(self) -> None:
        """Stop reading (backpressure)."""

    def resume(self) -> None:
        """Resume reading."""


class AcceptedPost(Struct, frozen=True):
    """An envelope is in the space, since when, and what the gateway answered to it."""

    envelope: Envelope
    at: datetime
    reply: Envelope | None = None


class Counters:
    """Counters of a room, for the metrics."""

    __slots__ = ("delivered", "frames", "frames_dropped", "received", "refused")

    def __init__(self) -> None:
        self.received = self.refused = self.delivered = self.frames = self.frames_dropped = 0
