"""`python -m bench.sdk`: one client that sends and receives: the SDK, and bare aiohttp moving the same bytes.

The gateway runs on one core, the client on another; rounds are interleaved, and a ratio is taken within a round.
"""

import argparse
import asyncio
import os
import statistics
import sys
import time
import uuid
from collections.abc import Awaitable, Callable
from typing import Final

import aiohttp
from rich.console import Console
from rich.table import Table

import mew
from bench.candidates import MEW
from bench.server import running
from bench.workloads import Workload
from mew.client.connection.connection import ClientConnection
from mew.client.connection.websocket import WebSocketTransport

SPACE: Final = "bench"
TOKEN: Final = "t0"
TEXT: Final = "x" * 170  # an envelope of about 300 bytes

Client = Callable[[str, int, int], Awaitable[float]]


async def bare(url: str, envelopes: int, window: int) -> float:
    """Envelopes made beforehand, sent and received as text; nothing is read but the count."""
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with (
        aiohttp.ClientSession(headers=headers) as http,
        http.ws_connect(f"{url}/ws", params={"space": SPACE}) as socket,
    ):
        welcome = (await socket.receive_json())["payload"]
        me, run = welcome["you"]["id"], uuid.uuid4().hex[:16]
        messages = [
            f'{{"protocol":"mew/v0.4","id":"{run}-{n}","ts":"2026-01-01T00:00:00.000000Z","from":"{me}",'
            f'"kind":"chat","payload":{{"text":"{TEXT}"}}}}'
            for n in range(envelopes)
        ]
        await socket.receive()  # we have joined
        began_s = time.perf_counter()
        sent = received = 0
        while received < envelopes:
            while sent < envelopes and sent - received < window:
                await socket.send_str(messages[sent])
                sent += 1
            await socket.receive()
            received += 1
        return time.perf_counter() - began_s


async def _awaited(send: Callable[[], Awaitable[object]], envelopes: int, window: int) -> float:
    """As an application does it: each send is awaited until accepted, so many at a time."""
    turns = iter(range(envelopes))

    async def worker() -> None:
        for _ in turns:
            await send()

    began_s = time.perf_counter()
    await asyncio.gather(*[worker() for _ in range(window)])
    return time.perf_counter() - began_s


async def connection(url: str, envelopes: int, window: int) -> float:
    """The lasting connection alone: composed, validated, accepted one by one."""
    async with ClientConnection(WebSocketTransport(url, space=SPACE, token=TOKEN)) as wire:
        payload = {"text": TEXT}
        return await _awaited(lambda: wire.send(wire.compose("chat", payload)), envelopes, window)


async def client(url: str, envelopes: int, window: int) -> float:
    """`mew.connect`, with its book, its queue of chat and all the rest."""
    async with mew.connect(url, space=SPACE, token=TOKEN) as me:
        return await _awaited(lambda: me.chat(TEXT), envelopes, window)


CLIENTS: Final[dict[str, Client]] = {"bare aiohttp": bare, "connection": connection, "client": client}


def main() -> int:
    asked = _arguments()
    cores = sorted(os.sched_getaffinity(0))
    console = Console(highlight=False)
    table = Table("in flight", "client", "envelopes/s", "of bare aiohttp")
    workload = Workload(name="sdk", members=1)
    with running(MEW, workload, cores[-1]) as server:
        os.sched_setaffinity(0, {cores[0]})
        url = f"ws://127.0.0.1:{server.port}"
        for window in asked.windows:
            rates: dict[str, list[float]] = {name: [] for name in CLIENTS}
            for _ in range(asked.rounds):
                for name, measured in CLIENTS.items():
                    took_s = asyncio.run(measured(url, asked.envelopes, window))
                    rates[name].append(asked.envelopes / took_s)
            for name, found in rates.items():
                ratios = [rate / base for rate, base in zip(found, rates["bare aiohttp"], strict=True)]
                shown = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
                table.add_row(str(window), name, f"{statistics.median(found):,.0f}", shown)
    console.print(table)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.sdk", description=__doc__)
    parser.add_argument("--envelopes", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--windows", type=int, nargs="+", default=[1, 64], help="envelopes in flight")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
