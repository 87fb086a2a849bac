"""PURE. What reviewers' decisions teach: groups of calls, candidates born from approvals, their evidence and states.

A candidate counts only decisions made after its birth (prequential evidence), so choosing its pattern from the past
costs nothing. Everything here is a function of the decisions in their order.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from math import ceil, log, log2
from typing import Any, Final

from .evidence import BIRTHS_MAX, alpha_of_birth, bound_in_words, e_value
from .rule import Author, Group, Mismatch, Pattern, Rule, RuleState, Rung, mismatch, rule_id, sentence
from .settings import AutopilotSettings, Mode, RiskClass
from .view import DEEP, View, canonical, view

__all__ = ["Case", "Learner"]

_LIVE_MAX: Final = 16
_CASES_MAX: Final = 400
_GROUPS_MAX: Final = 2000
_FIRST_BIRTH: Final = 4  # approvals of a group before its first candidate: earlier ones waste the best alpha
_IDENTICAL_MAX: Final = 2
_DISTINCT_MIN: Final = 4
_SUGGEST_AFTER: Final = 5
_SUGGEST_AFTER_MAX: Final = 8
_ONE_HEAD_MAX: Final = 3
_COVERED_MIN: Final = 2  # past approvals that a newborn must cover
_PATIENCE: Final = 12  # births after which one more uncovered approval is awaited before the next
_SAMPLES_MAX: Final = 5
_WIDER: Final = 3.0  # levels of a path, or doublings of a length, that the widest rule of the ladder adds
_OPEN_AFTER: Final = 8
_OPEN_SHARE: Final = 0.6
_LIVE: Final = (RuleState.SHADOW, RuleState.SUGGESTED, RuleState.ACTIVE, RuleState.DEMOTED)


@dataclass(frozen=True)
class Case:
    """One call to decide about: its group and its arguments."""

    id: str
    group: Group
    arguments: Mapping[str, Any]
    schema: Any = None
    risk_class: RiskClass = RiskClass.WRITE
    _views: dict[int, View] = field(default_factory=dict, compare=False)

    @cached_property
    def exact(self) -> str:
        """The arguments as one text."""
        return canonical(self.arguments)

    def view(self, depth: int) -> View:
        """The view of its arguments at this depth."""
        if depth not in self._views:
            self._views[depth] = view(self.arguments, self.schema, depth)
        return self._views[depth]

    def mismatch(self, pattern: Pattern) -> Mismatch | None:
        """Why the pattern does not match; None if it does."""
        return mismatch(pattern, self.view(pattern.depth), self.exact)


@dataclass
class _Tally:
    approved: int = 0
    rejected: int = 0
    last: int = 0

    def add(self, *, approved: bool, now: int) -> None:
        self.approved += approved
        self.rejected += not approved
        self.last = now

    def is_rejected_above(self, risk: float) -> bool:
        return self.rejected > risk * (self.approved + self.rejected)


@dataclass
class _Cohort:
    """What is known of one group."""

    risk: float
    depth: int = 1
    births: int = 0
    decisions: int = 0
    uncovered: int = 0
    approved: list[Case] = field(default_factory=list)
    rejected: list[Case] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    literals: dict[str, dict[str, int]] = field(default_factory=dict)
    exact: dict[str, int] = field(default_factory=dict)
    clusters: dict[tuple[tuple[str, tuple[str, ...]], ...], _Tally] = field(default_factory=dict)
    fine: dict[tuple[str, str], _Tally] = field(default_factory=dict)


class Learner:
    """Fed with reviewers' decisions in order; says which rules there are and what the guard knows."""

    def __init__(self, settings: AutopilotSettings) -> None:
        self.mode = settings.mode
        """How far it may go now; a reviewer can change it."""
        self._settings = settings
        self._cohorts: dict[Group, _Cohort] = {}
        self._ratified: dict[str, Rule] = {}
        self._by_id: dict[str, Rule] = {}

    @property
    def rules(self) -> Iterator[Rule]:
        """All rules that were ever suggested or in force, oldest first."""
        return (rule for rule in self._by_id.values() if rule.state is not RuleState.SHADOW)

    def rule(self, id: str) -> Rule | None:
        return self._by_id.get(id)

    def decided(self, case: Case, at: datetime, *, approved: bool) -> list[Rule]:
        """Learn a reviewer's decision; return the rules whose state it changed."""
        cohort = self._cohort(case, at)
        if cohort is None:
            return []
        was_guarded = self.guard(case) is not None
        changed = self._count(cohort, case, at, approved=approved, was_guarded=was_guarded)
        self._remember(cohort, case, approved=approved)
        if approved:
            self._give_birth(cohort, case)
        else:
            self._look_deeper(cohort)
        return changed

    def objected(self, case: Case, at: datetime) -> list[Rule]:
        """Learn that a call should have been asked about: a rejection, whatever was decided before."""
        changed = self.decided(case, at, approved=False)
        for rule in self._matching(case):
            if rule.state is RuleState.ACTIVE:
                self._demote(rule, at)
                changed.append(rule)
        return changed

    def guard(self, case: Case) -> str | None:
        """Why this call must be asked about whatever rules say: calls like it were rejected before."""
        cohort = self._cohorts.get(case.group)
        if cohort is None:
            return None
        risk = cohort.risk or 0.05
        tally = cohort.clusters.get(self._cluster(cohort, case))
        if tally is not None and tally.is_rejected_above(risk):
            return (
                f"calls like this were rejected {tally.rejected} of {tally.approved + tally.rejected} times"
            )
        deep = case.view(DEEP)
        for key, values in deep.fine.items():
            if key in deep.openable and not self._is_open(cohort, key):
                continue  # it is part of the cluster
            for value in values:
                one = cohort.fine.get((key, value))
                if one is not None and one.is_rejected_above(0.5):
                    return f"`{key.rpartition('#')[0]}` had the value `{value}` when it was rejected before"
        return None

    def is_stale(self, case: Case, after: int) -> bool:
        """Whether no person decided about calls like this yet, or not for `after` decisions of the group."""
        cohort = self._cohorts.get(case.group)
        tally = None if cohort is None else cohort.clusters.get(self._cluster(cohort, case))
        return cohort is None or tally is None or cohort.decisions - tally.last > after

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
        cohort = self._cohorts.get(case.group)
        known = (
            [] if cohort is None else [rule for rule in cohort.rules if rule.state is not RuleState.SHADOW]
        )
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
        cohort = self._cohorts.get(case.group) or _Cohort(self._settings.risk_of(case.risk_class))
        wider = [pattern for _, pattern in self._patterns(cohort, case, least=1)]
        learned = [rule.pattern for rule in self._matching(case) if rule.pattern.exact is None]
        close = [_close(case, depth) for depth in range(cohort.depth + 1, DEEP + 1)]
        found: dict[str, Pattern] = {}  # by sentence: a choice must be one that a reader can make
        for pattern in sorted([Pattern(exact=case.exact), *close, *wider, *learned, _wide(case)], key=_width):
            if self._past_rejections(cohort, pattern) == 0 or pattern.exact is not None:
                found.setdefault(sentence(case.group, pattern), pattern)
        patterns = list(found.values())
        chosen = (
            patterns if len(patterns) <= 5 else [*patterns[:2], patterns[len(patterns) // 2], *patterns[-2:]]
        )
        known = {rule.id: rule for rule in cohort.rules if rule.state is not RuleState.SHADOW}
        rungs: list[Rung] = []
        for pattern in chosen:
            approved, rejected = self.past(case.group, pattern)
            rule = next((rule for rule in known.values() if rule.pattern == pattern), None)
            bound = None if rule is None else bound_in_words(rule.decisions, rule.rejections)
            words = sentence(case.group, pattern)
            rungs.append(Rung(words, pattern, approved, rejected, None if rule is None else rule.id, bound))
        return tuple(rungs)

    def past(self, group: Group, pattern: Pattern) -> tuple[int, int]:
        """How many past approvals and rejections of the group a pattern covers."""
        cohort = self._cohorts.get(group)
        if cohort is None:
            return 0, 0
        approved = sum(case.mismatch(pattern) is None for case in cohort.approved)
        return approved, self._past_rejections(cohort, pattern)

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
        """Put a pattern into force by a reviewer's word."""
        cohort = self._cohorts.get(group)
        if cohort is None:
            cohort = self._cohorts[group] = _Cohort(self._settings.risk_of(risk_class))
        known = next((rule for rule in cohort.rules if rule.pattern == pattern), None)
        rule = known or self._new_rule(cohort, group, pattern, "ratified", alpha=0.0)
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
        rule = self._by_id.get(id)
        if rule is not None:
            rule.uses += 1
            rule.last_used = at
            rule.history.day(at)[2] += 1
            if rule.uses_max is not None and rule.uses >= rule.uses_max:
                rule.enter(RuleState.EXPIRED, at)
            rule.samples = (case.exact[:500], *rule.samples)[:_SAMPLES_MAX]

    def _cohort(self, case: Case, at: datetime) -> _Cohort | None:
        cohort = self._cohorts.get(case.group)
        if cohort is None and len(self._cohorts) < _GROUPS_MAX:
            for group, other in self._cohorts.items():  # the tool was replaced: what was learned of it sleeps
                if _is_same_tool(group, case.group):
                    for rule in other.rules:
                        if rule.state in (RuleState.ACTIVE, RuleState.SUGGESTED):
                            rule.enter(RuleState.ASLEEP, at)
            cohort = self._cohorts[case.group] = _Cohort(self._settings.risk_of(case.risk_class))
        return cohort

    def _matching(self, case: Case) -> Iterator[Rule]:
        cohort = self._cohorts.get(case.group)
        return (rule for rule in (cohort.rules if cohort else ()) if case.mismatch(rule.pattern) is None)

    def _count(
        self, cohort: _Cohort, case: Case, at: datetime, *, approved: bool, was_guarded: bool
    ) -> list[Rule]:
        """Add the decision to the evidence of every rule that matches; return the rules that changed their state.

        A rejection demotes an active rule, unless the guard asked for it and the evidence is still enough.
        """
        changed: list[Rule] = []
        for rule in cohort.rules:
            if rule.state not in _LIVE or case.mismatch(rule.pattern) is not None:
                continue
            rule.reviewed(at, approved=approved)
            if not approved:
                rule.decisions += 1
                rule.rejections += 1
                if rule.state is RuleState.ACTIVE:
                    if not was_guarded or not self._is_proven(rule):
                        self._demote(rule, at)
                        changed.append(rule)
                elif rule.state is RuleState.SUGGESTED:
                    rule.enter(RuleState.DEMOTED, at)
                    changed.append(rule)
                continue
            seen = rule.distinct.get(case.exact, 0)
            if rule.pattern.exact is not None or seen < _IDENTICAL_MAX:
                rule.decisions += 1
                rule.distinct[case.exact] = seen + 1
            if rule.state is RuleState.ACTIVE:
                rule.confirmations += 1
            elif self._advance(cohort, rule, at):
                changed.append(rule)
        return changed

    def _advance(self, cohort: _Cohort, rule: Rule, at: datetime) -> bool:
        """Suggest or activate the rule if its evidence is enough; return whether its state changed."""
        before = rule.state
        mode = self.mode
        if mode in (Mode.SHADOW, Mode.ACT) and self._is_proven(rule):
            rule.enter(RuleState.ACTIVE, at)
            rule.author, rule.confirmations = Author.LEARNED, 0
        elif before is RuleState.SHADOW and mode in (Mode.SUGGEST, Mode.ACT):
            enough = rule.rejections == 0 and rule.decisions >= _suggest_after(cohort)
            known = (
                other
                for other in cohort.rules
                if other is not rule and other.state in (RuleState.SUGGESTED, RuleState.ACTIVE)
            )
            if enough and not any(other.pattern.covers(rule.pattern) for other in known):
                rule.enter(RuleState.SUGGESTED, at)
                rule.suggestions = 1
        elif before is RuleState.SUGGESTED and rule.decisions >= _suggest_after(cohort) << rule.suggestions:
            rule.suggestions += 1  # offered again with twice the evidence
            return True
        return rule.state is not before

    def _is_proven(self, rule: Rule) -> bool:
        if rule.risk <= 0 or rule.alpha <= 0:
            return False
        if rule.pattern.exact is None and len(rule.distinct) < _DISTINCT_MIN:
            return False
        tolerated = 0.01 if rule.pattern.open else rule.risk / 8
        if rule.rejections > tolerated * rule.decisions:
            return False
        return e_value(rule.decisions, rule.rejections, rule.risk) >= 1 / rule.alpha

    def _demote(self, rule: Rule, at: datetime) -> None:
        """Take a rule out of force and start its evidence again, which costs a birth."""
        cohort = self._cohorts[rule.group]
        cohort.births += 1
        rule.enter(RuleState.DEMOTED, at)
        rule.author, rule.by = Author.LEARNED, None
        rule.alpha = alpha_of_birth(cohort.births, self._settings.delta)
        rule.decisions = rule.rejections = rule.confirmations = 0
        rule.distinct = {}
        rule.resets += 1

    def _remember(self, cohort: _Cohort, case: Case, *, approved: bool) -> None:
        cohort.decisions += 1
        kept = cohort.approved if approved else cohort.rejected
        kept.append(case)
        if len(kept) > _CASES_MAX:
            del kept[0]
        if approved:
            cohort.exact[case.exact] = cohort.exact.get(case.exact, 0) + 1
            for key in case.view(1).openable:
                counts = cohort.literals.setdefault(key, {})
                for value in case.view(1).heads[key]:
                    counts[value] = counts.get(value, 0) + 1
        cluster = self._cluster(cohort, case)
        cohort.clusters.setdefault(cluster, _Tally()).add(approved=approved, now=cohort.decisions)
        for key, values in case.view(DEEP).fine.items():
            for value in values:
                cohort.fine.setdefault((key, value), _Tally()).add(approved=approved, now=cohort.decisions)

    def _cluster(self, cohort: _Cohort, case: Case) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Which calls are alike for the guard: the deep view with numbers by magnitude, without open literals."""
        deep = case.view(DEEP)
        heads = [
            (key, values)
            for key, values in deep.heads.items()
            if key not in deep.openable or not self._is_open(cohort, key)
        ]
        numbers = [
            (key, (_magnitude(number),)) for key, number in deep.softs.items() if key.endswith("#number")
        ]
        return (*heads, *numbers)

    def _look_deeper(self, cohort: _Cohort) -> None:
        for rule in cohort.rules:
            is_shallow = rule.pattern.exact is None and rule.pattern.depth == cohort.depth
            many = rule.rejections >= 2 and rule.rejections > rule.risk * rule.decisions / 2
            if is_shallow and many and rule.author is Author.LEARNED and cohort.depth < DEEP:
                cohort.depth += 1
                return

    # Births.

    def _give_birth(self, cohort: _Cohort, case: Case) -> None:
        if len(cohort.approved) < _FIRST_BIRTH or cohort.births >= BIRTHS_MAX:
            return
        if cohort.exact[case.exact] >= _IDENTICAL_MAX:
            self._bear(cohort, case.group, "exact", Pattern(exact=case.exact))
        general = (
            rule
            for rule in cohort.rules
            if rule.pattern.exact is None and rule.pattern.depth == cohort.depth and rule.kind != "ratified"
        )
        if any(case.mismatch(rule.pattern) is None for rule in general):
            return
        cohort.uncovered += 1
        if cohort.uncovered <= cohort.births // _PATIENCE:
            return
        cohort.uncovered = 0
        for kind, pattern in self._patterns(cohort, case, least=2):
            if self._bear(cohort, case.group, kind, pattern):
                break
        self._evict(cohort)

    def _bear(self, cohort: _Cohort, group: Group, kind: str, pattern: Pattern) -> bool:
        """Add a candidate, unless it is known or covers too many past rejections; return whether it was added."""
        if any(rule.pattern == pattern for rule in cohort.rules) or not self._is_clean(cohort, pattern):
            return False
        if sum(case.mismatch(pattern) is None for case in cohort.approved) < _COVERED_MIN:
            return False
        cohort.births += 1
        self._new_rule(cohort, group, pattern, kind, alpha_of_birth(cohort.births, self._settings.delta))
        return True

    def _new_rule(self, cohort: _Cohort, group: Group, pattern: Pattern, kind: str, alpha: float) -> Rule:
        id = rule_id(group, pattern, cohort.births)
        rule = Rule(
            id=id, group=group, pattern=pattern, risk=cohort.risk, alpha=alpha, kind=kind, distinct={}
        )
        cohort.rules.append(rule)
        self._by_id[id] = rule
        return rule

    def _evict(self, cohort: _Cohort) -> None:
        while sum(rule.state in _LIVE for rule in cohort.rules) > _LIVE_MAX:
            idle = [rule for rule in cohort.rules if rule.state in (RuleState.SHADOW, RuleState.DEMOTED)]
            if len(idle) < 2:
                return
            weakest = min(idle[:-1], key=lambda rule: (rule.decisions - 8 * rule.rejections, rule.id))
            cohort.rules.remove(weakest)
            del self._by_id[weakest.id]

    def _patterns(self, cohort: _Cohort, case: Case, *, least: int) -> Iterator[tuple[str, Pattern]]:
        """Generalisations of a call, widest first: all heads, one head, none; values approved `least` times."""
        depth = cohort.depth
        own = case.view(depth)
        opened = tuple(key for key in own.openable if self._is_open(cohort, key))
        heads = {key: values for key, values in own.heads.items() if key not in opened}
        past = [other for other in cohort.approved if other.view(depth).heads.keys() == own.heads.keys()]
        everything = {key: _values(past, depth, key, least) for key in heads}
        if all(set(heads[key]) <= set(everything[key]) for key in heads):
            yield "all", self._shrink(cohort, case, everything, opened)
        diverse = sorted(
            (key for key in heads if len(everything[key]) > 1), key=lambda key: -len(everything[key])
        )
        for key in diverse[:_ONE_HEAD_MAX] if len(diverse) > 1 else ():
            alike = [other for other in past if _agree(other.view(depth), own, (key, *opened))]
            values = _values(alike, depth, key, least)
            if len(values) > 1 and set(heads[key]) <= set(values):
                yield f"one:{key}", self._shrink(cohort, case, {**heads, key: values}, opened)
        yield "same", self._shrink(cohort, case, dict(heads), opened)

    def _shrink(
        self, cohort: _Cohort, case: Case, heads: dict[str, tuple[str, ...]], opened: tuple[str, ...]
    ) -> Pattern:
        """The hull of past approvals with these heads, narrowed around the call until it holds hardly any rejection.

        Each step drops one value or cuts one range, whichever excludes the most rejections for the approvals it costs.
        """
        depth = cohort.depth
        own = case.view(depth)
        within = Pattern(depth=depth, heads=heads, open=opened)
        good = [seen for other in cohort.approved if _fits_heads(seen := other.view(depth), within)]
        bad = [seen for other in cohort.rejected if _fits_heads(seen := other.view(depth), within)]
        box = _Box(dict(heads), _ranges([*good, own]))
        bad = [seen for seen in bad if box.holds(seen)]
        while len(bad) > cohort.risk / 16 * (len(good) + len(bad)):
            cut = _best_cut(box, own, good, bad)
            if cut is None:
                break
            box = cut
            good = [seen for seen in good if box.holds(seen)]
            box = _Box(box.heads, {**box.ranges, **_ranges([*good, own])})
            bad = [seen for seen in bad if box.holds(seen)]
        ranges = {
            key: (0.0 if key.endswith("#size") else low, high) for key, (low, high) in box.ranges.items()
        }
        return Pattern(depth=depth, heads=box.heads, softs=ranges, open=opened)

    def _is_open(self, cohort: _Cohort, key: str) -> bool:
        """Whether a literal hardly ever repeats, so that a rule may leave it open."""
        counts = cohort.literals.get(key, {})
        total = sum(counts.values())
        share = _OPEN_SHARE if cohort.depth == 1 else 0.9
        return total >= _OPEN_AFTER and len(counts) >= share * total

    def _is_clean(self, cohort: _Cohort, pattern: Pattern) -> bool:
        bad = self._past_rejections(cohort, pattern)
        if bad == 0:
            return True
        good = sum(case.mismatch(pattern) is None for case in cohort.approved)
        return bad <= cohort.risk / 4 * (good + bad)

    def _past_rejections(self, cohort: _Cohort, pattern: Pattern) -> int:
        return sum(case.mismatch(pattern) is None for case in cohort.rejected)


@dataclass(frozen=True)
class _Box:
    heads: dict[str, tuple[str, ...]]
    ranges: dict[str, tuple[float, float]]

    def holds(self, seen: View) -> bool:
        for key, (low, high) in self.ranges.items():
            if not low <= seen.softs.get(key, low) <= high:
                return False
        return all(
            all(value in self.heads[key] for value in values)
            for key, values in seen.heads.items()
            if key in self.heads
        )


def _ranges(views: Iterable[View]) -> dict[str, tuple[float, float]]:
    ranges: dict[str, tuple[float, float]] = {}
    for seen in views:
        for key, number in seen.softs.items():
            low, high = ranges.get(key, (number, number))
            ranges[key] = (min(low, number), max(high, number))
    return ranges


def _best_cut(box: _Box, own: View, good: list[View], bad: list[View]) -> _Box | None:
    """The box after its best cut that keeps `own`; None if no cut excludes rejections better than chance would."""
    best, best_score = None, 2.0 * (len(bad) + 1) / (len(good) + 1)
    for score, cut in (*_head_cuts(box, own, good, bad), *_range_cuts(box, own, good, bad)):
        if score > best_score:
            best, best_score = cut, score
    return best


def _head_cuts(box: _Box, own: View, good: list[View], bad: list[View]) -> Iterator[tuple[float, _Box]]:
    for key, values in box.heads.items():
        for value in values:
            if value in own.heads.get(key, ()):
                continue
            excluded = sum(value in seen.heads.get(key, ()) for seen in bad)
            if excluded:
                lost = sum(value in seen.heads.get(key, ()) for seen in good)
                kept = tuple(one for one in values if one != value)
                yield excluded / (lost + 1), _Box({**box.heads, key: kept}, box.ranges)


def _range_cuts(box: _Box, own: View, good: list[View], bad: list[View]) -> Iterator[tuple[float, _Box]]:
    for key, (low, high) in box.ranges.items():
        if key not in own.softs:
            continue
        mine = own.softs[key]
        worse = sorted(seen.softs[key] for seen in bad if key in seen.softs)
        fine = sorted(seen.softs[key] for seen in good if key in seen.softs)
        for number in dict.fromkeys(worse):
            if number == mine:
                continue
            if number > mine:
                excluded, lost = (
                    len(worse) - bisect_left(worse, number),
                    len(fine) - bisect_left(fine, number),
                )
                kept = (low, max(mine, fine[-lost - 1] if lost < len(fine) else mine))
            else:
                excluded, lost = bisect_right(worse, number), bisect_right(fine, number)
                kept = (min(mine, fine[lost] if lost < len(fine) else mine), high)
            yield excluded / (lost + 1), _Box(box.heads, {**box.ranges, key: kept})


def _suggest_after(cohort: _Cohort) -> int:
    """Approvals before a rule is suggested: five, or more if a rule no better than the group might pass by luck."""
    rejected = len(cohort.rejected) / max(1, len(cohort.rejected) + len(cohort.approved))
    if rejected == 0:
        return _SUGGEST_AFTER
    by_luck = ceil(log(0.05) / log(1 - min(rejected, 0.9)))
    return max(_SUGGEST_AFTER, min(_SUGGEST_AFTER_MAX, by_luck))


def _magnitude(number: float) -> str:
    return str(int(log2(abs(number) + 1) * 2))


def _agree(other: View, own: View, besides: tuple[str, ...]) -> bool:
    return all(other.heads.get(key) == values for key, values in own.heads.items() if key not in besides)


def _values(cases: Iterable[Case], depth: int, key: str, least: int) -> tuple[str, ...]:
    counts: dict[str, int] = {}
    for case in cases:
        for value in case.view(depth).heads.get(key, ()):
            counts[value] = counts.get(value, 0) + 1
    return tuple(sorted(value for value, count in counts.items() if count >= least))


def _fits_heads(seen: View, pattern: Pattern) -> bool:
    for key, values in seen.heads.items():
        if key not in pattern.open and not all(value in pattern.heads.get(key, ()) for value in values):
            return False
    return True


def _close(case: Case, depth: int) -> Pattern:
    """Calls with the same heads and softs as this one, seen at a depth."""
    own = case.view(depth)
    return Pattern(depth=depth, heads=dict(own.heads), softs=_ranges([own]))


def _wide(case: Case) -> Pattern:
    """Calls of the same form: any identifiers, numbers up to this call's, paths some levels deeper, longer texts."""
    own = case.view(1)
    heads = {key: values for key, values in own.heads.items() if key not in own.openable}
    more = {key: _WIDER if key.endswith(("#depth", "#size")) else 0.0 for key in own.softs}
    softs = {key: (min(0.0, number), number + more[key]) for key, number in own.softs.items()}
    return Pattern(heads=heads, softs=softs, open=tuple(own.openable))


def _width(pattern: Pattern) -> tuple[bool, int, int, float]:
    """Sorts the narrowest first: the exact call, then the deepest view, then the fewest values."""
    values = sum(len(allowed) for allowed in pattern.heads.values()) + 10 * len(pattern.open)
    ranges = sum(high - low for low, high in pattern.softs.values())
    return pattern.exact is None, -pattern.depth, values, ranges


def _is_same_tool(one: Group, other: Group) -> bool:
    return (one.proposer, one.target, one.method, one.operand) == (
        other.proposer,
        other.target,
        other.method,
        other.operand,
    )
