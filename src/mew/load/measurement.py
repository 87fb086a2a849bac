"""What a phase took, on both sides, and who was the bottleneck: the load says so of itself, with evidence."""

import gc
import os
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

from msgspec import Struct

__all__ = [
    "Bottleneck",
    "CpuUsage",
    "LoadResult",
    "MeasuredRound",
    "MeasurementPlan",
    "Meter",
    "Spread",
    "allow_many_connections",
    "envelopes_for",
    "listener",
    "memory_bytes",
    "own_usage",
    "quantiles_ms",
    "usage",
]


_PROC: Final = Path("/proc")
_LISTENING: Final = "0A"
_KIB: Final = 1024
_NANO: Final = 1e9


class CpuUsage(NamedTuple):
    """Seconds on a core, and seconds ready to run without one."""

    cpu_s: float
    waited_s: float

    def since(self, before: "CpuUsage") -> "CpuUsage":
        return CpuUsage(self.cpu_s - before.cpu_s, self.waited_s - before.waited_s)


def own_usage() -> CpuUsage:
    """Of this process alone."""
    return CpuUsage(time.process_time(), _waited_s(os.getpid()))


def usage(pid: int) -> CpuUsage | None:
    """Of a process, its threads, those that ended too, and its living descendants; None where nobody can tell."""
    try:
        cpu_s = time.clock_gettime(~pid << 3 | 2)  # what clock_getcpuclockid(3) gives, to the nanosecond
        waited_s = _waited_s(pid)
        for task in (_PROC / str(pid) / "task").iterdir():
            for child in (task / "children").read_text().split():
                found = usage(int(child)) or CpuUsage(0.0, 0.0)
                cpu_s, waited_s = cpu_s + found.cpu_s, waited_s + found.waited_s
    except (OSError, ValueError, OverflowError, AttributeError):
        return None
    return CpuUsage(cpu_s, waited_s)


def _waited_s(pid: int) -> float:
    """0 where nobody counts it."""
    waited_s = 0.0
    with suppress(OSError, ValueError, IndexError):
        for task in (_PROC / str(pid) / "task").iterdir():
            waited_s += int((task / "schedstat").read_text().split()[1]) / _NANO
    return waited_s


def memory_bytes(pid: int) -> int | None:
    """What a process has in memory now; None where nobody can tell."""
    for name, wanted in (("smaps_rollup", "Rss:"), ("status", "VmRSS:")):
        with suppress(OSError, ValueError):
            for line in (_PROC / str(pid) / name).read_text().splitlines():
                if line.startswith(wanted):
                    return int(line.split()[1]) * _KIB
    return None


def listener(port: int) -> int | None:
    """The process of ours that listens on this port of this machine, if there is exactly one to be found."""
    if sys.platform != "linux":
        return None
    sockets = _listening(port)
    found = {pid for pid in _own_processes() if sockets and sockets & _sockets_of(pid)}
    return found.pop() if len(found) == 1 else None


def _listening(port: int) -> set[str]:
    sockets = set()
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in (_PROC / "net" / table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                    sockets.add(f"socket:[{fields[9]}]")
    return sockets


def _own_processes() -> list[int]:
    found = []
    for entry in _PROC.iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and entry.stat().st_uid == os.getuid():
                found.append(int(entry.name))
    return found


def _sockets_of(pid: int) -> set[str]:
    held = set()
    with suppress(OSError):
        for entry in (_PROC / str(pid) / "fd").iterdir():
            with suppress(OSError):
                held.add(os.readlink(entry))
    return held


def allow_many_connections() -> None:
    """As many as the system allows; what is set for a shell is often 1,024."""
    if sys.platform == "win32":
        return
    import resource  # not to be had on Windows

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # some systems allow less than they say
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


FULL: Final = 0.9
"""Of a core: who took more of it was busy all the time."""
_MILLION: Final = 1e6
_COUNT_MAX: Final = 5_000_000
_PACED_MIN: Final = 3


class Bottleneck(StrEnum):
    """Who kept it from being faster."""

    GATEWAY = "gateway"
    LOAD = "load"
    """Its core was full: what was measured is the least that the gateway can do."""
    NOBODY = "nobody"
    """Neither core was full: who waited for whom, or for the network, cannot be said."""
    NOT_THE_LOAD = "not the load"
    """The load had time left; nobody can see the gateway's core from here."""


class MeasurementPlan(Struct, frozen=True, kw_only=True):
    """How thoroughly: rounds of so long, after a warm-up. `server_pid`: where the gateway runs on this machine.

    Who waits `timeout_s` for what is due takes it for lost. `rate`: no sender sends more than so many envelopes a
    second, one at a time, for gateways that keep their limits; there is only the latency to see then.
    """

    rounds: int = 3
    round_s: float = 1.0
    warm_up_s: float = 1.0
    timeout_s: float = 5.0
    rate: float | None = None
    server_pid: int | None = None

    @property
    def every_s(self) -> float:
        """From one envelope of a sender to its next, at least."""
        return 0.0 if self.rate is None else 1 / self.rate

    def in_flight(self, window: int) -> str:
        """For a sentence: how many at once."""
        return f"{window} in flight" if self.rate is None else f"one at a time{self.pace}"

    @property
    def pace(self) -> str:
        """For a sentence, where there is a rate."""
        return "" if self.rate is None else f", {self.rate:g} a second"

    @property
    def paced(self) -> int:
        """Envelopes of a round, where there is a rate."""
        assert self.rate is not None, "as many as can be"
        return max(_PACED_MIN, int(self.rate * self.round_s))


class MeasuredRound(Struct, frozen=True, kw_only=True):
    """One measured phase. `count` is of what its outcome says; `deliveries` are frames received, proven to be all."""

    count: int
    deliveries: int
    wall_s: float
    load_cpu_s: float
    load_waited_s: float = 0.0
    server_cpu_s: float | None = None
    server_waited_s: float = 0.0
    bytes: int = 0
    latency_ms_p50: float | None = None
    latency_ms_p99: float | None = None
    server_grew_bytes: int | None = None

    @property
    def per_s(self) -> float:
        return self.count / self.wall_s

    @property
    def load_share(self) -> float:
        """Of a core, with the time it waited for one: how long it had something to do."""
        return (self.load_cpu_s + self.load_waited_s) / self.wall_s

    @property
    def server_share(self) -> float | None:
        if self.server_cpu_s is None:
            return None
        return (self.server_cpu_s + self.server_waited_s) / self.wall_s

    @property
    def cpu_us_each(self) -> float | None:
        """Of the gateway, for one of what is counted."""
        return None if self.server_cpu_s is None else self.server_cpu_s / self.count * _MILLION

    @property
    def cpu_s_per_million(self) -> float | None:
        """Of the gateway, for a million deliveries."""
        return None if self.server_cpu_s is None else self.server_cpu_s / self.deliveries * _MILLION

    @property
    def bottleneck(self) -> Bottleneck:
        if self.server_share is not None and self.server_share >= FULL:
            return Bottleneck.GATEWAY
        if self.load_share >= FULL:
            return Bottleneck.LOAD
        return Bottleneck.NOT_THE_LOAD if self.server_share is None else Bottleneck.NOBODY


class Spread(Struct, frozen=True):
    """A median, with the least and the most."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float | None]) -> "Spread | None":
        """None where there is none, or not for all."""
        known = list(values)
        found = [value for value in known if value is not None]
        if not found or len(found) < len(known):
            return None
        return cls(statistics.median(found), min(found), max(found))


class LoadResult(Struct, frozen=True, kw_only=True):
    """What came of a workload: `of` says what is counted, `about` what was done, in a few words."""

    workload: str
    of: str
    about: str
    rounds: tuple[MeasuredRound, ...]

    @property
    def counts_deliveries(self) -> bool:
        """What is counted is what is delivered: nothing goes to more than one."""
        return all(one.count == one.deliveries for one in self.rounds)

    @property
    def is_lower_bound(self) -> bool:
        """The load was the bottleneck, in any round: there is more to the gateway than this."""
        return any(one.bottleneck is Bottleneck.LOAD for one in self.rounds)


class Meter:
    """Reads the clocks of both sides at the beginning and the end of a phase."""

    def __init__(self, server_pid: int | None) -> None:
        self._pid = server_pid
        self._collects = False

    def start(self) -> None:
        gc.collect()
        self._collects = gc.isenabled()
        gc.disable()  # its pauses would be the load's, not the gateway's
        self._server = None if self._pid is None else usage(self._pid)
        self._own = own_usage()
        self._began_s = time.perf_counter()

    def stop(
        self, count: int, deliveries: int, *, transferred: int = 0, latencies_s: Sequence[float] = ()
    ) -> MeasuredRound:
        wall_s = time.perf_counter() - self._began_s
        own = own_usage().since(self._own)
        now = None if self._pid is None else usage(self._pid)
        self.give_up()
        server = None if now is None or self._server is None else now.since(self._server)
        p50, p99 = quantiles_ms(latencies_s)
        return MeasuredRound(
            count=count,
            deliveries=deliveries,
            wall_s=wall_s,
            load_cpu_s=own.cpu_s,
            load_waited_s=own.waited_s,
            server_cpu_s=None if server is None else server.cpu_s,
            server_waited_s=0.0 if server is None else server.waited_s,
            bytes=transferred,
            latency_ms_p50=p50,
            latency_ms_p99=p99,
        )

    def give_up(self) -> None:
        """The phase came to nothing, or is over."""
        if self._collects:
            gc.enable()


def quantiles_ms(latencies_s: Sequence[float]) -> tuple[float | None, float | None]:
    """The median and the 99th percentile."""
    if not latencies_s:
        return None, None
    ordered = sorted(latencies_s)
    return ordered[len(ordered) // 2] * 1000, ordered[len(ordered) * 99 // 100] * 1000


async def envelopes_for(
    phase: Callable[[int], Awaitable[object]], plan: MeasurementPlan, *, at_least: int = 1
) -> int:
    """Warm up with ever larger phases; return how many a phase needs to take as long as a round should."""
    number, took_s = at_least, 0.0
    until_s = time.perf_counter() + plan.warm_up_s
    while True:
        began_s = time.perf_counter()
        await phase(number)
        now_s = time.perf_counter()
        took_s = now_s - began_s
        if now_s >= until_s:
            break
        if took_s < plan.warm_up_s / 4:
            number = min(2 * number, _COUNT_MAX)
    wanted = int(number * plan.round_s / max(took_s, 1e-6))
    return max(at_least, min(wanted, _COUNT_MAX))
