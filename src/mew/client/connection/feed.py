"""Deliver what arrives: to listeners by kind, and to feeds that an application iterates over, with backpressure.

A slow iteration holds the gateway back (`Pressure`), unless somebody here waits for an answer that is among what comes
next: then items pile up further, and past a bound that iteration alone ends with `Lagged`.
"""

import asyncio
import logging
import weakref
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar

from msgspec import UNSET, Struct

from mew.client.errors import Lagged
from mew.protocol.capability import Capability
from mew.protocol.envelope import Envelope, ParticipantId

__all__ = ["BYTES_HIGH", "BYTES_MOST", "HIGH", "MOST", "Feed", "Filter", "Listener", "Listeners", "Pressure"]


class Filter(Struct, frozen=True):
    """Everything that is given must fit; what is not given fits always."""

    kinds: tuple[Capability, ...] = ()
    senders: frozenset[str] = frozenset()
    context: str | None = None
    to: ParticipantId | None = None
    about: str | None = None

    @classmethod
    def of(
        cls,
        *,
        kind: str | Iterable[str] | None = None,
        sender: str | Iterable[str] | None = None,
        context: str | None = None,
        to: ParticipantId | None = None,
        about: str | None = None,
    ) -> "Filter":
        """`kind` may have wildcards as in capabilities; `context` is a path, and what is under it fits too; `to`:
        addressed to this one, by name or, being addressed to nobody, to everyone; `about`: an id that
        `correlation_id` must have.

        Raises:
            InvalidCapability: a kind is no pattern.
        """
        kinds = tuple(Capability.parse({"kind": pattern}) for pattern in _several(kind))
        return cls(kinds, frozenset(_several(sender)), context, to, about)

    def fits(self, envelope: Envelope) -> bool:
        if self.kinds and not any(
            pattern.fits(envelope.kind, envelope.to, lambda: None) for pattern in self.kinds
        ):
            return False
        if self.senders and envelope.sender not in self.senders:
            return False
        if self.to is not None and envelope.to and self.to not in envelope.to:
            return False
        if self.about is not None and self.about not in envelope.correlation_id:
            return False
        return self.context is None or self._within(envelope)

    def _within(self, envelope: Envelope) -> bool:
        context = envelope.context
        if context is UNSET:
            return False
        return context == self.context or context.startswith(f"{self.context}/")


def _several(names: str | Iterable[str] | None) -> tuple[str, ...]:
    if names is None:
        return ()
    return (names,) if isinstance(names, str) else tuple(names)


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


Item = TypeVar("Item")

HIGH: Final = 1_024
BYTES_HIGH: Final = 16 << 20
"""So much that waits holds the gateway back."""
MOST: Final = 16 * HIGH
BYTES_MOST: Final = 4 * BYTES_HIGH
"""More is not kept."""
_LOOK_S: Final = 0.25


class Pressure:
    """Whether any feed of a connection has more waiting than it should."""

    def __init__(self) -> None:
        self.high = False
        """Whether one has; a feed that nobody holds any more may count until `look_again`."""
        self.taken = 0
        """How many were taken out of those that have too much."""
        self.stuck = False
        """Whether nobody takes anything out: then nobody need wait for it. Until it falls."""
        self._full: weakref.WeakSet[Feed[object]] = weakref.WeakSet()
        self._changed = asyncio.Event()

    def rise(self, feed: "Feed[object]") -> None:
        self._full.add(feed)
        self.high = True

    def fall(self, feed: "Feed[object]") -> None:
        if self.high:
            self._full.discard(feed)
            self.high = len(self._full) > 0
            self.stuck = self.stuck and self.high
            self.changed()

    def changed(self) -> None:
        """Let who waits look again."""
        self._changed.set()

    async def look_again(self) -> None:
        """Until something may have changed; a feed that nobody holds any more goes without a word."""
        self._changed.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_S):
                await self._changed.wait()
        self.high = len(self._full) > 0
        self.stuck = self.stuck and self.high


class Feed(AsyncIterator[Item], Generic[Item]):
    """An async iterator, and a context that closes it. What comes from its making on is in it, until it is closed.

    Several tasks may iterate over it: each item is for one of them.
    One that is dropped without closing is forgotten when it is collected.
    """

    def __init__(self, pressure: Pressure) -> None:
        self._pressure = pressure
        self._items: deque[tuple[Item, int]] = deque()
        self._bytes = 0
        self._pressing = False
        self._news = asyncio.Event()
        self._closed = False
        self._error: BaseException | None = None

    def offer(self, item: Item, size_bytes: int = 0) -> None:
        """Put something in, that takes so much room; nothing happens once it is closed."""
        if self._closed:
            return
        self._items.append((item, size_bytes))
        self._bytes += size_bytes
        if len(self._items) >= HIGH or self._bytes >= BYTES_HIGH:
            self._pressing = True
            self._pressure.rise(self)  # type: ignore[arg-type]  # it only counts them
            if len(self._items) > MOST or self._bytes > BYTES_MOST:
                self._items.clear()
                self._bytes = 0
                self.close(
                    Lagged(f"{MOST} waited, or {BYTES_MOST} bytes, for an iteration that did not take them")
                )
        self._news.set()

    def close(self, error: BaseException | None = None) -> None:
        """No more comes. What is in it is still yielded; then it ends, with the error if there is one."""
        if not self._closed:
            self._closed = True
            self._error = error
            self._pressure.fall(self)  # type: ignore[arg-type]  # it only counts them
            self._news.set()

    @property
    def closed(self) -> bool:
        return self._closed

    def __len__(self) -> int:
        return len(self._items)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        while not self._items:
            if self._closed:
                if self._error is not None:
                    raise self._error
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        item, size_bytes = self._items.popleft()
        self._bytes -= size_bytes
        self._pressure.taken += self._pressing
        if self._pressing and len(self._items) <= HIGH // 2 and self._bytes <= BYTES_HIGH // 2:
            self._pressing = False
            self._pressure.fall(self)  # type: ignore[arg-type]  # it only counts them
        return item

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
