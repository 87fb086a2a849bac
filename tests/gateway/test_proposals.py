"""What became of a proposal, read from what was shown."""

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec import UNSET, Raw

from mew.gateway.pages import PAGE_BYTES_MAX, Record
from mew.gateway.proposals import Decided, Listed, Proposal, Status, proposals
from mew.protocol.codec import encode, fields_in
from mew.protocol.envelope import PROTOCOL, Envelope
from mew.protocol.json import encode_json

AT = datetime(2026, 1, 1, tzinfo=UTC)


def shown(id: str, sender: str, kind: str, *about: str, payload: Any = None) -> Record:
    raw = payload if isinstance(payload, bytes) else encode_json(payload or {})
    envelope = Envelope(
        protocol=PROTOCOL, id=id, sender=sender, kind=kind, correlation_id=about, payload=Raw(raw)
    )
    return Record.of(envelope, encode(envelope), at=AT)


PROPOSED = shown(
    "p", "bot", "mcp/proposal", payload={"method": "tools/call", "params": {"name": "write", "n": 1e2}}
)


def the_one(*after: Record) -> Proposal:
    (proposal,) = proposals([PROPOSED, *after], limit=10).proposals
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


@pytest.mark.parametrize("method", [b"7", b"1e999", b"null", b"[]", b'"a","method":"b"'])
def test_one_whose_payload_makes_no_sense_is_listed_without_it(method: bytes) -> None:
    puzzling = shown("p", "bot", "mcp/proposal", payload=b'{"params":1,"method":' + method + b"}")
    (proposal,) = proposals([puzzling], limit=10).proposals
    assert (proposal.method, proposal.params) == (UNSET, UNSET)


def test_a_reason_that_makes_no_sense_is_left_out() -> None:
    assert the_one(shown("n", "eve", "mcp/reject", "p", payload={"reason": 7})).rejections == (
        Decided("n", "eve"),
    )


def test_its_parameters_are_told_as_they_came() -> None:
    payload = b'{ "params": {"n": 1.10,  "a": 1, "a": [1e2]}, "method":"m", "more": 1e999 }'
    (proposal,) = proposals([shown("p", "bot", "mcp/proposal", payload=payload)], limit=1).proposals
    assert (proposal.method, proposal.params) == ("m", Raw(b'{"n": 1.10,  "a": 1, "a": [1e2]}'))
    bare = Envelope(protocol=PROTOCOL, id="p", sender="bot", kind="mcp/proposal")
    (proposal,) = proposals([Record.of(bare, encode(bare), at=AT)], limit=1).proposals
    assert (proposal.method, proposal.params) == (UNSET, UNSET)


def listed(found: Listed) -> list[str]:
    return [proposal.id for proposal in found.proposals]


def many(count: int, *, payload: Any = None) -> list[Record]:
    return [shown(f"p{n}", "bot", "mcp/proposal", payload=payload) for n in range(count)]


def test_the_newest_are_listed_and_those_before_one_of_them() -> None:
    records = [*many(5), shown("r", "ann", "mcp/request", "p3")]
    newest = proposals(records, limit=2)
    assert (listed(newest), newest.more) == (["p3", "p4"], True)
    rest = proposals(records, before="p3", limit=3)
    assert (listed(rest), rest.more, rest.found) == (["p0", "p1", "p2"], False, True)
    still_open = proposals(records, status=Status.OPEN, limit=2)
    assert (listed(still_open), still_open.more) == (["p2", "p4"], True)
    lost = proposals(records, before="gone", limit=2)
    assert (listed(lost), lost.more, lost.found) == ([], False, False)


def test_only_what_is_listed_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[bytes] = []

    def fields(payload: bytes) -> dict[str, Raw]:
        read.append(payload)
        return fields_in(payload)

    monkeypatch.setattr("mew.gateway.proposals.fields_in", fields)
    monkeypatch.setattr("mew.gateway.proposals.decode_payload", lambda payload, _: read.append(payload))
    no = [shown(f"n{n}", "eve", "mcp/reject", "p1", payload={"reason": "no"}) for n in range(50)]
    assert listed(proposals([*many(60), *no], status=Status.OPEN, limit=3)) == ["p57", "p58", "p59"]
    assert len(read) == 3


def test_a_list_stays_within_its_bytes_but_is_never_empty_for_that() -> None:
    params = {"params": "x" * (PAGE_BYTES_MAX // 3)}
    found = proposals(many(60, payload=params), limit=100)
    assert (listed(found), found.more) == (["p58", "p59"], True)
    larger = {"params": "x" * PAGE_BYTES_MAX}
    assert listed(proposals(many(2, payload=larger), limit=100)) == ["p1"]


def test_what_was_said_of_one_proposal_is_bounded_too() -> None:
    long, short = {"reason": "x" * 5000}, {"reason": "x" * 3000}
    no = [shown(f"n{n}", "eve", "mcp/reject", "p", payload=short if n % 2 else long) for n in range(1000)]
    told = the_one(*no).rejections
    assert [decided.id for decided in told] == [f"n{n}" for n in range(900, 1000)]
    assert [decided.reason is UNSET for decided in told[:2]] == [True, False]
    talked_about = [
        *many(20),
        *(
            shown(f"r{n}", "eve", "mcp/reject", *(f"p{m}" for m in range(20)), payload=short)
            for n in range(100)
        ),
    ]
    assert len(encode_json(proposals(talked_about, limit=1000))) <= PAGE_BYTES_MAX
