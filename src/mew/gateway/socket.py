"""The WebSocket door (§5.2): from the handshake to the last frame of a connection."""

import asyncio
import logging
import uuid
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Final

from aiohttp import web

from mew.log.base import LogUnavailable
from mew.protocol.envelope import EnvelopeId, ParticipantId
from mew.protocol.errors import CloseCode, ProtocolError, Refusal
from mew.protocol.frames import MARK
from mew.space import Connection, Refused

from . import compat
from .guard import Admission, Denied, Guard, token_of
from .outbox import Outbox
from .rate import Bucket
from .websocket import Message, Opcode, WireError
from .wire import Hear, Upgrade, Wire

__all__ = ["SUBPROTOCOL", "SocketDoor"]

_log = logging.getLogger(__name__)

SUBPROTOCOL: Final = "mew.v0.4"
_JOIN_BYTES_MAX: Final = 64 << 10
_ANY_BYTES: Final = (
    1 << 40
)  # until the join tells which space's limits hold; what comes behind it waits unread
_REFUSED_PER_S: Final = 100
_REFUSED_BURST: Final = 2_000

_CLOSE_FOR: Final = {
    "no_token": CloseCode.BAD_TOKEN,
    "bad_token": CloseCode.BAD_TOKEN,
    "wrong_participant": CloseCode.BAD_TOKEN,
    "kicked": CloseCode.KICKED,
    "no_such_space": CloseCode.NO_SUCH_SPACE,
    "space_full": CloseCode.SPACE_FULL,
    "too_many_connections": CloseCode.SPACE_FULL,
    "too_many_attempts": CloseCode.FLOODING,
    "auth_unavailable": CloseCode.UNAVAILABLE,
}


class SocketDoor:
    """Turns requests for a WebSocket into guests of a room."""

    def __init__(self, guard: Guard, now: Callable[[], datetime]) -> None:
        self._guard = guard
        self._now = now
        self._wires: set[Wire] = set()
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._joining: set[Wire] = set()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Let one connection in. From then on it looks after itself: nothing of the request is kept.

        Raises:
            Denied: before the upgrade.
        """
        self._guard.check_origin(request)
        token, address = token_of(request), self._guard.address(request)
        if token is None and _may_join_by_frame(request):
            return await self._serve_by_first_frame(request, address)
        admission = await self._guard.admit(request, token, request.query.get("space"))
        _check_capacity(admission)
        upgrade = Upgrade(request, SUBPROTOCOL)
        await upgrade.prepare(request)
        limits = admission.room.limits
        wire = self._wire(request, max(limits.frame_bytes, limits.envelope_bytes))
        if wire is not None:
            after = request.query.get("after")
            await self._let_in(address, Guest(admission, wire, after=EnvelopeId(after) if after else None))
        return upgrade

    async def keep_alive(self) -> None:
        """Ping who has been silent; cut off who stays silent after that. Runs until cancelled."""
        while True:
            interval_s = self._guard.server.keepalive_s
            await asyncio.sleep(interval_s / 2)
            now_s = asyncio.get_running_loop().time()
            for wire in tuple(self._wires):
                silent_s = now_s - wire.heard_s
                if silent_s > 2 * interval_s:
                    wire.transport.abort()
                elif silent_s > interval_s:
                    wire.ping()

    def dismiss(self, code: CloseCode, reason: str) -> None:
        """Say goodbye to those who have not joined yet: no room knows of them."""
        for wire in tuple(self._joining):
            wire.close(code, reason)

    def _wire(self, request: web.Request, bytes_max: int) -> Wire | None:
        transport = request.transport
        return None if transport is None else Wire(request, transport, bytes_max)

    async def _serve_by_first_frame(self, request: web.Request, address: str) -> web.StreamResponse:
        upgrade = Upgrade(request, SUBPROTOCOL)
        await upgrade.prepare(request)
        wire = self._wire(request, _ANY_BYTES)
        if wire is None:
            return upgrade
        self._joining.add(wire)
        try:
            async with asyncio.timeout(self._guard.server.join_timeout_s):
                message = await wire.first(_JOIN_BYTES_MAX)
                if message is None:
                    return upgrade
                join = compat.read_join(message[1])
                admission = await self._guard.admit(request, join.token, join.space)
            _check_capacity(admission)
            _check_claim(admission, join)
        except TimeoutError:
            wire.close(CloseCode.JOIN_TIMEOUT, "no join came")
        except ProtocolError as error:
            other_version = error.refusal is Refusal.WRONG_VERSION
            wire.close(CloseCode.WRONG_VERSION if other_version else CloseCode.BAD_JOIN, str(error))
        except LogUnavailable:
            wire.close(CloseCode.UNAVAILABLE, "the space is not available now")
        except Denied as denied:
            _log.info("turned away", extra={"address": address, "error": denied.code})
            wire.close(_CLOSE_FOR.get(denied.code, CloseCode.BAD_JOIN), str(denied))
        else:
            self._joining.discard(wire)
            limits = admission.room.limits
            wire.allow(max(limits.frame_bytes, limits.envelope_bytes))
            await self._let_in(address, LenientGuest(admission, wire, join.claimed, self._now))
            return upgrade
        finally:
            self._joining.discard(wire)
        await wire.ended()
        return upgrade

    async def _let_in(self, address: str, guest: "Guest") -> None:
        wire, room = guest.wire, guest.room
        if wire.has_ended:
            return  # nobody would see it out
        where = {"space": room.id, "who": guest.who, "connection": guest.id}
        _log.info("connected", extra={**where, "address": address})
        wire.hand_over()
        self._wires.add(wire)
        self._quiet.clear()
        wire.when_ended(lambda: self._see_out(guest))
        try:
            await room.enter(guest)
        except LogUnavailable:
            wire.close(CloseCode.UNAVAILABLE, "the space is not available now")
        else:
            wire.attach(guest)

    def _see_out(self, guest: "Guest") -> None:
        guest.outbox.stop()
        guest.room.depart(guest)
        self._wires.discard(guest.wire)
        if not self._wires:
            self._quiet.set()
        where = {"space": guest.room.id, "who": guest.who, "connection": guest.id}
        _log.info("disconnected", extra={**where, "close_code": guest.wire.close_code})

    async def quiet(self) -> None:
        """Return when nobody is connected."""
        await self._quiet.wait()

    def cut_off(self) -> None:
        """End every connection at once."""
        for wire in tuple(self._wires):
            wire.transport.abort()


class Guest:
    """One connection in a room."""

    __slots__ = (
        "after",
        "bucket",
        "closed",
        "hear",
        "id",
        "known_by",
        "outbox",
        "patience",
        "room",
        "who",
        "wire",
    )

    lenient = False

    def __init__(self, admission: Admission, wire: Wire, *, after: EnvelopeId | None = None) -> None:
        limits = admission.room.limits
        self.id = Connection(uuid.uuid4().hex)
        self.room = admission.room
        self.who: ParticipantId = admission.who
        self.after = after
        self.closed = False
        self.bucket = Bucket(limits.envelopes_per_second, limits.burst)
        self.patience = Bucket(_REFUSED_PER_S, _REFUSED_BURST)
        self.outbox = Outbox(wire.transport, limits.outbox_bytes, self._fell_behind)
        self.wire = wire
        self.known_by = None if self.lenient else (self.id, self.who, self.bucket)
        self.hear: Hear | None = None if self.lenient else partial(self.room.inbox.hear, self)

    def receive(self, messages: Sequence[Message]) -> None:
        self.room.inbox.put(self, messages)

    def broken(self, error: WireError) -> None:
        """The client broke RFC 6455; before it is closed it is told in our words too."""
        self.room.inbox.empty()
        self.room.turn_away(self, Refused(Refusal.MALFORMED, str(error)))
        self.room.flush()
        self.outbox.stop()

    def close(self, code: int, reason: str) -> None:
        self.closed = True
        self.outbox.stop()
        self.wire.close(code, reason)

    def _fell_behind(self) -> None:
        _log.warning("slow reader closed", extra={"who": self.who, "connection": self.id})
        self.close(CloseCode.SLOW_READER, "you read too slowly; come back with ?after=ID")


class LenientGuest(Guest):
    """One that joined by its first frame, as clients of the TypeScript implementation do."""

    __slots__ = ("_claimed", "_now")

    lenient = True

    def __init__(
        self, admission: Admission, wire: Wire, claimed: str | None, now: Callable[[], datetime]
    ) -> None:
        super().__init__(admission, wire)
        self._claimed = claimed
        self._now = now

    def receive(self, messages: Sequence[Message]) -> None:
        meant = [message for each in messages if (message := self._meant(*each)) is not None]
        if meant:
            super().receive(meant)

    def _meant(self, opcode: int, data: bytes) -> Message | None:
        """What a current client would have sent; None: nothing."""
        if opcode == Opcode.TEXT and data[:1] != MARK:
            try:
                if compat.is_heartbeat(data):
                    return None
                new_id, ts = str(uuid.uuid4()), self._now().isoformat().replace("+00:00", "Z")
                return opcode, compat.complete(data, self.who, self._claimed, new_id=new_id, ts=ts)
            except ProtocolError:
                pass  # the room says what is wrong with it
        return opcode, data


def _may_join_by_frame(request: web.Request) -> bool:
    """A client that names its space in the URL speaks our way, and must bring its token with the handshake."""
    return "space" not in request.query


def _check_capacity(admission: Admission) -> None:
    room = admission.room
    if len(room.guests) >= room.limits.connections_per_space:
        raise Denied(503, "space_full", "this space has all the connections it may have", retry_after_s=10)
    own = sum(1 for guest in room.guests.values() if guest.who == admission.who)
    if own >= room.limits.connections_per_participant:
        raise Denied(
            429, "too_many_connections", f"{admission.who!r} has {own} connections", retry_after_s=10
        )


def _check_claim(admission: Admission, join: compat.Join) -> None:
    """An id the client made up is nobody's; another's is not to be had with this token."""
    claimed = join.claimed
    if claimed is not None and claimed != admission.who and admission.room.space.is_known(claimed):
        raise Denied(401, "wrong_participant", f"the token is not {claimed!r}'s")
