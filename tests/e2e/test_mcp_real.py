"""Servers that others wrote, asked directly and through a space: the official client sees the same.

Host and server may be of different generations; the host may make its calls, or has each approved by Ann.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from mcp.client.stdio import StdioServerParameters

from .mcp_batteries import BATTERIES, Record, normalised
from .mcp_differences import compared, explanation
from .mcp_host import LEGACY, MODERN, Generation, Host, hosting
from .mcp_servers import PAGES, REAL
from .mcp_way import Reviewer, Way, config
from .process import run_gateway, secrets_used


@dataclass(frozen=True)
class Case:
    """A server, the generation of the host, and whether it proposes or calls.

    By commands, host and server are joined by `mew mcp` over stdio and `mew bridge`; otherwise by what these run, in
    this process, and the host over HTTP, which takes less time.
    """

    server: str
    generation: Generation
    who: str
    by_commands: bool = False

    def __str__(self) -> str:
        return f"{self.server}-{self.generation}-{self.who}"


CASES = [
    Case("filesystem", LEGACY, "proposer", by_commands=True),
    Case("filesystem", MODERN, "caller"),
    Case("everything", LEGACY, "caller"),
    Case("everything", MODERN, "proposer"),
    Case("memory", MODERN, "proposer"),
    Case("time", LEGACY, "caller"),
    Case("git", LEGACY, "proposer"),
    Case("fetch", MODERN, "caller"),
    Case("conforming", LEGACY, "proposer"),
    Case("conforming", MODERN, "caller", by_commands=True),
    Case("conforming-legacy", LEGACY, "proposer"),
    Case("conforming-legacy", MODERN, "caller"),
]


@pytest.fixture(scope="module")
def way(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Way]:
    written = config(*REAL)
    with run_gateway(tmp_path_factory.mktemp("way"), written) as gateway:
        yield Way(gateway, written["participants"])


@pytest.fixture(scope="module")
def pages() -> Iterator[str]:
    """The address of a web server."""

    class Pages(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            kind, body = PAGES.get(self.path, ("text/plain", "there is no such page"))
            self.send_response(200 if self.path in PAGES else 404)
            self.send_header("Content-Type", kind)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


async def directly(name: str, folder: Path, pages: str) -> Record:
    """What comes of the battery without us, in the generation that the bridge speaks with the server."""
    real = REAL[name]
    async with hosting(real.parameters(folder), real.generation) as host:
        return await record(name, host, folder, pages)


async def record(name: str, host: Host, folder: Path, pages: str) -> Record:
    place = pages if name == "fetch" else str(folder)
    found: Record = normalised(await BATTERIES[name](host, place), place)
    return found


@asynccontextmanager
async def through(way: Way, case: Case, folder: Path) -> AsyncIterator[tuple[Host, Reviewer]]:
    async with AsyncExitStack() as stack:
        ann = await stack.enter_async_context(way.reviewer())
        bridge = way.bridge if case.by_commands else way.bridge_here
        await stack.enter_async_context(bridge(case.server, REAL[case.server], folder))
        await ann.joined(case.server)
        server: StdioServerParameters | str = way.host(case.who, case.server)
        if not case.by_commands:
            server = await stack.enter_async_context(way.host_here(case.who, case.server))
        host = await stack.enter_async_context(hosting(server, case.generation))
        # What was approved is the approver's; and over HTTP the second generation says no more than that it is gone.
        host.cancels = case.who == "caller" and (case.by_commands or case.generation == LEGACY)
        yield host, ann


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_a_host_sees_the_same_through_a_space(way: Way, case: Case, tmp_path: Path, pages: str) -> None:
    folders = [tmp_path / "direct", tmp_path / "through"]
    for folder in folders:
        folder.mkdir()
        await asyncio.to_thread(REAL[case.server].fill, folder)
    wanted = await directly(case.server, folders[0], pages)
    async with through(way, case, folders[1]) as (host, ann):
        found = await record(case.server, host, folders[1], pages)
    if case.who == "proposer":  # an approval makes the approver the one who asks, so she is asked too
        assert ann.approved
        found["asked"] = [*found.get("asked", []), *normalised(ann.asked, str(folders[1]))]
        wanted.setdefault("asked", [])
    different = [str(one) for one in compared(wanted, found) if explanation(one) is None]
    assert not different, "\n".join(different)


async def test_no_secret_of_ours_reaches_a_server(way: Way, tmp_path: Path) -> None:
    """`get-env` of the server tells its whole environment."""
    real = REAL["everything"]
    async with way.reviewer() as ann, way.bridge("everything", real, tmp_path):
        await ann.joined("everything")
        told = await ann.client.request("everything", "tools/call", {"name": "get-env", "arguments": {}})
    environment = json.loads(told["content"][0]["text"])
    assert "PATH" in environment
    assert not [name for name in environment if name.startswith("MEW_")]
    assert not [token for token in secrets_used if token in told["content"][0]["text"]]
