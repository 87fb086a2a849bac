"""Unauthenticated connections have a deadline and a limit, over real sockets."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from typing import TypeAlias

import pytest
from aiohttp import web

from mew.gateway.auth.pre_auth import PreAuthLimiter

Stream: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Open: TypeAlias = Callable[..., Awaitable[Stream]]

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
GET_KNOWN = b"GET /known HTTP/1.1\r\nHost: x\r\n\r\n"


def nobody(address: str) -> bool:
    return False


def lobby(
    head_timeout_s: float = 5.0, is_proxy: Callable[[str], bool] = nobody, **caps: int
) -> PreAuthLimiter:
    return PreAuthLimiter(head_timeout_s=lambda: head_timeout_s, is_proxy=is_proxy, **caps)


@pytest.fixture
async def opened() -> AsyncIterator[Callable[[PreAuthLimiter], Awaitable[Open]]]:
    """Serve behind a lobby; what opens connections to it, from an address of this machine."""
    async with AsyncExitStack() as stack:

        async def serve(entered: PreAuthLimiter) -> Open:
            async def answer(request: web.Request) -> web.Response:
                with entered.serving(request.protocol):
                    if request.path == "/known":
                        entered.known(request.protocol, "ann")
                    return web.Response(text="here")

            app = web.Application()
            app.router.add_get("/{name:.*}", answer)
            runner = web.AppRunner(app, shutdown_timeout=0.1)
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
            assert runner.server is not None
            loop = asyncio.get_running_loop()
            server = await loop.create_server(entered.connections(runner.server), "127.0.0.1", 0)
            stack.callback(server.close)
            port = server.sockets[0].getsockname()[1]

            async def connect(address: str = "127.0.0.1") -> Stream:
                reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
                stack.push_async_callback(_closed, writer)
                return reader, writer

            return connect

        yield serve


async def _closed(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()
    with suppress(ConnectionError):
        await writer.wait_closed()


async def answered(connection: Stream, request: bytes = GET) -> bool:
    """Whether an answer comes, or else the connection ends."""
    reader, writer = connection
    try:
        async with asyncio.timeout(5):
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\nhere")
    except (asyncio.IncompleteReadError, ConnectionError):
        return False
    return head.startswith(b"HTTP/1.1 200")


async def ends(connection: Stream) -> bool:
    try:
        async with asyncio.timeout(5):
            return await connection[0].read(1) == b""
    except ConnectionError:
        return True


async def is_open(connection: Stream, for_s: float) -> bool:
    try:
        async with asyncio.timeout(for_s):
            await connection[0].read(1)
    except TimeoutError:
        return True
    return False


def keep_busy(for_s: float) -> None:
    time.sleep(for_s)


@pytest.mark.parametrize("sent", [b"", GET[:-2], b"GET / HT"])
async def test_who_sends_no_whole_head_in_time_is_cut_off(
    opened: Callable[[PreAuthLimiter], Awaitable[Open]], sent: bytes
) -> None:
    connect = await opened(lobby(0.1))
    connection = await connect()
    connection[1].write(sent)
    assert await ends(connection)


async def test_what_was_sent_in_time_counts_though_the_loop_was_busy(
    opened: Callable[[PreAuthLimiter], Awaitable[Open]],
) -> None:
    connect = await opened(lobby(1.0))
    connection = await connect()
    assert await is_open(connection, 0.01)
    connection[1].write(GET)
    keep_busy(1.1)
    assert await answered(connection, b"")


async def test_a_stranger_who_was_answered_has_the_same_time_for_the_next_request(
    opened: Callable[[PreAuthLimiter], Awaitable[Open]],
) -> None:
    connect = await opened(lobby(0.2))
    connection = await connect()
    for _ in range(3):
        assert await answered(connection)
    assert await ends(connection)


async def test_who_is_known_and_a_proxy_keep_their_connection(
    opened: Callable[[PreAuthLimiter], Awaitable[Open]],
) -> None:
    connect = await opened(lobby(0.1, lambda address: address == "127.0.0.9"))
    known, proxy = await connect(), await connect("127.0.0.9")
    assert await answered(known, GET_KNOWN)
    assert await answered(proxy)
    assert await is_open(known, 0.3)
    assert await is_open(proxy, 0.01)


async def test_unauthenticated_connections_are_limited_and_authenticated_ones_are_not(
    opened: Callable[[PreAuthLimiter], Awaitable[Open]], caplog: pytest.LogCaptureFixture
) -> None:
    connect = await opened(lobby(unauthenticated_max=2))
    known = await connect()
    assert await answered(known, GET_KNOWN)
    first, second = await connect(), await connect()
    assert await answered(second)
    for _ in range(2):
        assert await ends(await connect())
    assert len([record for record in caplog.records if "connections rejected" in record.message]) == 1
    assert await answered(known)
    first[1].close()
    await first[1].wait_closed()
    assert await answered(second)  # by now the gateway has seen that the first is gone
    assert await answered(await connect())


async def test_an_address_has_only_so_many_and_a_proxy_as_many_as_there_are(
    opened: Callable[[PreAuthLimiter], Awaitable[Open]],
) -> None:
    connect = await opened(lobby(is_proxy=lambda address: address == "127.0.0.9", per_address_max=2))
    kept = [await connect("127.0.0.2") for _ in range(2)]
    assert await ends(await connect("127.0.0.2"))
    kept.append(await connect("127.0.0.3"))
    kept += [await connect("127.0.0.9") for _ in range(4)]
    for connection in kept:
        assert await answered(connection)


async def test_a_participant_has_only_so_many_connections_that_count_as_known(
    opened: Callable[[PreAuthLimiter], Awaitable[Open]],
) -> None:
    connect = await opened(lobby(0.2, known_max=2))
    known = [await connect() for _ in range(3)]
    for connection in known:
        assert await answered(connection, GET_KNOWN)
    assert await ends(known[2])
    assert await answered(known[0])
    known[0][1].close()
    await known[0][1].wait_closed()
    assert await answered(known[1])  # by now the gateway has seen that the first is gone
    another = await connect()
    assert await answered(another, GET_KNOWN)
    assert await is_open(another, 0.4)


async def test_heads_that_do_not_end_are_bounded_over_all_connections(
    opened: Callable[[PreAuthLimiter], Awaitable[Open]],
) -> None:
    connect = await opened(lobby(head_bytes_all=100_000))
    header = b"X: " + b"x" * 8000 + b"\r\n"
    connections = [await connect() for _ in range(5)]
    for connection in connections[:4]:
        connection[1].write(GET[:-2] + header * 2)
    greedy = connections[4]
    greedy[1].write(GET[:-2] + header * 9)  # more than anyone else's
    assert await ends(greedy)
    for connection in connections[:4]:
        assert await answered(connection, b"\r\n")


async def test_once_all_are_cut_off_who_was_still_on_the_way_in_is_too(
    opened: Callable[[PreAuthLimiter], Awaitable[Open]],
) -> None:
    entered = lobby()
    connect = await opened(entered)
    known = await connect()
    assert await answered(known, GET_KNOWN)
    entered.abort_all()
    assert await ends(known)
    assert await ends(await connect())


async def test_it_is_quiet_when_the_last_request_is_done() -> None:
    entered = lobby()
    visitor = web.RequestHandler(web.Server(_never), loop=asyncio.get_running_loop())
    with entered.serving(visitor), pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await entered.quiet()
    async with asyncio.timeout(5):
        await entered.quiet()


async def _never(request: web.BaseRequest) -> web.StreamResponse:
    raise AssertionError(request)
