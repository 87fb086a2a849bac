"""PURE. What reviewers decided about the calls of one group: the memory that rules are made from, and the guard."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from math import log2
from typing import Any, Final

from .rule import Group, Mismatch, Pattern, mismatch
from .settings import RiskClass
from .view import DEEP, View, canonical, view

__all__ = ["Case", "Precedents"]

_CASES_MAX: Final = 400
_TALLIES_MAX: Final = 20_000
_OPEN_AFTER: Final = 8
_OPEN_SHARE: Final = 0.6
_OPEN_SHARE_DEEP: Final = 0.9
_OWED: Final = 4  # approvals that calls like a rejected one need before a rule decides about them again
_OWED_MAX: Final = 8
_STALE_WEIGHT: Final = 0.25  # of an approval from before the last demotion

Cluster = tuple[tuple[str, tuple[str, ...]], ...]


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
class Tally:
    """Decisions about calls that are alike. `owed`: approvals to come before a rule decides about them again."""

    approved: int = 0
    rejected: int = 0
    last: int = 0
    owed: int = 0

    def add(self, *, approved: bool, now: int) -> None:
        self.last = now
        if approved:
            self.approved += 1
            self.owed = max(0, self.owed - 1)
        else:
            self.rejected += 1
            self.owed = min(_OWED_MAX, self.owed + _OWED)

    def is_rejected_above(self, risk: float) -> bool:
        return self.owed > 0 or self.rejected > risk * (self.approved + self.rejected)


class Precedents:
    """The decisions about one group, in order."""

    def __init__(self, risk: float) -> None:
        self.risk = risk
        self.depth = 1
        """How deep candidates look into paths, URLs and commands."""
        self.decisions = 0
        self.approved: list[tuple[int, Case]] = []
        self.rejected: list[tuple[int, Case]] = []
        self.identical: dict[str, int] = {}
        self.changed_at = 0
        """The decision that last demoted a rule: earlier approvals weigh less."""
        self._literals: dict[str, dict[str, int]] = {}
        self._clusters: dict[Cluster, Tally] = {}
        self._fine: dict[tuple[str, str], Tally] = {}
        self._pairs: dict[tuple[str, str, str, str], int] = {}
        self._unaudited: dict[tuple[str, str], int] = {}
        """Automatic decisions by value, since a call with that value was last audited."""
        self._doubted: dict[tuple[str, str], None] = {}

    def add(self, case: Case, *, approved: bool) -> None:
        """Remember a decision."""
        self.decisions += 1
        now = self.decisions
        kept = self.approved if approved else self.rejected
        kept.append((now, case))
        if len(kept) > _CASES_MAX:
            del kept[0]
        if approved:
            _count(self.identical, case.exact)
            seen = case.view(1)
            for key in seen.openable:
                counts = self._literals.setdefault(key, {})
                for value in seen.heads[key]:
                    _count(counts, value)
            for pair in self._pairs_of(case):
                _count(self._pairs, pair)
        self._tally(case).add(approved=approved, now=now)
        for key, values in case.view(DEEP).fine.items():
            for value in values:
                known = self._fine.setdefault((key, value), Tally())
                known.add(approved=approved, now=now)
        _bound(self._fine)

    def audited(self, case: Case) -> None:
        """Note that a person decided about a call that a rule covers."""
        for one in self._audited_values(case):
            self._unaudited[one] = 0
            self._doubted.pop(one, None)

    def decided_alone(self, case: Case) -> None:
        """Note an automatic decision."""
        for one in self._audited_values(case):
            _count(self._unaudited, one)

    def doubt(self) -> None:
        """Have each value audited before calls with it are decided alone again."""
        self._doubted.update(dict.fromkeys(self._unaudited))

    def is_doubted(self, case: Case) -> bool:
        """Whether one of its values is to be audited first."""
        return bool(self._doubted) and any(one in self._doubted for one in self._audited_values(case))

    def weight(self, number: int) -> float:
        """How much a past approval counts when a pattern is chosen."""
        return 1.0 if number >= self.changed_at else _STALE_WEIGHT

    def covered(self, pattern: Pattern) -> tuple[int, int]:
        """How many past approvals and rejections a pattern covers."""
        return (
            sum(case.mismatch(pattern) is None for _, case in self.approved),
            sum(case.mismatch(pattern) is None for _, case in self.rejected),
        )

    def guard(self, case: Case) -> str | None:
        """Why this call must be asked about whatever rules say: calls like it were rejected before."""
        tally = self._clusters.get(self.cluster(case))
        if tally is not None and tally.is_rejected_above(self.risk or 0.05):
            return (
                f"calls like this were rejected {tally.rejected} of {tally.approved + tally.rejected} times"
            )
        deep = case.view(DEEP)
        for key, values in deep.fine.items():
            if key in deep.openable and not self.is_open(key):
                continue  # it is part of the cluster
            for value in values:
                one = self._fine.get((key, value))
                if one is not None and one.rejected > 0.5 * (one.approved + one.rejected):
                    return f"`{key.rpartition('#')[0]}` had the value `{value}` when it was rejected before"
        return None

    def novelty(self, case: Case) -> Mismatch | None:
        """Two values of this call that were never approved together; None if all were."""
        for pair in self._pairs_of(case):
            if pair not in self._pairs:
                one, value, other, beside = pair
                leaf = one.rpartition("#")[0]
                what = f"`{value}` ({one}) together with `{beside}` ({other})"
                return Mismatch(leaf, f"nobody has approved {what} yet")
        return None

    def since_audit(self, case: Case) -> int:
        """Automatic decisions since the least audited value of this call was last audited."""
        return max((self._unaudited.get(one, 0) for one in self._audited_values(case)), default=0)

    def is_stale(self, case: Case, after: int) -> bool:
        """Whether no person decided about calls like this yet, or not for `after` decisions of the group."""
        tally = self._clusters.get(self.cluster(case))
        return tally is None or tally.last == 0 or self.decisions - tally.last > after

    def is_open(self, key: str) -> bool:
        """Whether a literal hardly ever repeats, so that a rule may leave it open."""
        counts = self._literals.get(key, {})
        total = sum(counts.values())
        share = _OPEN_SHARE if self.depth == 1 else _OPEN_SHARE_DEEP
        return total >= _OPEN_AFTER and len(counts) >= share * total

    def cluster(self, case: Case) -> Cluster:
        """Which calls are alike for the guard: the deep view with numbers by magnitude, without open literals."""
        deep = case.view(DEEP)
        heads = [
            (key, values)
            for key, values in deep.heads.items()
            if key not in deep.openable or not self.is_open(key)
        ]
        return (*heads, *((key, (magnitude,)) for key, magnitude in _magnitudes(deep)))

    def _tally(self, case: Case) -> Tally:
        tally = self._clusters.setdefault(self.cluster(case), Tally())
        _bound(self._clusters)
        return tally

    def _audited_values(self, case: Case) -> Iterator[tuple[str, str]]:
        seen = case.view(self.depth)
        for key, values in seen.heads.items():
            if key not in seen.openable or not self.is_open(key):
                yield from ((key, value) for value in values)
        yield from _magnitudes(seen)

    def _pairs_of(self, case: Case) -> Iterator[tuple[str, str, str, str]]:
        seen = case.view(1)
        flat = [
            (key, value)
            for key, values in seen.heads.items()
            if key not in seen.openable or not self.is_open(key)
            for value in values
        ]
        for (one, value), (other, beside) in combinations(flat, 2):
            if one != other:
                yield one, value, other, beside


def _count(counts: dict[Any, int], key: Any) -> None:
    counts[key] = counts.get(key, 0) + 1
    _bound(counts)


def _bound(memory: dict[Any, Any]) -> None:
    if len(memory) > _TALLIES_MAX:
        del memory[next(iter(memory))]


def _magnitudes(seen: View) -> Iterator[tuple[str, str]]:
    """Its numbers, two steps for each doubling."""
    for key, number in seen.softs.items():
        if key.endswith("#number"):
            yield key, str(int(log2(abs(number) + 1) * 2))
