"""What can be proven of two patterns: that one covers the other, that nothing fits both.

A proof that is not found within its steps is not found: False never means the opposite was proven.
"""

from collections.abc import Callable, Iterator
from itertools import islice, product
from typing import TypeVar

from .glob import ANY_RUN, Glob, Token, includes, overlap
from .pattern import AnyOf, Anything, Exact, Fields, Not, Pattern, Regex, Scalar
from .values import canonical

__all__ = ["ContainmentProof", "ProofBudget", "alternatives", "may_be_rewritten", "proven"]

_STEPS_MAX = 20_000  # for one question, some 20 ms; real patterns take tens to thousands
_ALTERNATIVES_MAX = 256

_Answer = TypeVar("_Answer")


class _OutOfSteps(Exception):
    pass


class ProofBudget:
    """Steps that several questions share (some 1 µs each). Counted, not timed: every node must decide alike.

    Once they are used up nothing more is proven.
    """

    __slots__ = ("left",)

    def __init__(self, steps: int) -> None:
        self.left = steps

    def spend(self, steps: int) -> bool:
        """Pay for work about to be done; False where there is not enough left."""
        self.left -= steps
        return self.left >= 0


def proven(
    question: Callable[["ContainmentProof"], _Answer], effort: ProofBudget | None, *, otherwise: _Answer
) -> _Answer:
    """The answer to a question, or `otherwise` if it takes too many steps, or more than the effort has left."""
    if effort is None:
        effort = ProofBudget(_STEPS_MAX)
    if effort.left <= 0:
        return otherwise
    try:
        return question(ContainmentProof(effort))
    except _OutOfSteps:
        return otherwise


class ContainmentProof:
    """One question about patterns and the steps it may still take."""

    def __init__(self, effort: ProofBudget) -> None:
        self._steps = _STEPS_MAX
        self._effort = effort

    def covers(self, wide: Pattern, narrow: Pattern) -> bool:
        """Whether it is proven that every value that fits `narrow` fits `wide`."""
        self.spend(1)
        if isinstance(narrow, AnyOf):
            return all(self.covers(wide, part) for part in narrow.patterns)
        if isinstance(wide, AnyOf):
            return any(self.covers(part, narrow) for part in wide.patterns)
        if isinstance(narrow, Exact):
            return self._fits(wide, narrow.text)
        if isinstance(narrow, Scalar):
            return wide.fits(narrow.value)
        match wide:
            case Anything():
                return True
            case Glob():
                return isinstance(narrow, Glob) and (
                    wide.text == narrow.text
                    or (
                        wide.is_dotted >= narrow.is_dotted
                        and includes(wide.tokens, narrow.tokens, self.spend)
                    )
                )
            case Regex():
                return isinstance(narrow, Regex) and wide.text == narrow.text
            case Not():
                return (
                    isinstance(narrow, Glob | Not)
                    and not may_be_rewritten(narrow)
                    and self.disjoint(wide.of, narrow)
                )
            case Fields():
                return isinstance(narrow, Fields) and self._covers_fields(wide, narrow)
            case _:
                return False

    def disjoint(self, left: Pattern, right: Pattern) -> bool:
        """Whether it is proven that no value fits both."""
        self.spend(1)
        if isinstance(left, AnyOf):
            return all(self.disjoint(part, right) for part in left.patterns)
        if isinstance(right, AnyOf | Exact | Scalar) and not isinstance(left, Exact | Scalar):
            return self.disjoint(right, left)
        match left, right:
            case Exact(text), _:
                return not self._fits(right, text)
            case Scalar(value), _:
                return not right.fits(value)
            case Fields(), Fields():
                return self._disjoint_fields(left, right)
            case (Not(of), other) | (other, Not(of)):
                return isinstance(other, Fields) or self.covers(of, other)
            case _:
                return self._disjoint_rest(left, right)

    def _disjoint_rest(self, left: Pattern, right: Pattern) -> bool:
        if isinstance(left, Fields) or isinstance(right, Fields):
            return not isinstance(left, Anything) and not isinstance(right, Anything)
        ours, theirs = _tokens(left), _tokens(right)
        return ours is not None and theirs is not None and not overlap(ours, theirs, self.spend)

    def _fits(self, pattern: Pattern, text: str) -> bool:
        """Whether the text fits, paid for by both their lengths: what an engine may take at worst."""
        self.spend(_weight(pattern) * len(text) // 256)
        return pattern.fits(text)

    def _covers_fields(self, wide: Fields, narrow: Fields) -> bool:
        self.spend((len(narrow.fields) + len(narrow.paths)) // 8)
        fields = dict(narrow.fields)
        paths = {path.text: pattern for path, pattern in narrow.paths}
        return all(name in fields and self.covers(part, fields[name]) for name, part in wide.fields) and all(
            path.text in paths and self.covers(part, paths[path.text]) for path, part in wide.paths
        )

    def _disjoint_fields(self, left: Fields, right: Fields) -> bool:
        self.spend((len(right.fields) + len(right.paths)) // 8)
        fields = dict(right.fields)
        paths = {path.text: pattern for path, pattern in right.paths}
        return any(name in fields and self.disjoint(part, fields[name]) for name, part in left.fields) or any(
            path.text in paths and self.disjoint(part, paths[path.text]) for path, part in left.paths
        )

    def spend(self, steps: int) -> None:
        """Pay for work about to be done; gives the question up where there is not enough left."""
        self._steps -= steps
        self._effort.left -= steps
        if self._steps < 0 or self._effort.left < 0:
            raise _OutOfSteps


def alternatives(pattern: Pattern, proof: ContainmentProof) -> list[Pattern]:
    """Patterns without `any of` (outside of paths) of which one fits whenever the pattern does.

    The pattern itself where there would be too many.
    """
    found = list(islice(_alternatives(pattern, proof), _ALTERNATIVES_MAX + 1))
    return found if len(found) <= _ALTERNATIVES_MAX else [pattern]


def _alternatives(pattern: Pattern, proof: ContainmentProof) -> Iterator[Pattern]:
    if isinstance(pattern, AnyOf):
        for part in pattern.patterns:
            yield from _alternatives(part, proof)
    elif isinstance(pattern, Fields):
        names = [name for name, _ in pattern.fields]
        for choice in product(*(alternatives(part, proof) for _, part in pattern.fields)):
            proof.spend(1 + len(names) // 8)
            yield Fields(tuple(zip(names, choice, strict=True)), pattern.paths, pattern.in_doubt)
    else:
        yield pattern


def may_be_rewritten(pattern: Pattern) -> bool:
    """Whether a text that fits may not once it is written plainly: then an exception may fit it that seems not to."""
    match pattern:
        case Exact(text):
            return canonical(text) != text
        case Glob():
            return pattern.is_dotted or "\\" in pattern.text
        case Regex():
            return True
        case AnyOf(patterns):
            return any(map(may_be_rewritten, patterns))
        case Fields(fields, paths):
            return any(may_be_rewritten(part) for _, part in (*fields, *paths))
        case _:
            return False


def _weight(pattern: Pattern) -> int:
    match pattern:
        case Glob() | Regex():
            return len(pattern.text)
        case Not():
            return _weight(pattern.of)
        case AnyOf():
            return sum(1 + _weight(part) for part in pattern.patterns)
        case _:
            return 0


def _tokens(pattern: Pattern) -> tuple[Token, ...] | None:
    match pattern:
        case Anything():
            return (ANY_RUN,)
        case Glob():
            return pattern.tokens
        case _:
            return None
