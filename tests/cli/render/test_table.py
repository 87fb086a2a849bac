"""Tables fit the terminal they are on, and say in few words what there is to say."""

import io
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from rich.console import Console
from tests.audit.kept import as_indexed
from tests.audit.office import OFFICE, office
from tests.space.table import START

from mew.audit.queries.chain import JournalEnvelopes, annotated, chain_of
from mew.audit.queries.effective_capabilities import (
    CapabilityOrigin,
    DelegationStep,
    EffectiveCapability,
    ParticipantCapabilities,
    effective_capabilities,
    state_at,
)
from mew.audit.queries.grant_history import grant_history
from mew.audit.queries.search import (
    FactFilter,
    count_refusals,
    facts_of_grants,
    repeated_refusals,
    select_facts,
)
from mew.audit.queries.statistics import statistics_of
from mew.audit.record.facts import Fact
from mew.cli.commands.audit.chain import show_chain
from mew.cli.commands.audit.facts import show_attempts, show_candidates, show_facts, show_refusals
from mew.cli.commands.audit.grants import show_given, show_holders
from mew.cli.commands.audit.statistics import show_statistics
from mew.cli.render.table import about, console, json_line, lasting, name, outcome, verb, who_did, whom
from mew.protocol.envelope import GATEWAY


def printed(width: int, show: Callable[[Console], None]) -> str:
    out = io.StringIO()
    show(Console(file=out, width=width, force_terminal=True, color_system=None, highlight=False))
    return out.getvalue()


@pytest.fixture
def shows(tmp_path: Path) -> list[Callable[[Console], None]]:
    table = office()
    long = "a_tool_with_a_name_that_is_so_long_that_no_terminal_has_room_for_it_in_any_of_its_columns"
    table.say(
        "long", "ann", "mcp/request", {"method": "tools/call", "params": {"name": long}}, to=["bob"] * 9
    )
    with as_indexed(table.keep(tmp_path), OFFICE) as (journal, index):
        facts = select_facts(index, FactFilter(), limit=100).facts
        tried = repeated_refusals([fact for fact in facts if fact.refusal])
        counted = count_refusals(index, FactFilter())
        state = state_at(journal, index, table.now)
        held, given = (
            effective_capabilities(state),
            grant_history(facts_of_grants(index, 0, 99), state.grants),
        )
        chains = [annotated(chain_of(index, fact), JournalEnvelopes(journal).envelope) for fact in facts]
        numbers = statistics_of(journal, index, table.now)
    return [
        lambda out: show_facts(facts, {}, out),
        lambda out: show_candidates(facts, out),
        lambda out: show_attempts(tried, out),
        lambda out: show_refusals(counted, out),
        lambda out: show_holders(held, table.now, out),
        lambda out: show_given(given, out),
        lambda out: show_statistics(numbers, out),
        *(lambda out, chain=chain: show_chain(chain, {}, out) for chain in chains),
    ]


@pytest.mark.parametrize("width", [80, 100, 120])
def test_nothing_is_wider_than_the_terminal(shows: list[Callable[[Console], None]], width: int) -> None:
    for show in shows:
        lines = printed(width, show).splitlines()
        assert lines
        assert max(map(len, lines)) <= width


def test_on_a_narrow_terminal_ids_make_room(shows: list[Callable[[Console], None]]) -> None:
    assert printed(80, shows[0]).splitlines()[0].split() == [
        "time",
        "entry",
        "who",
        "what",
        "about",
        "outcome",
    ]
    assert printed(120, shows[0]).splitlines()[0].split()[-2:] == ["outcome", "id"]


def test_without_a_terminal_nothing_is_cut() -> None:
    assert console().width == 400


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0 ms"),
        (0.0123, "12 ms"),
        (1, "1.0 s"),
        (21, "21 s"),
        (101, "101 s"),
        (150, "2.5 min"),
        (7200, "2.0 h"),
        (864_000, "10 d"),
    ],
)
def test_how_long_it_took(seconds: float, shown: str) -> None:
    assert lasting(seconds) == shown


@pytest.mark.parametrize(
    ("fact", "words"),
    [
        (Fact(1, 1, 0, "system/presence", GATEWAY, about="join", whom=("ann",)), "ann joins"),
        (
            Fact(1, 0, 0, "configured", GATEWAY, note="delivery: everyone"),
            "(operator) configures delivery: everyone",
        ),
        (Fact(1, 0, 0, "configured", "ann", refusal="paused"), "ann configured refused: paused"),
        (Fact(1, 0, 0, "identified", GATEWAY, whom=("sso",)), "(gateway) vouches for sso"),
        (
            Fact(1, 1, 0, "capability/revoke", GATEWAY, about="g1", whom=("bot",), note="expired"),
            "(gateway) takes back g1 bot expired",
        ),
        (
            Fact(1, 0, 0, "mcp/request", "ann", about="tools/call:read", whom=("a", "b", "c", "d")),
            "ann requests read a, b, c +1",
        ),
        (Fact(1, 0, 0, "own/kind", "ann", refusal="malformed"), "ann own/kind refused: malformed"),
    ],
)
def test_a_fact_in_words(fact: Fact, words: str) -> None:
    parts = (who_did(fact), verb(fact), about(fact), whom(fact), outcome(fact))
    assert " ".join(part.plain for part in parts if part.plain) == words


@pytest.mark.parametrize(("code", "style"), [(-32601, "dim"), (-32602, "red")])
def test_a_probe_for_an_optional_method_is_no_failure(code: int, style: str) -> None:
    assert outcome(Fact(1, 0, 0, "mcp/response", "bot", note=f"error {code}: unknown")).style == style


def test_nobody_can_be_called_like_the_gateway() -> None:
    assert name(GATEWAY).plain == "(gateway)"
    assert name("(gateway)").plain == '"(gateway)"'


def test_a_chain_that_was_broken_or_needed_more_says_so() -> None:
    steps = (DelegationStep("bot", "g1", others=2), DelegationStep("bob", "g0", in_force=False))
    until = START + timedelta(hours=3)
    holder = ParticipantCapabilities(
        "aide", None, (EffectiveCapability("chat", CapabilityOrigin.GRANT, "g2", START, until, steps),)
    )
    nothing = ParticipantCapabilities("files", "ann", ())
    shown = printed(120, lambda out: show_holders([holder, nothing], START, out))
    assert "bot and 2 more ← bob ← a grant that has ended" in shown
    assert "(in 3.0 h)" in shown
    assert "files  nothing" in shown


def test_json_is_visible_ascii() -> None:
    assert json_line({"a": "\u202eü\x1b\U0001f600"}) == '{"a":"\\u202e\\u00fc\\u001b\\ud83d\\ude00"}'
