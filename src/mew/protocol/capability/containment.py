"""What can be proven of two patterns: that one covers the other, that nothing fits both.

A proof that is not found within its steps is not found: False never means the opposite was proven.
"""

from collections.abc import Callable, Iterator
from itertools import islice, product
from typing import TypeVar

from .automata import includes, overlap
from .glob import ANY_RUN, Glob, Token
from .pattern import ANYTHING, AnyOf, Anything, Exact, Fields, Not, Pattern, Regex, Scalar

__all__ = ["Proof", "alternatives", "proven"]

_STEPS_MAX = 50_000
_ALTERNATIVES_MAX = 256

_Answer = TypeVar("_Answer")


class _OutOfSteps(Exception):
    pass


def proven(question: Callable[["Proof"], _Answer], *, otherwise: _Answer) -> _Answer:
    """The answer to a question, or `otherwise` if it takes too many steps (some 50 ms)."""
    try:
        return question(Proof())
    except _OutOfSteps:
        return otherwise


class Proof:
    """One question about patterns and the steps it may still take."""

    def __init__(self) -> None:
        self._steps = _STEPS_MAX

    def covers(self, wide: Pattern, narrow: Pattern) -> bool:
        """Whether it is proven that every value that fits `narrow` fits `wide`."""
        self._spend(1)
        if isinstance(narrow, AnyOf):
            return all(self.covers(wide, part) for part in narrow.patterns)
        if isinstance(wide, AnyOf):
            return any(self.covers(part, narrow) for part in wide.patterns)
        if isinstance(narrow, Exact):
            return wide.fits(narrow.text)
        if isinstance(narrow, Scalar):
            return wide.fits(narrow.value)
        match wide:
            case Anything():
                return not isinstance(narrow, Glob) or includes((ANY_RUN,), narrow.tokens, self._spend)
            case Glob():
                return isinstance(narrow, Glob) and includes(wide.tokens, narrow.tokens, self._spend)
            case Regex():
                return isinstance(narrow, Regex) and wide.text == narrow.text
            case Not():
                return self._is_tame_string(narrow) and self.disjoint(wide.of, narrow)
            case Fields():
                return isinstance(narrow, Fields) and self._covers_fields(wide, narrow)
            case _:
                return False

    def disjoint(self, left: Pattern, right: Pattern) -> bool:
        """Whether it is proven that no value fits both."""
        self._spend(1)
        if isinstance(left, AnyOf):
            return all(self.disjoint(part, right) for part in left.patterns)
        if isinstance(right, AnyOf | Exact | Scalar) and not isinstance(left, Exact | Scalar):
            return self.disjoint(right, left)
        match left, right:
            case Exact(text), _:
                return not right.fits(text)
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
        return ours is not None and theirs is not None and not overlap(ours, theirs, self._spend)

    def _is_tame_string(self, pattern: Pattern) -> bool:
        """Whether only strings fit, and none with a `..` segment."""
        return isinstance(pattern, Glob | Regex | Not) and self.covers(ANYTHING, pattern)

    def _covers_fields(self, wide: Fields, narrow: Fields) -> bool:
        fields = dict(narrow.fields)
        paths = {path.text: pattern for path, pattern in narrow.paths}
        return all(name in fields and self.covers(part, fields[name]) for name, part in wide.fields) and all(
            path.text in paths and self.covers(part, paths[path.text]) for path, part in wide.paths
        )

    def _disjoint_fields(self, left: Fields, right: Fields) -> bool:
        fields = dict(right.fields)
        paths = {path.text: pattern for path, pattern in right.paths}
        return any(name in fields and self.disjoint(part, fields[name]) for name, part in left.fields) or any(
            path.text in paths and self.disjoint(part, paths[path.text]) for path, part in left.paths
        )

    def _spend(self, steps: int) -> None:
        self._steps -= steps
        if self._steps < 0:
            raise _OutOfSteps


def alternatives(pattern: Pattern) -> list[Pattern]:
    """Patterns without `any of` (outside of paths) of which one fits whenever the pattern does.

    The pattern itself where there would be too many.
    """
    found = list(islice(_alternatives(pattern), _ALTERNATIVES_MAX + 1))
    return found if len(found) <= _ALTERNATIVES_MAX else [pattern]


def _alternatives(pattern: Pattern) -> Iterator[Pattern]:
    if isinstance(pattern, AnyOf):
        for part in pattern.patterns:
            yield from _alternatives(part)
    elif isinstance(pattern, Fields):
        names = [name for name, _ in pattern.fields]
        for choice in product(*(alternatives(part) for _, part in pattern.fields)):
            yield Fields(tuple(zip(names, choice, strict=True)), pattern.paths, pattern.in_doubt)
    else:
        yield pattern


def _tokens(pattern: Pattern) -> tuple[Token, ...] | None:
    match pattern:
        case Anything():
            return (ANY_RUN,)
        case Glob():
            return pattern.tokens
        case _:
            return None
