"""PURE. What was refused, with what a participant tried again and again as one."""

from collections.abc import Iterable
from dataclasses import dataclass

from mew.audit.record.facts import Fact

__all__ = ["Attempt", "attempts"]


@dataclass(slots=True)
class Attempt:
    """The same, tried so many times without anything else of that participant's being refused in between."""

    first: Fact
    last: Fact
    times: int = 1


def attempts(refused: Iterable[Fact]) -> list[Attempt]:
    """What these come to, by when each was tried last; they come in order."""
    found: list[Attempt] = []
    latest: dict[str, Attempt] = {}
    for fact in refused:
        attempt = latest.get(fact.who)
        if attempt is not None and _tried(attempt.last) == _tried(fact):
            attempt.last, attempt.times = fact, attempt.times + 1
        else:
            latest[fact.who] = attempt = Attempt(fact, fact)
            found.append(attempt)
    return sorted(found, key=lambda attempt: (attempt.last.seq, attempt.last.n))


def _tried(fact: Fact) -> tuple[str, ...]:
    return fact.kind, fact.about, fact.refusal
