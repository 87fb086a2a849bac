"""What the rounds add up to: medians with their spread, ratios within a round, the tables and the evidence."""

import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from bench.load import Measured

__all__ = ["Results", "Spread", "as_json", "ceilings", "cost", "print_report", "ratio", "spread"]

SATURATED = 0.9
QUIET = 0.1
YARDSTICK = "floor-c"
HEADINGS = [
    "CPU-s per million\ndeliveries",
    "cheaper than\nNode ws",
    "times\nthe floor",
    "CPU-µs an\nenvelope",
    "deliveries/s",
    "core busy\nserver / load",
    "load could\ndo",
]

Results = dict[str, dict[str, list[Measured]]]
"""Workload, then candidate, then one entry a round."""


@dataclass(frozen=True)
class Spread:
    """A median and the extremes around it."""

    median: float
    low: float
    high: float

    def text(self, form: str = ".2f", sign: str = "") -> str:
        return f"{self.median:{form}}{sign} ({self.low:{form}}–{self.high:{form}})"


def cost(measured: Measured) -> float:
    return measured.cost


def spread(values: Iterable[float]) -> Spread:
    ordered = sorted(values)
    return Spread(statistics.median(ordered), ordered[0], ordered[-1])


def ratio(
    ours: list[Measured], theirs: list[Measured], of: Callable[[Measured], float] = cost
) -> Spread | None:
    """Our cost over theirs, round by round; None where one of both was not measured."""
    pairs = list(zip(ours, theirs, strict=False))
    return spread(of(mine) / of(other) for mine, other in pairs) if pairs else None


def print_report(console: Console, results: Results) -> None:
    for workload, by_candidate in results.items():
        if any(by_candidate.values()):
            console.print(_table(workload, by_candidate))
    for line in _evidence(results):
        console.print(line)


def ceilings(results: Results) -> dict[str, float]:
    """For each workload, the deliveries per second that the load was seen to be good for, on a core of its own.

    It is what it did for the fastest server per second of its own CPU time: with a faster server it would do so much.
    """
    return {
        workload: max(
            statistics.median(measured.deliveries / measured.load_cpu_s for measured in rounds)
            for rounds in by_candidate.values()
            if rounds
        )
        for workload, by_candidate in results.items()
        if any(by_candidate.values())
    }


def load_was_bottleneck(rounds: list[Measured]) -> bool:
    """The load's core was full while the server's was not: then deliveries per second are the load's."""
    load = _median(rounds, lambda measured: measured.load_share)
    server = _median(rounds, lambda measured: measured.server_share)
    return load > SATURATED >= server


def as_json(results: Results) -> list[dict[str, object]]:
    """One entry for each workload and candidate, with every round."""
    return [
        {
            "workload": workload,
            "candidate": name,
            "cpu_s_per_million": spread(measured.cost for measured in rounds),
            "deliveries_per_s": spread(measured.deliveries / measured.wall_s for measured in rounds),
            "cost_to_node": ratio(rounds, by_candidate.get("node-ws", [])),
            "cost_to_floor": ratio(rounds, by_candidate.get("floor", [])),
            "load_share": _median(rounds, lambda measured: measured.load_share),
            "server_share": _median(rounds, lambda measured: measured.server_share),
            "others_share": _median(rounds, lambda measured: measured.others_share),
            "load_was_bottleneck": load_was_bottleneck(rounds),
            "rounds": rounds,
        }
        for workload, by_candidate in results.items()
        for name, rounds in by_candidate.items()
        if rounds
    ]


def _table(workload: str, by_candidate: dict[str, list[Measured]]) -> Table:
    timed = any(rounds and rounds[0].latency_ms_p50 is not None for rounds in by_candidate.values())
    table = Table(title=workload, title_justify="left", title_style="bold")
    table.add_column("candidate", no_wrap=True)
    for heading in HEADINGS + (["latency ms\np50 / p99"] if timed else []):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, rounds in by_candidate.items():
        if rounds:
            table.add_row(*_row(name, rounds, by_candidate), *([_latency(rounds)] if timed else []))
    return table


def _row(name: str, rounds: list[Measured], by_candidate: dict[str, list[Measured]]) -> list[str]:
    node = ratio(by_candidate.get("node-ws", []), rounds)
    floor = ratio(rounds, by_candidate.get("floor", []))
    rate = _median(rounds, _rate)
    server = _median(rounds, lambda measured: measured.server_share)
    load = _median(rounds, lambda measured: measured.load_share)
    ceiling = ceilings({"": by_candidate})[""]  # against what this server can do on a full core
    return [
        name,
        spread(measured.cost for measured in rounds).text(),
        node.text(".1f", "×") if node and name != "node-ws" else "",
        floor.text(".2f", "×") if floor and name != "floor" else "",
        f"{_median(rounds, lambda measured: measured.server_cpu_s / measured.envelopes) * 1e6:.1f}",
        f"{'≥ ' if load_was_bottleneck(rounds) else ''}{rate:,.0f}",
        f"{server:.0%} / {load:.0%}",
        f"{ceiling * _median(rounds, cost) / 1e6:.1f}×",
    ]


def _latency(rounds: list[Measured]) -> str:
    p50 = _median(rounds, lambda measured: measured.latency_ms_p50 or 0.0)
    p99 = spread(measured.latency_ms_p99 or 0.0 for measured in rounds)  # the first to show a noisy machine
    return f"{p50:.2f} / {p99.text()}"


def _rate(measured: Measured) -> float:
    return measured.deliveries / measured.wall_s


def _median(rounds: list[Measured], of: Callable[[Measured], float]) -> float:
    return statistics.median(map(of, rounds))


def _evidence(results: Results) -> list[str]:
    cells = [
        (workload, name, rounds)
        for workload, by_candidate in results.items()
        for name, rounds in by_candidate.items()
        if rounds
    ]
    if not cells:
        return []
    limited = [f"{workload}/{name}" for workload, name, rounds in cells if load_was_bottleneck(rounds)]
    lines = [
        f"The load's core was full, the server's was not, in {', '.join(limited)}: the server could do more "
        "than the deliveries/s shown there (≥). CPU-seconds per delivery are the server's own and hold."
        if limited
        else "The load was nowhere the bottleneck: its core was never full while the server's was not.",
        "What the load is good for on a full core, by its own CPU time for a delivery, and how much more that is than "
        f"the fastest server but {YARDSTICK} can do on one: {', '.join(_headroom(results))}",
    ]
    others = statistics.median(measured.others_share for _, _, rounds in cells for measured in rounds)
    if others > QUIET:
        lines.append(
            f"[yellow]The machine was not quiet[/]: others used {others:.0%} of the cores. Costs are higher and "
            "spreads wider than they would be; do not quote these figures."
        )
    return lines


def _headroom(results: Results) -> list[str]:
    found = []
    for workload, ceiling in ceilings(results).items():
        costs = {name: _median(rounds, cost) for name, rounds in results[workload].items() if rounds}
        least = min((value for name, value in costs.items() if name != YARDSTICK), default=None)
        times = "" if least is None else f" ({ceiling * least / 1e6:.1f}×)"
        found.append(f"{workload} {ceiling:,.0f}/s{times}")
    return found
