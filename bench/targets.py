"""The figures to reach: ratios of ours to another's within one run, and whether they were reached.

They are asked of `mew-ephemeral`, since none of the others keeps anything; what the journal costs stands beside.
"""

from collections.abc import Callable
from dataclasses import dataclass

from bench.load import Measured
from bench.report import Results, Spread, cost, ratio

__all__ = ["TARGETS", "Target", "verdicts"]

OURS = "mew-ephemeral"
JOURNALED = "mew"


def p99(measured: Measured) -> float:
    return measured.latency_ms_p99 or 0.0


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
        target
        for receivers in (50, 200)
        for target in (
            Target(f"fan-out-{receivers}", "node-ws", 1 / 15, "≥ 15× cheaper than Node ws"),
            Target(f"fan-out-{receivers}", "nats-server", 1.0, "cheaper than nats-server"),
            Target(f"fan-out-{receivers}", "floor", 1.5, "≤ 1.5× the bare uvloop floor"),
        )
    ),
    Target("one-at-a-time-50", "node-ws", 1.0, "p99 latency no worse than Node ws", p99),
    Target("one-at-a-time-50", "floor", 1.3, "≤ 1.3× the bare uvloop floor"),
    *(
        target
        for workload in ("spaces", "addressed")
        for target in (
            Target(workload, "nats-server", 1.0, "cheaper than nats-server"),
            Target(workload, "node-ws", 1.0, "cheaper than Node ws"),
            Target(workload, "floor", 1.5, "≤ 1.5× the bare uvloop floor"),
        )
    ),
]


def verdicts(results: Results) -> list[str]:
    """A line for each target of these workloads: reached, missed, or not measured; then what the journal costs."""
    lines = [_verdict(target, results) for target in TARGETS if target.workload in results]
    journal = []
    for workload, by_candidate in results.items():
        more = ratio(by_candidate.get(JOURNALED, []), by_candidate.get(OURS, []))
        if more is not None:
            journal.append(f"{workload} {more.text('.2f', '×')}")
    return [*lines, f"with the journal: {', '.join(journal)}"] if journal else lines


def _verdict(target: Target, results: Results) -> str:
    by_candidate = results[target.workload]
    ours = ratio(by_candidate.get(OURS, []), by_candidate.get(target.against, []), target.of)
    if ours is None:
        return f"[dim]not measured[/]  {target.workload}: {target.claim}"
    verdict = "[green]reached[/]" if ours.median <= target.ratio_max else "[red]missed[/]"
    return f"{verdict}  {target.workload}: {target.claim}: {_times(target, ours)}"


def _times(target: Target, ours: Spread) -> str:
    if target.ratio_max < 1:
        return f"{1 / ours.median:.1f}× cheaper ({1 / ours.high:.1f}–{1 / ours.low:.1f})"
    return ours.text(".2f", "×")
