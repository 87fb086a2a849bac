"""A space with a server, a reviewer and `host`, and MCP hosts of both generations in front of it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from mcp.client._memory import InMemoryTransport
from mcp.server.lowlevel import Server

import mew
from mcp import Client as McpClient
from mew.mcp_bridge.host.server import hosting
from mew.mcp_bridge.host.settings import HostSettings
from mew.testing import Space

__all__ = [
    "GENERATIONS",
    "LEGACY",
    "MAY_PROPOSE",
    "MODERN",
    "Heard",
    "ProgressNote",
    "Stage",
    "files",
    "stage",
]

LEGACY, MODERN = "legacy", "auto"
GENERATIONS = (LEGACY, MODERN)

MAY_PROPOSE = [
    "mcp/request:*/list",
    "mcp/request:resources/templates/list",
    "mcp/proposal",
    "mcp/withdraw",
    "chat",
]
ALL = ["*"]


def files() -> mew.Participant:
    """A server as any."""
    server = mew.Participant("files")

    @server.tool
    def read_file(path: str) -> str:
        """Reads a file."""
        return f"contents of {path}"

    @server.tool
    def add(a: int, b: int) -> int:
        return a + b

    @server.tool
    def fail() -> str:
        raise mew.ToolError("no such file")

    @server.resource("file:///{+path}")
    def file(path: str) -> str:
        return f"/{path}"

    @server.resource("file:///notes.txt")
    def notes() -> str:
        return "notes"

    @server.prompt
    def review(language: str) -> str:
        """Reviews code."""
        return f"Review this {language}"

    return server


class Heard:
    """The notifications that a host got, to be waited for: pass it as `message_handler`."""

    def __init__(self) -> None:
        self.methods: list[str] = []
        self.params: list[Any] = []
        self._news = asyncio.Event()

    async def __call__(self, message: Any) -> None:
        if isinstance(message, Exception):
            raise message
        self.methods.append(message.method)
        self.params.append(message.params)
        self._news.set()

    async def hears(self, method: str) -> Any:
        """The params of the first notification of that method, once it is there."""
        async with asyncio.timeout(5):
            while method not in self.methods:
                self._news.clear()
                await self._news.wait()
        return self.params[self.methods.index(method)]

    def forget(self) -> None:
        self.methods.clear()
        self.params.clear()


class ProgressNote:
    """The progress that a host was told of: pass it as `progress_callback`."""

    def __init__(self) -> None:
        self.told: list[tuple[float, float | None, str | None]] = []
        self._news = asyncio.Event()

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        self.told.append((progress, total, message))
        self._news.set()

    @property
    def messages(self) -> list[str | None]:
        return [message for _, _, message in self.told]

    async def tells(self, message: str) -> None:
        """Return when that was told."""
        async with asyncio.timeout(5):
            while not any(message in (told or "") for told in self.messages):
                self._news.clear()
                await self._news.wait()


class Stage:
    """A running space. `me` is the host's participant, `ann` may everything."""

    def __init__(self, space: Space, stack: AsyncExitStack) -> None:
        self.space = space
        self.stack = stack
        self.ann: mew.Client
        self.me: mew.Client
        self.server: Server[Any]

    async def serve(self, participant: mew.Participant, who: str) -> mew.Client:
        return await self.stack.enter_async_context(self.space.serving(participant, who))

    async def host(self, mode: str, **callbacks: Any) -> McpClient:
        """A host that is connected over streams, as over stdio."""
        transport = InMemoryTransport(self.server)
        return await self.stack.enter_async_context(McpClient(transport, mode=mode, cache=None, **callbacks))

    async def reviewing(self) -> mew.Review:
        """The next proposal that ann may decide."""
        feed = self.ann.proposals()
        async with asyncio.timeout(5):
            return await anext(feed)


@asynccontextmanager
async def stage(
    capabilities: list[Any], settings: HostSettings | None = None, *others: tuple[mew.Participant, str]
) -> AsyncIterator[Stage]:
    """`capabilities` are those of the host's participant; `others` run beside files, and `late` may come."""
    serving = [(files(), "files"), *others]
    who = {"ann": ALL, "late": ALL, "host": capabilities, **{name: ALL for _, name in serving}}
    async with AsyncExitStack() as stack:
        space = await stack.enter_async_context(Space(who, id="demo"))
        here = Stage(space, stack)
        for participant, name in serving:
            await here.serve(participant, name)
        here.me = await stack.enter_async_context(space.connect("host"))
        here.server = await stack.enter_async_context(hosting(here.me, settings or HostSettings()))
        here.ann = await stack.enter_async_context(space.connect("ann"))
        yield here
