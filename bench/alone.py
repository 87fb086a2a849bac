"""Our gateway alone: what only a MEW gateway does, driven by `mew.load` from the other core."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from bench.candidates import Candidate
from bench.candidates.mew import COMMAND
from bench.recorded import Point
from bench.server import running
from bench.workloads import Workload
from mew.load.__main__ import Order
from mew.load.connections import Credentials, GatewayAddress
from mew.load.measurement import LoadResult, MeasuredRound, MeasurementPlan, Spread
from mew.load.workloads import Workload as Load

__all__ = ["Alone", "NoFigure", "alone", "efforts", "point", "seats"]

LOAD_TIMEOUT_S = 120
LIMITS: dict[str, object] = {  # high enough that none is ever met
    "envelopes_per_second": 1_000_000,
    "bytes_per_second": "64GiB",
    "bytes_burst": "64GiB",
    "burst": 1_000_000,
    "connections_per_space": 20_000,
    "connections_per_participant": 20_000,
    "outbox_bytes": "256MiB",
}


class NoFigure(Exception):
    """The load gave no figure; its last words are the text."""


@dataclass(frozen=True)
class Alone:
    """A gateway that runs, and the core of the load."""

    port: int
    pid: int
    core: int

    def place(self, space: str) -> GatewayAddress:
        return GatewayAddress("127.0.0.1", self.port, space)

    def measure(self, load: Load, plan: MeasurementPlan) -> list[LoadResult]:
        """What comes of it.

        Raises:
            NoFigure: nothing, and why.
        """
        order = Order(workload=load, plan=replace(plan, server_pid=self.pid), core=self.core)
        try:
            done = subprocess.run(
                [sys.executable, "-m", "mew.load"],
                input=msgspec.json.encode(order),
                capture_output=True,
                timeout=LOAD_TIMEOUT_S,
            )
        except subprocess.TimeoutExpired as late:
            raise NoFigure(f"no figure after {LOAD_TIMEOUT_S} s") from late
        if done.returncode != 0:
            raise NoFigure(done.stderr.decode(errors="replace").strip()[-500:])
        return msgspec.json.decode(done.stdout, type=list[LoadResult])


@contextmanager
def alone(
    spaces: list[dict[str, Any]], participants: dict[str, list[Any]], cores: list[int], **limits: object
) -> Iterator[Alone]:
    """A gateway without a journal on the first core, for a load on the second.

    Raises:
        ServerFailed: it does not start.
    """
    config = {
        "spaces": spaces,
        "participants": {
            who: {"tokens": [f"t-{who}"], "capabilities": may} for who, may in participants.items()
        },
        "limits": {**LIMITS, **limits},
        "server": {"keepalive_s": 600},
    }

    def command(_workload: Workload, port: int, scratch: Path) -> list[str]:
        file = scratch / "space.yaml"
        file.write_text(json.dumps(config))  # JSON is YAML
        return [str(COMMAND), "gateway", "--config", str(file), "--port", str(port)]

    candidate = Candidate(name="mew-alone", about="this gateway, with its journal", command=command)
    with running(candidate, Workload(name="alone", members=1), cores[0]) as server:
        yield Alone(server.port, server.pid, cores[1])


def seats(*names: str) -> tuple[Credentials, ...]:
    """Those of participants of this gateway."""
    return tuple(Credentials(name, f"t-{name}") for name in names)


def efforts(*, quick: bool) -> MeasurementPlan:
    return (
        MeasurementPlan(rounds=3, round_s=0.2, warm_up_s=0.2)
        if quick
        else MeasurementPlan(rounds=3, round_s=0.5, warm_up_s=0.4)
    )


def point(x: float, rounds: tuple[MeasuredRound, ...]) -> Point:
    """The cost of an envelope, in microseconds of the gateway's CPU."""
    cost = Spread.of(one.cpu_us_each for one in rounds)
    if cost is None:
        raise NoFigure("the CPU time of the gateway cannot be read")
    return Point(x, cost.median, cost.low, cost.high)
