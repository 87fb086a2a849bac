"""Things that come one after another, for who iterates over them: bounded, and nobody waits for one that is slow.

What waits for a slow iteration holds the gateway back (`Pressure`), unless somebody here waits for an answer that is
among what would come next: then it may pile up further, and past a bound that iteration alone ends with `Lagged`.
"""

import asyncio
import weakref
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from types import TracebackType
from typing import Final, Generic, Self, TypeVar

from mew.client.errors import Lagged

__all__ = ["HIGH", "MOST", "Feed", "Pressure"]

Item = TypeVar("Item")

HIGH: Final = 1_024
"""So many that wait hold the gateway back."""
MOST: Final = 16 * HIGH
"""More are not kept."""
_LOOK_S: Final = 0.25


class Pressure:
    """Whether any feed of a connection has more waiting than it should."""

    def __init__(self) -> None:
        self.high = False
        """Whether one has; a feed that nobody holds any more may count until `look_again`."""
        self._full: weakref.WeakSet[Feed[object]] = weakref.WeakSet()
        self._changed = asyncio.Event()

    def rise(self, feed: "Feed[object]") -> None:
        self._full.add(feed)
        self.high = True

    def fall(self, feed: "Feed[object]") -> None:
        if self.high:
            self._full.discard(feed)
            self.high = len(self._full) > 0
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


class Feed(AsyncIterator[Item], Generic[Item]):
    """An async iterator, and a context that closes it. What comes from its making on is in it, until it is closed.

    One that is dropped without closing is forgotten when it is collected.
    """

    def __init__(self, pressure: Pressure) -> None:
        self._pressure = pressure
        self._items: deque[Item] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._closed = False
        self._error: BaseException | None = None

    def offer(self, item: Item) -> None:
        """Put something in; nothing happens once it is closed."""
        if self._closed:
            return
        self._items.append(item)
        waiting = len(self._items)
        if waiting >= HIGH:
            self._pressure.rise(self)  # type: ignore[arg-type]  # it only counts them
            if waiting > MOST:
                self._items.clear()
                self.close(Lagged(f"{MOST} waited for an iteration that did not take them"))
        self._wake()

    def close(self, error: BaseException | None = None) -> None:
        """No more comes. What is in it is still yielded; then it ends, with the error if there is one."""
        if not self._closed:
            self._closed = True
            self._error = error
            self._pressure.fall(self)  # type: ignore[arg-type]  # it only counts them
            self._wake()

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
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        item = self._items.popleft()
        if len(self._items) == HIGH // 2:
            self._pressure.fall(self)  # type: ignore[arg-type]  # it only counts them
        return item

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)
