"""PURE. What a check may come to, and how what went over the wire is kept as evidence."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from mew.protocol.visible import cut

__all__ = ["NotOffered", "Outcome", "Result", "Transcript", "Violation", "demand"]

_LINES_MAX: Final = 200
_HIDDEN: Final = "[token]"
_LINE_CHARS_MAX: Final = 20_000


class Outcome(StrEnum):
    """What a check came to. `not offered` is no pass: the gateway does not have what it is about."""

    PASS = "pass"
    FAIL = "fail"
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
    """What went over the wire in one check, in order, until it is over; secrets are struck out."""

    secrets: set[str] = field(default_factory=set)
    lines: list[str] = field(default_factory=list)
    over: bool = False

    def hide(self, secret: str) -> None:
        """Strike this out from now on, and where it has been said already."""
        self.secrets.add(secret)
        self.lines = [line.replace(secret, _HIDDEN) for line in self.lines]

    def sent(self, who: str, what: str) -> None:
        self._add(f"{who} → {what}")

    def received(self, who: str, what: str) -> None:
        self._add(f"{who} ← {what}")

    def _add(self, line: str) -> None:
        if self.over:
            return
        for secret in self.secrets:
            line = line.replace(secret, _HIDDEN)
        self.lines.append(cut(line, _LINE_CHARS_MAX))
        if len(self.lines) > _LINES_MAX:
            del self.lines[1]
            self.lines[0] = "…"


@dataclass(frozen=True, slots=True)
class Result:
    """What one check found out about the requirements it tries."""

    check: str
    requirements: Sequence[str]
    outcome: Outcome
    why: str = ""
    evidence: Sequence[str] = ()
    took_s: float = 0.0
