"""HTTP answers on their way out: bounded for each participant until they have left, with a deadline for progress."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable
from typing import Final

from aiohttp import web

from mew.gateway.auth.guard import Denied

__all__ = ["ResponseBudget"]

_log = logging.getLogger(__name__)

_PROGRESS_S: Final = 10.0
_PROGRESS_BYTES: Final = 64 << 10
_CHARGE: Final = web.RequestKey("charge", tuple[Hashable, int])


class ResponseBudget:
    """Counts the bytes of answers that have not left yet, by who asked for them.

    A reader that takes less than 64 KiB in `progress_s` is disconnected.
    """

    def __init__(self, *, progress_s: float = _PROGRESS_S) -> None:
        self._progress_s = progress_s
        self._unread: Counter[Hashable] = Counter()

    def charge(self, request: web.Request, whose: Hashable, size: int, bytes_max: int) -> None:
        """Count an answer to this request, from now until it has left.

        Raises:
            Denied: this many bytes of answers have not left already.
        """
        if self._unread[whose] >= bytes_max:
            message = f"{self._unread[whose]} bytes of answers to you have not been read"
            raise Denied(429, "too_many_connections", message, retry_after_s=self._progress_s)
        self._unread[whose] += size
        request[_CHARGE] = whose, size

    async def send(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Have the request answered, and return when the answer has left."""
        try:
            response = await handler(request)
            if not response.prepared:
                watch = _Watch(request, self._progress_s)
                try:
                    await response.prepare(request)
                    await response.write_eof()
                except ConnectionError:
                    pass  # aiohttp finds out for itself
                finally:
                    watch.stop()
            return response
        finally:
            if _CHARGE in request:
                whose, size = request[_CHARGE]
                self._unread[whose] -= size
                if not self._unread[whose]:
                    del self._unread[whose]


class _Watch:
    """Disconnects a reader that makes no progress, until it is stopped."""

    def __init__(self, request: web.Request, progress_s: float) -> None:
        self._transport = request.transport
        self._progress_s = progress_s
        self._loop = asyncio.get_running_loop()
        self._waiting_bytes = 0
        self._timer = self._loop.call_later(progress_s, self._check)

    def stop(self) -> None:
        self._timer.cancel()

    def _check(self) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        waiting_bytes = self._transport.get_write_buffer_size()
        if self._waiting_bytes and waiting_bytes > self._waiting_bytes - _PROGRESS_BYTES:
            _log.warning("slow reader of an HTTP answer disconnected", extra={"unread_bytes": waiting_bytes})
            self._transport.abort()
            return
        self._waiting_bytes = waiting_bytes
        self._timer = self._loop.call_later(self._progress_s, self._check)
