"""Runs the autopilot and simpler policies against simulated reviewers, and measures how often each is wrong."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from random import Random
from time import perf_counter
from typing import Final, Protocol

from mew.autopilot.learner import Learner
from mew.autopilot.policy import Policy, Verdict
from mew.autopilot.precedents import Case
from mew.autopilot.rule import Group, Pattern, RuleState
from mew.autopilot.settings import AutopilotSettings, Mode, RiskClass

from .held_out_tools import DESK, OPERATIONS, RECORDS
from .simulation import SimulatedTool, simulate
from .tools import OFFICE, SERVICES

__all__ = ["FAMILIES", "Outcome", "calibration", "compare", "decision_costs_us", "run"]

_AT: Final = datetime(2026, 1, 1, tzinfo=UTC)
_RULES_EACH: Final = 16
_DECISIONS: Final = 300
FAMILIES: Final[dict[str, tuple[SimulatedTool, ...]]] = {
    "files, shell, payments, e-mail": OFFICE,
    "SQL, HTTP, deployments, tickets": SERVICES,
    "edits, processes, transfers, mail (held out)": DESK,
    "calendar, cloud, build jobs, warehouse (held out)": OPERATIONS,
    "chat, flags, customers, devices (held out)": RECORDS,
}


@dataclass
class Outcome:
    """Counts of one or several runs."""

    total: int = 0
    allowed: int = 0
    alone: int = 0
    wrong: int = 0
    attacks: int = 0
    attacks_through: int = 0
    late_allowed: int = 0
    late_alone: int = 0

    def add(self, other: "Outcome") -> None:
        for name in self.__dataclass_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    @property
    def share_alone(self) -> float:
        """Of all proposals, how many were decided without a person."""
        return self.alone / max(1, self.total)

    @property
    def share_wrong(self) -> float:
        """Of the automatic decisions, how many the hidden policy would have rejected."""
        return self.wrong / max(1, self.alone)

    @property
    def share_late(self) -> float:
        """Of the approvable proposals in the last tenth, how many were decided without a person."""
        return self.late_alone / max(1, self.late_allowed)


class _Decider(Protocol):
    def decide(self, case: Case) -> bool: ...

    def learn(self, case: Case, approved: bool) -> None: ...  # noqa: FBT001


class _Autopilot:
    def __init__(self, settings: AutopilotSettings, seed: int, ratify: float) -> None:
        self.learner = Learner(settings)
        self._policy = Policy(settings, self.learner, str(seed))
        self._random = Random(seed)
        self._ratify = ratify

    def decide(self, case: Case) -> bool:
        decision = self._policy.decide(case, {"name": case.group.operand, "arguments": case.arguments}, _AT)
        if decision.verdict is Verdict.FULFIL and decision.rule is not None:
            self.learner.used(decision.rule, case, _AT)
            return True
        return False

    def learn(self, case: Case, approved: bool) -> None:  # noqa: FBT001
        for rule in self.learner.decided(case, _AT, approved=approved):
            if rule.state is RuleState.SUGGESTED and self._random.random() < self._ratify:
                self.learner.ratify(case.group, case.risk_class, rule.pattern, "ann", _AT)


class _Baseline:
    """Decides alone once `threshold` approvals of the same key were seen without a rejection (or in a row)."""

    def __init__(self, key: Callable[[Case], str], threshold: int, *, forgives: bool = False) -> None:
        self._key, self._threshold, self._forgives = key, threshold, forgives
        self._counts: dict[str, int] = {}

    def decide(self, case: Case) -> bool:
        return self._counts.get(self._key(case), 0) >= self._threshold

    def learn(self, case: Case, approved: bool) -> None:  # noqa: FBT001
        key = self._key(case)
        if approved:
            self._counts[key] = self._counts.get(key, 0) + 1
        else:
            self._counts[key] = 0 if self._forgives else -1_000_000


def run(
    family: str,
    seed: int,
    *,
    decider: Callable[[], _Decider],
    count: int = 3000,
    noise: float = 0.01,
    drift: bool = True,
) -> Outcome:
    """One stream of proposals through one policy."""
    policy, outcome = decider(), Outcome()
    for number, call in enumerate(
        simulate(FAMILIES[family], f"{family}:{seed}", count, noise=noise, drift=drift)
    ):
        group = Group("coder", ("tools",), "tools/call", call.tool)
        case = Case(f"p{number}", group, call.arguments, risk_class=RiskClass.READ)
        alone = policy.decide(case)
        is_late = number >= count * 9 // 10
        outcome.add(
            Outcome(
                total=1,
                allowed=call.is_allowed,
                alone=alone,
                wrong=alone and not call.is_allowed,
                attacks=call.is_attack,
                attacks_through=alone and call.is_attack,
                late_allowed=is_late and call.is_allowed,
                late_alone=is_late and call.is_allowed and alone,
            )
        )
        if not alone:
            policy.learn(case, call.decision)
    return outcome


def compare(
    families: Sequence[str], seeds: int, *, risk: float = 0.20, count: int = 3000, drift: bool = False
) -> list[tuple[str, str, Outcome]]:
    """(family, policy, outcome) for the autopilot, with and without a person who ratifies, and the baselines."""
    settings = AutopilotSettings(mode=Mode.ACT, risk=risk)
    deciders: dict[str, Callable[[int], _Decider]] = {
        "autopilot": lambda seed: _Autopilot(settings, seed, 0.0),
        "autopilot, 1 in 3 suggestions ratified": lambda seed: _Autopilot(settings, seed, 1 / 3),
        "always allow, exact call": lambda _: _Baseline(
            lambda case: case.group.operand + case.exact, 1, forgives=True
        ),
        "always allow, tool": lambda _: _Baseline(lambda case: case.group.operand, 1, forgives=True),
        "always allow, first word or folder": lambda _: _Baseline(_prefix, 1, forgives=True),
        "20 approvals in a row": lambda _: _Baseline(lambda case: case.group.operand, 20, forgives=True),
        "20 approvals, no rejection, first word or folder": lambda _: _Baseline(_prefix, 20),
    }
    table: list[tuple[str, str, Outcome]] = []
    for family in families:
        for name, decider in deciders.items():
            whole = Outcome()
            for seed in range(seeds):
                whole.add(run(family, seed, decider=partial(decider, seed), count=count, drift=drift))
            table.append((family, name, whole))
    return table


def calibration(runs: int, *, risk: float = 0.20, decisions: int = 400, seed: int = 0) -> float:
    """The share of runs in which a rule activated although reviewers reject exactly `risk` of what it covers."""
    settings = AutopilotSettings(mode=Mode.ACT, risk=risk)
    group = Group("coder", ("tools",), "tools/call", "read_file")
    activated = 0
    for number in range(runs):
        random, learner = Random(seed * 1_000_003 + number), Learner(settings)
        for place in range(decisions):
            case = Case(f"p{place}", group, {"page": random.randint(1, 1000)})
            learner.decided(case, _AT, approved=random.random() >= risk)
            if learner.covering(case) is not None:
                activated += 1
                break
    return activated / runs


def decision_costs_us() -> dict[int, float]:
    """Microseconds for one decision with 1, 100 and 1,000 learned rules, 16 at most for a group."""
    costs: dict[int, float] = {}
    settings = AutopilotSettings(mode=Mode.ACT)
    for rules in (1, 100, 1000):
        learner = Learner(settings)
        for number in range(rules):
            group = Group("coder", ("tools",), "tools/call", f"tool{number // _RULES_EACH}")
            pattern = Pattern(exact=f'{{"path":"src/m{number}.py"}}')
            learner.ratify(group, RiskClass.READ, pattern, "ann", _AT)
        policy = Policy(settings, learner, "seed")
        group = Group("coder", ("tools",), "tools/call", "tool0")
        began = perf_counter()
        for number in range(_DECISIONS):
            case = Case(f"p{number}", group, {"path": f"src/deep/m{number}.py"})
            policy.decide(case, {"name": "tool0", "arguments": case.arguments}, _AT)
        costs[rules] = (perf_counter() - began) / _DECISIONS * 1e6
    return costs


def _prefix(case: Case) -> str:
    first = next((value for value in case.arguments.values() if isinstance(value, str)), "")
    return f"{case.group.operand} {first.replace('/', ' ').split(' ')[0]}"
