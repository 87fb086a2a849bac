"""Globs as automata: whether all strings of one fit another, and whether two have a string in common.

A state is a place in the glob and what is known of the current path segment, so that the rule on `..` is
part of the language: a run that ends in a `..` with a wildcard in it is dead.
"""

from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from itertools import product

from .glob import ANY_RUN, ONE, RUN, Token

__all__ = ["includes", "overlap"]

Spend = Callable[[int], None]
"""Called with the work about to be done; raises when there has been enough of it."""

_OTHER = ""  # stands for every character that neither glob names


class _Segment(IntEnum):
    """What has been read since the last separator."""

    START = 0
    DOT = 1
    WILD_DOT = 2  # the dot was matched by a wildcard
    DOTS = 3
    WILD_DOTS = 4  # at least one of the two was
    NAME = 5  # anything that cannot become `..` any more


_State = tuple[int, _Segment]


def includes(wide: tuple[Token, ...], narrow: tuple[Token, ...], spend: Spend) -> bool:
    """Whether every string that fits `narrow` fits `wide`."""
    alphabet = _alphabet(wide, narrow)
    start = _closed(wide, [(0, _Segment.START)])
    waiting = [(state, start) for state in _closed(narrow, [(0, _Segment.START)])]
    seen = set(waiting)
    while waiting:
        state, against = waiting.pop()
        if _accepts(narrow, state) and not any(_accepts(wide, other) for other in against):
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
    origin = [(0, _Segment.START)]
    waiting = [(a, b) for a in _closed(left, origin) for b in _closed(right, origin)]
    seen = set(waiting)
    while waiting:
        a, b = waiting.pop()
        if _accepts(left, a) and _accepts(right, b):
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
    return [*sorted(named | {"/", "\\", "."}), _OTHER]


def _readable(tokens: tuple[Token, ...], state: _State, alphabet: list[str]) -> list[str]:
    at = state[0]
    if at == len(tokens):
        return []
    return alphabet if tokens[at] in (ONE, RUN, ANY_RUN) else [tokens[at]]


def _step(tokens: tuple[Token, ...], state: _State, symbol: str) -> Iterator[_State]:
    at, segment = state
    if at == len(tokens):
        return
    token = tokens[at]
    wild = token in (ONE, RUN, ANY_RUN)
    if token != symbol and (not wild or (symbol == "/" and token != ANY_RUN)):
        return
    if symbol in ("/", "\\"):
        if segment == _Segment.WILD_DOTS:
            return
        following = _Segment.START
    elif symbol == ".":
        following = _after_wild_dot(segment) if wild else _after_dot(segment)
    else:
        following = _Segment.NAME
    yield (at if token in (RUN, ANY_RUN) else at + 1), following


def _after_dot(segment: _Segment) -> _Segment:
    match segment:
        case _Segment.START:
            return _Segment.DOT
        case _Segment.DOT:
            return _Segment.DOTS
        case _Segment.WILD_DOT:
            return _Segment.WILD_DOTS
        case _:
            return _Segment.NAME


def _after_wild_dot(segment: _Segment) -> _Segment:
    match segment:
        case _Segment.START:
            return _Segment.WILD_DOT
        case _Segment.DOT | _Segment.WILD_DOT:
            return _Segment.WILD_DOTS
        case _:
            return _Segment.NAME


def _closed(tokens: tuple[Token, ...], states: Iterable[_State]) -> frozenset[_State]:
    """The states and those reached from them by letting a run be empty."""
    closed = set()
    for at, segment in states:
        closed.add((at, segment))
        while at < len(tokens) and tokens[at] in (RUN, ANY_RUN):
            at += 1
            closed.add((at, segment))
    return frozenset(closed)


def _accepts(tokens: tuple[Token, ...], state: _State) -> bool:
    return state[0] == len(tokens) and state[1] != _Segment.WILD_DOTS
