"""The stream: everything that happens, readable, with filters, threads, raw JSON and history; and chat."""

import asyncio
import json
import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect
from tests.gateway.served import Serve

from .workplace import SPACE, Workplace, work

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]


@pytest_asyncio.fixture(loop_scope="session")
async def place(serve: Serve, browser: Browser) -> AsyncIterator[Workplace]:
    served = await serve(SPACE)
    async with work(served.gateway.url, browser) as place:
        yield place


async def test_each_kind_is_readable_and_what_belongs_together_is_one_row(place: Workplace) -> None:
    bot, page = place.bot, place.page
    await bot.chat("**Strong** and [here](https://example.org/x)", format="markdown")
    row = place.row("Strong")
    await expect(row.locator("strong", has_text="Strong")).to_be_visible()
    link = row.locator("a")
    await expect(link).to_have_attribute("href", "https://example.org/x")
    await expect(link).to_have_attribute("rel", "noopener noreferrer nofollow")
    await expect(link).to_contain_text("(example.org)")
    await bot.send("participant/status", {"messages_in_context": 4, "tokens": 800, "max_tokens": 1000})
    await expect(place.row("800 of 1,000 tokens")).to_be_visible()
    await expect(page.locator(".person meter")).to_have_attribute("value", "0.8")
    await page.fill("#say", "@fi")
    await page.keyboard.press("Tab")
    await expect(page.locator("#say")).to_have_value("@files ")
    await page.keyboard.type("are you there?")
    await page.keyboard.press("Enter")
    said = place.row("are you there?")
    await expect(said).to_contain_text("to files")
    await expect(page.locator("#say")).to_have_value("")


async def test_reasoning_is_folded_and_can_be_stopped(place: Workplace) -> None:
    stopped = asyncio.Event()

    async def think() -> None:
        async with place.bot.reasoning("Is it safe?") as reasoning:
            for n in range(3):
                await reasoning.thought(f"thought {n}")
            await asyncio.sleep(60)  # until somebody stops it
        stopped.set()

    thinking = place.bot.connection.spawn(think())
    row = place.row("is reasoning: ")
    await expect(row).to_contain_text("3 thoughts")
    await expect(row).to_contain_text("thought 2")
    await row.locator("summary").click()
    await expect(row.locator(".thoughts li")).to_have_count(3)
    await row.get_by_role("button", name="Stop", exact=True).click()
    await expect(place.row("was stopped while reasoning")).to_be_visible()
    async with asyncio.timeout(5):
        await asyncio.wait({thinking})


async def test_streams_show_how_much_came_and_what(place: Workplace) -> None:
    stream = await place.bot.streams.open(description="the build log", expected_size_bytes=1000)
    await stream.write("compiling everything\n")
    row = place.row("the build log")
    await expect(row.first).to_be_visible()
    opened = place.page.locator(".row .stream", has_text="the build log")
    await expect(opened).to_contain_text("21 bytes of 1000 bytes")
    await expect(opened).to_contain_text("compiling everything")
    await stream.close("complete")
    await expect(opened).to_contain_text("closed: complete")


async def test_filters_threads_and_raw_json(place: Workplace) -> None:
    page = place.page
    for n in range(5):
        await place.bot.chat(f"message number {n}")
    proposal = await place.propose(path="needle.txt")
    await page.keyboard.press("a")
    await proposal
    await page.keyboard.press("/")
    await page.keyboard.type("number 3")
    await expect(page.locator(".row")).to_have_count(1)
    await page.get_by_role("button", name="All ✕").click()
    await page.get_by_label("kind").select_option("mcp/proposal")
    await expect(page.locator(".row")).to_have_count(1)
    await page.locator(".row").hover()
    await page.locator(".row").get_by_role("button", name="thread").click()
    await page.get_by_label("kind").select_option("")
    await expect(page.locator(".row")).to_have_count(2)  # the proposal, and the request with its answer
    await page.get_by_role("button", name="Thread of").click()
    await page.keyboard.press("p")
    await page.keyboard.press("v")
    raw = json.loads(await page.locator("dialog .raw").inner_text())
    assert raw["protocol"] == "mew/v0.4"
    await page.keyboard.press("Escape")


async def test_the_acknowledge_queue_is_cleared_at_once(place: Workplace) -> None:
    for n in range(3):
        await place.bot.chat(f"please read {n}")
    queue = place.page.locator(".acknowledging")
    await expect(queue).to_contain_text("3 unacknowledged messages to everyone")
    await queue.locator("summary").click()
    await queue.get_by_role("button", name="Acknowledge all").click()
    await expect(place.row("please read 2")).to_contain_text("read by ann")
    await place.page.fill("#say", "anyone?")
    await place.page.keyboard.press("Enter")
    await expect(queue).to_contain_text("1 of your messages is unacknowledged")
    if not await queue.get_by_role("button", name="Cancel all").is_visible():
        await queue.locator("summary").click()
    await queue.get_by_role("button", name="Cancel all your messages").click()
    await expect(place.row("anyone?")).to_contain_text("cancelled by ann")


async def test_only_rows_in_sight_are_drawn_and_older_ones_come_when_scrolled_to(place: Workplace) -> None:
    page = place.page
    await asyncio.gather(*(place.bot.send("chat", {"text": f"old {n}"}) for n in range(699)))  # in any order
    await place.bot.chat("old 699")
    await expect(place.row("old 699")).to_be_visible()
    assert await page.locator(".row").count() < 80
    await page.reload()
    await page.fill("#token", "t-ann")
    await page.keyboard.press("Enter")
    await expect(place.row("old 699")).to_be_visible()
    await page.locator(".rows").evaluate("rows => { rows.scrollTop = 0 }")
    await expect(page.locator(".rows article").first).to_have_attribute(
        "aria-setsize", re.compile(r"^7\d\d$")
    )
    await expect(page.get_by_role("button", name="↓ Newest")).to_be_visible()
    await page.get_by_role("button", name="↓ Newest").click()
    await expect(place.row("old 699")).to_be_visible()


async def test_history_is_looked_at_apart(place: Workplace) -> None:
    page = place.page
    await place.bot.chat("it happened before")
    await page.keyboard.press("h")
    await page.locator("dialog button[type=submit]").click()
    await expect(page.locator(".banner")).to_contain_text("You are viewing the history")
    await expect(place.row("it happened before")).to_be_visible()
    await place.bot.chat("it happens now")
    await expect(place.row("it happens now")).to_have_count(0)
    await page.get_by_role("button", name="Back to live").click()
    await expect(place.row("it happens now")).to_be_visible()
