"""A real gateway and a real browser, which is started once: tests with it share one loop."""

import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import aiohttp
import pytest_asyncio
from playwright.async_api import Browser, async_playwright
from tests.gateway.served import SPACE_YAML, Serve, Served
from tests.page.workplace import SPACE, Workplace, work

from mew.gateway.config.loader import load_config
from mew.gateway.server import Gateway

ARGUMENTS: Final = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-sandbox",  # tests may run as root, where the sandbox does not start
)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    found = shutil.which("chromium") or shutil.which("google-chrome")
    async with async_playwright() as playwright:
        launched = await playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield launched
        await launched.close()


@pytest_asyncio.fixture(loop_scope="session")
async def serve(tmp_path: Path) -> AsyncIterator[Serve]:
    """Start a gateway with this `space.yaml`; on the same port as the first one, unless another is asked for."""
    async with AsyncExitStack() as stack:
        ports: list[int] = []

        async def start(text: str = SPACE_YAML, *, on_another_port: bool = False) -> Served:
            file = tmp_path / "space.yaml"
            file.write_text(text)
            session = await stack.enter_async_context(aiohttp.ClientSession())
            running = await stack.enter_async_context(AsyncExitStack())
            gateway = Gateway(
                load_config(file, {}), {}, port=None if on_another_port or not ports else ports[0]
            )
            await running.enter_async_context(gateway)
            ports.append(int(gateway.url.rpartition(":")[2]))
            return Served(gateway, session, running.aclose)

        yield start


@pytest_asyncio.fixture(loop_scope="session")
async def served(serve: Serve) -> Served:
    return await serve()


@pytest_asyncio.fixture(loop_scope="session")
async def place(serve: Serve, browser: Browser) -> AsyncIterator[Workplace]:
    """Everyone at work, and a page that ann is signed in to."""
    served = await serve(SPACE)
    async with work(served.gateway.url, browser) as place:
        yield place
