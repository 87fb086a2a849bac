"""Gateways that mix up their spaces."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

import pytest

from mew.gateway.guard import Guard
from mew.gateway.outbox import Outboxes
from mew.gateway.pages import Record
from mew.gateway.relay import Relay
from mew.gateway.room import Room
from mew.gateway.websocket import text_frame
from mew.protocol.errors import CloseCode
from mew.space import Sent, Space, presence
from mew.space.state import SpaceState

from .breaks import Break, Mutant, of, wrapping

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


def sharing_outboxes() -> Break:
    boxes: dict[Any, Any] = {}

    def init(right: Any, outboxes: Outboxes) -> None:
        right(outboxes)
        outboxes._boxes = boxes

    return wrapping(Outboxes, "__init__", init)


def _others(room: Room) -> list[Room]:
    return [one for one in ROOMS if one is not room]


def known(right: Any, room: Room, *given: Any, **named: Any) -> None:
    right(room, *given, **named)
    ROOMS.append(room)


def across(when: Callable[[Any], bool]) -> Break:
    """What fits is shown in the other spaces as well."""

    def show(right: Any, room: Room, record: Record) -> None:
        right(room, record)
        for other in _others(room) if when(record.envelope) else ():
            other._outboxes.to_all(text_frame(record.raw))
            asyncio.get_running_loop().call_soon(other.flush)

    def broken(monkeypatch: pytest.MonkeyPatch) -> None:
        ROOMS.clear()
        wrapping(Room, "__init__", known)(monkeypatch)
        wrapping(Room, "_show", show)(monkeypatch)

    return broken


def frames_across(monkeypatch: pytest.MonkeyPatch) -> None:
    def take(right: Any, relay: Relay, guest: Any, frame: bytes, **how: Any) -> None:
        right(relay, guest, frame, **how)
        for other in _others(guest.room):
            other._outboxes.to_all(text_frame(frame))
            asyncio.get_running_loop().call_soon(other.flush)

    ROOMS.clear()
    wrapping(Room, "__init__", known)(monkeypatch)
    wrapping(Relay, "take", take)(monkeypatch)


def the_first_room(right: Any, guard: Guard, name: Any) -> Room:
    return next(iter(guard._rooms.values()))


def in_the_first_alone(right: Any, space: Space, at: Any, envelope: Any, **how: Any) -> Any:
    return right(space, at, envelope, **how) if space.state.rules.id == "conform" else None


def everyones_welcome(right: Any, state: Any, entry: Any, who: Any, **more: Any) -> Any:
    EVERYONE[who] = 1
    own, state.members = state.members, {**EVERYONE, **state.members}
    envelope = right(state, entry, who, **more)
    state.members = own
    return envelope


def kicked_from_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def apply(right: Any, room: Room, entry: Any) -> None:
        right(room, entry)
        if not isinstance(entry.event, Sent) or entry.event.envelope.kind != KICK:
            return
        kicked = entry.event.envelope.content["participant_id"]
        for guest in [guest for other in _others(room) for guest in other.guests.values()]:
            if guest.who == kicked:
                guest.close(CloseCode.KICKED, "kicked elsewhere")

    ROOMS.clear()
    wrapping(Room, "__init__", known)(monkeypatch)
    wrapping(Room, "_apply", apply)(monkeypatch)


SEVERAL = "spaces.spaces_are_told_apart_by_their_name"
PARTICIPANTS = "spaces.each_space_has_its_own_participants"
REMOVED = "spaces.removed_from_one_space_is_still_in_the_other"
CAPABILITIES = "spaces.each_space_has_its_own_capabilities"
ISOLATED = "spaces.nothing_crosses_from_one_space_to_another"
STREAMS = "spaces.no_stream_crosses_from_one_space_to_another"
RULES = "spaces.the_rules_hold_in_every_space"

MUTANTS: Final = (
    Mutant("space.several", SEVERAL, wrapping(Guard, "room", the_first_room), "who is in another space"),
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
    Mutant("space.isolated", ISOLATED, sharing_outboxes(), "received"),
    Mutant(
        "space.isolated",
        ISOLATED,
        across(lambda e: "listener" in e.to),
        "received what was said in another space",
    ),
    Mutant("space.isolated", STREAMS, frames_across, "received a frame of another space"),
    Mutant("space.isolated", STREAMS, across(of("stream/open")), "was told of a stream in another space"),
    Mutant(
        "space.rules-in-each", RULES, wrapping(Space, "refusal", in_the_first_alone), "in the second space"
    ),
)
