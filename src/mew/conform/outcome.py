"""PURE. What a check may come to, and how what went over the wire is kept as evidence."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from mew.protocol.visible import cut

__all__ = ["CheckOutcome", "CheckResult", "NotOffered", "Transcript", "Violation", "demand"]


_LINES_MAX: Final = 2_000
_EVIDENCE_LINES_MAX: Final = 200
_IDS: Final = re.compile(r"conform-[0-9a-f]{8}[0-9a-f-]{24,28}", re.IGNORECASE)
_HIDDEN: Final = "[token]"
_TOKENS: Final = re.compile(r"""\\?["']token\\?["']\s*:\s*\\?["']([^"'\\]+)""")
"""Tokens that a gateway gives away in JSON, or in JSON quoted in JSON or Python."""
_TOKEN_CHARS_MIN: Final = 12  # a made-up one may be a word that is elsewhere too
_LINE_CHARS_MAX: Final = 20_000


class CheckOutcome(StrEnum):
    """What a check came to. `not offered` is no pass: the gateway does not have what it is about.

    `expect_draft_refused`: the check did not get as far as its subject, because another requirement does not hold.
    """

    PASS = "pass"
    FAIL = "fail"
    BLOCKED = "blocked"
    NOT_OFFERED = "not offered"
    NOT_RUN = "not run"


class Violation(Exception):
    """What came back is not what the specification says; the message says what was expected, and what was seen."""


class NotOffered(Exception):
    """The gateway does not have what this is about, or the kit was not given what it needs to try it."""


def demand(condition: object, why: str) -> None:
    """Raise a violation unless the condition holds.

    Raises:
        Violation: it does not.
    """
    if not condition:
        raise Violation(why)


@dataclass(slots=True)
class Transcript:
    """What went over the wire in one check, in order, until it is over; tokens are struck out."""

    secrets: set[str] = field(default_factory=set)
    lines: list[str] = field(default_factory=list)
    over: bool = False

    def hide(self, secret: str) -> None:
        """Strike this out from now on, and where it has been said already."""
        if secret not in self.secrets:
            self.secrets.add(secret)
            self.lines = [line.replace(secret, _HIDDEN) for line in self.lines]

    def redacted(self, text: str) -> str:
        """The text without any token known so far, or that it gives away itself."""
        for token in _TOKENS.findall(text):
            if len(token) >= _TOKEN_CHARS_MIN:
                self.hide(token)
        for secret in self.secrets:
            text = text.replace(secret, _HIDDEN)
        return text

    def evidence(self, why: str) -> tuple[str, ...]:
        """The last lines, and before them those about the envelopes that `why` names."""
        first, last = self.lines[:-_EVIDENCE_LINES_MAX], self.lines[-_EVIDENCE_LINES_MAX:]
        ids = _IDS.findall(why)
        meant = [line for line in first if any(one in line for one in ids)]
        left_out = len(first) - len(meant)
        return (*([f"… {left_out} lines from before"] if left_out else []), *meant, *last)

    def sent(self, who: str, what: str) -> None:
        self._add(f"{who} → {what}")

    def received(self, who: str, what: str) -> None:
        self._add(f"{who} ← {what}")

    def _add(self, line: str) -> None:
        if self.over:
            return
        self.lines.append(cut(self.redacted(line), _LINE_CHARS_MAX))
        if len(self.lines) > _LINES_MAX:
            del self.lines[1]
            self.lines[0] = "…"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What one check found out about the requirements it tries. `blocked_by` is the requirement that does not hold."""

    check: str
    requirements: Sequence[str]
    outcome: CheckOutcome
    why: str = ""
    evidence: Sequence[str] = ()
    took_s: float = 0.0
    needs: Sequence[str] = ()
    """Requirements without which it could not get as far as its subject."""
    blocked_by: str = ""
