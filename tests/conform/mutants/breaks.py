"""What a wrong gateway is, and the plainest ways to make ours into one."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import pytest

from mew.protocol.envelope import Envelope
from mew.protocol.kinds import EmptyPayload
from mew.space import Space
from mew.space.space import KindRule

__all__ = ["Break", "Mutant", "Said", "When", "mutants", "of", "replaced", "ruled", "shown", "wrapping"]

Break: TypeAlias = Callable[[pytest.MonkeyPatch], None]
When: TypeAlias = Callable[[Envelope], bool]
Said: TypeAlias = dict[str, Any]


class Mutant(NamedTuple):
    """A wrong gateway: which check must find it out, for which requirement, and with which words."""

    requirement: str
    check: str
    broken: Break
    says: str


def mutants(requirement: str, check: str, *wrong: tuple[Break, str]) -> list[Mutant]:
    """Several that the same check must find out."""
    return [Mutant(requirement, check, broken, says) for broken, says in wrong]


def replaced(owner: object, name: str, value: Any) -> Break:
    return lambda monkeypatch: monkeypatch.setattr(owner, name, value)


def wrapping(owner: Any, name: str, wrong: Callable[..., Any]) -> Break:
    """Have this called instead, with what is there rightly as its first argument."""

    def broken(monkeypatch: pytest.MonkeyPatch) -> None:
        right = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *given, **named: wrong(right, *given, **named))

    return broken


def ruled(kind: str, **parts: Any) -> Break:
    """What the space does with a kind: another `shape`, `check` or `act`."""
    rule = Space.RULES.get(kind, KindRule(EmptyPayload, None, None))._replace(**parts)
    return lambda monkeypatch: monkeypatch.setitem(Space.RULES, kind, rule)


def of(*kinds: str, sender: str = "") -> When:
    return lambda envelope: envelope.kind in kinds and envelope.sender.startswith(sender)


def shown(*kinds: str) -> Callable[[Said], bool]:
    return lambda said: said["kind"] in kinds
