"""What is asked of the servers: how many spaces, members and senders, how many envelopes in flight."""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["ENVELOPE_BYTES", "WORKLOADS", "Pace", "Workload"]

ENVELOPE_BYTES = 300


class Pace(StrEnum):
    """When a sender sends again."""

    PIPELINED = "pipelined"
    """It keeps a window of envelopes in flight and refills it by its own echoes."""
    ONE_AT_A_TIME = "one at a time"
    """It waits until every receiver has the last one; the time that took is the latency."""


@dataclass(frozen=True, kw_only=True)
class Workload:
    """One cell of the table."""

    name: str
    members: int
    spaces: int = 1
    senders: int = 1
    """In each space; senders are receivers too."""
    window: int = 64
    """Envelopes in flight for each sender."""
    pace: Pace = Pace.PIPELINED

    @property
    def connections(self) -> int:
        return self.spaces * self.members

    @property
    def space_names(self) -> list[str]:
        return ["bench"] if self.spaces == 1 else [f"bench{n}" for n in range(self.spaces)]


WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload(name="fan-out-50", members=50),
        Workload(name="fan-out-200", members=200),
        Workload(name="fan-out-1000", members=1000),
        Workload(name="one-at-a-time-50", members=50, window=1, pace=Pace.ONE_AT_A_TIME),
        Workload(name="spaces", spaces=200, members=5, senders=5, window=1),
    )
}
