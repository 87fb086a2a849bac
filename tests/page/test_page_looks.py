"""How the page looks: for everyone (WCAG AA), in light and dark, on a phone, without a word to anybody else."""

from pathlib import Path
from typing import Final

import pytest
from playwright.async_api import Browser, Page, expect
from tests.gateway.served import Serve

from .axe import faults
from .workplace import SPACE, Workplace, work

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]

ROOT: Final = Path(__file__).parents[2]
PICTURES: Final = ROOT / "docs" / "images"
PHONE: Final = (390, 844)


async def busy(place: Workplace) -> None:
    """Something of everything."""
    await place.bot.chat(
        "Good morning. I have **read the notes**:\n\n- three things are open", format="markdown"
    )
    await place.bot.send("participant/status", {"messages_in_context": 9, "tokens": 6200, "max_tokens": 8000})
    first = await place.propose(path="plan.md", content="# Plan\n\n- ask Ann\n- write the report\n")
    await place.page.keyboard.press("a")
    await first
    async with place.bot.reasoning("What is left to do before Friday?") as reasoning:
        await reasoning.thought("The notes name three things.")
        await reasoning.conclude("The report must be sent, too. I may not write files, so I propose it.")
    await place.propose(path="plan.md", content="# Plan\n\n- ask Ann\n- write the report\n- send it\n")
    await place.bot.propose_call("files", "write_file", {"path": "old-notes.txt", "content": ""})
    await expect(place.page.locator(".count.some").first).to_have_text("2")


@pytest.fixture
def folder(pytestconfig: pytest.Config, tmp_path: Path) -> Path:
    """Where pictures go: into the documentation with `--rewrite`, so that they change only when somebody wants that."""
    rewrite = bool(pytestconfig.getoption("--rewrite"))
    PICTURES.mkdir(exist_ok=True)
    return PICTURES if rewrite else tmp_path


async def picture(page: Page, folder: Path, name: str) -> None:
    await page.mouse.move(5, 5)
    await page.screenshot(path=folder / f"{name}.png", animations="disabled")


async def test_everyone_can_use_it_and_nobody_else_is_told(
    serve: Serve, browser: Browser, folder: Path
) -> None:
    served = await serve(SPACE)
    async with work(served.gateway.url, browser) as place:
        page = place.page
        await busy(place)
        await picture(page, folder, "page")
        assert await faults(page) == []
        await page.emulate_media(color_scheme="dark")
        await picture(page, folder, "page-dark")
        assert await faults(page) == []
        await page.emulate_media(color_scheme="light")
        for key, name in (("?", "keys"), ("e", "edit"), ("r", "reject"), ("h", "history")):
            await page.keyboard.press(key)
            await expect(page.locator("dialog")).to_be_visible()
            await picture(page, folder, f"page-{name}")
            assert await faults(page) == [], name
            await page.keyboard.press("Escape")
            await expect(page.locator("dialog")).to_have_count(0)
        await page.locator(".row", has_text="fulfilled").get_by_role("button", name="chain").click()
        await picture(page, folder, "page-chain")
        assert await faults(page) == []
        await page.keyboard.press("Escape")
        await page.locator(".person summary", has_text="bot").click()
        await page.keyboard.press("3")
        await expect(page.locator(".lanes svg")).to_be_visible()
        await picture(page, folder, "page-timeline")
        assert await faults(page) == []
        assert all(url.replace("ws:", "http:").startswith(place.url) for url in place.asked), place.asked


async def test_it_works_on_a_phone(serve: Serve, browser: Browser, folder: Path) -> None:
    served = await serve(SPACE)
    async with work(served.gateway.url, browser, size=PHONE) as place:
        page = place.page
        proposal = await place.propose()
        await picture(page, folder, "page-phone")
        assert await faults(page) == []
        for view, shown in (
            ("Stream", ".stream-pane"),
            ("Timeline", ".timeline"),
            ("Participants", ".people"),
        ):
            await page.get_by_role("navigation").get_by_role("button", name=view).click()
            await expect(page.locator(shown)).to_be_visible()
            await expect(page.locator(".waiting")).to_be_hidden()
            assert await faults(page) == [], view
            assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
            await expect(page.locator(".views .count")).to_have_text("1")  # what waits stays in sight
        await page.get_by_role("navigation").get_by_role("button", name="Waiting").click()
        await page.get_by_role("button", name="Approve").click()
        await proposal
        assert "plan.md" in place.written
