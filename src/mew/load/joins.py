"""Somebody joins a space that has many members: how long until the welcome, which names them all."""

import asyncio
import time
from array import array
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from .lines import Counter, Phase
from .measuring import Effort, Measured, Meter, Outcome, quantiles_ms
from .opening import close_all, enter
from .place import Place, Seat
from .problems import LoadFailed
from .seating import seat_counters, some

__all__ = ["Joins", "run"]

_QUIET_S: Final = 0.02
_QUIET_MOST_S: Final = 10.0


class Joins(Struct, frozen=True, tag="joins", kw_only=True):
    """The newcomer joins and leaves so many times in a round; everyone there is shown that."""

    place: Place
    newcomer: Seat
    members: tuple[Seat, ...] = ()
    times: int = 20


async def run(asked: Joins, effort: Effort, tell: Callable[[], None] = lambda: None) -> Outcome:
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
            rounds.append(await _round(asked, phase, members, effort))
            tell()
    finally:
        phase.complete()
        await close_all(members)
    about = f"into a space of {some(there[1], 'member')}" + ("" if fewer is None else f" ({fewer})")
    return Outcome(workload="joins", of="joins", about=about, rounds=tuple(rounds))


async def _round(asked: Joins, phase: Phase, members: Sequence[Counter], effort: Effort) -> Measured:
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
