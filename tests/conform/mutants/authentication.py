"""Gateways that give something else for a token."""

from typing import Any, Final

import pytest

from mew.gateway.auth.guard import AccessGuard, Admission
from mew.protocol.capability import Capability
from mew.protocol.envelope import Envelope, ParticipantId
from mew.space import Space, holdings, presence
from mew.space.state import signed

from .breaks import Break, Mutant, replaced, wrapping
from .deciding import allowing, judging

__all__ = ["MUTANTS"]


CLAIMS: Final = "access.capabilities_come_from_the_gateway"
SETS: Final = "access.tokens_stand_for_sets"
IDENTITY: Final = "access.capabilities_hang_on_the_identity"
SPACES: Final = "access.a_space_is_open_or_closed"


def believing(claim: Any) -> Break:
    """Who claims something is given everything."""
    right = AccessGuard.admit

    async def admit(self: AccessGuard, request: Any, token: Any, space: Any) -> Admission:
        admission = await right(self, request, token, space)
        if claim(request):
            admission.room.identify(admission.who, (Capability.parse("*"),))
        return admission

    return replaced(AccessGuard, "admit", admit)


def showing(whose: Any) -> Break:
    """A list in the welcome that is another's."""

    def welcome(state: Any, entry: Any, who: Any, *, resumed: Any = None) -> Envelope:
        listed = [one.source for one in holdings.held(state, whose(state, who))]
        payload = {"you": {"id": who, "capabilities": listed}, "participants": []}
        return signed(state, entry, kind="system/welcome", payload=payload, to=(who,))

    return replaced(presence, "welcome", welcome)


def of_the_last() -> Break:
    """Everyone is judged by what the last to come holds."""
    last: list[ParticipantId] = []
    join, held = presence.join, holdings.held

    def joined(state: Any, entry: Any, who: Any, connection: Any, *, resumed: Any) -> Any:
        last.append(who)
        return join(state, entry, who, connection, resumed=resumed)

    def broken(monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(presence, "join", joined)
        monkeypatch.setattr(Space, "held", lambda self, who: held(self.state, last[-1]))
        allowing(lambda envelope: last[-1] == "owner")(monkeypatch)

    return broken


def who_comes_back_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    gone: set[str] = set()

    def leaving(right: Any, state: Any, entry: Any, who: str) -> Any:
        gone.add(who)
        return right(state, entry, who)

    wrapping(presence, "drop", leaving)(monkeypatch)
    judging(lambda space, envelope, refused: None if envelope.sender in gone else refused)(monkeypatch)


MUTANTS: Final = (
    Mutant(
        "authentication.capabilities", CLAIMS, believing(lambda r: "capabilities" in r.query), "this time"
    ),
    Mutant(
        "authentication.capabilities",
        CLAIMS,
        believing(lambda r: r.query.get("role") == "owner"),
        "this time",
    ),
    Mutant(
        "authentication.capabilities", CLAIMS, believing(lambda r: "X-Capabilities" in r.headers), "this time"
    ),
    Mutant(
        "authentication.capabilities",
        CLAIMS,
        showing(lambda state, who: "owner" if state.members[who] > 1 else who),
        "this time",
    ),
    Mutant(
        "authentication.capabilities",
        CLAIMS,
        allowing(lambda e: b'"capabilities"' in bytes(e.payload)),
        "listener may not send mcp/request",
    ),
    Mutant("authentication.capabilities", CLAIMS, showing(lambda state, who: "reader"), "does not list"),
    Mutant(
        "authentication.capabilities",
        CLAIMS,
        showing(lambda state, who: "reader" if who == "listener" else who),
        "which was given neither to it nor to everyone",
    ),
    Mutant("authentication.by-token", SETS, of_the_last(), "may not send"),
    Mutant(
        "authentication.by-token",
        SETS,
        showing(lambda state, who: "peer" if "listener" in state.members and state.members[who] > 1 else who),
        "once others are there",
    ),
    Mutant(
        "authentication.by-identity",
        IDENTITY,
        who_comes_back_is_free,
        "peer-second-token may not send",
    ),
    Mutant(
        "authentication.space-access",
        SPACES,
        wrapping(AccessGuard, "room", lambda right, guard, name: right(guard, "conform")),
        "hears what is said there",
    ),
)
