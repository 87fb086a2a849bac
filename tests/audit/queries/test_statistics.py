"""What became of proposals, told from the facts of the record, and in numbers."""

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET
from tests.audit.kept import as_indexed
from tests.audit.office import OFFICE, office
from tests.proposals.test_vectors import VECTORS

from mew.audit.queries.proposals import ProposalStep, records_of, steps_of
from mew.audit.queries.statistics import (
    GrantCounts,
    ProposalCounts,
    percentile,
    proposal_counts,
    statistics_of,
)
from mew.audit.record.facts import Fact
from mew.audit.record.subjects import summarize
from mew.journal.record import to_microseconds
from mew.proposals.record import ProposalStatus
from mew.protocol.codec import decode

AT = datetime(2026, 1, 1, tzinfo=UTC)
SEQ = count(1)
READ = {"method": "tools/call", "params": {"name": "read", "arguments": {"path": "a"}}}
OTHER = {"method": "tools/call", "params": {"name": "read", "arguments": {"path": "b"}}}


def fact(seq: int, at: datetime, envelope: dict[str, Any]) -> Fact:
    read = decode(json.dumps(envelope).encode())
    found = summarize(read)
    return Fact(
        seq=seq,
        n=0,
        at=to_microseconds(at),
        kind=read.kind,
        who=read.sender,
        id=read.id,
        about=found.about,
        note=found.note,
        context="" if read.context is UNSET else read.context,
        whom=found.whom,
        causes=read.correlation_id,
        digest=found.digest,
        expires=found.expires,
    )


def said(
    at_s: float, id: str, who: str, kind: str, payload: Any, *about: str, to: tuple[str, ...] = ()
) -> Fact:
    envelope = {"protocol": "mew/v0.4", "id": id, "from": who, "kind": f"mcp/{kind}", "payload": payload}
    envelope |= {"to": list(to), "correlation_id": list(about)}
    return fact(next(SEQ), AT + timedelta(seconds=at_s), envelope)


def counted(*facts: Fact) -> tuple[ProposalCounts, list[ProposalCounts]]:
    return proposal_counts([(one.about, record) for one, record in records_of(facts)], AT)


@pytest.mark.parametrize(
    "vector",
    [
        vector
        for vector in VECTORS
        # The gateway lets no id be used twice, so the record has no such facts.
        if max(Counter(one["envelope"]["id"] for one in vector["envelopes"]).values()) == 1
    ],
    ids=lambda vector: str(vector["name"]),
)
def test_the_record_says_what_the_vectors_expect(vector: dict[str, Any]) -> None:
    facts = [
        fact(seq, datetime.fromisoformat(one["at"]), one["envelope"])
        for seq, one in enumerate(vector["envelopes"])
        if one["envelope"]["kind"] != "chat"
    ]
    now = datetime.fromisoformat(vector["now"])
    records = [record for _, record in records_of(facts)]
    assert [(one.id, one.status(now)) for one in records] == [
        (one["id"], one["status"]) for one in vector["expect"]
    ]
    for record, expectation in zip(records, vector["expect"], strict=True):
        assert [(sent.id, sent.edited, sent.late) for sent in record.fulfilments] == [
            (sent["id"], sent["edited"], sent["late"]) for sent in expectation["fulfilments"]
        ]
        assert [no.id for no in record.rejections] == [no["id"] for no in expectation["rejections"]]
    together, _ = proposal_counts([("", record) for record in records], now)
    statuses = Counter(one["status"] for one in vector["expect"])
    assert {name: getattr(together, name) for name in ProposalStatus} == {
        name: statuses[name] for name in ProposalStatus
    }


def test_a_step_says_what_a_fact_did_to_its_proposal() -> None:
    facts = [
        said(0, "p", "bot", "proposal", READ, to=("files",)),
        said(1, "j", "eve", "reject", {"reason": "unsafe", "message": "Not there."}, "p"),
        said(2, "u", "eve", "request", {"method": "tools/list"}, "p", to=("files",)),
        said(3, "r", "ann", "request", OTHER, "p", to=("files",)),
        said(4, "s", "files", "response", {"error": {"code": 1, "message": "no"}}, "r"),
    ]
    ((_, record),) = records_of(facts)
    assert record.rejections[0].message == "unsafe: Not there."
    assert {fact.id: steps_of(facts, record, AT).get(fact.key) for fact in facts} == {
        "p": None,
        "j": ProposalStep("rejected", "p"),
        "u": None,
        "r": ProposalStep("approved", "p"),
        "s": ProposalStep("failed", "p"),
    }


def test_a_proposal_that_expired_says_so() -> None:
    late = said(0, "p", "bot", "proposal", {**READ, "why": "x", "expires_at": "2026-01-01T00:00:09Z"})
    ((_, record),) = records_of([late])
    assert (record.why, record.expires_at) == ("x", AT + timedelta(seconds=9))
    assert steps_of([late], record, AT) == {}
    assert steps_of([late], record, AT + timedelta(seconds=9)) == {late.key: ProposalStep("expired", "p")}


def test_how_long_a_decision_took() -> None:
    together, (by_tool,) = counted(
        said(0, "p", "bot", "proposal", READ),
        said(1, "j", "eve", "reject", {}, "p"),
        said(3, "r", "ann", "request", READ, "p", to=("files",)),
    )
    assert (together.decided_median_s, together.rejected, together.approved) == (3, 1, 1)
    assert by_tool.about == "tools/call:read"
    rejected, _ = counted(said(0, "p", "bot", "proposal", READ), said(1, "j", "eve", "reject", {}, "p"))
    assert (rejected.decided_median_s, rejected.open) == (1, 1)


def test_tools_are_told_apart_the_most_frequent_first() -> None:
    facts = []
    for n in range(9):
        call = {"method": "tools/call", "params": {"name": "ab"[n % 3 > 1]}}
        facts += [
            said(0, f"p{n}", "bot", "proposal", call),
            said(n + 1, f"j{n}", "ann", "reject", {}, f"p{n}"),
        ]
    together, tools = counted(*sorted(facts, key=lambda one: one.at))
    assert [(tool.about, tool.proposed) for tool in tools] == [("tools/call:a", 6), ("tools/call:b", 3)]
    assert (together.decided_median_s, together.decided_p90_s) == (5, 9)
    assert (tools[1].decided_median_s, tools[1].decided_p90_s) == (6, 9)


@pytest.mark.parametrize(
    ("values", "percent", "is_"),
    [
        ([], 50, None),
        ([1], 50, 1),
        ([1], 90, 1),
        ([1, 2], 50, 1),
        ([1, 2, 3], 50, 2),
        (list(range(1, 11)), 90, 9),
    ],
)
def test_a_percentile_is_one_of_them(values: list[float], percent: int, is_: float | None) -> None:
    assert percentile(values, percent) == is_


def test_a_space_in_numbers(tmp_path: Path) -> None:
    table = office()
    with as_indexed(table.keep(tmp_path), OFFICE) as (journal, index):
        numbers = statistics_of(journal, index, table.now)
        late = statistics_of(journal, index, table.now, table.entries[31].at)
        never = statistics_of(journal, index, table.now, table.now.replace(year=2099))
    assert (numbers.space, numbers.entries, numbers.kept_from) == ("office", len(table.entries), 1)
    assert numbers.first == table.entries[0].at
    assert numbers.last == table.entries[-1].at
    assert numbers.refusals == {"capability_violation": 4, "paused": 1}
    assert numbers.grants == GrantCounts(given=5, revoked=2, taken_back=1, expired=1, invited=1, kicked=1)
    of = numbers.proposals
    assert (of.proposed, of.open, of.fulfilled, of.failed, of.withdrawn) == (5, 2, 1, 1, 1)
    assert (of.edited, of.rejected) == (1, 1)
    assert {one.name: (one.accepted, one.refused) for one in numbers.participants}["aide"] == (2, 3)
    assert {one.name: (one.accepted, one.refused) for one in numbers.kinds}["mcp/request"] == (3, 3)
    assert sum(one.accepted + one.refused for one in numbers.kinds) == numbers.facts
    assert numbers.files["journal.db"] > 0
    assert (late.entries, late.refusals) == (7, {"capability_violation": 4, "paused": 1})
    assert late.proposals.proposed == 0
    assert (never.entries, never.facts, never.first, never.kinds) == (0, 0, None, [])
