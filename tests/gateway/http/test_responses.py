"""HTTP answers that nobody reads: bounded, and not for ever."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import TypeAlias

import pytest
from aiohttp import web

from mew.gateway.http.problems import problems
from mew.gateway.http.responses import ResponseBudget

Ask: TypeAlias = Callable[[], Awaitable[socket.socket]]

PAGE = bytes(4 << 20)
BYTES_MAX = 8 << 20


@pytest.fixture
async def serve() -> AsyncIterator[Callable[[ResponseBudget], Awaitable[Ask]]]:
    """Serve a page of 4 MiB; what asks for it over a connection of its own, with a small receive buffer."""
    async with AsyncExitStack() as stack:

        async def start(answers: ResponseBudget) -> Ask:
            async def page(request: web.Request) -> web.Response:
                answers.charge(request, "ann", len(PAGE), BYTES_MAX)
                return web.Response(body=PAGE)

            @web.middleware
            async def counted(
                request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
            ) -> web.StreamResponse:
                return await answers.send(request, handler)

            app = web.Application(middlewares=[counted, problems])
            app.router.add_get("/", page)
            runner = web.AppRunner(app)
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
            listener = socket.create_server(("127.0.0.1", 0))
            await web.SockSite(runner, listener).start()
            return lambda: _ask(listener.getsockname()[1], stack)

        yield start


async def _ask(port: int, stack: AsyncExitStack) -> socket.socket:
    one = stack.enter_context(socket.socket())
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    one.settimeout(0)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(one, ("127.0.0.1", port))
    await loop.sock_sendall(one, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    return one


async def status(one: socket.socket) -> bytes:
    async with asyncio.timeout(5):
        return await asyncio.get_running_loop().sock_recv(one, 12)


async def read_all(one: socket.socket) -> int:
    """Read until a whole page came or the connection ended; return the bytes."""
    size = 0
    try:
        async with asyncio.timeout(10):
            while size < len(PAGE):
                more = await asyncio.get_running_loop().sock_recv(one, 1 << 20)
                if not more:
                    break
                size += len(more)
    except ConnectionError:
        pass
    return size


async def test_answers_that_were_not_read_count_until_they_have_left(
    serve: Callable[[ResponseBudget], Awaitable[Ask]],
) -> None:
    ask = await serve(ResponseBudget())
    unread = [await ask() for _ in range(2)]
    assert [await status(one) for one in unread] == [b"HTTP/1.1 200"] * 2
    assert await status(await ask()) == b"HTTP/1.1 429"
    assert await read_all(unread[0]) >= len(PAGE)
    assert await status(await ask()) == b"HTTP/1.1 200"


async def test_a_reader_that_makes_no_progress_is_disconnected_and_no_longer_counts(
    serve: Callable[[ResponseBudget], Awaitable[Ask]],
) -> None:
    ask = await serve(ResponseBudget(progress_s=0.05))
    unread = [await ask() for _ in range(2)]
    assert [await status(one) for one in unread] == [b"HTTP/1.1 200"] * 2
    while await status(await ask()) == b"HTTP/1.1 429":
        pass  # until the two are gone
    assert await read_all(unread[0]) < len(PAGE)
