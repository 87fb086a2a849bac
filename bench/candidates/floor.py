"""The floor: the least a Python server can do and still pass WebSocket frames from one to all.

No JSON, no rules, no accounts, no pings: a handshake, the frames of one read unmasked, and in each turn of
the loop one joined bytes object written to every connection of the space. Run as `python floor.py PORT`.
"""

import asyncio
import base64
import hashlib
import re
import sys
from collections import defaultdict
from typing import cast

import uvloop
from aiohttp._websocket.helpers import websocket_mask  # in C: unmasking in pure Python would raise the floor

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Space:
    """The connections of one space and the frames due to all of them in this turn of the loop."""

    def __init__(self) -> None:
        self.transports: set[asyncio.Transport] = set()
        self.due: list[bytes] = []

    def flush(self) -> None:
        joined = b"".join(self.due)
        self.due.clear()
        for transport in self.transports:
            transport.write(joined)


class Connection(asyncio.Protocol):
    """One client: first the request for an upgrade, then masked frames of less than 64 KiB, unfragmented."""

    transport: asyncio.Transport
    space: Space | None = None

    def __init__(self, loop: asyncio.AbstractEventLoop, spaces: dict[bytes, Space]) -> None:
        self.loop = loop
        self.spaces = spaces
        self.rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's own is no subclass

    def connection_lost(self, _error: Exception | None) -> None:
        if self.space is not None:
            self.space.transports.discard(self.transport)

    def data_received(self, data: bytes) -> None:
        if self.rest:
            data = self.rest + data
        if self.space is None:
            self.rest = self._shake_hands(data)
        else:
            self.rest = self._take_frames(data, self.space)

    def _shake_hands(self, data: bytes) -> bytes:
        head, end, rest = data.partition(b"\r\n\r\n")
        if not end:
            return data
        key = re.search(rb"(?im)^sec-websocket-key:\s*(\S+)", head)
        name = re.search(rb"[?&]space=([^& ]*)", head)
        if key is None or name is None:
            self.transport.close()
            return b""
        accept = base64.b64encode(hashlib.sha1(key[1] + GUID).digest())
        self.transport.write(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n"
        )
        self.space = self.spaces[name[1]]
        self.space.transports.add(self.transport)
        return rest

    def _take_frames(self, data: bytes, space: Space) -> bytes:
        due = space.due
        idle = not due
        at, end = 0, len(data)
        while at + 8 <= end:
            length = data[at + 1] & 127
            head = 2
            if length == 126:
                length = data[at + 2] << 8 | data[at + 3]
                head = 4
            start = at + head + 4
            stop = start + length
            if stop > end:
                break
            if data[at] == 0x88:
                self.transport.close()
                return b""
            payload = bytearray(data[start:stop])
            websocket_mask(data[start - 4 : start], payload)
            due.append(
                b"\x81" + (bytes((length,)) if head == 2 else b"\x7e" + data[at + 2 : at + 4]) + payload
            )
            at = stop
        if idle and due:
            self.loop.call_soon(space.flush)
        return data[at:] if at < end else b""


async def serve(port: int) -> None:
    loop = asyncio.get_running_loop()
    spaces: dict[bytes, Space] = defaultdict(Space)
    server = await loop.create_server(lambda: Connection(loop, spaces), "127.0.0.1", port, backlog=1024)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
