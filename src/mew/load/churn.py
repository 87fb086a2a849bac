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
    CountingConnection,
    Credentials,
    GatewayAddress,
    LoadFailed,
    LoadPhase,
    ReadingConnection,
    close_all,
    enter,
    first_of,
    seat_counters,
    some,
)
from .frames import CLOSING
from .measurement import LoadResult, MeasuredRound, MeasurementPlan, Meter, memory_bytes, quantiles_ms

__all__ = ["IdleLoad", "JoinLoad", "StormLoad", "run_idle", "run_joins", "run_storm"]


_GONE_S: Final = 5.0


class StormLoad(Struct, frozen=True, tag="storm", kw_only=True):
    """Those who come are there already, on another connection: nobody else is shown that they come and go."""

    address: GatewayAddress
    seats: tuple[Credentials, ...]
    at_once: int = 16


class _Visitor(ReadingConnection):
    """One connection that comes and goes."""

    async def leave(self) -> None:
        self.say(CLOSING)
        try:
            async with asyncio.timeout(_GONE_S):
                await self.gone.wait()
        except TimeoutError:
            if self.transport is not None:
                self.transport.abort()


async def run_storm(
    asked: StormLoad, plan: MeasurementPlan, tell: Callable[[], None] = lambda: None
) -> LoadResult:
    """Come and go for as long as a round lasts, some at a time.

    Raises:
        LoadFailed: one was not let in.
    """
    phase = LoadPhase()
    staying = [CountingConnection(phase) for _ in asked.seats]
    try:
        for credentials, line in zip(asked.seats, staying, strict=True):
            await enter(asked.address, credentials, line)
        await _come_and_go(asked, phase, plan.warm_up_s)
        rounds = []
        for _ in range(plan.rounds):
            for line in staying:
                line.stay()
            rounds.append(await _storm_round(asked, phase, plan))
            tell()
    finally:
        phase.complete()
        await close_all(staying)
    return LoadResult(
        workload="storm", of="connections", about=f"{asked.at_once} at a time", rounds=tuple(rounds)
    )


async def _storm_round(asked: StormLoad, phase: LoadPhase, plan: MeasurementPlan) -> MeasuredRound:
    meter = Meter(plan.server_pid)
    meter.start()
    try:
        took_s = await _come_and_go(asked, phase, plan.round_s)
        return meter.stop(len(took_s), len(took_s), latencies_s=took_s)
    finally:
        meter.give_up()


async def _come_and_go(asked: StormLoad, phase: LoadPhase, lasting_s: float) -> "array[float]":
    """How long each waited for its welcome."""
    taken = array("d")
    until_s = time.perf_counter() + lasting_s
    seats = cycle(asked.seats)

    async def one_after_the_other() -> None:
        while True:
            began_s, visitor = time.perf_counter(), _Visitor(phase)
            await enter(asked.address, next(seats), visitor)
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


class IdleLoad(Struct, frozen=True, tag="idle", kw_only=True):
    """A connection for each seat; some may be the same: only the first of a participant is shown to the others."""

    address: GatewayAddress
    seats: tuple[Credentials, ...]


async def run_idle(
    asked: IdleLoad, plan: MeasurementPlan, tell: Callable[[], None] = lambda: None
) -> LoadResult:
    """Connect, once some have come and gone: what is made for the first is not counted for each.

    Raises:
        LoadFailed: it cannot be seen, as the gateway is not on this machine; or one was not let in.
    """
    if plan.server_pid is None:
        raise LoadFailed("the memory of a gateway is seen on its own machine only, by its process id")
    phase = LoadPhase()
    first, _ = await seat_counters(asked.address, asked.seats[:_FIRST], lambda: CountingConnection(phase))
    await close_all(first)
    await asyncio.sleep(_SETTLE_S)
    before = memory_bytes(plan.server_pid)
    lines: list[CountingConnection] = []
    meter = Meter(plan.server_pid)
    meter.start()
    try:
        lines, fewer = await seat_counters(asked.address, asked.seats, lambda: CountingConnection(phase))
        measured = meter.stop(len(lines), len(lines))
        await asyncio.sleep(_SETTLE_S)
        after = memory_bytes(plan.server_pid)
        lost = sum(line.transport is None for line in lines)
        tell()
    finally:
        meter.give_up()
        await close_all(lines)
    if before is None or after is None:
        raise LoadFailed(f"the memory of process {plan.server_pid} cannot be read")
    if lost:
        raise LoadFailed(f"{lost} of {len(lines)} connections did not last")
    about = some(len(lines), "connection") + ("" if fewer is None else f" ({fewer})")
    about += "; what the gateway had free before is not counted: measure one that has just been started"
    grown = replace(measured, server_grew_bytes=after - before)
    return LoadResult(workload="idle", of="connections", about=about, rounds=(grown,))


_QUIET_S: Final = 0.02
_QUIET_MOST_S: Final = 10.0


class JoinLoad(Struct, frozen=True, tag="joins", kw_only=True):
    """The newcomer joins and leaves so many times in a round; everyone there is shown that."""

    address: GatewayAddress
    newcomer: Credentials
    members: tuple[Credentials, ...] = ()
    times: int = 20


async def run_joins(
    asked: JoinLoad, plan: MeasurementPlan, tell: Callable[[], None] = lambda: None
) -> LoadResult:
    """Join one at a time, in rounds.

    Raises:
        LoadFailed: one was not let in, or the members were not all shown the same.
    """
    phase = LoadPhase()
    members: list[CountingConnection] = []
    try:
        members, fewer = await seat_counters(asked.address, asked.members, lambda: CountingConnection(phase))
        await _quiet(members)
        there = await _join(asked, phase)
        await _quiet(members)
        rounds = []
        for _ in range(plan.rounds):
            rounds.append(await _joins_round(asked, phase, members, plan))
            tell()
    finally:
        phase.complete()
        await close_all(members)
    about = f"into a space of {some(there[1], 'member')}" + ("" if fewer is None else f" ({fewer})")
    return LoadResult(workload="joins", of="joins", about=about, rounds=tuple(rounds))


async def _joins_round(
    asked: JoinLoad, phase: LoadPhase, members: Sequence[CountingConnection], plan: MeasurementPlan
) -> MeasuredRound:
    taken = array("d")
    for member in members:
        member.received = 0
        member.stay()
    meter = Meter(plan.server_pid)
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


async def _join(asked: JoinLoad, phase: LoadPhase) -> tuple[float, int]:
    """How long it took, and how many were there."""
    line = CountingConnection(phase)
    began_s = time.perf_counter()
    welcome = await enter(asked.address, asked.newcomer, line)
    took_s = time.perf_counter() - began_s
    await close_all([line])
    return took_s, len(welcome.get("participants", ()))


async def _quiet(members: Sequence[CountingConnection]) -> None:
    """Until all have been shown who came and went."""
    seen, until_s = -1, time.perf_counter() + _QUIET_MOST_S
    while seen != (now := sum(member.received for member in members)) and time.perf_counter() < until_s:
        seen = now
        await asyncio.sleep(_QUIET_S)
