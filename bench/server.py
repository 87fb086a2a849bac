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

__all__ = ["Server", "ServerFailed", "cpu_seconds", "free_port", "running"]

READY_TIMEOUT_S = 30
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class ServerFailed(Exception):
    """A candidate did not start; the end of what it printed is in the text."""


@dataclass(frozen=True)
class Server:
    pid: int
    port: int


def cpu_seconds(pid: int) -> float:
    """User and system time of a process, all its threads and its living descendants."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    children: list[str] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        children += (task / "children").read_text().split()
    return ticks / TICKS_PER_S + sum(cpu_seconds(int(child)) for child in children)


@contextmanager
def running(candidate: Candidate, workload: Workload, core: int) -> Iterator[Server]:
    """Start a candidate for one workload, pinned to a core; stop it at the end.

    Raises:
        ServerFailed: it ended, or took no connection within 30 s.
    """
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
            _wait_until_ready(process, port, printed)
            yield Server(process.pid, port)
        finally:
            _stop(process)


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_ready(process: subprocess.Popen[bytes], port: int, printed: Path) -> None:
    deadline = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.02)
    raise ServerFailed(f"not listening: {printed.read_text(errors='replace').strip()[-500:]}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
