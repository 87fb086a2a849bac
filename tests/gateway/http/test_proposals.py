"""Proposals as the API lists them: what became of each is the reducer's to say."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec import Raw, structs
from tests.proposals.test_vectors import VECTORS, told_fulfilment, told_rejection

from mew.gateway.history.cursor import Cursor
from mew.gateway.history.query import PAGE_BYTES_MAX, DeliveredEnvelope
from mew.gateway.http.listings import ListedProposal, ProposalList, list_proposals
from mew.proposals.book import ProposalBook
from mew.proposals.record import ProposalStatus
from mew.protocol.codec import decode, encode
from mew.protocol.envelope import PROTOCOL, Envelope
from mew.protocol.json import encode_json

AT = datetime(2026, 1, 1, tzinfo=UTC)
WRITE = {"method": "tools/call", "params": {"name": "write", "arguments": {"n": 1}}}


def delivered(raw: bytes, at: datetime = AT) -> DeliveredEnvelope:
    envelope = decode(raw)
    head = (envelope.id, envelope.sender, envelope.kind, envelope.correlation_id)
    return DeliveredEnvelope(Cursor(1, 0), at, *head, raw, None)


def shown(
    id: str, sender: str, kind: str, *about: str, payload: Any = None, to: Sequence[str] = ()
) -> DeliveredEnvelope:
    raw = Raw(encode_json(payload or {}))
    envelope = Envelope(
        protocol=PROTOCOL, id=id, sender=sender, kind=kind, correlation_id=about, payload=raw, to=tuple(to)
    )
    return delivered(encode(envelope))


def many(count: int, *, payload: Any = None) -> list[DeliveredEnvelope]:
    return [shown(f"p{n}", "bot", "mcp/proposal", payload=payload or WRITE) for n in range(count)]


def listed(found: ProposalList) -> list[str]:
    return [proposal.id for proposal in found.proposals]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: str(vector["name"]))
def test_the_api_says_what_the_vectors_expect(vector: dict[str, Any]) -> None:
    seen = [
        delivered(json.dumps(one["envelope"]).encode(), datetime.fromisoformat(one["at"]))
        for one in vector["envelopes"]
    ]
    now = datetime.fromisoformat(vector["now"])
    found = list_proposals(seen, now, limit=1000)
    expected = vector["expect"]
    assert [(one.id, one.status) for one in found.proposals] == [
        (one["id"], one["status"]) for one in expected
    ]
    for one, expectation in zip(found.proposals, expected, strict=True):
        assert [told_rejection(no) for no in one.rejections] == expectation["rejections"]
        assert [told_fulfilment(sent) for sent in one.fulfilments] == expectation["fulfilments"]
        assert [{"id": sent.id, "by": sent.by} for sent in one.unrelated] == expectation["unrelated"]
    assert listed(list_proposals(seen, now, status=ProposalStatus.OPEN, limit=1000)) == vector["open"]


def test_it_has_the_names_of_the_record() -> None:
    book = ProposalBook()
    book.apply(many(1)[0].envelope, AT)
    (record,) = book
    assert set(ListedProposal.__struct_fields__) == set(record.as_dict(AT)) - {"tools"}
    (told,) = list_proposals(many(1), AT, limit=1).proposals
    ours = json.loads(encode_json(structs.asdict(told)))
    assert ours == {name: value for name, value in record.as_dict(AT).items() if name != "tools"}


def test_params_are_listed_byte_for_byte() -> None:
    """Whoever approves what is listed sends what was proposed: also a number that no double holds."""
    params = b'{"name":"pay","arguments":{"amount": 0.1234567890123456789, "id": 12345678901234567890123}}'
    payload = Raw(b'{"method":"tools/call","params":' + params + b"}")
    envelope = Envelope(protocol=PROTOCOL, id="p", sender="bot", kind="mcp/proposal", payload=payload)
    (told,) = list_proposals([delivered(encode(envelope))], AT, limit=1).proposals
    assert bytes(told.params) == params


def test_the_newest_are_listed_and_those_before_one_of_them() -> None:
    records = [*many(5), shown("r", "ann", "mcp/request", "p3", payload=WRITE, to=["files"])]
    newest = list_proposals(records, AT, limit=2)
    assert (listed(newest), newest.more) == (["p3", "p4"], True)
    rest = list_proposals(records, AT, before="p3", limit=3)
    assert (listed(rest), rest.more, rest.complete) == (["p0", "p1", "p2"], False, True)
    still_open = list_proposals(records, AT, status=ProposalStatus.OPEN, limit=2)
    assert (listed(still_open), still_open.more) == (["p2", "p4"], True)
    lost = list_proposals(records, AT, before="gone", limit=2)
    assert (listed(lost), lost.more, lost.complete) == ([], False, False)


def test_a_list_stays_within_its_bytes_but_is_never_empty_for_that() -> None:
    params = {"method": "m", "params": {"x": "x" * (PAGE_BYTES_MAX // 3)}}
    found = list_proposals(many(6, payload=params), AT, limit=100)
    assert (listed(found), found.more) == (["p4", "p5"], True)
    larger = {"method": "m", "params": {"x": "x" * PAGE_BYTES_MAX}}
    assert listed(list_proposals(many(2, payload=larger), AT, limit=100)) == ["p1"]
