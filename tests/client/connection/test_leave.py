"""Leaving a space: whatever happens meanwhile, nothing stays behind."""

import asyncio

import pytest

from mew.client.connection.connection import ClientConnection
from mew.client.connection.transport import Transport, TransportLink
from mew.protocol.envelope import EnvelopeId
from mew.testing import Space


class Slow:
    """A transport whose links take their time to say goodbye."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.leaving = asyncio.Event()
        self.closed = False
        self.page = transport.page

    async def open(self, after: EnvelopeId | None) -> TransportLink:
        link = await self._transport.open(after)

        async def close() -> None:
            self.leaving.set()
            await asyncio.Event().wait()

        link.close = close  # type: ignore[method-assign]  # one that hangs
        return link

    async def close(self) -> None:
        self.closed = True
        await self._transport.close()


async def test_who_is_cancelled_while_it_says_goodbye_leaves_nothing_behind() -> None:
    async with asyncio.timeout(5), Space({"ann": ["*"]}) as space:
        transport = Slow(space.connection("ann").transport)
        beside: list[asyncio.Task[None]] = []

        async def visit() -> None:
            async with ClientConnection(transport) as connection:
                beside.append(connection.spawn(asyncio.Event().wait()))

        visiting = asyncio.ensure_future(visit())
        await transport.leaving.wait()
        visiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await visiting
        assert transport.closed
        assert beside[0].done()
