"""Knows which pause we are under, and tells when its time is over (§3.9.1)."""

import asyncio
from collections.abc import Callable

from mew.client.wire.connection import Connection
from mew.protocol.envelope import Envelope

__all__ = ["PauseClock"]


class PauseClock:
    """Beside `Outgoing`, which holds back what we send: until when, it says there."""

    def __init__(self, connection: Connection, over: Callable[[Envelope], None]) -> None:
        self._outgoing = connection.session.outgoing
        self._over = over
        self._pause: Envelope | None = None
        self._timer: asyncio.TimerHandle | None = None

    def start(self, pause: Envelope) -> None:
        """This is the pause now, in the place of any before it."""
        self.stop()
        self._pause = pause
        self._wait()

    def stop(self) -> Envelope | None:
        """It was lifted; returns the pause that was, if there was one."""
        pause, self._pause = self._pause, None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        return pause

    def _wait(self) -> None:
        until_s = self._outgoing.paused_until
        if until_s is not None and until_s != float("inf"):
            self._timer = asyncio.get_running_loop().call_at(until_s, self._look)

    def _look(self) -> None:
        until_s = self._outgoing.paused_until
        if until_s is not None and asyncio.get_running_loop().time() < until_s:
            self._wait()  # the gateway has said that it goes on
            return
        pause = self.stop()
        if pause is not None:
            self._over(pause)
