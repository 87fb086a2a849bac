"""How rules grow with approvals, what is asked about although a rule covers it, and what a disagreement does."""

from datetime import UTC, datetime
from typing import Any

from mew.autopilot.learner import Learner
from mew.autopilot.policy import Decision, Policy, Verdict
from mew.autopilot.precedents import Case
from mew.autopilot.rule import Author, Group, Pattern, Rule, RuleState
from mew.autopilot.settings import AutopilotSettings, Mode, RiskClass

AT = datetime(2026, 1, 1, tzinfo=UTC)
FILES = Group("coder", ("files",), "tools/call", "read_file")
DEPLOY = Group("coder", ("cloud",), "tools/call", "deploy")
DECISIONS_MAX = 400


class Desk:
    """A reviewer in front of an autopilot."""

    def __init__(self, *, audit: float = 0.0) -> None:
        settings = AutopilotSettings(mode=Mode.ACT, risk=0.2, audit=audit)
        self.learner = Learner(settings)
        self._policy = Policy(settings, self.learner, "seed")
        self._count = 0

    def propose(self, group: Group, **arguments: Any) -> tuple[Case, Decision]:
        self._count += 1
        case = Case(f"p{self._count}", group, arguments, risk_class=RiskClass.READ)
        decision = self._policy.decide(case, {"name": group.operand, "arguments": arguments}, AT)
        if decision.verdict is Verdict.FULFIL and decision.rule is not None:
            self.learner.used(decision.rule, case, AT)
        return case, decision

    def approve(self, group: Group, **arguments: Any) -> Verdict:
        """Propose a call, and approve it unless a rule did; return the verdict."""
        case, decision = self.propose(group, **arguments)
        if decision.verdict is not Verdict.FULFIL:
            self.learner.decided(case, AT, approved=True)
        return decision.verdict

    def reject(self, group: Group, **arguments: Any) -> None:
        self.learner.decided(self.propose(group, **arguments)[0], AT, approved=False)

    def active(self, group: Group) -> list[Rule]:
        return [rule for rule in self.learner.rules if rule.group == group and rule.state is RuleState.ACTIVE]

    def teach_files(self, *folders: str) -> None:
        """Approve until a rule decides alone about these folders."""
        for number in range(DECISIONS_MAX):
            verdicts = [self.approve(FILES, path=f"{folder}/m{number}.py") for folder in folders]
            if set(verdicts) == {Verdict.FULFIL} and number > 60:
                return
        raise AssertionError("no rule learned this")


def test_a_rule_grows_to_a_folder_that_was_approved_twice_and_keeps_its_evidence() -> None:
    desk = Desk()
    desk.teach_files("src")
    [before] = desk.active(FILES)
    evidence, revision = before.decisions, before.revision
    assert desk.approve(FILES, path="tests/a.py") is Verdict.ASK
    assert desk.approve(FILES, path="tests/b.py") is Verdict.ASK
    [after] = desk.active(FILES)
    assert after.id == before.id
    assert after.revision == revision + 1
    assert after.decisions == evidence
    assert desk.approve(FILES, path="tests/c.py") is Verdict.FULFIL


def test_a_ratified_rule_does_not_grow() -> None:
    desk = Desk()
    for number in range(12):
        desk.approve(FILES, path=f"src/m{number}.py")
    [suggested] = [rule for rule in desk.learner.rules if rule.state is RuleState.SUGGESTED]
    ratified = desk.learner.ratify(FILES, RiskClass.READ, suggested.pattern, "ann", AT)
    pattern = ratified.pattern
    for number in range(4):
        desk.approve(FILES, path=f"tests/m{number}.py")
    assert (ratified.pattern, ratified.author) == (pattern, Author.RATIFIED)


def test_two_values_that_nobody_approved_together_are_asked_about() -> None:
    desk = Desk()
    for number in range(DECISIONS_MAX):
        for environment, dry_run in (("dev", False), ("dev", True), ("production", True)):
            desk.approve(DEPLOY, environment=environment, dry_run=dry_run, build=number % 9)
    assert desk.propose(DEPLOY, environment="production", dry_run=True, build=3)[1].verdict is Verdict.FULFIL
    _, decision = desk.propose(DEPLOY, environment="production", dry_run=False, build=3)
    assert decision.verdict is Verdict.ASK
    assert "nobody has approved" in decision.why


def test_an_accepted_suggestion_asks_about_new_combinations_and_a_chosen_scope_does_not() -> None:
    desk = Desk()
    for number in range(8):
        for environment, dry_run in (("dev", False), ("production", True)):
            desk.approve(DEPLOY, environment=environment, dry_run=dry_run, build=number % 3)
    suggested = [rule for rule in desk.learner.rules if rule.state is RuleState.SUGGESTED]
    wide = next(rule for rule in suggested if len(rule.pattern.heads["environment#value"]) == 2)
    accepted = desk.learner.ratify(DEPLOY, RiskClass.READ, wide.pattern, "ann", AT)
    _, decision = desk.propose(DEPLOY, environment="production", dry_run=False, build=3)
    assert (decision.verdict, decision.rule) == (Verdict.ASK, accepted.id)
    scope = Pattern(heads=wide.pattern.heads, softs={**wide.pattern.softs, "build#number": (0.0, 99.0)})
    desk.learner.ratify(DEPLOY, RiskClass.READ, scope, "ann", AT)
    desk.learner.set_state(accepted.id, RuleState.REVOKED, AT)
    _, decision = desk.propose(DEPLOY, environment="production", dry_run=False, build=3)
    assert decision.verdict is Verdict.FULFIL


def test_a_share_of_covered_calls_is_audited() -> None:
    desk = Desk(audit=0.05)
    desk.teach_files("src")
    verdicts = [desk.approve(FILES, path=f"src/n{number}.py") for number in range(2000)]
    assert set(verdicts) == {Verdict.AUDIT, Verdict.FULFIL}
    assert 0.03 < verdicts.count(Verdict.AUDIT) / len(verdicts) < 0.08


def test_a_rare_value_is_audited_as_often_as_a_frequent_one() -> None:
    desk = Desk(audit=0.05)
    desk.teach_files("src", "docs")
    verdicts: dict[str, list[Verdict]] = {"src": [], "docs": []}
    for number in range(3000):
        folder = "docs" if number % 10 == 0 else "src"
        verdicts[folder].append(desk.approve(FILES, path=f"{folder}/n{number}.py"))
    longest = max(len(run) for run in " ".join(verdicts["docs"]).split(Verdict.AUDIT))
    assert longest // len(" fulfil") < 120
    assert verdicts["docs"].count(Verdict.AUDIT) >= 0.03 * len(verdicts["docs"])


def test_after_a_disagreement_each_value_of_other_tools_is_asked_about_once() -> None:
    desk = Desk(audit=0.01)
    for number in range(DECISIONS_MAX):
        desk.approve(DEPLOY, environment=("dev", "staging")[number % 2], build=number % 9)
    desk.teach_files("src")
    assert desk.approve(DEPLOY, environment="dev", build=3) is Verdict.FULFIL
    desk.reject(FILES, path="src/other.py")
    assert not desk.active(FILES)
    assert desk.approve(DEPLOY, environment="dev", build=3) is Verdict.AUDIT
    assert desk.approve(DEPLOY, environment="dev", build=3) is Verdict.FULFIL
    assert desk.approve(DEPLOY, environment="staging", build=3) is Verdict.AUDIT
    assert desk.approve(DEPLOY, environment="staging", build=3) is Verdict.FULFIL
