"""Three nodes of one space as processes over a real Redis."""

import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

import pytest
from tests.e2e.client import Client, Door
from tests.e2e.process import Gateway, listening, secret, started
from tests.nodes.redis_server import RedisServer, redis_server

CAPABILITIES: dict[str, list[object]] = {
    "ann": ["*"],
    "bob": ["chat", "mcp/*", "stream/*"],
    "cat": ["chat"],
}


@pytest.fixture(scope="session")
def tokens() -> dict[str, str]:
    return {who: secret(f"token-of-{who}") for who in CAPABILITIES}


@pytest.fixture
def config(tokens: dict[str, str]) -> dict[str, object]:
    people = {who: {"tokens": [tokens[who]], "capabilities": held} for who, held in CAPABILITIES.items()}
    return {"space": {"id": "desk"}, "participants": people}


@pytest.fixture
def redis() -> Iterator[RedisServer]:
    with redis_server() as server:
        yield server


class Cluster:
    """Nodes, and who is connected to which."""

    def __init__(self, gateways: list[Gateway], tokens: dict[str, str]) -> None:
        self.gateways = gateways
        self.tokens = tokens
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> "Cluster":
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._stack.aclose()

    async def door(self, node: int) -> Door:
        return await self._stack.enter_async_context(Door(self.gateways[node], self.tokens, "desk"))

    async def join(self, who: str, node: int, after: str = "") -> Client:
        return await (await self.door(node)).join(who, query=f"&after={after}" if after else "")


@pytest.fixture
async def cluster(
    redis: RedisServer, config: dict[str, object], tokens: dict[str, str], tmp_path: Path
) -> AsyncIterator[Cluster]:
    with ExitStack() as stack:
        gateways = []
        for name in ("one", "two", "three"):
            folder = tmp_path / name
            folder.mkdir()
            gateway = started(folder, config, "--redis", redis.url)
            stack.callback(_stopped, gateway)
            gateways.append(listening(gateway))
        async with Cluster(gateways, tokens) as made:
            yield made


def _stopped(gateway: Gateway) -> None:
    """Ended, if a test has not killed it; nothing it logged may be a traceback."""
    assert gateway.stop() in (0, -signal.SIGKILL), gateway.log
    assert "Traceback" not in gateway.log, gateway.log
