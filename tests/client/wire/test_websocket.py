"""A gateway that is silent or never done: the transport does not wait for it without end."""

import asyncio

import pytest
from aiohttp import web

from mew.client.errors import ConnectError
from mew.client.wire import websocket
from mew.client.wire.past import recall
from mew.client.wire.websocket import WebSocketTransport


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
