"""A real space within the process, for the tests of who writes participants: no sockets, no ports, no files.

    async with mew.testing.Space({"ann": ["*"], "bot": ["chat", "mcp/proposal"]}) as space:
        async with space.connect("ann") as ann, space.connect("bot") as bot:
            ...

The rules are the gateway's own: it is the same space, the same log, the same refusals.
"""

import asyncio
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from math import inf
from types import TracebackType
from typing import Any, Final, Self

from msgspec import Raw

from mew.client.client import Client
from mew.client.connection.connection import ClientConnection
from mew.client.connection.transport import MemoryLink, MemoryTransport, PastPage
from mew.client.errors import ConnectError, Disconnected
from mew.client.participant.participant import Participant
from mew.gateway.config.settings import Limits
from mew.gateway.http.schemas import EnvelopesQuery, InvalidQuery, read_query
from mew.gateway.room.outbox import Outbox
from mew.gateway.room.rate_limit import ByteBudget, RateLimiter
from mew.gateway.room.room import Room
from mew.gateway.room.turns import Turns, TurnTaker
from mew.journal.memory import MemoryStorage
from mew.protocol.capability import Capability
from mew.protocol.envelope import Envelope, EnvelopeId, ParticipantId
from mew.protocol.errors import CloseCode
from mew.space import ConnectionId, Rules

__all__ = ["Space"]

_BASELINE: Final = ("mcp/response", "capability/grant-ack")
_PLENTY: Final = Limits(envelopes_per_second=1_000_000, burst=1_000_000)


class Space:
    """One space, and who may be in it with which capabilities. An async context: inside it, it lives."""

    def __init__(
        self,
        participants: Mapping[str, Sequence[Any]],
        *,
        limits: Limits = _PLENTY,
        addressed: bool = False,
        id: str = "test",
    ) -> None:
        """`addressed`: an envelope with `to` reaches only those named (design §3.1).

        Raises:
            InvalidCapability: one of the capabilities does not compile.
        """
        self._rules = Rules(
            id=id,
            profiles={ParticipantId(who): _parsed(held) for who, held in participants.items()},
            baseline=_parsed(_BASELINE),
            delivery="addressed" if addressed else "everyone",
            streams_max=limits.streams_per_space,
            streams_each_max=limits.streams_per_participant,
        )
        self._limits = limits
        self._failure: Exception | None = None
        self._transports: dict[str, list[MemoryTransport]] = {}
        self._turns: Turns
        self._room: Room | None = None

    async def __aenter__(self) -> Self:
        world = _World()
        self._turns = Turns(MemoryStorage(), self._failed, world.now)
        self._room = Room(self._rules, self._limits, self._turns, world)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for transports in self._transports.values():
            for transport in transports:
                if transport.link is not None:
                    transport.link.end(CloseCode.SHUTDOWN, "the space is over")
        assert self._room is not None, "left without having been entered"
        await self._turns.settled()
        self._room.close()
        if self._failure is not None:
            raise self._failure

    def connect(self, who: str, *, recall: int = 0) -> Client:
        """Somebody in this space, as `mew.connect` would have it."""
        return Client(self.connection(who, recall=recall))

    @asynccontextmanager
    async def serving(self, participant: Participant, who: str, *, recall: int = 0) -> AsyncIterator[Client]:
        """A participant that runs as `who` inside this block; yields its client.

        Raises:
            Exception: what `on_start` raised, when the block ends well.
        """
        failed: list[Exception] = []

        async def serve(client: Client) -> None:
            try:
                await participant.serve(client)
            except Disconnected:
                pass  # kicked, or the space is over: that may be what is tested
            except Exception as error:
                failed.append(error)
            await client.connection.leave()  # as who runs as a program does

        async with self.connect(who, recall=recall) as client:
            serving = client.connection.spawn(serve(client))
            await asyncio.sleep(0)  # so that it listens before anything can be asked of it
            yield client
            participant.stop()
            await serving
            if failed:
                raise failed[0]

    def connection(self, who: str, *, recall: int = 0) -> ClientConnection:
        """A connection of `who`, without what a client adds."""
        return ClientConnection(self._transport(who), recall=recall)

    def cut(self, who: str) -> None:
        """Pull the plug on every connection of `who`: it comes back by itself."""
        for transport in self._transports.get(who, ()):
            if transport.link is not None:
                transport.link.end(1006, "the plug was pulled")

    def _failed(self, room: TurnTaker, error: Exception) -> None:
        """A bug of ours: whoever tests something is told when the space ends."""
        self._failure = self._failure or error
        if self._room is not None:
            self._room.close()

    def _transport(self, who: str) -> MemoryTransport:
        async def enter(link: MemoryLink, after: EnvelopeId | None) -> None:
            await self._enter(ParticipantId(who), link, after)

        transport = MemoryTransport(enter, partial(self._look_back, ParticipantId(who)))
        self._transports.setdefault(who, []).append(transport)
        return transport

    def _look_back(self, who: ParticipantId, query: Mapping[str, str]) -> PastPage:
        assert self._room is not None, "a connection outside the space"
        if not self._room.space.is_known(who):
            raise ConnectError(f"{who!r} does not belong to this space", come_back=False, status=403)
        try:
            asked = read_query(query, EnvelopesQuery).asked_by(who)
        except InvalidQuery as error:
            raise ConnectError(str(error), come_back=False, status=400) from None
        page = self._room.history.select(asked)
        return PastPage([Raw(one.raw) for one in page.envelopes], page.next, page.complete)

    async def _enter(self, who: ParticipantId, link: MemoryLink, after: EnvelopeId | None) -> None:
        assert self._room is not None, "a connection outside the space"
        visitor = _Visitor(self._room, who, link, after)
        link.peer = visitor
        await self._room.enter(visitor)


class _World:
    """What a room needs of the world."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def sends_mail(self) -> bool:
        return False

    def invite_by_mail(self, to: str, space: str, ack: Envelope) -> None:
        raise AssertionError(f"no mail is sent from here, not to {to}")

    def connection_url(self, space: str) -> str:
        return f"memory://{space}"


class _Visitor:
    """One connection, as the room sees it, and the other end of a link."""

    lenient = False

    def __init__(self, room: Room, who: ParticipantId, link: MemoryLink, after: EnvelopeId | None) -> None:
        limits = room.limits
        self.id = ConnectionId(uuid.uuid4().hex)
        self.who = who
        self.after = after
        self.rate_limiter = RateLimiter(limits.envelopes_per_second, limits.burst)
        self.refusal_limiter = RateLimiter(limits.envelopes_per_second, limits.burst)
        self.budget = ByteBudget(inf, inf, 0.0)  # a link in memory cannot be read more slowly
        tell_dropped = partial(room.tell_dropped, self)
        self.outbox = Outbox(_Unframed(link), limits.outbox_bytes, self._fell_behind, tell_dropped)
        self._room = room
        self._link = link

    def receive(self, message: bytes, *, text: bool) -> None:
        if text:
            self._room.receive(self, [message], len(message))
        else:
            self._room.receive_binary(self, message)

    def left(self) -> None:
        self.outbox.stop()
        self._room.leave(self)

    def pause(self) -> None:
        raise AssertionError("what is in memory is committed at once")

    resume = pause

    def close(self, code: int, reason: str) -> None:
        self.outbox.stop()
        self._link.end(code, reason)

    def _fell_behind(self) -> None:
        self.close(CloseCode.SLOW_READER, "you read too slowly")


class _Unframed(asyncio.WriteTransport):
    """Takes the WebSocket frames that a room makes for all its connections, and delivers what is in them."""

    def __init__(self, link: MemoryLink) -> None:
        super().__init__()
        self._link = link
        self._closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        frames, start = bytes(data), 0
        while start < len(frames):
            size, start = frames[start + 1] & 0x7F, start + 2
            if size >= 126:
                extended = 2 if size == 126 else 8
                size, start = int.from_bytes(frames[start : start + extended], "big"), start + extended
            self._link.deliver(frames[start : start + size])
            start += size

    def get_write_buffer_size(self) -> int:
        return self._link.waiting_bytes

    def is_closing(self) -> bool:
        return self._closed

    def close(self) -> None:
        self._closed = True


def _parsed(written: Sequence[Any]) -> tuple[Capability, ...]:
    return tuple(Capability.parse(item) for item in written)
