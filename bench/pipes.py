"""A server within the process: bytes are handed to its connections as a transport would, what it writes is counted.

It is given a loop that remembers how the server makes its connections. Nothing else is asked of it, so that whatever
listens with `loop.create_server` can be tried like this.
"""

import asyncio
import gc
import json
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, Final, cast

import uvloop

from bench.candidates import floor
from mew.gateway.config.loader import load_config
from mew.gateway.server import Gateway

__all__ = ["WAYS", "Counted", "Listening", "Shape", "opened"]

ENVELOPE_BYTES: Final = 300
FRAME_BYTES: Final = 4 + ENVELOPE_BYTES  # as a server sends it: not masked
MASK: Final = b"\x5a\xc3\x17\xe8"
WARM_UP: Final = 1_280  # more than the history holds: from here on every envelope puts out another
STALL_S: Final = 60
LIMITS: Final = {
    "envelopes_per_second": 1_000_000,
    "burst": 1_000_000,
    "bytes_per_second": "64GiB",
    "bytes_burst": "64GiB",
    "history_envelopes": 1_000,
}


@dataclass(frozen=True)
class Shape:
    """How many spaces there are with how many members, and how many envelopes one of each sends in one piece."""

    name: str
    members: int
    per_turn: int
    spaces: int = 1

    @property
    def space_names(self) -> list[str]:
        return [f"bench{number}" for number in range(self.spaces)]


class Listening(uvloop.Loop):
    """A loop that remembers what makes the connections of the server it was asked for last."""

    made: Callable[[], asyncio.Protocol | asyncio.BufferedProtocol]

    async def create_server(self, protocol_factory: Any, *args: Any, **options: Any) -> asyncio.Server:
        self.made = protocol_factory
        return cast(asyncio.Server, await super().create_server(protocol_factory, *args, **options))


class Counted:
    """All connections of a server: what is due to them, and what has come."""

    def __init__(self, shape: Shape, loop: Listening) -> None:
        self.shape = shape
        self._loop = loop
        self._pipes: list[Pipe] = []
        self._frames = frames()
        self._pieces: Iterator[bytes] = iter(())
        self._due = shape.per_turn * shape.members * shape.spaces * FRAME_BYTES
        self._over = loop.create_future()
        self._receivers: list[Callable[[bytes], None]] = []
        self.left = -1

    async def join(self) -> None:
        """Connect every member of every space, each by the handshake."""
        for name in self.shape.space_names:
            own = [Pipe(self, self._loop.made()) for _ in range(self.shape.members)]
            self._pipes += own
            for number, pipe in enumerate(own):
                pipe.get_protocol().connection_made(pipe)
                pipe.receiver()(upgrade(name, number))
            await self._settled(own)
            self._receivers.append(own[0].receiver())
        for pipe in self._pipes:
            assert pipe.written.startswith(b"HTTP/1.1 101"), pipe.written[:300]
            pipe.counting = True
        Random(0).shuffle(self._receivers)  # sockets become readable in any order

    async def leave(self) -> None:
        for pipe in self._pipes:
            pipe.counting = False
            pipe.abort()
        await self._settled(self._pipes)

    def pieces(self, envelopes: int) -> list[bytes]:
        """So many envelopes, as sockets give them; made beforehand, for it takes as long as to pass them on."""
        per_turn = self.shape.per_turn
        turns = envelopes // per_turn // self.shape.spaces
        return [b"".join(islice(self._frames, per_turn)) for _ in range(turns)]

    async def run(self, pieces: list[bytes]) -> None:
        """Hand them over, the next when everybody has the last."""
        self._pieces = iter(pieces)
        self._over = self._loop.create_future()
        self._next()
        async with asyncio.timeout(STALL_S):
            await self._over

    def wrote(self, count: int) -> None:
        self.left -= count
        if self.left == 0:
            self._loop.call_soon(self._next)
        assert self.left >= 0, f"{-self.left} bytes more than were due"

    def _next(self) -> None:
        piece = next(self._pieces, None)
        if piece is None:
            self._over.set_result(None)
        else:
            self.left = self._due
            for receive in self._receivers:  # the same in every space: an id is a space's own
                receive(piece)

    async def _settled(self, pipes: list["Pipe"]) -> None:
        """Until nobody is told anything more: welcomes and presence take some turns of the loop."""
        quiet, seen = 0, -1
        while quiet < 10:
            await asyncio.sleep(0.001)
            now = sum(len(pipe.written) for pipe in pipes)
            quiet, seen = (quiet + 1, seen) if now == seen and now else (0, now)


class Pipe(asyncio.Transport):
    """A connection that takes everything at once and keeps nothing, but for what comes before the envelopes."""

    def __init__(self, counted: Counted, protocol: asyncio.BaseProtocol) -> None:
        super().__init__({"peername": ("127.0.0.1", 1)})
        self._wrote = counted.wrote
        self._protocol = protocol
        self._is_closing = False
        self.counting = False
        self.written = b""

    def write(self, data: Any) -> None:
        if self.counting:
            self._wrote(len(data))
        else:
            self.written += bytes(data)

    def writelines(self, list_of_data: Any) -> None:
        for data in list_of_data:
            self.write(data)

    def receiver(self) -> Callable[[bytes], None]:
        """What a transport would call with the bytes that come."""
        protocol = self._protocol
        if isinstance(protocol, asyncio.Protocol):
            return protocol.data_received
        buffered = cast(asyncio.BufferedProtocol, protocol)

        def receive(data: bytes) -> None:
            memoryview(buffered.get_buffer(len(data)))[: len(data)] = data
            buffered.buffer_updated(len(data))

        return receive

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def is_closing(self) -> bool:
        return self._is_closing

    def is_reading(self) -> bool:
        return True

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def close(self) -> None:
        self.abort()

    def abort(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            asyncio.get_running_loop().call_soon(self._protocol.connection_lost, None)


def upgrade(space: str, member: int) -> bytes:
    return (
        f"GET /ws?space={space} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        f"Authorization: Bearer t{member}\r\n\r\n"
    ).encode()


def frames() -> Iterator[bytes]:
    """Masked text frames with a chat envelope of p0 each, all of one length, every id another."""
    before, after = '{"protocol":"mew/v0.4","id":"', '","from":"p0","kind":"chat","payload":{"text":"'
    text = "x" * (ENVELOPE_BYTES - len(before) - 12 - len(after) - 3)
    key = int.from_bytes((MASK * (ENVELOPE_BYTES // 4))[:ENVELOPE_BYTES], "big")
    head = b"\x81\xfe" + ENVELOPE_BYTES.to_bytes(2, "big") + MASK
    number = 0
    while True:
        number += 1
        envelope = f'{before}{number:012}{after}{text}"}}}}'.encode()
        yield head + (int.from_bytes(envelope, "big") ^ key).to_bytes(ENVELOPE_BYTES, "big")


@asynccontextmanager
async def through_mew(shape: Shape, *, ephemeral: bool = False) -> AsyncIterator[None]:
    """Our whole gateway, with its journal."""
    members = {f"p{n}": {"tokens": [f"t{n}"], "capabilities": ["chat"]} for n in range(shape.members)}
    server = {"keepalive_s": 600}  # a ping would be counted
    spaces = [{"id": name} for name in shape.space_names]
    space = {"spaces": spaces, "participants": members, "limits": LIMITS, "server": server}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "space.yaml")
        file.write_text(json.dumps(space))  # noqa: ASYNC240  # before anything is measured
        async with Gateway(load_config(file, {}), {}, port=0, ephemeral=ephemeral):
            yield


@asynccontextmanager
async def through_floor(_shape: Shape) -> AsyncIterator[None]:
    """The least a Python server can do."""
    async with asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(floor.serve(0))
        await asyncio.sleep(0.01)
        yield
        serving.cancel()


WAYS: Final[dict[str, Callable[[Shape], AbstractAsyncContextManager[None]]]] = {
    "floor": through_floor,
    "mew": through_mew,
    "mew-ephemeral": partial(through_mew, ephemeral=True),
}


@asynccontextmanager
async def opened(way: str, shape: Shape) -> AsyncIterator[Counted]:
    """A server with everybody connected, warm. For a loop that is `Listening`."""
    loop = cast(Listening, asyncio.get_running_loop())
    async with WAYS[way](shape):
        counted = Counted(shape, loop)
        await counted.join()
        await counted.run(counted.pieces(WARM_UP * shape.spaces))
        gc.collect()
        gc.freeze()  # as the gateway does when it has started
        try:
            yield counted
        finally:
            await counted.leave()
