"""Who is told of what comes, by kind: nobody is asked about envelopes that are none of its business."""

import logging
from collections.abc import Callable, Iterable
from typing import Any, Final

from mew.protocol.envelope import Envelope

__all__ = ["Listener", "Listeners"]

_log = logging.getLogger(__name__)

Listener = Callable[[Envelope, Any], None]
"""Told of envelopes in order, with the payload as the struct of its kind (None for other kinds). Must not wait."""

_KINDS_MAX: Final = 256


class Listeners:
    """In the order they came. One that raises is logged, and the others are told all the same."""

    def __init__(self) -> None:
        self._kinds: dict[Listener, frozenset[str] | None] = {}
        self._by_kind: dict[str, tuple[Listener, ...]] = {}

    @property
    def all(self) -> tuple[Listener, ...]:
        return tuple(self._kinds)

    def add(self, listener: Listener, kinds: Iterable[str] | None = None) -> None:
        self._kinds[listener] = None if kinds is None else frozenset(kinds)
        self._by_kind.clear()

    def remove(self, listener: Listener) -> None:
        self._kinds.pop(listener, None)
        self._by_kind.clear()

    def tell(self, envelope: Envelope, payload: Any) -> None:
        listeners = self._by_kind.get(envelope.kind)
        if listeners is None:
            listeners = self._listening_to(envelope.kind)
        for listen in listeners:
            try:
                listen(envelope, payload)
            except Exception:
                _log.exception("a listener failed", extra={"envelope": envelope.id})

    def _listening_to(self, kind: str) -> tuple[Listener, ...]:
        if len(self._by_kind) >= _KINDS_MAX:  # kinds come from participants
            self._by_kind.clear()
        found = tuple([it for it, kinds in self._kinds.items() if kinds is None or kind in kinds])
        self._by_kind[kind] = found
        return found
