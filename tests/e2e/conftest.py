"""One gateway process for most tests, with a space for each of them: nobody is in another's way."""

import itertools
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from .client import Door
from .process import Gateway, run_gateway, secret

SPACES = 500
CAPABILITIES: dict[str, list[object]] = {
    "ann": ["*"],
    "bob": ["chat", "chat/*", "mcp/*", "stream/*", "reasoning/*", "participant/*"],
    "cat": ["chat"],
    "bot": ["mcp/proposal", "mcp/withdraw", "chat", "chat/acknowledge", "participant/status", "stream/*"],
    "reader": [
        "chat",
        {"kind": "mcp/request", "payload": {"method": "tools/call", "params": {"name": "read_*"}}},
    ],
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.e2e)


@pytest.fixture(scope="session")
def tokens() -> dict[str, str]:
    return {who: secret(f"token-of-{who}") for who in CAPABILITIES}


@pytest.fixture(scope="session")
def participants(tokens: dict[str, str]) -> dict[str, object]:
    """As a file has them."""
    return {who: {"tokens": [tokens[who]], "capabilities": held} for who, held in CAPABILITIES.items()}


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory, participants: dict[str, object]) -> Iterator[Gateway]:
    config = {
        "spaces": [{"id": f"space-{n}"} for n in range(SPACES)],
        "participants": participants,
        "server": {"allowed_origins": ["https://friend.example"]},
    }
    with run_gateway(tmp_path_factory.mktemp("gateway"), config) as running:
        yield running


@pytest.fixture(scope="session")
def unused() -> Iterator[int]:
    return itertools.count()


@pytest.fixture
async def door(gateway: Gateway, tokens: dict[str, str], unused: Iterator[int]) -> AsyncIterator[Door]:
    """The door of a space that is this test's alone."""
    async with Door(gateway, tokens, f"space-{next(unused)}") as opened:
        yield opened
