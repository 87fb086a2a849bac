"""What a hostile participant sends runs as nothing, forges nothing and stops nothing."""

from typing import Final

import pytest
from playwright.async_api import Browser, expect
from tests.gateway.served import Serve

from .workplace import SPACE, work

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]

MARKUP: Final = '"><img src=x onerror=alert(1)><script>alert(1)</script><a href="javascript:alert(1)">x</a>'
TURNED: Final = "invoice\u202egpj.exe\u2066\u200b"


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
