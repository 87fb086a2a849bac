"""What became of a proposal, read from what was shown."""

from datetime import UTC, datetime
from typing import Any

from msgspec import UNSET, Raw

from mew.gateway.history import Record
from mew.gateway.proposals import Decided, Proposal, Status, proposals
from mew.protocol.codec import encode_json
from mew.protocol.envelope import PROTOCOL, Envelope

AT = datetime(2026, 1, 1, tzinfo=UTC)


def shown(id: str, sender: str, kind: str, *about: str, payload: Any = None) -> Record:
    raw = payload if isinstance(payload, bytes) else encode_json(payload or {})
    envelope = Envelope(
        protocol=PROTOCOL, id=id, sender=sender, kind=kind, correlation_id=about, payload=Raw(raw)
    )
    return Record(AT, envelope, b"{}", None)


PROPOSED = shown(
    "p", "bot", "mcp/proposal", payload={"method": "tools/call", "params": {"name": "write", "n": 1e2}}
)


def the_one(*after: Record) -> Proposal:
    (proposal,) = proposals([PROPOSED, *after])
    return proposal


def test_a_proposal_is_open_until_something_is_said_of_it() -> None:
    proposal = the_one(shown("c", "ann", "chat", "p"))
    assert (proposal.id, proposal.proposer, proposal.status) == ("p", "bot", Status.OPEN)
    assert proposal.method == "tools/call"
    assert proposal.params == Raw(b'{"name":"write","n":100.0}')


def test_a_request_that_names_it_fulfils_it() -> None:
    proposal = the_one(shown("r", "ann", "mcp/request", "p"))
    assert (proposal.status, proposal.fulfilments) == (Status.FULFILLED, (Decided("r", "ann"),))


def test_rejections_are_listed_and_close_it_for_nobody_else() -> None:
    no = shown("n", "eve", "mcp/reject", "p", payload={"reason": "unsafe"})
    assert the_one(no).status is Status.REJECTED
    assert the_one(no).rejections == (Decided("n", "eve", "unsafe"),)
    assert the_one(no, shown("r", "ann", "mcp/request", "p")).status is Status.FULFILLED


def test_only_its_proposer_withdraws_it_and_what_ran_is_fulfilled_all_the_same() -> None:
    assert the_one(shown("w", "ann", "mcp/withdraw", "p")).status is Status.OPEN
    withdrawn = shown("w", "bot", "mcp/withdraw", "p", payload={"reason": "no_longer_needed"})
    assert the_one(withdrawn).status is Status.WITHDRAWN
    assert the_one(withdrawn).withdrawals == (Decided("w", "bot", "no_longer_needed"),)
    assert the_one(withdrawn, shown("r", "ann", "mcp/request", "p")).status is Status.FULFILLED


def test_one_whose_payload_makes_no_sense_is_listed_without_it() -> None:
    (proposal,) = proposals([shown("p", "bot", "mcp/proposal", payload=b'{"method":1,"method":2}')])
    assert (proposal.method, proposal.params) == (UNSET, UNSET)
    assert the_one(shown("n", "eve", "mcp/reject", "p", payload={"reason": 7})).rejections == (
        Decided("n", "eve"),
    )
