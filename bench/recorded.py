"""A run as `python -m bench --json FILE` wrote it: what the plots and docs/performance.md are made from."""

import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

__all__ = ["Figure", "LeftOut", "Point", "Recorded", "Result", "Round", "Scaling", "Spread", "Workload"]


MOSTLY: Final = 0.75


class Spread(msgspec.Struct, frozen=True):
    """A median and the extremes around it."""

    median: float
    low: float
    high: float


class Round(msgspec.Struct, frozen=True):
    """One measured phase of one server."""

    envelopes: int
    deliveries: int
    wall_s: float
    server_cpu_s: float
    load_cpu_s: float
    others_share: float = 0.0
    latency_ms_p50: float | None = None
    latency_ms_p99: float | None = None


def _cost(one: Round) -> float:
    return one.server_cpu_s / one.deliveries


class Result(msgspec.Struct, frozen=True):
    """All rounds of one server in one workload."""

    workload: str
    candidate: str
    cpu_s_per_million: Spread
    rounds: list[Round]
    cost_to_node: Spread | None = None
    cost_to_floor: Spread | None = None
    load_was_bottleneck: bool = False

    def spread(self, of: Callable[[Round], float]) -> Spread:
        values = sorted(map(of, self.rounds))
        return Spread(statistics.median(values), values[0], values[-1])

    def cost_to(self, other: "Result") -> Spread:
        """This server's cost over another's, round by round."""
        pairs = zip(self.rounds, other.rounds, strict=False)
        ratios = sorted(_cost(mine) / _cost(theirs) for mine, theirs in pairs)
        return Spread(statistics.median(ratios), ratios[0], ratios[-1])

    @property
    def deliveries_per_s(self) -> Spread:
        return self.spread(lambda one: one.deliveries / one.wall_s)

    @property
    def cpu_us_an_envelope(self) -> Spread:
        return self.spread(lambda one: one.server_cpu_s / one.envelopes * 1e6)

    @property
    def server_share(self) -> float:
        return self.spread(lambda one: one.server_cpu_s / one.wall_s).median

    @property
    def load_share(self) -> float:
        return self.spread(lambda one: one.load_cpu_s / one.wall_s).median

    @property
    def load_could_take(self) -> float:
        """Deliveries a second of the load's own CPU time: with a server that is fast enough it would take so many."""
        return self.spread(lambda one: one.deliveries / one.load_cpu_s).median

    @property
    def others_share(self) -> float:
        """Of a core, what neither the server nor the load used, in the worst round."""
        return self.spread(lambda one: one.others_share).high

    @property
    def is_waiting(self) -> bool:
        """Neither the server nor the load was busy most of the time."""
        return max(self.server_share, self.load_share) < MOSTLY

    def latency_ms(self, which: str) -> Spread | None:
        """`p50` or `p99`, where it was measured."""
        if not all(one.latency_ms_p50 is not None for one in self.rounds):
            return None
        return self.spread(lambda one: (one.latency_ms_p50 if which == "p50" else one.latency_ms_p99) or 0.0)


class Workload(msgspec.Struct, frozen=True):
    """What was asked of the servers."""

    name: str
    members: int
    kind: str = ""
    spaces: int = 1
    senders: int = 1
    bytes: int = 300
    window: int = 64
    pace: str = ""

    @property
    def is_fan_out(self) -> bool:
        return self.kind == "fan-out" or (not self.kind and self.spaces == 1 and not self.is_timed)

    @property
    def is_timed(self) -> bool:
        return self.pace == "one at a time"


class Point(msgspec.Struct, frozen=True):
    x: float
    median: float
    low: float
    high: float


class Scaling(msgspec.Struct, frozen=True):
    """What our cost does when one thing grows and all else stays."""

    name: str
    unit: str
    points: list[Point]


class Figure(msgspec.Struct, frozen=True):
    """A single number, and what it may be at most."""

    name: str
    value: float
    unit: str
    bound: float | None = None
    low: float | None = None
    high: float | None = None


class LeftOut(msgspec.Struct, frozen=True):
    """What was not measured, and why."""

    candidate: str
    workload: str
    why: str


class Recorded(msgspec.Struct, frozen=True):
    """A whole run."""

    machine: dict[str, Any]
    workloads: list[Workload]
    results: list[Result]
    verdicts: list[str] = []
    scaling: list[Scaling] = []
    figures: list[Figure] = []
    left_out: list[LeftOut] = []
    measure_s: float = 0.0

    @classmethod
    def load(cls, file: Path) -> "Recorded":
        return msgspec.json.decode(file.read_bytes(), type=cls)

    def workload(self, name: str) -> Workload:
        return next(one for one in self.workloads if one.name == name)

    def result(self, workload: str, candidate: str) -> Result | None:
        found = (one for one in self.results if (one.workload, one.candidate) == (workload, candidate))
        return next(found, None)

    @property
    def candidates(self) -> list[str]:
        """In the order in which they were measured first."""
        return list(dict.fromkeys(one.candidate for one in self.results))
