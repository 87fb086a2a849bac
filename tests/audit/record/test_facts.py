"""What the record says of an entry, and of what the gateway said because of it."""

from typing import Any

import pytest
from tests.audit.kept import chat, record_of
from tests.audit.office import Office, call
from tests.space.table import Table, capabilities, envelope_of

from mew.audit.record.facts import CONFIGURED, IDENTIFIED, REFUSED_LATE, Fact, facts_of
from mew.protocol.envelope import GATEWAY, ParticipantId
from mew.protocol.envelopes import Envelopes
from mew.protocol.errors import Refusal
from mew.protocol.kinds import is_talk
from mew.space import Identified, Rules, Sent

EVERYTHING = Rules(
    id="desk",
    profiles={ParticipantId("ann"): capabilities(["*"]), ParticipantId("bot"): capabilities(["chat"])},
)


@pytest.fixture
def desk() -> Office:
    return Office(EVERYTHING)


def only(desk: Office) -> Fact:
    (fact,) = desk.facts()
    return fact


@pytest.mark.parametrize(
    "kind", ["chat", "chat/acknowledge", "reasoning/thought", "participant/status", "own/kind"]
)
def test_what_was_merely_said_is_not_in_the_record(desk: Office, kind: str) -> None:
    assert is_talk(kind)
    desk.say("e1", "ann", kind, {"text": "hi"})
    assert desk.facts() == []


def test_unless_it_was_refused(desk: Office) -> None:
    desk.say("p", "ann", "participant/pause", {}, to=["bot"])
    desk.say("e1", "bot", "chat", {"text": "hi"})
    assert (only(desk).kind, only(desk).refusal, only(desk).who) == ("chat", "paused", "bot")


@pytest.mark.parametrize(
    ("kind", "payload", "about", "whom", "note"),
    [
        ("mcp/request", call("write", path="/"), "tools/call:write", ("bot",), ""),
        (
            "mcp/proposal",
            {"method": "resources/read", "params": {"uri": "a:b"}},
            "resources/read:a:b",
            ("bot",),
            "",
        ),
        ("mcp/request", {"method": "tools/list"}, "tools/list", ("bot",), ""),
        ("mcp/request", {"method": "tools/call", "params": [1]}, "tools/call", ("bot",), ""),
        ("mcp/request", {"method": 5}, "", ("bot",), ""),
        ("mcp/response", {"error": {"code": -1, "message": "no"}}, "", ("bot",), "error -1: no"),
        ("mcp/response", {"result": {"isError": True}}, "", ("bot",), "the tool failed"),
        ("mcp/response", {"result": [1]}, "", ("bot",), ""),
        ("mcp/reject", {"reason": "unsafe"}, "", ("bot",), "unsafe"),
        ("participant/pause", {"reason": "lunch"}, "", ("bot",), "lunch"),
        ("stream/request", {"direction": "upload", "description": "d"}, "", ("bot",), ""),
    ],
)
def test_an_envelope_says_what_it_is_about_and_why(
    desk: Office, kind: str, payload: Any, about: str, whom: tuple[str, ...], note: str
) -> None:
    desk.say("e1", "ann", kind, payload, to=["bot"], names=["a", "b"])
    fact = desk.facts()[0]
    assert (fact.kind, fact.who, fact.id, fact.n) == (kind, "ann", "e1", 0)
    assert (fact.about, fact.whom, fact.note) == (about, whom, note)
    assert fact.causes == ("a", "b")
    assert fact.time == desk.now


def test_a_grant_says_what_is_given_to_whom(desk: Office) -> None:
    given = {
        "recipient": "bot",
        "capabilities": ["mcp/*", {"kind": "chat", "to": "ann"}],
        "reason": "why not",
    }
    desk.say("g", "ann", "capability/grant", given, to=["bot"])
    assert only(desk).about == 'mcp/*, {"kind":"chat","to":"ann"}'
    assert only(desk).whom == ("bot",)
    desk.say("r", "ann", "capability/revoke", {"recipient": "bot", "grant_id": "g"})
    assert (only(desk).about, only(desk).whom) == ("g", ("bot",))


def test_of_many_capabilities_the_first_are_named(desk: Office) -> None:
    given = {"recipient": "bot", "capabilities": [f"own/{n}" for n in range(20)]}
    desk.say("g", "ann", "capability/grant", given)
    assert only(desk).about.endswith("own/15 and 4 more")


def test_what_the_gateway_says_is_in_the_record(desk: Office) -> None:
    desk.join("bot")
    fact = only(desk)
    assert (fact.n, fact.kind, fact.who, fact.about, fact.whom) == (
        1,
        "system/presence",
        GATEWAY,
        "join",
        ("bot",),
    )


def test_each_envelope_of_a_batch_has_its_own_number_and_talk_has_none(desk: Office) -> None:
    request = envelope_of("ann", "mcp/request", call("read"), id="r")[1]
    grant = envelope_of(
        "ann", "capability/grant", {"recipient": "bot", "capabilities": ["mcp/*"], "ttl_seconds": 1}, id="g"
    )[1]
    desk.send_batch(chat("c", "ann", "hi"), request, grant)
    assert [(fact.seq, fact.n, fact.id) for fact in desk.facts()] == [(3, 0, "r"), (4, 0, "g")]


def test_what_is_refused_at_its_place_in_the_order_is_told_from_what_is_accepted() -> None:
    """Several nodes: one judged a batch against a state that another has changed meanwhile."""
    table = Table(EVERYTHING)
    raws = (
        chat("c", "bot", "hi"),
        envelope_of("bot", "mcp/request", call("read"), id="r")[1],
        chat("d", "bot", "ho"),
    )
    decided = table.apply(Sent(Envelopes.decode(raws), (None,) * 3))
    facts = facts_of(record_of(table.entries[-1], decided))
    assert [(fact.seq, fact.id, fact.refusal, fact.about) for fact in facts] == [
        (3, "r", REFUSED_LATE, "tools/call:read")
    ]


def test_what_was_refused_before_the_log_has_what_was_lacking(desk: Office) -> None:
    desk.violate("bot", "mcp/request", "mcp/request:tools/call:write")
    assert (only(desk).about, only(desk).refusal) == ("tools/call:write", "capability_violation")
    desk.violate("bot", "space/kick", refusal=Refusal.RATE_LIMITED)
    assert (only(desk).about, only(desk).refusal) == ("", "rate_limited")


def test_the_operator_and_who_vouches_are_in_it(desk: Office) -> None:
    assert (only(desk).kind, only(desk).who, only(desk).whom) == (CONFIGURED, GATEWAY, ("ann", "bot"))
    desk.apply(Identified(ParticipantId("zoe"), ()))
    assert (only(desk).kind, only(desk).whom) == (IDENTIFIED, ("zoe",))


def test_a_connection_and_time_say_nothing_by_themselves(desk: Office) -> None:
    desk.join("bot")
    desk.join("bot", "second")
    assert desk.facts() == []
    desk.wait(1)
    assert desk.facts() == []


def test_two_that_ask_for_the_same_have_the_same_digest(desk: Office) -> None:
    desk.say("p", "ann", "mcp/proposal", call("read", path="/a", n=1))
    proposed = only(desk).digest
    asked = {"jsonrpc": "2.0", "id": 7, "params": {"arguments": {"n": 1.0, "path": "/a"}, "name": "read"}}
    desk.say("r", "ann", "mcp/request", {**asked, "method": "tools/call"})
    assert only(desk).digest == proposed
    desk.say("s", "ann", "mcp/request", call("read", path="/b", n=1))
    assert only(desk).digest != proposed


def test_long_texts_are_cut(desk: Office) -> None:
    desk.say("r", "ann", "mcp/reject", {"reason": "x" * 60_000})
    assert len(only(desk).note) == 500
    desk.say("s", "ann", "mcp/reject", {"reason": "x" * 70_000})
    assert only(desk).note == ""
