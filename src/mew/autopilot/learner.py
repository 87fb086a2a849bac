"""PURE. What reviewers' decisions teach: rules that grow with approvals, their evidence and states.

A rule counts a decision only if it would have decided that call itself, with the pattern it had before. So a pattern
may follow what was approved, and its evidence stays a test of predictions (prequential). Everything here is a function
of the decisions in their order.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from math import ceil, log
from typing import Final

from .evidence import BIRTHS_MAX, alpha_of_birth, approvals_needed, bound_in_words, e_value
from .hull import close_pattern, is_clean, patterns, wide_pattern, width
from .precedents import Case, Precedents
from .rule import Author, Group, Mismatch, Pattern, Rule, RuleState, Rung, rule_id, sentence
from .settings import AutopilotSettings, Mode, RiskClass
from .view import DEEP

__all__ = ["Learner"]

_LIVE_MAX: Final = 16
_GROUPS_MAX: Final = 2000
_FIRST_BIRTH: Final = 4  # approvals of a group before its first candidate: earlier ones waste the best alpha
_IDENTICAL_MAX: Final = 2
_DISTINCT_MIN: Final = 4
_DISTINCT_MAX: Final = 2000
_SUGGEST_AFTER: Final = 5
_SUGGEST_AFTER_MAX: Final = 8
_COVERED_MIN: Final = 2  # past approvals that a candidate must cover
_BIRTHS_EACH: Final = 12  # births after which one more uncovered approval is awaited before the next
_SAMPLES_MAX: Final = 5
_KEPT_SHARE: Final = 0.95  # of the approvals a rule covers, that it must still cover when it grows
_NARROWED_SHARE: Final = 0.6  # and when it is narrowed
_LIVE: Final = (RuleState.SHADOW, RuleState.SUGGESTED, RuleState.ACTIVE, RuleState.DEMOTED)
_GENERAL: Final = "general"
_EXACT: Final = "exact"
_ACCEPTED: Final = "accepted"  # a general rule that a reviewer ratified: it no longer grows
_FIXED: Final = "fixed"
_CHOSEN: Final = (_ACCEPTED, _FIXED)
_LEARNED: Final = (_GENERAL, _ACCEPTED)


@dataclass
class _Entry:
    """The rules of one group and what they rest on."""

    known: Precedents
    rules: list[Rule] = field(default_factory=list)
    births: int = 0
    serial: int = 0
    uncovered: int = 0


class Learner:
    """Fed with reviewers' decisions in order; says which rules there are and what the guard knows."""

    def __init__(self, settings: AutopilotSettings) -> None:
        self.mode = settings.mode
        """How far it may go now; a reviewer can change it."""
        self._settings = settings
        self._groups: dict[Group, _Entry] = {}
        self._by_id: dict[str, Rule] = {}

    @property
    def rules(self) -> Iterator[Rule]:
        """All rules that were ever suggested or in force, oldest first."""
        return (rule for rule in self._by_id.values() if rule.state is not RuleState.SHADOW)

    def rule(self, id: str) -> Rule | None:
        return self._by_id.get(id)

    def decided(self, case: Case, at: datetime, *, approved: bool) -> list[Rule]:
        """Learn a reviewer's decision; return the rules that it changed."""
        entry = self._entry(case, at)
        if entry is None:
            return []
        known = entry.known
        guarded = known.guard(case) is not None
        novel = known.novelty(case) is not None
        tested = [
            rule
            for rule in entry.rules
            if rule.state in _LIVE
            and not guarded
            and not (novel and rule.kind in _LEARNED)
            and case.mismatch(rule.pattern) is None
        ]
        known.add(case, approved=approved)
        if any(rule.state is RuleState.ACTIVE for rule in tested):
            known.audited(case)
        if approved:
            changed = [rule for rule in tested if self._confirm(entry, rule, case, at)]
            changed += self._cover(entry, case)
        else:
            changed = [rule for rule in tested if self._contradict(entry, rule, case, at)]
            self._look_deeper(entry)
        return list({rule.id: rule for rule in changed}.values())

    def objected(self, case: Case, at: datetime) -> list[Rule]:
        """Learn that a call should have been asked about: a rejection, whatever was decided before."""
        changed = self.decided(case, at, approved=False)
        for rule in self._matching(case):
            if rule.state is RuleState.ACTIVE:
                self._demote(self._groups[case.group], rule, at)
                changed.append(rule)
        return changed

    # Questions.

    def guard(self, case: Case) -> str | None:
        """Why this call must be asked about whatever rules say: calls like it were rejected before."""
        entry = self._groups.get(case.group)
        return None if entry is None else entry.known.guard(case)

    def novelty(self, case: Case, rule: Rule) -> Mismatch | None:
        """What in this call nobody has approved together; rules that were learned do not decide about it."""
        entry = self._groups.get(case.group)
        return None if entry is None or rule.kind not in _LEARNED else entry.known.novelty(case)

    def is_stale(self, case: Case, after: int) -> bool:
        """Whether no person decided about calls like this yet, or not for `after` decisions of the group."""
        entry = self._groups.get(case.group)
        return entry is None or entry.known.is_stale(case, after)

    def is_doubted(self, case: Case) -> bool:
        """Whether a person disagreed with a rule of another group, and a value of this call was not audited since."""
        entry = self._groups.get(case.group)
        return entry is not None and entry.known.is_doubted(case)

    def since_audit(self, case: Case) -> int:
        """Automatic decisions since the least audited value of this call was last audited."""
        entry = self._groups.get(case.group)
        return 0 if entry is None else entry.known.since_audit(case)

    def covering(self, case: Case) -> Rule | None:
        """The active rule that matches: a ratified one first, then the one with the most evidence."""
        acts = self.mode is not Mode.SUGGEST
        found = [
            rule
            for rule in self._matching(case)
            if rule.state is RuleState.ACTIVE and (acts or rule.author is not Author.LEARNED)
        ]
        found.sort(key=lambda rule: (rule.author is not Author.LEARNED, rule.decisions), reverse=True)
        return found[0] if found else None

    def nearest(self, case: Case) -> tuple[Rule, Mismatch] | None:
        """The rule in force, or else suggested, for such calls that came closest, and why it does not match."""
        entry = self._groups.get(case.group)
        known = [] if entry is None else [rule for rule in entry.rules if rule.state is not RuleState.SHADOW]
        order = {RuleState.ACTIVE: 0, RuleState.SUGGESTED: 1}
        known.sort(key=lambda rule: (order.get(rule.state, 2), -rule.decisions))
        for rule in known:
            wrong = case.mismatch(rule.pattern)
            if wrong is not None:
                return rule, wrong
        return None

    def suggestions(self, case: Case) -> list[Rule]:
        """The suggested rules that match."""
        return [rule for rule in self._matching(case) if rule.state is RuleState.SUGGESTED]

    def ladder(self, case: Case) -> tuple[Rung, ...]:
        """Up to five rules that match the call, from the exact call to its widest sensible generalisation."""
        entry = self._groups.get(case.group) or _Entry(Precedents(self._settings.risk_of(case.risk_class)))
        wider = [pattern for _, pattern in patterns(entry.known, case, least=1)]
        learned = [rule.pattern for rule in self._matching(case) if rule.pattern.exact is None]
        close = [close_pattern(case, depth) for depth in range(entry.known.depth + 1, DEEP + 1)]
        found: dict[str, Pattern] = {}  # by sentence: a choice must be one that a reader can make
        for pattern in sorted(
            [Pattern(exact=case.exact), *close, *wider, *learned, wide_pattern(case)], key=width
        ):
            fits = case.mismatch(pattern) is None and entry.known.covered(pattern)[1] == 0
            if fits or pattern.exact is not None:
                found.setdefault(sentence(case.group, pattern), pattern)
        listed = list(found.values())
        chosen = listed if len(listed) <= 5 else [*listed[:2], listed[len(listed) // 2], *listed[-2:]]
        rungs: list[Rung] = []
        for pattern in chosen:
            shown = (rule for rule in entry.rules if rule.state is not RuleState.SHADOW)
            rule = next((rule for rule in shown if rule.pattern == pattern), None)
            bound = None if rule is None else bound_in_words(rule.decisions, rule.rejections)
            id = None if rule is None else rule.id
            rungs.append(
                Rung(sentence(case.group, pattern), pattern, *entry.known.covered(pattern), id, bound)
            )
        return tuple(rungs)

    # Orders and uses.

    def ratify(
        self,
        group: Group,
        risk_class: RiskClass,
        pattern: Pattern,
        by: str,
        at: datetime,
        *,
        until: datetime | None = None,
        uses: int | None = None,
    ) -> Rule:
        """Put a pattern into force by a reviewer's word. It no longer grows; a copy of it goes on learning."""
        entry = self._groups.get(group)
        if entry is None:
            entry = self._groups[group] = _Entry(Precedents(self._settings.risk_of(risk_class)))
        rule = next((rule for rule in entry.rules if rule.pattern == pattern), None)
        if rule is None:
            rule = self._new_rule(entry, group, pattern, _FIXED, alpha=0.0)
        elif rule.kind == _GENERAL:
            copy = self._new_rule(entry, group, pattern, _GENERAL, rule.alpha)
            copy.decisions, copy.rejections = rule.decisions, rule.rejections
            copy.distinct, copy.suggest_from = dict(rule.distinct), rule.decisions
            rule.kind = _ACCEPTED
        rule.enter(RuleState.ACTIVE, at)
        rule.author, rule.by, rule.until = Author.RATIFIED, by, until
        rule.uses_max = None if uses is None else rule.uses + uses
        return rule

    def set_state(self, id: str, state: RuleState, at: datetime) -> Rule | None:
        """Set what was decided about a rule elsewhere: that it is revoked, asleep, expired or only suggested."""
        rule = self._by_id.get(id)
        if rule is not None:
            rule.enter(state, at)
        return rule

    def used(self, id: str, case: Case, at: datetime) -> None:
        """Note that a rule decided a call alone."""
        entry = self._groups.get(case.group)
        if entry is not None:
            entry.known.decided_alone(case)
        rule = self._by_id.get(id)
        if rule is not None:
            rule.uses += 1
            rule.last_used = at
            rule.history.day(at)[2] += 1
            if rule.uses_max is not None and rule.uses >= rule.uses_max:
                rule.enter(RuleState.EXPIRED, at)
            rule.samples = (case.exact[:500], *rule.samples)[:_SAMPLES_MAX]

    # Evidence.

    def _entry(self, case: Case, at: datetime) -> _Entry | None:
        entry = self._groups.get(case.group)
        if entry is None and len(self._groups) < _GROUPS_MAX:
            for group, other in self._groups.items():  # the tool was replaced: what was learned of it sleeps
                if group.is_same_tool(case.group):
                    for rule in other.rules:
                        if rule.state in (RuleState.ACTIVE, RuleState.SUGGESTED):
                            rule.enter(RuleState.ASLEEP, at)
            entry = self._groups[case.group] = _Entry(Precedents(self._settings.risk_of(case.risk_class)))
        return entry

    def _matching(self, case: Case) -> Iterator[Rule]:
        entry = self._groups.get(case.group)
        return (rule for rule in (entry.rules if entry else ()) if case.mismatch(rule.pattern) is None)

    def _confirm(self, entry: _Entry, rule: Rule, case: Case, at: datetime) -> bool:
        """Count an approval for a rule that would have decided it; return whether the rule changed."""
        rule.reviewed(at, approved=True)
        call = sha256(case.exact.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        seen = rule.distinct.get(call, 0)
        if rule.pattern.exact is not None or seen < _IDENTICAL_MAX:
            rule.decisions += 1
            if len(rule.distinct) < _DISTINCT_MAX:
                rule.distinct[call] = seen + 1
        if rule.state is RuleState.ACTIVE:
            rule.confirmations += 1
            return False
        return self._advance(entry, rule, at)

    def _contradict(self, entry: _Entry, rule: Rule, case: Case, at: datetime) -> bool:
        """Count a rejection against a rule that would have decided it; return whether the rule changed."""
        rule.reviewed(at, approved=False)
        rule.decisions += 1
        rule.rejections += 1
        if rule.state is RuleState.ACTIVE:
            self._demote(entry, rule, at)
            self._narrow(entry, rule, case)
            return True
        before = rule.state
        if before is RuleState.SUGGESTED:
            rule.enter(RuleState.DEMOTED, at)
        if rule.kind not in _CHOSEN and entry.births < BIRTHS_MAX:
            alpha = alpha_of_birth(entry.births + 1, self._settings.delta)
            again = approvals_needed(0, 0, rule.risk, alpha)
            if again < approvals_needed(rule.decisions, rule.rejections, rule.risk, rule.alpha):
                self._reset(entry, rule)
        return self._narrow(entry, rule, case) or rule.state is not before

    def _advance(self, entry: _Entry, rule: Rule, at: datetime) -> bool:
        """Suggest or activate the rule if its evidence is enough; return whether its state changed."""
        before, mode = rule.state, self.mode
        if mode in (Mode.SHADOW, Mode.ACT) and self._is_proven(rule):
            rule.enter(RuleState.ACTIVE, at)
            rule.author, rule.confirmations = Author.LEARNED, 0
        elif mode not in (Mode.SUGGEST, Mode.ACT) or rule.kind in _CHOSEN:
            return False
        elif before in (RuleState.SHADOW, RuleState.DEMOTED):
            enough = _suggest_after(entry.known) << (before is RuleState.DEMOTED)
            shown = (
                other
                for other in entry.rules
                if other is not rule and other.state in (RuleState.SUGGESTED, RuleState.ACTIVE)
            )
            if (
                rule.rejections == 0
                and rule.decisions - rule.suggest_from >= enough
                and not any(other.pattern.covers(rule.pattern) for other in shown)
            ):
                rule.enter(RuleState.SUGGESTED, at)
                rule.suggestions = 1
        elif before is RuleState.SUGGESTED and rule.decisions - rule.suggest_from >= _suggest_after(
            entry.known
        ) * (rule.suggestions + 1):
            rule.suggestions += 1  # offered again with as much evidence more
            return True
        return rule.state is not before

    def _is_proven(self, rule: Rule) -> bool:
        if rule.risk <= 0 or rule.alpha <= 0 or rule.kind in _CHOSEN:
            return False
        if rule.pattern.exact is None and len(rule.distinct) < _DISTINCT_MIN:
            return False
        tolerated = 0.01 if rule.pattern.open else rule.risk / 8
        if rule.rejections > tolerated * rule.decisions:
            return False
        return e_value(rule.decisions, rule.rejections, rule.risk) >= 1 / rule.alpha

    def _demote(self, entry: _Entry, rule: Rule, at: datetime) -> None:
        """Take a rule out of force and start its evidence again; rules of other groups are audited more for a while."""
        rule.enter(RuleState.DEMOTED, at)
        rule.author, rule.by = Author.LEARNED, None
        self._reset(entry, rule)
        entry.known.changed_at = entry.known.decisions
        for other in self._groups.values():
            if other is not entry and any(one.state is RuleState.ACTIVE for one in other.rules):
                other.known.doubt()

    def _reset(self, entry: _Entry, rule: Rule) -> None:
        """Start the evidence again, which costs a birth."""
        entry.births += 1
        rule.alpha = alpha_of_birth(entry.births, self._settings.delta) if rule.kind not in _CHOSEN else 0.0
        rule.decisions = rule.rejections = rule.confirmations = rule.suggest_from = 0
        rule.distinct = {}
        rule.resets += 1

    # Patterns.

    def _look_deeper(self, entry: _Entry) -> None:
        known = entry.known
        for rule in entry.rules:
            is_shallow = rule.kind == _GENERAL and rule.pattern.depth == known.depth
            many = rule.rejections >= 2 and rule.rejections > rule.risk * rule.decisions / 2
            if is_shallow and many and known.depth < DEEP:
                known.depth += 1
                return

    def _cover(self, entry: _Entry, case: Case) -> list[Rule]:
        """Let a rule grow to cover an approved call, or bear one that does; return the rules that grew."""
        known = entry.known
        if len(known.approved) < _FIRST_BIRTH:
            return []
        if known.identical[case.exact] >= _IDENTICAL_MAX:
            self._bear(entry, case.group, _EXACT, Pattern(exact=case.exact))
        general = [
            rule
            for rule in entry.rules
            if rule.kind == _GENERAL and rule.pattern.depth == known.depth and rule.state in _LIVE
        ]
        if any(case.mismatch(rule.pattern) is None for rule in general):
            return []
        for _, pattern in patterns(known, case, least=2):
            if case.mismatch(pattern) is not None or not is_clean(known, pattern):
                continue
            grown = max(
                (rule for rule in general if self._keeps(known, rule.pattern, pattern, _KEPT_SHARE)),
                key=lambda rule: (rule.state is RuleState.ACTIVE, rule.decisions),
                default=None,
            )
            if grown is not None:
                self._widen(entry, grown, pattern)
                return [] if grown.state is RuleState.SHADOW else [grown]
            entry.uncovered += 1
            if entry.uncovered <= entry.births // _BIRTHS_EACH:
                return []
            if self._bear(entry, case.group, _GENERAL, pattern):
                entry.uncovered = 0
                self._evict(entry)
                return []
        return []

    def _widen(self, entry: _Entry, grown: Rule, pattern: Pattern) -> None:
        """Give a rule its wider pattern, and forget candidates that it makes superfluous."""
        grown.pattern = pattern
        grown.revision += 1
        for rule in [one for one in entry.rules if one.kind == _GENERAL and one is not grown]:
            if rule.state is RuleState.SHADOW and pattern.covers(rule.pattern):
                self._forget(entry, rule)

    def _narrow(self, entry: _Entry, rule: Rule, rejected: Case) -> bool:
        """Take a rejected call out of a pattern, if that leaves most of it; return whether a shown rule changed."""
        known = entry.known
        if rule.kind != _GENERAL or rule.pattern.depth != known.depth:
            return False
        covered = (case for _, case in reversed(known.approved) if case.mismatch(rule.pattern) is None)
        latest = next(covered, None)
        if latest is None:
            return False
        for _, pattern in patterns(known, latest, least=2):
            if rejected.mismatch(pattern) is not None and self._keeps(
                known, rule.pattern, pattern, _NARROWED_SHARE
            ):
                rule.pattern = pattern
                rule.revision += 1
                return rule.state is not RuleState.SHADOW
        return False

    def _keeps(self, known: Precedents, old: Pattern, new: Pattern, share: float) -> bool:
        """Whether a new pattern covers nearly all the approvals that the old one covers."""
        covered = [
            (known.weight(number), case) for number, case in known.approved if case.mismatch(old) is None
        ]
        kept = sum(weight for weight, case in covered if case.mismatch(new) is None)
        return kept >= share * sum(weight for weight, _ in covered)

    def _bear(self, entry: _Entry, group: Group, kind: str, pattern: Pattern) -> bool:
        """Add a candidate, unless it is known or covers too many past rejections; return whether it was added."""
        if entry.births >= BIRTHS_MAX or any(rule.pattern == pattern for rule in entry.rules):
            return False
        if not is_clean(entry.known, pattern) or entry.known.covered(pattern)[0] < _COVERED_MIN:
            return False
        entry.births += 1
        self._new_rule(entry, group, pattern, kind, alpha_of_birth(entry.births, self._settings.delta))
        return True

    def _new_rule(self, entry: _Entry, group: Group, pattern: Pattern, kind: str, alpha: float) -> Rule:
        entry.serial += 1
        id = rule_id(group, pattern, entry.serial)
        risk = entry.known.risk
        rule = Rule(id=id, group=group, pattern=pattern, risk=risk, alpha=alpha, kind=kind, distinct={})
        entry.rules.append(rule)
        self._by_id[id] = rule
        return rule

    def _evict(self, entry: _Entry) -> None:
        while sum(rule.state in _LIVE for rule in entry.rules) > _LIVE_MAX:
            idle = [rule for rule in entry.rules if rule.state in (RuleState.SHADOW, RuleState.DEMOTED)]
            if len(idle) < 2:
                return
            self._forget(
                entry, min(idle[:-1], key=lambda rule: (rule.decisions - 8 * rule.rejections, rule.id))
            )

    def _forget(self, entry: _Entry, rule: Rule) -> None:
        entry.rules.remove(rule)
        del self._by_id[rule.id]


def _suggest_after(known: Precedents) -> int:
    """Approvals before a rule is suggested: five, or more if a rule no better than the group might pass by luck."""
    rejected = len(known.rejected) / max(1, len(known.rejected) + len(known.approved))
    if rejected == 0:
        return _SUGGEST_AFTER
    by_luck = ceil(log(0.05) / log(1 - min(rejected, 0.9)))
    return max(_SUGGEST_AFTER, min(_SUGGEST_AFTER_MAX, by_luck))
