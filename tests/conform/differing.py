"""Ways in which a gateway may differ from ours and be none the worse."""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any, Final

import pytest
from aiohttp import web
from msgspec import Raw
from msgspec.structs import replace as struct_replace

from mew.gateway.auth.guard import Denied
from mew.gateway.history.recent import RecentHistory
from mew.gateway.room.outbox import Outboxes
from mew.gateway.room.ports import RoomConnection
from mew.gateway.room.rate_limit import RateLimiter
from mew.gateway.room.room import Room
from mew.gateway.room.streams import FrameRelay
from mew.gateway.websocket.endpoint import SUBPROTOCOL, WebSocketEndpoint
from mew.gateway.websocket.wire import Upgrade, WebSocketWire
from mew.journal.port import Delivered
from mew.protocol.codec import encode, fields_in
from mew.protocol.envelope import ParticipantId
from mew.protocol.errors import CloseCode
from mew.protocol.json import encode_json
from mew.protocol.kinds import Kind
from mew.space import (
    Audiences,
    Decision,
    Deliver,
    Disconnect,
    Entry,
    Reply,
    Space,
    grants,
    holdings,
    members,
    streams,
)
from mew.space.state import StreamId

from .mutants.breaks import Said, ruled, wrapping
from .mutants.deciding import announced, deciding
from .mutants.doors import show

__all__ = [
    "as_doubles",
    "backwards",
    "bare_stream_open",
    "closed_not_denied",
    "curt",
    "cutting_off",
    "disconnecting",
    "echoing_frames",
    "grants_end_at_a_restart",
    "in_a_while",
    "join_each_time",
    "kicked_for_a_moment",
    "leave_each_time",
    "more_of_its_own",
    "no_cause",
    "no_echo",
    "no_token",
    "not_there",
    "nothing",
    "opened_by_the_gateway",
    "strict_about_urls",
    "taking_back_nothing",
    "the_last_counts",
    "the_next_free_id",
]

DELAY_S: Final = 0.001


# What it says, and to whom.


def no_echo(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one says is not shown to oneself, unless one is addressed; it can be fetched all the same."""
    audiences: dict[str, Audiences | None] = {}

    def narrow(space: Space, decision: Decision) -> list[Decision]:
        if not isinstance(decision, Deliver):
            return [decision]
        (envelope_id,), (sender,) = decision.envelopes.ids, decision.envelopes.senders
        audiences[envelope_id] = decision.only
        if sender in decision.envelopes.to[0]:
            return [decision]
        whom = decision.only[0] if decision.only is not None else None
        others = tuple(who for who in (space.state.members if whom is None else whom) if who != sender)
        return [struct_replace(decision, only=(others,))]

    def append(right: Any, history: RecentHistory, delivered: Delivered, size: int) -> None:
        right(history, struct_replace(delivered, only=audiences.pop(delivered.ids[0])), size)

    deciding(narrow)(monkeypatch)
    wrapping(RecentHistory, "append", append)(monkeypatch)


def no_cause(right: Any, *given: Any, **named: Any) -> Any:
    return right(*given, **named | {"envelope_id": None})


def backwards(right: Callable[[bytes], bytes], raw: bytes) -> bytes:
    """The fields of every envelope are in another order."""
    return right(encode_json(dict(reversed(fields_in(raw).items()))))


def no_token(said: Said) -> None:
    """Who invites somebody is told so, and no more."""
    if said["kind"] == Kind.INVITE_ACK:
        said["payload"] = {"status": "created"}


def more_of_its_own(room: Room, entry: Entry, decision: Decision) -> None:
    """Welcomes are shown to all, and the newcomer is told of its own coming and of something of the gateway's."""
    if not isinstance(decision, Reply):
        return
    state, own = room.space.state, room.space.connections_of((decision.who,))
    show(room, encode(decision.envelope), but=own)
    joined = announced(state, entry, "join", holdings.shown(state, decision.who)).envelopes[0]
    again = struct_replace(joined, id=f"again-{entry.seq}")
    pulse = {
        "protocol": "mew/v0.4",
        "id": f"pulse-{entry.seq}",
        "from": "system:gateway",
        "kind": "system/pulse",
    }
    for told in (encode(again), encode_json(pulse)):
        show(room, told, own)


def in_a_while(right: Any, outboxes: Outboxes) -> None:
    asyncio.get_running_loop().call_later(DELAY_S, right, outboxes)


def opened_by_the_gateway(said: Said) -> bool:
    return (said["kind"], said["from"]) == ("stream/open", "system:gateway")


def bare_stream_open(said: Said) -> None:
    said["payload"] = {"stream_id": said["payload"]["stream_id"]}
    said["from"] = "gateway"


def echoing_frames(
    right: Any, relay: FrameRelay, connection: RoomConnection, frame: bytes, **how: Any
) -> None:
    with pytest.MonkeyPatch.context() as briefly:
        briefly.setattr(type(connection), "lenient", True)
        right(relay, connection, frame, **how)


def join_each_time(right: Any, state: Any, entry: Any, who: Any, connection: Any, **how: Any) -> Any:
    """A second connection of somebody is announced as well."""
    decisions = right(state, entry, who, connection, **how)
    again = not any(isinstance(one, Deliver) for one in decisions)
    return [*decisions, announced(state, entry, "join", holdings.shown(state, who))] if again else decisions


def leave_each_time(right: Any, state: Any, entry: Any, connection: Any) -> Any:
    who = state.connections[connection]
    return right(state, entry, connection) or [announced(state, entry, "leave", {"id": who})]


def as_doubles(right: Callable[[bytes], bytes], raw: bytes) -> bytes:
    """What it passes on it has read and written again, with the numbers that JavaScript has."""
    return right(json.dumps(json.loads(raw, parse_int=_rounded)).encode())


def _rounded(digits: str) -> int | float:
    return int(digits) if abs(int(digits)) < 1 << 53 else float(digits)


# Whom it lets in, and whom it cuts off.


def cutting_off(right: Any, room: Room, connection: RoomConnection, *refused: Any) -> None:
    """Whoever is refused something is told, and disconnected."""
    connection.refusal_limiter = RateLimiter(per_second=1, burst=0)
    right(room, connection, *refused)


def curt(room: Room, connection: RoomConnection, text: bytes) -> bytes | None:
    """Closes over what it cannot begin to read and what has no kind; an error names an id that is empty."""
    if b"[" * 1_000 in text or b'"kind": ""' in text:
        connection.close(1007, "what is that?")
        return None
    if b'"id": ""' in text:
        error: Said = {
            "protocol": "mew/v0.4",
            "id": f"no-{next(_numbers)}",
            "from": "system:gateway",
            "to": [connection.who],
        }
        error |= {"kind": "system/error", "correlation_id": [""], "payload": {"error": "invalid_envelope"}}
        show(room, encode_json(error), (connection.id,))
        return None
    return text


_numbers: Final = count(1)


async def the_last_counts(right: Any, room: Room, connection: RoomConnection) -> None:
    """A new connection takes the place of the one there was."""
    for other in [one for one in room.connections.values() if one.who == connection.who]:
        other.close(CloseCode.SHUTDOWN, "you are here again")
        room.leave(other)
    await right(room, connection)


async def strict_about_urls(right: Any, self: WebSocketEndpoint, request: web.Request) -> web.StreamResponse:
    if request.query.keys() - {"space"}:
        raise Denied(400, "invalid_query", "there is no such parameter")
    response: web.StreamResponse = await right(self, request)
    return response


async def closed_not_denied(right: Any, self: WebSocketEndpoint, request: web.Request) -> web.StreamResponse:
    """Who brings a wrong token is let in to be told so, and then out."""
    with suppress(Denied):
        response: web.StreamResponse = await right(self, request)
        return response
    upgrade = Upgrade(request, SUBPROTOCOL)
    await upgrade.prepare(request)
    assert request.transport is not None
    wire = WebSocketWire(request, request.transport, 1 << 16)
    wire.close(CloseCode.BAD_TOKEN, "no")
    await wire.ended()
    return upgrade


def disconnecting(space: Space, decision: Decision) -> list[Decision]:
    """Who is shut down is disconnected."""
    if not isinstance(decision, Deliver) or decision.envelopes.kinds != (Kind.SHUTDOWN,):
        return [decision]
    whom = tuple(map(ParticipantId, dict.fromkeys(decision.envelopes.to[0])))
    connections = tuple(space.connections_of(whom))
    return [decision, Disconnect(connections, CloseCode.SHUTDOWN, "you were shut down")]


# What it does, or does not.


def grants_end_at_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    invites: set[str] = set()

    def restart(state: Any, entry: Any, sent: Any, asked: Any) -> Any:
        given = [one for one in state.grants.values() if one.recipient in sent.envelope.to]
        for one in given:
            if one.id not in invites:
                del state.grants[one.id]
        return grants.settle(state, entry, list(sent.envelope.to))

    def invite(state: Any, entry: Any, sent: Any, asked: Any) -> Any:
        invites.add(sent.envelope.id)
        return members.invite(state, entry, sent, asked)

    ruled(Kind.RESTART, act=restart)(monkeypatch)
    ruled(Kind.INVITE, act=invite)(monkeypatch)


def taking_back_nothing(right: Any, state: Any, entry: Any, lost: Any, **how: Any) -> Any:
    """What somebody gave on stays with whom it was given to."""
    for who in lost:
        holdings.changed(state, who)
    return [], list(lost)


def kicked_for_a_moment(state: Any, entry: Any, sent: Any, asked: Any) -> Any:
    """Who was invited and is kicked is out, and may come again."""
    invitation = state.invited.get(asked.participant_id)
    decisions = members.kick(state, entry, sent, asked)
    if invitation is not None:
        state.invited[asked.participant_id] = invitation
        del state.dead_tokens[invitation.token_hash]
    return decisions


def the_next_free_id(state: Any, entry: Any, sent: Any, asked: Any) -> Any:
    """A stream has the lowest number that no open one has."""
    free = next(name for number in count(1) if (name := f"stream-{number}") not in state.streams)
    (opened,) = streams.request(state, entry, sent, asked)
    assert isinstance(opened, Deliver)
    _, stream = state.streams.popitem()
    state.streams[free] = struct_replace(stream, id=StreamId(free))
    payload = Raw(encode_json(state.streams[free].shown()))
    return [Deliver.one(struct_replace(opened.envelopes[0], payload=payload))]


def nothing(*_: Any) -> list[Any]:
    return []


async def not_there(*_: Any) -> web.Response:
    raise web.HTTPNotFound
