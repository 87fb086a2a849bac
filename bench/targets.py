"""The figures to reach: ratios of ours to another's within one run, and whether they were reached.

`mew` is measured as it comes, with its journal, which none of the others has; `mew-ephemeral` must not get dearer.
"""

from collections.abc import Callable
from dataclasses import dataclass

from bench.load import Measured
from bench.report import Results, Spread, cost, ratio

__all__ = ["TARGETS", "Target", "verdicts"]

OURS = "mew"
EPHEMERAL = "mew-ephemeral"


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
    ours: str = OURS


FAN_OUT = [f"fan-out-{members}{size}" for members in (10, 50, 200, 1000) for size in ("", "-4k")]
ONE_AT_A_TIME = [f"one-at-a-time-{members}" for members in (10, 50, 200)]
JOURNAL = {
    "fan-out-10": 1.6,
    "fan-out-50": 1.3,
    "fan-out-200": 1.15,
    **dict.fromkeys([*ONE_AT_A_TIME, "spaces", "addressed"], 1.5),
}
"""How many times the cost of the ephemeral gateway that with the journal may be."""
FLOOR = {"fan-out-50": 1.39, "spaces": 1.67, "addressed": 1.55}
"""How many times that of the bare uvloop floor the ephemeral gateway's may be."""

TARGETS = [
    *(
        target
        for workload in [*FAN_OUT, *ONE_AT_A_TIME, "spaces", "addressed"]
        for target in (
            Target(workload, "node-ws", 1.0, "cheaper than Node ws"),
            Target(workload, "nats-server", 1.1, "≤ 1.1× nats-server")
            if workload == "fan-out-10"
            else Target(workload, "nats-server", 1.0, "cheaper than nats-server"),
        )
    ),
    *(
        Target(workload, EPHEMERAL, bound, f"≤ {bound}× without the journal")
        for workload, bound in JOURNAL.items()
    ),
    *(
        Target(
            workload, "floor", bound, f"without the journal ≤ {bound}× the bare uvloop floor", ours=EPHEMERAL
        )
        for workload, bound in FLOOR.items()
    ),
    Target("one-at-a-time-50", "node-ws", 1.0, "p99 latency no worse than Node ws", p99),
]


def verdicts(results: Results) -> list[str]:
    """A line for each target of these workloads: reached, missed, or not measured."""
    return [_verdict(target, results) for target in TARGETS if target.workload in results]


def _verdict(target: Target, results: Results) -> str:
    by_candidate = results[target.workload]
    ours = ratio(by_candidate.get(target.ours, []), by_candidate.get(target.against, []), target.of)
    if ours is None:
        return f"[dim]not measured[/]  {target.workload}: {target.claim}"
    verdict = "[green]reached[/]" if ours.median <= target.ratio_max else "[red]missed[/]"
    return f"{verdict}  {target.workload}: {target.claim}: {_times(ours)}"


def _times(ours: Spread) -> str:
    if ours.median < 0.5:
        return f"{1 / ours.median:.1f}× cheaper ({1 / ours.high:.1f}–{1 / ours.low:.1f})"
    return ours.text(".2f", "×")
