"""One participant's view of its space: what each message means for it."""

from typing import Any

import pytest
from tests.client.envelopes import envelope

from mew.client.connection.session import (
    ClientSession,
    EnvelopeAccepted,
    EnvelopeDropped,
    EnvelopeReceived,
    EnvelopeRefused,
    SessionEvent,
)
from mew.protocol.codec import encode
from mew.protocol.envelope import GATEWAY, EnvelopeId, ParticipantId
from mew.protocol.errors import ProtocolError
from mew.protocol.json import encode_json
from mew.protocol.kinds import Kind


def welcome(*capabilities: Any, others: dict[str, list[Any]] | None = None) -> bytes:
    participants = [{"id": who, "capabilities": held} for who, held in (others or {}).items()]
    payload = {"you": {"id": "bot", "capabilities": list(capabilities)}, "participants": participants}
    return encode(envelope(Kind.WELCOME, GATEWAY, payload, to=["bot"]))


@pytest.fixture
def session() -> ClientSession:
    made = ClientSession()
    made.welcome(welcome({"kind": "chat"}, others={"ann": [{"kind": "*"}]}))
    return made


def take(
    session: ClientSession, kind: str, sender: str, payload: Any = None, **fields: Any
) -> list[SessionEvent]:
    return session.receive(encode(envelope(kind, sender, payload, **fields)), 0.0)


def send(session: ClientSession, name: str) -> None:
    session.outgoing.add(envelope(Kind.CHAT, "bot", {"text": "hi"}, id=name), name.encode())
    assert session.outgoing.next(0.0) is not None


def error(session: ClientSession, code: str, about: str, **more: Any) -> list[SessionEvent]:
    return take(session, Kind.ERROR, GATEWAY, {"error": code, **more}, correlation_id=[about])


def test_the_welcome_tells_who_i_am_what_i_hold_and_who_is_here(session: ClientSession) -> None:  # §8.2
    assert session.me == "bot"
    assert list(session.roster) == ["ann", "bot"]
    assert session.may("chat", [], {"text": "hi"})
    assert not session.may("mcp/request", ["ann"], {"method": "tools/call"})


def test_what_is_no_welcome_does_not_begin_a_session() -> None:
    with pytest.raises(ProtocolError, match="expected system/welcome"):
        ClientSession().welcome(encode(envelope("chat", "ann", {"text": "hi"})))


def test_a_welcome_signed_by_a_participant_is_none() -> None:
    forged = envelope(Kind.WELCOME, "eve", {"you": {"id": "bot"}, "participants": []})
    with pytest.raises(ProtocolError):
        ClientSession().welcome(encode(forged))


def test_presence_keeps_the_roster_current(session: ClientSession) -> None:  # §8.2
    zoe = {"id": "zoe", "capabilities": [{"kind": "mcp/*"}]}
    take(session, Kind.PRESENCE, GATEWAY, {"event": "join", "participant": zoe})
    assert session.roster[ParticipantId("zoe")].allows("mcp/request")
    take(session, Kind.PRESENCE, GATEWAY, {"event": "leave", "participant": {"id": "zoe"}})
    assert "zoe" not in session.roster


def test_a_grant_widens_what_another_holds_and_its_revocation_takes_it_back(session: ClientSession) -> None:
    zoe = {"id": "zoe", "capabilities": [{"kind": "chat"}]}
    take(session, Kind.PRESENCE, GATEWAY, {"event": "join", "participant": zoe})
    given = {"recipient": "zoe", "capabilities": [{"kind": "mcp/*"}]}
    take(session, Kind.GRANT, "ann", given, id="grant-1")
    held = session.roster[ParticipantId("zoe")]
    assert held.allows("mcp/request")
    take(session, Kind.REVOKE, "ann", {"recipient": "zoe", "grant_id": "grant-1"})
    assert not session.roster[ParticipantId("zoe")].allows("mcp/request")
    assert session.roster[ParticipantId("zoe")].allows("chat")


def test_grants_that_end_by_themselves_do_not_add_up_without_end(session: ClientSession) -> None:
    zoe = {"id": "zoe", "capabilities": [{"kind": "chat"}]}
    take(session, Kind.PRESENCE, GATEWAY, {"event": "join", "participant": zoe})
    for n in range(50):
        given = [{"kind": f"x{n}/{m}"} for m in range(32)]
        take(
            session,
            Kind.GRANT,
            "ann",
            {"recipient": "zoe", "capabilities": given, "ttl_seconds": 0},
            id=f"g{n}",
        )
    held = session.roster[ParticipantId("zoe")]
    assert len(tuple(held)) == 1024
    assert held.allows("x49/31")


def test_a_revocation_by_pattern_carves_it_out(session: ClientSession) -> None:  # §3.6.2
    taken = {"recipient": "ann", "capabilities": [{"kind": "mcp/*"}]}
    take(session, Kind.REVOKE, "zoe", taken)
    assert session.roster[ParticipantId("ann")].allows("chat")
    assert not session.roster[ParticipantId("ann")].allows("mcp/request")


def test_a_new_welcome_is_the_last_word_on_what_i_hold(session: ClientSession) -> None:  # §5.2
    session.receive(welcome({"kind": "mcp/*"}), 0.0)
    assert session.may("mcp/request", [], {})
    assert not session.may("chat", [], {})


def test_the_echo_means_that_it_was_accepted(session: ClientSession) -> None:
    send(session, "e1")
    news = take(session, "chat", "bot", {"text": "hi"}, id="e1")
    assert news[0] == EnvelopeAccepted(EnvelopeId("e1"))
    assert isinstance(news[1], EnvelopeReceived)


def test_the_id_of_mine_under_another_name_is_no_echo(session: ClientSession) -> None:
    send(session, "e1")
    news = take(session, "chat", "eve", {"text": "hi"}, id="e1")
    assert not any(isinstance(item, EnvelopeAccepted) for item in news)


def test_a_refusal_names_the_envelope_and_why(session: ClientSession) -> None:
    send(session, "e1")
    declined = error(session, "capability_violation", "e1", message="no")[0]
    assert isinstance(declined, EnvelopeRefused)
    assert (declined.id, declined.problem.error) == ("e1", "capability_violation")


@pytest.mark.parametrize("code", ["rate_limited", "paused"])
def test_a_refusal_that_means_not_now_is_none(session: ClientSession, code: str) -> None:
    send(session, "e1")
    news = error(session, code, "e1", retry_after_s=0.5)
    assert not any(isinstance(item, EnvelopeRefused) for item in news)
    assert session.outgoing.next(0.0) is None
    assert session.outgoing.next(2.0) is not None


def test_a_duplicate_of_what_was_sent_before_the_connection_was_lost_was_accepted_then(
    session: ClientSession,
) -> None:  # design §3.7
    send(session, "e1")
    session.outgoing.lost()
    session.outgoing.next(0.0)
    assert error(session, "duplicate_id", "e1")[0] == EnvelopeAccepted(EnvelopeId("e1"))


def test_a_duplicate_at_the_first_attempt_is_a_refusal(session: ClientSession) -> None:
    send(session, "e1")
    assert isinstance(error(session, "duplicate_id", "e1")[0], EnvelopeRefused)


def test_what_comes_after_is_asked_for_after_the_last_that_everyone_saw(session: ClientSession) -> None:
    take(session, "chat", "ann", {"text": "hi"}, id="e7")
    session.receive(welcome(), 0.0)
    error(session, "malformed", "x")
    assert session.after == "e7"


@pytest.mark.parametrize(
    ("kind", "payload", "fields"),
    [
        ("mcp/request", {"params": {}}, {}),
        ("mcp/request", {"method": 7}, {}),
        ("mcp/response", {"result": 1}, {}),
        ("mcp/response", {"jsonrpc": "2.0"}, {"correlation_id": ["e1"]}),
        ("mcp/response", {"result": 1, "error": {"code": 1, "message": ""}}, {"correlation_id": ["e1"]}),
        ("mcp/reject", {"reason": "unsafe"}, {}),
        ("mcp/withdraw", {}, {}),
        ("chat", {}, {}),
        ("chat", {"text": ["hi"]}, {}),
        ("chat/acknowledge", {}, {}),
        ("participant/forget", {"direction": "sideways"}, {}),
        ("participant/status", {"tokens": 3}, {}),
        ("system/error", {"error": "x"}, {}),
    ],
)
def test_what_its_kind_does_not_allow_is_dropped_and_counted_by_sender(
    session: ClientSession, kind: str, payload: Any, fields: dict[str, Any]
) -> None:  # §4.3, §8.2
    news = take(session, kind, "eve", payload, **fields)
    assert len(news) == 1
    assert isinstance(news[0], EnvelopeDropped)
    take(session, kind, "eve", payload, id="again", **fields)
    assert session.misconduct[ParticipantId("eve")].count == 2
    assert session.misconduct[ParticipantId("eve")].envelope_id == "again"


def test_a_payload_in_which_a_key_occurs_twice_is_malformed(session: ClientSession) -> None:
    said = encode(envelope("chat", "eve", {"text": "hi"})).replace(
        b'{"text":"hi"}', b'{"text":"a","text":"b"}'
    )
    assert isinstance(session.receive(said, 0.0)[0], EnvelopeDropped)


def test_kinds_that_we_do_not_know_arrive_as_they_are(session: ClientSession) -> None:
    news = take(session, "weather/report", "ann", {"sky": "blue"})
    assert isinstance(news[0], EnvelopeReceived)
    assert news[0].envelope.content == {"sky": "blue"}


def test_unknown_reason_codes_are_taken_as_they_are(session: ClientSession) -> None:  # §3.3.3 MUST
    news = take(session, Kind.MCP_REJECT, "ann", {"reason": "mercury_in_retrograde"}, correlation_id=["p1"])
    assert isinstance(news[0], EnvelopeReceived)
    assert news[0].payload.reason == "mercury_in_retrograde"


def test_a_pause_of_mine_holds_back_and_one_of_another_does_not(session: ClientSession) -> None:  # §3.9.1
    take(session, Kind.PAUSE, "ann", {"timeout_seconds": 60}, to=["zoe"])
    assert session.outgoing.paused_until is None
    take(session, Kind.PAUSE, "ann", {"timeout_seconds": 60}, to=["bot"])
    assert session.outgoing.paused_until == 60.0
    take(session, Kind.RESUME, "ann", {}, to=["bot"])
    assert session.outgoing.paused_until is None


def test_a_resume_without_addressees_lifts_the_pause_that_it_names(session: ClientSession) -> None:  # §3.9.2
    take(session, Kind.PAUSE, "ann", {}, to=["bot"], id="pause-1")
    take(session, Kind.RESUME, "ann", {}, correlation_id=["another"])
    assert session.outgoing.paused_until == float("inf")
    take(session, Kind.RESUME, "ann", {}, correlation_id=["pause-1"])
    assert session.outgoing.paused_until is None


def test_a_second_pause_may_prolong_the_first_and_not_shorten_it(session: ClientSession) -> None:
    take(session, Kind.PAUSE, "ann", {"timeout_seconds": 60}, to=["bot"], id="pause-1")
    take(session, Kind.PAUSE, "ann", {"timeout_seconds": 5}, to=["bot"], id="pause-2")
    assert (session.outgoing.paused_until, session.pause_id) == (60.0, "pause-1")
    take(session, Kind.PAUSE, "ann", {"timeout_seconds": 90}, to=["bot"], id="pause-3")
    assert (session.outgoing.paused_until, session.pause_id) == (90.0, "pause-3")


def test_bytes_that_are_no_envelope_are_the_gateways_fault(session: ClientSession) -> None:
    with pytest.raises(ProtocolError):
        session.receive(encode_json({"hello": "world"}), 0.0)
