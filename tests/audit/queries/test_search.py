"""Who did what: every filter finds what it is for, and nothing else."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.audit.kept import as_indexed, index_with
from tests.audit.office import OFFICE, office

from mew.audit.queries.search import (
    FactFilter,
    OutcomeFilter,
    count_refusals,
    find_facts,
    first_since,
    last_before,
    repeated_refusals,
    select_facts,
)
from mew.audit.record.facts import Fact
from mew.audit.record.index import Index
from mew.protocol.envelope import GATEWAY

AT = office().entries[19].at


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    with as_indexed(office().keep(tmp_path_factory.mktemp("journal")), OFFICE) as (_, index):
        yield index


def all_of(index: Index) -> list[Fact]:
    return index.select(tail="ORDER BY seq, n")


@pytest.mark.parametrize(
    ("filters", "fits"),
    [
        ({}, lambda f: True),
        ({"who": "ann"}, lambda f: f.who == "ann" or (f.kind == "system/presence" and f.whom == ("ann",))),
        ({"who": "gateway"}, lambda f: f.who == GATEWAY),
        ({"who": GATEWAY}, lambda f: f.who == GATEWAY),
        ({"whom": "bot"}, lambda f: "bot" in f.whom),
        ({"whom": "bo"}, lambda f: False),
        ({"kind": "mcp/request"}, lambda f: f.kind == "mcp/request"),
        ({"kind": "mcp/*"}, lambda f: f.kind.startswith("mcp/")),
        ({"kind": "*grant*"}, lambda f: "grant" in f.kind),
        ({"about": "tools/call:read_*"}, lambda f: f.about.startswith("tools/call:read_")),
        ({"about": "read_fi*"}, lambda f: ":read_fi" in f.about),
        ({"about": "tools/call:????_file"}, lambda f: f.about == "tools/call:read_file"),
        ({"outcome": OutcomeFilter.REFUSED}, lambda f: bool(f.refusal)),
        ({"outcome": OutcomeFilter.ACCEPTED}, lambda f: not f.refusal),
        ({"refusal": "paused"}, lambda f: f.refusal == "paused"),
        ({"since": AT}, lambda f: f.time >= AT),
        ({"until": AT}, lambda f: f.time < AT),
        (
            {"since": AT, "until": AT + timedelta(seconds=2)},
            lambda f: AT <= f.time < AT + timedelta(seconds=2),
        ),
        (
            {"management": True},
            lambda f: f.kind.startswith(("capability/", "space/", "participant/")) or f.kind == "configured",
        ),
        (
            {"who": "aide", "kind": "mcp/*", "outcome": OutcomeFilter.REFUSED},
            lambda f: f.who == "aide" and bool(f.refusal),
        ),
    ],
)
def test_a_filter_finds_what_fits_it(index: Index, filters: dict[str, Any], fits: Any) -> None:
    expected = [fact for fact in all_of(index) if fits(fact)]
    assert select_facts(index, FactFilter(**filters), limit=1000) == (expected, False)
    assert expected or filters == {"whom": "bo"}


def test_a_page_has_the_newest_or_the_oldest_and_says_whether_there_are_more(index: Index) -> None:
    everything = all_of(index)
    assert select_facts(index, FactFilter(), limit=3) == (everything[-3:], True)
    assert select_facts(index, FactFilter(), limit=3, oldest=True) == (everything[:3], True)
    assert select_facts(index, FactFilter(), limit=len(everything)) == (everything, False)


@pytest.mark.parametrize(
    "filters", [{"who": 'a"b'}, {"whom": "'; DROP TABLE facts"}, {"about": "["}, {"kind": "%_"}]
)
def test_whatever_is_asked_for_is_no_sql(index: Index, filters: dict[str, Any]) -> None:
    assert select_facts(index, FactFilter(**filters), limit=5) == ([], False)
    assert all_of(index)


def test_whom_means_the_whole_name(tmp_path: Path) -> None:
    facts = [
        Fact(n, 0, 0, "mcp/request", "ann", whom=whom) for n, whom in ((1, ('x"bot',)), (2, ("a", "bot")))
    ]
    with index_with(tmp_path, facts) as index:
        assert [fact.seq for fact in select_facts(index, FactFilter(whom="bot"), limit=9).facts] == [2]
        assert [fact.seq for fact in select_facts(index, FactFilter(whom='x"bot'), limit=9).facts] == [1]


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("edited-request", ["edited-request"]),
        ("edited-req", ["edited-request"]),
        ("edited", ["edited-proposal", "edited-request", "edited-response"]),
        ("edi", ["edited-proposal", "edited-request", "edited-response"]),
        ("ed", []),
        ("ted-request", ["edited-request"]),
        ("no such id", []),
        ("7", ["edited-proposal"]),
        ("27", ["revoke-old"]),
        ("999", []),
        ("9" * 40, []),
        ("refused-33", ["refused-33"]),
        ("talk-pause", ["talk-paused"]),
        ("*", []),
        ("edited%", []),
    ],
)
def test_an_envelope_is_found_by_what_somebody_may_write(
    index: Index, written: str, found: list[str]
) -> None:
    assert [fact.id for fact in find_facts(index, written)] == found


def test_digits_may_be_an_id_or_a_number(tmp_path: Path) -> None:
    numbered = ((123456, "a"), (7, "12345678"), (8, "123456"))
    facts = [Fact(n, 0, 0, "mcp/request", "ann", id) for n, id in numbered]
    with index_with(tmp_path, facts) as index:
        assert [fact.id for fact in find_facts(index, "123456")] == ["a", "123456", "12345678"]
        assert [fact.id for fact in find_facts(index, "#123456")] == ["a"]


def test_an_id_hides_no_other_that_begins_with_it(tmp_path: Path) -> None:
    ids = ["3f2a9c1b-0000", "3f2a9c1b", "3f2a9c1b"]
    with index_with(
        tmp_path, [Fact(n, 0, 0, "mcp/request", "eve", id) for n, id in enumerate(ids, 1)]
    ) as index:
        assert [fact.seq for fact in find_facts(index, "3f2a9c1b")] == [2, 3, 1]
        assert [fact.seq for fact in find_facts(index, "3f2a9c1b-")] == [1]
        assert [fact.seq for fact in find_facts(index, "#2")] == [2]
        assert [fact.seq for fact in find_facts(index, "#3f2a9c")] == [
            fact.seq for fact in find_facts(index, "3f2a9c")
        ]


def test_brackets_in_a_pattern_are_brackets(tmp_path: Path) -> None:
    facts = [Fact(n, 0, 0, "mcp/request", "eve", about=about) for n, about in enumerate(("x[1]", "x1"), 1)]
    with index_with(tmp_path, facts) as index:
        for pattern, found in (("x[1]", [1]), ("x[*", [1]), ("x*", [1, 2]), ("x[", []), ("x?", [2])):
            assert [
                fact.seq for fact in select_facts(index, FactFilter(about=pattern), limit=9).facts
            ] == found


def test_moments_lead_to_entries(index: Index) -> None:
    facts = all_of(index)
    assert first_since(index, None) == 0
    assert first_since(index, facts[-1].time + timedelta(seconds=1)) > facts[-1].seq
    assert first_since(index, AT) == 20
    assert last_before(index, AT) == 20
    assert last_before(index, facts[0].time - timedelta(seconds=1)) == 0


def test_refusals_are_counted_by_who_and_why(index: Index) -> None:
    counted = count_refusals(index, FactFilter())
    assert [(one.who, one.refusal, one.times) for one in counted] == [
        ("aide", "capability_violation", 3),
        ("bot", "paused", 1),
        ("files", "capability_violation", 1),
    ]
    assert (counted[0].last - counted[0].first).total_seconds() == 2
    assert [one.who for one in count_refusals(index, FactFilter(who="bot"))] == ["bot"]


def test_what_is_tried_again_and_again_is_one_attempt() -> None:
    def refused(seq: int, who: str, about: str = "a") -> Fact:
        return Fact(seq, 0, seq, "mcp/request", who, about=about, refusal="capability_violation")

    found = repeated_refusals(
        [
            refused(1, "ann"),
            refused(2, "bot"),
            refused(3, "ann"),
            refused(4, "ann", "b"),
            refused(5, "bot"),
            refused(6, "ann"),
        ]
    )
    assert [(one.last.who, one.first.seq, one.last.seq, one.times) for one in found] == [
        ("ann", 1, 3, 2),
        ("ann", 4, 4, 1),
        ("bot", 2, 5, 2),
        ("ann", 6, 6, 1),
    ]
    assert repeated_refusals([]) == []
