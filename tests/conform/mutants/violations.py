"""Gateways that tell otherwise of a violation."""

from datetime import UTC, datetime
from typing import Any, Final

import pytest
from msgspec.structs import replace

from mew.gateway.room import replies
from mew.gateway.room.ports import RoomConnection
from mew.gateway.room.room import Room
from mew.protocol.codec import encode
from mew.protocol.envelope import Envelope, EnvelopeId
from mew.protocol.kinds import Kind
from mew.space import RefusalDetails, grants, holdings

from .breaks import Break, Mutant, ruled, wrapping
from .doors import arriving, show

__all__ = ["MUTANTS"]


TOLD: Final = "capabilities.a_violator_is_told"
SAYS: Final = "capabilities.the_error_says_what_and_why"
CHANGED: Final = "capabilities.the_error_knows_what_changed"
NOTICE: Final = "capabilities.a_notice_shows_nothing_of_it"


def erring(change: Any) -> Break:
    """Another error than it should be."""
    return wrapping(replies, "error", lambda right, *args, **fields: change(right(*args, **fields)))


def explaining(change: Any) -> Break:
    """Another payload of the error; changed in place."""

    def problem(right: Any, who: Any, space: Any, refused: Any, kind: str) -> Any:
        payload = right(who, space, refused, kind)
        change(payload, space, who)
        return payload

    return wrapping(replies, "problem", problem)


def telling(when: Any) -> Break:
    """Only some are told."""

    def reject(
        right: Any, room: Room, connection: RoomConnection, refused: RefusalDetails, *what: Any
    ) -> None:
        if when(connection.who, what[-1] if what else ""):
            right(room, connection, refused, *what)

    return wrapping(Room, "reject", reject)


def error(
    room: Room,
    connection: RoomConnection,
    refused: RefusalDetails,
    envelope_id: EnvelopeId | None = None,
    kind: str = "",
) -> bytes:
    now, who = datetime.now(UTC), connection.who
    return encode(replies.error(now, who, room.space, refused, envelope_id=envelope_id, kind=kind))


def to_everyone(right: Any, room: Room, connection: RoomConnection, *what: Any) -> None:
    show(room, error(room, connection, *what))


def second_space(right: Any, room: Room, connection: RoomConnection, *what: Any) -> None:
    """The first connection of its sender is told, whichever it came by."""
    first = room.space.connections_of((connection.who,))[:1]
    show(room, error(room, connection, *what), first)


def quoting(room: Room, connection: RoomConnection, text: bytes) -> bytes:
    """Everyone is told, with what was refused."""
    if connection.who == "listener" and b"mcp/request" in text:
        show(room, b'{"kind": "system/error", "payload": {"refused": %s}}' % text)
    return text


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
        telling(lambda who, kind: kind != "stream/request"),
        "stream/request",
    ),
    Mutant("violation.answered", TOLD, telling(lambda who, kind: who != "reader"), "expected that reader"),
    Mutant("violation.answered", TOLD, wrapping(Room, "reject", second_space), "expected that listener"),
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
        wrapping(Room, "reject", to_everyone),
        "received the very system/error",
    ),
    Mutant("violation.announced", NOTICE, arriving(quoting), "was shown what was refused"),
)
