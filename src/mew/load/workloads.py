"""Workloads of envelopes, and all workloads by the type of what each is told."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from .churn import IdleLoad, JoinLoad, StormLoad, run_idle, run_joins, run_storm
from .connections import (
    CountingConnection,
    Credentials,
    GatewayAddress,
    LoadPhase,
    SendingConnection,
    close_all,
    enter,
    enter_all,
    fresh_run,
    seat_counters,
    some,
)
from .exchanges import InjectionLoad, ProposalLoad, StreamLoad, run_injection, run_proposals, run_streams
from .frames import FILLING, SLOT, EnvelopeTemplate, chat, envelope, numbered
from .measurement import LoadResult, MeasuredRound, MeasurementPlan
from .traffic import Traffic, TrafficGroup, measured_rounds

__all__ = [
    "AddressedLoad",
    "CapabilityLoad",
    "FanOutLoad",
    "SpacesLoad",
    "Workload",
    "capabilities",
    "run",
    "run_addressed",
    "run_checks",
    "run_fan_out",
    "run_spaces",
]


class FanOutLoad(Struct, frozen=True, tag="fan-out", kw_only=True):
    """The sender is one of those who hear. `past`: so many envelopes are sent before anything is measured."""

    address: GatewayAddress
    sender: Credentials
    receivers: tuple[Credentials, ...]
    envelope_bytes: int = 300
    window: int = 64
    past: int = 0


async def run_fan_out(
    asked: FanOutLoad, plan: MeasurementPlan, tell: Callable[[], None] = lambda: None
) -> LoadResult:
    """Deliver as fast as can be, in rounds.

    Raises:
        LoadFailed: somebody did not get exactly what was due, or the gateway says no.
    """
    phase, name = LoadPhase(), fresh_run()
    template = chat(f"{name}-t-{SLOT}", asked.sender.who, size=asked.envelope_bytes)
    talker = SendingConnection(phase, numbered([template]), run=name, tag="t", window=asked.window)
    counters: list[CountingConnection] = []
    try:
        await enter(asked.address, asked.sender, talker)
        counters, fewer = await seat_counters(
            asked.address, asked.receivers, lambda: CountingConnection(phase)
        )
        traffic = Traffic(phase, [TrafficGroup([talker], counters)], timeout_s=plan.timeout_s)
        if asked.past:
            await traffic.prepare()
            await traffic.flow(asked.past)
            await traffic.verify()
        rounds = await measured_rounds(traffic, plan, latency=True, tell=tell)
    finally:
        phase.complete()
        await close_all([talker, *counters])
    receivers = some(len(counters) + 1, "receiver") + ("" if fewer is None else f" ({fewer})")
    about = f"{receivers}, {template.payload_bytes} bytes, {plan.in_flight(asked.window)}"
    return LoadResult(workload="fan-out", of="envelopes", about=about, rounds=rounds)


class SpacesLoad(Struct, frozen=True, tag="spaces", kw_only=True):
    """The same members in each space, each with a window of its own."""

    addresses: tuple[GatewayAddress, ...]
    members: tuple[Credentials, ...]
    envelope_bytes: int = 300
    window: int = 1


async def run_spaces(
    asked: SpacesLoad, plan: MeasurementPlan, tell: Callable[[], None] = lambda: None
) -> LoadResult:
    """Everybody talks at once, in rounds.

    Raises:
        LoadFailed: somebody did not get exactly what was due, or the gateway says no.
    """
    phase, name = LoadPhase(), fresh_run()
    groups = [
        TrafficGroup([_spaces_talker(asked, phase, name, credentials) for credentials in asked.members])
        for _ in asked.addresses
    ]
    traffic = Traffic(phase, groups, timeout_s=plan.timeout_s)
    try:
        for address, group in zip(asked.addresses, groups, strict=True):
            await enter_all(address, zip(asked.members, group.talkers, strict=True))
        rounds = await measured_rounds(traffic, plan, tell=tell)
    finally:
        await traffic.close()
    about = (
        f"{some(len(groups), 'space')} of {len(asked.members)}, all talk, each {plan.in_flight(asked.window)}"
    )
    return LoadResult(workload="spaces", of="envelopes", about=about, rounds=rounds)


def _spaces_talker(
    asked: SpacesLoad, phase: LoadPhase, name: str, credentials: Credentials
) -> SendingConnection:
    template = chat(f"{name}-{credentials.who}-{SLOT}", credentials.who, size=asked.envelope_bytes)
    return SendingConnection(phase, numbered([template]), run=name, tag=credentials.who, window=asked.window)


class AddressedLoad(Struct, frozen=True, tag="addressed", kw_only=True):
    """`everyone`: the space shows what is addressed to all of its members, as it does unless configured otherwise.

    Bystanders are there and say nothing.
    """

    address: GatewayAddress
    pairs: tuple[tuple[Credentials, Credentials], ...]
    everyone: bool = True
    bystanders: tuple[Credentials, ...] = ()
    envelope_bytes: int = 300
    window: int = 8


async def run_addressed(
    asked: AddressedLoad, plan: MeasurementPlan, tell: Callable[[], None] = lambda: None
) -> LoadResult:
    """The first of each pair talks to the second, in rounds.

    Raises:
        LoadFailed: somebody did not get exactly what was due, or the gateway says no.
    """
    phase, name = LoadPhase(), fresh_run()
    talkers = [_addressed_talker(asked, phase, name, pair) for pair in asked.pairs]
    partners = [CountingConnection(phase) for _ in asked.pairs]
    bystanders: list[CountingConnection] = []
    if asked.everyone:
        groups = [TrafficGroup(talkers, partners)]
    else:
        groups = [TrafficGroup([one], [other]) for one, other in zip(talkers, partners, strict=True)]
    try:
        bystanders, _ = await seat_counters(
            asked.address, asked.bystanders, lambda: CountingConnection(phase)
        )
        await enter_all(asked.address, zip((one for one, _ in asked.pairs), talkers, strict=True))
        await enter_all(asked.address, zip((other for _, other in asked.pairs), partners, strict=True))
        if asked.everyone:
            groups[0].counters += bystanders
        traffic = Traffic(phase, groups, timeout_s=plan.timeout_s)
        rounds = await measured_rounds(traffic, plan, latency=True, tell=tell)
    finally:
        phase.complete()
        await close_all([*talkers, *partners, *bystanders])
    shown = "all see it" if asked.everyone else f"only they see it, {len(bystanders)} others are there"
    about = f"{some(len(asked.pairs), 'pair')}, {shown}, each {plan.in_flight(asked.window)}"
    return LoadResult(workload="addressed", of="envelopes", about=about, rounds=rounds)


def _addressed_talker(
    asked: AddressedLoad, phase: LoadPhase, name: str, pair: tuple[Credentials, Credentials]
) -> SendingConnection:
    one, other = pair
    template = chat(f"{name}-{one.who}-{SLOT}", one.who, to=[other.who], size=asked.envelope_bytes)
    return SendingConnection(phase, numbered([template]), run=name, tag=one.who, window=asked.window)


class CapabilityLoad(Struct, frozen=True, tag="checks", kw_only=True):
    """Callers by how many patterns they hold, each as `capabilities` of that number; all ask the same one."""

    address: GatewayAddress
    callers: dict[int, Credentials]
    asked: Credentials
    envelope_bytes: int = 400
    window: int = 32


def capabilities(patterns: int) -> list[dict[str, Any]]:
    """So many, each of which allows one tool."""
    return [
        {"kind": "mcp/request", "payload": {"method": "tools/call", "params": {"name": f"tool-{n:03d}"}}}
        for n in range(patterns)
    ]


async def run_checks(
    asked: CapabilityLoad, plan: MeasurementPlan, tell: Callable[[], None] = lambda: None
) -> dict[int, LoadResult]:
    """All tools that each may call, in turn; the callers take turns, too, so that they compare.

    Raises:
        LoadFailed: somebody did not get exactly what was due, or the gateway says no.
    """
    rounds: dict[int, list[MeasuredRound]] = {patterns: [] for patterns in asked.callers}
    single = replace(plan, rounds=1)
    for _ in range(plan.rounds):
        for patterns, caller in asked.callers.items():
            rounds[patterns] += await _checks_round(asked, patterns, caller, single)
            tell()
    return {
        patterns: _checks_outcome(asked, plan, patterns, tuple(found)) for patterns, found in rounds.items()
    }


async def _checks_round(
    asked: CapabilityLoad, patterns: int, caller: Credentials, plan: MeasurementPlan
) -> tuple[MeasuredRound, ...]:
    phase, name = LoadPhase(), fresh_run()
    frames = numbered([_checks_call(asked, name, caller, f"tool-{n:03d}") for n in range(patterns)])
    talker = SendingConnection(phase, frames, run=name, tag="t", window=asked.window)
    counter = CountingConnection(phase)
    traffic = Traffic(phase, [TrafficGroup([talker], [counter])], timeout_s=plan.timeout_s)
    try:
        await enter(asked.address, asked.asked, counter)
        await enter(asked.address, caller, talker)
        return await measured_rounds(traffic, plan)
    finally:
        phase.complete()
        await close_all([talker, counter])


def _checks_call(asked: CapabilityLoad, name: str, caller: Credentials, tool: str) -> EnvelopeTemplate:
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


def _checks_outcome(
    asked: CapabilityLoad, plan: MeasurementPlan, patterns: int, rounds: tuple[MeasuredRound, ...]
) -> LoadResult:
    about = (
        f"requests of one who holds {some(patterns, 'pattern')} on payloads, {plan.in_flight(asked.window)}"
    )
    return LoadResult(workload=f"checks-{patterns}", of="envelopes", about=about, rounds=rounds)


Workload: TypeAlias = (
    FanOutLoad
    | SpacesLoad
    | AddressedLoad
    | CapabilityLoad
    | ProposalLoad
    | StreamLoad
    | StormLoad
    | IdleLoad
    | JoinLoad
    | InjectionLoad
)


_RUNS: Final[Mapping[type, Callable[[Any, MeasurementPlan, Callable[[], None]], Awaitable[LoadResult]]]] = {
    FanOutLoad: run_fan_out,
    SpacesLoad: run_spaces,
    AddressedLoad: run_addressed,
    ProposalLoad: run_proposals,
    StreamLoad: run_streams,
    StormLoad: run_storm,
    IdleLoad: run_idle,
    JoinLoad: run_joins,
    InjectionLoad: run_injection,
}


async def run(
    asked: Workload, plan: MeasurementPlan, tell: Callable[[], None] = lambda: None
) -> list[LoadResult]:
    """Do it; `tell` is called after each round.

    Raises:
        LoadFailed: there is no figure, and why.
    """
    if isinstance(asked, CapabilityLoad):
        return list((await run_checks(asked, plan, tell)).values())
    return [await _RUNS[type(asked)](asked, plan, tell)]
