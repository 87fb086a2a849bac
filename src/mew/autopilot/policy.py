"""PURE. What to do about one proposal: never, guard, ratified and written rules, learned rules, ask."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from typing import Any, Final

from msgspec import Struct

from mew.proposals.written_rule import CallFacts, CallRule

from .evidence import bound_in_words
from .learner import Learner
from .precedents import Case
from .rule import Author, Rule, Rung, sentence
from .settings import AutopilotSettings, Mode

__all__ = ["Decision", "Policy", "Verdict"]

_STALE_AFTER: Final = 250
_FRESH_FACTOR: Final = 0.2  # of the audit rate, right after an audit
_OVERDUE_FACTOR: Final = 0.7  # of the audit rate, more after each 1/rate automatic decisions without an audit
_RATIFIED_FACTOR: Final = 0.5  # a reviewer asked not to be asked
_RAMP: Final = ((1, 0.1), (3, 0.5))  # confirmations while active, share decided alone until then


class Verdict(StrEnum):
    """What the autopilot does. `audit`: a rule covers it, a person is asked all the same."""

    FULFIL = "fulfil"
    ASK = "ask"
    AUDIT = "audit"
    SHADOW = "shadow"


class Decision(Struct, frozen=True, omit_defaults=True):
    """The payload of `autopilot/decision`. `field` is the argument that failed, `bound` the rule's at this moment.

    `ladder`: the rules that a reviewer can ratify when approving this, narrowest first.
    """

    verdict: Verdict
    why: str
    rule: str | None = None
    field: str | None = None
    bound: str | None = None
    suggestions: tuple[str, ...] = ()
    ladder: tuple[Rung, ...] = ()


class Policy:
    """Decides about calls with what a learner knows. It changes nothing: its uses are noted when they are seen."""

    def __init__(self, settings: AutopilotSettings, learner: Learner, seed: str) -> None:
        """The seed is secret: who knows it could choose proposal ids that are never audited."""
        self._settings = settings
        self._learner = learner
        self._seed = seed
        self._never = [CallRule(written) for written in settings.never]
        self._allow = [CallRule(written) for written in settings.allow]

    def decide(
        self,
        case: Case,
        params: Mapping[str, Any],
        now: datetime,
        *,
        annotations: Mapping[str, Any] | None = None,
        may_approve: Mapping[str, bool] | None = None,
        uses_last_hour: Mapping[str, int] | None = None,
    ) -> Decision:
        """Decide about a call. `may_approve` says which ratifiers could approve this call themselves, now."""
        call = CallFacts(
            proposer=case.group.proposer,
            target=case.group.target,
            method=case.group.method,
            params=params,
            annotations=annotations or {},
        )
        for never in self._never:
            if never.forbids(call):
                return Decision(Verdict.ASK, f"a person must decide: never {never}")
        guarded = self._learner.guard(case)
        if guarded is not None:
            return self._ask(case, guarded)
        for place, allow in enumerate(self._allow):
            if allow.allows(call):
                rule, why = f"allow[{place}]", f"written in the settings: {allow}"
                if self._is_spent(rule, uses_last_hour):
                    return Decision(Verdict.ASK, f"{rule} has used its budget of this hour", rule)
                return self._act(Decision(Verdict.FULFIL, why, rule))
        return self._by_rule(case, now, may_approve or {}, uses_last_hour)

    def _by_rule(
        self,
        case: Case,
        now: datetime,
        may_approve: Mapping[str, bool],
        uses_last_hour: Mapping[str, int] | None,
    ) -> Decision:
        rule = self._learner.covering(case)
        if rule is None:
            return self._ask(case, None)
        if rule.until is not None and now >= rule.until:
            return Decision(Verdict.ASK, f"rule {rule.id} ended at {rule.until:%Y-%m-%d %H:%M} UTC", rule.id)
        if rule.author is Author.RATIFIED and not may_approve.get(rule.by or "", True):
            return Decision(
                Verdict.ASK, f"{rule.by}, who ratified rule {rule.id}, may not approve this", rule.id
            )
        if rule.last_used is not None and now - rule.last_used > timedelta(days=self._settings.idle_days):
            return Decision(
                Verdict.ASK, f"rule {rule.id} was not used for {self._settings.idle_days:g} days", rule.id
            )
        if self._is_spent(rule.id, uses_last_hour):
            return Decision(Verdict.ASK, f"rule {rule.id} has used its budget of this hour", rule.id)
        if (novel := self._learner.novelty(case, rule)) is not None:
            return Decision(Verdict.ASK, f"{novel.why} (rule {rule.id})", rule.id, novel.field or None)
        bound = bound_in_words(rule.decisions, rule.rejections)
        why = self._why_audit(case, rule)
        if why is not None:
            return Decision(Verdict.AUDIT, why, rule.id, bound=bound)
        return self._act(Decision(Verdict.FULFIL, sentence(rule.group, rule.pattern), rule.id, bound=bound))

    def _why_audit(self, case: Case, rule: Rule) -> str | None:
        """Why a person is asked although the rule covers the call; None if it decides alone."""
        is_careful = case.risk_class in self._settings.careful
        if rule.author is Author.LEARNED:
            for confirmations, share in _RAMP:
                if rule.confirmations < confirmations:
                    if self._draw("ramp", case.id) >= share:
                        return f"rule {rule.id} is new and asks more often at first"
                    break
        if is_careful and self._learner.is_stale(case, _STALE_AFTER):
            return f"rule {rule.id} covers this, but no person decided about calls like this lately"
        if self._draw("audit", case.id) < self._audit_share(case, rule):
            return f"rule {rule.id} covers this; asked all the same to check the rule"
        return None

    def _audit_share(self, case: Case, rule: Rule) -> float:
        """How likely this call is audited: the more, the longer its least audited value was decided alone."""
        share = self._settings.audit
        if share and self._learner.is_doubted(case):
            return 1.0
        if rule.author is Author.RATIFIED:
            share *= _RATIFIED_FACTOR
        overdue = self._settings.audit * self._learner.since_audit(case)
        return min(1.0, share * (_FRESH_FACTOR + _OVERDUE_FACTOR * overdue))

    def _ask(self, case: Case, guarded: str | None) -> Decision:
        offered = tuple(rule.id for rule in self._learner.suggestions(case))
        if guarded is not None:
            return Decision(Verdict.ASK, guarded, suggestions=offered)
        near = self._learner.nearest(case)
        if near is None:
            return Decision(Verdict.ASK, "no rule covers such calls yet", suggestions=offered)
        rule, wrong = near
        why = f"{wrong.why} (rule {rule.id})"
        return Decision(Verdict.ASK, why, rule.id, wrong.field or None, suggestions=offered)

    def _act(self, decision: Decision) -> Decision:
        if self._learner.mode in (Mode.SUGGEST, Mode.ACT):
            return decision
        return Decision(Verdict.SHADOW, decision.why, decision.rule, bound=decision.bound)

    def _is_spent(self, rule: str, uses_last_hour: Mapping[str, int] | None) -> bool:
        budget = self._settings.budget_per_hour
        return budget > 0 and (uses_last_hour or {}).get(rule, 0) >= budget

    def _draw(self, purpose: str, case: str) -> float:
        """A number from 0 to 1 that nobody can predict without the seed and that is the same every time."""
        hashed = sha256(f"{self._seed}\n{purpose}\n{case}".encode()).digest()
        return int.from_bytes(hashed[:8]) / 2**64
