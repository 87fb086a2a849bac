"""Many who say nothing: how much memory the gateway keeps for each connection."""

import asyncio
from collections.abc import Callable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from .lines import Counter, Phase
from .machine import memory_bytes
from .measuring import Effort, Meter, Outcome
from .opening import close_all
from .place import Place, Seat
from .problems import LoadFailed
from .seating import seat_counters, some

__all__ = ["Idle", "run"]

_FIRST: Final = 100
_SETTLE_S: Final = 1.0


class Idle(Struct, frozen=True, tag="idle", kw_only=True):
    """A connection for each seat; some may be the same: only the first of a participant is shown to the others."""

    place: Place
    seats: tuple[Seat, ...]


async def run(asked: Idle, effort: Effort, tell: Callable[[], None] = lambda: None) -> Outcome:
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
