"""Globs: `*`, `**` and `?` over strings, in linear time, none of which matches a dot of a `..` segment."""

import re
from typing import Any

import re2

from .values import JSON

__all__ = ["ANY_RUN", "ONE", "RUN", "Glob", "Token"]

Token = str
"""One character, or a wildcard. No glob has a literal `*` or `?`, so the two cannot be confused."""

ONE: Token = "?"
RUN: Token = "*"
ANY_RUN: Token = "**"

_PARENT_IN_BYTES = re.compile(rb"(?<![^/\\])\.\.(?![^/\\])")
_TOKENS = re.compile(r"\*+|.", re.DOTALL)

# Values are matched as UTF-8 in which the dots of a `..` segment are written as 0xff, a byte UTF-8 never
# has: literal dots match it, wildcards do not. RE2 then decides in one pass, whatever the pattern.
_MARKED = b"\xff\xff"
_LITERAL_DOT = rb"[\x2e\xff]"
_WILDCARDS = {
    ONE: rb"(?:[\x00-\x2e\x30-\x7f]|[\xc0-\xf7][\x80-\xbf]+)",
    RUN: rb"[^\x2f\xff]*",
    ANY_RUN: rb"[^\xff]*",
}

_OPTIONS = re2.Options()
_OPTIONS.encoding = re2.Options.Encoding.LATIN1
_OPTIONS.log_errors = False
_OPTIONS.max_mem = 1 << 21


class Glob:
    """A string with wildcards. Compiled when an engine is first needed: RE2 takes any of 4,096 characters."""

    __slots__ = ("_crosses", "_has_one_run", "_head", "_regexp", "_tail", "text", "tokens", "wildcards")

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: tuple[Token, ...] = tuple(
            ANY_RUN if t.startswith("**") else t for t in _TOKENS.findall(text)
        )
        self._regexp: Any = None
        wild = [n for n, token in enumerate(self.tokens) if token in _WILDCARDS]
        self.wildcards = len(wild)
        self._head = "".join(self.tokens[: wild[0]])
        self._tail = "".join(self.tokens[wild[-1] + 1 :])
        # `read_*`, `/public/**`, `*.txt`: nearly all globs there are, and they need no engine
        self._has_one_run = len(wild) == 1 and self.tokens[wild[0]] != ONE
        self._crosses = ANY_RUN in self.tokens

    def fits(self, value: JSON) -> bool:
        if not isinstance(value, str):
            return False
        if not value.startswith(self._head):
            return False
        if not self._has_one_run or ".." in value:
            return self._fits_by_engine(value)
        end = len(value) - len(self._tail)
        return (
            end >= len(self._head)
            and value.endswith(self._tail)
            and (self._crosses or value.find("/", len(self._head), end) < 0)
        )

    def _fits_by_engine(self, value: str) -> bool:
        raw = value.encode("utf-8", "surrogatepass")
        if b".." in raw:
            raw = _PARENT_IN_BYTES.sub(_MARKED, raw)
        if self._regexp is None:
            self._regexp = re2.compile(b"".join(map(_as_bytes, self.tokens)), options=_OPTIONS)
        return self._regexp.fullmatch(raw) is not None


def _as_bytes(token: Token) -> bytes:
    if token in _WILDCARDS:
        return _WILDCARDS[token]
    if token == ".":
        return _LITERAL_DOT
    return b"".join(b"\\x%02x" % byte for byte in token.encode("utf-8", "surrogatepass"))
