"""What the rounds add up to: medians with their spread, ratios within a round, the table and the verdicts."""

import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from bench.load import Measured

__all__ = ["TARGETS", "Results", "Spread", "Target", "as_json", "print_report", "spread", "verdicts"]

SATURATED = 0.9
HEADINGS = [
    "CPU-s per million\ndeliveries",
    "cheaper than\nNode ws",
    "times\nthe floor",
    "CPU-µs an\nenvelope",
    "deliveries/s",
    "core busy\nserver / load",
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


def time_taken(measured: Measured) -> float:
    """For a delivery, as the clock on the wall has it: who is faster takes less."""
    return measured.wall_s / measured.deliveries


@dataclass(frozen=True)
class Target:
    """A ratio in one workload, ours to another's, that must not be exceeded; of costs, if not of something else."""

    workload: str
    against: str
    ratio_max: float
    claim: str
    of: Callable[[Measured], float] = cost


TARGETS = [
    *(
        Target(f"fan-out-{receivers}", "node-ws", 1 / 10, "≥ 10× cheaper than Node ws")
        for receivers in (50, 200, 1000)
    ),
    *(
        Target(f"fan-out-{receivers}", "floor", 2.0, "within 2× of the bare uvloop floor")
        for receivers in (50, 200, 1000)
    ),
    Target("fan-out-50", "mew-ephemeral", 1 / 0.8, "a journal costs at most a quarter more"),
    Target(
        "fan-out-50",
        "mew-ephemeral",
        1 / 0.8,
        "with a journal ≥ 80 % of the deliveries/s without",
        time_taken,
    ),
]


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
    for line in verdicts(results):
        console.print(line)


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
    rate = _median(rounds, lambda measured: measured.deliveries / measured.wall_s)
    server = _median(rounds, lambda measured: measured.server_share)
    load = _median(rounds, lambda measured: measured.load_share)
    return [
        name,
        spread(measured.cost for measured in rounds).text(),
        node.text(".1f", "×") if node and name != "node-ws" else "",
        floor.text(".2f", "×") if floor and name != "floor" else "",
        f"{_median(rounds, lambda measured: measured.server_cpu_s / measured.envelopes) * 1e6:.1f}",
        f"{'≥ ' if load_was_bottleneck(rounds) else ''}{rate:,.0f}",
        f"{server:.0%} / {load:.0%}",
    ]


def _latency(rounds: list[Measured]) -> str:
    p50 = _median(rounds, lambda measured: measured.latency_ms_p50 or 0.0)
    p99 = spread(measured.latency_ms_p99 or 0.0 for measured in rounds)  # the first to show a noisy machine
    return f"{p50:.2f} / {p99.text()}"


def _median(rounds: list[Measured], of: Callable[[Measured], float]) -> float:
    return statistics.median(map(of, rounds))


def load_was_bottleneck(rounds: list[Measured]) -> bool:
    """The load's core was full while the server's was not: then deliveries per second are the load's."""
    load = _median(rounds, lambda measured: measured.load_share)
    server = _median(rounds, lambda measured: measured.server_share)
    return load > SATURATED >= server


def _evidence(results: Results) -> list[str]:
    limited = [
        f"{workload}/{name}"
        for workload, by_candidate in results.items()
        for name, rounds in by_candidate.items()
        if rounds and load_was_bottleneck(rounds)
    ]
    if not limited:
        return ["The load was nowhere the bottleneck: its core was never full while the server's was not."]
    return [
        f"The load's core was full, the server's was not, in {', '.join(limited)}: the server could do more "
        "than the deliveries/s shown there (≥). CPU-seconds per delivery are the server's own and hold."
    ]


def verdicts(results: Results) -> list[str]:
    """A line for each target: reached, missed, or not measured."""
    lines = []
    for target in TARGETS:
        by_candidate = results.get(target.workload, {})
        ours = ratio(by_candidate.get("mew", []), by_candidate.get(target.against, []), target.of)
        if ours is None:
            lines.append(f"[dim]not measured[/]  {target.workload}: {target.claim}")
            continue
        verdict = "[green]reached[/]" if ours.median <= target.ratio_max else "[red]missed[/]"
        times = f"{1 / ours.median:.1f}× cheaper" if target.ratio_max < 1 else f"{ours.median:.2f}×"
        times = f"{1 / ours.median:.0%}" if target.of is time_taken else times
        lines.append(f"{verdict}  {target.workload}: {target.claim}: {times}")
    return lines


def as_json(results: Results) -> list[dict[str, object]]:
    """One entry for each workload and candidate, with every round."""
    return [
        {
            "workload": workload,
            "candidate": name,
            "cpu_s_per_million": spread(measured.cost for measured in rounds),
            "cost_to_node": ratio(rounds, by_candidate.get("node-ws", [])),
            "cost_to_floor": ratio(rounds, by_candidate.get("floor", [])),
            "load_was_bottleneck": load_was_bottleneck(rounds),
            "rounds": rounds,
        }
        for workload, by_candidate in results.items()
        for name, rounds in by_candidate.items()
        if rounds
    ]
