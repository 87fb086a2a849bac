"""An id that was used again means the latest, but nobody takes over another's."""

from pathlib import Path

import pytest
from tests.audit.office import OFFICE, Office, call
from tests.space.table import capabilities

from mew.audit.chain import chain_of, told
from mew.audit.execution import Verdict
from mew.audit.facts import Fact, facts_of
from mew.audit.index import Index
from mew.audit.questions import decisions, proposals
from mew.audit.statistics import of_proposals
from mew.audit.uses import Use, meant_after
from mew.protocol.envelope import ParticipantId
from mew.space import Rules
from mew.space.space import RECENT_IDS

LATER = RECENT_IDS + 2


@pytest.mark.parametrize(
    ("uses", "meant"),
    [
        ([], []),
        ([(1, "bot")], [1]),
        ([(1, "bot"), (2, "bot"), (9, "bot")], [1, 2, 9]),
        ([(1, "bot"), (2, "eve")], [1, 1]),
        ([(1, "bot"), (2, "eve"), (3, "bot"), (4, "eve")], [1, 1, 3, 3]),
        ([(1, "bot"), (LATER, "eve")], [1, LATER]),
        ([(1, "bot"), (LATER, "eve"), (LATER + 1, "bot")], [1, LATER, LATER]),
        ([(1, "bot"), (LATER - 1, "eve")], [1, 1]),
    ],
)
def test_which_is_meant(tmp_path: Path, uses: list[tuple[int, str]], meant: list[int]) -> None:
    assert [use.seq for use in meant_after([Use(seq, 0, who) for seq, who in uses])] == meant
    with Index(tmp_path) as index:
        index.add([Fact(seq, 0, 0, "mcp/proposal", who, "p") for seq, who in uses], 0, LATER)
        found = [index.with_id("p", (seq, 1)) for seq, _ in uses]
    assert [fact and fact.seq for fact in found] == meant


@pytest.fixture
def desk() -> Office:
    """Where everybody may do everything, and nobody checks whether an id is new."""
    who = ("ann", "bot", "eve", "files")
    table = Office(Rules(id=OFFICE, profiles={ParticipantId(one): capabilities(["*"]) for one in who}))
    for one in who:
        table.join(one)
    return table


def propose(desk: Office, who: str, **arguments: object) -> None:
    desk.space.state.recent.clear()
    desk.space.state.recent_order.clear()
    desk.say("env-1", who, "mcp/proposal", call("read", **arguments), to=["files"])


def kept(desk: Office, tmp_path: Path) -> Index:
    index = Index(tmp_path)
    facts = [
        fact for entry, made in zip(desk.entries, desk.decided, strict=True) for fact in facts_of(entry, made)
    ]
    index.add(facts, 0, len(desk.entries))
    return index


def verdict(index: Index, request: str) -> tuple[str, Verdict, list[str]]:
    """Who proposed it, whether it is that, and what is said of the proposal."""
    fact = index.with_id(request)
    assert fact is not None
    root = told(chain_of(index, fact), lambda fact: None).root
    (node,) = root.children
    assert node.execution is not None
    return root.fact.who, node.execution.verdict, root.remarks


def test_a_request_carries_out_the_latest_proposal_of_that_id(desk: Office, tmp_path: Path) -> None:
    propose(desk, "bot", n=1)
    desk.say("r1", "ann", "mcp/request", call("read", n=1), to=["files"], names="env-1")
    propose(desk, "bot", n=2)
    desk.say("r2", "ann", "mcp/request", call("read", n=2), to=["files"], names="env-1")
    propose(desk, "bot", n=3)
    with kept(desk, tmp_path) as index:
        for request in ("r1", "r2"):
            assert verdict(index, request) == ("bot", Verdict.AS_PROPOSED, ["its id was used 3 times"])
        of, _ = of_proposals(proposals(index), decisions(index))
    assert (of.proposed, of.fulfilled, of.edited, of.open) == (3, 2, 0, 1)
    assert of.decided_p90_s == 1


def test_nobody_takes_over_the_proposal_of_another(desk: Office, tmp_path: Path) -> None:
    propose(desk, "bot", path="/tmp")
    propose(desk, "eve", path="/")
    desk.say("r", "ann", "mcp/request", call("read", path="/"), to=["files"], names="env-1")
    with kept(desk, tmp_path) as index:
        assert verdict(index, "r") == ("bot", Verdict.EDITED, ["its id was used 2 times"])
        of, _ = of_proposals(proposals(index), decisions(index))
    assert (of.proposed, of.fulfilled, of.edited, of.open) == (2, 1, 1, 1)
