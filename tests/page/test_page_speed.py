"""How fast the page is: small, soon painted, and smooth however much comes."""

import asyncio
import gzip
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest
from playwright.async_api import Browser, Page, expect
from tests.e2e.process import Gateway, run_gateway

from .frames import FRAME_MS, frames, working
from .workplace import SPACE, open_page

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]

STATIC: Final = Path(__file__).parents[2] / "src" / "mew" / "page" / "static"
LIMITS: Final = {"envelopes_per_second": 100_000, "burst": 100_000}
SPELL_S: Final = 3
SPELLS_MAX: Final = 4
PAINTED: Final = """() => new Promise(done => new PerformanceObserver(list => {
  const found = list.getEntriesByName("first-contentful-paint")[0];
  if (found) done(found.startTime);
}).observe({ type: "paint", buffered: true }))"""


class Flood:
    """Somebody who sends as fast as it is told to."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self.sent = 0

    async def run(self, per_second: int, seconds: float) -> None:
        began, before = time.monotonic(), self.sent
        while (passed := time.monotonic() - began) < seconds:
            while self.sent - before < per_second * passed:
                self.sent += 1
                payload = {"text": f"flood {self.sent}"}
                named = {"protocol": "mew/v0.4", "id": f"f{self.sent}", "from": "bot", "kind": "chat"}
                await self._socket.send_str(json.dumps({**named, "payload": payload}))
                await asyncio.sleep(0)  # what comes back must be read: the gateway drops who does not
            await asyncio.sleep(0.01)


@asynccontextmanager
async def flooding(gateway: Gateway) -> AsyncIterator[Flood]:
    headers = {"Authorization": "Bearer t-bot"}
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(f"{gateway.url}/ws?space=demo", headers=headers) as socket,
        asyncio.TaskGroup() as tasks,
    ):
        reading = tasks.create_task(_ignore(socket))
        yield Flood(socket)
        reading.cancel()


async def _ignore(socket: aiohttp.ClientWebSocketResponse) -> None:
    async for _ in socket:
        pass


async def drawn(flood: Flood, page: Page, per_second: int) -> dict[str, float]:
    """The frames that are drawn while so much comes; returns once all of it is shown."""
    async with asyncio.TaskGroup() as tasks:
        found = tasks.create_task(frames(page, SPELL_S))
        await flood.run(per_second, SPELL_S)
    await expect(page.locator(".row", has_text=f"flood {flood.sent}")).to_be_visible()
    return await found


async def spell(flood: Flood, page: Page, per_second: int) -> dict[str, Any]:
    """A measurement: without anything coming, with so much, and the work for it (apart, for tracing is work, too)."""
    still = await frames(page, 1)
    busy = await drawn(flood, page, per_second)
    async with working(page) as work:
        await drawn(flood, page, per_second)
    return {
        "share": busy["per_second"] / still["per_second"],
        "still": still,
        "busy": busy,
        "work": work.summary(),
    }


def is_smooth(found: dict[str, Any]) -> bool:
    """Nearly as many frames are drawn as while nothing comes, and nearly all of them leave room.

    Not all: now and then somebody else has the machine, and to trace is work, too.
    """
    return bool(found["share"] > 0.9 and found["work"]["p95_ms"] < FRAME_MS)


async def test_it_is_small_and_painted_within_a_second(browser: Browser, tmp_path: Path) -> None:
    sizes = [
        len(gzip.compress(file.read_bytes()))
        for file in STATIC.rglob("*.*")
        if file.suffix in {".js", ".css", ".html"}
    ]
    assert sum(sizes) < 150_000
    with run_gateway(tmp_path, SPACE) as gateway:
        page = await browser.new_page(viewport={"width": 1440, "height": 900})
        await page.goto(gateway.url)
        assert await page.evaluate(PAINTED) < 1_000
        await page.close()


async def test_it_draws_every_frame_while_500_envelopes_a_second_come(
    browser: Browser, tmp_path: Path
) -> None:
    """And at 2,000 a second, from somebody who means harm, it does not freeze."""
    with run_gateway(tmp_path, SPACE + f"limits: {json.dumps(LIMITS)}\n") as gateway:
        page = await browser.new_page(viewport={"width": 1440, "height": 900})
        await open_page(page, gateway.url)
        spells: list[dict[str, Any]] = []
        async with flooding(gateway) as flood:
            # Others use the machine, too: one spell in which nobody takes it away shows what the page needs.
            while len(spells) < SPELLS_MAX and not (spells and is_smooth(spells[-1])):
                spells.append(await spell(flood, page, 500))
            wild = await drawn(flood, page, 2_000)
        await page.close()
    (tmp_path / "speed.json").write_text(json.dumps({"at_500": spells, "at_2000": wild}))
    assert is_smooth(spells[-1]), spells
    assert wild["per_second"] > 0.3 * spells[-1]["still"]["per_second"], wild
