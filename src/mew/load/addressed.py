"""Pairs that talk to each other: envelopes with `to`, as most are that programs send."""

from collections.abc import Callable

from msgspec import Struct

from .lines import Counter, Phase, Talker
from .measuring import Effort, Outcome
from .opening import close_all, enter_all
from .place import Place, Seat
from .seating import fresh_run, seat_counters, some
from .templates import SLOT, chat, numbered
from .traffic import Group, Traffic, measured_rounds

__all__ = ["Addressed", "run"]


class Addressed(Struct, frozen=True, tag="addressed", kw_only=True):
    """`everyone`: the space shows what is addressed to all of its members, as it does unless configured otherwise.

    Bystanders are there and say nothing.
    """

    place: Place
    pairs: tuple[tuple[Seat, Seat], ...]
    everyone: bool = True
    bystanders: tuple[Seat, ...] = ()
    envelope_bytes: int = 300
    window: int = 8


async def run(asked: Addressed, effort: Effort, tell: Callable[[], None] = lambda: None) -> Outcome:
    """The first of each pair talks to the second, in rounds.

    Raises:
        LoadFailed: somebody did not get exactly what was due, or the gateway says no.
    """
    phase, name = Phase(), fresh_run()
    talkers = [_talker(asked, phase, name, pair) for pair in asked.pairs]
    partners = [Counter(phase) for _ in asked.pairs]
    bystanders: list[Counter] = []
    if asked.everyone:
        groups = [Group(talkers, partners)]
    else:
        groups = [Group([one], [other]) for one, other in zip(talkers, partners, strict=True)]
    try:
        bystanders, _ = await seat_counters(asked.place, asked.bystanders, lambda: Counter(phase))
        await enter_all(asked.place, zip((one for one, _ in asked.pairs), talkers, strict=True))
        await enter_all(asked.place, zip((other for _, other in asked.pairs), partners, strict=True))
        if asked.everyone:
            groups[0].counters += bystanders
        traffic = Traffic(phase, groups, patience_s=effort.patience_s)
        rounds = await measured_rounds(traffic, effort, latency=True, tell=tell)
    finally:
        phase.complete()
        await close_all([*talkers, *partners, *bystanders])
    shown = "all see it" if asked.everyone else f"only they see it, {len(bystanders)} others are there"
    about = f"{some(len(asked.pairs), 'pair')}, {shown}, each {effort.in_flight(asked.window)}"
    return Outcome(workload="addressed", of="envelopes", about=about, rounds=rounds)


def _talker(asked: Addressed, phase: Phase, name: str, pair: tuple[Seat, Seat]) -> Talker:
    one, other = pair
    template = chat(f"{name}-{one.who}-{SLOT}", one.who, to=[other.who], size=asked.envelope_bytes)
    return Talker(phase, numbered([template]), run=name, tag=one.who, window=asked.window)
