"""Ways in which a gateway may differ from ours and be none the worse."""

import asyncio
import json
from contextlib import suppress
from itertools import count
from typing import Any, Final

import pytest
from aiohttp import web
from msgspec import Raw
from msgspec.structs import replace as struct_replace

from mew.gateway import room, socket
from mew.gateway.guard import Denied
from mew.gateway.outbox import Outboxes
from mew.gateway.pages import Record
from mew.gateway.relay import Relay
from mew.gateway.room import Room
from mew.gateway.socket import SocketDoor
from mew.gateway.websocket import text_frame
from mew.gateway.wire import Upgrade
from mew.protocol.codec import encode, fields_in
from mew.protocol.envelope import EnvelopeId, ParticipantId
from mew.protocol.errors import CloseCode
from mew.protocol.json import encode_json
from mew.protocol.kinds import Kind, Nothing
from mew.space import Deliver, grants, members, presence, space, streams
from mew.space.state import StreamId

from .mutants.breaks import Said

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
    "the_last_counts",
    "the_next_free_id",
]

DELAY_S: Final = 0.001


# What it says, and to whom.


def no_echo(right: Any, self: Room, record: Record) -> None:
    """What one says is not shown to oneself, unless one is addressed."""
    sender, only = ParticipantId(record.sender), record.only
    own = self.space.connections_of((sender,)) if sender not in record.envelope.to else ()
    members = self.space.state.connections.items()
    others = [one for one, who in members if one not in own and (only is None or who in only)]
    self.history.append(record)
    self._outboxes.to(others, text_frame(record.raw))


def no_cause(right: Any, *given: Any, **named: Any) -> Any:
    return right(*given, **named | {"envelope_id": None})


def backwards(right: Any, raw: bytes) -> bytes:
    """The fields of every envelope are in another order."""
    frame: bytes = right(encode_json(dict(reversed(fields_in(raw).items()))))
    return frame


def no_token(right: Any, raw: bytes) -> bytes:
    """Who invites somebody is told so, and no more."""
    frame: bytes = right(encode_json(fields_in(raw) | {"payload": {"status": "created"}}))
    return frame


def more_of_its_own(right: Any, self: Room, entry: Any, answer: Any) -> None:
    """Welcomes are shown to all, and the newcomer is told of its own coming and of something of the gateway's."""
    right(self, entry, answer)
    others = [one for one, guest in self.guests.items() if guest.who != answer.who]
    self._outboxes.to(others, vars(room)["text_frame"](encode(answer.envelope)))
    own = self.space.connections_of((answer.who,))
    joined = presence._presence(self.space.state, entry, "join", answer.who)
    again = struct_replace(joined.envelope, id=EnvelopeId(f"again-{entry.seq}"))
    pulse = {
        "protocol": "mew/v0.4",
        "id": f"pulse-{entry.seq}",
        "from": "system:gateway",
        "kind": "system/pulse",
    }
    for told in (encode(again), encode_json(pulse)):
        self._outboxes.to(own, vars(room)["text_frame"](told))


def in_a_while(right: Any, outboxes: Outboxes) -> None:
    asyncio.get_running_loop().call_later(DELAY_S, right, outboxes)


def opened_by_the_gateway(said: Said) -> bool:
    return (said["kind"], said["from"]) == ("stream/open", "system:gateway")


def bare_stream_open(said: Said) -> None:
    said["payload"] = {"stream_id": said["payload"]["stream_id"]}
    said["from"] = "gateway"


def echoing_frames(right: Any, self: Relay, guest: Any, frame: bytes, *, text: bool) -> None:
    with pytest.MonkeyPatch.context() as briefly:
        briefly.setattr(type(guest), "lenient", True)
        right(self, guest, frame, text=text)


def join_each_time(right: Any, state: Any, entry: Any, who: Any, connection: Any, **how: Any) -> Any:
    """A second connection of somebody is announced as well."""
    decisions = right(state, entry, who, connection, **how)
    again = not any(isinstance(one, Deliver) for one in decisions)
    return [*decisions, presence._presence(state, entry, "join", who)] if again else decisions


def leave_each_time(right: Any, state: Any, entry: Any, connection: Any) -> Any:
    who = state.connections[connection]
    return right(state, entry, connection) or [presence._presence(state, entry, "leave", who)]


def as_doubles(right: Any, raw: bytes) -> bytes:
    """What it passes on it has read and written again, with the numbers that JavaScript has."""
    frame: bytes = right(json.dumps(json.loads(raw, parse_int=_rounded)).encode())
    return frame


def _rounded(digits: str) -> int | float:
    return int(digits) if abs(int(digits)) < 1 << 53 else float(digits)


# Whom it lets in, and whom it cuts off.


def cutting_off(right: Any, self: Room, who: Any, connection: Any, *refused: Any) -> None:
    """Whoever is refused something is told, and disconnected."""
    right(self, who, connection, *refused)
    self.flush()
    if connection in self.guests:
        self.guests[connection].close(CloseCode.FLOODING, "that was refused")


def curt(right: Any, self: Room, guest: Any, received: bytes) -> None:
    """Closes over what it cannot begin to read and what has no kind; an error names an id that is empty."""
    if b"[" * 1_000 in received or b'"kind": ""' in received:
        guest.close(1007, "what is that?")
    elif b'"id": ""' in received:
        own = [connection for connection, one in self.guests.items() if one is guest]
        error: Said = {
            "protocol": "mew/v0.4",
            "id": f"no-{next(_numbers)}",
            "from": "system:gateway",
            "to": [guest.who],
        }
        error |= {"kind": "system/error", "correlation_id": [""], "payload": {"error": "invalid_envelope"}}
        self._outboxes.to(own, vars(room)["text_frame"](encode_json(error)))
        self.flush()
    else:
        right(self, guest, received)


_numbers: Final = count(1)


async def the_last_counts(right: Any, self: Room, guest: Any) -> None:
    """A new connection takes the place of the one there was."""
    for other in [one for one in self.guests.values() if one.who == guest.who]:
        other.close(CloseCode.SHUTDOWN, "you are here again")
        self.depart(other)
    await right(self, guest)


async def strict_about_urls(right: Any, self: SocketDoor, request: web.Request) -> web.StreamResponse:
    if request.query.keys() - {"space"}:
        raise Denied(400, "invalid_query", "there is no such parameter")
    response: web.StreamResponse = await right(self, request)
    return response


async def closed_not_denied(right: Any, self: SocketDoor, request: web.Request) -> web.StreamResponse:
    """Who brings a wrong token is let in to be told so, and then out."""
    with suppress(Denied):
        response: web.StreamResponse = await right(self, request)
        return response
    upgrade = Upgrade(request, socket.SUBPROTOCOL)
    await upgrade.prepare(request)
    wire = self._wire(request, 1 << 16)
    assert wire is not None
    wire.close(CloseCode.BAD_TOKEN, "no")
    await wire.ended()
    return upgrade


def disconnecting(right: Any, self: Room, record: Record) -> None:
    """Who is shut down is disconnected."""
    right(self, record)
    if record.kind == Kind.SHUTDOWN:
        self.flush()
        for guest in [one for one in self.guests.values() if one.who in record.envelope.to]:
            guest.close(CloseCode.SHUTDOWN, "you were shut down")


# What it does, or does not.


def grants_end_at_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    invites: set[str] = set()
    right = space._RULES[Kind.INVITE]

    def restart(state: Any, entry: Any, sent: Any, asked: Any) -> Any:
        given = [one for one in state.grants.values() if one.recipient in sent.envelope.to]
        for one in given:
            if one.id not in invites:
                del state.grants[one.id]
        return grants.settle(state, entry, list(sent.envelope.to))

    def invite(state: Any, entry: Any, sent: Any, asked: Any) -> Any:
        invites.add(sent.envelope.id)
        assert right.act is not None
        return right.act(state, entry, sent, asked)

    monkeypatch.setitem(space._RULES, Kind.RESTART, space._Rule(Nothing, None, restart))
    monkeypatch.setitem(space._RULES, Kind.INVITE, right._replace(act=invite))


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
    return [struct_replace(opened, envelope=struct_replace(opened.envelope, payload=payload))]


def nothing(*_: Any) -> list[Any]:
    return []


async def not_there(*_: Any) -> web.Response:
    raise web.HTTPNotFound
