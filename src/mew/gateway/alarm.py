"""A timer for the next moment at which something is due in a space."""

import asyncio
from collections.abc import Callable
from datetime import datetime

__all__ = ["Alarm"]


class Alarm:
    """Rings at the earliest of the moments it was set to, and is then to be set again."""

    def __init__(self, now: Callable[[], datetime], ring: Callable[[], None]) -> None:
        self._now = now
        self._ring = ring
        self._timer: asyncio.TimerHandle | None = None

    def set(self, at: datetime) -> None:
        wait_s = max(0.0, (at - self._now()).total_seconds())
        loop = asyncio.get_running_loop()
        if self._timer is None or self._timer.when() > loop.time() + wait_s:
            self.cancel()
            self._timer = loop.call_later(wait_s, self._go_off)

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _go_off(self) -> None:
        self._timer = None
        self._ring()
