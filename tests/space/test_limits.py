"""Bounds too large to be told in a scenario."""

from tests.space.table import Table, capabilities

from mew.protocol.envelope import ParticipantId
from mew.protocol.errors import Refusal
from mew.space import Decision, Deliver, Refuse, Rules
from mew.space.space import RECENT_IDS


def _table() -> Table:
    profiles = {ParticipantId(who): capabilities(["*"]) for who in ("ann", "bob")}
    table = Table(Rules(id="desk", profiles=profiles))
    table.join("ann")
    return table


def _refusal(decisions: list[Decision]) -> Refusal | None:
    return next((d.refused.refusal for d in decisions if isinstance(d, Refuse)), None)


def test_the_last_65536_ids_are_remembered_and_no_more() -> None:
    table = _table()
    table.send("ann", "chat", id="first")
    table.send("ann", "chat", id="second")
    for n in range(RECENT_IDS - 2):
        table.send("ann", "chat", id=f"filler-{n}")
    assert _refusal(table.send("bob", "chat", id="first")) is Refusal.DUPLICATE_ID
    table.send("ann", "chat", id="one-more")
    assert _refusal(table.send("bob", "chat", id="second")) is Refusal.DUPLICATE_ID
    assert _refusal(table.send("bob", "chat", id="first")) is None
    assert len(table.space.state.recent) == RECENT_IDS


def test_a_grant_is_not_replaced_when_its_id_is_forgotten() -> None:
    table = _table()
    table.send("ann", "capability/grant", {"recipient": "bob", "capabilities": ["chat"]}, id="g1")
    table.space.state.recent.clear()
    table.space.state.recent_order.clear()
    again = table.send("bob", "capability/grant", {"recipient": "ann", "capabilities": ["chat"]}, id="g1")
    assert _refusal(again) is Refusal.DUPLICATE_ID


def test_what_a_stream_request_may_say_is_bounded() -> None:
    table = _table()
    assert _refusal(table.send("ann", "stream/request", {"direction": "upload", "x": "y" * 8000})) is None
    too_much = table.send("ann", "stream/request", {"direction": "upload", "x": "y" * 9000})
    assert _refusal(too_much) is Refusal.TOO_LARGE


def test_grants_and_invitations_are_bounded() -> None:
    table = _table()
    for n in range(4095):
        table.send("ann", "space/invite", {"participant_id": f"p{n}", "initial_capabilities": ["chat"]})
    assert _refusal(table.send("ann", "space/invite", {"participant_id": "q0"})) is None
    assert _refusal(table.send("ann", "space/invite", {"participant_id": "q1"})) is Refusal.LIMIT_REACHED
    grant = {"recipient": "bob", "capabilities": ["chat"]}
    assert _refusal(table.send("ann", "capability/grant", grant)) is None
    assert _refusal(table.send("ann", "capability/grant", grant)) is Refusal.LIMIT_REACHED


def test_tokens_of_the_kicked_stay_dead_however_many_they_are() -> None:
    table = _table()
    for n in range(4100):
        table.send("ann", "space/invite", {"participant_id": "zoe"}, id=f"i{n}")
        table.send("ann", "space/kick", {"participant_id": "zoe"})
    assert len(table.space.state.dead_tokens) == 4096
    assert table.space.invited("hash-of-i0") is None
    assert table.space.invited("hash-of-i4099") is None


def test_what_is_shown_names_who_made_it() -> None:
    table = _table()
    [presence] = [d for d in table.join("bob") if isinstance(d, Deliver)]
    (envelope,) = presence.envelopes
    assert envelope.sender == "system:gateway"
    assert envelope.protocol == "mew/v0.4"
    assert envelope.ts == table.now


def test_a_participant_is_granted_64_json_paths_and_no_more() -> None:
    table = _table()

    def grant(first: int, count: int) -> Refusal | None:
        written = [{"kind": "x", "payload": {f"$..a{n}": 1}} for n in range(first, first + count)]
        return _refusal(table.send("ann", "capability/grant", {"recipient": "bob", "capabilities": written}))

    assert (grant(0, 32), grant(32, 32)) == (None, None)
    assert grant(64, 1) is Refusal.LIMIT_REACHED
    plain = {"recipient": "bob", "capabilities": ["mcp/*"]}
    assert _refusal(table.send("ann", "capability/grant", plain)) is None


def test_what_json_paths_cost_is_told_for_the_sender_to_pay() -> None:
    profiles = {ParticipantId("ann"): capabilities([{"kind": "x", "payload": {"$..a": 1}}, "chat"])}
    table = Table(Rules(id="desk", profiles=profiles))
    table.join("ann")
    table.send("ann", "chat")
    assert table.space.path_visits == {}
    table.send("ann", "x", {"a": 1, "rest": list(range(1_000))})
    assert table.space.path_visits["ann"] > 1_000
