"""Notifications of the browser: only when wanted, allowed and nobody looks; safe words, and a way to what waits."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest
from playwright.async_api import Browser, Page, expect
from tests.gateway.served import Serve

import mew

from .workplace import SPACE, open_page

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]

RECORD: Final = """
window.told = [];
const real = window.Notification;
window.Notification = class {
  static get permission() { return real.permission; }
  static requestPermission() { return real.requestPermission(); }
  constructor(title, options) {
    Object.assign(this, { title, ...options });
    document.documentElement.dataset.told = window.told.push(this);
  }
  close() { this.closed = true; }
};
window.isLookedAt = true;
document.hasFocus = () => window.isLookedAt;
"""
TURNED: Final = "write\u202eelif"


@asynccontextmanager
async def page_of(browser: Browser, url: str, *, allowed: bool) -> AsyncIterator[Page]:
    context = await browser.new_context(permissions=["notifications"] if allowed else [])
    page = await context.new_page()
    await page.add_init_script(RECORD)
    await open_page(page, url)
    yield page
    await context.close()


async def told(page: Page) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = await page.evaluate("told.map(({ onclick, ...rest }) => rest)")
    return found


async def test_who_looks_elsewhere_is_told_and_led_to_the_proposal(serve: Serve, browser: Browser) -> None:
    served = await serve(SPACE)
    url = served.gateway.url
    async with (
        page_of(browser, url, allowed=True) as page,
        mew.connect(url, space="demo", token="t-bot") as bot,
    ):
        first = await bot.propose_call("files", "read_file", {"path": "a"})
        await expect(page.locator(".card")).to_have_count(1)
        await page.get_by_role("button", name="Notify me").click()
        await expect(page.get_by_role("button", name="Notifications on")).to_have_attribute(
            "aria-pressed", "true"
        )
        looked_at = await bot.propose_call("files", "read_file", {"path": "b"})
        await expect(page.locator(".card")).to_have_count(2)
        assert await told(page) == []
        await page.evaluate("isLookedAt = false")
        wanted = await bot.propose(
            "tools/call", {"name": TURNED, "arguments": {"secret": "hunter2"}}, target="files"
        )
        await expect(page.locator("html")).to_have_attribute("data-told", "1")
        more = await bot.propose_call("files", "read_file", {"path": "c"})
        more_still = await bot.propose_call("files", "read_file", {"path": "d"})
        await expect(page.locator("html")).to_have_attribute("data-told", "2")  # the others at once, not each
        [one, others] = await told(page)
        assert one["title"] == "bot proposes write[U+202E]elif"
        assert one["body"] == "Waiting for you in demo."
        assert others["body"] == "Waiting for you in demo. One more is waiting."
        assert "hunter2" not in str([one, others])
        await page.keyboard.press("2")
        await page.evaluate("told[0].onclick()")
        card = page.locator(f".card[data-proposal='{wanted.id}']")
        await expect(card.locator(".card-title")).to_be_focused()
        await expect(card.locator(".card-inside")).to_be_visible()
        await page.evaluate("window.dispatchEvent(new Event('focus'))")
        assert all(one["closed"] for one in await told(page))
        await page.get_by_role("button", name="Notifications on").click()
        last = await bot.propose_call("files", "read_file", {"path": "e"})
        await expect(page.locator(".card")).to_have_count(6)
        assert len(await told(page)) == 2
        for proposal in (first, looked_at, wanted, more, more_still, last):
            await proposal.withdraw()


async def test_it_is_remembered_that_they_are_wanted(serve: Serve, browser: Browser) -> None:
    served = await serve(SPACE)
    async with page_of(browser, served.gateway.url, allowed=True) as page:
        await page.get_by_role("button", name="Notify me").click()
        await expect(page.get_by_role("button", name="Notifications on")).to_be_visible()
        await open_page(page, served.gateway.url)
        await expect(page.get_by_role("button", name="Notifications on")).to_be_visible()


async def test_where_the_browser_says_no_so_does_the_page(serve: Serve, browser: Browser) -> None:
    served = await serve(SPACE)
    url = served.gateway.url
    async with (
        page_of(browser, url, allowed=False) as page,
        mew.connect(url, space="demo", token="t-bot") as bot,
    ):
        await page.get_by_role("button", name="Notify me").click()
        await expect(page.locator(".notice")).to_contain_text("blocked in the browser")
        await expect(page.get_by_role("button", name="Notify me")).to_have_attribute("aria-pressed", "false")
        await page.evaluate("isLookedAt = false")
        async with asyncio.timeout(10):
            proposal = await bot.propose_call("files", "read_file", {"path": "a"})
        await expect(page.locator(".card")).to_have_count(1)
        assert await told(page) == []
        await proposal.withdraw()


async def test_where_the_browser_has_none_after_all_the_page_says_so(serve: Serve, browser: Browser) -> None:
    served = await serve(SPACE)
    url = served.gateway.url
    async with (
        page_of(browser, url, allowed=True) as page,
        mew.connect(url, space="demo", token="t-bot") as bot,
    ):
        await page.get_by_role("button", name="Notify me").click()
        await expect(page.get_by_role("button", name="Notifications on")).to_be_visible()
        await page.evaluate(
            "() => { isLookedAt = false; window.Notification = class extends Notification {"
            " constructor() { throw new TypeError('Illegal constructor'); } } }"
        )
        proposal = await bot.propose_call("files", "read_file", {"path": "a"})
        await expect(page.locator(".notice")).to_contain_text("only for installed pages")
        await expect(page.get_by_role("button", name="Notify me")).to_have_attribute("aria-pressed", "false")
        await proposal.withdraw()
