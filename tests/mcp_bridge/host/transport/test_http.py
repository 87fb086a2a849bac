"""Over HTTP: several hosts at once, all as one participant, and nobody without the secret."""

import asyncio
import os
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import httpx2
import mcp_types
import pytest
from mcp.client.streamable_http import streamable_http_client
from tests.mcp_bridge.host.stage import GENERATIONS, MAY_PROPOSE, files

import mew
from mcp import Client as McpClient
from mew.mcp_bridge.host import HostSettings, serve_http
from mew.mcp_bridge.host.transport.http import is_loopback, secret_in
from mew.testing import Space

SECRET = "a-secret-of-some-length"
EITHER = pytest.mark.parametrize("mode", GENERATIONS)
HELLO: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
JSON = {"Accept": "application/json, text/event-stream"}


@asynccontextmanager
async def served(
    capabilities: list[Any], secret: str | None = SECRET, settings: HostSettings | None = None
) -> AsyncIterator[tuple[str, Space]]:
    async with (
        Space({"host": capabilities, "files": ["*"], "ann": ["*"]}, id="demo") as space,
        space.serving(files(), "files"),
        space.connect("host") as me,
    ):
        url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        serving = serve_http(me, settings or HostSettings(), secret=secret, ready=url.set_result)
        running = me.connection.spawn(serving)
        async with asyncio.timeout(10):
            yield await url, space
        running.cancel()
        await asyncio.wait((running,))


@asynccontextmanager
async def host_at(url: str, mode: str, secret: str | None = SECRET) -> AsyncIterator[McpClient]:
    headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30) as http,
        McpClient(streamable_http_client(url, http_client=http), mode=mode, cache=None) as host,
    ):
        yield host


@pytest.mark.slow
@EITHER
async def test_several_hosts_work_at_once_as_one_participant(mode: str) -> None:
    async with served(["*"]) as (url, space), host_at(url, mode) as one, host_at(url, mode) as two:
        results = await asyncio.gather(
            *[host.call_tool("files__add", {"a": n, "b": 1}) for n, host in enumerate((one, two))]
        )

        assert [result.structured_content for result in results] == [{"result": 1}, {"result": 2}]
        async with space.connect("ann") as ann:
            asked = await ann.history(kind="mcp/request").list()
            assert {it.sender for it in asked} == {"host"}


@EITHER
async def test_a_call_waits_for_approval_over_http_too(mode: str) -> None:
    async with served(MAY_PROPOSE) as (url, space), host_at(url, mode) as host, asyncio.TaskGroup() as tasks:
        ann = await _joined(space, tasks)
        calling = tasks.create_task(host.call_tool("files__read_file", {"path": "/a"}))
        await (await anext(ann.proposals())).approve()
        result = await calling

        assert result.content == [mcp_types.TextContent(text="contents of /a")]
        await ann.connection.leave()


@pytest.mark.parametrize("header", [None, "Bearer wrong", f"Basic {SECRET}", SECRET, ""])
async def test_nobody_comes_in_without_the_secret(header: str | None) -> None:
    async with served(["*"]) as (url, _), aiohttp.ClientSession() as session:
        headers = JSON if header is None else {**JSON, "Authorization": header}
        async with session.post(url, json=HELLO, headers=headers) as answer:
            assert answer.status == 401
            assert answer.headers["WWW-Authenticate"] == "Bearer"
            assert SECRET not in await answer.text()


async def test_with_no_secret_it_is_open_but_not_to_a_page_of_another_site() -> None:
    async with served(["*"], secret=None) as (url, _), aiohttp.ClientSession() as session:
        async with session.post(url, json=HELLO, headers=JSON) as answer:
            assert answer.status == 200
        async with session.post(url, json=HELLO, headers={**JSON, "Host": "evil.example"}) as answer:
            assert answer.status == 421
        async with session.post(
            url, json=HELLO, headers={**JSON, "Origin": "https://evil.example"}
        ) as answer:
            assert answer.status == 403


async def test_what_cannot_be_listened_on_is_an_error() -> None:
    async with served(["*"]) as (url, space), space.connect("ann") as ann:
        port = int(url.rpartition(":")[2].removesuffix("/mcp"))

        with pytest.raises(OSError, match="in use"):
            await serve_http(ann, HostSettings(), port=port, secret=None, ready=lambda url: None)


async def test_it_ends_with_the_connection_to_the_space() -> None:
    async with Space({"host": ["*"]}) as space, space.connect("host") as me:
        url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        async with asyncio.TaskGroup() as tasks:
            serving = tasks.create_task(_disconnected(me, url))
            await url
            await me.connection.leave()
            await serving


def test_a_secret_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / ".mew" / "mcp" / "host.secret"

    made = secret_in(path)

    assert len(made) > 30
    assert secret_in(path) == made
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_a_secret_that_others_can_read_or_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "host.secret"
    path.write_text("a-secret-that-all-can-read\n")
    path.chmod(0o644)
    with pytest.raises(ValueError, match="others can read it"):
        secret_in(path)
    path.write_text("short")
    path.chmod(0o600)
    with pytest.raises(ValueError, match="no secret"):
        secret_in(path)


def test_only_this_machine_is_loopback() -> None:
    assert [
        host for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "10.0.0.1", "") if is_loopback(host)
    ] == [
        "127.0.0.1",
        "::1",
        "localhost",
    ]


async def _joined(space: Space, tasks: asyncio.TaskGroup) -> mew.Client:
    here: asyncio.Future[mew.Client] = asyncio.get_running_loop().create_future()

    async def stay() -> None:
        async with space.connect("ann") as ann:
            here.set_result(ann)
            await ann.connection.ended

    tasks.create_task(stay())
    return await here


async def _disconnected(me: mew.Client, url: "asyncio.Future[str]") -> None:
    with pytest.raises(mew.Disconnected):
        await serve_http(me, HostSettings(), secret=SECRET, ready=url.set_result)
