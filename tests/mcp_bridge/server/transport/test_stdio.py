"""A server as a process: what passes to it, what it writes, and that nothing of it is left."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp.client.stdio import get_default_environment
from tests.mcp_bridge.servers import raw
from tests.processes import is_running, until_gone

from mew.client.client import Client
from mew.client.errors import RpcError
from mew.mcp_bridge.server.bridge import Bridge
from mew.mcp_bridge.server.errors import ServerUnavailable
from mew.mcp_bridge.server.settings import Command, ServerSettings
from mew.testing import Space

pytestmark = pytest.mark.e2e


def command(*arguments: str, **more: Any) -> Command:
    return Command(program=sys.executable, arguments=(raw.__file__, *arguments), **more)


@asynccontextmanager
async def served(server: Command, said: list[str] | None = None) -> AsyncIterator[Client]:
    """Ann, in a space with the server as `files`."""
    lines: list[str] = [] if said is None else said
    async with (
        asyncio.timeout(30),
        Space({"ann": ["*"], "files": ["*"]}) as space,
        space.connect("ann") as ann,
        space.connect("files") as files,
        Bridge(ServerSettings(server=server), tell=lines.append) as bridge,
    ):
        serving = asyncio.ensure_future(bridge.serve(files))
        yield ann
        serving.cancel()
        await asyncio.wait((serving,))


async def call(ann: Client, tool: str, **arguments: Any) -> Any:
    return await ann.request("files", "tools/call", {"name": tool, "arguments": arguments}, timeout_s=20)


async def test_what_it_answers_is_the_same_json(monkeypatch: pytest.MonkeyPatch) -> None:
    async with served(command()) as ann:
        result = await call(ann, "odd")
        assert result == {
            "content": [],
            "one": 1.0,
            "big": 123456789012345678901234567890,
            "tiny": 1e-7,
            "nothing": None,
            "é": "\x1b",
        }
        assert isinstance(result["one"], float)
        line = (await call(ann, "echo", a=None, b=2**70, c=1.0, d="é\x1b\u2028"))["line"]
        for written in ('"a":null', f'"b":{2**70}', '"c":1.0'):
            assert written in line


async def test_it_gets_no_variable_of_ours_but_those_that_are_meant(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MEW_TOKEN", "secret-token")
    monkeypatch.setenv("AWS_SECRET", "secret-of-another")
    meant = {"API_KEY": "meant", "MEW_TOKEN": "sneaked"}
    async with served(command(environment=meant, directory=tmp_path)) as ann:
        found = await call(ann, "environment")
    passed = found["environment"]
    assert passed["API_KEY"] == "meant"
    assert "secret" not in str(passed)
    assert "sneaked" not in str(passed)
    assert set(passed) - {"LC_CTYPE"} <= set(get_default_environment()) | {"API_KEY"}
    assert found["cwd"] == str(tmp_path)


async def test_one_that_dies_is_told_with_its_exit_code_and_comes_back() -> None:
    said: list[str] = []
    async with served(command(), said) as ann:
        with pytest.raises(RpcError, match="ended with exit code 3 while it worked on tools/call") as raised:
            await call(ann, "die")
        assert raised.value.data == {"mew": {"why": "server_died", "coming_back": True}}
        assert (await call(ann, "odd"))["one"] == 1.0
    assert said == ["raw is here", r"I die\u001b[2J", "raw is here"]


async def test_garbage_in_its_output_is_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    async with served(command()) as ann:
        assert await call(ann, "garbage") == {"content": []}
    assert caplog.text.count("is no MCP message") == 1


async def test_a_message_without_end_ends_it() -> None:
    async with served(command()) as ann:
        with pytest.raises(RpcError, match="sent a message of more than 64 MiB"):
            await call(ann, "huge")
        assert (await call(ann, "odd"))["one"] == 1.0  # it is back, and not about to be when all ends


async def test_its_children_go_with_it() -> None:
    async with served(command()) as ann:
        pids = await call(ann, "child")
        assert is_running(pids["pid"])
    await until_gone(pids["mine"], pids["pid"])


@pytest.mark.slow
async def test_one_that_does_not_want_to_go_is_killed() -> None:
    async with served(command("--ignore-eof")) as ann:
        pids = await call(ann, "child")
    await until_gone(pids["mine"], pids["pid"])


async def test_one_that_goes_at_a_word_it_does_not_know_is_met_with_initialize() -> None:
    async with served(command("--shy")) as ann:
        assert (await call(ann, "odd"))["one"] == 1.0


async def test_one_that_is_not_there_is_said_in_a_sentence() -> None:
    with pytest.raises(ServerUnavailable, match="cannot be started: there is no no-such-program"):
        async with served(Command(program="no-such-program")):
            pass


async def test_one_that_fails_at_once_is_said_with_its_last_words() -> None:
    fails = Command(program=sys.executable, arguments=("-c", "import sys; sys.exit('no such folder: /x')"))
    with pytest.raises(ServerUnavailable) as raised:
        async with served(fails):
            pass
    assert str(raised.value) == (
        "the server ended with exit code 1 before it answered; the last it said: no such folder: /x"
    )
