"""`python -m mew.load`: an order as JSON on standard input, its outcomes as JSON on standard output.

Exit code 1 and a sentence on standard error: there is no figure.
"""

import asyncio
import os
import sys
from collections.abc import Callable

import msgspec

from .connections import LoadFailed
from .measurement import LoadResult, MeasurementPlan, allow_many_connections
from .workloads import Workload, run

__all__ = ["Order"]


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What to do, how thoroughly, and on which core."""

    workload: Workload
    plan: MeasurementPlan = MeasurementPlan()
    core: int | None = None


def _main() -> int:
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=Order)
    if order.core is not None:
        os.sched_setaffinity(0, {order.core})
    allow_many_connections()
    try:
        with asyncio.Runner(loop_factory=_fast_loop()) as runner:
            outcomes: list[LoadResult] = runner.run(run(order.workload, order.plan))
    except LoadFailed as failed:
        sys.stderr.write(f"{failed}\n")
        return 1
    sys.stdout.buffer.write(msgspec.json.encode(outcomes) + b"\n")
    return 0


def _fast_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """That of uvloop, where there is one."""
    try:
        import uvloop  # not to be had on Windows
    except ImportError:
        return None
    return uvloop.new_event_loop


if __name__ == "__main__":
    sys.exit(_main())
