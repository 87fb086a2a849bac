"""The WebSocket endpoint (§5.2): handshake, authentication, keep-alive and shutdown of connections."""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from typing import Final

from aiohttp import web

from mew.gateway.auth.guard import AccessGuard, Admission, Denied, token_of
from mew.journal.port import JournalUnavailable
from mew.protocol.envelope import EnvelopeId
from mew.protocol.errors import CloseCode, ProtocolError, Refusal

from . import compat
from .connection import WebSocketConnection
from .wire import Upgrade, WebSocketWire

__all__ = ["SUBPROTOCOL", "WebSocketEndpoint"]

_log = logging.getLogger(__name__)

SUBPROTOCOL: Final = "mew.v0.4"
_JOIN_BYTES_MAX: Final = 64 << 10
_ANY_BYTES: Final = (
    1 << 40
)  # until the join tells which space's limits hold; what comes behind it waits unread

_CLOSE_FOR: Final = {
    "no_token": CloseCode.BAD_TOKEN,
    "bad_token": CloseCode.BAD_TOKEN,
    "wrong_participant": CloseCode.BAD_TOKEN,
    "similar_id": CloseCode.BAD_TOKEN,
    "kicked": CloseCode.KICKED,
    "no_such_space": CloseCode.NO_SUCH_SPACE,
    "space_full": CloseCode.SPACE_FULL,
    "too_many_connections": CloseCode.SPACE_FULL,
    "too_many_attempts": CloseCode.FLOODING,
    "auth_unavailable": CloseCode.UNAVAILABLE,
}


class WebSocketEndpoint:
    """Upgrade HTTP requests to connections of a room."""

    def __init__(self, guard: AccessGuard, now: Callable[[], datetime]) -> None:
        self._guard = guard
        self._now = now
        self._wires: set[WebSocketWire] = set()
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._joining: set[WebSocketWire] = set()

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
            connection = WebSocketConnection(
                admission, wire, self._now, token=token, after=EnvelopeId(after) if after else None
            )
            await self._let_in(address, connection)
        return upgrade

    async def keep_alive(self) -> None:
        """Ping idle connections and abort those that stay silent. Runs until cancelled."""
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

    def begin_shutdown(self, code: CloseCode, reason: str) -> None:
        """Close connections that have not joined a room yet."""
        for wire in tuple(self._joining):
            wire.close(code, reason)

    def _wire(self, request: web.Request, bytes_max: int) -> WebSocketWire | None:
        transport = request.transport
        return None if transport is None else WebSocketWire(request, transport, bytes_max)

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
        except JournalUnavailable:
            wire.close(CloseCode.UNAVAILABLE, "the space is currently unavailable")
        except Denied as denied:
            _log.info("turned away", extra={"address": address, "error": denied.code})
            wire.close(_CLOSE_FOR.get(denied.code, CloseCode.BAD_JOIN), str(denied))
        else:
            self._joining.discard(wire)
            limits = admission.room.limits
            wire.allow(max(limits.frame_bytes, limits.envelope_bytes))
            await self._let_in(address, WebSocketConnection(admission, wire, self._now, join=join))
            return upgrade
        finally:
            self._joining.discard(wire)
        await wire.ended()
        return upgrade

    async def _let_in(self, address: str, connection: WebSocketConnection) -> None:
        wire, room = connection.wire, connection.room
        if wire.has_ended:
            return  # nobody would see it out
        where = {"space": room.id, "who": connection.who, "connection": connection.id}
        _log.info("connected", extra={**where, "address": address})
        wire.hand_over()
        self._wires.add(wire)
        self._quiet.clear()
        wire.when_ended(lambda: self._see_out(connection))
        try:
            await room.enter(connection)
        except JournalUnavailable:
            wire.close(CloseCode.UNAVAILABLE, "the space is currently unavailable")
        else:
            wire.attach(connection)

    def _see_out(self, connection: WebSocketConnection) -> None:
        connection.outbox.stop()
        connection.room.leave(connection)
        self._wires.discard(connection.wire)
        if not self._wires:
            self._quiet.set()
        where = {"space": connection.room.id, "who": connection.who, "connection": connection.id}
        _log.info("disconnected", extra={**where, "close_code": connection.wire.close_code})

    async def quiet(self) -> None:
        """Wait until no connection is open."""
        await self._quiet.wait()

    def abort_all(self) -> None:
        """Abort every connection."""
        for wire in tuple(self._wires):
            wire.transport.abort()


def _may_join_by_frame(request: web.Request) -> bool:
    """A client that names its space in the URL speaks our way, and must bring its token with the handshake."""
    return "space" not in request.query


def _check_capacity(admission: Admission) -> None:
    room = admission.room
    state = room.space.state  # with the connections of other nodes, and without those that are entering here
    if max(len(room.connections), len(state.connections)) >= room.limits.connections_per_space:
        raise Denied(503, "space_full", "this space has all the connections it may have", retry_after_s=10)
    own = sum(1 for one in room.connections.values() if one.who == admission.who)
    own = max(own, len(state.connected.get(admission.who, ())))
    if own >= room.limits.connections_per_participant:
        raise Denied(
            429, "too_many_connections", f"{admission.who!r} has {own} connections", retry_after_s=10
        )


def _check_claim(admission: Admission, join: compat.JoinFrame) -> None:
    problem = compat.claim_problem(join.claimed, admission.who, admission.room.space.is_known)
    if problem is not None:
        raise Denied(401, "wrong_participant", problem)
