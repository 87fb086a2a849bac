"""What is asked of the servers: how many spaces, members and senders, how long the envelopes, how many in flight."""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["WORKLOADS", "Kind", "Pace", "Workload"]


class Pace(StrEnum):
    """When a sender sends again."""

    PIPELINED = "pipelined"
    """It keeps a window of envelopes in flight and refills it by its own echoes."""
    ONE_AT_A_TIME = "one at a time"
    """It waits until every receiver has the last one; the time that took is the latency."""


class Kind(StrEnum):
    """What a workload is like; plots put those of one kind together."""

    FAN_OUT = "fan-out"
    LATENCY = "latency"
    SPACES = "spaces"
    ADDRESSED = "addressed"
    """Pairs that write to each other: only the one addressed and the sender get an envelope."""


@dataclass(frozen=True, kw_only=True)
class Workload:
    """One cell of the table."""

    name: str
    members: int
    """In each space; with addressed traffic a space is a pair."""
    kind: Kind = Kind.FAN_OUT
    spaces: int = 1
    senders: int = 1
    """In each space; senders are receivers too."""
    bytes: int = 300
    """Of one envelope, as its sender writes it."""
    window: int = 64
    """Envelopes in flight for each sender."""
    pace: Pace = Pace.PIPELINED

    @property
    def connections(self) -> int:
        return self.spaces * self.members

    @property
    def space_names(self) -> list[str]:
        """All of one length, so that a delivery has the same bytes in each."""
        return ["bench"] if self.spaces == 1 else [f"bench{number:03}" for number in range(self.spaces)]


WORKLOADS = {
    workload.name: workload
    for workload in (
        *(Workload(name=f"fan-out-{members}", members=members) for members in (10, 50, 200, 1000)),
        *(
            Workload(name=f"fan-out-{members}-4k", members=members, bytes=4096, window=16)
            for members in (10, 50, 200, 1000)
        ),
        *(
            Workload(
                name=f"one-at-a-time-{members}",
                kind=Kind.LATENCY,
                members=members,
                window=1,
                pace=Pace.ONE_AT_A_TIME,
            )
            for members in (10, 50, 200)
        ),
        Workload(name="spaces", kind=Kind.SPACES, spaces=200, members=5, senders=5, window=1),
        Workload(name="addressed", kind=Kind.ADDRESSED, spaces=100, members=2, senders=2, window=1),
    )
}
