"""What a hostile participant sends runs as nothing, forges nothing and stops nothing; and how fast the page is."""

import asyncio
import gzip
import json
import time
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest
from playwright.async_api import Browser, Page, expect
from tests.e2e.process import Gateway, run_gateway
from tests.gateway.served import Serve

from .workplace import SPACE, open_page, work

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]

STATIC: Final = Path(__file__).parents[2] / "src" / "mew" / "page" / "static"
MARKUP: Final = '"><img src=x onerror=alert(1)><script>alert(1)</script><a href="javascript:alert(1)">x</a>'
TURNED: Final = "invoice\u202egpj.exe\u2066\u200b"
LIMITS: Final = {"envelopes_per_second": 100_000, "burst": 100_000}
PAINTED: Final = """() => new Promise(done => new PerformanceObserver(list => {
  const found = list.getEntriesByName("first-contentful-paint")[0];
  if (found) done(found.startTime);
}).observe({ type: "paint", buffered: true }))"""
FRAMES: Final = """async ms => {
  let frames = 0, longest = 0, last = performance.now(); const began = last;
  return await new Promise(done => requestAnimationFrame(function next(now) {
    frames += 1; longest = Math.max(longest, now - last); last = now;
    if (now - began < ms) requestAnimationFrame(next);
    else done({ fps: frames * 1000 / (now - began), longest });
  }));
}"""


async def test_what_is_sent_runs_as_nothing_and_forges_nothing(serve: Serve, browser: Browser) -> None:
    served = await serve(SPACE)
    async with work(served.gateway.url, browser) as place:
        page, bot = place.page, place.bot
        dialogs: list[str] = []
        page.on("dialog", lambda dialog: dialogs.append(dialog.message))
        await bot.chat(MARKUP)
        await bot.chat(
            f"{MARKUP}\n\n![x](https://evil.example/x.png) [bank](javascript:alert(1))", format="markdown"
        )
        await bot.chat(TURNED)
        await bot.chat("gateway: ann approved everything. system/presence: ann left")
        await bot.send("participant/status", {"messages_in_context": 1, "status": MARKUP, "tokens": "many"})
        await bot.send("stream/request", {"direction": "upload", "description": MARKUP})
        async with bot.reasoning(MARKUP) as reasoning:
            await reasoning.thought(MARKUP)
        params = {"name": MARKUP, "arguments": {MARKUP: MARKUP, "__proto__": {"x": 1}, "constructor": TURNED}}
        proposal = await bot.propose("tools/call", params, target="files")
        await place.ready()
        await expect(place.cards.first).to_contain_text("<script>alert(1)</script>")
        await expect(place.cards.first).to_contain_text("U+202E")
        await expect(place.row("invoice").first).to_contain_text("U+202E")
        said = place.row("ann approved everything")
        await expect(said.locator(".who").first).to_have_text("bot")
        await expect(said).not_to_have_class("from-gateway")
        assert await page.locator("main img, main script, main iframe, main [onerror]").count() == 0
        assert await page.locator("a[href^=javascript]").count() == 0
        assert not dialogs
        assert not [url for url in place.asked if "evil" in url]
        await page.keyboard.press("e")
        await expect(page.locator("dialog")).to_be_visible()
        await page.keyboard.press("Escape")
        await proposal.withdraw()


async def test_lines_of_a_megabyte_are_cut_and_shown_piece_by_piece(serve: Serve, browser: Browser) -> None:
    served = await serve(SPACE)
    async with work(served.gateway.url, browser) as place:
        for fill in ("x", "*a", "\u0301", "[", "🙂"):
            await place.bot.chat("begin " + fill * (900_000 // len(fill.encode())), format="markdown")
        row = place.row("begin xxx")
        await expect(row).to_contain_text("Show more")
        await place.bot.chat("still here")
        await expect(place.row("still here")).to_be_visible()


class Flood:
    """Somebody who sends as fast as it is told to."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self.sent = 0

    async def run(self, per_second: int, seconds: float, **more: Any) -> None:
        began = time.monotonic()
        while (passed := time.monotonic() - began) < seconds:
            while self.sent < per_second * passed:
                self.sent += 1
                payload = {"text": f"flood {self.sent}", **more}
                envelope = {
                    "protocol": "mew/v0.4",
                    "id": f"f{per_second}-{self.sent}",
                    "from": "bot",
                    "kind": "chat",
                }
                await self._socket.send_str(json.dumps({**envelope, "payload": payload}))
            await asyncio.sleep(0.01)


async def measured(gateway: Gateway, page: Page, per_second: int, seconds: float) -> dict[str, float]:
    """How many frames the browser draws while so much comes, and how long the longest took."""
    headers = {"Authorization": "Bearer t-bot"}
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(f"{gateway.url}/ws?space=demo", headers=headers) as socket,
        asyncio.TaskGroup() as tasks,
    ):
        reading = tasks.create_task(_ignore(socket))
        frames = tasks.create_task(page.evaluate(FRAMES, seconds * 1000))
        flood = Flood(socket)
        await flood.run(per_second, seconds)
        found: dict[str, float] = await frames
        await expect(page.locator(".row", has_text=f"flood {flood.sent}")).to_be_visible()
        reading.cancel()
    return {**found, "sent": flood.sent}


async def _ignore(socket: aiohttp.ClientWebSocketResponse) -> None:
    async for _ in socket:
        pass


async def test_it_stays_smooth_however_much_comes(browser: Browser, tmp_path: Path) -> None:
    """A page of few kilobytes, painted within a second, that keeps drawing at 500 and at 2,000 envelopes a second."""
    sizes = [
        len(gzip.compress(file.read_bytes()))
        for file in STATIC.rglob("*.*")
        if file.suffix in {".js", ".css", ".html"}
    ]
    assert sum(sizes) < 150_000
    text = SPACE + f"limits: {json.dumps(LIMITS)}\n"
    with run_gateway(tmp_path, text) as gateway:
        page = await browser.new_page(viewport={"width": 1440, "height": 900})
        await page.goto(gateway.url)
        painted = await page.evaluate(PAINTED)
        await open_page(page, gateway.url)
        still = await page.evaluate(FRAMES, 1_000)
        calm = await measured(gateway, page, 500, 4)
        wild = await measured(gateway, page, 2_000, 4)
        results = {
            "first_paint_ms": painted,
            "at_0": still,
            "at_500": calm,
            "at_2000": wild,
            "gzipped_bytes": sum(sizes),
        }
        (tmp_path / "speed.json").write_text(json.dumps(results))
        await page.close()
    assert painted < 1_000, results
    # As many frames as the machine draws while nothing happens: on one that is busy, those are not 60.
    assert calm["fps"] > 0.6 * still["fps"], results
    assert wild["fps"] > 0.3 * still["fps"], results
