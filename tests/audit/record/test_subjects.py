"""What a sender adds to a payload changes nothing of what the record says: it is read as the space reads it."""

import json
from typing import Any

import pytest
from tests.audit.office import OFFICE, Office, call
from tests.space.table import capabilities

from mew.audit.record.facts import Fact
from mew.protocol.envelope import ParticipantId
from mew.space import Rules, Sent

WHO = ("ann", "bot", "eve", "files")
EVERYONE = Rules(id=OFFICE, profiles={ParticipantId(who): capabilities(["*"]) for who in WHO})


@pytest.fixture
def desk() -> Office:
    table = Office(EVERYONE)
    for who in WHO:
        table.join(who)
    return table


def said(desk: Office, kind: str, payload: Any, **fields: Any) -> Fact:
    """What the record has of it, which was accepted."""
    desk.say("e1", "eve", kind, payload, **fields)
    assert isinstance(desk.entries[-1].event, Sent)
    return desk.facts()[0]


def sent(desk: Office, id: str, payload: bytes, kind: str = "mcp/request") -> Fact:
    """The same, of a payload as it is written."""
    head = {"protocol": "mew/v0.4", "id": id, "from": "eve", "kind": kind, "to": ["files"]}
    raw = json.dumps(head).encode()[:-1] + b',"payload":' + payload + b"}"
    desk.send_batch(raw)
    return desk.facts()[0]


SPOOFS: list[dict[str, Any]] = [
    {"recipient": "files"},
    {"participant_id": "files"},
    {"new_owner": "files"},
    {"stream_id": 7},
    {"capabilities": 5},
    {"capabilities": ["own/*"]},
    {"initial_capabilities": 5},
]


@pytest.mark.parametrize("spoof", SPOOFS, ids=lambda spoof: next(iter(spoof)))
@pytest.mark.parametrize(
    ("kind", "payload", "about"),
    [
        ("capability/grant", {"recipient": "bot", "capabilities": ["mcp/*"], "reason": "why"}, "mcp/*"),
        ("capability/revoke", {"recipient": "bot", "capabilities": ["mcp/*"], "reason": "why"}, "mcp/*"),
        ("space/kick", {"participant_id": "bot", "reason": "why"}, ""),
        (
            "space/invite",
            {"participant_id": "dan", "initial_capabilities": ["mcp/*"], "reason": "why"},
            "mcp/*",
        ),
        ("participant/pause", {"reason": "why"}, ""),
    ],
)
def test_whom_it_concerns_is_whom_the_space_takes_it_for(
    desk: Office, kind: str, payload: dict[str, Any], about: str, spoof: dict[str, Any]
) -> None:
    fact = said(desk, kind, spoof | payload, to=["bot"])
    whom = payload.get("participant_id", "bot")
    assert (fact.about, fact.whom, fact.note) == (about, (whom,), "why")


@pytest.mark.parametrize(
    ("kind", "payload"), [("space/kick", {"participant_id": "bot"}), ("participant/pause", {})]
)
def test_no_size_hides_it(desk: Office, kind: str, payload: dict[str, Any]) -> None:
    fact = said(desk, kind, payload | {"reason": "why", "padding": "x" * 70_000}, to=["bot"])
    assert (fact.whom, fact.note) == (("bot",), "why")


def test_who_is_let_write_to_a_stream_is_named(desk: Office) -> None:
    desk.say("s", "eve", "stream/request", {"direction": "upload"}, to=["gateway"])
    (stream,) = desk.space.state.streams
    given = {"stream_id": stream, "participant_id": "bot", "recipient": "files", "new_owner": "files"}
    fact = said(desk, "stream/grant-write", given)
    assert (fact.about, fact.whom) == (stream, ("bot",))


@pytest.mark.parametrize(
    ("method", "params", "about"),
    [
        ("tools/call", {"name": "delete_all", "uri": 5}, "tools/call:delete_all"),
        ("tools/call", {"uri": "read_file", "name": "delete_all"}, "tools/call:delete_all"),
        ("tools/call", {"uri": "read_file"}, "tools/call"),
        (
            "resources/read",
            {"name": "readme", "uri": "file:///etc/shadow"},
            "resources/read:file:///etc/shadow",
        ),
        ("prompts/get", {"name": "p", "uri": "u"}, "prompts/get:p"),
        ("tools/list", {"name": "delete_all"}, "tools/list"),
        ("tools/call", {"name": 5}, "tools/call"),
    ],
)
def test_one_field_names_what_is_called(desk: Office, method: str, params: Any, about: str) -> None:
    assert said(desk, "mcp/request", {"method": method, "params": params}, to=["files"]).about == about


@pytest.mark.parametrize(
    ("error", "note"),
    [
        ({"code": -1, "message": "no"}, "error -1: no"),
        ({"code": "E1", "message": "boom"}, 'error "E1": boom'),
        ({"code": 1.5}, "error {code: 1.5}"),
        ({"code": 1, "message": ["no"]}, 'error {code: 1, message: ["no"]}'),
        ("boom", 'error "boom"'),
        (False, "error false"),
        (None, "neither a result nor an error"),
    ],
)
def test_an_error_is_one_whatever_it_looks_like(desk: Office, error: Any, note: str) -> None:
    assert said(desk, "mcp/response", {"error": error}, to=["ann"]).note == note


@pytest.mark.parametrize(
    ("payload", "note"),
    [
        ({"reason": "unsafe", "message": "Not in the home folder."}, "unsafe: Not in the home folder."),
        ({"message": "Later."}, "Later."),
        ({"reason": 7, "message": ["x"]}, ""),
    ],
)
def test_a_rejection_is_told_with_its_code_and_its_words(desk: Office, payload: Any, note: str) -> None:
    assert said(desk, "mcp/reject", payload, to=["bot"]).note == note


@pytest.mark.parametrize(
    ("expires_at", "expires"), [("1970-01-01T00:00:02+00:00", 2_000_000), ("soon", 0), (None, 0)]
)
def test_a_proposal_is_told_with_why_and_until_when(desk: Office, expires_at: Any, expires: int) -> None:
    asked = {"method": "ping", "why": "The tests need it.", "expires_at": expires_at}
    found = said(desk, "mcp/proposal", asked)
    assert (found.note, found.expires) == ("The tests need it.", expires)


def test_the_one_grant_that_is_taken_back_is_told_from_a_pattern(desk: Office) -> None:
    desk.say("x/y", "eve", "capability/grant", {"recipient": "bot", "capabilities": ["mcp/*"]})
    pattern = said(desk, "capability/revoke", {"recipient": "bot", "capabilities": ["x/y"]})
    assert (pattern.about, pattern.grant) == ("x/y", "")
    desk.say("e2", "eve", "capability/revoke", {"recipient": "bot", "grant_id": "x/y"})
    fact = desk.facts()[0]
    assert (fact.about, fact.grant) == ("x/y", "x/y")


def test_what_can_be_read_in_two_ways_is_marked(desk: Office) -> None:
    assert said(desk, "mcp/request", call("read"), to=["files"]).note == ""
    twice = b'{"method":"tools/call","params":{"name":"read"},"params":{"name":"delete_all"}}'
    fact = sent(desk, "e2", twice)
    assert fact.about == "tools/call:delete_all"
    assert fact.note.startswith("ambiguous: ")


def test_no_number_hides_what_is_called(desk: Office) -> None:
    long = b'{"method":"tools/call","params":{"n":%b,"name":"delete_all"}}' % (b"1" * 5_000)
    assert sent(desk, "e2", long).about == "tools/call:delete_all"
