"""A real gateway for each test that asks for one."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest
from tests.gateway.served import SPACE_YAML, Serve, Served

from mew.gateway.config.loader import load_config
from mew.gateway.server import Gateway


@pytest.fixture
async def serve(tmp_path: Path) -> AsyncIterator[Serve]:
    """Start a gateway with this `space.yaml`, or the usual one with `more` under it."""
    async with AsyncExitStack() as stack:

        async def start(text: str = SPACE_YAML, more: str = "") -> Served:
            file = tmp_path / "space.yaml"
            file.write_text(text + more)
            timeout = aiohttp.ClientTimeout(total=5)
            session = await stack.enter_async_context(aiohttp.ClientSession(timeout=timeout))
            running = await stack.enter_async_context(AsyncExitStack())
            gateway = await running.enter_async_context(Gateway(load_config(file, {}), {}))
            return Served(gateway, session, running.aclose)

        yield start


@pytest.fixture
async def served(serve: Serve) -> Served:
    return await serve()
