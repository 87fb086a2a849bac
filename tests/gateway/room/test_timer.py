"""The timer of a space: the earliest moment counts."""

import asyncio
from datetime import UTC, datetime, timedelta

from mew.gateway.room.timer import Timer

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Clock:
    """A timer whose clock stands still, and what it did."""

    def __init__(self) -> None:
        self.times = 0
        self.first = asyncio.Event()
        self.timer = Timer(lambda: NOW, self._go_off)

    def _go_off(self) -> None:
        self.times += 1
        self.first.set()

    async def goes_off(self) -> None:
        self.first.clear()
        async with asyncio.timeout(20):
            await self.first.wait()


async def test_it_goes_off_at_the_earliest_moment_and_once() -> None:
    clock = Clock()
    for wait in (timedelta(hours=1), timedelta(milliseconds=1), timedelta(hours=2)):
        clock.timer.set(NOW + wait)
    await clock.goes_off()
    assert clock.times == 1
    clock.timer.set(NOW - timedelta(hours=1))  # was due: at once
    await clock.goes_off()
    assert clock.times == 2


async def test_one_that_is_cancelled_does_not_go_off_and_can_be_set_again() -> None:
    clock = Clock()
    clock.timer.set(NOW)
    clock.timer.cancel()
    clock.timer.cancel()
    await asyncio.sleep(0)
    assert clock.times == 0
    clock.timer.set(NOW)
    await clock.goes_off()
    assert clock.times == 1
