"""Gateways that tell otherwise of a violation."""

from typing import Any, Final

import pytest
from msgspec.structs import replace

from mew.gateway import answers
from mew.gateway.room import Room
from mew.gateway.websocket import text_frame
from mew.protocol.codec import encode
from mew.protocol.envelope import Envelope
from mew.protocol.kinds import Kind
from mew.space import grants, holdings

from .breaks import Break, Mutant, replaced, ruled

__all__ = ["MUTANTS"]


TOLD: Final = "violations.a_violator_is_told"
SAYS: Final = "violations.the_error_says_what_and_why"
CHANGED: Final = "violations.the_error_knows_what_changed"
NOTICE: Final = "violations.a_notice_shows_nothing_of_it"


def erring(change: Any) -> Break:
    """Another error than it should be."""
    right = answers.error
    return replaced(answers, "error", lambda *args, **fields: change(right(*args, **fields)))


def explaining(change: Any) -> Break:
    """Another payload of the error; changed in place."""
    right = answers.problem

    def problem(who: Any, space: Any, refused: Any, kind: str) -> Any:
        payload = right(who, space, refused, kind)
        change(payload, space, who)
        return payload

    return replaced(answers, "problem", problem)


def telling(when: Any) -> Break:
    """Only some are told."""
    right = Room._refuse

    def refuse(room: Room, who: Any, connection: Any, refused: Any, envelope_id: Any, kind: str) -> None:
        if when(room, who, kind):
            right(room, who, connection, refused, envelope_id, kind)

    return replaced(Room, "_refuse", refuse)


def to_everyone(room: Room, who: Any, connection: Any, refused: Any, envelope_id: Any, kind: str) -> None:
    now = room._shell.now()
    told = answers.error(now, who, room.space, refused, envelope_id=envelope_id, kind=kind)
    room._outboxes.to_all(text_frame(encode(told)))


def elsewhere(room: Room, who: Any, connection: Any, refused: Any, envelope_id: Any, kind: str) -> None:
    """The first connection of its sender is told, whichever it came by."""
    now, first = room._shell.now(), room.space.connections_of((who,))[:1]
    told = answers.error(now, who, room.space, refused, envelope_id=envelope_id, kind=kind)
    room._outboxes.to(first, text_frame(encode(told)))


def quoting() -> Break:
    """Everyone is told, with what was refused."""
    right = Room._take_envelope

    def receive(room: Room, guest: Any, received: bytes) -> None:
        if guest.who == "listener" and b"mcp/request" in received:
            room._outboxes.to_all(
                text_frame(b'{"kind": "system/error", "payload": {"refused": %s}}' % received)
            )
        right(room, guest, received)

    return replaced(Room, "_take_envelope", receive)


def given_silently(state: Any, entry: Any, sent: Any, asked: Any) -> Any:
    grants.give(state, entry, sent, asked.recipient, asked.capabilities)
    holdings.changed(state, asked.recipient)
    return []


def as_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """No new welcome tells of a grant, and an error lists what its sender held when it came."""
    ruled(Kind.GRANT, act=given_silently)(monkeypatch)
    explaining(lambda said, *_: said["your_capabilities"].remove({"kind": "chat/cancel"}))(monkeypatch)


def without_to(error: Envelope) -> Envelope:
    return replace(error, to=())


MUTANTS: Final = (
    Mutant("violation.answered", TOLD, telling(lambda *_: False), "a system/error for its mcp/request"),
    Mutant(
        "violation.answered",
        TOLD,
        telling(lambda room, who, kind: kind != "stream/request"),
        "stream/request",
    ),
    Mutant(
        "violation.answered", TOLD, telling(lambda room, who, kind: who != "reader"), "expected that reader"
    ),
    Mutant("violation.answered", TOLD, replaced(Room, "_refuse", elsewhere), "expected that listener"),
    Mutant("violation.answered", TOLD, erring(without_to), "is not addressed to it: `to` is None"),
    Mutant("violation.answered", TOLD, erring(lambda e: replace(e, to=("owner",))), "`to` is ['owner']"),
    Mutant("violation.answered", TOLD, erring(lambda e: replace(e, sender=e.to[0])), "not from the gateway"),
    Mutant("violation.answered", TOLD, erring(lambda e: replace(e, kind="error")), "a system/error for its"),
    Mutant(
        "violation.payload", SAYS, explaining(lambda said, *_: said.update(error="forbidden")), "`error` of"
    ),
    Mutant(
        "violation.payload", SAYS, explaining(lambda said, *_: said.pop("attempted_kind")), "`attempted_kind`"
    ),
    Mutant(
        "violation.payload",
        SAYS,
        explaining(lambda said, *_: said.update(attempted_kind="mcp/request")),
        "`attempted_kind` of the system/error for a mcp/proposal is 'mcp/request'",
    ),
    Mutant(
        "violation.payload",
        SAYS,
        explaining(lambda said, *_: said.update(your_capabilities=[])),
        "`your_capabilities`",
    ),
    Mutant(
        "violation.payload",
        SAYS,
        explaining(
            lambda said, *_: said.update(your_capabilities=[one["kind"] for one in said["your_capabilities"]])
        ),
        "`your_capabilities`",
    ),
    Mutant(
        "violation.payload",
        CHANGED,
        explaining(lambda said, *_: said["your_capabilities"].remove({"kind": "chat/cancel"})),
        "`your_capabilities`",
    ),
    Mutant("violation.payload", CHANGED, as_at_first, "as before a grant of"),
    Mutant(
        "violation.announced",
        NOTICE,
        replaced(Room, "_refuse", to_everyone),
        "received the very system/error",
    ),
    Mutant("violation.announced", NOTICE, quoting(), "was shown what was refused"),
)
