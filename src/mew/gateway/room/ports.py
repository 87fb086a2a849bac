"""Interfaces of a room: its environment, a connection, calls that wait for it, and the result of a post."""

import asyncio
from datetime import datetime
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from mew.journal.port import JournalUnavailable
from mew.protocol.envelope import Envelope, EnvelopeId, ParticipantId
from mew.space import ConnectionId

from .outbox import Outbox
from .rate_limit import ByteBudget, RateLimiter

__all__ = ["AcceptedPost", "Counters", "PendingCalls", "RoomConnection", "RoomEnvironment"]

_Result = TypeVar("_Result")


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


class PendingCalls:
    """Callers that wait for the room: each has its result once the entry it waits for is committed."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Future[Any]] = set()
        self.results: list[tuple[asyncio.Future[Any], Any]] = []

    async def result(self, future: asyncio.Future[_Result]) -> _Result:
        """Wait for the result of queued work; raise if the room closes first."""
        self._waiting.add(future)
        try:
            return await future
        finally:
            self._waiting.discard(future)

    def resolve(self, future: asyncio.Future[_Result], result: _Result) -> None:
        """Tell a caller, once this is committed."""
        self.results.append((future, result))

    def committed(self) -> None:
        """Tell all whose results are committed now."""
        results, self.results = self.results, []
        for future, result in results:
            if not future.done():  # its caller may have gone
                future.set_result(result)

    def fail(self) -> None:
        """The room has closed: nobody will be told any more."""
        for future in self._waiting:
            if not future.done():
                future.set_exception(JournalUnavailable("the space was closed before it came round"))
        self.results.clear()


class Counters:
    """Counters of a room, for the metrics."""

    __slots__ = ("delivered", "frames", "frames_dropped", "received", "refused")

    def __init__(self) -> None:
        self.received = self.refused = self.delivered = self.frames = self.frames_dropped = 0
