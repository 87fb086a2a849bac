"""A candidate as a process on a core of its own, and the CPU time it has used."""

import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.candidates import Candidate
from bench.workloads import Workload

__all__ = ["OthersOn", "Server", "ServerFailed", "cpu_seconds", "free_port", "running", "starting"]

READY_TIMEOUT_S = 30
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_ports_given: set[int] = set()


class ServerFailed(Exception):
    """A candidate did not start; the end of what it printed is in the text."""


@dataclass(frozen=True)
class Server:
    """A candidate as a process, from its start on."""

    process: subprocess.Popen[bytes]
    port: int
    printed: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    def wait_until_ready(self) -> None:
        """Return when it takes connections.

        Raises:
            ServerFailed: it ended, or took no connection within 30 s.
        """
        deadline = time.monotonic() + READY_TIMEOUT_S
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.02)
        raise ServerFailed(f"not listening: {self.printed.read_text(errors='replace').strip()[-500:]}")


def cpu_seconds(pid: int) -> float:
    """User and system time of a process, all its threads, those that ended too, and its living descendants."""
    seconds = time.clock_gettime(~pid << 3 | 2)  # what clock_getcpuclockid(3) gives, to the nanosecond
    children: list[str] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        children += (task / "children").read_text().split()
    return seconds + sum(cpu_seconds(int(child)) for child in children)


class OthersOn:
    """How busy two cores are with something else than the load, on the first, and the server, on the second."""

    def __init__(self, *cores: int) -> None:
        self._cores = cores
        self._before = self._read()

    def share(self, *used_s: float) -> float:
        """Since the start, of the core that was busier with others; what our own processes used is told."""
        shares = []
        for before, now, used in zip(self._before, self._read(), used_s, strict=True):
            busy_s, all_s = now[0] - before[0], now[1] - before[1]
            shares.append(max(busy_s - used, 0.0) / all_s if all_s else 0.0)
        return max(shares)

    def _read(self) -> list[tuple[float, float]]:
        """Seconds that each core has been busy, and seconds that it has been there."""
        lines = dict(line.split(maxsplit=1) for line in Path("/proc/stat").read_text().splitlines() if line)
        found = []
        for core in self._cores:
            ticks = [int(word) for word in lines[f"cpu{core}"].split()[:8]]  # the rest is in them already
            idle = ticks[3] + ticks[4]
            found.append(((sum(ticks) - idle) / TICKS_PER_S, sum(ticks) / TICKS_PER_S))
        return found


@contextmanager
def starting(candidate: Candidate, workload: Workload, core: int) -> Iterator[Server]:
    """Start a candidate for one workload, pinned to a core; stop it at the end."""
    with tempfile.TemporaryDirectory(prefix="mew-bench-") as folder:
        scratch = Path(folder)
        port = free_port()
        printed = scratch / "server.log"
        with printed.open("wb") as log:
            process = subprocess.Popen(
                candidate.command(workload, port, scratch),
                cwd=scratch,
                stdout=log,
                stderr=subprocess.STDOUT,
                preexec_fn=lambda: os.sched_setaffinity(0, {core}),
            )
        try:
            yield Server(process, port, printed)
        finally:
            _stop(process)


@contextmanager
def running(candidate: Candidate, workload: Workload, core: int) -> Iterator[Server]:
    """Start a candidate and wait until it takes connections; stop it at the end.

    Raises:
        ServerFailed: it ended, or took no connection within 30 s.
    """
    with starting(candidate, workload, core) as server:
        server.wait_until_ready()
        yield server


def free_port() -> int:
    """A port that nobody listens on now, another each time."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        if port not in _ports_given:
            _ports_given.add(port)
            return port


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
