"""`mew bridge` as its user types it: a gateway, real servers from the registry, and nothing left afterwards."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.mcp_bridge.servers import raw
from tests.processes import until_gone

import mew
from mew.client.client import Client

from .process import Gateway, run_gateway, secret

pytestmark = pytest.mark.e2e

_BIN = Path(sys.executable).parent
_WAIT_S = 60.0
"""For programs that import a lot, on a machine that is busy."""


class Space:
    """A gateway with ann, who may do everything, and somebody who bridges."""

    def __init__(self, gateway: Gateway, tokens: dict[str, str], folder: Path) -> None:
        self.gateway = gateway
        self.tokens = tokens
        self.folder = folder

    @contextmanager
    def bridging(self, *words: str, **environ: str) -> Iterator["Bridging"]:
        """Type `mew bridge` as `tool`."""
        with subprocess.Popen(
            [str(_BIN / "mew"), "bridge", *words],
            cwd=self.folder,
            env={
                **os.environ,
                "MEW_GATEWAY": self.gateway.ws_url,
                "MEW_SPACE": "demo",
                "MEW_AS": "tool",
                "MEW_TOKEN": self.tokens["tool"],
                **environ,
            },
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        ) as process:
            bridging = Bridging(process)
            try:
                yield bridging
            finally:
                process.kill()

    @asynccontextmanager
    async def ann(self) -> AsyncIterator[Client]:
        token = self.tokens["ann"]
        async with (
            asyncio.timeout(_WAIT_S),
            mew.connect(self.gateway.ws_url, space="demo", token=token) as client,
        ):
            yield client


class Bridging:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def ended(self) -> tuple[int, str]:
        """Its exit code, and what it said."""
        _, said = self.process.communicate(timeout=_WAIT_S)
        return self.process.returncode, said

    def stop(self) -> tuple[int, str]:
        self.process.send_signal(signal.SIGTERM)
        return self.ended()


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Space]:
    folder = tmp_path_factory.mktemp("space")
    tokens = {"ann": secret("ann"), "tool": secret("tool")}
    config: dict[str, Any] = {
        "space": {"id": "demo"},
        "participants": {
            "ann": {"tokens": [tokens["ann"]], "capabilities": [{"kind": "*"}]},
            "tool": {"tokens": [tokens["tool"]], "capabilities": [{"kind": "mcp/*"}]},
        },
    }
    with run_gateway(folder, config) as gateway:
        yield Space(gateway, tokens, folder)


async def here(ann: Client) -> None:
    """Until the bridge has joined."""
    async with ann.envelopes("system/presence") as joining:
        if "tool" in ann.participants:
            return
        async for _ in joining:
            if "tool" in ann.participants:
                return


async def test_the_time_server_tells_the_time(space: Space) -> None:
    with space.bridging("--", str(_BIN / "mcp-server-time")) as bridging:
        async with space.ann() as ann:
            await here(ann)
            told = await ann.call("tool", "get_current_time", {"timezone": "UTC"})
            assert told["timezone"] == "UTC"
            tools = await ann.tools("tool")
        code, said = bridging.stop()
    assert code == 0
    assert "is tool in space demo" in said
    assert "Traceback" not in said
    assert {"get_current_time", "convert_time"} <= {tool.name for tool in tools}
    assert (space.folder / ".mew" / "bridge" / "tool.json").exists()


async def test_the_git_server_shows_a_repository(space: Space) -> None:
    subprocess.run(["git", "init", "-q", "-b", "main", str(space.folder / "repo")], check=True)  # noqa: ASYNC221
    repository = str(space.folder / "repo")
    with space.bridging("--", str(_BIN / "mcp-server-git"), "--repository", repository) as bridging:
        async with space.ann() as ann:
            await here(ann)
            status = await ann.call("tool", "git_status", {"repo_path": repository})
            assert "On branch main" in str(status)
            refused = await ann.request(
                "tool", "tools/call", {"name": "git_status", "arguments": {"repo_path": "/"}}
            )
            assert refused["isError"]
        assert bridging.stop()[0] == 0


async def test_a_termination_leaves_no_process_of_the_server(space: Space) -> None:
    with space.bridging("--", sys.executable, raw.__file__) as bridging:
        async with space.ann() as ann:
            await here(ann)
            pids = await ann.request("tool", "tools/call", {"name": "child"})
            found = await ann.request("tool", "tools/call", {"name": "environment"})
        code, said = bridging.stop()
    assert code == 0
    assert "tool | raw is here" in said
    assert not [name for name in found["environment"] if name.startswith("MEW_")]
    await until_gone(pids["mine"], pids["pid"])


async def test_a_bridge_that_is_killed_takes_its_server_along(space: Space) -> None:
    with space.bridging("--", sys.executable, raw.__file__) as bridging:
        async with space.ann() as ann:
            await here(ann)
            server = (await ann.request("tool", "tools/call", {"name": "environment"}))["pid"]
            bridging.process.kill()
            await until_gone(server)


def test_a_server_that_fails_at_once_is_said_in_a_sentence(space: Space) -> None:
    with space.bridging("--", sys.executable, "-c", "raise SystemExit('no such folder: /x')") as bridging:
        code, said = bridging.ended()
    assert code == 2
    assert said.splitlines()[-1] == (
        "mew bridge: tool: the server ended with exit code 1 before it answered;"
        " the last it said: no such folder: /x"
    )
    assert "Traceback" not in said


async def test_one_that_is_not_started_again_ends_the_bridge(space: Space) -> None:
    with space.bridging("--restart", "never", "--", sys.executable, raw.__file__) as bridging:
        async with space.ann() as ann:
            await here(ann)
            with pytest.raises(mew.RpcError, match="ended with exit code 3 while it worked on tools/call"):
                await ann.request("tool", "tools/call", {"name": "die"})
        code, said = bridging.ended()
    assert code == 1
    assert said.splitlines()[-1] == (
        r"mew bridge: tool: the server ended with exit code 3; the last it said: I die\\u001b[2J"
    )


def test_a_token_of_somebody_else_is_noticed(space: Space) -> None:
    with space.bridging("--as", "files", "--", sys.executable, raw.__file__) as bridging:
        code, said = bridging.ended()
    assert code == 2
    assert "the token is that of 'tool', and not of 'files' as --as says" in said
