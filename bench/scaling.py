"""What an envelope costs us when one thing grows: spaces, capabilities, participants, history, and who joins.

`measure` is called by `python -m bench`; `python -m bench.scaling` shows these alone.
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterator

from rich.console import Console

from bench.alone import NoFigure, alone, efforts, point, seats
from bench.recorded import Point, Scaling
from bench.server import ServerFailed
from mew.load.churn import JoinLoad
from mew.load.measurement import MeasurementPlan, Spread
from mew.load.workloads import AddressedLoad, CapabilityLoad, FanOutLoad, SpacesLoad, capabilities

__all__ = ["measure"]

COST = "µs of CPU an envelope"
SPACES = (10, 50, 100, 200)
PATTERNS = (1, 10, 30, 100)
MEMBERS = (10, 100, 300, 1000)
PAST = (0, 10_000, 50_000, 100_000)

Measuring = Callable[[list[int], MeasurementPlan], Iterator[Scaling]]


def measure(console: Console, cores: list[int], quick: bool) -> list[Scaling]:  # noqa: FBT001  # as the others
    """All of them; one that fails is left out, and why is said."""
    found: list[Scaling] = []
    plan = efforts(quick=quick)
    for of in (_spaces, _capabilities, _participants, _history):
        try:
            for one in of(cores, plan):
                found.append(one)
                line = ", ".join(f"{at.x:,.0f}: {at.median:.3g}" for at in one.points)
                console.print(f"[dim]by {one.name}: {line} ({one.unit})[/]")
        except (NoFigure, ServerFailed) as error:
            console.print(f"by {of.__name__.strip('_')}: [red]no figure[/]: {error}")
    return found


def _spaces(cores: list[int], plan: MeasurementPlan) -> Iterator[Scaling]:
    """Spaces of five in which everybody talks, one in flight each."""
    members = [f"p{n}" for n in range(5)]
    names = [f"s{n}" for n in range(SPACES[-1])]
    with alone([{"id": name} for name in names], {key: ["chat"] for key in members}, cores) as gateway:
        points = []
        for number in SPACES:
            places = tuple(gateway.place(name) for name in names[:number])
            (outcome,) = gateway.measure(SpacesLoad(places=places, members=seats(*members)), plan)
            points.append(point(number, outcome.rounds))
    yield Scaling("spaces", COST, points)


def _capabilities(cores: list[int], plan: MeasurementPlan) -> Iterator[Scaling]:
    """Patterns that look into the payload; every one of them is used in turn."""
    callers = {f"c{number}": capabilities(number) for number in PATTERNS}
    with alone([{"id": "s"}], {**callers, "asked": ["mcp/response"]}, cores) as gateway:
        callers_seats = {number: seats(f"c{number}")[0] for number in PATTERNS}
        asked = CapabilityLoad(place=gateway.place("s"), callers=callers_seats, asked=seats("asked")[0])
        outcomes = gateway.measure(asked, plan)
    yield Scaling(
        "capabilities",
        COST,
        [point(number, outcome.rounds) for number, outcome in zip(PATTERNS, outcomes, strict=True)],
    )


def _participants(cores: list[int], plan: MeasurementPlan) -> Iterator[Scaling]:
    """Two talk to each other while others are there; and how long a join takes, which all are shown."""
    crowd = [f"p{n}" for n in range(MEMBERS[-1])]
    everyone = {key: ["chat"] for key in (*crowd, "one", "other", "newcomer")}
    one, other, newcomer = seats("one", "other", "newcomer")
    talking: list[Point] = []
    joining: list[Point] = []
    with alone([{"id": "s", "delivery": "addressed"}], everyone, cores) as gateway:
        for number in MEMBERS:
            there = seats(*crowd[: number - 2])
            pair = AddressedLoad(
                place=gateway.place("s"), pairs=((one, other),), everyone=False, bystanders=there, window=32
            )
            (outcome,) = gateway.measure(pair, plan)
            talking.append(point(number, outcome.rounds))
            members = seats(*crowd[:number])
            (outcome,) = gateway.measure(
                JoinLoad(place=gateway.place("s"), newcomer=newcomer, members=members, times=10), plan
            )
            took = Spread.of(round_.latency_ms_p50 for round_ in outcome.rounds)
            assert took is not None, "joins without latency"
            joining.append(Point(number, took.median, took.low, took.high))
    yield Scaling("participants", COST, talking)
    yield Scaling("members at a join", "ms until the welcome", joining)


def _history(cores: list[int], plan: MeasurementPlan) -> Iterator[Scaling]:
    """Two in a space that holds so many envelopes already, all of them in memory."""
    spaces = [{"id": f"h{number}"} for number in PAST]
    limits = {"history_envelopes": 2 * PAST[-1], "history_bytes": "512MiB"}
    one, other = seats("one", "other")
    with alone(spaces, {key: ["chat"] for key in ("one", "other")}, cores, **limits) as gateway:
        points = []
        for number in PAST:
            asked = FanOutLoad(place=gateway.place(f"h{number}"), sender=one, receivers=(other,), past=number)
            brief = MeasurementPlan(rounds=plan.rounds, round_s=min(plan.round_s, 0.3), warm_up_s=0.1)
            (outcome,) = gateway.measure(asked, brief)
            points.append(point(number, outcome.rounds))
    yield Scaling("history", COST, points)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.scaling", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="shorter phases: a look, not a figure to quote")
    asked = parser.parse_args()
    measure(Console(highlight=False), sorted(os.sched_getaffinity(0)), asked.quick)
    return 0


if __name__ == "__main__":
    sys.exit(main())
