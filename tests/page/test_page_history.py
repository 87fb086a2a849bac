"""History in the stream: older envelopes page by page, to the beginning, and any place by time or id."""

import asyncio
import re

import pytest
from playwright.async_api import Page, Route, expect

from .test_page_for_everyone import assert_for_everyone
from .workplace import Workplace, open_page

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]

FIRST_SEEN = """rows => {
  const top = rows.getBoundingClientRect().top;
  const seen = [...rows.querySelectorAll('.row')].find(row => row.getBoundingClientRect().bottom > top + 1);
  return [seen.dataset.envelope, Math.round(seen.getBoundingClientRect().top - top)];
}"""


async def tell(place: Workplace, count: int) -> list[str]:
    """So many chats of different heights, in about this order; their ids."""
    ids: list[str] = []
    for begin in range(0, count, 250):
        texts = [f"said {n}" + " and more" * (n % 7) * 9 for n in range(begin, min(begin + 250, count))]
        sent = await asyncio.gather(*(place.bot.send("chat", {"text": text}) for text in texts))
        ids += [envelope.id for envelope in sent]
    await place.bot.chat("the last of them")
    return ids


async def scroll_up(page: Page) -> tuple[list[object], list[object]]:
    """To the top of what is here, and wait for older ones; the first row in sight, and where, before and after."""
    older = re.compile(r"/envelopes\?.*(before|after)=")
    arrives = asyncio.Event()

    async def hold(route: Route) -> None:
        await arrives.wait()
        await route.continue_()

    rows = page.locator(".rows")
    await page.route(older, hold)
    await rows.evaluate("rows => { rows.scrollTop = 150 }")
    await expect(page.locator(".fetching")).to_be_visible()
    await settled(page)
    before = await rows.evaluate(FIRST_SEEN)
    arrives.set()
    await expect(page.locator(".fetching")).to_have_count(0)
    async with asyncio.timeout(
        10
    ):  # not with a function in the page: the policy allows none that comes as text
        while not await rows.evaluate("rows => rows.scrollTop > 1000"):
            await settled(page)
    await settled(page)
    after = await rows.evaluate(FIRST_SEEN)
    await page.unroute(older)
    return before, after


async def settled(page: Page) -> None:
    """What was guessed about rows has been measured."""
    await page.evaluate(
        "async () => { for (let n = 0; n < 4; n++) await new Promise(requestAnimationFrame) }"
    )


async def test_older_envelopes_come_page_by_page_to_the_beginning_and_the_place_is_kept(
    place: Workplace,
) -> None:
    page = place.page
    await tell(place, 1300)
    await page.reload()
    await open_page(page, place.url)
    await expect(place.row("the last of them")).to_be_visible()
    for _ in range(2):
        before, after = await scroll_up(page)
        assert before == after
    await page.locator(".rows").evaluate("rows => { rows.scrollTop = 0 }")
    await expect(place.row("bot joined")).to_be_visible()
    await expect(page.locator(".fetching")).to_have_count(0)
    await place.bot.chat("meanwhile")
    await page.keyboard.press("b")
    await expect(place.row("meanwhile")).to_be_visible()


async def test_a_moment_or_an_id_is_jumped_to_and_read_on_from_in_both_directions(place: Workplace) -> None:
    page = place.page
    ids = await tell(place, 1300)
    await page.keyboard.press("h")
    await page.locator("dialog").get_by_label("envelope with this id").fill(ids[600])
    await page.keyboard.press("Enter")
    await expect(page.locator(".banner")).to_contain_text("You are viewing the history")
    await expect(page.locator(".row.current")).to_contain_text("said 600")
    await assert_for_everyone(page, "history")
    before, after = await scroll_up(page)  # from what was fetched before the place
    assert before == after
    rows = page.locator(".rows")
    for _ in range(4):
        await rows.evaluate("rows => { rows.scrollTop = rows.scrollHeight }")
        await settled(page)
        await expect(page.locator(".fetching")).to_have_count(0)
    await expect(place.row("the last of them")).to_be_visible()
    await expect(page.locator(".banner")).to_contain_text("the newest when it was loaded")
    await place.bot.chat("it happens now")
    await expect(place.row("it happens now")).to_have_count(0)
    await page.keyboard.press("b")
    await expect(place.row("it happens now")).to_be_visible()

    await page.keyboard.press("h")
    await page.locator("dialog").get_by_label("From a date and time").fill("2020-01-01T00:00:00")
    await page.keyboard.press("Enter")
    await expect(place.row("bot joined")).to_be_visible()
    await page.keyboard.press("h")
    await page.locator("dialog").get_by_label("envelope with this id").fill("nothing-has-this-id")
    await page.keyboard.press("Enter")
    await expect(page.locator(".notice")).to_contain_text("no envelope with that id")
