"""What only a MEW gateway does, in single figures: proposals, checks, streams, storms, memory, joins, HTTP.

`measure` is called by `python -m bench`; `python -m bench.figures` shows these alone.
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Iterator

from rich.console import Console

from bench.alone import NoFigure, alone, efforts, seats
from bench.recorded import Figure
from bench.server import ServerFailed
from mew.load.churn import IdleLoad, JoinLoad, StormLoad
from mew.load.exchanges import InjectionLoad, ProposalLoad, StreamLoad
from mew.load.measurement import LoadResult, MeasuredRound, MeasurementPlan, Spread
from mew.load.workloads import AddressedLoad, CapabilityLoad, capabilities

__all__ = ["measure"]

CONNECTIONS = 10_000
MEMBERS = 1_000
PATTERNS = (1, 10, 100)
KB = 1000
MB = 1e6


def measure(console: Console, cores: list[int], quick: bool) -> list[Figure]:  # noqa: FBT001  # as the others
    """All of them; one that fails is left out, and why is said."""
    found: list[Figure] = []
    plan = efforts(quick=quick)
    for of in (_proposals, _addressed, _checks, _streams, _storm, _idle, _joins, _injection):
        try:
            for one in of(cores, plan):
                found.append(one)
                console.print(f"[dim]{shown(one)}[/]")
        except (NoFigure, ServerFailed) as error:
            console.print(f"{of.__name__.strip('_')}: [red]no figure[/]: {error}")
    return found


def shown(one: Figure) -> str:
    spread = "" if one.low is None or one.high is None else f" ({_number(one.low)} to {_number(one.high)})"
    kept = (
        "" if one.bound is None else f", at most {one.bound:g}: {'yes' if one.value <= one.bound else 'NO'}"
    )
    return f"{one.name}: {_number(one.value)} {one.unit}{spread}{kept}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _proposals(cores: list[int], plan: MeasurementPlan) -> Iterator[Figure]:
    may = {"proposer": ["mcp/proposal"], "approver": ["mcp/request"], "executor": ["mcp/response"]}
    with alone([{"id": "s"}], may, cores) as gateway:
        proposer, approver, executor = seats(*may)
        (outcome,) = gateway.measure(
            ProposalLoad(place=gateway.place("s"), proposer=proposer, approver=approver, executor=executor),
            plan,
        )
    yield _rate("proposals, end to end", outcome)
    yield _figure("a proposal, end to end, p50", "ms", outcome, lambda one: one.latency_ms_p50)
    yield _figure("a proposal, end to end, p99", "ms", outcome, lambda one: one.latency_ms_p99)
    yield _cost("a proposal, end to end", outcome)


def _addressed(cores: list[int], plan: MeasurementPlan) -> Iterator[Figure]:
    names = [f"p{n}" for n in range(40)]
    space = {"id": "s", "delivery": "addressed"}
    with alone([space], {key: ["chat"] for key in names}, cores) as gateway:
        pairs = tuple(zip(seats(*names[::2]), seats(*names[1::2]), strict=True))
        (outcome,) = gateway.measure(
            AddressedLoad(place=gateway.place("s"), pairs=pairs, everyone=False), plan
        )
    yield _rate("addressed envelopes, 20 pairs", outcome)
    yield _cost("an addressed envelope", outcome)


def _checks(cores: list[int], plan: MeasurementPlan) -> Iterator[Figure]:
    callers = {f"c{number}": capabilities(number) for number in PATTERNS}
    with alone([{"id": "s"}], {**callers, "asked": ["mcp/response"]}, cores) as gateway:
        callers_seats = {number: seats(f"c{number}")[0] for number in PATTERNS}
        outcomes = gateway.measure(
            CapabilityLoad(place=gateway.place("s"), callers=callers_seats, asked=seats("asked")[0]), plan
        )
    costs = [[one.cpu_us_each for one in outcome.rounds] for outcome in outcomes]
    for number, outcome in zip(PATTERNS, outcomes, strict=True):
        yield _cost(f"a request of one who holds {number} pattern{'' if number == 1 else 's'}", outcome)
    ratios = [many / one for one, many in zip(costs[0], costs[-1], strict=True) if one and many]
    yield _spread("100 patterns, to 1", "times the cost", ratios, bound=2)


def _streams(cores: list[int], plan: MeasurementPlan) -> Iterator[Figure]:
    may = {key: ["stream/*"] for key in ("writer", "reader")}
    with alone([{"id": "s"}], may, cores) as gateway:
        writer, reader = seats(*may)
        (outcome,) = gateway.measure(
            StreamLoad(place=gateway.place("s"), writer=writer, readers=(reader,)), plan
        )
    name = "a stream of 64 KiB frames to one reader"
    yield _figure(name, _bounded("MB/s", outcome), outcome, lambda one: one.bytes / one.wall_s / MB)
    yield _figure(
        "a gigabyte of a stream",
        "s of CPU",
        outcome,
        lambda one: (one.server_cpu_s or 0) / one.bytes * KB * MB,
    )


def _storm(cores: list[int], plan: MeasurementPlan) -> Iterator[Figure]:
    names = [f"p{n}" for n in range(20)]
    with alone([{"id": "s"}], {key: ["chat"] for key in names}, cores) as gateway:
        (outcome,) = gateway.measure(StormLoad(place=gateway.place("s"), seats=seats(*names)), plan)
    yield _rate("connections that come, are welcomed and go", outcome)
    yield _cost("a connection that comes and goes", outcome)


def _idle(cores: list[int], plan: MeasurementPlan) -> Iterator[Figure]:
    """Many connections of a hundred: each of them is shown to the others once."""
    names = [f"p{n}" for n in range(100)]
    with alone([{"id": "s"}], {key: ["chat"] for key in names}, cores) as gateway:
        everyone = seats(*names) * (CONNECTIONS // len(names))
        (outcome,) = gateway.measure(IdleLoad(place=gateway.place("s"), seats=everyone), plan)
    (one,) = outcome.rounds
    assert one.server_grew_bytes is not None, "idle without memory"
    yield Figure("idle connection", one.server_grew_bytes / one.count / KB, "KB", bound=12)
    yield Figure(f"{one.count:,} connections made", one.per_s, _bounded("/s", outcome))


def _joins(cores: list[int], plan: MeasurementPlan) -> Iterator[Figure]:
    names = [f"p{n}" for n in range(MEMBERS)]
    with alone([{"id": "s"}], {key: ["chat"] for key in (*names, "newcomer")}, cores) as gateway:
        (outcome,) = gateway.measure(
            JoinLoad(place=gateway.place("s"), newcomer=seats("newcomer")[0], members=seats(*names)), plan
        )
    name = f"a join into {MEMBERS:,} members"
    yield _figure(name, "ms", outcome, lambda one: one.latency_ms_p50, bound=20)
    yield _figure(f"{name}, and leaving", "ms of CPU", outcome, lambda one: (one.cpu_us_each or 0) / KB)


def _injection(cores: list[int], plan: MeasurementPlan) -> Iterator[Figure]:
    with alone([{"id": "s"}], {key: ["chat"] for key in ("sender", "witness")}, cores) as gateway:
        sender, witness = seats("sender", "witness")
        (outcome,) = gateway.measure(
            InjectionLoad(place=gateway.place("s"), sender=sender, witness=witness), plan
        )
    yield _rate("envelopes over HTTP, 8 connections", outcome)
    yield _figure("an envelope over HTTP, p50", "ms", outcome, lambda one: one.latency_ms_p50)
    yield _figure("an envelope over HTTP, p99", "ms", outcome, lambda one: one.latency_ms_p99)
    yield _cost("an envelope over HTTP", outcome)


def _rate(name: str, outcome: LoadResult) -> Figure:
    return _figure(name, _bounded("/s", outcome), outcome, lambda one: one.per_s)


def _cost(name: str, outcome: LoadResult) -> Figure:
    return _figure(name, "µs of CPU", outcome, lambda one: one.cpu_us_each)


def _bounded(unit: str, outcome: LoadResult) -> str:
    """Says so where the load was the bottleneck: the gateway may do more."""
    return f"{unit}, or more: the load was the bottleneck" if outcome.is_lower_bound else unit


def _figure(
    name: str,
    unit: str,
    outcome: LoadResult,
    of: Callable[[MeasuredRound], float | None],
    *,
    bound: float | None = None,
) -> Figure:
    return _spread(name, unit, map(of, outcome.rounds), bound=bound)


def _spread(name: str, unit: str, values: Iterable[float | None], *, bound: float | None = None) -> Figure:
    found = Spread.of(values)
    if found is None:
        raise NoFigure(f"{name}: not to be seen on this machine")
    return Figure(name, found.median, unit, bound, found.low, found.high)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.figures", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="shorter phases: a look, not a figure to quote")
    asked = parser.parse_args()
    measure(Console(highlight=False), sorted(os.sched_getaffinity(0)), asked.quick)
    return 0


if __name__ == "__main__":
    sys.exit(main())
