"""Iterations that are bounded, and hold back who sends rather than lose anything."""

import asyncio
import gc

import pytest

from mew.client.connection.feed import BYTES_HIGH, BYTES_MOST, HIGH, MOST, Feed, Pressure
from mew.client.errors import Disconnected, Lagged


@pytest.fixture
async def pressure() -> Pressure:
    return Pressure()


@pytest.fixture
def feed(pressure: Pressure) -> Feed[int]:
    return Feed(pressure)


async def test_what_is_offered_comes_out_in_order(feed: Feed[int]) -> None:
    for n in range(3):
        feed.offer(n)
    feed.close()
    assert [n async for n in feed] == [0, 1, 2]


async def test_who_waits_is_woken(feed: Feed[int]) -> None:
    async with asyncio.timeout(5):
        asyncio.get_running_loop().call_soon(feed.offer, 7)
        assert await anext(feed) == 7
        asyncio.get_running_loop().call_soon(feed.close)
        assert [n async for n in feed] == []


async def test_a_feed_that_ends_with_an_error_yields_what_it_has_first(feed: Feed[int]) -> None:
    feed.offer(1)
    feed.close(Disconnected(4503, "kicked"))
    assert await anext(feed) == 1
    with pytest.raises(Disconnected, match="kicked"):
        await anext(feed)


async def test_nothing_is_kept_after_it_was_closed(feed: Feed[int]) -> None:
    async with feed:
        feed.offer(1)
    feed.offer(2)
    assert [n async for n in feed] == [1]


async def test_a_full_feed_raises_the_pressure_until_half_is_taken(
    feed: Feed[int], pressure: Pressure
) -> None:
    for n in range(HIGH - 1):
        feed.offer(n)
    assert not pressure.high
    feed.offer(-1)
    assert pressure.high
    for _ in range(HIGH // 2):
        await anext(feed)
    assert not pressure.high


async def test_a_feed_that_is_closed_or_forgotten_presses_no_more(pressure: Pressure) -> None:
    closed: Feed[int] = Feed(pressure)
    forgotten: Feed[int] = Feed(pressure)
    for n in range(HIGH):
        closed.offer(n)
        forgotten.offer(n)
    closed.close()
    assert pressure.high
    del forgotten
    gc.collect()
    pressure.changed()
    await pressure.look_again()
    assert not pressure.high


async def test_past_its_bound_an_iteration_ends_and_says_so(feed: Feed[int], pressure: Pressure) -> None:
    for n in range(MOST + 1):
        feed.offer(n)
    assert len(feed) == 0
    assert not pressure.high
    with pytest.raises(Lagged):
        await anext(feed)


async def test_several_tasks_may_wait_for_the_same_feed(feed: Feed[int]) -> None:
    async def take() -> list[int]:
        return [n async for n in feed]

    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        workers = [tasks.create_task(take()) for _ in range(3)]
        await asyncio.sleep(0)
        feed.offer(1)
        feed.offer(2)
        await asyncio.sleep(0)
        feed.close()
    assert sorted(n for worker in workers for n in worker.result()) == [1, 2]


async def test_a_feed_is_full_in_bytes_too(feed: Feed[int], pressure: Pressure) -> None:
    feed.offer(1, BYTES_HIGH - 1)
    assert not pressure.high
    feed.offer(2, 1)
    assert pressure.high
    await anext(feed)
    assert not pressure.high
    feed.offer(3, BYTES_MOST)
    with pytest.raises(Lagged):
        await anext(feed)
