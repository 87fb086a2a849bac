"""`python -m bench.mcp`: a call of a trivial tool, directly and the whole way round through a space.

Directly: the official client and the server. Round: the official client, `mew mcp`, the gateway, `mew bridge` and the
server. Both stay connected; calls are made one at a time, rounds are interleaved, and a ratio is taken within a round.
"""

import argparse
import asyncio
import json
import secrets
import statistics
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mcp.client.stdio import StdioServerParameters
from rich.console import Console
from rich.table import Table

import mew
from bench.candidates.mew import COMMAND, LIMITS
from bench.report import spread
from bench.server import free_port
from mcp import Client

ECHO: Final = [sys.executable, str(Path(__file__).parent / "candidates" / "mcp_echo.py")]
SPACE: Final = "bench"
HELD: Final = {"host": ["mcp/request"], "echo": ["mcp/request:notifications/**"], "watcher": ["chat"]}
READY_S: Final = 30.0
WARM_UP: Final = 50
ADDED_MAX_MS: Final = 5.0


@dataclass(frozen=True)
class Setting:
    """How the two ends are spoken to: the transport of host and server, and the host's generation of MCP."""

    transport: str
    generation: str


SETTINGS: Final = [
    Setting(transport, generation)
    for transport in ("stdio", "http")
    for generation in ("legacy", "2026-07-28")
]


@dataclass(frozen=True)
class Latency:
    """Of the calls of one round."""

    p50_ms: float
    p99_ms: float


class Scene:
    """The programs of one setting, in a scratch folder; they end with the stack."""

    def __init__(self, setting: Setting, folder: Path, stack: AsyncExitStack) -> None:
        self._setting = setting
        self._folder = folder
        self._stack = stack
        self._gateway = ""
        self._over_http = setting.transport == "http"

    async def direct(self) -> Client:
        return await self._connected(await self._echo_url() if self._over_http else ECHO)

    async def through(self) -> Client:
        await self._start_space()
        server = [await self._echo_url()] if self._over_http else ["--", *ECHO]
        await self._run(str(COMMAND), "bridge", *self._door("echo"), *server)
        await self._joined("echo")
        command = [str(COMMAND), "mcp", *self._door("host"), "--only", "echo", "--no-own-tools"]
        if not self._over_http:
            return await self._connected(command)
        port = free_port()
        await self._run(*command, "--http", str(port), "--open", port=port)
        return await self._connected(f"http://127.0.0.1:{port}/mcp")

    async def _start_space(self) -> None:
        people = {}
        for who, capabilities in HELD.items():
            token = secrets.token_hex(16)
            (self._folder / f"{who}.token").write_text(token)
            people[who] = {"tokens": [token], "capabilities": capabilities}
        config = self._folder / "space.yaml"
        held = {"space": {"id": SPACE}, "participants": people, "limits": LIMITS}
        config.write_text(json.dumps(held))  # JSON is YAML
        port = free_port()
        self._gateway = f"ws://127.0.0.1:{port}"
        await self._run(str(COMMAND), "gateway", "--config", str(config), "--port", str(port), port=port)

    def _door(self, who: str) -> list[str]:
        token = str(self._folder / f"{who}.token")
        return ["--gateway", self._gateway, "--space", SPACE, "--token-file", token]

    async def _joined(self, who: str) -> None:
        token = self._folder / "watcher.token"
        async with mew.connect(self._gateway, space=SPACE, token=token) as watcher, asyncio.timeout(READY_S):
            presence = watcher.envelopes("system/presence")
            while who not in list(watcher.participants):
                await anext(presence)

    async def _echo_url(self) -> str:
        port = free_port()
        await self._run(*ECHO, str(port), port=port)
        return f"http://127.0.0.1:{port}/mcp"

    async def _run(self, *command: str, port: int | None = None) -> None:
        """Start a program; with a port, wait until it listens there."""
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=self._folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        self._stack.push_async_callback(_stop, process)
        if port is not None:
            await _listening(port, process)

    async def _connected(self, server: list[str] | str) -> Client:
        where: StdioServerParameters | str
        if isinstance(server, str):
            where = server
        else:
            where = StdioServerParameters(command=server[0], args=server[1:], cwd=self._folder)
        return await self._stack.enter_async_context(Client(where, mode=self._setting.generation))


async def _listening(port: int, process: asyncio.subprocess.Process) -> None:
    async with asyncio.timeout(READY_S):
        while process.returncode is None:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.02)
            else:
                writer.close()
                return
    raise SystemExit(f"a program ended with {process.returncode} before it listened on its port")


async def _stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.terminate()
    try:
        async with asyncio.timeout(5):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


async def measured(client: Client, calls: int) -> Latency:
    """Call the tool so many times, one after the other."""
    took_ms = []
    for number in range(calls):
        began_s = time.perf_counter()
        result = await client.call_tool("echo", {"text": str(number)})
        took_ms.append((time.perf_counter() - began_s) * 1_000)
        assert not result.is_error, result
    took_ms.sort()
    return Latency(statistics.median(took_ms), took_ms[int(len(took_ms) * 0.99)])


async def compared(setting: Setting, rounds: int, calls: int) -> dict[str, list[Latency]]:
    """Both ways, turn by turn."""
    with tempfile.TemporaryDirectory(prefix="mew-bench-") as folder:
        async with AsyncExitStack() as stack:
            scene = Scene(setting, Path(folder), stack)
            clients = {"direct": await scene.direct(), "round": await scene.through()}
            for client in clients.values():
                await measured(client, WARM_UP)
            found: dict[str, list[Latency]] = {way: [] for way in clients}
            for _ in range(rounds):
                for way, client in clients.items():
                    found[way].append(await measured(client, calls))
            return found


def main() -> int:
    asked = _arguments()
    console = Console(highlight=False)
    table = Table(
        "transport", "host speaks", "direct p50 ms", "round p50 ms", "added p50 ms", "times", "added p99 ms"
    )
    added_ms: list[float] = []
    for setting in SETTINGS:
        if setting.transport not in asked.transports:
            continue
        found = asyncio.run(compared(setting, asked.rounds, asked.calls))
        pairs = list(zip(found["direct"], found["round"], strict=True))
        added = spread(round_.p50_ms - direct.p50_ms for direct, round_ in pairs)
        added_ms.append(added.median)
        table.add_row(
            setting.transport,
            setting.generation,
            spread(direct.p50_ms for direct, _ in pairs).text(),
            spread(round_.p50_ms for _, round_ in pairs).text(),
            added.text(),
            spread(round_.p50_ms / direct.p50_ms for direct, round_ in pairs).text(".1f"),
            spread(round_.p99_ms - direct.p99_ms for direct, round_ in pairs).text(),
        )
    console.print(table)
    held = max(added_ms) < ADDED_MAX_MS
    console.print(
        f"{'holds' if held else 'MISSED'}: the way round adds less than {ADDED_MAX_MS:.0f} ms (p50)"
    )
    return 0 if held else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.mcp", description=__doc__)
    parser.add_argument("--calls", type=int, default=300, help="of each way in a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--transports", nargs="+", choices=["stdio", "http"], default=["stdio", "http"])
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
