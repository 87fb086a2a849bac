"""A connection by hand: what no library sends, to a real gateway."""

import asyncio
import base64
import struct
import tracemalloc
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from unittest.mock import patch

from tests.gateway.served import Caller, Served

from mew.gateway.inbox import Inbox
from mew.gateway.ports import Guest
from mew.gateway.websocket import Message
from mew.protocol.envelope import PROTOCOL
from mew.protocol.json import encode_json

TEXT, BINARY, CLOSE = 0x81, 0x82, 0x88


def handshake(path: str, token: str | None = None) -> bytes:
    key = base64.b64encode(bytes(16)).decode()
    bearer = "" if token is None else f"Authorization: Bearer {token}\r\n"
    return (
        f"GET {path} HTTP/1.1\r\nHost: here\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n{bearer}"
        f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
    ).encode()


def frame(first: int, data: bytes) -> bytes:
    """Masked with zeros, which hides nothing and is allowed."""
    assert len(data) < 126, f"{len(data)} bytes"
    return bytes((first, 0x80 | len(data))) + bytes(4) + data


def chat(who: str, text: str) -> bytes:
    return encode_json(
        {"protocol": PROTOCOL, "id": text, "from": who, "kind": "chat", "payload": {"text": text}}
    )


@asynccontextmanager
async def connected(served: Served) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    host, port = served.gateway.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        yield reader, writer
    finally:
        writer.transport.abort()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def connections(anyone: Caller) -> int:
    metrics = await anyone.get("/metrics")
    (line,) = [line for line in metrics.body.decode().splitlines() if line.startswith("mew_connections{")]
    return int(float(line.split()[-1]))


async def test_who_says_goodbye_with_the_handshake_is_not_kept_as_a_guest(served: Served) -> None:
    for _ in range(3):
        async with connected(served) as (reader, writer):
            writer.write(handshake("/ws?space=demo", "t-bot") + frame(CLOSE, struct.pack("!H", 1000)))
            answer = await asyncio.wait_for(reader.read(), 5)
            assert answer.endswith(b"\x88\x02\x03\xe8"), answer
    assert await connections(served.ann) == 0
    async with await served.ann.connect():
        assert await connections(served.ann) == 1


async def test_what_is_said_with_the_handshake_and_before_a_goodbye_is_heard(served: Served) -> None:
    async with await served.ann.connect() as ann, connected(served) as (reader, writer):
        said = [frame(TEXT, chat("bot", f"{number}")) for number in range(3)]
        goodbye = frame(CLOSE, struct.pack("!H", 1000))
        writer.write(handshake("/ws?space=demo", "t-bot") + b"".join(said) + goodbye)
        answer = await asyncio.wait_for(reader.read(), 5)
        assert answer.endswith(b"\x88\x02\x03\xe8"), answer
        seen = [(await ann.receive_json(timeout=5))["payload"] for _ in range(6)]
    told = [payload.get("event") or payload["text"] for payload in seen]
    assert told == ["join", "join", "0", "1", "2", "leave"]  # ann's own join is the first


async def test_a_message_that_comes_in_pieces_is_handed_on_once_and_whole(served: Served) -> None:
    handed: list[int] = []
    right = Inbox.put

    def put(inbox: Inbox, guest: Guest, messages: Sequence[Message]) -> None:
        handed.append(len(messages))
        right(inbox, guest, messages)

    async with connected(served) as (reader, writer):
        writer.write(handshake("/ws?space=demo", "t-ann"))
        await reader.readuntil(b"system/welcome")
        with patch.object(Inbox, "put", put):
            for byte in frame(TEXT, chat("ann", "in pieces")):
                writer.write(bytes((byte,)))
                await asyncio.sleep(0)
            await reader.readuntil(b"in pieces")
    assert handed == [1]


async def test_what_comes_after_a_join_that_was_refused_fills_no_memory(served: Served) -> None:
    async with connected(served) as (reader, writer):
        endless = bytes((BINARY, 0xFF)) + struct.pack("!Q", 1 << 39) + bytes(4)
        writer.write(handshake("/") + frame(TEXT, b'{"type":"join","space":"demo","token":"none"}') + endless)
        await asyncio.wait_for(reader.readuntil(b"\r\n\r\n\x88"), 5)
        tracemalloc.start()
        try:
            with suppress(ConnectionError):  # it is cut off after a while
                for _ in range(256):
                    writer.write(bytes(1 << 18))
                    await asyncio.wait_for(writer.drain(), 5)
            assert tracemalloc.get_traced_memory()[1] < 16 << 20
        finally:
            tracemalloc.stop()
