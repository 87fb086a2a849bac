"""Limits for unauthenticated connections: a deadline for the request head, and bounds per address and in all."""

import asyncio
import logging
import sys
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, Final, cast

from aiohttp import web

from .authenticator import network_of

__all__ = ["HttpConnection", "PreAuthLimiter"]

_log = logging.getLogger(__name__)

_UNAUTHENTICATED_MAX: Final = 2048  # more than the backlog: all of it may come in one turn of the loop
_UNAUTHENTICATED_PER_ADDRESS_MAX: Final = 128
_WARN_EVERY_S: Final = 60.0
_KEEPALIVE_S: Final = 75.0  # longer than the usual proxy keeps a connection without use
_GRACE_PASSES: Final = 8  # passes of the event loop in which buffered bytes are still read
_LINGER_S: Final = 2.0  # drain an unread body this long, so that the client can read the response
_HEADERS_MAX: Final = 64
_HEADER_BYTES_MAX: Final = 8190
_HEAD_BYTES_ALL: Final = 32 << 20  # of heads that are not complete, over all connections
_KNOWN_MAX: Final = 64  # per participant; further connections count as unauthenticated


class HttpConnection(web.RequestHandler):
    """An aiohttp connection that reports its start, its bytes and its end to the limiter."""

    __slots__ = ("_limiter",)

    def __init__(self, limiter: "PreAuthLimiter", server: web.Server) -> None:
        loop = asyncio.get_running_loop()
        # aiohttp types `access_log` as a logger, and documents None for none.
        nothing: Any = None
        super().__init__(
            server,
            loop=loop,
            access_log=nothing,
            keepalive_timeout=_KEEPALIVE_S,
            lingering_time=_LINGER_S,
            max_headers=_HEADERS_MAX,
            max_line_size=_HEADER_BYTES_MAX,
            max_field_size=_HEADER_BYTES_MAX,
            auto_decompress=False,  # a kilobyte may stand for a megabyte, and is unpacked on the loop
        )
        self._limiter = limiter

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        stream = cast(asyncio.Transport, transport)  # uvloop's is none by its type
        if self._limiter.let_in(self, stream):
            super().connection_made(transport)
        else:
            stream.abort()

    def data_received(self, data: bytes) -> None:
        if self._limiter.take(self, len(data)):
            super().data_received(data)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._limiter.gone(self)
        super().connection_lost(exc)

    def hand_over(self) -> None:
        """Release the transport after a WebSocket upgrade, with everything aiohttp kept for the request."""
        self.transport = None  # or it would be closed
        self.connection_lost(None)


class PreAuthLimiter:
    """Limit connections on which no valid token has been presented.

    Each has `head_timeout_s()` to send a complete request head; bytes that arrived in time count even if we were
    too busy to read them. Connections for which `is_proxy` is true are neither counted by address nor timed out
    between requests.
    """

    def __init__(
        self,
        *,
        head_timeout_s: Callable[[], float],
        is_proxy: Callable[[str], bool],
        unauthenticated_max: int | None = None,
        per_address_max: int = _UNAUTHENTICATED_PER_ADDRESS_MAX,
        known_max: int = _KNOWN_MAX,
        head_bytes_all: int = _HEAD_BYTES_ALL,
    ) -> None:
        self._head_timeout_s = head_timeout_s
        self._is_proxy = is_proxy
        self._unauthenticated_max = _affordable() if unauthenticated_max is None else unauthenticated_max
        self._per_address_max = per_address_max
        self._known_max = known_max
        self._head_bytes_all = head_bytes_all
        self._loop = asyncio.get_running_loop()
        self._transports: dict[web.RequestHandler, asyncio.Transport] = {}
        self._unauthenticated: dict[web.RequestHandler, str] = {}  # and where they come from; "" for a proxy
        self._by_address: Counter[str] = Counter()
        self._known: dict[web.RequestHandler, Hashable] = {}  # and who showed a token on it
        self._by_holder: Counter[Hashable] = Counter()
        self._heads: dict[web.RequestHandler, int] = {}  # bytes of heads that are not complete
        self._head_bytes = 0
        self._timers: dict[web.RequestHandler, asyncio.Handle] = {}
        self._serving: set[web.RequestHandler] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._said_at = float("-inf")
        self._is_over = False

    def connections(self, server: web.Server) -> Callable[[], HttpConnection]:
        """Return the factory of the protocol for each accepted connection."""
        return lambda: HttpConnection(self, server)

    def let_in(self, connection: web.RequestHandler, transport: asyncio.Transport) -> bool:
        """Register a connection; return False if a limit is reached or the server is closing."""
        if self._is_over:
            return False  # accepted before the listener was closed, and made after it
        address = self._address(transport)
        if len(self._unauthenticated) >= self._unauthenticated_max:
            self._say_full("all")
            return False
        if address and self._by_address[address] >= self._per_address_max:
            self._say_full(address)
            return False
        self._transports[connection] = transport
        self._unauthenticated[connection] = address
        self._by_address[address] += 1
        self._start_timer(connection)
        return True

    def take(self, connection: web.RequestHandler, size: int) -> bool:
        """Account for received bytes; return whether to read them.

        If incomplete heads exceed the total limit, abort the connection that buffers most.
        """
        if connection in self._serving or connection not in self._transports:
            return True
        self._heads[connection] = self._heads.get(connection, 0) + size
        self._head_bytes += size
        while self._head_bytes > self._head_bytes_all:
            largest = max(self._heads, key=self._heads.__getitem__)
            self._forget_head(largest)
            self._transports[largest].abort()
        return connection in self._heads

    def known(self, connection: web.RequestHandler, holder: Hashable) -> None:
        """Stop limiting a connection whose holder has authenticated, unless the holder has too many."""
        if connection not in self._unauthenticated or self._by_holder[holder] >= self._known_max:
            return
        self._forget_unauthenticated(connection)
        self._known[connection] = holder
        self._by_holder[holder] += 1

    def gone(self, connection: web.RequestHandler) -> None:
        """Forget a closed connection."""
        self._forget_unauthenticated(connection)
        self._forget_head(connection)
        holder = self._known.pop(connection, None)
        if holder is not None:
            self._by_holder[holder] -= 1
            if not self._by_holder[holder]:
                del self._by_holder[holder]
        self._transports.pop(connection, None)

    @contextmanager
    def serving(self, connection: web.RequestHandler) -> Iterator[None]:
        """A complete request head arrived: suspend the timer while the request is served."""
        self._stop_timer(connection)
        self._forget_head(connection)
        self._serving.add(connection)
        self._idle.clear()
        try:
            yield
        finally:
            self._serving.discard(connection)
            if not self._serving:
                self._idle.set()
            if self._unauthenticated.get(connection):  # neither known, nor gone, nor a proxy
                self._start_timer(connection)

    async def quiet(self) -> None:
        """Wait until no request is being served."""
        await self._idle.wait()

    def abort_all(self) -> None:
        """Abort every connection and refuse those still being accepted."""
        self._is_over = True
        for transport in tuple(self._transports.values()):
            transport.abort()

    def _forget_unauthenticated(self, connection: web.RequestHandler) -> None:
        address = self._unauthenticated.pop(connection, None)
        if address is not None:
            self._by_address[address] -= 1
            if not self._by_address[address]:
                del self._by_address[address]
        self._stop_timer(connection)

    def _forget_head(self, connection: web.RequestHandler) -> None:
        self._head_bytes -= self._heads.pop(connection, 0)

    def _address(self, transport: asyncio.Transport) -> str:
        peer = transport.get_extra_info("peername")
        address = peer[0] if isinstance(peer, tuple) else ""
        return "" if self._is_proxy(address) else network_of(address)

    def _start_timer(self, connection: web.RequestHandler) -> None:
        self._stop_timer(connection)
        self._timers[connection] = self._loop.call_later(
            self._head_timeout_s(), self._overdue, connection, _GRACE_PASSES
        )

    def _overdue(self, connection: web.RequestHandler, passes: int) -> None:
        """Abort the connection, unless its request head is already buffered."""
        if passes:
            self._timers[connection] = self._loop.call_soon(self._overdue, connection, passes - 1)
        else:
            del self._timers[connection]
            self._transports[connection].abort()

    def _stop_timer(self, connection: web.RequestHandler) -> None:
        timer = self._timers.pop(connection, None)
        if timer is not None:
            timer.cancel()

    def _say_full(self, address: str) -> None:
        now = self._loop.time()
        if now - self._said_at >= _WARN_EVERY_S:
            self._said_at = now
            _log.warning(
                "connections rejected: too many unauthenticated connections",
                extra={"address": address},
            )


def _affordable() -> int:
    """At most half of the file descriptors, so that authenticated connections keep the other half."""
    if sys.platform == "win32":
        return _UNAUTHENTICATED_MAX
    import resource  # not to be had on Windows

    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _UNAUTHENTICATED_MAX if files == resource.RLIM_INFINITY else min(_UNAUTHENTICATED_MAX, files // 2)
