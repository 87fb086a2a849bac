"""Where a room meets the rest: what it needs of the world, a connection as it sees it, what it tells the doors."""

from datetime import datetime
from typing import Protocol

from msgspec import Struct

from mew.protocol.envelope import Envelope, EnvelopeId, ParticipantId
from mew.space import ConnectionId

from .outbox import Outbox
from .rate_limit import ByteBudget, RateLimiter

__all__ = ["AcceptedPost", "Counters", "RoomConnection", "RoomEnvironment"]


class RoomEnvironment(Protocol):
    """What a room needs of the world."""

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
        """Say goodbye and close, without waiting for it."""

    def pause(self) -> None:
        """Read no more for now: the room has not taken yet what it was sent."""

    def resume(self) -> None:
        """Read on."""


class AcceptedPost(Struct, frozen=True):
    """An envelope is in the space, since when, and what the gateway answered to it."""

    envelope: Envelope
    at: datetime
    reply: Envelope | None = None


class Counters:
    """What the room did so far, for the metrics."""

    __slots__ = ("delivered", "frames", "frames_dropped", "received", "refused")

    def __init__(self) -> None:
        self.received = self.refused = self.delivered = self.frames = self.frames_dropped = 0
