"""Gateways that differ from ours: one that waits for a join, one without history, one that is silent or never done."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from mew.client.connection import websocket
from mew.client.connection.transport import recall
from mew.client.connection.websocket import WebSocketTransport
from mew.client.errors import ConnectError


async def test_a_gateway_that_does_not_answer_the_handshake_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(websocket, "_CONNECT_S", 0.05)
    callers: list[asyncio.StreamWriter] = []
    silent = await asyncio.start_server(lambda _, caller: callers.append(caller), "127.0.0.1")
    transport = WebSocketTransport(f"ws://127.0.0.1:{silent.sockets[0].getsockname()[1]}", token="t")
    async with asyncio.timeout(5), silent:
        with pytest.raises(ConnectError, match="did not answer within") as refused:
            await transport.open(None)
        await transport.close()
        for caller in callers:
            caller.close()
            await caller.wait_closed()
    assert refused.value.come_back


@pytest.mark.parametrize(
    ("page", "recalled"),
    [('{"envelopes": [], "next": "x"}', 0), ('{"envelopes": [{},{},{}], "next": "x"}', 2)],
)
async def test_a_history_without_end_is_taken_as_far_as_it_was_asked_for(page: str, recalled: int) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(text=page, content_type="application/json")

    app = web.Application()
    app.router.add_get("/spaces/demo/envelopes", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    transport = WebSocketTransport(f"ws://127.0.0.1:{port}", space="demo", token="t")
    async with asyncio.timeout(5):
        assert len(await recall(transport, 2)) == recalled
        await transport.close()
        await runner.cleanup()


async def joined_by_frame(request: web.Request) -> web.WebSocketResponse:
    """A gateway that says nothing before a join, and believes whom that names."""
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    join = await socket.receive_json()
    welcome = {"kind": "system/welcome", "payload": {"you": {"id": join.get("participantId")}}, "join": join}
    await socket.send_json(welcome)
    await socket.receive()
    return socket


@asynccontextmanager
async def served(**paths: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[str]:
    app = web.Application()
    for path, answer in paths.items():
        app.router.add_get(f"/{path}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"ws://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def test_a_gateway_that_waits_for_a_join_is_noticed_and_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket, "_JOIN_AFTER_S", 0.02)
    async with asyncio.timeout(5), served(ws=joined_by_frame) as url:
        transport = WebSocketTransport(url, space="demo", token="t", participant="ann")
        for _ in range(2):  # the second time it joins at once
            link = await transport.open(None)
            welcome = json.loads(await link.receive())
            assert welcome["join"] == {
                "type": "join",
                "protocol": "mew/v0.4",
                "space": "demo",
                "token": "t",
                "participantId": "ann",
            }
            assert not link.knows_ids
            await link.close()
            monkeypatch.setattr(websocket, "_JOIN_AFTER_S", 60)
        await transport.close()


async def test_a_gateway_without_history_is_said_to_have_none() -> None:
    async with asyncio.timeout(5), served(ws=joined_by_frame) as url:
        transport = WebSocketTransport(url, space="demo", token="t")
        with pytest.raises(ConnectError, match="has no history") as refused:
            await transport.page({})
        assert not refused.value.come_back
        await transport.close()
