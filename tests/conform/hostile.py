"""What is no gateway at all, or one that behaves as badly as it can."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Any, Final

from aiohttp import WSMsgType, web

from mew.conform.roles import KICKED, ROLES, SPARES, KitConfig, Role

__all__ = ["HOSTILE", "Behaviour", "serving"]

Socket = web.WebSocketResponse
Talk = Callable[[Socket], Awaitable[None]]
Raw = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Behaviour = Callable[[], Any]  # an async context that gives the port

WELCOME: Final[dict[str, Any]] = {
    "protocol": "mew/v0.4",
    "id": "welcome",
    "from": "system:gateway",
    "to": ["owner"],
    "kind": "system/welcome",
    "payload": {"you": {"id": "owner", "capabilities": [{"kind": "*"}]}, "participants": []},
}
GARBAGE: Final = (
    "",
    "{",
    "null",
    "[]",
    "#",
    "##",
    "[" * 100_000,
    '{"kind": NaN}',
    '{"kind": "system/welcome"}',
    '{"kind": "system/welcome", "payload": {"you": null}}',
    '{"kind": "system/welcome", "payload": {"you": {"id": 7}}}',
    '{"kind": ["system/welcome"], "payload": [], "id": {}, "from": 1, "to": 2, "correlation_id": 3}',
    f'{{"id": {"9" * 5_000}}}',
    '{"id": "\\ud800", "kind": "\\u0000"}',
)


@asynccontextmanager
async def serving(behaviour: Behaviour, timeout_s: float) -> AsyncIterator[KitConfig]:
    """Where it is."""
    async with behaviour() as port:
        roles = {name: Role(name, f"t-{name}", name) for name in (*ROLES, *SPARES, KICKED)}
        address = f"127.0.0.1:{port}"
        yield KitConfig(f"ws://{address}", "conform", roles, f"http://{address}", timeout_s=timeout_s)


async def some_turns() -> None:
    """For what was aborted to be closed."""
    for _ in range(10):
        await asyncio.sleep(0)


def over_websocket(talk: Talk) -> Behaviour:
    @asynccontextmanager
    async def behaviour() -> AsyncIterator[int]:
        async def handle(request: web.Request) -> web.StreamResponse:
            response = Socket(autoclose=False, max_msg_size=0)
            transport = request.transport
            assert transport is not None, "the request has just been read from it"
            await response.prepare(request)
            try:
                with suppress(ConnectionError, RuntimeError):
                    await talk(response)
            finally:
                transport.abort()  # whatever waits to be written
            return response

        app = web.Application()
        app.router.add_get("/ws", handle)
        runner = web.AppRunner(app, shutdown_timeout=0.01, handler_cancellation=True)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            yield runner.addresses[0][1]
        finally:
            await runner.cleanup()
            await some_turns()

    return behaviour


def over_tcp(serve: Raw) -> Behaviour:
    @asynccontextmanager
    async def behaviour() -> AsyncIterator[int]:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(ConnectionError, asyncio.CancelledError, asyncio.IncompleteReadError):
                await serve(reader, writer)
            writer.transport.abort()  # whatever waits to be written

        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        async with server:
            yield server.sockets[0].getsockname()[1]
        await some_turns()

    return behaviour


async def hang(socket: Socket) -> None:
    await asyncio.Event().wait()


async def garbage(socket: Socket) -> None:
    for text in GARBAGE:
        await socket.send_str(text)
    await socket.send_json(WELCOME)
    async for _ in socket:
        for text in GARBAGE:
            await socket.send_str(text)


async def noise(socket: Socket) -> None:
    await socket.send_json(WELCOME)
    async for _ in socket:
        await socket.send_bytes(bytes(range(256)))
        await socket.send_bytes(b"#\xff#\xfe")
        await socket.send_bytes(b'{"kind": "\xff"}')


async def too_much(socket: Socket) -> None:
    """A message of 100 MB, and then as many smaller ones as will go."""
    await socket.send_json(WELCOME)
    await socket.send_str("x" * 100_000_000)


async def flood(socket: Socket) -> None:
    await socket.send_json(WELCOME)
    large = json.dumps({"kind": "chat", "payload": {"text": "x" * 1_000_000}})
    while True:
        await socket.send_str(large)


async def ignore(socket: Socket) -> None:
    """It never answers anything, a close neither."""
    await socket.send_json(WELCOME)
    while (await socket.receive()).type in (WSMsgType.TEXT, WSMsgType.BINARY):
        pass
    await hang(socket)


def closing() -> Talk:
    """It closes after none, one, two and more messages, by turns, or just breaks off."""
    numbers = count()

    async def talk(socket: Socket) -> None:
        number = next(numbers)
        if number % 5:
            await socket.send_json(WELCOME)
        for _ in range(number % 7):
            await socket.receive()
        if number % 2:
            await socket.close(code=4000 + number % 999)

    return talk


async def page(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while await reader.readuntil(b"\r\n\r\n"):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n<h1>hello</h1>")


async def silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


async def slam(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


async def another_language(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"220 mail.example.org ESMTP\r\n" + bytes(range(256)) * 100)
    await reader.read()


HOSTILE: Final[dict[str, Behaviour]] = {
    "hangs once somebody is connected": over_websocket(hang),
    "sends garbage": over_websocket(garbage),
    "sends binary noise": over_websocket(noise),
    "sends a message of 100 MB": over_websocket(too_much),
    "sends without end": over_websocket(flood),
    "ignores everything": over_websocket(ignore),
    "closes as it likes": over_websocket(closing()),
    "is a web server": over_tcp(page),
    "says nothing": over_tcp(silence),
    "slams the door": over_tcp(slam),
    "speaks another language": over_tcp(another_language),
}
