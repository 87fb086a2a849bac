"""The vectors that this reducer and its twin on the page both follow: `vectors.json`."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from mew.proposals.book import ProposalBook
from mew.proposals.record import Fulfilment, ProposalRecord, Rejection
from mew.protocol.codec import decode

VECTORS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "vectors.json").read_text(encoding="utf-8")
)


def book_of(vector: dict[str, Any]) -> ProposalBook:
    book = ProposalBook()
    for seen in vector["envelopes"]:
        envelope = decode(json.dumps(seen["envelope"]).encode())
        book.apply_all(envelope, datetime.fromisoformat(seen["at"]))
    return book


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: str(vector["name"]))
def test_the_book_says_what_the_vector_expects(vector: dict[str, Any]) -> None:
    book, now = book_of(vector), datetime.fromisoformat(vector["now"])
    assert [told(record, now) for record in book] == vector["expect"]
    assert [record.id for record in book.open(now)] == vector["open"]
    for reviewer, ids in vector.get("for", {}).items():
        waiting = book.for_reviewer(reviewer, now, lambda record: True)
        assert [record.id for record in waiting] == ids, reviewer


def test_there_are_enough_of_them_and_each_has_its_own_name() -> None:
    assert len({vector["name"] for vector in VECTORS}) == len(VECTORS) >= 60


def told(record: ProposalRecord, now: datetime) -> dict[str, Any]:
    expires = record.expires_at
    return {
        "id": record.id,
        "status": record.status(now),
        "proposer": record.proposer,
        "why": record.why,
        "expires_at": None if expires is None else instant(expires),
        "preferred": list(record.preferred),
        "exclusive": record.exclusive,
        "rejections": [told_rejection(rejection) for rejection in record.rejections],
        "fulfilments": [told_fulfilment(sent) for sent in record.fulfilments],
        "unrelated": [{"id": sent.id, "by": sent.by} for sent in record.unrelated],
        "withdrawn_by": None if record.withdrawn is None else record.proposer,
        "withdrawn_reason": None if record.withdrawn is None else record.withdrawn.reason,
    }


def told_rejection(rejection: Rejection) -> dict[str, Any]:
    return {
        "id": rejection.id,
        "by": rejection.by,
        "reason": rejection.reason,
        "message": rejection.message,
        "explanations": [explanation.text for explanation in rejection.explanations],
    }


def told_fulfilment(sent: Fulfilment) -> dict[str, Any]:
    return {
        "id": sent.id,
        "by": sent.by,
        "edited": sent.edited,
        "late": sent.late,
        "failed": None if sent.response is None else sent.response.failed,
        "via": sent.via,
    }


def instant(moment: datetime) -> str:
    return datetime.fromtimestamp(moment.timestamp(), tz=UTC).isoformat().replace("+00:00", "Z")
