"""What became of proposals, in numbers."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.audit.office import office

from mew.audit.catching_up import catch_up
from mew.audit.figures import statistics_of
from mew.audit.index import Index
from mew.audit.statistics import Decided, OfGrants, Proposed, of_proposals, percentile
from mew.log.reading import JournalReader

READ = "tools/call:read"
SECOND = 1_000_000


def place(id: str) -> tuple[int, int]:
    """Where the proposal of this name is."""
    return int.from_bytes(id.encode(), "big"), 0


def proposed(id: str, *, at_s: float = 0, whom: Sequence[str] = (), about: str = READ) -> Proposed:
    return Proposed(place(id), int(at_s * SECOND), "bot", about, tuple(whom), "d")


def decided(
    proposal: str,
    kind: str,
    at_s: float,
    *,
    who: str = "ann",
    about: str = READ,
    whom: Sequence[str] = ("files",),
    digest: str = "d",
) -> Decided:
    return Decided(place(proposal), f"mcp/{kind}", int(at_s * SECOND), who, about, tuple(whom), digest)


@pytest.mark.parametrize(
    ("decisions", "came_to"),
    [
        ([], "open"),
        ([decided("p", "request", 3)], "fulfilled"),
        ([decided("p", "reject", 3)], "rejected"),
        ([decided("p", "withdraw", 3, who="bot")], "withdrawn"),
        ([decided("p", "withdraw", 3, who="eve")], "open"),
        ([decided("p", "reject", 1), decided("p", "request", 3)], "fulfilled"),
        ([decided("p", "withdraw", 1, who="bot"), decided("p", "request", 3)], "fulfilled"),
        ([decided("p", "reject", 1), decided("p", "withdraw", 3, who="bot")], "withdrawn"),
        ([decided("p", "request", 3, about="tools/call:write")], "open"),
        ([decided("p", "request", 3, whom=("eve",))], "open"),
        ([decided("p", "request", 3, whom=())], "open"),
        ([decided("other", "request", 3)], "open"),
    ],
)
def test_a_proposal_came_to_one_thing(decisions: list[Decided], came_to: str) -> None:
    together, (by_tool,) = of_proposals([proposed("p", whom=["files"])], decisions)
    counts = {name: getattr(together, name) for name in ("open", "fulfilled", "rejected", "withdrawn")}
    assert counts == {name: int(name == came_to) for name in counts}
    assert together.proposed == 1
    assert by_tool.about == READ
    assert together.decided_median_s == (
        None if came_to in ("open", "withdrawn") else decisions[-1].at / SECOND
    )


@pytest.mark.parametrize(
    ("whom", "request_whom", "digest", "edited"),
    [
        (["files"], ["files"], "d", 0),
        (["files"], ["files"], "e", 1),
        ([], ["files"], "d", 0),
        (["files", "disk"], ["disk", "files"], "d", 0),
        (["files", "disk"], ["disk"], "d", 1),
    ],
)
def test_what_was_sent_instead_of_what_was_proposed_is_edited(
    whom: list[str], request_whom: list[str], digest: str, edited: int
) -> None:
    together, _ = of_proposals(
        [proposed("p", whom=whom)], [decided("p", "request", 1, whom=request_whom, digest=digest)]
    )
    assert (together.fulfilled, together.edited) == (1, edited)


def test_the_first_request_that_carries_it_out_counts() -> None:
    decisions = [
        decided("p", "request", 1, about="tools/call:write"),
        decided("p", "request", 2),
        decided("p", "request", 3, digest="other"),
    ]
    together, _ = of_proposals([proposed("p")], decisions)
    assert (together.edited, together.decided_median_s) == (0, 2)


def test_tools_are_told_apart_the_most_frequent_first() -> None:
    proposals = [proposed(f"p{n}", about=f"tools/call:{'ab'[n % 3 > 1]}") for n in range(9)]
    rejections = [decided(f"p{n}", "reject", n + 1) for n in range(9)]
    together, tools = of_proposals(proposals, rejections)
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
    folder = table.keep(tmp_path) / "office"
    with JournalReader(folder) as journal, Index(folder) as index:
        catch_up(journal, index)
        numbers = statistics_of(journal, index)
        late = statistics_of(journal, index, table.entries[31].at)
        never = statistics_of(journal, index, table.now.replace(year=2099))
    assert (numbers.space, numbers.entries, numbers.kept_from) == ("office", len(table.entries), 1)
    assert numbers.first == table.entries[0].at
    assert numbers.last == table.entries[-1].at
    assert numbers.refusals == {"capability_violation": 4, "paused": 1}
    assert numbers.grants == OfGrants(given=5, revoked=2, taken_back=1, expired=1, invited=1, kicked=1)
    of = numbers.proposals
    assert (of.proposed, of.open, of.fulfilled, of.edited, of.rejected, of.withdrawn) == (5, 1, 2, 1, 1, 1)
    assert {one.name: (one.accepted, one.refused) for one in numbers.participants}["aide"] == (2, 3)
    assert {one.name: (one.accepted, one.refused) for one in numbers.kinds}["mcp/request"] == (3, 3)
    assert sum(one.accepted + one.refused for one in numbers.kinds) == numbers.facts
    assert numbers.files["entries.db"] > 0
    assert (late.entries, late.refusals) == (7, {"capability_violation": 4, "paused": 1})
    assert late.proposals.proposed == 0
    assert (never.entries, never.facts, never.first, never.kinds) == (0, 0, None, [])
