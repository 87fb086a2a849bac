"""Gateways that take something else over HTTP."""

import json
from collections.abc import Callable
from typing import Any, Final

import pytest

from mew.gateway.auth.guard import AccessGuard, Admission
from mew.gateway.http import api as http
from mew.gateway.http import schemas as shapes
from mew.gateway.room.admission import Completed, complete
from mew.gateway.room.room import Room
from mew.protocol.envelope import ParticipantId
from mew.protocol.errors import Refusal
from mew.space import ConnectionId, Joined, RefusalDetails, Space

from .breaks import Break, Mutant, replaced, ruled, shown, wrapping
from .deciding import allowing, allowing_again, changed, doubled
from .doors import append

__all__ = ["MUTANTS"]


IDLE: Final = "http_api.who_is_not_connected_may_post"
RULES: Final = "http_api.the_same_rules_hold_over_http"
CHANGES: Final = "http_api.a_change_counts_over_http_too"
WHOLE: Final = "http_api.what_is_posted_is_an_envelope_like_any_other"
BAD: Final = "http_api.what_is_wrong_is_wrong_over_http_too"
EFFECT: Final = "http_api.what_is_posted_has_its_effect"
ABSENT: Final = "http_api.posting_makes_nobody_present"
TOKEN: Final = "http_api.only_ones_own_token_will_do"
RECEIPT: Final = "http_api.an_accepted_envelope_gets_a_receipt"


def posting(first: Callable[[Room, Any, bytes], Any]) -> Break:
    """What comes before an envelope is taken; a refusal ends it."""

    async def post(right: Any, room: Room, who: ParticipantId, received: bytes) -> Any:
        refused = first(room, who, received)
        return refused if isinstance(refused, RefusalDetails) else await right(room, who, received)

    return wrapping(Room, "post", post)


def unjudged(when: Callable[[dict[str, Any]], bool]) -> Break:
    """Some of what comes over HTTP is not judged."""
    posted: set[str] = set()

    def first(room: Room, who: Any, received: bytes) -> None:
        envelope = json.loads(received)
        if isinstance(envelope, dict) and when(envelope):
            posted.add(envelope["id"])

    def broken(monkeypatch: pytest.MonkeyPatch) -> None:
        posting(first)(monkeypatch)
        allowing(lambda envelope: envelope.id in posted)(monkeypatch)

    return broken


def completing(mend: Callable[[dict[str, Any], str], object]) -> Break:
    """Another envelope than was posted, changed in place."""

    def completed(received: bytes, who: ParticipantId, **more: Any) -> Completed:
        try:
            body = json.loads(received)
            mend(body, who)
            received = json.dumps(body).encode()
        except (ValueError, AttributeError, TypeError):
            pass
        return complete(received, who, **more)

    return replaced(http, "complete", completed)


def not_connected(room: Room, who: Any, received: bytes) -> RefusalDetails | None:
    absent = who not in room.space.state.members
    return RefusalDetails(Refusal.NOT_A_MEMBER, "connect first") if absent else None


def joining(room: Room, who: Any, received: bytes) -> None:
    if who.startswith("guest"):
        append(room, Joined(who, ConnectionId(f"http-{who}"), None))


def as_it_was() -> Break:
    """Over HTTP, what one was granted is never taken back."""
    return allowing_again(lambda envelope: not envelope.id.startswith("conform-"))


def only_connected(kind: str) -> Break:
    """It acts only on what came by a connection."""
    act = Space.RULES[kind].act
    assert act is not None

    def acting(state: Any, entry: Any, sent: Any, asked: Any) -> Any:
        return [] if sent.connection is None else act(state, entry, sent, asked)

    return ruled(kind, act=acting)


async def anyones(right: Any, guard: AccessGuard, request: Any, *given: Any) -> Admission:
    """Any token will do, for whoever the path names."""
    admission: Admission = await right(guard, request, *given)
    return Admission(admission.room, request.match_info.get("participant", admission.who))


def trusting(whom: Callable[[Any], bool]) -> Break:
    """Whoever comes like this needs no token."""
    right = AccessGuard.admit

    async def admit(self: AccessGuard, request: Any, token: Any, name: Any) -> Admission:
        named = request.match_info.get("participant")
        if named and whom(token) and token not in ("t-owner", "t-peer", "t-listener"):
            return Admission(self.room(name), named)
        return await right(self, request, token, name)

    return replaced(AccessGuard, "admit", admit)


def receipt(make: Callable[[str, Any], Any]) -> Break:
    return replaced(shapes, "Receipt", lambda id, status, at, *_: make(id, at))


MUTANTS: Final = (
    Mutant("http.injection-offered", IDLE, posting(not_connected), "who is not connected, got 403"),
    Mutant("http.same-capabilities", RULES, unjudged(lambda e: True), "is not allowed and got 200"),
    Mutant(
        "http.same-capabilities",
        RULES,
        unjudged(lambda e: e["from"] == "listener"),
        "of listener is not allowed",
    ),
    Mutant(
        "http.same-capabilities", RULES, unjudged(lambda e: e["kind"] == "Chat"), "Chat {} of reader is not"
    ),
    Mutant("http.same-capabilities", CHANGES, as_it_was(), "that was revoked got 200"),
    Mutant(
        "http.mirrors-websocket", WHOLE, completing(lambda body, who: body.pop("context", 0)), "`context`"
    ),
    Mutant("http.mirrors-websocket", WHOLE, completing(lambda body, who: body.pop("extra", 0)), "`extra`"),
    Mutant(
        "http.mirrors-websocket",
        WHOLE,
        changed(shown("chat"), lambda said: said.update(ts="now")),
        "has the ts 'now'",
    ),
    Mutant("http.mirrors-websocket", WHOLE, doubled(shown("chat")), "2 times"),
    Mutant(
        "http.mirrors-websocket", BAD, completing(lambda body, who: body.update({"from": who})), "got 200"
    ),
    Mutant("http.mirrors-websocket", BAD, completing(lambda body, who: body.pop("protocol", 0)), "mew/v0.3"),
    Mutant(
        "http.mirrors-websocket",
        BAD,
        completing(lambda body, who: body.setdefault("kind", "chat")),
        "got 200",
    ),
    Mutant(
        "http.mirrors-websocket", EFFECT, only_connected("capability/grant"), "one that is posted does not"
    ),
    Mutant(
        "http.mirrors-websocket", EFFECT, only_connected("capability/revoke"), "may not send mcp/proposal"
    ),
    Mutant("http.mirrors-websocket", ABSENT, posting(joining), "is announced"),
    Mutant(
        "http.bearer-token",
        TOKEN,
        wrapping(AccessGuard, "admit", anyones),
        "by owner got 200, not an error status",
    ),
    Mutant(
        "http.bearer-token",
        TOKEN,
        trusting(lambda token: token is None),
        "by nobody got 200, not an error status",
    ),
    Mutant("http.bearer-token", TOKEN, trusting(lambda token: token is not None), "unknown token got 200"),
    Mutant(
        "http.typical-response",
        RECEIPT,
        receipt(lambda id, at: {"id": "msg-1", "status": "accepted"}),
        "`id`",
    ),
    Mutant("http.typical-response", RECEIPT, receipt(lambda id, at: {"id": id, "status": "ok"}), "`status`"),
    Mutant(
        "http.typical-response",
        RECEIPT,
        receipt(lambda id, at: {"id": id, "status": "accepted", "timestamp": at.timestamp()}),
        "`timestamp`",
    ),
    Mutant("http.typical-response", RECEIPT, receipt(lambda id, at: [id]), "not a JSON object"),
)
