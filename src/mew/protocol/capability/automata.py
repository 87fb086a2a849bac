"""Globs as automata: whether all strings of one fit another, and whether two have a string in common.

Irregular paths, which fit neither, make no difference here. A state is a place in the glob.
"""

from collections.abc import Callable, Iterable
from itertools import product

from .glob import ANY_RUN, ONE, RUN, Token

__all__ = ["includes", "overlap"]

Spend = Callable[[int], None]
"""Called with the work about to be done; raises when there has been enough of it."""

_SEPARATORS = frozenset("/\\")
_OTHER = ""  # stands for every character that neither glob names


def includes(wide: tuple[Token, ...], narrow: tuple[Token, ...], spend: Spend) -> bool:
    """Whether every string that fits `narrow` fits `wide`."""
    alphabet = _alphabet(wide, narrow)
    start = _closed(wide, [0])
    waiting = [(state, start) for state in _closed(narrow, [0])]
    seen = set(waiting)
    while waiting:
        state, against = waiting.pop()
        if state == len(narrow) and len(wide) not in against:
            return False
        for symbol in _readable(narrow, state, alphabet):
            spend(1 + len(against))
            after = _closed(wide, (s for other in against for s in _step(wide, other, symbol)))
            for following in _closed(narrow, _step(narrow, state, symbol)):
                if (following, after) not in seen:
                    seen.add((following, after))
                    waiting.append((following, after))
    return True


def overlap(left: tuple[Token, ...], right: tuple[Token, ...], spend: Spend) -> bool:
    """Whether some string fits both."""
    alphabet = _alphabet(left, right)
    waiting = [(a, b) for a in _closed(left, [0]) for b in _closed(right, [0])]
    seen = set(waiting)
    while waiting:
        a, b = waiting.pop()
        if a == len(left) and b == len(right):
            return True
        for symbol in _readable(left, a, alphabet):
            ours, theirs = _closed(left, _step(left, a, symbol)), _closed(right, _step(right, b, symbol))
            spend(1 + len(ours) * len(theirs))
            for pair in product(ours, theirs):
                if pair not in seen:
                    seen.add(pair)
                    waiting.append(pair)
    return False


def _alphabet(*globs: tuple[Token, ...]) -> list[str]:
    named = {token for tokens in globs for token in tokens} - {ONE, RUN, ANY_RUN}
    return [*sorted(named | _SEPARATORS), _OTHER]


def _readable(tokens: tuple[Token, ...], at: int, alphabet: list[str]) -> list[str]:
    if at == len(tokens):
        return []
    return alphabet if tokens[at] in (ONE, RUN, ANY_RUN) else [tokens[at]]


def _step(tokens: tuple[Token, ...], at: int, symbol: str) -> list[int]:
    if at == len(tokens):
        return []
    token = tokens[at]
    if token == ANY_RUN or (token == RUN and symbol not in _SEPARATORS):
        return [at]
    return [at + 1] if token == symbol or (token == ONE and symbol not in _SEPARATORS) else []


def _closed(tokens: tuple[Token, ...], states: Iterable[int]) -> frozenset[int]:
    """The states and those reached from them by letting a run be empty."""
    closed = set()
    for at in states:
        closed.add(at)
        while at < len(tokens) and tokens[at] in (RUN, ANY_RUN):
            at += 1
            closed.add(at)
    return frozenset(closed)
