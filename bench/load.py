"""The load: a process of its own, on a core of its own, that drives one server and prints one JSON line.

Receivers do nothing but add up bytes: every envelope of a run has the same length, so bytes are deliveries,
and a run counts only if each receiver got exactly the bytes due to it. Sent frames are put together from
masked parts made beforehand. A measured phase starts and ends with nothing in flight, so that no cost is cut
off at either end.

Run as `python -m bench.load`, with a LoadOrder as JSON on standard input.
"""

import asyncio
import gc
import itertools
import os
import socket
import sys
import time
from array import array
from collections.abc import Iterator
from typing import cast

import msgspec
import uvloop

from bench.server import cpu_seconds
from bench.workloads import ENVELOPE_BYTES, Pace, Workload

__all__ = ["LoadOrder", "Measured"]

FRAME_BYTES = 4 + ENVELOPE_BYTES  # as a server sends it: two bytes, two of length, no mask
MASK = b"\x5a\xc3\x17\xe8"
CONNECTING_AT_ONCE = 32
QUIET_S = 0.4
STALL_S = 60.0
IDLE = 1 << 62  # bytes to come while nothing is being sent: presence never completes a phase


class LoadOrder(msgspec.Struct, frozen=True):
    """What to do to which server."""

    workload: Workload
    port: int
    server_pid: int
    core: int
    warm_up_s: float
    measure_s: float


class Measured(msgspec.Struct, frozen=True):
    """One measured phase of one server."""

    envelopes: int
    deliveries: int
    wall_s: float
    server_cpu_s: float
    load_cpu_s: float
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


class LoadFailed(Exception):
    """The server did not deliver what it should have."""


class Phase:
    """What all connections share while envelopes are in flight: the bytes still to come."""

    buffer = memoryview(bytearray(1 << 18))  # all connections read into it: nobody looks at the bytes

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.left = IDLE
        self.over = loop.create_future()
        self.latencies_s = array("d")

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
        phase.left -= count
        if phase.left <= 0:
            phase.complete()


class Sender(Receiver):
    """A member that also talks, and keeps a window in flight.

    Where several talk in a space, its own echoes are taken to be its share of what it received.
    """

    def __init__(self, phase: Phase, frames: Iterator[bytes], workload: Workload) -> None:
        super().__init__(phase)
        self.frames = frames
        self.window = workload.window
        self.echo_bytes = FRAME_BYTES * workload.senders
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


class Load:
    """All connections of a workload."""

    def __init__(self, order: LoadOrder) -> None:
        self.workload = order.workload
        self.port = order.port
        loop = asyncio.get_running_loop()
        self.phase = Turns(loop) if self.workload.pace is Pace.ONE_AT_A_TIME else Phase(loop)
        self.receivers: list[Receiver] = []
        self.senders: list[Sender] = []

    async def connect(self) -> None:
        """Join every member to its space."""
        gate = asyncio.Semaphore(CONNECTING_AT_ONCE)

        async def join(space: str, member: int) -> None:
            async with gate:
                await self._join(space, member)

        try:
            async with asyncio.TaskGroup() as joins:
                for space in self.workload.space_names:
                    for member in range(self.workload.members):
                        joins.create_task(join(space, member))
        except* (LoadFailed, OSError) as refused:
            raise LoadFailed(str(refused.exceptions[0])) from refused

    async def _join(self, space: str, member: int) -> None:
        loop = asyncio.get_running_loop()
        connection = socket.socket()
        connection.settimeout(0)
        await loop.sock_connect(connection, ("127.0.0.1", self.port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await loop.sock_sendall(connection, upgrade_request(space, member, self.port))
        head = b""
        while b"\r\n\r\n" not in head:
            got = await loop.sock_recv(connection, 1 << 16)
            head += got
            if not got or not head.startswith(b"HTTP/1.1 101"[: len(head)]):
                raise LoadFailed(f"p{member} was not let into {space}: {head[:300]!r}")
        # what came after the head is presence, which is drained anyway
        if member < self.workload.senders:
            sender = Sender(self.phase, frames_of(member), self.workload)
            self.senders.append(sender)
            self.receivers.append(sender)
            await loop.create_connection(lambda: sender, sock=connection)
        else:
            receiver = Receiver(self.phase)
            self.receivers.append(receiver)
            await loop.create_connection(lambda: receiver, sock=connection)

    async def drain(self) -> None:
        """Wait until welcomes and presence have all come."""
        seen = -1
        while seen != (now := sum(receiver.received for receiver in self.receivers)):
            seen = now
            await asyncio.sleep(QUIET_S)

    async def run(self, envelopes: int) -> None:
        """Send so many envelopes from each sender; return when everybody has them all.

        Raises:
            LoadFailed: a receiver got more or less than what was due to it.
        """
        due = envelopes * self.workload.senders * FRAME_BYTES
        for receiver in self.receivers:
            receiver.received = 0
        if isinstance(self.phase, Turns):
            self.phase.begin(self.senders[0], envelopes, FRAME_BYTES * len(self.receivers))
        else:
            self.phase.start(due * len(self.receivers))
            for sender in self.senders:
                sender.start(envelopes)
        try:
            async with asyncio.timeout(STALL_S):
                await self.phase.over
        except TimeoutError as late:
            raise LoadFailed(
                f"stalled: {self.phase.left:,} bytes still to come after {STALL_S:.0f} s"
            ) from late
        wrong = [receiver.received for receiver in self.receivers if receiver.received != due]
        if wrong:
            raise LoadFailed(
                f"{len(wrong)} receivers got other bytes than the {due:,} due, e.g. {wrong[0]:,}"
            )

    async def prove_delivery(self) -> None:
        """Send one envelope from each sender and look at what came out."""
        await self.run(1)
        opcode_and_length = b"\x81\x7e" + ENVELOPE_BYTES.to_bytes(2)
        frame = bytes(Phase.buffer[:FRAME_BYTES])
        if not frame.startswith(opcode_and_length + b'{"protocol":"mew/v0.4","id":"'):
            raise LoadFailed(f"not the frame that was due: {frame[:120]!r}")


def upgrade_request(space: str, member: int, port: int) -> bytes:
    return (
        f"GET /ws?space={space} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
        f"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        f"Authorization: Bearer t{member}\r\n\r\n"
    ).encode()


def masked(part: bytes) -> bytes:
    """Mask a part of a payload that starts at a multiple of four."""
    return bytes(byte ^ MASK[at & 3] for at, byte in enumerate(part))


FOUR_DIGITS = [masked(b"%04d" % number) for number in range(10_000)]


def frames_of(member: int) -> Iterator[bytes]:
    """Masked text frames with one chat envelope each, all of one length, every id another."""
    before = f'{{"protocol":"mew/v0.4","id":"m{member}-'
    before += "-" * (-len(before) % 4)
    after = f'","from":"p{member}","kind":"chat","payload":{{"text":"'
    end = '"}}'
    text = "x" * (ENVELOPE_BYTES - len(before) - 8 - len(after) - len(end))
    head = b"\x81\xfe" + ENVELOPE_BYTES.to_bytes(2) + MASK + masked(before.encode())
    tail = masked((after + text + end).encode())
    for high in FOUR_DIGITS:
        start = head + high
        for low in FOUR_DIGITS:
            yield start + low + tail


async def measure(order: LoadOrder) -> Measured:
    load = Load(order)
    await load.connect()
    await load.drain()
    await load.prove_delivery()

    envelopes, took_s = load.workload.window, 0.0
    warm_at = time.perf_counter() + order.warm_up_s
    while time.perf_counter() < warm_at or took_s < order.warm_up_s / 4:
        began = time.perf_counter()
        await load.run(envelopes)
        took_s = time.perf_counter() - began
        if took_s < order.warm_up_s / 4:
            envelopes *= 2
    envelopes = max(int(envelopes * order.measure_s / took_s), 2 * load.workload.window)

    gc.freeze()
    gc.disable()
    server_cpu_s, load_cpu_s, began = cpu_seconds(order.server_pid), time.process_time(), time.perf_counter()
    await load.run(envelopes)
    wall_s = time.perf_counter() - began
    load_cpu_s = time.process_time() - load_cpu_s
    server_cpu_s = cpu_seconds(order.server_pid) - server_cpu_s

    latencies_ms = sorted(second * 1000 for second in load.phase.latencies_s)
    sent = envelopes * len(load.senders)
    return Measured(
        envelopes=sent,
        deliveries=sent * load.workload.members,
        wall_s=wall_s,
        server_cpu_s=server_cpu_s,
        load_cpu_s=load_cpu_s,
        latency_ms_p50=latencies_ms[len(latencies_ms) // 2] if latencies_ms else None,
        latency_ms_p99=latencies_ms[len(latencies_ms) * 99 // 100] if latencies_ms else None,
    )


def main() -> int:
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=LoadOrder)
    os.sched_setaffinity(0, {order.core})
    try:
        measured = uvloop.run(measure(order))
    except LoadFailed as failed:
        print(failed, file=sys.stderr)
        return 1
    sys.stdout.buffer.write(msgspec.json.encode(measured) + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
