"""Gateways that enforce capabilities otherwise."""

import json
from collections.abc import Callable
from typing import Any, Final

import pytest

from mew.gateway.room.ports import RoomConnection
from mew.gateway.room.room import Room
from mew.protocol.capability.clause import Clause
from mew.protocol.envelope import Envelope, ParticipantId
from mew.space import Space, holdings, presence

from .breaks import Break, Mutant, of, replaced, ruled, wrapping
from .deciding import allowing, allowing_again, judging
from .doors import leaking, show, taking

__all__ = ["MUTANTS"]


OBJECTS: Final = "capabilities.capabilities_are_objects_with_patterns"
BLOCKED: Final = "capabilities.what_is_not_allowed_reaches_no_one"
DISGUISED: Final = "capabilities.nothing_gets_round_the_rules"
ALL: Final = "capabilities.every_envelope_is_judged"
CHANGE: Final = "capabilities.a_change_counts_at_once"


def listing(form: Callable[[Any], Any]) -> Break:
    """Welcomes and presence list each capability in this form."""

    def shown(state: Any, who: Any) -> Any:
        return {"id": who, "capabilities": [form(one) for one in holdings.held(state, who)]}

    return replaced(holdings, "shown", shown)


def first_only(count: int) -> Break:
    """So many violations of a participant are refused, and then no more."""
    seen: dict[str, dict[str, int]] = {}

    def when(envelope: Envelope) -> bool:
        own = seen.setdefault(envelope.sender, {})
        return own.setdefault(envelope.id, len(own)) >= count

    return allowing(when)


def on_connections(fits: Callable[[int], bool]) -> Break:
    """Not judged with so many connections."""

    def judge(space: Space, envelope: Envelope, refused: Any) -> Any:
        return None if fits(space.state.members.get(ParticipantId(envelope.sender), 0)) else refused

    return judging(judge)


def who_came_back() -> Break:
    """Not judged on a second life."""
    gone: set[str] = set()
    right = presence.drop

    def drop(state: Any, entry: Any, who: Any) -> Any:
        gone.add(who)
        return right(state, entry, who)

    def broken(monkeypatch: pytest.MonkeyPatch) -> None:
        allowing(lambda envelope: envelope.sender in gone)(monkeypatch)
        monkeypatch.setattr(presence, "drop", drop)

    return broken


def first_wins(raw: bytes) -> bytes:
    """Of a field that is there twice it reads the first, where others read the last."""
    return json.dumps(json.loads(raw, object_pairs_hook=lambda pairs: dict(reversed(pairs)))).encode()


def unread(raw: bytes) -> bytes:
    """It looks for tools by their letters."""
    return raw if b"write_file" in raw else raw.replace(b"wri\\u0074e_file", b"read_file")


def passing_on(right: Any, room: Room, connection: RoomConnection, data: bytes) -> None:
    """What comes in a binary frame is passed on as it is."""
    show(room, data)
    right(room, connection, data)


def at_the_next_join(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is granted counts once its holder connects again."""
    right = presence.join

    def join(state: Any, entry: Any, who: Any, connection: Any, *, resumed: Any) -> Any:
        holdings.changed(state, who)
        return right(state, entry, who, connection, resumed=resumed)

    monkeypatch.setattr(presence, "join", join)
    monkeypatch.setattr(presence, "rewelcome", lambda state, entry, who: [])


MUTANTS: Final = (
    Mutant(
        "capability.patterns", OBJECTS, listing(lambda one: one.source["kind"]), "no object with a `kind`"
    ),
    Mutant(
        "capability.patterns", OBJECTS, listing(lambda one: {"kind": one.source["kind"]}), "does not list its"
    ),
    Mutant(
        "capability.patterns",
        OBJECTS,
        listing(lambda one: {"pattern": one.source}),
        "no object with a `kind`",
    ),
    Mutant(
        "capability.patterns",
        OBJECTS,
        replaced(Clause, "fits_payload", lambda self, document: True),
        "may not send mcp/request",
    ),
    Mutant(
        "capability.patterns", OBJECTS, allowing(lambda e: b"read_file" in bytes(e.payload)), "mcp/proposal"
    ),
    Mutant(
        "capability.blocked",
        BLOCKED,
        leaking(lambda e: True),
        "which reader holds no capability for",
    ),
    Mutant("capability.blocked", BLOCKED, leaking(lambda e: len(e.to) > 1), "holds no capability for"),
    Mutant("capability.blocked", BLOCKED, allowing(lambda e: e.to == (e.sender,)), "holds no capability for"),
    Mutant("capability.blocked", BLOCKED, allowing(of("participant/status")), "holds no capability for"),
    Mutant(
        "capability.enforced-on-all", ALL, first_only(1), "envelope 2 of 24 in a row, mcp/request write_file"
    ),
    Mutant("capability.enforced-on-all", ALL, first_only(6), "in a row"),
    Mutant("capability.enforced-on-all", ALL, allowing_again(), "mcp/request write_file, is not allowed"),
    Mutant("capability.enforced-on-all", ALL, on_connections(lambda count: count > 1), "may not send"),
    Mutant("capability.enforced-on-all", ALL, who_came_back(), "may not send"),
    Mutant(
        "capability.blocked", DISGUISED, taking(first_wins), "received what reader holds no capability for"
    ),
    Mutant(
        "capability.blocked",
        DISGUISED,
        wrapping(Room, "receive_binary", passing_on),
        "received what reader holds no capability for",
    ),
    Mutant("capability.blocked", DISGUISED, taking(unread), "received what reader holds no capability for"),
    Mutant("capability.dynamic", CHANGE, ruled("capability/revoke", act=lambda *_: []), "may not send"),
    Mutant("capability.dynamic", CHANGE, at_the_next_join, "counts only after"),
    Mutant("capability.dynamic", CHANGE, allowing(of("mcp/request", sender="guest")), "may not send"),
)
