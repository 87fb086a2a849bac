"""A server over Streamable HTTP: what goes wrong with one request is told of that one, and sessions are made again."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.client.ear import Ear
from tests.mcp_bridge.server.stage import answer
from tests.mcp_bridge.servers.over_http import HttpServer

from mew.client.client import Client
from mew.client.errors import RpcError
from mew.mcp_bridge.server.bridge import Bridge
from mew.mcp_bridge.server.errors import ServerUnavailable
from mew.mcp_bridge.server.settings import Endpoint, ServerSettings
from mew.testing import Space


@asynccontextmanager
async def served(url: str, **headers: str) -> AsyncIterator[tuple[Client, Client]]:
    settings = ServerSettings(server=Endpoint(url=url, headers=headers), restart_delay_s=0.01)
    async with (
        asyncio.timeout(10),
        Space({"ann": ["*"], "ben": ["*"], "web": ["*"]}) as space,
        space.connect("ann") as ann,
        space.connect("ben") as ben,
        space.connect("web") as web,
        Bridge(settings) as bridge,
    ):
        serving = asyncio.ensure_future(bridge.serve(web))
        yield ann, ben
        serving.cancel()
        await asyncio.wait((serving,))


async def call(somebody: Client, name: str = "t") -> Any:
    return await somebody.request("web", "tools/call", {"name": name})


async def test_headers_go_with_each_request_and_json_passes() -> None:
    server = HttpServer()
    async with server.listening() as url, served(url, Authorization="Bearer s3cret") as (ann, _):
        assert await call(ann) == {"content": [], "n": 1.0}
    assert {headers["Authorization"] for headers in server.headers} == {"Bearer s3cret"}
    assert "s3cret" not in repr(Endpoint(url=url, headers={"Authorization": "Bearer s3cret"}))


@pytest.mark.parametrize("status", [404, 400])
async def test_a_session_that_is_over_is_made_again_and_nobody_notices(status: int) -> None:
    server = HttpServer()
    server.stranger = status
    async with server.listening() as url, served(url) as (ann, _):
        await call(ann)
        server.forget()
        assert await call(ann) == {"content": [], "n": 1.0}
    assert server.handshakes == 2


async def test_a_status_is_told_to_who_asked() -> None:
    server = HttpServer()
    async with server.listening() as url, served(url) as (ann, _):
        server.status = 503
        with pytest.raises(RpcError, match="the server answered with HTTP 503 Service Unavailable") as raised:
            await call(ann)
    assert raised.value.data == {"mew": {"why": "server_unreachable", "status": 503}}


async def why(somebody: Client) -> str | None:
    """Why a call fails; None: it does not."""
    try:
        await call(somebody)
    except RpcError as error:
        return str(error.data["mew"]["why"])
    return None


async def test_a_server_that_is_gone_is_unreachable_and_found_again() -> None:
    server = HttpServer()
    async with server.listening() as url, served(url) as (ann, _):
        assert await why(ann) is None
        server.gone = True
        assert await why(ann) == "server_unreachable"
        server.gone = False
        server.forget()
        while await why(ann) is not None:
            pass
    assert server.handshakes > 1


async def test_a_stream_that_breaks_is_told_to_who_asked() -> None:
    server = HttpServer()
    async with server.listening() as url, served(url) as (ann, _):
        with pytest.raises(RpcError, match="broke off while it worked on tools/call") as raised:
            await call(ann, "break")
        assert await call(ann) == {"content": [], "n": 1.0}
    assert raised.value.data["mew"]["why"] == "server_died"


async def test_a_cancellation_reaches_the_server() -> None:
    server = HttpServer()
    async with server.listening() as url, served(url) as (ann, _):
        calling = asyncio.ensure_future(call(ann, "hang"))
        await server.hears("tools/call")
        calling.cancel()
        request = await server.hears("tools/call")
        cancelled = await server.hears("notifications/cancelled")
    assert cancelled["params"]["requestId"] == request["id"]


async def test_a_question_goes_to_whom_it_is_about_though_others_wait_too() -> None:
    server = HttpServer()
    async with server.listening() as url, served(url) as (ann, ben):
        ear = Ear(ann.connection)
        waiting = asyncio.ensure_future(call(ben, "hang"))
        asking = asyncio.ensure_future(call(ann, "ask"))
        question = await ear.hears_of("mcp/request", many=3)
        assert question.to == ("ann",)
        await answer(ann, question, {"action": "accept", "content": {}})
        assert (await asking)["answered"] == {"action": "accept", "content": {}}
        waiting.cancel()


async def test_one_that_is_not_there_is_no_server() -> None:
    with pytest.raises(ServerUnavailable, match="could not be reached"):
        async with served("http://127.0.0.1:9/mcp"):
            pass


@pytest.mark.slow
async def test_one_that_does_not_say_goodbye_is_not_waited_for() -> None:
    server = HttpServer()
    server.says_goodbye = False
    async with server.listening() as url:
        async with served(url) as (ann, _):
            await call(ann)
        assert server.goodbyes == 1


@pytest.mark.slow
async def test_an_answer_without_end_is_given_up_and_others_go_on() -> None:
    server = HttpServer()
    async with server.listening() as url, served(url) as (ann, _):
        with pytest.raises(RpcError, match="more than 64 MiB"):
            await call(ann, "endless")
        assert await call(ann) == {"content": [], "n": 1.0}


async def test_an_answer_that_is_packed_is_not_unpacked() -> None:
    server = HttpServer()
    async with server.listening() as url, served(url) as (ann, _):
        with pytest.raises(RpcError, match="packed") as raised:
            await call(ann, "packed")
    assert raised.value.data["mew"]["why"] == "server_unreachable"
    assert {headers["Accept-Encoding"] for headers in server.headers} == {"identity"}
