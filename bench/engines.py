"""The load's hot part: what it must do, and the one in C that does it. members.py has the one in Python."""

import ctypes
import socket
from pathlib import Path
from typing import Protocol

from bench.compiled import compiled
from bench.dialects import Dialect, Seat, delivery_bytes, template
from bench.workloads import Pace, Workload

__all__ = ["CEngine", "Engine", "LoadFailed", "engine_ready"]

STALLED, LOST = 1, 2


class LoadFailed(Exception):
    """The server did not deliver what it should have."""


class Engine(Protocol):
    """Drives connections that have joined: sends, keeps windows full, counts bytes."""

    async def add(self, seat: Seat, connection: socket.socket) -> None:
        """Take over a connection; it sends if its seat is a sender's."""
        ...

    async def quiet(self, seconds: float) -> None:
        """Read what comes until nothing has come for so long."""
        ...

    async def run(self, envelopes: int, stall_s: float) -> None:
        """Send so many envelopes from each sender; return when as many bytes have come as are due for them.

        Raises:
            LoadFailed: nothing came for so long, or a connection was lost.
        """
        ...

    async def look(self, stall_s: float) -> list[bytes]:
        """Run with one envelope from each sender; return what each member got, in the order they were added."""
        ...

    @property
    def received(self) -> list[int]:
        """Bytes that each got since the last run began, in the order they were added."""
        ...

    @property
    def latencies_s(self) -> list[float]:
        """Of the last run, where one envelope is sent at a time."""
        ...

    @property
    def idle_s(self) -> float:
        """CPU time so far that it had nothing to do and looked all the same, instead of going to sleep."""
        ...


class CEngine:
    """An Engine of epoll and C.

    Raises:
        CannotCompile: it cannot be made here.
    """

    def __init__(self, workload: Workload, dialect: Dialect) -> None:
        self._library = _library()
        self._workload, self._dialect = workload, dialect
        self._delivery_bytes = delivery_bytes(dialect, workload)
        frame, number_at = template(dialect, Seat(workload, 0, 0))
        self._one_at_a_time = workload.pace is Pace.ONE_AT_A_TIME
        self._engine = ctypes.c_void_p(
            self._library.engine_new(
                ctypes.c_size_t(workload.connections),
                ctypes.c_size_t(len(frame)),
                ctypes.c_size_t(number_at),
                dialect.mask,
                ctypes.c_uint64(workload.window),
                ctypes.c_uint64(self._delivery_bytes * workload.senders),
            )
        )
        self._connections: list[socket.socket] = []
        self._latencies_s: list[float] = []

    async def add(self, seat: Seat, connection: socket.socket) -> None:
        self._connections.append(connection)
        sends = seat.member < self._workload.senders
        frame = template(self._dialect, seat).frame if sends else None
        self._library.engine_add(self._engine, connection.fileno(), frame)

    async def quiet(self, seconds: float) -> None:
        self._judge(self._library.engine_quiet(self._engine, int(seconds * 1000)), seconds)

    async def run(self, envelopes: int, stall_s: float) -> None:
        # it blocks the loop, and may: nothing else runs in this process
        everybody = self._delivery_bytes * len(self._connections)
        count, stall_ms = ctypes.c_uint64(envelopes), int(stall_s * 1000)
        if self._one_at_a_time:
            took_s = (ctypes.c_double * envelopes)()
            due_each = ctypes.c_int64(everybody)
            ended = self._library.engine_turns(self._engine, count, due_each, stall_ms, took_s)
            self._latencies_s = list(took_s)
        else:
            due = ctypes.c_int64(envelopes * self._workload.senders * everybody)
            ended = self._library.engine_run(self._engine, count, due, stall_ms)
        self._judge(ended, stall_s)

    async def look(self, stall_s: float) -> list[bytes]:
        most = 2 * self._delivery_bytes * self._workload.senders
        self._library.engine_keep(self._engine, ctypes.c_size_t(most))
        await self.run(1, stall_s)
        kept = []
        for which in range(len(self._connections)):
            into = ctypes.create_string_buffer(most)
            length = self._library.engine_kept(self._engine, ctypes.c_size_t(which), into)
            kept.append(into.raw[:length])
        self._library.engine_keep(self._engine, ctypes.c_size_t(0))
        return kept

    @property
    def received(self) -> list[int]:
        ask = self._library.engine_received
        return [ask(self._engine, ctypes.c_size_t(which)) for which in range(len(self._connections))]

    @property
    def latencies_s(self) -> list[float]:
        return self._latencies_s

    @property
    def idle_s(self) -> float:
        return float(self._library.engine_idle_s(self._engine))

    def _judge(self, ended: int, stall_s: float) -> None:
        if ended == STALLED:
            left = self._library.engine_left(self._engine)
            raise LoadFailed(f"stalled: {left:,} bytes still to come after {stall_s:g} s of silence")
        if ended == LOST:
            raise LoadFailed("connection lost in the middle: closed by the server")


def engine_ready() -> Path:
    """Compile the one in C, if that was not done yet.

    Raises:
        CannotCompile: it cannot be made here.
    """
    return compiled(Path(__file__).parent / "engine.c", "-shared", "-fPIC")


def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(str(engine_ready()))
    library.engine_new.restype = ctypes.c_void_p
    library.engine_received.restype = ctypes.c_uint64
    library.engine_left.restype = ctypes.c_int64
    library.engine_idle_s.restype = ctypes.c_double
    library.engine_kept.restype = ctypes.c_size_t
    return library
