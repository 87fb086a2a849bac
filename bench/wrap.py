"""`python -m bench.wrap`: what `mew wrap` adds to one MCP server over stdio.

Start-up (to the list of tools), a call that is allowed, one that is approved at once, a result of 20 MB, and the memory
of the process. The server is met directly and through `mew wrap` in turn. `--mew PATH` compares another installation.
"""

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from mcp.client.stdio import StdioServerParameters
from rich.console import Console
from rich.table import Table

import mew
from mcp import Client
from mew.cli.locate.login import LoginOptions, find_person_login

MEW: Final = str(Path(sys.executable).with_name("mew"))
SERVER: Final = [sys.executable, str(Path(__file__).parent / "candidates" / "mcp_echo.py")]
WARM_UP: Final = 20
LARGE_BYTES: Final = 20_000_000


class Bench:
    """`found` has the figures: direct, and through `mew wrap`."""

    def __init__(self, command: str, calls: int) -> None:
        self._command = command
        self._calls = calls
        self.found: dict[str, list[tuple[float, float]]] = {}
        self.memory_mb: list[float] = []

    async def round(self) -> None:
        """Meet the server once directly, once allowed, once approved."""
        with tempfile.TemporaryDirectory(prefix="mew-bench-") as folder:
            environ = {"PATH": os.environ["PATH"], "HOME": folder, "XDG_STATE_HOME": f"{folder}/state"}
            direct = StdioServerParameters(command=SERVER[0], args=SERVER[1:], env=environ)
            async with self._met(direct) as (client, started_s):
                call_s, large_s = await self._median(client), await _large(client)
            async with self._met(self._wrapped(environ, "--allow", "*")) as (client, through_s):
                self._add("start-up, ms", started_s, through_s)
                self._add("allowed call, ms", call_s, await self._median(client))
                self.memory_mb.append(_memory_mb(Path(folder)))
                self._add("20 MB result, ms", large_s, await _large(client))
            async with self._met(self._wrapped(environ, "--keep-token")) as (client, _), _approving(environ):
                self._add("approved call, ms", call_s, await self._median(client))

    def _wrapped(self, environ: dict[str, str], *options: str) -> StdioServerParameters:
        return StdioServerParameters(
            command=self._command, args=["wrap", *options, "--", *SERVER], env=environ
        )

    @asynccontextmanager
    async def _met(self, server: StdioServerParameters) -> AsyncIterator[tuple[Client, float]]:
        began_s = time.perf_counter()
        async with Client(server, mode="legacy") as client:
            await client.list_tools()
            yield client, time.perf_counter() - began_s

    async def _median(self, client: Client) -> float:
        async def once() -> None:
            assert not (await client.call_tool("echo", {"text": str(time.perf_counter())})).is_error

        for _ in range(WARM_UP):
            await once()
        return statistics.median([await _timed(once) for _ in range(self._calls)])

    def _add(self, what: str, direct_s: float, through_s: float) -> None:
        self.found.setdefault(what, []).append((direct_s * 1_000, through_s * 1_000))


async def _timed(work: Callable[[], Coroutine[Any, Any, None]]) -> float:
    began_s = time.perf_counter()
    await work()
    return time.perf_counter() - began_s


async def _large(client: Client) -> float:
    async def once() -> None:
        assert not (await client.call_tool("repeat", {"text": "x", "times": LARGE_BYTES})).is_error

    return await _timed(once)


@asynccontextmanager
async def _approving(environ: dict[str, str]) -> AsyncIterator[None]:
    found = find_person_login(LoginOptions(), environ=environ, here=Path(environ["HOME"]))
    async with mew.connect(found.url, space=found.space, token=found.token) as me:

        async def approve() -> None:
            async for review in me.proposals():
                await review.approve()

        async with asyncio.TaskGroup() as tasks:
            approving = tasks.create_task(approve())
            yield
            approving.cancel()


def _memory_mb(home: Path) -> float:
    """Resident memory of the `mew wrap` process that has this home."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            has_home = f"HOME={home}".encode() in (process / "environ").read_bytes().split(b"\0")
            if has_home and b"wrap" in words:
                status = (process / "status").read_text()
                return int(status.split("VmRSS:")[1].split()[0]) / 1_024
        except OSError:
            continue
    return float("nan")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.wrap", description=__doc__)
    parser.add_argument("--calls", type=int, default=200, help="of each way in a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mew", default=MEW, help="the command to measure")
    asked = parser.parse_args()
    bench = Bench(asked.mew, asked.calls)
    for _ in range(asked.rounds):
        asyncio.run(bench.round())
    table = Table("", "direct", "through", "added", "times")
    for what, pairs in bench.found.items():
        direct, through = (statistics.median(side) for side in zip(*pairs, strict=True))
        table.add_row(
            what, f"{direct:.2f}", f"{through:.2f}", f"{through - direct:.2f}", f"{through / direct:.1f}"
        )
    table.add_row("memory, MB", "", f"{statistics.median(bench.memory_mb):.0f}", "", "")
    Console(highlight=False).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
