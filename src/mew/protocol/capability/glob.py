"""Globs: `*`, `**` and `?` over strings, in linear time. Only `**` reads a separator, `/` or `\\`.

None fits an irregular path, such as one with a `..` segment; only a `./` that begins the glob may begin the path.
"""

import re
from typing import Any

import re2

from .values import JSON, is_irregular

__all__ = ["ANY_RUN", "ONE", "RUN", "Glob", "Token"]

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
