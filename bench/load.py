"""The load: a process of its own, on a core of its own, that joins one server and drives it when told to.

Members do nothing but add up bytes: every delivery of a run has the same length, so bytes are deliveries, and a
phase counts only if each got exactly the bytes due to it. Sent frames are copies of prepared ones. A measured phase
starts and ends with nothing in flight, so that no cost is cut off at either end.

Run as `python -m bench.load`, with a LoadOrder as a line of JSON on standard input. It answers with a line when all
have joined; then each line `{"warm_up_s": …}` or `{"measure_s": …}` is a phase, answered by a line with what was
measured. Between phases it waits, its connections open and idle.
"""

import asyncio
import gc
import os
import socket
import sys
import time
from enum import StrEnum

import msgspec
import uvloop

from bench.dialects import DIALECTS, Seat, delivery_bytes, due_to
from bench.engines import CEngine, Engine, LoadFailed
from bench.members import PythonEngine
from bench.server import OthersOn, cpu_seconds
from bench.workloads import Workload

__all__ = ["EngineKind", "LoadOrder", "Measured", "PhaseOrder"]

CONNECTING_AT_ONCE = 32
JOIN_TIMEOUT_S = 20.0
QUIET_S = 0.4
AFTER_S = 0.02
TRIES = 3
WINDOWS_MIN = 4
LONGER = 2


class EngineKind(StrEnum):
    """Which hot part drives the connections."""

    C = "c"
    PYTHON = "python"


class LoadOrder(msgspec.Struct, frozen=True):
    """What to do to which server."""

    workload: Workload
    dialect: str
    port: int
    server_pid: int
    core: int
    server_core: int
    engine: EngineKind = EngineKind.C
    stall_s: float = 10.0
    """Give up when not a byte has come for so long."""


class PhaseOrder(msgspec.Struct, frozen=True):
    """How long to drive it now: to learn how fast it is, or to measure."""

    warm_up_s: float = 0.0
    measure_s: float = 0.0


class Measured(msgspec.Struct, frozen=True):
    """One measured phase of one server."""

    envelopes: int
    deliveries: int
    wall_s: float
    server_cpu_s: float
    load_cpu_s: float
    others_share: float = 0.0
    """Of the busier of both cores, what neither the server nor the load used: no quiet machine, no quiet figures."""
    latency_ms_p50: float | None = None
    latency_ms_p99: float | None = None

    @property
    def cost(self) -> float:
        """CPU-seconds of the server per million deliveries."""
        return self.server_cpu_s / self.deliveries * 1e6

    @property
    def server_share(self) -> float:
        return self.server_cpu_s / self.wall_s

    @property
    def load_share(self) -> float:
        return self.load_cpu_s / self.wall_s


class Load:
    """All connections of a workload."""

    def __init__(self, order: LoadOrder) -> None:
        self.order = order
        self.workload = order.workload
        self.dialect = DIALECTS[order.dialect]
        make = CEngine if order.engine is EngineKind.C else PythonEngine
        self.engine: Engine = make(self.workload, self.dialect)
        self.delivery_bytes = delivery_bytes(self.dialect, self.workload)
        self.seats: list[Seat] = []
        self.envelopes_per_s = 0.0
        """Of each sender, as seen in the warm-up."""

    @property
    def senders(self) -> int:
        return self.workload.spaces * self.workload.senders

    async def connect(self) -> None:
        """Join every member to its space, and wait until welcomes and presence have all come."""
        gate = asyncio.Semaphore(CONNECTING_AT_ONCE)

        async def join(seat: Seat) -> None:
            async with gate, asyncio.timeout(JOIN_TIMEOUT_S):
                await self._join(seat)

        try:
            async with asyncio.TaskGroup() as joins:
                for space in range(self.workload.spaces):
                    for member in range(self.workload.members):
                        joins.create_task(join(Seat(self.workload, space, member)))
        except* (LoadFailed, OSError) as refused:  # a TimeoutError is an OSError
            raise LoadFailed(str(refused.exceptions[0]) or "a member could not join in time") from refused
        await asyncio.sleep(self.dialect.settle_s)

    async def _join(self, seat: Seat) -> None:
        loop = asyncio.get_running_loop()
        connection = socket.socket()
        connection.settimeout(0)
        await loop.sock_connect(connection, ("127.0.0.1", self.order.port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for write, start, end in self.dialect.join(seat):
            await loop.sock_sendall(connection, write)
            reply = b""
            while end not in reply:
                got = await loop.sock_recv(connection, 1 << 16)
                reply += got
                if not got or not reply.startswith(start[: len(reply)]):
                    raise LoadFailed(f"{seat.number} was not let into {seat.space_name}: {reply[:300]!r}")
        # what came after the reply is presence, which is drained anyway
        self.seats.append(seat)
        await self.engine.add(seat, connection)

    async def check(self, envelopes: int) -> None:
        """See that each member got just the bytes due to it, and that none come after them.

        Raises:
            LoadFailed: somebody got more or less.
        """
        await self.engine.quiet(AFTER_S)
        due = envelopes * self.workload.senders * self.delivery_bytes
        wrong = [received for received in self.engine.received if received != due]
        if wrong:
            raise LoadFailed(
                f"{len(wrong)} receivers got other bytes than the {due:,} due, e.g. {wrong[0]:,}"
            )

    async def prove_delivery(self) -> None:
        """Send one envelope from each sender, and see that everybody got just those of its space.

        Presence may still be on its way where the machine is busy: it has three tries.

        Raises:
            LoadFailed: somebody got something else.
        """
        wrong: list[tuple[Seat, bytes]] = []
        for number in range(TRIES):
            await self.engine.quiet(QUIET_S)
            kept = await self.engine.look(self.order.stall_s)
            wrong = self._wrong(kept, number)
            if not wrong:
                return
        raise LoadFailed(f"{wrong[0][0].number} got something else than was due: {wrong[0][1][:120]!r}")

    def _wrong(self, kept: list[bytes], number: int) -> list[tuple[Seat, bytes]]:
        """Who did not get just the envelopes of this number in its space, and what it got."""
        due = {}
        for space in range(self.workload.spaces):
            senders = [Seat(self.workload, space, member) for member in range(self.workload.senders)]
            due[space] = sorted(due_to(self.dialect, senders, number))
        size = self.delivery_bytes
        return [
            (seat, got)
            for seat, got in zip(self.seats, kept, strict=True)
            if sorted(got[at : at + size] for at in range(0, len(got), size)) != due[seat.space]
        ]

    async def warm_up(self, seconds: float) -> None:
        """Drive the server for so long, and learn how fast it is."""
        envelopes, took_s = 1, 0.0
        until = time.perf_counter() + seconds
        while time.perf_counter() < until or took_s < seconds / 5:
            began = time.perf_counter()
            await self.engine.run(envelopes, self.order.stall_s)
            took_s = time.perf_counter() - began
            await self.check(envelopes)
            self.envelopes_per_s = envelopes / took_s
            if took_s < seconds / 5:
                envelopes *= 2 if took_s > seconds / 50 else 8
        gc.freeze()
        gc.disable()

    async def measure(self, seconds: float) -> Measured:
        """Drive it for about so long, and measure.

        Raises:
            LoadFailed: not everything was delivered, or the server is gone.
        """
        usual = self.envelopes_per_s * seconds
        # within few windows there is less to put together than there would be: rather take longer, within reason
        envelopes = max(int(max(usual, min(WINDOWS_MIN * self.workload.window, LONGER * usual))), 1)
        others = OthersOn(self.order.core, self.order.server_core)
        server_cpu_s, load_cpu_s = cpu_seconds(self.order.server_pid), time.process_time()
        began, idle_s = time.perf_counter(), self.engine.idle_s
        await self.engine.run(envelopes, self.order.stall_s)
        wall_s = time.perf_counter() - began
        load_cpu_s = time.process_time() - load_cpu_s
        server_cpu_s = cpu_seconds(self.order.server_pid) - server_cpu_s
        others_share = others.share(load_cpu_s, server_cpu_s)
        load_cpu_s -= self.engine.idle_s - idle_s
        await self.check(envelopes)
        self.envelopes_per_s = envelopes / wall_s
        latencies_ms = sorted(second * 1000 for second in self.engine.latencies_s)
        sent = envelopes * self.senders
        return Measured(
            envelopes=sent,
            deliveries=sent * self.workload.members,
            wall_s=wall_s,
            server_cpu_s=server_cpu_s,
            load_cpu_s=load_cpu_s,
            others_share=others_share,
            latency_ms_p50=latencies_ms[len(latencies_ms) // 2] if latencies_ms else None,
            latency_ms_p99=latencies_ms[len(latencies_ms) * 99 // 100] if latencies_ms else None,
        )


async def drive(order: LoadOrder) -> None:
    load = Load(order)
    await load.connect()
    await load.prove_delivery()
    _say({"joined": len(load.seats)})
    # reading blocks the loop, and may: between phases nothing is in flight
    while line := sys.stdin.buffer.readline():
        asked = msgspec.json.decode(line, type=PhaseOrder)
        if asked.warm_up_s:
            await load.warm_up(asked.warm_up_s)
            _say({"envelopes_per_s": load.envelopes_per_s})
        else:
            _say(await load.measure(asked.measure_s))


def _say(reply: object) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(reply) + b"\n")
    sys.stdout.buffer.flush()


def main() -> int:
    order = msgspec.json.decode(sys.stdin.buffer.readline(), type=LoadOrder)
    os.sched_setaffinity(0, {order.core})
    try:
        uvloop.run(drive(order))
    except (LoadFailed, OSError) as failed:
        print(failed, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
