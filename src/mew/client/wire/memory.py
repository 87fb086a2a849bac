"""The transport within a process: no sockets, and yet everything a connection can do, its end included."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from mew.protocol.envelope import EnvelopeId

from .transport import LinkClosed, PastPage

__all__ = ["Enter", "LookBack", "MemoryLink", "MemoryTransport", "Peer"]


class Peer(Protocol):
    """The other end of a link."""

    def receive(self, message: bytes, *, text: bool) -> None: ...

    def left(self) -> None:
        """The client has gone."""


class MemoryLink:
    """One connection: what the peer delivers waits here until it is received."""

    knows_ids = True

    def __init__(self) -> None:
        self.peer: Peer | None = None
        self.waiting_bytes = 0
        """What was delivered and not received yet."""
        self._messages: deque[bytes] = deque()
        self._closed: LinkClosed | None = None
        self._waiter: asyncio.Future[None] | None = None

    # For the client.

    async def receive(self) -> bytes:
        while not self._messages:
            if self._closed is not None:
                raise self._closed
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        message = self._messages.popleft()
        self.waiting_bytes -= len(message)
        return message

    async def send(self, message: bytes, *, text: bool = True) -> None:
        if self._closed is not None or self.peer is None:
            raise LinkClosed(1006, "the link is closed")
        self.peer.receive(message, text=text)
        await asyncio.sleep(0)

    async def close(self) -> None:
        if self._closed is None:
            self.end(1000, "closed here")

    # For the peer, and for who wants to see what happens when a connection is lost.

    def deliver(self, message: bytes) -> None:
        if self._closed is None:
            self._messages.append(message)
            self.waiting_bytes += len(message)
            self._wake()

    def end(self, code: int, reason: str = "") -> None:
        """What was delivered is still received."""
        if self._closed is None:
            self._closed = LinkClosed(code, reason, come_back=not 4500 <= code < 5000)
            self._wake()
            if self.peer is not None:
                self.peer.left()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


Enter = Callable[[MemoryLink, EnvelopeId | None], Awaitable[None]]
LookBack = Callable[[Mapping[str, str]], PastPage]
"""Answers what was shown, and raises ConnectError where it does not."""


class MemoryTransport:
    """Links that `enter` puts a peer at the other end of; it raises ConnectError where it does not."""

    def __init__(self, enter: Enter, look_back: LookBack) -> None:
        self._enter = enter
        self._look_back = look_back
        self.link: MemoryLink | None = None
        """The one that was opened last."""

    async def open(self, after: EnvelopeId | None) -> MemoryLink:
        self.link = MemoryLink()
        await self._enter(self.link, after)
        return self.link

    async def page(self, query: Mapping[str, str], space: str = "") -> PastPage:
        return self._look_back(query)

    async def close(self) -> None:
        """Nothing is shared."""
