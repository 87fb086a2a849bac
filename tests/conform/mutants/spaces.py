"""Gateways that mix up their spaces."""

from collections.abc import Callable
from typing import Any, Final

import pytest

from mew.gateway.auth.guard import AccessGuard
from mew.gateway.room.outbox import Outboxes
from mew.gateway.room.room import Room
from mew.gateway.room.streams import FrameRelay
from mew.protocol.errors import CloseCode
from mew.space import Decision, Deliver, Entry, Space, presence
from mew.space.state import SpaceState

from .breaks import Break, Mutant, of, wrapping
from .deciding import judging
from .doors import afterwards, show

__all__ = ["MUTANTS"]

KICK, PRESENCE = "space/kick", "system/presence"
ROOMS: list[Room] = []
EVERYONE: dict[Any, int] = {}


def sharing(name: str) -> Break:
    """Every space has this in common with the others."""
    common: dict[Any, Any] = {}

    def init(right: Any, space: Space, state: Any = None) -> None:
        right(space, SpaceState() if state is None else state)
        setattr(space.state, name, common)

    return wrapping(Space, "__init__", init)


def sharing_outboxes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is connected to one space is connected to all."""
    spaces: list[Outboxes] = []

    def init(right: Any, outboxes: Outboxes) -> None:
        right(outboxes)
        spaces.append(outboxes)

    def add(right: Any, outboxes: Outboxes, connection: Any, outbox: Any, replay: Any) -> None:
        for other in spaces:
            right(other, connection, outbox, replay)  # the first to come by sends what is replayed

    def remove(right: Any, outboxes: Outboxes, connection: Any) -> bytes:
        return b"".join(right(other, connection) for other in spaces)

    wrapping(Outboxes, "__init__", init)(monkeypatch)
    wrapping(Outboxes, "add", add)(monkeypatch)
    wrapping(Outboxes, "remove", remove)(monkeypatch)


def _others(room: Room) -> list[Room]:
    return [one for one in ROOMS if one is not room]


def known(right: Any, room: Room, *given: Any, **named: Any) -> None:
    right(room, *given, **named)
    ROOMS.append(room)


def across(when: Callable[[Any], bool]) -> Break:
    """What fits is shown in the other spaces as well."""

    def then(room: Room, entry: Entry, decision: Decision) -> None:
        if isinstance(decision, Deliver) and when(decision.envelopes[0]):
            for other in _others(room):
                show(other, decision.envelopes.raws[0])

    def broken(monkeypatch: pytest.MonkeyPatch) -> None:
        ROOMS.clear()
        wrapping(Room, "__init__", known)(monkeypatch)
        afterwards(then)(monkeypatch)

    return broken


def frames_across(monkeypatch: pytest.MonkeyPatch) -> None:
    def forward(right: Any, relay: FrameRelay, connection: Any, frame: bytes, **how: Any) -> None:
        right(relay, connection, frame, **how)
        for other in _others(connection.room):
            show(other, frame)

    ROOMS.clear()
    wrapping(Room, "__init__", known)(monkeypatch)
    wrapping(FrameRelay, "forward", forward)(monkeypatch)


def the_first_room(right: Any, guard: AccessGuard, name: Any) -> Room:
    first: Room = right(guard, "conform")
    return first


def in_the_first_alone(space: Space, envelope: Any, refused: Any) -> Any:
    return refused if space.state.rules.id == "conform" else None


def everyones_welcome(right: Any, state: Any, entry: Any, who: Any, **more: Any) -> Any:
    EVERYONE[who] = 1
    own, state.members = state.members, {**EVERYONE, **state.members}
    envelope = right(state, entry, who, **more)
    state.members = own
    return envelope


def kicked_from_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def then(room: Room, entry: Entry, decision: Decision) -> None:
        if not isinstance(decision, Deliver) or decision.envelopes.kinds != (KICK,):
            return
        kicked = decision.envelopes[0].content["participant_id"]
        for connection in [one for other in _others(room) for one in other.connections.values()]:
            if connection.who == kicked:
                connection.close(CloseCode.KICKED, "kicked elsewhere")

    ROOMS.clear()
    wrapping(Room, "__init__", known)(monkeypatch)
    afterwards(then)(monkeypatch)


SEVERAL = "spaces.spaces_are_told_apart_by_their_name"
PARTICIPANTS = "spaces.each_space_has_its_own_participants"
REMOVED = "spaces.removed_from_one_space_is_still_in_the_other"
CAPABILITIES = "spaces.each_space_has_its_own_capabilities"
ISOLATED = "spaces.nothing_crosses_from_one_space_to_another"
STREAMS = "spaces.no_stream_crosses_from_one_space_to_another"
RULES = "spaces.the_rules_hold_in_every_space"

MUTANTS: Final = (
    Mutant(
        "space.several", SEVERAL, wrapping(AccessGuard, "room", the_first_room), "who is in another space"
    ),
    Mutant("space.own-participants", PARTICIPANTS, sharing("members"), "it was in another space before"),
    Mutant(
        "space.own-participants",
        PARTICIPANTS,
        wrapping(presence, "welcome", everyones_welcome),
        "another space",
    ),
    Mutant("space.own-participants", PARTICIPANTS, across(of(PRESENCE)), "another space"),
    Mutant("space.own-participants", REMOVED, kicked_from_all, "guest-"),
    Mutant("space.own-capabilities", CAPABILITIES, sharing("held"), "may not send"),
    Mutant("space.own-capabilities", CAPABILITIES, sharing("grants"), "it is granted in another space"),
    Mutant("space.isolated", ISOLATED, across(of("chat")), "received what was said in another space"),
    Mutant("space.isolated", ISOLATED, sharing_outboxes, "received"),
    Mutant(
        "space.isolated",
        ISOLATED,
        across(lambda e: "listener" in e.to),
        "received what was said in another space",
    ),
    Mutant("space.isolated", STREAMS, frames_across, "received a frame of another space"),
    Mutant("space.isolated", STREAMS, across(of("stream/open")), "was told of a stream in another space"),
    Mutant("space.rules-in-each", RULES, judging(in_the_first_alone), "in the second space"),
)
