"""Globs: `*`, `**` and `?` over strings in linear time; inclusion and overlap of two globs.

Only `**` matches a separator, `/` or `\\`. No glob matches an irregular path, such as one with a `..` segment;
a leading `./` in the glob matches one in the path.
"""

import re
from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

import re2

from .values import JSON, is_irregular

__all__ = ["ANY_RUN", "ONE", "RUN", "Glob", "Token", "includes", "overlap"]

Token = str
"""One character, or a wildcard. No glob has a literal `*` or `?`, so the two cannot be confused."""

ONE: Token = "?"
RUN: Token = "*"
ANY_RUN: Token = "**"

_TOKENS = re.compile(r"\*+|.", re.DOTALL)
_SEPARATOR = re.compile(r"[/\\]")
# Matched as UTF-8: half of a character is text too.
_WILDCARDS = {
    ONE: rb"(?:[\x00-\x2e\x30-\x5b\x5d-\x7f]|[\xc0-\xf7][\x80-\xbf]+)",
    RUN: rb"[^\x2f\x5c]*",
    ANY_RUN: rb"[\x00-\xff]*",
}

_OPTIONS = re2.Options()
_OPTIONS.encoding = re2.Options.Encoding.LATIN1
_OPTIONS.log_errors = False
_OPTIONS.max_mem = 1 << 21


class Glob:
    """A string with wildcards. Compiled when an engine is first needed: RE2 takes any of 4,096 characters."""

    __slots__ = (
        "_crosses",
        "_has_one_run",
        "_head",
        "_regexp",
        "_tail",
        "is_dotted",
        "text",
        "tokens",
        "wildcards",
    )

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: tuple[Token, ...] = tuple(
            ANY_RUN if t.startswith("**") else t for t in _TOKENS.findall(text)
        )
        self._regexp: Any = None
        wild = [n for n, token in enumerate(self.tokens) if token in _WILDCARDS]
        self.wildcards = len(wild)
        self._head = "".join(self.tokens[: wild[0]])
        self.is_dotted = self._head.startswith("./")
        self._tail = "".join(self.tokens[wild[-1] + 1 :])
        # `read_*`, `/public/**`, `*.txt`: nearly all globs there are, and they need no engine
        self._has_one_run = len(wild) == 1 and self.tokens[wild[0]] != ONE
        self._crosses = ANY_RUN in self.tokens

    def fits(self, value: JSON) -> bool:
        if not isinstance(value, str) or not value.startswith(self._head):
            return False
        if self._has_one_run:
            end = len(value) - len(self._tail)
            found = (
                end >= len(self._head)
                and value.endswith(self._tail)
                and (self._crosses or _SEPARATOR.search(value, len(self._head), end) is None)
            )
        else:
            found = self._fits_by_engine(value)
        return found and not is_irregular(value[2:] if self.is_dotted else value)

    def _fits_by_engine(self, value: str) -> bool:
        if self._regexp is None:
            self._regexp = re2.compile(b"".join(map(_expression, self.tokens)), options=_OPTIONS)
        return self._regexp.fullmatch(value.encode("utf-8", "surrogatepass")) is not None


def _expression(token: Token) -> bytes:
    if token in _WILDCARDS:
        return _WILDCARDS[token]
    return b"".join(b"\\x%02x" % byte for byte in token.encode("utf-8", "surrogatepass"))


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
