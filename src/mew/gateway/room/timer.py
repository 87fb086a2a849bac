"""A timer for the next pause or grant that expires in a space."""

import asyncio
from collections.abc import Callable
from datetime import datetime

__all__ = ["Timer"]


class Timer:
    """Fire once at the earliest moment set; must then be set again."""

    def __init__(self, now: Callable[[], datetime], due: Callable[[], None]) -> None:
        self._now = now
        self._due = due
        self._handle: asyncio.TimerHandle | None = None

    def set(self, at: datetime, delay_s: float = 0.0) -> None:
        """Fire at this moment, or so much later, unless an earlier one is set."""
        wait_s = max(0.0, (at - self._now()).total_seconds()) + delay_s
        loop = asyncio.get_running_loop()
        if self._handle is None or self._handle.when() > loop.time() + wait_s:
            self.cancel()
            self._handle = loop.call_later(wait_s, self._go_off)

    def cancel(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _go_off(self) -> None:
        self._handle = None
        self._due()
