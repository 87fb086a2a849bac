"""A bridge in a real space, and a server on its other side that says what a test wants: raw, of either generation."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
from mcp.shared.dispatcher import DispatchContext
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.transport_context import TransportContext
from tests.client.ear import Ear

from mew.client.client import Client
from mew.mcp_bridge.server.bridge import Bridge
from mew.mcp_bridge.server.settings import Command, ServerSettings
from mew.mcp_bridge.server.transport.transport import ServerExit, ServerTransport
from mew.protocol.envelope import Envelope
from mew.testing import Space

__all__ = [
    "LEGACY",
    "MODERN",
    "Context",
    "FakeServer",
    "Stage",
    "answer",
    "bridged",
    "hears_method",
    "settings",
]

LEGACY, MODERN = "2025-11-25", "2026-07-28"
WHO = {"ann": ["*"], "ben": ["*"], "files": ["*"]}

Context = DispatchContext[TransportContext]
Handler = Callable[[Context, dict[str, Any]], Awaitable[dict[str, Any]]]


class FakeServer:
    """Answers what it has a handler for. `lives` counts how often it was started.

    `says_whose`: what it asks and tells comes with the request it is about, as over HTTP; else as over stdio.
    """

    def __init__(self, version: str = LEGACY, capabilities: dict[str, Any] | None = None) -> None:
        self.version = version
        self.capabilities = {"tools": {"listChanged": True}} if capabilities is None else capabilities
        self.handlers: dict[str, Handler] = {"ping": _ping, "tools/list": _no_tools}
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.told: list[tuple[str, dict[str, Any]]] = []
        self.says_whose = False
        self.lives = 0
        self.is_over = False
        self.exit_code: int | None = 1
        self.ours: dict[str, Any] = {}
        self._peer: JSONRPCDispatcher | None = None
        self._news = asyncio.Event()
        self._stop = asyncio.Event()

    def on(self, method: str) -> Callable[[Handler], Handler]:
        def put(handler: Handler) -> Handler:
            self.handlers[method] = handler
            return handler

        return put

    async def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        assert self._peer is not None
        await self._peer.notify(method, params)

    def die(self) -> None:
        self._stop.set()

    async def hears(self, method: str, *, many: int = 1) -> dict[str, Any]:
        """The params of the request or notification of that method, once that many came."""
        while len(found := [params for name, params in (*self.asked, *self.told) if name == method]) < many:
            self._news.clear()
            await self._news.wait()
        return found[many - 1]

    @asynccontextmanager
    async def opening(self) -> AsyncIterator[ServerTransport]:
        self.lives += 1
        self._stop = stop = asyncio.Event()
        async with self._streams() as (client, server), anyio.create_task_group() as tasks:
            self._peer = JSONRPCDispatcher(*server)
            await tasks.start(self._peer.run, self._on_request, self._on_notify)

            async def until_dead() -> None:
                await stop.wait()
                await server[1].aclose()

            tasks.start_soon(until_dead)
            self.is_over = False
            try:
                yield ServerTransport(read=client[0], write=client[1], is_http=False, ending=self._ending)
            finally:
                self.is_over = True
                tasks.cancel_scope.cancel()

    @asynccontextmanager
    async def _streams(self) -> AsyncIterator[tuple[Any, Any]]:
        if self.says_whose:
            async with create_client_server_memory_streams() as streams:
                yield streams
            return
        to_client, at_client = anyio.create_memory_object_stream[Any](1)
        to_server, at_server = anyio.create_memory_object_stream[Any](1)
        async with to_client, at_client, to_server, at_server:
            yield (at_client, to_server), (at_server, to_client)

    def _ending(self) -> ServerExit:
        code = self.exit_code if self._stop.is_set() else None
        return ServerExit("closed its output" if code is None else f"ended with exit code {code}", code)

    async def _on_request(self, context: Context, method: str, params: Any) -> dict[str, Any]:
        asked = dict(params or {})
        if method == "initialize" and self.version != MODERN:
            self.ours = asked["capabilities"]
            return {
                "protocolVersion": self.version,
                "capabilities": self.capabilities,
                "serverInfo": {"name": "fake", "version": "1", "mood": "good"},
                "instructions": "Be kind.",
            }
        if method == "server/discover" and self.version == MODERN:
            return {
                "resultType": "complete",
                "supportedVersions": [MODERN],
                "capabilities": self.capabilities,
                "ttlMs": 0,
                "cacheScope": "private",
                "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "fake", "version": "2"}},
            }
        handler = self.handlers.get(method)
        self.asked.append((method, asked))
        self._news.set()
        if handler is None:
            raise MCPError(-32601, "Method not found", method)
        return await handler(context, asked)

    async def _on_notify(self, _: Context, method: str, params: Any) -> None:
        self.told.append((method, dict(params or {})))
        self._news.set()


@dataclass
class Stage:
    space: Space
    ann: Client
    ben: Client
    files: Client
    ear: Ear
    served: "asyncio.Task[None]"


def settings(**more: Any) -> ServerSettings:
    return ServerSettings(server=Command(program="fake"), **{"restart_delay_s": 0.01, **more})


@asynccontextmanager
async def bridged(
    server: FakeServer, told: ServerSettings | None = None, *, who: dict[str, Any] | None = None
) -> AsyncIterator[Stage]:
    """The server as `files`; ann and ben are there too."""
    async with asyncio.timeout(10), AsyncExitStack() as stack:
        space = await stack.enter_async_context(Space(WHO if who is None else who))
        ann = await stack.enter_async_context(space.connect("ann"))
        ben = await stack.enter_async_context(space.connect("ben"))
        files = await stack.enter_async_context(space.connect("files"))
        bridge = await stack.enter_async_context(Bridge(told or settings(), opening=server.opening))
        served = asyncio.ensure_future(bridge.serve(files))
        yield Stage(space, ann, ben, files, Ear(ann.connection), served)
        served.cancel()
        await asyncio.wait((served,))


async def hears_method(ear: Ear, method: str, *, many: int = 1) -> Envelope:
    """The envelope of that MCP method, once that many were heard."""
    number = 0
    while True:
        number += 1
        envelope = await ear.hears_of("mcp/request", many=number)
        many -= envelope.content["method"] == method
        if not many:
            return envelope


async def answer(somebody: Client, question: Envelope, result: dict[str, Any]) -> None:
    """Say what somebody says to what the bridge asks them."""
    payload = {"jsonrpc": "2.0", "id": question.content["id"], "result": result}
    await somebody.send("mcp/response", payload, to=question.sender, correlation_id=question.id)


async def _ping(_: Context, __: dict[str, Any]) -> dict[str, Any]:
    return {}


async def _no_tools(_: Context, __: dict[str, Any]) -> dict[str, Any]:
    return {"tools": []}
