"""One candidate under one workload: its server, its load, and the phases they are told to have.

All candidates of a workload are up at the same time, and idle but for the one whose turn it is: so that a round
takes seconds, and what is compared is measured within seconds.
"""

import os
import select
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import msgspec

from bench.candidates import Candidate
from bench.load import EngineKind, LoadOrder, Measured, PhaseOrder
from bench.server import Server, ServerFailed, starting
from bench.workloads import Workload

__all__ = ["Cell", "CellFailed", "open_cells"]

ROOT = Path(__file__).parents[1]
JOIN_TIMEOUT_S = 90
PHASE_TIMEOUT_S = 120


class CellFailed(Exception):
    """There is no figure; why not is the text."""


@dataclass(frozen=True)
class Cell:
    """A candidate's server with everybody joined."""

    candidate: Candidate
    server: Server
    load: subprocess.Popen[bytes]

    def wait_until_joined(self) -> None:
        """Return when all are in their spaces, and one envelope of each sender was seen to arrive.

        Raises:
            CellFailed: it did not come to that.
        """
        self._hear(JOIN_TIMEOUT_S)

    def warm_up(self, seconds: float) -> None:
        """Let the load drive the server for so long, and learn how fast it is.

        Raises:
            CellFailed: not everything was delivered.
        """
        self._ask(PhaseOrder(warm_up_s=seconds))

    def measure(self, seconds: float) -> Measured:
        """Let the load drive the server for about so long, and measure.

        Raises:
            CellFailed: not everything was delivered.
        """
        return msgspec.json.decode(self._ask(PhaseOrder(measure_s=seconds)), type=Measured)

    def _ask(self, order: PhaseOrder) -> bytes:
        assert self.load.stdin is not None
        with suppress(BrokenPipeError):  # it has ended, and said why
            self.load.stdin.write(msgspec.json.encode(order) + b"\n")
            self.load.stdin.flush()
        return self._hear(PHASE_TIMEOUT_S)

    def _hear(self, timeout_s: float) -> bytes:
        assert self.load.stdout is not None
        assert self.load.stderr is not None
        if not select.select([self.load.stdout], [], [], timeout_s)[0]:
            raise CellFailed(f"no figure after {timeout_s:.0f} s")
        line = self.load.stdout.readline()
        if not line:
            raise CellFailed(self.load.stderr.read().decode(errors="replace").strip()[-500:])
        return line


@contextmanager
def open_cells(
    candidates: Sequence[Candidate],
    workload: Workload,
    cores: Sequence[int],
    failed: Callable[[Candidate, str], None],
    *,
    engine: EngineKind = EngineKind.C,
    stall_s: float = 10.0,
) -> Iterator[list[Cell]]:
    """Start every candidate and its load; yield those with everybody joined, and stop all at the end.

    A candidate that does not come so far is left out, and `failed` is told why.
    """
    with ExitStack() as stack:
        servers = [(one, stack.enter_context(starting(one, workload, cores[0]))) for one in candidates]
        stack.callback(_end_all, [server for _, server in servers])
        cells = []
        for candidate, server in servers:
            try:
                server.wait_until_ready()
            except ServerFailed as error:
                failed(candidate, str(error))
            else:
                cells.append((candidate, server))
        # not before all servers listen: the loads' own ports could be taken for theirs
        joining = []
        for candidate, server in cells:
            order = LoadOrder(
                workload,
                candidate.dialect,
                server.port,
                server.pid,
                core=cores[1],
                server_core=cores[0],
                engine=engine,
                stall_s=stall_s,
            )
            joining.append(Cell(candidate, server, stack.enter_context(_load(order))))
        joined = []
        for cell in joining:
            try:
                cell.wait_until_joined()
            except CellFailed as error:
                failed(cell.candidate, str(error))
            else:
                joined.append(cell)
        yield joined


def _end_all(servers: list[Server]) -> None:
    """Their loads are gone; let them end side by side, before each is waited for."""
    for server in servers:
        server.process.terminate()


@contextmanager
def _load(order: LoadOrder) -> Iterator[subprocess.Popen[bytes]]:
    load = subprocess.Popen(
        [sys.executable, "-m", "bench.load"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: os.sched_setaffinity(0, {order.core}),
    )
    try:
        assert load.stdin is not None
        with suppress(BrokenPipeError):
            load.stdin.write(msgspec.json.encode(order) + b"\n")
            load.stdin.flush()
        yield load
    finally:
        load.kill()
        load.wait()
        for pipe in (load.stdin, load.stdout, load.stderr):
            _close(pipe)


def _close(pipe: IO[bytes] | None) -> None:
    assert pipe is not None
    with suppress(BrokenPipeError):
        pipe.close()
