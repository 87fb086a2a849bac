"""A server that dies is started again, and who waited for it is told: each case apart."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.mcp_bridge.server.stage import LEGACY, MODERN, Context, FakeServer, bridged, hears_method, settings

from mew.client.errors import Disconnected, RpcError
from mew.mcp_bridge.server.bridge import Bridge
from mew.mcp_bridge.server.errors import ServerUnavailable
from mew.mcp_bridge.server.transport.transport import ServerTransport


def hanging(server: FakeServer) -> None:
    @server.on("tools/call")
    async def call(_: Context, __: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(60)
        return {}


@pytest.mark.parametrize("version", [LEGACY, MODERN])
async def test_a_request_in_flight_is_told_that_the_server_died_and_comes_back(version: str) -> None:
    server = FakeServer(version)
    hanging(server)
    async with bridged(server) as stage:
        asking = asyncio.ensure_future(stage.ann.request("files", "tools/call", {"name": "t"}))
        await server.hears("tools/call")
        server.die()
        with pytest.raises(RpcError) as raised:
            await asking
        assert raised.value.code == -32000
        assert raised.value.message == (
            "the server ended with exit code 1 while it worked on tools/call; it is being started again"
        )
        assert raised.value.data == {"mew": {"why": "server_died", "coming_back": True}}
        assert await stage.ann.tools("files") == []  # waits for it to be back
        assert server.lives == 2


async def test_everyone_hears_that_lists_may_have_changed_when_it_is_back() -> None:
    server = FakeServer(capabilities={"tools": {}, "prompts": {}})
    async with bridged(server) as stage:
        await stage.ann.tools("files")
        server.die()
        await stage.ann.tools("files")
        await hears_method(stage.ear, "notifications/tools/list_changed")
        await hears_method(stage.ear, "notifications/prompts/list_changed")
        told = [envelope.content["method"] for envelope in stage.ear.all("mcp/request")]
    assert "notifications/resources/list_changed" not in told


async def test_one_that_is_never_started_again_ends_the_bridge() -> None:
    server = FakeServer()
    hanging(server)
    async with bridged(server, settings(restart="never")) as stage:
        asking = asyncio.ensure_future(stage.ann.request("files", "tools/call", {"name": "t"}))
        await server.hears("tools/call")
        server.die()
        with pytest.raises(RpcError, match="and is not started again") as raised:
            await asking
        assert raised.value.data == {"mew": {"why": "server_died", "coming_back": False}}
        await asyncio.wait((stage.served,))
        error = stage.served.exception()
    assert isinstance(error, ServerUnavailable)
    assert error.worked
    assert str(error) == "the server ended with exit code 1"


async def test_one_that_ends_well_and_is_restarted_on_failure_alone_ends_the_bridge_well() -> None:
    server = FakeServer()
    server.exit_code = 0
    async with bridged(server, settings(restart="on-failure")) as stage:
        await stage.ann.tools("files")
        server.die()
        await stage.served


async def test_one_that_is_over_before_it_answers_is_no_server() -> None:
    @asynccontextmanager
    async def dying() -> AsyncIterator[ServerTransport]:
        server = FakeServer()
        async with server.opening() as wire:
            server.die()
            yield wire

    with pytest.raises(ServerUnavailable, match="ended with exit code 1 before it answered") as raised:
        async with Bridge(settings(), opening=dying):
            pass
    assert not raised.value.worked


async def test_one_that_never_answers_the_handshake_is_no_server() -> None:
    server = FakeServer("2031-01-01")

    @server.on("server/discover")
    async def hang(_: Context, __: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(60)
        return {}

    with pytest.raises(ServerUnavailable, match=r"did not answer within 0\.2 s"):
        async with Bridge(settings(start_timeout_s=0.2, modern=True), opening=server.opening):
            pass


async def test_one_of_another_time_is_no_server() -> None:
    with pytest.raises(ServerUnavailable, match='it speaks MCP of "2031-01-01"'):
        async with Bridge(settings(), opening=FakeServer("2031-01-01").opening):
            pass


async def test_a_restart_by_a_participant_restarts_the_server() -> None:
    server = FakeServer()
    async with bridged(server) as stage:
        await stage.ann.tools("files")
        asked = await stage.ann.send("participant/restart", {}, to="files")
        await stage.ear.hears("participant/status", asked)
        assert await stage.ann.tools("files") == []
    assert server.lives == 2


async def test_a_shutdown_ends_the_bridge() -> None:
    server = FakeServer()
    async with bridged(server) as stage:
        await stage.ann.tools("files")
        await stage.ann.send("participant/shutdown", {}, to="files")
        await stage.served


async def test_its_status_says_how_the_server_is() -> None:
    async with bridged(FakeServer()) as stage:
        await stage.ann.tools("files")
        asked = await stage.ann.send("participant/request-status", {}, to="files")
        status = await stage.ear.hears("participant/status", asked)
    assert status["server"] == "up"
    assert status["server_restarts"] == 0


async def test_who_is_put_out_of_the_space_ends_its_server() -> None:
    server = FakeServer()
    async with bridged(server) as stage:
        await stage.ann.tools("files")
        await stage.ann.kick("files")
        with pytest.raises(Disconnected):
            await stage.served
        assert server.is_over
