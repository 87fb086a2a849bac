"""Workloads of envelopes, and all workloads by the type of what each is told."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from .churn import Idle, Joins, Storm, run_idle, run_joins, run_storm
from .connections import (
    Counter,
    Phase,
    Place,
    Seat,
    Talker,
    close_all,
    enter,
    enter_all,
    fresh_run,
    seat_counters,
    some,
)
from .exchanges import Injection, Proposals, Streams, run_injection, run_proposals, run_streams
from .frames import FILLING, SLOT, Template, chat, envelope, numbered
from .measurement import Effort, Measured, Outcome
from .traffic import Group, Traffic, measured_rounds

__all__ = [
    "Addressed",
    "Checks",
    "FanOut",
    "Spaces",
    "Workload",
    "capabilities",
    "run",
    "run_addressed",
    "run_checks",
    "run_fan_out",
    "run_spaces",
]


class FanOut(Struct, frozen=True, tag="fan-out", kw_only=True):
    """The sender is one of those who hear. `past`: so many envelopes are sent before anything is measured."""

    place: Place
    sender: Seat
    receivers: tuple[Seat, ...]
    envelope_bytes: int = 300
    window: int = 64
    past: int = 0


async def run_fan_out(asked: FanOut, effort: Effort, tell: Callable[[], None] = lambda: None) -> Outcome:
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


class Spaces(Struct, frozen=True, tag="spaces", kw_only=True):
    """The same members in each space, each with a window of its own."""

    places: tuple[Place, ...]
    members: tuple[Seat, ...]
    envelope_bytes: int = 300
    window: int = 1


async def run_spaces(asked: Spaces, effort: Effort, tell: Callable[[], None] = lambda: None) -> Outcome:
    """Everybody talks at once, in rounds.

    Raises:
        LoadFailed: somebody did not get exactly what was due, or the gateway says no.
    """
    phase, name = Phase(), fresh_run()
    groups = [
        Group([_spaces_talker(asked, phase, name, seat) for seat in asked.members]) for _ in asked.places
    ]
    traffic = Traffic(phase, groups, patience_s=effort.patience_s)
    try:
        for place, group in zip(asked.places, groups, strict=True):
            await enter_all(place, zip(asked.members, group.talkers, strict=True))
        rounds = await measured_rounds(traffic, effort, tell=tell)
    finally:
        await traffic.close()
    about = f"{some(len(groups), 'space')} of {len(asked.members)}, all talk, each {effort.in_flight(asked.window)}"
    return Outcome(workload="spaces", of="envelopes", about=about, rounds=rounds)


def _spaces_talker(asked: Spaces, phase: Phase, name: str, seat: Seat) -> Talker:
    template = chat(f"{name}-{seat.who}-{SLOT}", seat.who, size=asked.envelope_bytes)
    return Talker(phase, numbered([template]), run=name, tag=seat.who, window=asked.window)


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


async def run_addressed(asked: Addressed, effort: Effort, tell: Callable[[], None] = lambda: None) -> Outcome:
    """The first of each pair talks to the second, in rounds.

    Raises:
        LoadFailed: somebody did not get exactly what was due, or the gateway says no.
    """
    phase, name = Phase(), fresh_run()
    talkers = [_addressed_talker(asked, phase, name, pair) for pair in asked.pairs]
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


def _addressed_talker(asked: Addressed, phase: Phase, name: str, pair: tuple[Seat, Seat]) -> Talker:
    one, other = pair
    template = chat(f"{name}-{one.who}-{SLOT}", one.who, to=[other.who], size=asked.envelope_bytes)
    return Talker(phase, numbered([template]), run=name, tag=one.who, window=asked.window)


class Checks(Struct, frozen=True, tag="checks", kw_only=True):
    """Callers by how many patterns they hold, each as `capabilities` of that number; all ask the same one."""

    place: Place
    callers: dict[int, Seat]
    asked: Seat
    envelope_bytes: int = 400
    window: int = 32


def capabilities(patterns: int) -> list[dict[str, Any]]:
    """So many, each of which allows one tool."""
    return [
        {"kind": "mcp/request", "payload": {"method": "tools/call", "params": {"name": f"tool-{n:03d}"}}}
        for n in range(patterns)
    ]


async def run_checks(
    asked: Checks, effort: Effort, tell: Callable[[], None] = lambda: None
) -> dict[int, Outcome]:
    """All tools that each may call, in turn; the callers take turns, too, so that they compare.

    Raises:
        LoadFailed: somebody did not get exactly what was due, or the gateway says no.
    """
    rounds: dict[int, list[Measured]] = {patterns: [] for patterns in asked.callers}
    single = replace(effort, rounds=1)
    for _ in range(effort.rounds):
        for patterns, caller in asked.callers.items():
            rounds[patterns] += await _checks_round(asked, patterns, caller, single)
            tell()
    return {
        patterns: _checks_outcome(asked, effort, patterns, tuple(found)) for patterns, found in rounds.items()
    }


async def _checks_round(asked: Checks, patterns: int, caller: Seat, effort: Effort) -> tuple[Measured, ...]:
    phase, name = Phase(), fresh_run()
    frames = numbered([_checks_call(asked, name, caller, f"tool-{n:03d}") for n in range(patterns)])
    talker = Talker(phase, frames, run=name, tag="t", window=asked.window)
    counter = Counter(phase)
    traffic = Traffic(phase, [Group([talker], [counter])], patience_s=effort.patience_s)
    try:
        await enter(asked.place, asked.asked, counter)
        await enter(asked.place, caller, talker)
        return await measured_rounds(traffic, effort)
    finally:
        phase.complete()
        await close_all([talker, counter])


def _checks_call(asked: Checks, name: str, caller: Seat, tool: str) -> Template:
    params = {"name": tool, "arguments": {"text": FILLING}}
    payload = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return envelope(
        f"{name}-t-{SLOT}",
        caller.who,
        "mcp/request",
        payload,
        to=[asked.asked.who],
        size=asked.envelope_bytes,
    )


def _checks_outcome(asked: Checks, effort: Effort, patterns: int, rounds: tuple[Measured, ...]) -> Outcome:
    about = (
        f"requests of one who holds {some(patterns, 'pattern')} on payloads, {effort.in_flight(asked.window)}"
    )
    return Outcome(workload=f"checks-{patterns}", of="envelopes", about=about, rounds=rounds)


Workload: TypeAlias = (
    FanOut | Spaces | Addressed | Checks | Proposals | Streams | Storm | Idle | Joins | Injection
)


_RUNS: Final[Mapping[type, Callable[[Any, Effort, Callable[[], None]], Awaitable[Outcome]]]] = {
    FanOut: run_fan_out,
    Spaces: run_spaces,
    Addressed: run_addressed,
    Proposals: run_proposals,
    Streams: run_streams,
    Storm: run_storm,
    Idle: run_idle,
    Joins: run_joins,
    Injection: run_injection,
}


async def run(asked: Workload, effort: Effort, tell: Callable[[], None] = lambda: None) -> list[Outcome]:
    """Do it; `tell` is called after each round.

    Raises:
        LoadFailed: there is no figure, and why.
    """
    if isinstance(asked, Checks):
        return list((await run_checks(asked, effort, tell)).values())
    return [await _RUNS[type(asked)](asked, effort, tell)]
