"""Gateways that tell wrongly who comes and goes."""

from collections.abc import Callable
from typing import Any, Final

import pytest
from tests.conform.differing import leave_each_time

from mew.gateway.room.room import Room
from mew.protocol.kinds import Kind
from mew.space import Deliver, grants, holdings, presence

from .breaks import Break, Mutant, Said, of, ruled, wrapping
from .deciding import announced, changed, doubled, dropped, narrowed

__all__ = ["MUTANTS"]

PRESENCE = "system/presence"


def telling(event: str) -> Callable[[Said], bool]:
    return lambda said: said["kind"] == PRESENCE and said["payload"].get("event") == event


def left(change: Callable[[Said], object]) -> Break:
    return changed(telling("leave"), lambda said: change(said["payload"]))


def joined(change: Callable[[Said], object]) -> Break:
    return changed(telling("join"), lambda said: change(said["payload"]))


# Presence.


def count_wrong(right: Any, state: Any, entry: Any, connection: Any) -> Any:
    """Who had two connections is never known to have gone."""
    several = state.members[state.connections[connection]] > 1
    return [state.disconnect(connection)][1:] if several else right(state, entry, connection)


def the_cut_stay(right: Any, room: Room, connection: Any) -> None:
    if connection.wire.close_code != 1006:
        right(room, connection)


def never_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Joins are told once of each, ever."""
    known: set[str] = set()

    def unknown(said: Said) -> bool:
        again = telling("join")(said) and said["payload"]["participant"]["id"] in known
        known.update([said["payload"]["participant"]["id"]] if telling("join")(said) else [])
        return again

    dropped(unknown)(monkeypatch)


def updated(state: Any, entry: Any, sent: Any, asked: Any) -> Any:
    update = announced(state, entry, "update", holdings.shown(state, asked.recipient))
    return [*grants.grant(state, entry, sent, asked), update]


def as_invited(right: Any, state: Any, entry: Any, who: Any, *connection: Any, **how: Any) -> Any:
    """A join lists what somebody was invited with, not what it was granted since."""
    first = next((one.capabilities for one in state.grants.values() if one.recipient == who), ())
    told = announced(state, entry, "join", {"id": who, "capabilities": [one.source for one in first]})
    decisions = right(state, entry, who, *connection, **how)
    return [told if isinstance(one, Deliver) else one for one in decisions]


EVERYONE = "presence.everyone_is_told_who_joins"
GONE = "presence.everyone_is_told_who_leaves"
SECOND = "presence.who_has_another_connection_has_not_left"
AGAIN = "presence.who_had_two_connections_joins_again"
EVENT = "presence.presence_is_join_or_leave"
PARTICIPANT = "presence.presence_has_a_participant"
PARTICIPANT_ID = "presence.presence_names_who_it_is_about"
HELD = "presence.a_join_says_what_the_newcomer_holds"
JOINS, LEAVES = "presence.join", "presence.leave"

MUTANTS: Final = (
    Mutant(JOINS, EVERYONE, dropped(telling("join")), "joined (§3.7)"),
    Mutant(JOINS, EVERYONE, narrowed(of(PRESENCE), lambda e: ["owner", "listener"]), "peer receives"),
    Mutant(JOINS, EVERYONE, doubled(telling("join")), "times that"),
    Mutant(JOINS, EVERYONE, never_again, "joined (§3.7)"),
    Mutant(JOINS, AGAIN, never_again, "is told 0 times that"),
    Mutant(
        LEAVES, SECOND, wrapping(presence, "leave", leave_each_time), "who is there on its second connection"
    ),
    Mutant(LEAVES, SECOND, wrapping(presence, "leave", count_wrong), "left, with its last connection"),
    Mutant(LEAVES, GONE, dropped(telling("leave")), "who closed its connection (§3.7)"),
    Mutant(LEAVES, GONE, narrowed(of(PRESENCE), lambda e: ["owner"]), "listener receives"),
    Mutant(LEAVES, GONE, wrapping(Room, "leave", the_cut_stay), "who broke off its connection (§3.7)"),
    Mutant(LEAVES, GONE, doubled(telling("leave")), "is told 2 times that"),
    Mutant("presence.event", EVENT, joined(lambda told: told.update(event="joined")), "the event ['joined']"),
    Mutant("presence.event", EVENT, left(lambda told: told.pop("event")), "the event [None]"),
    Mutant("presence.event", EVENT, ruled(Kind.GRANT, act=updated), "the event ['update']"),
    Mutant(
        "presence.participant",
        PARTICIPANT,
        left(lambda told: told.update(participant=told["participant"]["id"])),
        "`participant` is not an object",
    ),
    Mutant(
        "presence.participant",
        PARTICIPANT,
        joined(lambda told: told.update(participant_id=told.pop("participant")["id"])),
        "`participant` is not an object",
    ),
    Mutant(
        "presence.participant-id",
        PARTICIPANT_ID,
        left(lambda told: told["participant"].update(name=told["participant"].pop("id"))),
        "`participant.id` is None",
    ),
    Mutant(
        "presence.participant-id",
        PARTICIPANT_ID,
        joined(lambda told: told["participant"].update(id="ws-1")),
        "has that as `participant.id`",
    ),
    Mutant(
        "presence.capabilities",
        HELD,
        joined(lambda told: told["participant"].pop("capabilities")),
        "a join lists None",
    ),
    Mutant("presence.capabilities", HELD, wrapping(presence, "join", as_invited), "its welcome"),
)
