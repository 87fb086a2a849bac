"""The load's hot part in Python, on uvloop: for machines without a C compiler. engine.c does the same, for less.

Receivers count bytes, senders keep a window in flight.
"""

import asyncio
import itertools
import socket
import time
from array import array
from collections.abc import Iterator
from typing import cast

from bench.dialects import Dialect, Seat, delivery_bytes, frames_of
from bench.engines import LoadFailed
from bench.workloads import Pace, Workload

__all__ = ["PythonEngine"]

IDLE = 1 << 62  # bytes to come while nothing is being sent: presence never completes a phase


class PythonEngine:
    """An Engine of asyncio's protocols."""

    def __init__(self, workload: Workload, dialect: Dialect) -> None:
        self._workload, self._dialect = workload, dialect
        self._delivery_bytes = delivery_bytes(dialect, workload)
        loop = asyncio.get_running_loop()
        self._phase = Turns(loop) if workload.pace is Pace.ONE_AT_A_TIME else Phase(loop)
        self._receivers: list[Receiver] = []
        self._senders: list[Sender] = []

    async def add(self, seat: Seat, connection: socket.socket) -> None:
        if seat.member < self._workload.senders:
            echo_bytes = self._delivery_bytes * self._workload.senders
            frames = frames_of(self._dialect, seat)
            receiver: Receiver = Sender(self._phase, frames, self._workload.window, echo_bytes)
            self._senders.append(cast(Sender, receiver))
        else:
            receiver = Receiver(self._phase)
        self._receivers.append(receiver)
        await asyncio.get_running_loop().create_connection(lambda: receiver, sock=connection)

    async def quiet(self, seconds: float) -> None:
        seen = -1
        while seen != (now := sum(self.received)):
            seen = now
            await asyncio.sleep(seconds)

    async def run(self, envelopes: int, stall_s: float) -> None:
        for receiver in self._receivers:
            receiver.received = 0
        everybody = self._delivery_bytes * len(self._receivers)
        if isinstance(self._phase, Turns):
            self._phase.begin(self._senders[0], envelopes, everybody)
        else:
            self._phase.start(envelopes * self._workload.senders * everybody)
            for sender in self._senders:
                sender.start(envelopes)
        left = -1
        while not self._phase.over.done():
            if left == self._phase.left:
                raise LoadFailed(f"stalled: {left:,} bytes still to come after {stall_s:g} s of silence")
            left = self._phase.left
            await asyncio.wait([self._phase.over], timeout=stall_s)
        await self._phase.over

    @property
    def received(self) -> list[int]:
        return [receiver.received for receiver in self._receivers]

    @property
    def latencies_s(self) -> list[float]:
        return list(self._phase.latencies_s)

    @property
    def idle_s(self) -> float:
        return 0.0  # it sleeps

    async def look(self, stall_s: float) -> list[bytes]:
        self._phase.kept = {receiver: bytearray() for receiver in self._receivers}
        await self.run(1, stall_s)
        kept, self._phase.kept = self._phase.kept, None
        return [bytes(kept[receiver]) for receiver in self._receivers]


class Phase:
    """What all connections share while envelopes are in flight: the bytes still to come."""

    buffer = memoryview(bytearray(1 << 18))  # all connections read into it: nobody looks at the bytes

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.left = IDLE
        self.over = loop.create_future()
        self.latencies_s = array("d")
        self.kept: dict[Receiver, bytearray] | None = None
        """What each got, where it is to be looked at."""

    def start(self, bytes_due: int) -> None:
        self.left = bytes_due
        self.over = self._loop.create_future()

    def complete(self) -> None:
        self.left = IDLE
        if not self.over.done():
            self.over.set_result(None)

    def fail(self, why: str) -> None:
        if not self.over.done():
            self.over.set_exception(LoadFailed(why))


class Receiver(asyncio.BufferedProtocol):
    """A member that only counts."""

    transport: asyncio.Transport

    def __init__(self, phase: Phase) -> None:
        self.phase = phase
        self.received = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's own is no subclass

    def connection_lost(self, error: Exception | None) -> None:
        self.phase.fail(f"connection lost in the middle: {error or 'closed by the server'}")

    def get_buffer(self, _size_hint: int) -> memoryview:
        return Phase.buffer

    def buffer_updated(self, count: int) -> None:
        self.received += count
        phase = self.phase
        if phase.kept is not None:
            phase.kept[self].extend(phase.buffer[:count])
        phase.left -= count
        if phase.left <= 0:
            phase.complete()


class Sender(Receiver):
    """A member that also talks, and keeps a window in flight.

    Where several talk in a space, its own echoes are taken to be its share of what it received.
    """

    def __init__(self, phase: Phase, frames: Iterator[bytes], window: int, echo_bytes: int) -> None:
        super().__init__(phase)
        self.frames = frames
        self.window = window
        self.echo_bytes = echo_bytes
        self.sent = self.quota = 0

    def start(self, envelopes: int) -> None:
        self.sent, self.quota = 0, envelopes
        self.refill()

    def refill(self) -> None:
        due = min(self.received // self.echo_bytes + self.window, self.quota) - self.sent
        if due > 0:
            self.sent += due
            self.transport.write(b"".join(itertools.islice(self.frames, due)))

    def buffer_updated(self, count: int) -> None:
        super().buffer_updated(count)
        self.refill()


class Turns(Phase):
    """One envelope at a time: the next leaves when the last receiver has this one."""

    def begin(self, sender: Sender, turns: int, turn_bytes: int) -> None:
        self.sender, self.turns, self.turn_bytes = sender, turns, turn_bytes
        self.latencies_s = array("d")
        self.over = self._loop.create_future()
        self._next()

    def _next(self) -> None:
        self.left = self.turn_bytes
        self.sent_at = time.perf_counter()
        self.sender.transport.write(next(self.sender.frames))

    def complete(self) -> None:
        self.latencies_s.append(time.perf_counter() - self.sent_at)
        if len(self.latencies_s) < self.turns and not self.over.done():
            self._next()
        else:
            super().complete()
