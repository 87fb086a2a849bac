"""One talks, all hear: the deliveries of a space, pipelined, and the latency of one envelope at a time."""

from collections.abc import Callable

from msgspec import Struct

from .lines import Counter, Phase, Talker
from .measuring import Effort, Outcome
from .opening import close_all, enter
from .place import Place, Seat
from .seating import fresh_run, seat_counters, some
from .templates import SLOT, chat, numbered
from .traffic import Group, Traffic, measured_rounds

__all__ = ["FanOut", "run"]


class FanOut(Struct, frozen=True, tag="fan-out", kw_only=True):
    """The sender is one of those who hear. `past`: so many envelopes are sent before anything is measured."""

    place: Place
    sender: Seat
    receivers: tuple[Seat, ...]
    envelope_bytes: int = 300
    window: int = 64
    past: int = 0


async def run(asked: FanOut, effort: Effort, tell: Callable[[], None] = lambda: None) -> Outcome:
    """Deliver as fast as can be, in rounds.

    Raises:
        LoadFailed: somebody did not get exactly what was due, or the gateway says no.
    """
    phase, name = Phase(), fresh_run()
    template = chat(f"{name}-t-{SLOT}", asked.sender.who, size=asked.envelope_bytes)
    talker = Talker(phase, numbered([template]), run=name, tag="t", window=asked.window)
    counters: list[Counter] = []
    try:
        await enter(asked.place, asked.sender, talker)
        counters, fewer = await seat_counters(asked.place, asked.receivers, lambda: Counter(phase))
        traffic = Traffic(phase, [Group([talker], counters)], patience_s=effort.patience_s)
        if asked.past:
            await traffic.prepare()
            await traffic.flow(asked.past)
            await traffic.verify()
        rounds = await measured_rounds(traffic, effort, latency=True, tell=tell)
    finally:
        phase.complete()
        await close_all([talker, *counters])
    receivers = some(len(counters) + 1, "receiver") + ("" if fewer is None else f" ({fewer})")
    about = f"{receivers}, {template.payload_bytes} bytes, {effort.in_flight(asked.window)}"
    return Outcome(workload="fan-out", of="envelopes", about=about, rounds=rounds)
