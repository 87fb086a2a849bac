"""Many come at once: connections per second, each counted when it has been welcomed, and then it leaves."""

import asyncio
import time
from array import array
from collections.abc import Callable
from itertools import cycle
from typing import Final

from msgspec import Struct

from .frames import CLOSING
from .lines import Counter, Listener, Phase
from .measuring import Effort, Measured, Meter, Outcome
from .opening import close_all, enter, first_of
from .place import Place, Seat

__all__ = ["Storm", "run"]

_GONE_S: Final = 5.0


class Storm(Struct, frozen=True, tag="storm", kw_only=True):
    """Those who come are there already, on another connection: nobody else is shown that they come and go."""

    place: Place
    seats: tuple[Seat, ...]
    at_once: int = 16


class _Visitor(Listener):
    """One connection that comes and goes."""

    async def leave(self) -> None:
        self.say(CLOSING)
        try:
            async with asyncio.timeout(_GONE_S):
                await self.gone.wait()
        except TimeoutError:
            if self.transport is not None:
                self.transport.abort()


async def run(asked: Storm, effort: Effort, tell: Callable[[], None] = lambda: None) -> Outcome:
    """Come and go for as long as a round lasts, some at a time.

    Raises:
        LoadFailed: one was not let in.
    """
    phase = Phase()
    staying = [Counter(phase) for _ in asked.seats]
    try:
        for seat, line in zip(asked.seats, staying, strict=True):
            await enter(asked.place, seat, line)
        await _come_and_go(asked, phase, effort.warm_up_s)
        rounds = []
        for _ in range(effort.rounds):
            for line in staying:
                line.stay()
            rounds.append(await _round(asked, phase, effort))
            tell()
    finally:
        phase.complete()
        await close_all(staying)
    return Outcome(
        workload="storm", of="connections", about=f"{asked.at_once} at a time", rounds=tuple(rounds)
    )


async def _round(asked: Storm, phase: Phase, effort: Effort) -> Measured:
    meter = Meter(effort.server_pid)
    meter.start()
    try:
        took_s = await _come_and_go(asked, phase, effort.round_s)
        return meter.stop(len(took_s), len(took_s), latencies_s=took_s)
    finally:
        meter.give_up()


async def _come_and_go(asked: Storm, phase: Phase, lasting_s: float) -> "array[float]":
    """How long each waited for its welcome."""
    taken = array("d")
    until_s = time.perf_counter() + lasting_s
    seats = cycle(asked.seats)

    async def one_after_the_other() -> None:
        while True:
            began_s, visitor = time.perf_counter(), _Visitor(phase)
            await enter(asked.place, next(seats), visitor)
            taken.append(time.perf_counter() - began_s)
            await visitor.leave()
            if time.perf_counter() >= until_s:
                return

    try:
        async with asyncio.TaskGroup() as storm:
            for _ in range(asked.at_once):
                storm.create_task(one_after_the_other())
    except ExceptionGroup as failed:
        raise first_of(failed) from None
    return taken
