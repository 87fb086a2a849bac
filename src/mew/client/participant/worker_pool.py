"""Work that runs beside the connection: in the order it came, so many at once, and a bound on what waits."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final

from mew.client.connection.connection import ClientConnection
from mew.protocol.envelope import Envelope

__all__ = ["Work", "WorkerPool"]

Work = Callable[[], Coroutine[Any, Any, object]]

_WAITING_BYTES_MAX: Final = 16 << 20


class WorkerPool:
    """Takes work at any time, and begins it where there is room; held, or once the connection is over, nothing."""

    def __init__(
        self, connection: ClientConnection, *, at_once: int = 1, waiting_max: int = 64, held: bool = False
    ) -> None:
        """At most `waiting_max` wait, and 16 MiB of what they are about."""
        self._connection = connection
        self._at_once = at_once
        self._waiting_max = waiting_max
        self._held = held
        self._waiting: deque[tuple[Work, int]] = deque()
        self._waiting_bytes = 0
        self._running: set[asyncio.Task[None]] = set()

    def offer(self, work: Work, about: Envelope | None = None) -> bool:
        """Begin it, now or when it is its turn; False: too much waits, and it will not be done.

        `about` is the envelope that it keeps.
        """
        size_bytes = 0 if about is None else memoryview(about.payload).nbytes
        is_full = (
            len(self._waiting) >= self._waiting_max or self._waiting_bytes + size_bytes > _WAITING_BYTES_MAX
        )
        if is_full and not self._has_room:
            return False
        self._waiting.append((work, size_bytes))
        self._waiting_bytes += size_bytes
        self._begin()
        return True

    def hold(self) -> None:
        """Begin nothing more; what runs goes on."""
        self._held = True

    def open(self) -> None:
        """Begin what waits."""
        self._held = False
        self._begin()

    def drop(self) -> None:
        """Forget what waits, and cancel what runs."""
        self._waiting.clear()
        self._waiting_bytes = 0
        for task in self._running - {asyncio.current_task()}:
            task.cancel()

    async def quiet(self, within_s: float) -> None:
        """Until what runs has ended, or that time is over."""
        running = self._running - {asyncio.current_task()}
        if running:
            await asyncio.wait(running, timeout=within_s)

    @property
    def _has_room(self) -> bool:
        # Leaving the connection cancels what runs: what would begin then, nobody would cancel.
        is_over = self._connection.ended.done()
        return not self._held and not is_over and len(self._running) < self._at_once

    def _begin(self) -> None:
        while self._waiting and self._has_room:
            begin, size_bytes = self._waiting.popleft()
            self._waiting_bytes -= size_bytes
            work = begin()
            task = self._connection.spawn(work)
            self._running.add(task)
            task.add_done_callback(partial(self._ended, work))

    def _ended(self, work: Coroutine[Any, Any, object], task: asyncio.Task[None]) -> None:
        work.close()  # of one that was cancelled before it began, Python would complain that nobody awaited it
        self._running.discard(task)
        self._begin()
