"""Presence: join, leave and the welcome (§3.7, §3.8.1)."""

from typing import Any

from mew.protocol.envelope import Envelope, ParticipantId
from mew.protocol.errors import CloseCode
from mew.protocol.kinds import Kind

from . import holdings, streams
from .decisions import Decision, Deliver, Disconnect, Reply
from .entries import ConnectionId, Entry
from .state import SpaceState, signed

__all__ = ["drop", "join", "leave", "leave_node", "rewelcome", "welcome"]


def join(
    state: SpaceState, entry: Entry, who: ParticipantId, connection: ConnectionId, *, resumed: bool | None
) -> list[Decision]:
    if not holdings.is_known(state, who):  # an entry before this one removed it
        code = CloseCode.KICKED if who in state.kicked else CloseCode.BAD_TOKEN
        return [Disconnect((connection,), code, f"{who} does not belong to this space")]
    if connection in state.connections:
        return []
    first = who not in state.members
    state.connect(connection, who)
    state.members[who] = state.members.get(who, 0) + 1
    greeting = welcome(state, entry, who, resumed=resumed)
    decisions: list[Decision] = [Reply(who=who, envelope=greeting, connection=connection)]
    if first:
        state.shut_down.pop(who, None)
        decisions.append(_presence(state, entry, "join", who))
    return decisions


def leave(state: SpaceState, entry: Entry, connection: ConnectionId) -> list[Decision]:
    who = state.disconnect(connection)
    if who is None:
        return []  # removed by an entry before this one
    state.members[who] -= 1
    if state.members[who] > 0:
        return []
    return drop(state, entry, who)


def leave_node(state: SpaceState, entry: Entry, node: str) -> list[Decision]:
    """All connections of a node end, in the order they came."""
    ended = [connection for connection in state.connections if connection.startswith(f"{node}.")]
    return [decision for connection in ended for decision in leave(state, entry, connection)]


def drop(state: SpaceState, entry: Entry, who: ParticipantId) -> list[Decision]:
    """The last connection of `who` is gone: show it, and close the streams it owned."""
    del state.members[who]
    decisions: list[Decision] = [_presence(state, entry, "leave", who)]
    return decisions + streams.close_owned(state, entry, who)


def welcome(state: SpaceState, entry: Entry, who: ParticipantId, *, resumed: bool | None = None) -> Envelope:
    payload: dict[str, Any] = {
        "you": holdings.shown(state, who),
        "participants": [holdings.shown(state, other) for other in state.members if other != who],
        "active_streams": streams.shown_to(state, who),
        "space": {"id": state.rules.id, "name": state.rules.name, "description": state.rules.description},
    }
    if resumed is not None:
        payload["resumed"] = resumed
    return signed(state, entry, kind=Kind.WELCOME, payload=payload, to=(who,))


def rewelcome(state: SpaceState, entry: Entry, who: ParticipantId) -> list[Decision]:
    """What `who` holds has changed: tell it the full list (§5.2: the authoritative one), where it is connected."""
    holdings.changed(state, who)
    if who not in state.members:
        return []
    return [Reply(who=who, envelope=welcome(state, entry, who))]


def _presence(state: SpaceState, entry: Entry, event: str, who: ParticipantId) -> Deliver:
    participant = holdings.shown(state, who) if event == "join" else {"id": who}
    payload = {"event": event, "participant": participant}
    return Deliver.one(signed(state, entry, kind=Kind.PRESENCE, payload=payload))
