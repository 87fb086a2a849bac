"""What led to an envelope and what came of it: the whole life, and bounded whatever its participants name."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.audit.kept import as_indexed, drop_until, index_with, opened, put_facts
from tests.audit.office import OFFICE, Office, call, office

from mew.audit.queries.chain import ChainNode, EnvelopeChain, JournalEnvelopes, annotated, chain_of
from mew.audit.queries.proposals import RequestMatch
from mew.audit.record.facts import Fact
from mew.audit.record.index import Index
from mew.journal.reader import JournalReader
from mew.proposals.differences import Difference

Ask = Callable[[str], EnvelopeChain]
Facts = Callable[..., Fact]


@pytest.fixture
def table() -> Office:
    return office()


@pytest.fixture
def ask(table: Office, tmp_path: Path) -> Iterator[Ask]:
    """What is asked about an id, when the table is full."""
    with ExitStack() as stack:
        found: list[tuple[JournalReader, Index]] = []

        def chain(envelope_id: str) -> EnvelopeChain:
            if not found:
                found.append(stack.enter_context(as_indexed(table.keep(tmp_path), OFFICE)))
            journal, index = found[0]
            fact = index.with_id(envelope_id)
            assert fact is not None
            return annotated(chain_of(index, fact), JournalEnvelopes(journal).envelope)

        yield chain


def ids(node: ChainNode) -> object:
    """The ids of a tree: one alone, or with those below."""
    return (node.fact.id, *map(ids, node.children)) if node.children else node.fact.id


def nodes(node: ChainNode) -> Iterator[ChainNode]:
    yield node
    for child in node.children:
        yield from nodes(child)


# The life of a proposal.


@pytest.mark.parametrize("asked", ["edited-proposal", "edited-request", "edited-response"])
def test_any_envelope_of_a_chain_gives_all_of_it(ask: Ask, asked: str) -> None:
    chain = ask(asked)
    assert ids(chain.root) == ("edited-proposal", ("edited-request", "edited-response"))
    assert chain.focus.id == asked


def test_what_was_changed_is_told_with_both_values(ask: Ask) -> None:
    (request,) = ask("edited-proposal").root.children
    assert request.execution is not None
    assert request.execution.verdict is RequestMatch.EDITED
    assert request.execution.changes == (Difference("$.params.arguments.path", "/etc/hosts", "/tmp/hosts"),)
    assert request.after_s == 21
    (response,) = request.children
    assert response.after_s == 1
    assert response.envelope is not None
    assert response.envelope.content["result"]["content"][0]["text"] == "wrote 1 byte"


def test_a_proposal_to_everybody_leaves_open_who_acts(ask: Ask) -> None:
    (request,) = ask("plain-proposal").root.children
    assert request.execution is not None
    assert request.execution.verdict is RequestMatch.AS_PROPOSED
    assert request.execution.changes == ()


def test_a_rejection_and_the_proposal_that_followed(ask: Ask) -> None:
    assert ids(ask("better-proposal").root) == ("bad-proposal", "bad-reject", "better-proposal")


def test_a_request_without_a_proposal(ask: Ask) -> None:
    assert ids(ask("list-response").root) == ("list-request", "list-response")


def test_what_the_gateway_took_back_hangs_on_what_made_it(ask: Ask) -> None:
    (notice,) = ask("revoke-old").root.children
    assert (notice.fact.kind, notice.fact.about) == ("capability/revoke", "grant-on")
    assert notice.envelope is not None
    assert notice.envelope.content["reason"] == "the granter no longer holds it"


# What is no longer kept.


def test_where_the_entries_are_gone_the_record_still_tells(table: Office, tmp_path: Path) -> None:
    with as_indexed(table.keep(tmp_path), OFFICE):
        pass
    drop_until(tmp_path, 11, OFFICE)
    with opened(tmp_path, OFFICE) as (journal, index):
        for envelope_id, verdict, changes in (
            ("edited-request", RequestMatch.EDITED, None),
            ("plain-request", RequestMatch.AS_PROPOSED, ()),
        ):
            fact = index.with_id(envelope_id)
            assert fact is not None
            chain = annotated(chain_of(index, fact), JournalEnvelopes(journal).envelope)
            (request,) = chain.root.children
            assert request.envelope is None
            assert request.execution is not None
            assert (request.execution.verdict, request.execution.changes) == (verdict, changes)
            (response,) = request.children
            assert response.fact.about.startswith("tools/call:")


def test_of_very_much_the_first_is_read(ask: Ask, table: Office, tmp_path: Path) -> None:
    ask("edited-proposal")
    with opened(tmp_path, OFFICE) as (journal, _):
        kept = JournalEnvelopes(journal, bytes_max=1)
        facts = [node.fact for node in nodes(ask("edited-proposal").root)]
        assert [kept.envelope(fact) is not None for fact in facts] == [True, False, False]


# What is odd.


def test_a_request_for_something_else_is_called_that(table: Office, ask: Ask) -> None:
    table.say("other-tool", "ann", "mcp/request", call("format_disk"), to=["files"], names="bad-proposal")
    table.say(
        "other-target", "ann", "mcp/request", call("delete_file", path="/"), to=["bob"], names="bad-proposal"
    )
    found = {node.fact.id: node.execution for node in ask("bad-proposal").root.children}
    for envelope_id in ("other-tool", "other-target"):
        execution = found[envelope_id]
        assert execution is not None
        assert execution.verdict is RequestMatch.UNRELATED
    target = found["other-target"]
    assert target is not None
    assert target.changes == (Difference("$.target", "files", "bob"),)


def test_an_answer_of_somebody_who_was_not_asked_is_marked(table: Office, ask: Ask) -> None:
    table.say("forged", "aide", "mcp/response", {"result": {}}, names="edited-request")
    (request,) = ask("edited-proposal").root.children
    assert [(node.fact.id, node.remarks) for node in request.children] == [
        ("edited-response", []),
        ("forged", ["was not asked"]),
    ]


def test_a_withdrawal_by_another_is_marked(index: Index) -> None:
    proposal = fact(1, kind="mcp/proposal")
    theirs = Fact(2, 0, 0, "mcp/withdraw", "eve", "e2", causes=("e1",))
    put_facts(index, [proposal, theirs, fact(3, "e1", kind="mcp/withdraw")])
    withdrawn = {node.fact.who: node.remarks for node in chain_in(index, "e1").root.children}
    assert withdrawn == {"eve": ["is not who proposed it"], "ann": []}


def test_what_else_an_envelope_names_is_counted(table: Office, ask: Ask) -> None:
    table.say(
        "of-both", "files", "mcp/response", {"result": {}}, names=["plain-request", "edited-request", "chat"]
    )
    chain = ask("of-both")
    assert chain.root.fact.id == "plain-proposal"
    (mine,) = (node for node in nodes(chain.root) if node.fact.id == "of-both")
    assert mine.remarks == ["names 2 envelopes more"]


def test_what_names_only_talk_or_nothing_says_so(table: Office, ask: Ask) -> None:
    table.say("said", "ann", "chat", {"text": "please"})
    table.say("after-chat", "ann", "mcp/request", call("read_file"), to=["files"], names="said")
    assert ask("after-chat").root.remarks == ["names 1 envelope before it that the record does not have"]


def test_a_key_that_occurs_twice_is_no_way_to_hide_a_change(table: Office, ask: Ask) -> None:
    table.say("twice-proposal", "aide", "mcp/proposal", call("read_file", path="/tmp/a"), to=["files"])
    twice = b'{"method":"tools/call","params":{"name":"read_file","arguments":{"path":"/etc/passwd","path":"/tmp/a"}}}'
    table.say("twice-request", "ann", "mcp/request", twice, to=["files"], names="twice-proposal")
    (request,) = ask("twice-request").root.children
    assert request.execution is not None
    assert request.execution.verdict is RequestMatch.EDITED


# What is meant to be too much.


def fact(seq: int, *names: str, id: str = "", kind: str = "mcp/request") -> Fact:
    return Fact(seq, 0, seq * 1_000_000, kind, "ann", id or f"e{seq}", causes=names)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    with index_with(tmp_path, ()) as index:
        yield index


def chain_in(index: Index, envelope_id: str) -> EnvelopeChain:
    found = index.with_id(envelope_id)
    assert found is not None
    return annotated(chain_of(index, found), lambda fact: None)


def test_a_circle_is_none_since_causes_come_first(index: Index) -> None:
    put_facts(index, [fact(1, "e3"), fact(2, "e1", "e2"), fact(3, "e2", "e1")])
    for asked in ("e1", "e2", "e3"):
        assert ids(chain_in(index, asked).root) == ("e1", ("e2", "e3"))


def test_thousands_that_name_one_are_counted_and_the_one_asked_about_is_there(index: Index) -> None:
    put_facts(index, [fact(1), *(fact(n, "e1") for n in range(2, 5002)), fact(6000, "e4000")])
    chain = chain_in(index, "e6000")
    assert len(chain.root.children) == 101
    assert chain.root.left_out == 5000 - 101
    assert chain.root.children[-1].fact.id == "e4000"
    assert ids(chain.root.children[-1]) == ("e4000", "e6000")
    assert chain_in(index, "e50").root.left_out == 5000 - 100


def test_an_envelope_that_names_a_thousand_is_looked_at_so_far(index: Index) -> None:
    many = tuple(f"e{n}" for n in range(1, 1001))
    put_facts(index, [*(fact(n) for n in range(1, 1001)), fact(1001, *many)])
    chain = chain_in(index, "e1001")
    assert ids(chain.root) == ("e1", "e1001")
    assert chain.root.children[0].remarks == ["names 999 envelopes more"]
    nobody = tuple(f"x{n}" for n in range(1000))
    put_facts(index, [fact(1002, *nobody, "e1")])
    assert ids(chain_in(index, "e1002").root) == "e1002"


def test_a_very_long_chain_is_shown_around_the_one_asked_about(index: Index) -> None:
    put_facts(index, [fact(1), *(fact(n, f"e{n - 1}") for n in range(2, 2001))])
    chain = chain_in(index, "e1000")
    shown = [node.fact.seq for node in nodes(chain.root)]
    assert shown == list(range(977, 1009))
    assert chain.goes_on_above
    assert [node.left_out for node in nodes(chain.root)][-1] == 1
    assert not chain_in(index, "e10").goes_on_above


def test_all_that_name_all_before_them_are_not_too_deep(index: Index) -> None:
    put_facts(index, [fact(n, f"e{n - 1}", "e1") for n in range(1, 401)])
    chain = chain_in(index, "e1")
    shown = sorted(node.fact.seq for node in nodes(chain.root))
    assert shown == list(range(1, len(shown) + 1))

    def depth(node: ChainNode) -> int:
        return 1 + max(map(depth, node.children), default=0)

    assert depth(chain.root) == 32


def test_a_tree_that_spreads_has_an_end(index: Index) -> None:
    facts = [fact(1), *(fact(n, f"e{n // 50 or 1}") for n in range(2, 5001))]
    put_facts(index, facts)
    chain = chain_in(index, "e1")
    assert sum(1 for _ in nodes(chain.root)) == 500
    left_out = sum(node.left_out for node in nodes(chain.root))
    assert left_out > 0


def test_what_was_refused_hangs_on_nothing(index: Index) -> None:
    refused = Fact(2, 0, 0, "mcp/request", "bot", "e1", refusal="duplicate_id", causes=("e1",))
    put_facts(index, [fact(1), refused, fact(3, "e1")])
    chain = annotated(chain_of(index, refused), lambda fact: None)
    assert ids(chain.root) == "e1"
    assert chain.root.fact is refused


def test_an_id_used_again_leads_to_the_latest_before(index: Index) -> None:
    answers = (fact(seq, "a", kind="mcp/response") for seq in (2, 4))
    put_facts(index, [fact(1, id="a"), fact(3, id="a"), *answers])
    for asked, seq in (("e2", 1), ("e4", 3)):
        root = chain_in(index, asked).root
        assert (root.fact.seq, ids(root)) == (seq, ("a", asked))
        assert root.remarks == ["its id was used 2 times"]
