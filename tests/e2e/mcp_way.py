"""The whole way round: an MCP host, `mew mcp`, a gateway, `mew bridge`, an MCP server, and Ann, who reviews."""

import asyncio
import os
import re
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from mcp.client.stdio import StdioServerParameters

import mew
from mew.mcp_bridge.host import HostSettings, serve_http
from mew.mcp_bridge.server.bridge import Bridge
from mew.mcp_bridge.server.settings import Command, ServerSettings

from .mcp_host import ELICITED, SAMPLED, Json
from .mcp_servers import Real
from .process import Gateway, secret, secrets_used

__all__ = ["CAPABILITIES", "MEW", "Reviewer", "Way", "config", "program"]

MEW = str(Path(sys.executable).with_name("mew"))
START_S = 60.0
SPACE = "desk"
_OF_A_SERVER = re.compile(r"[\w-]+ \| ")  # what a server writes, its bridge passes on
BRIDGE = [
    "mcp/request:notifications/**",
    "mcp/request:elicitation/create",
    "mcp/request:sampling/createMessage",
]
CAPABILITIES: Mapping[str, list[object]] = {
    "ann": ["*"],
    "caller": ["mcp/request", "mcp/withdraw"],
    "proposer": [
        "mcp/proposal",
        "mcp/withdraw",
        {"kind": "mcp/request", "payload": {"method": "!tools/call"}},
    ],
}


def config(*servers: str) -> Json:
    """A `space.yaml` for Ann, two hosts, and these servers."""
    held = {**CAPABILITIES, **{name: [*BRIDGE, "stream/*"] for name in servers}}
    people = {who: {"tokens": [secret(f"token-of-{who}")], "capabilities": can} for who, can in held.items()}
    return {"space": {"id": SPACE}, "participants": people}


class Reviewer:
    """Approves whatever is proposed, and answers what servers ask, as the host would."""

    def __init__(self, client: mew.Client) -> None:
        self.client = client
        self.asked: list[Json] = []
        self.approved: list[str] = []

    async def joined(self, who: str) -> None:
        """Wait until somebody is there."""
        async with asyncio.timeout(START_S), self.client.envelopes("system/presence") as presence:
            while who not in list(self.client.participants):
                await anext(presence)

    async def approve(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            async for review in self.client.proposals():
                tasks.create_task(self._approve(review))

    async def answer(self) -> None:
        async for envelope in self.client.envelopes("mcp/request", to_me=True):
            payload = envelope.content
            if "id" in payload:
                answer = {"jsonrpc": "2.0", "id": payload["id"], "result": self._answer(payload)}
                about = [envelope.id]
                await self.client.send("mcp/response", answer, to=envelope.sender, correlation_id=about)

    async def _approve(self, review: mew.Review) -> None:
        self.approved.append(str(review.tool))
        with suppress(mew.MewError):  # the host is told of it, and that is what tests look at
            await review.approve()

    def _answer(self, payload: Json) -> Json:
        self.asked.append({"method": payload["method"], "params": payload["params"]})
        if payload["method"] == "sampling/createMessage":
            return SAMPLED.model_dump(by_alias=True, mode="json", exclude_none=True)
        wanted = payload["params"]["requestedSchema"].get("properties", {})
        return {"action": "accept", "content": {key: ELICITED[key] for key in wanted if key in ELICITED}}


class Way:
    """A gateway, and the commands that lead to it and away from it. Tokens travel in files."""

    def __init__(self, gateway: Gateway, people: Mapping[str, Mapping[str, Any]]) -> None:
        self.gateway = gateway
        self._folder = gateway.config.parent
        for who, held in people.items():
            (self._folder / f"{who}.token").write_text(held["tokens"][0])

    def door(self, who: str) -> list[str]:
        token = str(self._folder / f"{who}.token")
        return ["--gateway", self.gateway.ws_url, "--space", SPACE, "--token-file", token]

    def host(self, who: str, server: str) -> StdioServerParameters:
        """What a host starts: the tools of one server, with their own names."""
        command = ["mcp", *self.door(who), "--only", server, "--no-own-tools"]
        return StdioServerParameters(command=MEW, args=command, cwd=self._folder)

    @asynccontextmanager
    async def bridge(self, name: str, real: Real, folder: Path) -> AsyncIterator[None]:
        """A server as a participant, within the block."""
        environ = real.environment(folder).items()
        options = [option for key, value in environ for option in ("--env", f"{key}={value}")]
        options += ["--modern"] if real.modern else []
        command = [*self.door(name), *options, "--", *real.command(folder)]
        async with program(MEW, "bridge", *command, cwd=self._folder):
            yield

    @asynccontextmanager
    async def bridge_here(self, name: str, real: Real, folder: Path) -> AsyncIterator[None]:
        """The same without a process for it."""
        program, *arguments = real.command(folder)
        command = Command(program=program, arguments=arguments, environment=real.environment(folder))
        async with self.bridged(name, ServerSettings(server=command, modern=real.modern)):
            yield

    @asynccontextmanager
    async def bridged(self, name: str, settings: ServerSettings) -> AsyncIterator[None]:
        async with (
            Bridge(settings, tell=lambda line: None) as bridge,
            self._connected(name) as client,
            asyncio.TaskGroup() as tasks,
        ):
            serving = tasks.create_task(bridge.serve(client))
            yield
            serving.cancel()

    @asynccontextmanager
    async def host_here(self, who: str, server: str) -> AsyncIterator[str]:
        """The same as `host` without a process for it, over HTTP: its address."""
        address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        settings = HostSettings(only=server, own_tools=False)
        async with self._connected(who) as client, asyncio.TaskGroup() as tasks:
            serving = tasks.create_task(serve_http(client, settings, secret=None, ready=address.set_result))
            yield await address
            serving.cancel()

    def _connected(self, who: str) -> mew.Client:
        return mew.connect(self.gateway.ws_url, space=SPACE, token=self._folder / f"{who}.token")

    @asynccontextmanager
    async def reviewer(self) -> AsyncIterator[Reviewer]:
        async with self._connected("ann") as client, asyncio.TaskGroup() as tasks:
            ann = Reviewer(client)
            working = [tasks.create_task(ann.approve()), tasks.create_task(ann.answer())]
            yield ann
            for task in working:
                task.cancel()


@asynccontextmanager
async def program(*command: str, cwd: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """Runs within the block, then is asked to end; it must end well, and have said no secret and no traceback."""
    with tempfile.TemporaryFile() as log:
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=cwd,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, "PYTHONWARNINGS": "default"},
        )
        try:
            yield process
        finally:
            await _ended(process)
            log.seek(0)
            text = log.read().decode(errors="replace")
            sys.stderr.write(text)  # pytest shows it where a test fails
    ours = [line for line in text.splitlines() if not _OF_A_SERVER.match(line)]
    assert process.returncode in (0, -signal.SIGTERM, 143), text
    assert not [line for line in ours if "Traceback" in line], text
    assert not [token for token in secrets_used if token in text], text


async def _ended(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.send_signal(signal.SIGTERM)
    try:
        async with asyncio.timeout(10):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
