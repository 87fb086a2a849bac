"""`mew mcp` as hosts start it: a process on stdio or HTTP, in front of a gateway that is another."""

import asyncio
import os
import re
import signal
import stat
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import mcp_types
import pytest
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

import mew
from mcp import Client as McpClient
from mcp import StdioServerParameters

from .process import WAIT_S, Gateway, run_gateway, secret, secrets_used

MEW = str(Path(sys.executable).with_name("mew"))
TOKENS = {who: secret(f"token-of-{who}") for who in ("ann", "files", "host")}
HELD: dict[str, list[Any]] = {
    "ann": ["*"],
    "files": ["mcp/*", "chat"],
    "host": ["mcp/request:*/list", "mcp/request:tools/call:read_*", "mcp/proposal", "mcp/withdraw", "chat"],
}
EITHER = pytest.mark.parametrize("mode", ["legacy", "auto"])


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    participants = {who: {"tokens": [TOKENS[who]], "capabilities": held} for who, held in HELD.items()}
    config = {"spaces": [{"id": "demo"}], "participants": participants}
    with run_gateway(tmp_path_factory.mktemp("mcp"), config) as running:
        yield running


@pytest.fixture
async def ann(gateway: Gateway) -> AsyncIterator[mew.Client]:
    """The reviewer, and beside her the server."""
    files = mew.Participant("files")

    @files.tool
    def read_file(path: str) -> str:
        return f"contents of {path}"

    @files.tool
    def write_file(path: str) -> str:
        print("this must not reach the host")  # noqa: T201 as a careless tool would
        return f"wrote {path}"

    async with (
        mew.connect(gateway.ws_url, space="demo", token=TOKENS["files"]) as server,
        mew.connect(gateway.ws_url, space="demo", token=TOKENS["ann"]) as client,
    ):
        serving = server.connection.spawn(files.serve(server))
        yield client
        files.stop()
        await serving


def words(gateway: Gateway, tmp_path: Path, *more: str) -> list[str]:
    token = tmp_path / "host.token"
    token.write_text(TOKENS["host"])
    return ["mcp", "--gateway", gateway.ws_url, "--space", "demo", "--token-file", str(token), *more]


@asynccontextmanager
async def host(
    gateway: Gateway, tmp_path: Path, mode: str, *more: str
) -> AsyncIterator[tuple[McpClient, Path]]:
    """A host that starts it, and what it wrote to stderr."""
    log = tmp_path / "stderr.log"
    parameters = StdioServerParameters(command=MEW, args=words(gateway, tmp_path, *more), cwd=tmp_path)
    with log.open("a") as errlog:
        async with McpClient(stdio_client(parameters, errlog=errlog), mode=mode) as client:
            yield client, log


async def reviewed(ann: mew.Client) -> mew.Review:
    async with asyncio.timeout(WAIT_S):
        return await anext(ann.proposals())


@EITHER
async def test_a_host_on_stdio_calls_and_proposes(
    gateway: Gateway, ann: mew.Client, tmp_path: Path, mode: str
) -> None:
    async with host(gateway, tmp_path, mode) as (client, log), asyncio.TaskGroup() as tasks:
        made = await client.call_tool("files__read_file", {"path": "/a"})
        calling = tasks.create_task(client.call_tool("files__write_file", {"path": "/a"}))
        await (await reviewed(ann)).approve()
        proposed = await calling

        assert made.content == [mcp_types.TextContent(text="contents of /a")]
        assert proposed.content == [mcp_types.TextContent(text="wrote /a")]
    assert log.read_text() == "", "nothing to complain about"


async def test_a_proposal_survives_a_host_that_is_killed(
    gateway: Gateway, ann: mew.Client, tmp_path: Path
) -> None:
    process = await asyncio.create_subprocess_exec(
        MEW,
        *words(gateway, tmp_path),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=tmp_path,
    )
    assert process.stdin is not None
    for line in RAW:
        process.stdin.write(line.encode() + b"\n")
    review = await reviewed(ann)
    process.kill()
    await process.wait()
    await review.approve()

    async with host(gateway, tmp_path, "legacy") as (client, _):
        told = await client.call_tool("mew_outcome", {"handle": review.id})

        assert told.content == [mcp_types.TextContent(text="wrote /a")]
        assert told.structured_content is not None
        assert told.structured_content["status"] == "fulfilled"


async def test_hosts_over_http_need_the_secret_that_only_its_owner_can_read(
    gateway: Gateway, ann: mew.Client, tmp_path: Path
) -> None:
    process = await asyncio.create_subprocess_exec(
        MEW,
        *words(gateway, tmp_path, "--http", "127.0.0.1:0"),
        stderr=asyncio.subprocess.PIPE,
        cwd=tmp_path,
    )
    assert process.stderr is not None
    async with asyncio.timeout(4 * WAIT_S):
        line = (await process.stderr.readline()).decode()
    found = re.fullmatch(
        r"mew mcp is host in demo, for hosts at (http://127\.0\.0\.1:\d+/mcp), with the secret in (\S+)\n",
        line,
    )
    assert found is not None, line
    path = tmp_path / found[2]
    assert path == tmp_path / ".mew" / "mcp" / "host.secret"
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    headers = {"Authorization": f"Bearer {path.read_text().strip()}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30) as http,
        McpClient(streamable_http_client(found[1], http_client=http)) as one,
        McpClient(streamable_http_client(found[1], http_client=http), mode="legacy") as two,
    ):
        for client in (one, two):
            result = await client.call_tool("files__read_file", {"path": "/a"})
            assert result.content == [mcp_types.TextContent(text="contents of /a")]
    process.send_signal(signal.SIGTERM)
    async with asyncio.timeout(2 * WAIT_S):
        assert await process.wait() == 0
    assert not any(used in line for used in secrets_used)


async def test_it_ends_with_its_input_and_when_it_is_told_to(gateway: Gateway, tmp_path: Path) -> None:
    for end in ("input", "signal"):
        process = await asyncio.create_subprocess_exec(
            MEW,
            *words(gateway, tmp_path),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            cwd=tmp_path,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(RAW[0].encode() + b"\n")
        async with asyncio.timeout(4 * WAIT_S):
            hello = await process.stdout.readline()
            assert hello.startswith(b'{"jsonrpc":"2.0","id":0,"result":')
            if end == "input":
                process.stdin.close()
            else:
                process.send_signal(signal.SIGTERM)
            assert await process.wait() == 0
        assert await process.stdout.read() == b"", "stdout is the protocol's alone"


async def test_who_is_not_let_in_is_told_so_in_a_sentence(gateway: Gateway, tmp_path: Path) -> None:
    token = tmp_path / "wrong.token"
    token.write_text(secret("wrong"))
    process = await asyncio.create_subprocess_exec(
        MEW,
        "mcp",
        "--gateway",
        gateway.ws_url,
        "--space",
        "demo",
        "--token-file",
        str(token),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(4 * WAIT_S):
        out, err = await process.communicate()

    assert (process.returncode, out) == (2, b"")
    assert err.decode().startswith("mew mcp: ")
    assert err.count(b"\n") == 1
    assert token.read_text() not in err.decode()


RAW = [
    '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18",'
    '"capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}',
    '{"jsonrpc":"2.0","method":"notifications/initialized"}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"files__write_file","arguments":{"path":"/a"}}}',
]
