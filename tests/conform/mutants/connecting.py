"""Gateways that let in otherwise."""

from collections.abc import Callable
from typing import Any, Final

import pytest

from mew.conform.roles import ROLES
from mew.gateway.auth import guard
from mew.gateway.auth.guard import AccessGuard, Admission, Denied
from mew.gateway.websocket import endpoint as door
from mew.protocol.envelope import ParticipantId
from mew.space import holdings, presence

from .breaks import Break, Mutant, replaced
from .deciding import welcoming

__all__ = ["MUTANTS"]


OPENS: Final = "access.a_token_in_the_header_opens_a_websocket"
WRONG: Final = "access.a_wrong_token_opens_nothing"
WHO: Final = "access.the_token_alone_says_who_one_is"
THERE: Final = "access.the_gateway_knows_who_is_there"
HOLD: Final = "access.the_gateway_knows_what_they_hold_now"


def taking(whose: Callable[[str], str | None]) -> Break:
    """A token that nobody has is somebody's."""
    right = AccessGuard.admit

    async def admit(self: AccessGuard, request: Any, token: Any, space: Any) -> Admission:
        try:
            return await right(self, request, token, space)
        except Denied as denied:
            who = whose(token) if denied.code == "bad_token" else None
            if who is None:
                raise
            return Admission(self.room(space), ParticipantId(who))

    return replaced(AccessGuard, "admit", admit)


def first_of(fits: Callable[[str], bool]) -> str | None:
    return next((name for name in ROLES if fits(f"t-{name}")), None)


def admitting(whom: Callable[[Any, str], str]) -> Break:
    """Another than the token says."""
    right = AccessGuard.admit

    async def admit(self: AccessGuard, request: Any, token: Any, space: Any) -> Admission:
        admission = await right(self, request, token, space)
        return Admission(admission.room, ParticipantId(whom(request, admission.who)))

    return replaced(AccessGuard, "admit", admit)


def in_turn() -> Break:
    """Each connection has an id of its own."""
    came: list[str] = []

    def whom(request: Any, who: str) -> str:
        came.append(who)
        return who if came.count(who) == 1 else "spare-2"

    return admitting(whom)


def empty_is_somebody(monkeypatch: pytest.MonkeyPatch) -> None:
    right = guard.token_of

    def token_of(request: Any) -> str | None:
        is_empty = request.headers.get("Authorization", "").strip() == "Bearer"
        return "t-listener" if is_empty else right(request)

    monkeypatch.setattr(door, "token_of", token_of)


def drop_at_once(state: Any, entry: Any, connection: Any) -> Any:
    """Whoever ends one connection is gone."""
    who = state.disconnect(connection)
    for other in state.connected.get(who, ()):
        state.disconnect(other)
    return [] if who is None else presence.drop(state, entry, who)


def forgetting(state: Any, who: Any) -> None:
    """What it enforces changes, what it shows does not."""
    state.held.pop(who, None)


def never_gone(state: Any, entry: Any, connection: Any) -> Any:
    state.disconnect(connection)
    return []


def listing(listed: Callable[[Any, Any], list[Any]]) -> Break:
    """Another list of participants in the welcome."""
    return welcoming(lambda state, who, said: said.update(participants=listed(state, said["participants"])))


def by_connection(state: Any, listed: Any) -> list[Any]:
    return [holdings.shown(state, who) for who in state.connections.values()]


def everyone_known(state: Any, listed: Any) -> list[Any]:
    return [holdings.shown(state, who) for who in (*state.invited, *state.rules.profiles)]


MUTANTS: Final = (
    Mutant(
        "connect.websocket", OPENS, replaced(door, "token_of", lambda request: None), "is refused: HTTP 401"
    ),
    Mutant(
        "connect.websocket",
        OPENS,
        admitting(lambda request, who: "nobody"),
        "a system/welcome after it connected",
    ),
    Mutant(
        "connect.token-validated",
        WRONG,
        taking(lambda token: "listener"),
        "welcomed somebody with an unknown",
    ),
    Mutant(
        "connect.token-validated",
        WRONG,
        taking(lambda token: first_of(lambda right: right.startswith(token))),
        "welcomed somebody with a token cut short",
    ),
    Mutant(
        "connect.token-validated",
        WRONG,
        taking(lambda token: first_of(lambda right: token.startswith(right))),
        "welcomed somebody with a token with a sign too many",
    ),
    Mutant(
        "connect.token-validated",
        WRONG,
        taking(lambda token: first_of(lambda right: token.lower() == right)),
        "welcomed somebody with a token in other letters",
    ),
    Mutant(
        "connect.token-validated",
        WRONG,
        taking(lambda token: token if token in ROLES else None),
        "welcomed somebody with an id in place of a token",
    ),
    Mutant("connect.token-validated", WRONG, empty_is_somebody, "welcomed somebody with an empty token"),
    Mutant("connect.token-to-id", WHO, admitting(lambda request, who: "owner"), "give the same id, 'owner'"),
    Mutant("connect.token-to-id", WHO, in_turn(), "and then"),
    Mutant(
        "connect.token-to-id",
        WHO,
        admitting(lambda request, who: request.query.get("participant_id", who)),
        "and a claim to be 'owner' one is 'owner', not 'listener'",
    ),
    Mutant(
        "connect.token-to-id",
        WHO,
        admitting(lambda request, who: request.headers.get("X-Participant-Id", who)),
        "and a claim to be 'owner' one is 'owner', not 'listener'",
    ),
    Mutant("connect.state-tracked", THERE, replaced(presence, "leave", never_gone), "welcomes still list it"),
    Mutant("connect.state-tracked", THERE, replaced(presence, "leave", drop_at_once), "0 times, not 1"),
    Mutant("connect.state-tracked", HOLD, replaced(holdings, "changed", forgetting), "a welcome lists"),
    Mutant("connect.state-tracked", THERE, listing(by_connection), "2 times, not 1"),
    Mutant("connect.state-tracked", THERE, listing(everyone_known), "has not connected yet"),
    Mutant("connect.state-tracked", THERE, listing(lambda state, listed: listed[:1]), "0 times, not 1"),
    Mutant(
        "connect.state-tracked",
        THERE,
        listing(lambda state, listed: [{"id": who, "capabilities": []} for who in state.members]),
        "with [], its own says",
    ),
)
