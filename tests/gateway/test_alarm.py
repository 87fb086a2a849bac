"""The timer of a space: the earliest moment counts."""

import asyncio
from datetime import UTC, datetime, timedelta

from mew.gateway.alarm import Alarm

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Rung:
    """An alarm whose clock stands still, and what it did."""

    def __init__(self) -> None:
        self.times = 0
        self.first = asyncio.Event()
        self.alarm = Alarm(lambda: NOW, self._ring)

    def _ring(self) -> None:
        self.times += 1
        self.first.set()

    async def rings(self) -> None:
        self.first.clear()
        async with asyncio.timeout(20):
            await self.first.wait()


async def test_it_rings_at_the_earliest_moment_and_once() -> None:
    rung = Rung()
    for wait in (timedelta(hours=1), timedelta(milliseconds=1), timedelta(hours=2)):
        rung.alarm.set(NOW + wait)
    await rung.rings()
    assert rung.times == 1
    rung.alarm.set(NOW - timedelta(hours=1))  # was due: at once
    await rung.rings()
    assert rung.times == 2


async def test_one_that_is_cancelled_does_not_ring_and_can_be_set_again() -> None:
    rung = Rung()
    rung.alarm.set(NOW)
    rung.alarm.cancel()
    rung.alarm.cancel()
    await asyncio.sleep(0)
    assert rung.times == 0
    rung.alarm.set(NOW)
    await rung.rings()
    assert rung.times == 1
