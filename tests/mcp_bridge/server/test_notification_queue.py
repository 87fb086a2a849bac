"""What waits to be told: in order, thinned out under one key, and at a pace."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from mew.client.errors import MewError
from mew.mcp_bridge.server.notifications import NotificationQueue


class Told:
    def __init__(self) -> None:
        self.all: list[str] = []

    async def tell(self, what: str) -> None:
        self.all.append(what)


@asynccontextmanager
async def running(relay: NotificationQueue) -> AsyncIterator[None]:
    task = asyncio.ensure_future(relay.run())
    async with asyncio.timeout(5):
        yield
    task.cancel()


async def test_what_is_put_is_told_in_order() -> None:
    relay, told = NotificationQueue(), Told()
    for n in range(5):
        relay.put(n % 2, partial(told.tell, str(n)), most=9)
    async with running(relay):
        await relay.flush(0, 1)
    assert told.all == ["0", "1", "2", "3", "4"]


async def test_of_too_many_under_a_key_the_first_and_the_newest_are_told() -> None:
    relay, told = NotificationQueue(), Told()
    for n in range(100):
        relay.put("k", partial(told.tell, str(n)), most=3)
    async with running(relay):
        await relay.flush("k", 1)
    assert told.all == ["0", "1", "99"]


async def test_one_that_cannot_be_told_does_not_hold_up_the_others() -> None:
    relay, told = NotificationQueue(), Told()

    async def fail() -> None:
        raise MewError("no")

    relay.put("a", fail)
    relay.put("b", partial(told.tell, "b"))
    async with running(relay):
        await relay.flush("b", 1)
    assert told.all == ["b"]


async def test_there_is_an_end_to_what_waits() -> None:
    relay, told = NotificationQueue(), Told()
    for n in range(5_000):
        relay.put(n, partial(told.tell, str(n)))
    async with asyncio.timeout(1):
        await relay.flush(4_999, 60)  # it is not among them


async def test_a_flush_of_nothing_is_at_once() -> None:
    await NotificationQueue().flush("nothing", 60)
