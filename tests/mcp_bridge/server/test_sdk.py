"""A bridge and a server of the SDK's: stdio and HTTP, both generations, and all that passes between them."""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
import uvicorn
from tests.client.ear import Ear
from tests.mcp_bridge.server.stage import answer, hears_method
from tests.mcp_bridge.servers import sdk

from mew.client.client import Client
from mew.mcp_bridge.server.bridge import Bridge
from mew.mcp_bridge.server.settings import Command, Endpoint, ServerSettings
from mew.testing import Space

pytestmark = pytest.mark.e2e

LEGACY, MODERN = "2025-11-25", "2026-07-28"
ways = pytest.mark.parametrize("way", ["stdio", "http"])
versions = pytest.mark.parametrize("version", [LEGACY, MODERN])


@dataclass
class Stage:
    ann: Client
    ear: Ear


class _Started(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.up.set()


@asynccontextmanager
async def over_http() -> AsyncIterator[Endpoint]:
    config = uvicorn.Config(sdk.make().streamable_http_app(), port=0, log_level="warning", ws="none")
    server = _Started(config)
    running = asyncio.ensure_future(server.serve())
    await server.up.wait()
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield Endpoint(url=f"http://127.0.0.1:{port}/mcp")
    finally:
        server.should_exit = server.force_exit = True
        await running


@asynccontextmanager
async def over_stdio() -> AsyncIterator[Command]:
    yield Command(program=sys.executable, arguments=(sdk.__file__,))


@pytest.fixture
async def stage(way: str, version: str) -> AsyncIterator[Stage]:
    async with (
        asyncio.timeout(30),
        over_http() if way == "http" else over_stdio() as server,
        Space({"ann": ["*"], "ben": ["*"], "sdk": ["*"]}) as space,
        space.connect("ann") as ann,
        space.connect("sdk") as client,
        Bridge(ServerSettings(server=server, modern=version != LEGACY)) as bridge,
    ):
        assert bridge.terms is not None
        assert bridge.terms.version == version
        serving = asyncio.ensure_future(bridge.serve(client))
        yield Stage(ann, Ear(ann.connection))
        serving.cancel()
        await asyncio.wait((serving,))


@ways
@versions
async def test_tools_resources_progress_questions_and_changes_pass(stage: Stage) -> None:
    ann, ear = stage.ann, stage.ear
    listed = [tool.name for tool in await ann.tools("sdk")]
    assert listed == ["greet", "steps", "wait", "cancelled", "change", "regional"]

    steps: list[float] = []
    await ann.call("sdk", "steps", on_progress=lambda done, *_: steps.append(done))
    assert steps == [1, 2, 3]

    greeting = asyncio.ensure_future(ann.request("sdk", "tools/call", {"name": "greet"}))
    question = await hears_method(ear, "elicitation/create")
    await answer(ann, question, {"action": "accept", "content": {"name": "Ann"}})
    assert (await greeting)["content"][0]["text"] == "accept {'name': 'Ann'}"

    begun = asyncio.Event()
    waiting = asyncio.ensure_future(ann.call("sdk", "wait", on_progress=lambda *_: begun.set()))
    await begun.wait()
    waiting.cancel()
    while await ann.call("sdk", "cancelled") != "1":
        pass

    assert await ann.call("sdk", "regional", {"region": "eu-1"}) == "{'region': 'eu-1'}"

    await ann.request("sdk", "resources/subscribe", {"uri": sdk.NOTE})
    await ann.call("sdk", "change")
    updated = await hears_method(ear, "notifications/resources/updated")
    assert updated.to == ("ann",)
    assert updated.content["params"]["uri"] == sdk.NOTE
    await hears_method(ear, "notifications/tools/list_changed")
    read = await ann.request("sdk", "resources/read", {"uri": sdk.NOTE})
    assert read["contents"][0]["text"] == "second"
