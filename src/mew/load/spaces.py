"""Many spaces of a few, in which everybody talks: reading counts as much as writing."""

from collections.abc import Callable

from msgspec import Struct

from .lines import Phase, Talker
from .measuring import Effort, Outcome
from .opening import enter_all
from .place import Place, Seat
from .seating import fresh_run, some
from .templates import SLOT, chat, numbered
from .traffic import Group, Traffic, measured_rounds

__all__ = ["Spaces", "run"]


class Spaces(Struct, frozen=True, tag="spaces", kw_only=True):
    """The same members in each space, each with a window of its own."""

    places: tuple[Place, ...]
    members: tuple[Seat, ...]
    envelope_bytes: int = 300
    window: int = 1


async def run(asked: Spaces, effort: Effort, tell: Callable[[], None] = lambda: None) -> Outcome:
    """Everybody talks at once, in rounds.

    Raises:
        LoadFailed: somebody did not get exactly what was due, or the gateway says no.
    """
    phase, name = Phase(), fresh_run()
    groups = [Group([_talker(asked, phase, name, seat) for seat in asked.members]) for _ in asked.places]
    traffic = Traffic(phase, groups, patience_s=effort.patience_s)
    try:
        for place, group in zip(asked.places, groups, strict=True):
            await enter_all(place, zip(asked.members, group.talkers, strict=True))
        rounds = await measured_rounds(traffic, effort, tell=tell)
    finally:
        await traffic.close()
    about = f"{some(len(groups), 'space')} of {len(asked.members)}, all talk, each {effort.in_flight(asked.window)}"
    return Outcome(workload="spaces", of="envelopes", about=about, rounds=rounds)


def _talker(asked: Spaces, phase: Phase, name: str, seat: Seat) -> Talker:
    template = chat(f"{name}-{seat.who}-{SLOT}", seat.who, size=asked.envelope_bytes)
    return Talker(phase, numbered([template]), run=name, tag=seat.who, window=asked.window)
