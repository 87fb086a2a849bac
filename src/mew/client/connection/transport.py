"""The transport port, pagination of the history over it, and the transport within a process."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, Protocol

from msgspec import Raw, Struct

from mew.client.errors import ConnectError
from mew.protocol.envelope import EnvelopeId

__all__ = [
    "Enter",
    "LinkClosed",
    "LookBack",
    "MemoryLink",
    "MemoryTransport",
    "PastPage",
    "Peer",
    "Transport",
    "TransportLink",
    "Walk",
    "recall",
]


class LinkClosed(Exception):
    """This connection has ended. `come_back`: another may be made."""

    def __init__(self, code: int, reason: str = "", *, come_back: bool = True) -> None:
        super().__init__(f"closed ({code}): {reason}")
        self.code = code
        self.reason = reason
        self.come_back = come_back


class TransportLink(Protocol):
    """One connection. What it receives, it receives in order, and only when asked: so it holds the gateway back."""

    knows_ids: bool
    """Whether the gateway refuses an id that it has accepted before, so that sending again is safe."""

    async def receive(self) -> bytes:
        """The next message: an envelope, or a stream frame.

        Raises:
            LinkClosed: no more will come.
        """

    async def send(self, message: bytes, *, text: bool = True) -> None:
        """Hand over a message; return when there is room for the next. Those handed over keep their order.

        Raises:
            LinkClosed: it may or may not have arrived.
        """

    async def close(self) -> None:
        """Say goodbye and close, in bounded time."""


class PastPage(Struct, frozen=True):
    """Envelopes that were shown, and where to go on, if there may be more. Not `complete`: some may be gone."""

    envelopes: list[Raw] = []
    next: str | None = None
    complete: bool = False


class Transport(Protocol):
    """Makes connections of one participant to one space."""

    async def open(self, after: EnvelopeId | None) -> TransportLink:
        """Connect, and ask for what came after this envelope.

        Raises:
            ConnectError: no connection; it says whether another attempt may do better.
        """

    async def page(self, query: Mapping[str, str], space: str = "") -> PastPage:
        """A page of what was shown, as `GET /spaces/{space}/envelopes` has it; it waits where the gateway is busy.

        Without `space`, of the one that this is for.

        Raises:
            ConnectError: the gateway cannot be reached, or, with a status, does not tell.
        """

    async def close(self) -> None:
        """Let go of what its connections shared."""


_PAGE_ENVELOPES: Final = 500


class Walk:
    """One way through the past, in the order asked for. After an error it can go on where it was."""

    def __init__(
        self, transport: Transport, query: Mapping[str, str], *, limit: int | None = None, space: str = ""
    ) -> None:
        """`query` as in `GET /spaces/{space}/envelopes`, `limit` of all pages together."""
        self._transport = transport
        self._query = dict(query)
        self._left = limit
        self._space = space
        self.complete = True
        """Whether the gateway still had all that may have been asked for, as far as this came."""
        self.over = False

    async def page(self) -> Sequence[Raw]:
        """The next envelopes; there may be none on a page, until it is over.

        Raises:
            ConnectError: the gateway cannot be reached, or does not tell.
        """
        at_most = _PAGE_ENVELOPES if self._left is None else min(self._left, _PAGE_ENVELOPES)
        page = await self._transport.page({**self._query, "limit": str(at_most)}, self._space)
        envelopes = page.envelopes if self._left is None else page.envelopes[: self._left]
        if self._left is not None:
            self._left -= len(envelopes)
        self.complete = self.complete and page.complete
        where = "before" if self._query.get("order") == "desc" else "after"
        stands = page.next is not None and page.next == self._query.get(where)
        self.complete = self.complete and not stands
        self.over = page.next is None or stands or self._left == 0
        if page.next is not None:
            self._query[where] = page.next
        return envelopes


async def recall(transport: Transport, limit: int) -> list[Raw]:
    """The last envelopes of the space, oldest first; none where the gateway does not tell.

    Raises:
        ConnectError: the gateway cannot be reached.
    """
    walk = Walk(transport, {"order": "desc"}, limit=limit)
    newest_first: list[Raw] = []
    try:
        while not walk.over:
            newest_first += await walk.page()
    except ConnectError as error:
        if error.status is None:
            raise
        # another make of gateway, or one that will say at the door what is wrong
    return newest_first[::-1]


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
