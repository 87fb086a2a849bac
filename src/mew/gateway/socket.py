"""The WebSocket door (§5.2): from the handshake to the last frame of a connection."""

import asyncio
import logging
import uuid
from collections.abc import Callable, Coroutine
from datetime import datetime
from typing import Any, Final

from aiohttp import WSMsgType, web

from mew.log.base import LogUnavailable
from mew.protocol import frames
from mew.protocol.envelope import EnvelopeId, ParticipantId
from mew.protocol.errors import CloseCode, ProtocolError
from mew.space import Connection

from . import compat
from .guard import Admission, Denied, Guard, token_of
from .outbox import Outbox
from .rate import Bucket
from .room import Room

__all__ = ["SUBPROTOCOL", "SocketDoor"]

_log = logging.getLogger(__name__)

SUBPROTOCOL: Final = "mew.v0.4"
_REASON_BYTES_MAX: Final = 123  # RFC 6455 §5.5: a control frame holds 125 bytes, two of them the code

_CLOSE_FOR_STATUS: Final = {
    401: CloseCode.BAD_TOKEN,
    403: CloseCode.KICKED,
    404: CloseCode.NO_SUCH_SPACE,
    503: CloseCode.UNAVAILABLE,
}

Spawn = Callable[[Coroutine[Any, Any, None]], None]


class SocketDoor:
    """Turns requests for a WebSocket into guests of a room."""

    def __init__(self, guard: Guard, spawn: Spawn, now: Callable[[], datetime]) -> None:
        self._guard = guard
        self._spawn = spawn
        self._now = now

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Serve one connection until it ends.

        Raises:
            Denied: before the upgrade.
        """
        self._guard.check_origin(request)
        token = token_of(request)
        if token is None and not _may_join_by_frame(request):
            raise Denied(401, "no_token", "a bearer token is needed: 'Authorization: Bearer TOKEN'")
        if token is None:
            return await self._serve_by_first_frame(request)
        admission = await self._guard.admit(request, token, request.query.get("space"))
        _check_capacity(admission)
        after = request.query.get("after")
        socket = self._socket(admission.room)
        await socket.prepare(request)
        await self._serve(request, socket, admission, after=EnvelopeId(after) if after else None)
        return socket

    def _socket(self, room: Room | None) -> "Socket":
        frame_bytes = 4 << 20 if room is None else max(room.limits.frame_bytes, room.limits.envelope_bytes)
        return Socket(
            protocols=(SUBPROTOCOL,),
            heartbeat=self._guard.server.keepalive_s or None,
            compress=False,
            max_msg_size=frame_bytes + 1,
            decode_text=False,
            timeout=2.0,
        )

    async def _serve_by_first_frame(self, request: web.Request) -> web.StreamResponse:
        socket = self._socket(None)
        await socket.prepare(request)
        try:
            async with asyncio.timeout(self._guard.server.join_timeout_s):
                message = await socket.receive()
                if message.type is not WSMsgType.TEXT:
                    return socket
                join = compat.read_join(message.data)
                admission = await self._guard.admit(request, join.token, join.space)
            _check_capacity(admission)
            claimed = join.claimed
            if claimed is not None and claimed != admission.who and admission.room.space.is_known(claimed):
                raise Denied(403, "wrong_participant", f"the token is not {claimed!r}'s")
        except TimeoutError:
            await _close(socket, CloseCode.JOIN_TIMEOUT, "no join came")
        except ProtocolError as error:
            await _close(socket, CloseCode.BAD_JOIN, str(error))
        except Denied as denied:
            code = _CLOSE_FOR_STATUS.get(denied.status, CloseCode.BAD_JOIN)
            if denied.code == "wrong_participant":
                code = CloseCode.BAD_TOKEN
            await _close(socket, code, str(denied))
        else:
            await self._serve(request, socket, admission, lenient=True, claimed=join.claimed)
        return socket

    async def _serve(
        self,
        request: web.Request,
        socket: "Socket",
        admission: Admission,
        *,
        after: EnvelopeId | None = None,
        lenient: bool = False,
        claimed: str | None = None,
    ) -> None:
        transport = request.transport
        if transport is None:
            return  # gone during the handshake
        room = admission.room
        guest = _Guest(admission, socket, transport, self._spawn, after=after, lenient=lenient)
        where = {"space": room.id, "who": guest.who, "connection": guest.id}
        _log.info("connected", extra={**where, "address": self._guard.address(request)})
        try:
            await room.enter(guest)
            if lenient:
                await self._read_lenient(room, guest, socket, claimed)
            else:
                await _read(room, guest, socket)
        except LogUnavailable:
            await _close(socket, CloseCode.UNAVAILABLE, "the space is not available now")
        finally:
            guest.outbox.stop()
            room.depart(guest)
            _log.info("disconnected", extra={**where, "close_code": socket.close_code})

    async def _read_lenient(self, room: Room, guest: "_Guest", socket: "Socket", claimed: str | None) -> None:
        async for message in socket:
            if message.type is WSMsgType.TEXT and not frames.is_frame(message.data):
                received: bytes = message.data
                try:
                    if compat.is_heartbeat(received):
                        continue
                    new_id, ts = str(uuid.uuid4()), self._now().isoformat()
                    received = compat.complete(received, guest.who, claimed, new_id=new_id, ts=ts)
                except ProtocolError:
                    pass  # the room says what is wrong with it
                room.receive(guest, received)
            else:
                room.receive_frame(guest, message.data, text=message.type is WSMsgType.TEXT)


async def _read(room: Room, guest: "_Guest", socket: "Socket") -> None:
    text = WSMsgType.TEXT
    async for message in socket:
        received: bytes = message.data
        if message.type is text and received[:1] != b"#":
            room.receive(guest, received)
        else:
            room.receive_frame(guest, received, text=message.type is text)


class Socket(web.WebSocketResponse[bool]):
    """A WebSocket that hands text over as the bytes received."""


class _Guest:
    """One connection in a room."""

    def __init__(
        self,
        admission: Admission,
        socket: Socket,
        transport: asyncio.Transport,
        spawn: Spawn,
        *,
        after: EnvelopeId | None,
        lenient: bool,
    ) -> None:
        limits = admission.room.limits
        self.id = Connection(uuid.uuid4().hex)
        self.who: ParticipantId = admission.who
        self.after = after
        self.lenient = lenient
        self.bucket = Bucket(limits.envelopes_per_second, limits.burst)
        self.outbox = Outbox(transport, limits.outbox_bytes, self._fell_behind)
        self._socket = socket
        self._transport = transport
        self._spawn = spawn

    def close(self, code: CloseCode, reason: str) -> None:
        self._spawn(self.goodbye(code, reason))

    async def goodbye(self, code: CloseCode, reason: str) -> None:
        """Close, and do not let a reader that reads nothing hold us up."""
        self.outbox.stop()
        try:
            async with asyncio.timeout(3):
                await _close(self._socket, code, reason)
        except TimeoutError:
            self._transport.abort()

    def _fell_behind(self) -> None:
        _log.warning("slow reader closed", extra={"who": self.who, "connection": self.id})
        self.close(CloseCode.SLOW_READER, "you read too slowly; come back with ?after=ID")


async def _close(socket: Socket, code: CloseCode, reason: str) -> None:
    await socket.close(code=code, message=_bounded(reason))


def _bounded(reason: str) -> bytes:
    return reason.encode()[:_REASON_BYTES_MAX].decode(errors="ignore").encode()


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
