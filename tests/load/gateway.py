"""What the tests of the load stand on: a real gateway in this process, and ones that do not deliver as they should."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import aiohttp
import yaml

from mew.gateway.config.loader import load_config
from mew.gateway.server import Gateway
from mew.gateway.websocket.frames import FrameReader, Message, Opcode, close_frame, text_frame
from mew.load.connections import Credentials, GatewayAddress
from mew.load.measurement import MeasurementPlan
from mew.load.workloads import capabilities

__all__ = ["BRIEF", "Delivers", "asked_of", "credentials", "roster", "serving", "wrong_gateway"]

BRIEF = MeasurementPlan(rounds=2, round_s=0.02, warm_up_s=0.01, timeout_s=5.0)

PARTICIPANTS: dict[str, list[Any]] = {
    "ann": ["*"],
    "bob": ["chat", "stream/*"],
    "cat": ["chat", "stream/*"],
    "dan": ["chat"],
    "proposer": ["mcp/proposal"],
    "approver": ["mcp/request"],
    "executor": ["mcp/response"],
    "one": capabilities(1),
    "ten": capabilities(10),
}
PLENTY = {"envelopes_per_second": 1_000_000, "burst": 1_000_000}


def messages(reader: FrameReader, data: bytes) -> Iterator[Message]:
    """Those that these bytes complete."""
    at = 0
    while at < len(data):
        message, at = reader.feed(data, at)
        if message is not None:
            yield message


def credentials(who: str) -> Credentials:
    return Credentials(who, f"t-{who}")


async def roster(address: GatewayAddress) -> dict[str, dict[str, Any]]:
    """Who belongs to the space, by what the gateway tells ann."""
    answer = await asked_of(address, "participants")
    return {one["id"]: one for one in answer["participants"]}


async def asked_of(address: GatewayAddress, what: str) -> Any:
    headers = {"Authorization": "Bearer t-ann"}
    url = f"http://{address.authority}/spaces/{address.space}/{what}"
    async with aiohttp.ClientSession(headers=headers) as session, session.get(url) as answer:
        return await answer.json()


@asynccontextmanager
async def serving(
    folder: Path, limits: dict[str, int] | None = None, tls: dict[str, str] | None = None
) -> AsyncIterator[Gateway]:
    """The spaces `all`, `named` (where only those named see an envelope) and `more`."""
    written = {
        "spaces": [{"id": "all"}, {"id": "named", "delivery": "addressed"}, {"id": "more"}],
        "participants": {
            who: {"tokens": [f"t-{who}"], "capabilities": held} for who, held in PARTICIPANTS.items()
        },
        "limits": PLENTY if limits is None else limits,
        "server": {"port": 0},
        **({} if tls is None else {"tls": tls}),
    }
    file = folder / "space.yaml"
    file.write_text(yaml.safe_dump(written))
    async with Gateway(load_config(file, {}), {}) as gateway:
        yield gateway


Delivers = Callable[[int, int], int]
"""How often the n-th envelope comes to the k-th member: once, where all is well."""


class _Member(asyncio.Protocol):
    """A connection of a gateway that delivers to all, by its own rule."""

    def __init__(self, members: "list[_Member]", delivers: Delivers, count: list[int]) -> None:
        self._members, self._delivers, self._count = members, delivers, count
        self._head: bytes | None = b""
        self._reader = FrameReader(1 << 20)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def connection_lost(self, error: Exception | None) -> None:
        if self in self._members:
            self._members.remove(self)

    def data_received(self, data: bytes) -> None:
        if self._head is not None:
            self._head += data
            if not self._head.endswith(b"\r\n\r\n"):
                return
            who = self._head.partition(b"Bearer t-")[2].partition(b"\r")[0].decode()
            self._head = None
            self._members.append(self)
            welcome = f'{{"kind":"system/welcome","payload":{{"you":{{"id":"{who}"}}}}}}'
            self.transport.write(b"HTTP/1.1 101 Switching Protocols\r\n\r\n" + text_frame(welcome.encode()))
            return
        for opcode, payload in messages(self._reader, data):
            if opcode == Opcode.CLOSE:
                self.transport.write(close_frame(1000))
                self.transport.close()
            elif opcode == Opcode.TEXT:
                self._count[0] += 1
                for nth, member in enumerate(tuple(self._members)):
                    member.transport.write(text_frame(payload) * self._delivers(self._count[0], nth))


@asynccontextmanager
async def wrong_gateway(delivers: Delivers) -> AsyncIterator[GatewayAddress]:
    """One that delivers as often as this says."""
    members: list[_Member] = []
    count = [0]
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Member(members, delivers, count), "127.0.0.1", 0)
    try:
        yield GatewayAddress("127.0.0.1", server.sockets[0].getsockname()[1], "all")
    finally:
        server.close()
        for member in tuple(members):
            member.transport.abort()
        await server.wait_closed()
