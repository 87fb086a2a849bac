"""Clients of the TypeScript implementation (design §3.3): how they join, and what is filled in for them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mew.gateway.room.admission import admit
from mew.gateway.websocket.compat import JoinFrame, complete, is_heartbeat, read_join
from mew.protocol.envelope import Envelope, ParticipantId
from mew.protocol.errors import ProtocolError, Refusal

ANN = ParticipantId("ann")
TS = "2025-08-26T14:00:00+00:00"


def completed(said: dict[str, Any], claimed: str | None = None) -> dict[str, Any]:
    whole = complete(json.dumps(said).encode(), ANN, claimed, new_id="new", ts=TS)
    fields: dict[str, Any] = json.loads(whole)
    return fields


def admitted(said: dict[str, Any], claimed: str | None = None) -> Envelope:
    return admit(json.dumps(completed(said, claimed)).encode(), ANN, bytes_max=10_000)


# The join.


@pytest.mark.parametrize("name", ["participantId", "participant_id", "participant"])
@pytest.mark.parametrize(
    "form",
    [
        lambda fields: {"type": "join", **fields},
        lambda fields: {"kind": "system/join", **fields},
        lambda fields: {"kind": "system/join", "payload": fields},
        lambda fields: {"protocol": "mew/v0.4", "id": "1", "kind": "system/join", "payload": fields},
    ],
)
def test_a_join_has_many_forms(form: Any, name: str) -> None:
    said = form({"space": "lab", "token": "t0", name: "ann", "capabilities": []})
    assert read_join(json.dumps(said).encode()) == JoinFrame("lab", "t0", "ann")


def test_a_join_may_leave_out_its_space_and_name() -> None:
    assert read_join(b'{"type":"join","token":"t0"}') == JoinFrame(None, "t0", None)
    assert read_join(b'{"type":"join","token":"t0","space":"","participantId":null}') == JoinFrame(
        None, "t0", None
    )


def test_the_payload_says_it_better_than_the_top() -> None:
    said = {"kind": "system/join", "space": "a", "token": "x", "payload": {"space": "b", "token": "y"}}
    assert read_join(json.dumps(said).encode()) == JoinFrame("b", "y", None)


def test_the_first_name_that_is_one_counts() -> None:
    said = {"type": "join", "token": "t0", "participantId": 7, "participant_id": "ann", "participant": "bob"}
    assert read_join(json.dumps(said).encode()).claimed == "ann"


@pytest.mark.parametrize(
    "received",
    [
        b"",
        b"\xff",
        b"null",
        b"[]",
        b'"join"',
        b"{}",
        b'{"type":"leave","token":"t0"}',
        b'{"kind":"chat","payload":{"token":"t0"}}',
        b'{"type":"join"}',
        b'{"type":"join","token":""}',
        b'{"type":"join","token":5}',
        b'{"type":"join","token":null}',
        b'{"kind":"system/join","payload":{}}',
        b'{"kind":"system/join","payload":"t0"}',
        b"[" * 10_000,
    ],
)
def test_anything_else_is_no_join(received: bytes) -> None:
    with pytest.raises(ProtocolError) as caught:
        read_join(received)
    assert "t0" not in str(caught.value)


@given(st.binary(max_size=32))
def test_no_first_frame_raises_anything_but_protocol_error(received: bytes) -> None:
    with pytest.raises(ProtocolError):
        read_join(received)


# Envelopes.


def test_a_bare_envelope_is_filled_in() -> None:
    assert completed({"kind": "chat", "payload": {"text": "hi"}}) == {
        "protocol": "mew/v0.4",
        "id": "new",
        "ts": TS,
        "from": "ann",
        "kind": "chat",
        "payload": {"text": "hi"},
    }
    assert admitted({"kind": "chat"}).id == "new"


@pytest.mark.parametrize("field", ["protocol", "id", "ts", "from"])
def test_each_field_that_is_missing_is_filled_in(field: str) -> None:
    whole = {"protocol": "mew/v0.4", "id": "1", "ts": TS, "from": "ann", "kind": "chat", "extra": [1]}
    part = {name: value for name, value in whole.items() if name != field}
    assert completed(part) == whole | ({"id": "new"} if field == "id" else {})


def test_a_whole_envelope_stays_as_it_came() -> None:
    received = (
        b'{ "from":"ann", "id":"1","protocol":"mew/v0.4", "kind":"chat","ts":"x","payload":{"n":1.50} }'
    )
    assert complete(received, ANN, "ann", new_id="new", ts=TS) is received


def test_a_lone_correlation_id_becomes_an_array() -> None:
    assert completed({"kind": "mcp/response", "correlation_id": "e1"})["correlation_id"] == ["e1"]
    assert completed({"kind": "mcp/response", "correlation_id": ["e1"]})["correlation_id"] == ["e1"]
    assert admitted({"kind": "mcp/response", "correlation_id": "e1"}).correlation_id == ("e1",)


def test_the_id_a_client_claimed_is_read_as_its_own() -> None:
    assert completed({"kind": "chat", "from": "client-1234"}, "client-1234")["from"] == "ann"
    assert admitted({"kind": "chat", "from": "client-1234"}, "client-1234").sender == "ann"


@pytest.mark.parametrize("claimed", [None, "ann", "client-1234"])
def test_any_other_foreign_sender_is_left_to_be_refused(claimed: str | None) -> None:
    assert completed({"kind": "chat", "from": "bob"}, claimed)["from"] == "bob"
    with pytest.raises(ProtocolError) as caught:
        admitted({"kind": "chat", "from": "bob"}, claimed)
    assert caught.value.refusal is Refusal.WRONG_SENDER


@pytest.mark.parametrize(
    "said",
    [
        {"kind": "chat", "id": 5},
        {"kind": "chat", "from": 5},
        {"kind": "chat", "from": None},
        {"kind": "chat", "ts": 1_756_216_800},
        {"kind": "chat", "to": "bob"},
        {"kind": "chat", "correlation_id": 5},
        {"kind": "chat", "payload": "hi"},
        {"payload": {}},
    ],
)
def test_what_is_wrong_is_left_to_be_refused(said: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError) as caught:
        admitted(said)
    assert caught.value.refusal is Refusal.MALFORMED


@pytest.mark.parametrize(
    "received",
    [b"[]", b"5", b'"text"', b"null"],
)
def test_what_is_no_envelope_stays_as_it_came(received: bytes) -> None:
    assert complete(received, ANN, None, new_id="new", ts=TS) is received


VALUES = b'"x":{"a":1,"a":2},"n":1.10,"big":1e2,"huge":1e999,"payload":{ "b": [3,  4.0], "b": "\\u00e9" }'


@pytest.mark.parametrize(
    "more",
    [
        b'"kind":"chat"',
        b'"kind":"chat","correlation_id":"e1"',
        b'"kind":"chat","from":"client-1"',
        b'"correlation_id":"e\\u0031","from":"client-\\u0031","kind":"chat","id":"7"',
    ],
)
def test_every_value_goes_out_as_the_bytes_that_came(more: bytes) -> None:
    whole = complete(b"{" + more + b"," + VALUES + b"}", ANN, "client-1", new_id="new", ts=TS)
    assert whole.endswith(b"," + VALUES + b"}")
    assert admit(whole, ANN, bytes_max=10_000).sender == "ann"
    about = admit(whole, ANN, bytes_max=10_000).correlation_id
    assert about == (("e1",) if b"correlation_id" in more else ())


@pytest.mark.parametrize(
    "received",
    [
        b'{"kind":"chat","kind":"chat"}',
        rb'{"kind":"a","k\u0069nd":"b"}',
        b'{"kind":"chat","correlation_id":"e1","correlation_id":"e1"}',
        b'{"kind":"chat","correlation_id":["e1"],"correlation_id":"e1"}',
        b'{"kind":"chat","from":"client-1","from":"client-1"}',
        b'{"kind":"chat","mine":1,"mine":2,"from":"client-1"}',
    ],
)
def test_a_field_given_twice_is_refused_however_much_is_filled_in(received: bytes) -> None:
    whole = complete(received, ANN, "client-1", new_id="new", ts=TS)
    with pytest.raises(ProtocolError) as caught:
        admit(whole, ANN, bytes_max=10_000)
    assert caught.value.refusal is Refusal.MALFORMED


@pytest.mark.parametrize("received", [b"", b"{", b"\xff", b'{"a":NaN}', b"[" * 10_000])
def test_what_is_not_json_stays_as_it_came(received: bytes) -> None:
    assert complete(received, ANN, None, new_id="new", ts=TS) is received


# Heartbeats.


def test_a_heartbeat_is_known_by_its_kind() -> None:
    assert is_heartbeat(b'{"kind":"system/heartbeat","payload":{}}')
    assert is_heartbeat(b'{"protocol":"mew/v0.4","id":"1", "kind" : "system/heartbeat"}')
    assert not is_heartbeat(b'{"kind":"chat","payload":{"text":"system/heartbeat"}}')
    assert not is_heartbeat(b'["system/heartbeat"]')
    assert not is_heartbeat(b"")
    assert not is_heartbeat(b"\xff")
