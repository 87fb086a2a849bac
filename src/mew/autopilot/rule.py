"""PURE. Rules: a pattern over views, what it matches and why not, and how it reads."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import Any, Final

import msgspec
from msgspec import Struct

from mew.protocol.json import encode_json

from .evidence import ADVERSARY, bound_in_words
from .view import View

__all__ = [
    "Author",
    "Group",
    "Mismatch",
    "Pattern",
    "Rule",
    "RuleHistory",
    "RuleState",
    "Rung",
    "mismatch",
    "rule_id",
    "sentence",
]

_VALUES_SHOWN: Final = 6
_RECENT_MAX: Final = 200
_DAYS_MAX: Final = 60
_STATES_MAX: Final = 20
_SAYS: Final = {"value": "is", "domain": "at", "host": "on", "program": "runs", "shape": "of the form"}


class RuleState(StrEnum):
    """Where a rule stands. `shadow` is known to the learner alone."""

    SHADOW = "shadow"
    SUGGESTED = "suggested"
    ACTIVE = "active"
    DEMOTED = "demoted"
    ASLEEP = "asleep"
    EXPIRED = "expired"
    REVOKED = "revoked"


class Author(StrEnum):
    """Who made a rule effective."""

    LEARNED = "learned"
    RATIFIED = "ratified"
    WRITTEN = "written"


class Group(Struct, frozen=True):
    """Calls that are compared with each other. A changed tool (`fingerprint`) is another group."""

    proposer: str
    target: tuple[str, ...]
    method: str
    operand: str
    fingerprint: str = ""

    def is_same_tool(self, other: "Group") -> bool:
        """Whether the two differ in nothing but what the tool was at that time."""
        return (self.proposer, self.target, self.method, self.operand) == (
            other.proposer,
            other.target,
            other.method,
            other.operand,
        )

    @property
    def call(self) -> str:
        """The tool, or the method, and whose it is."""
        return f"{self.operand or self.method} of {', '.join(self.target) or 'anybody'}"


class Pattern(Struct, frozen=True, omit_defaults=True):
    """A closed set of calls of one group: each head one of these values, each soft in this range.

    `exact` is the canonical JSON of the one call it matches; then the rest is empty. `open` are the literals that may
    have any value of their shape.
    """

    depth: int = 1
    heads: dict[str, tuple[str, ...]] = {}
    softs: dict[str, tuple[float, float]] = {}
    open: tuple[str, ...] = ()
    exact: str | None = None

    def covers(self, other: "Pattern") -> bool:
        """Whether it certainly matches every call that `other` matches."""
        if self.exact is not None or other.exact is not None:
            return self.exact == other.exact
        if self.depth != other.depth:
            return False
        for key, values in other.heads.items():
            if key not in self.open and not set(values) <= set(self.heads.get(key, ())):
                return False
        if not set(other.open) <= set(self.open):
            return False
        for key, (low, high) in other.softs.items():
            mine = self.softs.get(key)
            if mine is None or not (mine[0] <= low and high <= mine[1]):
                return False
        return True


class Mismatch(Struct, frozen=True):
    """Why a pattern does not match: the field, and what is wrong with it in words."""

    field: str
    why: str


class Rung(Struct, frozen=True, omit_defaults=True):
    """One rule of the ladder that a reviewer can choose: `scope` goes into `autopilot/ratify`.

    `approved` and `rejected` are past decisions that it covers. There is a `bound` only if the rule is known: of a
    pattern chosen from these decisions they prove nothing.
    """

    sentence: str
    scope: Pattern
    approved: int
    rejected: int
    rule: str | None = None
    bound: str | None = None


class RuleHistory(Struct):
    """What became of a rule, short enough for a plot.

    `recent`: its latest reviewed calls, `a` approved, `r` rejected. `days`: approved, rejected, decided alone.
    """

    states: list[tuple[datetime, RuleState]] = []
    days: dict[str, list[int]] = {}
    recent: str = ""

    def day(self, at: datetime) -> list[int]:
        """The counts of this day, to be added to."""
        counts = self.days.setdefault(at.date().isoformat(), [0, 0, 0])
        if len(self.days) > _DAYS_MAX:
            del self.days[next(iter(self.days))]
        return counts


class Rule(Struct, kw_only=True):
    """A pattern with its evidence. `decisions` and `rejections` were made after its birth."""

    id: str
    group: Group
    pattern: Pattern
    risk: float
    alpha: float
    kind: str
    state: RuleState = RuleState.SHADOW
    author: Author = Author.LEARNED
    by: str | None = None
    decisions: int = 0
    rejections: int = 0
    distinct: dict[str, int] = {}
    confirmations: int = 0
    uses: int = 0
    uses_max: int | None = None
    until: datetime | None = None
    last_used: datetime | None = None
    samples: tuple[str, ...] = ()
    resets: int = 0
    suggestions: int = 0
    suggest_from: int = 0
    revision: int = 1
    history: RuleHistory = msgspec.field(default_factory=RuleHistory)

    def enter(self, state: RuleState, at: datetime) -> None:
        """Change the state, and note when."""
        if state is not self.state:
            self.state = state
            self.history.states.append((at, state))
            del self.history.states[:-_STATES_MAX]

    def reviewed(self, at: datetime, *, approved: bool) -> None:
        """Note for the history that a reviewer decided about a call it covers."""
        self.history.day(at)[0 if approved else 1] += 1
        self.history.recent = (self.history.recent + ("a" if approved else "r"))[-_RECENT_MAX:]

    def as_dict(self) -> dict[str, Any]:
        """The rule as `autopilot/rule` has it."""
        return {
            "rule": self.id,
            "state": self.state.value,
            "sentence": sentence(self.group, self.pattern),
            "author": self.author.value,
            "by": self.by,
            "group": _group_as_dict(self.group),
            "pattern": self.pattern,
            "evidence": {
                "decisions": self.decisions,
                "rejections": self.rejections,
                "distinct": len(self.distinct),
            },
            "suggestions": self.suggestions,
            "revision": self.revision,
            "risk": self.risk,
            "bound": bound_in_words(self.decisions, self.rejections),
            "limits": ADVERSARY,
            "uses": self.uses,
            "uses_max": self.uses_max,
            "until": self.until,
            "last_used": self.last_used,
            "samples": self.samples,
            "history": {
                "states": self.history.states,
                "days": [[day, *counts] for day, counts in self.history.days.items()],
                "recent": self.history.recent,
            },
        }


def rule_id(group: Group, pattern: Pattern, birth: int) -> str:
    """A short id that the same log always gives again."""
    return "r" + sha256(encode_json([group, pattern, birth])).hexdigest()[:8]


def mismatch(pattern: Pattern, view: View, exact: str) -> Mismatch | None:
    """Why the pattern does not match a call, seen at the pattern's depth; None if it does."""
    if pattern.exact is not None:
        return None if pattern.exact == exact else Mismatch("", "the call is not exactly the one approved")
    for key, values in view.heads.items():
        if key in pattern.open:
            continue
        allowed = pattern.heads.get(key)
        if allowed is None:
            return Mismatch(_leaf(key), f"`{_leaf(key) or key}` is of a kind the rule has not seen")
        wrong = next((value for value in values if value not in allowed), None)
        if wrong is not None:
            return Mismatch(_leaf(key), _wrong_value(key, wrong, allowed))
    for key, number in view.softs.items():
        bounds = pattern.softs.get(key)
        if bounds is None:
            return Mismatch(_leaf(key), f"`{_leaf(key)}` is of a kind the rule has not seen")
        if not bounds[0] <= number <= bounds[1]:
            between = f"{_number(bounds[0])} to {_number(bounds[1])}"
            return Mismatch(_leaf(key), f"{_aspect_of(key)} is {_number(number)}, outside {between}")
    return None


def sentence(group: Group, pattern: Pattern) -> str:
    """The rule as one sentence."""
    begin = f"`{group.proposer}` may call {group.call}"
    if pattern.exact is not None:
        return f"{begin} with exactly {pattern.exact if len(pattern.exact) <= 200 else pattern.exact[:200] + '…'}"
    phrases = list(_phrases(pattern))
    return f"{begin} with {'; '.join(phrases)}" if phrases else f"{begin} without arguments"


def _phrases(pattern: Pattern) -> Iterator[str]:
    leaves: dict[str, list[str]] = {}
    for key, values in pattern.heads.items():
        leaf, _, aspect = key.rpartition("#")
        words = _head_words(aspect, values)
        if leaf and words:
            leaves.setdefault(leaf, []).append(words)
    for key in pattern.open:
        leaves.setdefault(_leaf(key), []).append("any value")
    for key, (low, high) in pattern.softs.items():
        leaf, _, aspect = key.rpartition("#")
        words = _soft_words(aspect, low, high)
        if words:
            leaves.setdefault(leaf, []).append(words)
    for leaf in sorted(leaves):
        yield f"`{leaf}` {', '.join(leaves[leaf])}"


def _head_words(aspect: str, values: tuple[str, ...]) -> str:
    shown = [f"`{value}`" if value else "nothing" for value in values[:_VALUES_SHOWN]]
    if len(values) > _VALUES_SHOWN:
        shown.append(f"{len(values) - _VALUES_SHOWN} more")
    listed = " or ".join(shown)
    match aspect:
        case "kind" | "sign":
            return ""
        case "where" if values == ("relative",):
            return ""
        case "under":
            roots = (f"`{value}/**`" if value else "the top folder" for value in values[:_VALUES_SHOWN])
            return "in " + " or ".join(roots) + (" and more" if len(values) > _VALUES_SHOWN else "")
        case "extension":
            endings = (f"`.{value}`" if value else "no extension" for value in values[:_VALUES_SHOWN])
            return "ending in " + " or ".join(endings)
        case "flags" | "query" | "clauses":
            return f"with {aspect} {listed}" if any(values) else f"without {aspect}"
        case "class":
            return f"{' or '.join(values)} text"
    return f"{_SAYS.get(aspect, aspect)} {listed}"


def _soft_words(aspect: str, low: float, high: float) -> str:
    match aspect:
        case "number" | "least":
            return f"from {_number(low)} to {_number(high)}" if low != high else f"is {_number(low)}"
        case "depth":
            return f"at most {_number(high)} level{'' if high == 1 else 's'} deep"
        case "size":
            return f"of at most {int(2 ** (high + 0.5))} characters"
        case _:
            return (
                f"with {_number(low)} to {_number(high)} {aspect}"
                if low != high
                else f"with {_number(low)} {aspect}"
            )


def _wrong_value(key: str, wrong: str, allowed: tuple[str, ...]) -> str:
    leaf, _, aspect = key.rpartition("#")
    if aspect == "fields":
        return "its arguments have other fields than the rule knows"
    if aspect == "under":
        roots = " and ".join(
            f"`{value}/**`" if value else "the top folder" for value in allowed[:_VALUES_SHOWN]
        )
        return f"`{leaf}` is outside {roots}"
    listed = ", ".join(f"`{value}`" for value in allowed[:_VALUES_SHOWN])
    return f"{_aspect_of(key)} is `{wrong}`, not one of {listed}"


def _aspect_of(key: str) -> str:
    leaf, _, aspect = key.rpartition("#")
    return f"`{leaf}`" if aspect in ("value", "number", "least") else f"the {aspect} of `{leaf}`"


def _leaf(key: str) -> str:
    return key.rpartition("#")[0]


def _number(number: float) -> str:
    return str(int(number)) if number == int(number) else str(number)


def _group_as_dict(group: Group) -> Mapping[str, Any]:
    return {
        "proposer": group.proposer,
        "target": group.target,
        "method": group.method,
        "operand": group.operand,
        "fingerprint": group.fingerprint,
    }
