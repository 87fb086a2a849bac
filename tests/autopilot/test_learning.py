"""What the pure parts promise: closed patterns, valid evidence, determinism."""

import copy
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mew.autopilot.bench.benchmark import FAMILIES, calibration
from mew.autopilot.bench.simulation import simulate
from mew.autopilot.evidence import BIRTHS_MAX, alpha_of_birth, bound_in_words, e_value, upper_bound
from mew.autopilot.learner import Learner
from mew.autopilot.policy import Policy, Verdict
from mew.autopilot.precedents import Case
from mew.autopilot.rule import Group, Pattern, RuleState, sentence
from mew.autopilot.settings import (
    AutopilotSettings,
    InvalidSettings,
    Mode,
    RiskClass,
    read_settings,
)
from mew.autopilot.view import view
from mew.cli.commands.autopilot import read_config
from mew.cli.errors import CommandError
from mew.proposals.written_rule import WrittenRule
from mew.protocol.json import encode_json

AT = datetime(2026, 1, 1, tzinfo=UTC)
ACT = AutopilotSettings(mode=Mode.ACT, risk=0.2, audit=0.0)
GROUP = Group("coder", ("files",), "tools/call", "read_file")
SHELL = Group("coder", ("shell",), "tools/call", "run")


def case(arguments: dict[str, Any], number: int = 0, group: Group = GROUP) -> Case:
    return Case(f"p{number}", group, arguments, risk_class=RiskClass.READ)


def taught(count: int = 80) -> Learner:
    learner = Learner(ACT)
    for number in range(count):
        learner.decided(case({"path": f"src/m{number}.py"}, number), AT, approved=True)
    return learner


def taught_shell() -> Learner:
    learner = Learner(ACT)
    for number in range(60):
        learner.decided(case({"command": f"cat src/m{number}.py"}, number, SHELL), AT, approved=True)
    return learner


def run_over(family: str, learner: Learner, start: int, end: int) -> None:
    for number, call in enumerate(simulate(FAMILIES[family], f"{family}:1", 600)):
        if start <= number < end:
            group = Group("coder", ("tools",), "tools/call", call.tool)
            learner.decided(case(call.arguments, number, group), AT, approved=call.decision)


def state_of(learner: Learner) -> bytes:
    return encode_json([rule.as_dict() for rule in learner.rules])


def test_the_same_decisions_give_the_same_rules_byte_for_byte() -> None:
    first, second = Learner(ACT), Learner(ACT)
    for learner in (first, second):
        run_over("files, shell, payments, e-mail", learner, 0, 600)
    assert state_of(first) == state_of(second)
    assert len(list(first.rules)) > 3


def test_a_copy_and_the_decisions_after_it_give_the_same_rules_as_all_decisions() -> None:
    whole, part = Learner(ACT), Learner(ACT)
    run_over("SQL, HTTP, deployments, tickets", whole, 0, 400)
    run_over("SQL, HTTP, deployments, tickets", part, 0, 250)
    restored = copy.deepcopy(part)
    run_over("SQL, HTTP, deployments, tickets", restored, 250, 400)
    assert state_of(restored) == state_of(whole)


def test_a_rule_is_learned_and_covers_similar_calls() -> None:
    learner = taught()
    rule = learner.covering(case({"path": "src/new.py"}))
    assert rule is not None
    assert "in `src/**`" in sentence(rule.group, rule.pattern)


@pytest.mark.parametrize(
    "arguments",
    [
        {"path": "src/new.py", "encoding": "utf-8"},
        {"path": ["src/new.py"]},
        {"path": None},
        {"path": 7},
        {},
        {"path": {"path": "src/new.py"}},
        {"path": "src/../secrets.py"},
        {"path": "/src/new.py"},
        {"path": "~/src/new.py"},
        {"path": "src/new.env"},
        {"path": "src/.hidden.py"},
        {"path": "src/new.py;id"},
        {"path": "src/$(id).py"},
        {"path": "src/n\u0435w.py"},
        {"path": "src/new.py\n"},
        {"path": "src//new.py"},
        {"path": "src/%2e%2e/new.py"},
    ],
)
def test_what_was_never_seen_does_not_match(arguments: dict[str, Any]) -> None:
    assert taught().covering(case(arguments)) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
LEARNER = taught()
SHELL_LEARNER = taught_shell()


@given(st.text(min_size=1, max_size=12).filter(lambda key: key != "path"), JSON)
def test_a_call_with_an_unseen_key_never_matches(key: str, value: Any) -> None:
    assert LEARNER.covering(case({"path": "src/new.py", key: value})) is None


@given(st.dictionaries(st.text(max_size=8), JSON, max_size=4))
def test_any_arguments_have_a_view_and_match_their_own_exact_rule_only(arguments: dict[str, Any]) -> None:
    one = case(arguments)
    view(arguments, None, 3)
    assert one.mismatch(Pattern(exact=one.exact)) is None
    assert case({**arguments, "another key": 1}).mismatch(Pattern(exact=one.exact)) is not None


@given(st.sampled_from(";|&$`<>(){}*?!~\\'\""), st.text(alphabet="abc /", min_size=1, max_size=8))
def test_commands_with_shell_characters_match_only_exactly(meta: str, rest: str) -> None:
    assert SHELL_LEARNER.covering(case({"command": "cat src/new.py"}, group=SHELL)) is not None
    assert SHELL_LEARNER.covering(case({"command": f"cat src/new.py{meta}{rest}"}, group=SHELL)) is None


@pytest.mark.parametrize("claim", [{"x-mew-kind": "content"}, {"format": "text"}, {"x-mew-kind": "prose"}])
def test_a_schema_cannot_declare_a_command_to_be_free_text(claim: dict[str, str]) -> None:
    schema = {"properties": {"command": claim}}
    assert view({"command": "ls; id"}, schema).heads["command#kind"] == ("exact",)
    assert view({"command": "ls src/a"}, schema).heads["command#program"] == ("ls",)


NAMES = ["path", "command", "url", "sql", "to", "content", "memo", "x"]


@given(
    st.sampled_from(NAMES), st.text(alphabet="ab/. :@-=?&~;\t\n\u00e9", max_size=12) | st.text(max_size=12)
)
def test_any_text_under_any_name_has_a_view(name: str, text: str) -> None:
    for depth in (1, 2, 3):
        assert view({name: text}, {}, depth).heads


def test_identical_calls_do_not_add_up_to_a_general_rule() -> None:
    learner = Learner(ACT)
    for number in range(500):
        learner.decided(case({"path": f"src/m{number % 3}.py"}, number), AT, approved=True)
    rules = [rule for rule in learner.rules if rule.state is RuleState.ACTIVE]
    assert rules
    assert all(rule.pattern.exact is not None for rule in rules)


def test_rules_sleep_when_the_tool_changes() -> None:
    learner = taught()
    other = Group("coder", ("files",), "tools/call", "read_file", "changed")
    learner.decided(case({"path": "src/a.py"}, group=other), AT, approved=True)
    assert learner.covering(case({"path": "src/new.py"}, group=other)) is None
    assert {rule.state for rule in learner.rules} == {RuleState.ASLEEP}


def test_a_rejection_demotes_the_active_rule_and_the_guard_remembers_it() -> None:
    learner = taught()
    bad = case({"path": "src/bad.py"})
    changed = learner.decided(bad, AT, approved=False)
    assert {rule.state for rule in changed} == {RuleState.DEMOTED}
    assert learner.guard(bad) is not None


def test_destructive_tools_never_activate_by_themselves() -> None:
    learner = Learner(ACT)
    for number in range(300):
        one = Case(f"p{number}", GROUP, {"path": f"src/m{number}.py"}, risk_class=RiskClass.DESTRUCTIVE)
        learner.decided(one, AT, approved=True)
    assert all(rule.state is not RuleState.ACTIVE for rule in learner.rules)


def test_the_ladder_goes_from_the_exact_call_to_wider_rules_that_all_match() -> None:
    learner, call = taught(12), case({"path": "src/new.py"})
    ladder = [rung.scope for rung in learner.ladder(call)]
    assert ladder[0].exact is not None
    assert len(ladder) >= 2
    assert all(call.mismatch(pattern) is None for pattern in ladder)


def test_a_first_call_has_a_ladder_from_its_folder_to_its_widest_form() -> None:
    ladder = taught(0).ladder(case({"path": "src/app/core/new.py"}))
    within = [
        "with exactly",
        "core/**`, at most 4",
        "app/**`, at most 4",
        "src/**`, at most 4",
        "src/**`, at most 7",
    ]
    assert all(part in rung.sentence for part, rung in zip(within, ladder, strict=True))


# Evidence.


@pytest.mark.parametrize(("risk", "needed"), [(0.20, 37), (0.10, 77), (0.05, 159), (0.02, 402)])
def test_a_twentieth_with_a_hundred_births_takes_these_approvals(risk: float, needed: int) -> None:
    assert e_value(needed, 0, risk) >= BIRTHS_MAX / 0.05 > e_value(needed - 2, 0, risk)


def test_the_shares_of_all_births_are_at_most_delta() -> None:
    assert sum(alpha_of_birth(number, 0.05) for number in range(1, 10_000)) <= 0.05


@given(st.integers(0, 300), st.integers(0, 20), st.sampled_from([0.02, 0.05, 0.1, 0.2]))
def test_the_evidence_is_a_supermartingale_if_the_rate_is_the_risk(n: int, k: int, risk: float) -> None:
    k = min(k, n)
    after = risk * e_value(n + 1, k + 1, risk) + (1 - risk) * e_value(n + 1, k, risk)
    assert after <= e_value(n, k, risk) * (1 + 1e-9)


def test_reviewers_who_reject_at_the_risk_level_hardly_ever_see_a_rule_activate() -> None:
    assert calibration(200, decisions=120) <= 0.05


def test_a_single_candidate_keeps_its_level_over_thousands_of_runs() -> None:
    random, alpha, crossed = Random(7), 0.05, 0
    for _ in range(3000):
        rejections = 0
        for number in range(1, 200):
            rejections += random.random() < 0.2
            if e_value(number, rejections, 0.2) >= 1 / alpha:
                crossed += 1
                break
    assert crossed / 3000 <= alpha * 1.2


def test_the_bound_is_said_in_words() -> None:
    assert (
        bound_in_words(14, 0)
        == "14 approved, 0 rejected; you would reject fewer than 1 in 4, with 95 % confidence"
    )
    assert "too few" in bound_in_words(2, 0)
    assert upper_bound(100, 0) < upper_bound(50, 0) < upper_bound(50, 2)


# Policy.


def decide(policy: Policy, arguments: dict[str, Any], tool: str = "read_file") -> Verdict:
    group = Group("coder", ("files",), "tools/call", tool)
    one = case(arguments, group=group)
    return policy.decide(one, {"name": tool, "arguments": arguments}, AT).verdict


def test_never_wins_over_what_was_written_and_learned() -> None:
    written = AutopilotSettings(
        mode=Mode.ACT, never=("tools/call:read_*",), allow=(WrittenRule(tool="read_file"),), risk=0.2
    )
    assert decide(Policy(written, taught(), "s"), {"path": "src/new.py"}) is Verdict.ASK


def test_a_written_rule_acts_at_once_and_is_closed() -> None:
    written = AutopilotSettings(allow=(WrittenRule(tool="read_file", arguments={"path": "docs/**"}),))
    policy = Policy(written, Learner(written), "s")
    assert decide(policy, {"path": "docs/a.md"}) is Verdict.FULFIL
    assert decide(policy, {"path": "docs/../a.md"}) is Verdict.ASK
    assert decide(policy, {"path": "docs/a.md", "raw": True}) is Verdict.ASK
    assert decide(policy, {"path": "docs/a.md"}, "write_file") is Verdict.ASK


def test_shadow_only_predicts() -> None:
    written = AutopilotSettings(mode=Mode.SHADOW, allow=(WrittenRule(tool="read_file"),))
    assert decide(Policy(written, Learner(written), "s"), {"path": "a"}) is Verdict.SHADOW


def test_a_budget_that_is_used_up_asks() -> None:
    settings = AutopilotSettings(allow=(WrittenRule(tool="read_file"),), budget_per_hour=2)
    policy = Policy(settings, Learner(settings), "s")
    params = {"name": "read_file", "arguments": {"path": "a"}}
    decision = policy.decide(case({"path": "a"}), params, AT, uses_last_hour={"allow[0]": 2})
    assert decision.verdict is Verdict.ASK


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ({"mode": "fly"}, "mode"),
        ({"risk": 2.0}, "autopilot.risk"),
        ({"risk": {"read": 0}}, "risk.read"),
        ({"nevr": []}, "nevr"),
        ({"never": ["tools/call:/(/"]}, "never[0]"),
        ({"allow": [{"arguments": {}}]}, "allow[0]: name the tool"),
        ({"audit": -1}, "audit"),
    ],
)
def test_wrong_settings_say_which_key_is_wrong(written: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidSettings) as raised:
        read_settings(written)
    assert problem in str(raised.value)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("mode: act\nallow:\n  - {tool: a}\n  - {method: tools/call}\n", 4),
        ("space: {id: x}\nautopilot:\n  audit: 7\n", 3),
        ("autopilot:\n  never:\n    - tools/call:x\n    - {tool: 3}\n", 4),
    ],
)
def test_a_wrong_setting_in_a_file_is_named_with_its_line(text: str, line: int, tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(text)
    with pytest.raises(CommandError, match=f"line {line}:"):
        read_config(file)
