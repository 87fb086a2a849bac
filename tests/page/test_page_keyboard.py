"""The keyboard reaches everything: rows, bars of the timeline, every button; and one sees where it is."""

import re
from typing import Any, Final

import pytest
from playwright.async_api import Page, expect

from .workplace import Workplace

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]

SAYS: Final = re.compile(r"^bot sends a message, at \d\d:\d\d:\d\d$")
FOCUSED: Final = """() => {
  const at = document.activeElement;
  const shown = at.querySelector(":scope > rect") ?? at;
  const style = getComputedStyle(shown);
  return { name: at.getAttribute("aria-label") ?? at.textContent.trim(), tag: at.tagName,
           is_seen: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2 };
}"""
PRESSED: Final = "() => [...document.querySelectorAll('button, summary, select, input, textarea, a')]"
VISIBLE: Final = f"""() => ({PRESSED})().filter(one => one.checkVisibility() && !one.disabled)
  .map(one => one.dataset.tabbed ??= String(Math.random()))"""


async def focused(page: Page) -> dict[str, Any]:
    found: dict[str, Any] = await page.evaluate(FOCUSED)
    return found


async def test_arrows_lead_through_the_timeline_and_enter_into_the_stream(place: Workplace) -> None:
    page = place.page
    first = await place.propose(path="one.txt")
    await page.keyboard.press("a")
    await first
    await place.bot.chat("what next?")
    await expect(place.row("what next?")).to_be_visible()
    await page.keyboard.press("3")
    grid = page.get_by_role("grid", name="activity of 3 participants in the last 60 s")
    await expect(grid.get_by_role("row")).to_have_count(3)
    await expect(page.locator(".bar:focus")).to_have_attribute("aria-label", SAYS)
    assert (await focused(page))["is_seen"]
    await page.keyboard.press("Home")
    assert (await focused(page))["name"].startswith("bot waits for a decision on write_file: ")
    await page.keyboard.press("ArrowDown")
    assert "for ann" in (await focused(page))["name"]
    await page.keyboard.press("ArrowUp")
    await page.keyboard.press("ArrowUp")
    assert (await focused(page))["name"].startswith("ann waits for ")
    await page.keyboard.press("ArrowUp")
    await page.keyboard.press("ArrowLeft")
    assert await page.locator(".lanes [tabindex='0']").count() == 1
    await page.keyboard.press("?")
    await expect(page.locator("dialog")).to_be_visible()
    await expect(page.locator("dialog")).to_contain_text("event in the lane")
    await page.keyboard.press("Escape")
    await expect(page.locator(".bar:focus")).to_have_attribute("aria-label", re.compile("^ann waits for "))
    await page.keyboard.press("End")
    await page.keyboard.press("Enter")
    await expect(page.locator(".row:focus")).to_contain_text("write_file")


async def test_the_time_stands_still_while_somebody_reads_the_timeline(place: Workplace) -> None:
    page = place.page
    await place.bot.chat("before")
    await expect(place.row("before")).to_be_visible()
    await page.keyboard.press("3")
    await expect(page.locator(".bar:focus")).to_have_count(1)
    await place.files.chat("after")
    await place.files.send("participant/status", {"messages_in_context": 1, "tokens": 5})
    await expect(page.locator(".tokens")).to_contain_text("5 tokens")  # so the chat has come, too
    await expect(page.locator(".lane-name")).to_have_text(["bot"])
    await page.keyboard.press("2")
    await page.keyboard.press("3")
    await expect(page.locator(".lane-name")).to_have_text(["bot", "files"])


async def test_rows_are_walked_with_keys_that_heed_the_filter(place: Workplace) -> None:
    page = place.page
    for text in ("one apple", "two pears", "three apples"):
        await place.bot.chat(text)
    await expect(place.row("three apples")).to_be_visible()
    await page.keyboard.press("/")
    focused_id = await page.evaluate("document.activeElement.id")
    assert focused_id == "filter-text"  # what is typed at once is no command
    await page.keyboard.type("apple")
    await expect(page.locator(".row")).to_have_count(2)
    await page.keyboard.press("Escape")
    await page.keyboard.press("p")
    await expect(page.locator(".row:focus")).to_contain_text("three apples")
    await page.keyboard.press("p")
    await expect(page.locator(".row:focus")).to_contain_text("one apple")
    assert (await focused(page))["is_seen"]
    await page.keyboard.press("Tab")
    assert (await focused(page))["name"] == "thread"
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await expect(page.locator("dialog .raw")).to_contain_text("one apple")
    await page.keyboard.press("Escape")
    await expect(page.locator(".row").get_by_role("button", name="raw")).to_be_focused()
    await page.keyboard.press("t")
    await expect(page.locator(".row")).to_have_count(1)
    await page.keyboard.press("t")
    await expect(page.locator(".row")).to_have_count(2)


async def test_tab_reaches_all_that_can_be_pressed_and_shows_where_it_is(place: Workplace) -> None:
    page = place.page
    proposal = await place.propose()
    await page.locator(".person summary", has_text="bot").click()
    await place.bot.chat("a [link](https://example.org)", format="markdown")
    await expect(place.row("link")).to_be_visible()
    wanted = set(await page.evaluate(VISIBLE))
    await page.evaluate("document.activeElement.blur()")
    for _ in range(3 * len(wanted)):
        await page.keyboard.press("Tab")
        at = await focused(page)
        assert at["is_seen"] or at["tag"] == "BODY", at
        wanted.discard(await page.evaluate("document.activeElement.dataset.tabbed ?? ''"))
        if not wanted:
            break
    left = await page.evaluate(
        f"left => ({PRESSED})().filter(one => left.includes(one.dataset.tabbed)).map(one => one.outerHTML)",
        list(wanted),
    )
    assert left == []
    await proposal.withdraw()


async def test_focus_comes_back_to_where_a_dialog_was_opened(place: Workplace) -> None:
    page = place.page
    proposal = await place.propose()
    for button in ("Edit…", "Reject…", "Chain"):
        opener = page.locator(".deciding").get_by_role("button", name=button)
        await opener.focus()
        await page.keyboard.press("Enter")
        await expect(page.locator("dialog")).to_be_visible()
        await page.keyboard.press("Escape")
        await expect(opener).to_be_focused()
    await page.locator(".deciding").get_by_role("button", name="Reject…").focus()
    await page.keyboard.press("Enter")
    await page.locator("dialog button[type=submit]").click()
    await expect(page.locator("dialog")).to_have_count(0)
    await expect(page.locator(".card-title")).to_be_focused()  # what was pressed is not there any more
    await proposal.withdraw()
