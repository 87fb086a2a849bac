"""One upgraded connection: what reaches its listener when, and how it ends."""

import asyncio
import base64
import struct
import tracemalloc
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

import pytest
from aiohttp import web
from tests.gateway.served import Caller, Served

from mew.gateway.room.ports import RoomConnection
from mew.gateway.room.room import Room
from mew.gateway.websocket.frames import close_frame
from mew.gateway.websocket.wire import WebSocketWire
from mew.protocol.envelope import PROTOCOL
from mew.protocol.json import encode_json

TEXT, BINARY, CLOSE, PING = 0x81, 0x82, 0x88, 0x89
GOODBYE = struct.pack("!H", 1000)


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


def texts(first: int, end: int) -> bytes:
    return b"".join(frame(TEXT, b"%d" % number) for number in range(first, end))


# A wire alone.


class Socket(asyncio.Transport):
    """A transport with nobody at the other end."""

    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self.reading = True
        self.closed = False
        self.ended = False

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    abort = close

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.ended = True

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True


class Ear:
    """Notes what it is handed; `during` is called with each."""

    def __init__(self) -> None:
        self.heard: list[Any] = []
        self.during: Callable[[], None] = lambda: None
        self.receive: Callable[[list[bytes], int], None] = self._receive

    def _receive(self, texts: list[bytes], size: int) -> None:
        self.heard.append([int(text) for text in texts])
        self.during()

    def receive_binary(self, data: bytes) -> None:
        self.heard.append(data)

    def receive_error(self, code: int, message: str) -> None:
        self.heard.append((code, message))


class Http:
    """As much of aiohttp's side of a connection as a wire needs."""

    def __init__(self, tail: bytes) -> None:
        self._tail = tail

    def set_parser(self, parser: Any) -> None:
        if self._tail:
            parser.feed_data(self._tail)

    def connection_lost(self, error: Exception | None) -> None:
        """It would look after its own."""

    def hand_over(self) -> None:
        """It would forget the connection."""


def opened(tail: bytes = b"") -> tuple[WebSocketWire, Socket, Ear]:
    socket = Socket()
    request = cast(web.Request, SimpleNamespace(protocol=Http(tail)))
    return WebSocketWire(request, socket, 1000), socket, Ear()


def attached(tail: bytes = b"") -> tuple[WebSocketWire, Socket, Ear]:
    wire, socket, ear = opened(tail)
    wire.attach(ear)
    return wire, socket, ear


async def passes(count: int = 1) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_of_one_read_128_messages_are_handed_on_in_a_pass_and_the_rest_in_the_next() -> None:
    wire, socket, ear = attached()
    wire.data_received(texts(0, 300))
    assert ear.heard == [list(range(128))]
    assert not socket.reading, "the client is held back meanwhile"
    await passes()
    assert ear.heard[1:] == [list(range(128, 256))]
    await passes()
    assert ear.heard[2:] == [list(range(256, 300))]
    assert socket.reading


async def test_what_is_read_behind_a_flood_waits_for_its_turn() -> None:
    wire, socket, ear = attached()
    wire.data_received(texts(0, 200))
    wire.data_received(texts(200, 250))
    assert ear.heard == [list(range(128))]
    await passes()
    assert ear.heard[1:] == [list(range(128, 250))]
    assert socket.reading


async def test_messages_of_all_kinds_count_and_keep_their_order() -> None:
    wire, _, ear = attached()
    wire.data_received(texts(0, 100) + frame(BINARY, b"bin") + texts(100, 140))
    assert ear.heard == [list(range(100)), b"bin", list(range(100, 127))]
    await passes()
    assert ear.heard[3:] == [list(range(127, 140))]


async def test_one_that_is_paused_hands_on_nothing_and_loses_nothing() -> None:
    wire, socket, ear = attached()
    ear.during = wire.pause
    wire.data_received(texts(0, 200))
    assert not socket.reading
    wire.data_received(texts(200, 210))  # was on its way already
    await passes(3)
    assert ear.heard == [list(range(128))]
    ear.during = lambda: None
    wire.resume()
    await passes(3)
    assert [number for some in ear.heard for number in some] == list(range(210))
    assert socket.reading


async def test_one_that_is_paused_for_two_reasons_waits_for_both_to_pass() -> None:
    wire, socket, ear = attached()
    wire.pause()
    wire.pause()
    wire.data_received(texts(0, 1))
    wire.resume()
    assert (ear.heard, socket.reading) == ([], False)
    wire.resume()
    assert (ear.heard, socket.reading) == ([[0]], True)
    wire.resume()
    wire.pause()
    assert not socket.reading


async def test_a_part_of_a_message_waits_for_the_rest_also_over_a_pause() -> None:
    wire, _, ear = attached()
    sent = texts(0, 3)
    wire.data_received(sent[:-2])
    wire.pause()
    wire.data_received(sent[-2:])
    assert ear.heard == [[0, 1]]
    wire.resume()
    assert ear.heard == [[0, 1], [2]]


async def test_nothing_is_read_behind_a_protocol_error_until_the_connection_is_closed() -> None:
    wire, socket, ear = attached()
    wire.data_received(texts(0, 2) + bytes((TEXT, 1)) + texts(2, 4))
    assert ear.heard == [[0, 1], (1002, "a client's frames are masked")]
    assert not socket.reading
    wire.data_received(texts(4, 6))
    await passes(3)
    assert len(ear.heard) == 2
    wire.close(1002, "a client's frames are masked")
    assert socket.written == close_frame(1002, "a client's frames are masked")


async def test_after_a_protocol_error_the_client_sees_the_end_of_the_connection_at_once() -> None:
    wire, socket, _ = attached()
    wire.data_received(bytes((TEXT, 1)) + texts(0, 2))
    wire.close(1002, "a client's frames are masked")
    assert socket.ended
    assert socket.reading, "so that nothing unread resets the connection before the close frame was read"
    wire.data_received(texts(0, 2) + b"anything")
    assert not socket.closed


async def test_a_protocol_error_before_anybody_listens_ends_the_connection_at_once() -> None:
    wire, socket, _ = opened()
    wire.data_received(bytes((TEXT, 1)))
    assert socket.closed


async def test_one_that_is_closed_while_it_is_paused_hears_the_clients_answer() -> None:
    wire, socket, ear = attached()
    wire.data_received(texts(0, 200))
    wire.pause()
    wire.close(4010, "the space is not available now")
    assert (socket.reading, socket.closed) == (True, False)
    wire.data_received(frame(CLOSE, struct.pack("!H", 4010)))
    assert socket.closed
    await passes(3)
    assert ear.heard == [list(range(128))], "it is too late for the rest"


async def test_one_that_is_closed_finds_the_clients_goodbye_in_what_was_not_read_yet() -> None:
    wire, socket, _ = attached()
    wire.pause()
    wire.data_received(texts(0, 3) + frame(CLOSE, GOODBYE))
    wire.close(4001, "going")
    assert socket.closed


@pytest.mark.parametrize("first", [b"", frame(PING, b"")], ids=["alone", "behind a ping"])
async def test_a_bug_met_with_a_message_closes_the_connection(first: bytes) -> None:
    wire, socket, ear = attached()

    def fail() -> None:
        raise RuntimeError("a bug")

    ear.during = fail
    wire.data_received(first + texts(0, 1))
    assert socket.written.endswith(close_frame(1011, "the gateway failed on this message"))
    assert wire.close_code == 1011


async def test_what_came_before_anybody_listens_is_handed_on_first() -> None:
    wire, socket, ear = opened(texts(0, 3))
    wire.data_received(texts(3, 5))
    assert not socket.reading, "the client is held back after the first"
    wire.attach(ear)
    assert [number for some in ear.heard for number in some] == list(range(5))
    assert socket.reading


async def test_a_ping_is_answered_also_before_anybody_listens() -> None:
    wire, socket, ear = opened(frame(PING, b"one"))
    wire.attach(ear)
    wire.data_received(frame(PING, b"two"))
    assert socket.written == b"\x8a\x03one\x8a\x03two"


# By hand, to a real gateway: what no library sends.


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


async def test_who_says_goodbye_with_the_handshake_does_not_stay(served: Served) -> None:
    for _ in range(3):
        async with connected(served) as (reader, writer):
            writer.write(handshake("/ws?space=demo", "t-bot") + frame(CLOSE, GOODBYE))
            answer = await asyncio.wait_for(reader.read(), 5)
            assert answer.endswith(b"\x88\x02\x03\xe8"), answer
    assert await connections(served.ann) == 0
    async with await served.ann.connect():
        assert await connections(served.ann) == 1


async def test_a_protocol_error_with_the_handshake_stops_nobody_else(served: Served) -> None:
    async with await served.ann.connect() as ann:
        for _ in range(3):
            async with connected(served) as (reader, writer):
                writer.write(handshake("/ws?space=demo", "t-bot") + frame(0x83, b"no such opcode"))
                assert b"\x03\xea" in await asyncio.wait_for(reader.read(), 5)  # 1002
        await ann.send_str(chat("ann", "still here").decode())
        while (await ann.receive_json(timeout=5))["payload"].get("text") != "still here":
            pass


async def test_what_is_said_with_the_handshake_and_before_a_goodbye_is_heard(served: Served) -> None:
    async with await served.ann.connect() as ann, connected(served) as (reader, writer):
        said = [frame(TEXT, chat("bot", f"{number}")) for number in range(3)]
        goodbye = frame(CLOSE, GOODBYE)
        writer.write(handshake("/ws?space=demo", "t-bot") + b"".join(said) + goodbye)
        answer = await asyncio.wait_for(reader.read(), 5)
        assert answer.endswith(b"\x88\x02\x03\xe8"), answer
        seen = [(await ann.receive_json(timeout=5))["payload"] for _ in range(6)]
    told = [payload.get("event") or payload["text"] for payload in seen]
    assert told == ["join", "join", "0", "1", "2", "leave"]  # ann's own join is the first


async def test_a_message_that_comes_in_pieces_is_handed_on_once_and_whole(served: Served) -> None:
    handed: list[int] = []
    receive = Room.receive

    def noted(room: Room, connection: RoomConnection, texts: list[bytes], size: int) -> None:
        handed.append(len(texts))
        receive(room, connection, texts, size)

    with patch.object(Room, "receive", noted):
        async with connected(served) as (reader, writer):
            writer.write(handshake("/ws?space=demo", "t-ann"))
            await reader.readuntil(b"system/welcome")
            for byte in frame(TEXT, chat("ann", "in pieces")):
                writer.write(bytes((byte,)))
                await asyncio.sleep(0)
            await reader.readuntil(b"in pieces")
    assert handed == [1]


async def test_a_protocol_error_is_told_in_our_words_and_closed_and_what_came_before_it_counts(
    served: Served,
) -> None:
    async with await served.ann.connect() as ann, connected(served) as (reader, writer):
        writer.write(handshake("/ws?space=demo", "t-bot"))
        await reader.readuntil(b"system/welcome")
        unmasked = bytes((TEXT, 2)) + b"{}"
        writer.write(frame(TEXT, chat("bot", "before")) + unmasked + frame(TEXT, chat("bot", "behind")))
        answer = await asyncio.wait_for(reader.read(), 5)
        assert b'"id":"before"' in answer
        assert b'"error":"malformed","message":"a client\'s frames are masked"' in answer
        assert answer.endswith(close_frame(1002, "a client's frames are masked")), answer
        seen = [(await ann.receive_json(timeout=5))["payload"] for _ in range(4)]
    told = [payload.get("event") or payload["text"] for payload in seen]
    assert told == ["join", "join", "before", "leave"]


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
