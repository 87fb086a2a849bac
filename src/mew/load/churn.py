"""Workloads of connections: many at once, many that stay idle, and one that joins and leaves."""

import asyncio
import time
from array import array
from collections.abc import Callable, Sequence
from itertools import cycle
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from .connections import (
    Counter,
    Listener,
    LoadFailed,
    Phase,
    Place,
    Seat,
    close_all,
    enter,
    first_of,
    seat_counters,
    some,
)
from .frames import CLOSING
from .measurement import Effort, Measured, Meter, Outcome, memory_bytes, quantiles_ms

__all__ = ["Idle", "Joins", "Storm", "run_idle", "run_joins", "run_storm"]


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


async def run_storm(asked: Storm, effort: Effort, tell: Callable[[], None] = lambda: None) -> Outcome:
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
            rounds.append(await _storm_round(asked, phase, effort))
            tell()
    finally:
        phase.complete()
        await close_all(staying)
    return Outcome(
        workload="storm", of="connections", about=f"{asked.at_once} at a time", rounds=tuple(rounds)
    )


async def _storm_round(asked: Storm, phase: Phase, effort: Effort) -> Measured:
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


_FIRST: Final = 100
_SETTLE_S: Final = 1.0


class Idle(Struct, frozen=True, tag="idle", kw_only=True):
    """A connection for each seat; some may be the same: only the first of a participant is shown to the others."""

    place: Place
    seats: tuple[Seat, ...]


async def run_idle(asked: Idle, effort: Effort, tell: Callable[[], None] = lambda: None) -> Outcome:
    """Connect, once some have come and gone: what is made for the first is not counted for each.

    Raises:
        LoadFailed: it cannot be seen, as the gateway is not on this machine; or one was not let in.
    """
    if effort.server_pid is None:
        raise LoadFailed("the memory of a gateway is seen on its own machine only, by its process id")
    phase = Phase()
    first, _ = await seat_counters(asked.place, asked.seats[:_FIRST], lambda: Counter(phase))
    await close_all(first)
    await asyncio.sleep(_SETTLE_S)
    before = memory_bytes(effort.server_pid)
    lines: list[Counter] = []
    meter = Meter(effort.server_pid)
    meter.start()
    try:
        lines, fewer = await seat_counters(asked.place, asked.seats, lambda: Counter(phase))
        measured = meter.stop(len(lines), len(lines))
        await asyncio.sleep(_SETTLE_S)
        after = memory_bytes(effort.server_pid)
        lost = sum(line.transport is None for line in lines)
        tell()
    finally:
        meter.give_up()
        await close_all(lines)
    if before is None or after is None:
        raise LoadFailed(f"the memory of process {effort.server_pid} cannot be read")
    if lost:
        raise LoadFailed(f"{lost} of {len(lines)} connections did not last")
    about = some(len(lines), "connection") + ("" if fewer is None else f" ({fewer})")
    about += "; what the gateway had free before is not counted: measure one that has just been started"
    grown = replace(measured, server_grew_bytes=after - before)
    return Outcome(workload="idle", of="connections", about=about, rounds=(grown,))


_QUIET_S: Final = 0.02
_QUIET_MOST_S: Final = 10.0


class Joins(Struct, frozen=True, tag="joins", kw_only=True):
    """The newcomer joins and leaves so many times in a round; everyone there is shown that."""

    place: Place
    newcomer: Seat
    members: tuple[Seat, ...] = ()
    times: int = 20


async def run_joins(asked: Joins, effort: Effort, tell: Callable[[], None] = lambda: None) -> Outcome:
    """Join one at a time, in rounds.

    Raises:
        LoadFailed: one was not let in, or the members were not all shown the same.
    """
    phase = Phase()
    members: list[Counter] = []
    try:
        members, fewer = await seat_counters(asked.place, asked.members, lambda: Counter(phase))
        await _quiet(members)
        there = await _join(asked, phase)
        await _quiet(members)
        rounds = []
        for _ in range(effort.rounds):
            rounds.append(await _joins_round(asked, phase, members, effort))
            tell()
    finally:
        phase.complete()
        await close_all(members)
    about = f"into a space of {some(there[1], 'member')}" + ("" if fewer is None else f" ({fewer})")
    return Outcome(workload="joins", of="joins", about=about, rounds=tuple(rounds))


async def _joins_round(asked: Joins, phase: Phase, members: Sequence[Counter], effort: Effort) -> Measured:
    taken = array("d")
    for member in members:
        member.received = 0
        member.stay()
    meter = Meter(effort.server_pid)
    meter.start()
    try:
        for _ in range(asked.times):
            taken.append((await _join(asked, phase))[0])
            await _quiet(members)
        measured = meter.stop(asked.times, 2 * asked.times * len(members) + asked.times)
    finally:
        meter.give_up()
    shown = {member.received for member in members}
    if len(shown) > 1:
        raise LoadFailed(f"the members were shown {min(shown):,} to {max(shown):,} bytes of the same joins")
    p50, p99 = quantiles_ms(taken)
    return replace(measured, latency_ms_p50=p50, latency_ms_p99=p99)


async def _join(asked: Joins, phase: Phase) -> tuple[float, int]:
    """How long it took, and how many were there."""
    line = Counter(phase)
    began_s = time.perf_counter()
    welcome = await enter(asked.place, asked.newcomer, line)
    took_s = time.perf_counter() - began_s
    await close_all([line])
    return took_s, len(welcome.get("participants", ()))


async def _quiet(members: Sequence[Counter]) -> None:
    """Until all have been shown who came and went."""
    seen, until_s = -1, time.perf_counter() + _QUIET_MOST_S
    while seen != (now := sum(member.received for member in members)) and time.perf_counter() < until_s:
        seen = now
        await asyncio.sleep(_QUIET_S)
