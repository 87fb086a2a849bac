"""Connections that have not said who they are: each has a deadline, and there are only so many of them."""

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

_STRANGERS_MAX: Final = 2048  # more than the backlog: all of it may come in one turn of the loop
_STRANGERS_PER_ADDRESS: Final = 128
_QUIET_S: Final = 60.0
_KEEPALIVE_S: Final = 75.0  # longer than the usual proxy keeps a connection without use
_TURNS: Final = 8  # of the loop, in which what has arrived is read and its handler begun
_LINGER_S: Final = 2.0  # for a body that nobody reads, so that its sender gets to read the answer
_HEADERS_MAX: Final = 64
_HEADER_BYTES_MAX: Final = 8190
_HEAD_BYTES_ALL: Final = 32 << 20  # of heads that are not complete, over all connections
_KNOWN_MAX: Final = 64  # connections of one participant; each beyond them counts as a stranger's


class HttpConnection(web.RequestHandler):
    """A connection as aiohttp serves it, which reports that it came and went."""

    __slots__ = ("_lobby",)

    def __init__(self, lobby: "PreAuthLimiter", server: web.Server) -> None:
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
        self._lobby = lobby

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        stream = cast(asyncio.Transport, transport)  # uvloop's is none by its type
        if self._lobby.let_in(self, stream):
            super().connection_made(transport)
        else:
            stream.abort()

    def data_received(self, data: bytes) -> None:
        if self._lobby.take(self, len(data)):
            super().data_received(data)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._lobby.gone(self)
        super().connection_lost(exc)

    def hand_over(self) -> None:
        """The connection is another's from here on: let go of it, and of all that was needed for its request."""
        self.transport = None  # or it would be closed
        self.connection_lost(None)


class PreAuthLimiter:
    """Counts strangers: those on whose connection nobody has shown a token that we know.

    A stranger has `patience_s()` to send the head of a request, the first and any other: what was sent in time
    counts, though we were too busy to read it. Connections of which `is_proxy` says that others stand behind them
    are not counted by address, and wait between requests as they like.
    """

    def __init__(
        self,
        *,
        patience_s: Callable[[], float],
        is_proxy: Callable[[str], bool],
        strangers_max: int | None = None,
        per_address_max: int = _STRANGERS_PER_ADDRESS,
        known_max: int = _KNOWN_MAX,
        head_bytes_all: int = _HEAD_BYTES_ALL,
    ) -> None:
        self._patience_s = patience_s
        self._is_proxy = is_proxy
        self._strangers_max = _affordable() if strangers_max is None else strangers_max
        self._per_address_max = per_address_max
        self._known_max = known_max
        self._head_bytes_all = head_bytes_all
        self._loop = asyncio.get_running_loop()
        self._transports: dict[web.RequestHandler, asyncio.Transport] = {}
        self._strangers: dict[web.RequestHandler, str] = {}  # and where they come from; "" for a proxy
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

    def visitors(self, server: web.Server) -> Callable[[], HttpConnection]:
        """What makes a protocol for each connection that is accepted."""
        return lambda: HttpConnection(self, server)

    def let_in(self, visitor: web.RequestHandler, transport: asyncio.Transport) -> bool:
        """A connection was made; False if there are too many already, or all are cut off."""
        if self._is_over:
            return False  # accepted before the listener was closed, and made after it
        address = self._address(transport)
        if len(self._strangers) >= self._strangers_max:
            self._say_full("all")
            return False
        if address and self._by_address[address] >= self._per_address_max:
            self._say_full(address)
            return False
        self._transports[visitor] = transport
        self._strangers[visitor] = address
        self._by_address[address] += 1
        self._start_timer(visitor)
        return True

    def take(self, visitor: web.RequestHandler, size: int) -> bool:
        """Bytes came: whether to read them.

        Where too many wait for the end of their head, whoever sent most of them is cut off.
        """
        if visitor in self._serving or visitor not in self._transports:
            return True
        self._heads[visitor] = self._heads.get(visitor, 0) + size
        self._head_bytes += size
        while self._head_bytes > self._head_bytes_all:
            largest = max(self._heads, key=self._heads.__getitem__)
            self._forget_head(largest)
            self._transports[largest].abort()
        return visitor in self._heads

    def known(self, visitor: web.RequestHandler, holder: Hashable) -> None:
        """The holder of a token that is good is on this connection: it is no stranger's, unless they have many."""
        if visitor not in self._strangers or self._by_holder[holder] >= self._known_max:
            return
        self._forget_stranger(visitor)
        self._known[visitor] = holder
        self._by_holder[holder] += 1

    def gone(self, visitor: web.RequestHandler) -> None:
        """The connection is lost."""
        self._forget_stranger(visitor)
        self._forget_head(visitor)
        holder = self._known.pop(visitor, None)
        if holder is not None:
            self._by_holder[holder] -= 1
            if not self._by_holder[holder]:
                del self._by_holder[holder]
        self._transports.pop(visitor, None)

    @contextmanager
    def serving(self, visitor: web.RequestHandler) -> Iterator[None]:
        """The head of a request is there. What follows, up to the response, has deadlines of its own."""
        self._stop_timer(visitor)
        self._forget_head(visitor)
        self._serving.add(visitor)
        self._idle.clear()
        try:
            yield
        finally:
            self._serving.discard(visitor)
            if not self._serving:
                self._idle.set()
            if self._strangers.get(visitor):  # neither known, nor gone, nor a proxy
                self._start_timer(visitor)

    async def quiet(self) -> None:
        """Return when no request is being served."""
        await self._idle.wait()

    def abort_all(self) -> None:
        """Close every connection at once, and each that is still on its way in."""
        self._is_over = True
        for transport in tuple(self._transports.values()):
            transport.abort()

    def _forget_stranger(self, visitor: web.RequestHandler) -> None:
        address = self._strangers.pop(visitor, None)
        if address is not None:
            self._by_address[address] -= 1
            if not self._by_address[address]:
                del self._by_address[address]
        self._stop_timer(visitor)

    def _forget_head(self, visitor: web.RequestHandler) -> None:
        self._head_bytes -= self._heads.pop(visitor, 0)

    def _address(self, transport: asyncio.Transport) -> str:
        peer = transport.get_extra_info("peername")
        address = peer[0] if isinstance(peer, tuple) else ""
        return "" if self._is_proxy(address) else network_of(address)

    def _start_timer(self, visitor: web.RequestHandler) -> None:
        self._stop_timer(visitor)
        self._timers[visitor] = self._loop.call_later(self._patience_s(), self._overdue, visitor, _TURNS)

    def _overdue(self, visitor: web.RequestHandler, turns: int) -> None:
        """Cut it off, unless the head of its request turns out to lie here already."""
        if turns:
            self._timers[visitor] = self._loop.call_soon(self._overdue, visitor, turns - 1)
        else:
            del self._timers[visitor]
            self._transports[visitor].abort()

    def _stop_timer(self, visitor: web.RequestHandler) -> None:
        timer = self._timers.pop(visitor, None)
        if timer is not None:
            timer.cancel()

    def _say_full(self, address: str) -> None:
        now = self._loop.time()
        if now - self._said_at >= _QUIET_S:
            self._said_at = now
            _log.warning(
                "connections turned away: too many that have not said who they are",
                extra={"address": address},
            )


def _affordable() -> int:
    """At most half of the files this process may open: the other half is for those we know."""
    if sys.platform == "win32":
        return _STRANGERS_MAX
    import resource  # not to be had on Windows

    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _STRANGERS_MAX if files == resource.RLIM_INFINITY else min(_STRANGERS_MAX, files // 2)
