"""Flow control between who uploads and who saves, as envelopes: nobody else waits for anybody.

The gateway closes a reader that is too far behind, and makes no writer wait. So who saves says how much it has
(`stream/ack`), and who uploads stays at most 4 MiB ahead of the slowest of those that say so.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Self

from msgspec import UNSET

from mew.protocol.envelope import Envelope
from mew.protocol.kinds import Kind, Presence, StreamAck

from .stream import Stream

__all__ = ["ACK_EVERY_BYTES", "WINDOW_BYTES", "Acknowledging", "Window"]

WINDOW_BYTES: Final = 4 << 20
ACK_EVERY_BYTES: Final = 1 << 20
_FIRST_ACK_S: Final = 1.0
_LAST_ACK_S: Final = 2.0


class Acknowledging:
    """For who saves: tells the owner how much has arrived, where one may."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._told = -ACK_EVERY_BYTES
        self._received = 0
        self._on_its_way: asyncio.Future[Envelope] | None = None

    def received(self, received: int) -> None:
        """So much is saved. Said for each MiB, and once the one before has got through."""
        self._received = received
        if self._on_its_way is None:
            self._say_more()

    async def done(self) -> None:
        """All of it is saved; return once everyone is being shown that, or soon."""
        answer = self._post({"received": self._received})
        if answer is not None:
            await asyncio.wait({answer}, timeout=_LAST_ACK_S)

    def failed(self, error: str) -> None:
        """Nobody need wait for us."""
        if self._told >= 0:
            self._post({"received": self._received, "error": error})

    def _say_more(self) -> None:
        self._on_its_way = None
        if self._received - self._told >= ACK_EVERY_BYTES:
            self._told = self._received
            self._on_its_way = self._post({"received": self._received})
            if self._on_its_way is not None:
                self._on_its_way.add_done_callback(lambda _: self._say_more())

    def _post(self, said: dict[str, Any]) -> asyncio.Future[Envelope] | None:
        stream, connection = self._stream, self._stream.connection
        payload, to = {"stream_id": stream.id, **said}, (stream.owner,)
        if not connection.session.may(Kind.STREAM_ACK, to, payload):
            return None
        about = () if stream.open_id is None else (stream.open_id,)
        return connection.post(connection.compose(Kind.STREAM_ACK, payload, to=to, correlation_id=about))


class _Saver:
    """Somebody who acknowledges."""

    __slots__ = ("heard_s", "received")

    def __init__(self, received: int, heard_s: float) -> None:
        self.received = received
        self.heard_s = heard_s


class Window:
    """For who uploads, as a context: how far those who acknowledge have come, and waiting for them.

    Waited for is only who has acknowledged at least once, may get the data, has not left, and got further within the
    last `silence_s` in which it was behind. Who was given up once is not waited for again.
    """

    def __init__(self, stream: Stream, *, silence_s: float) -> None:
        self.sent = 0
        self._stream = stream
        self._connection = stream.connection
        self._silence_s = silence_s
        self._clock: Callable[[], float] = asyncio.get_running_loop().time
        self._savers: dict[str, _Saver] = {}
        self._given_up: set[str] = set()
        self._changed = asyncio.Event()
        self._began = False

    def __enter__(self) -> Self:
        self._connection.listen(self._hear)
        self._connection.lost_listeners.append(self._changed.set)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.unlisten(self._hear)
        self._connection.lost_listeners.remove(self._changed.set)

    @property
    def confirmed(self) -> tuple[str, ...]:
        """Who has said to have saved all that was sent."""
        return tuple(who for who, saver in self._savers.items() if saver.received >= self.sent)

    @property
    def blind(self) -> bool:
        """Whether somebody whom it is for, and who is here, does not say how far it is."""
        roster = self._connection.session.roster
        return any(who in roster and who not in self._savers for who in self._stream.target or ())

    async def room(self) -> None:
        """Wait until everybody waited for is at most 4 MiB behind.

        The first 4 MiB go out at once; then those who could acknowledge have a second to begin with it, as they may
        be far away, and what is sent meanwhile could already be too much for them.
        """
        if self.sent >= WINDOW_BYTES:
            await self._first_ack()
        if self._late(WINDOW_BYTES):
            await self._caught_up(WINDOW_BYTES)

    async def settled(self) -> None:
        """Wait until everybody waited for has all that was sent; whom it is for has a second to begin with it."""
        if self._stream.target is not None:
            await self._first_ack()
        if self._late(0):
            await self._caught_up(0)

    async def _first_ack(self) -> None:
        if not self._began:
            self._began = True
            if not (self._savers or self._given_up) and self._anybody_could():
                await self._news(self._clock() + _FIRST_ACK_S)

    async def _caught_up(self, behind_max: int) -> None:
        began_s = self._clock()
        while not self._stream.broken:
            for who, saver in self._late(behind_max):
                if self._clock() >= max(saver.heard_s, began_s) + self._silence_s:
                    self._give_up(who)
            late = self._late(behind_max)
            if not late:
                return
            await self._news(min(max(saver.heard_s, began_s) for _, saver in late) + self._silence_s)

    async def _news(self, until_s: float) -> None:
        self._changed.clear()
        with suppress(TimeoutError), self._connection.expecting():
            async with asyncio.timeout_at(until_s):
                await self._changed.wait()

    def _late(self, behind_max: int) -> list[tuple[str, _Saver]]:
        least = self.sent - behind_max
        return [(who, saver) for who, saver in self._savers.items() if saver.received < least]

    def _give_up(self, who: str) -> None:
        if self._savers.pop(who, None) is not None:
            self._given_up.add(who)
            self._changed.set()

    def _anybody_could(self) -> bool:
        session, target = self._connection.session, self._stream.target
        payload = {"stream_id": self._stream.id, "received": 0}
        return any(
            held.fits(Kind.STREAM_ACK, (session.me,), lambda: payload)
            for who, held in session.roster.items()
            if who != session.me and (target is None or who in target)
        )

    def _hear(self, envelope: Envelope, payload: Any) -> None:
        if isinstance(payload, StreamAck):
            self._acknowledged(envelope.sender, payload)
        elif isinstance(payload, Presence) and payload.event == "leave":
            self._give_up(payload.participant.id)

    def _acknowledged(self, who: str, ack: StreamAck) -> None:
        target = self._stream.target
        if who in self._given_up or (target is not None and who not in target):
            return
        if ack.stream_id != self._stream.id:
            return
        if ack.error is not UNSET:
            self._give_up(who)
            return
        saver = self._savers.get(who)
        if ack.received <= self.sent and (saver is None or ack.received > saver.received):
            self._savers[who] = _Saver(ack.received, self._clock())
            self._changed.set()
