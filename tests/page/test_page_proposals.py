"""What a card says of a proposal: its name, why, until when, who rejected it, and that its proposer has left."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal

import pytest
from playwright.async_api import Browser, Locator, expect
from tests.gateway.served import Serve

import mew

from .axe import faults
from .workplace import SPACE, Workplace, open_page, work

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]

WRITE: Final = {
    "method": "tools/call",
    "params": {"name": "write_file", "arguments": {"path": "plan.md", "content": "rest"}},
}
READ: Final = {"method": "tools/call", "params": {"name": "read_file", "arguments": {"path": "plan.md"}}}
PHONE: Final = (390, 844)


@asynccontextmanager
async def bob_in(place: Workplace) -> AsyncIterator[mew.Client]:
    async with mew.connect(place.url, space="demo", token="t-bob") as bob:
        yield bob


async def proposed(place: Workplace, by: mew.Client | None = None, **more: Any) -> tuple[str, Locator]:
    """Somebody proposes to write a file; returns the id, and its card once keys are for it."""
    proposal = await (by or place.bot).send("mcp/proposal", {**WRITE, **more}, to="files")
    card = place.page.locator(f".card[data-proposal='{proposal.id}']")
    await expect(card).to_be_visible()
    await place.ready()
    return proposal.id, card


async def test_an_unrelated_request_that_names_a_proposal_does_not_take_it_off_the_page(
    place: Workplace,
) -> None:
    id, card = await proposed(place)
    async with bob_in(place) as bob:
        await bob.send("mcp/request", {**READ, "id": 1}, to="files", correlation_id=id)
        await expect(card.locator(".unrelated")).to_contain_text("bob called read_file on files")
    await expect(place.page.locator(".count.some").first).to_have_text("1")
    await place.page.keyboard.press("a")
    await expect(place.row("approves bot's write_file")).to_be_visible()


async def test_a_card_shows_why_in_the_words_of_the_proposer(place: Workplace) -> None:
    async with place.bot.reasoning("Which files are old?") as reasoning:
        await reasoning.conclude("None of them.")
    _, card = await proposed(place, why="Ann asked for a plan.")
    await expect(card.locator(".claim")).to_contain_text("Ann asked for a plan.")
    await expect(card.locator(".claim")).to_contain_text("claimed by bot")
    await expect(card).not_to_contain_text("None of them.")


async def test_a_card_shows_the_reasoning_that_ended_in_its_proposal_and_no_other(place: Workplace) -> None:
    async with place.bot.reasoning("What is missing?") as reasoning:
        await reasoning.conclude("A plan is missing.")
    _, first = await proposed(place)
    await expect(first.locator(".why")).to_contain_text("A plan is missing.")
    _, second = await proposed(place)
    await second.locator(".card-title").click()
    await expect(second.locator(".deciding")).to_be_visible()
    await expect(second.locator(".why")).to_have_count(0)


async def test_rejections_of_others_are_shown_on_the_card_that_is_still_open(place: Workplace) -> None:
    id, card = await proposed(place)
    async with bob_in(place) as bob:
        said = {"reason": "unsafe", "message": "It would replace my notes."}
        await bob.send("mcp/reject", said, to="bot", correlation_id=id)
    await expect(card.locator(".rejections")).to_contain_text("bob rejected it: unsafe")
    await expect(card.locator(".rejections")).to_contain_text("It would replace my notes.")
    await expect(card.locator(".card-marks")).to_contain_text("1 rejection")
    await expect(card.get_by_role("button", name="Approve")).to_be_enabled()


async def test_a_rejection_carries_its_words(place: Workplace) -> None:
    id, _ = await proposed(place)
    async with place.bot.envelopes("mcp/reject", about=id) as rejections:
        await place.page.keyboard.press("r")
        await place.page.keyboard.type("Not while we are on leave.")
        await place.page.keyboard.press("Enter")
        rejection = await anext(rejections)
    assert rejection.content == {"reason": "disagree", "message": "Not while we are on leave."}
    await expect(place.row("Not while we are on leave.")).to_have_count(1)


async def test_an_approval_says_that_it_came_through_the_page(place: Workplace) -> None:
    id, _ = await proposed(place)
    async with place.bot.envelopes("mcp/request", about=id) as requests:
        await place.page.keyboard.press("a")
        request = await anext(requests)
    assert request.content is not None
    assert request.content["via"] == "page"
    assert request.content["params"] == WRITE["params"]


async def test_an_expired_proposal_cannot_be_approved(place: Workplace) -> None:
    page = place.page
    await page.clock.install()
    await open_page(page, place.url)
    until = datetime.now(UTC) + timedelta(minutes=30)
    _, card = await proposed(place, expires_at=until.isoformat())
    await expect(card.locator(".expires")).to_contain_text("expires in 30 min")
    await expect(card.get_by_role("button", name="Approve")).to_be_enabled()
    await page.clock.fast_forward("31:00")
    await expect(card.locator(".chip.expired")).to_be_visible()
    await expect(card.locator(".decided")).to_contain_text("Expired before anyone decided.")
    await expect(card.get_by_role("button", name="Approve")).to_have_count(0)
    await expect(page.locator(".count.some")).to_have_count(0)


async def test_proposals_whose_proposer_has_left_come_last_and_can_be_cleared_together(
    place: Workplace,
) -> None:
    page = place.page
    async with bob_in(place) as bob:
        left = [await proposed(place, bob) for _ in range(2)]
    mine, _ = await proposed(place)
    await expect(place.cards.first).to_have_attribute("data-proposal", mine)
    for _, card in left:
        await expect(card.locator(".card-marks")).to_contain_text("proposer left")
    await page.get_by_role("button", name="Clear 2 whose proposer left").click()
    async with place.bot.envelopes("mcp/reject") as rejections:
        await page.get_by_role("dialog").get_by_role("button", name="Reject 2 proposals").click()
        told = [await anext(rejections) for _ in left]
    assert {rejection.correlation_id for rejection in told} == {(id,) for id, _ in left}
    assert {rejection.content["reason"] for rejection in told if rejection.content} == {"proposer_left"}
    await expect(page.locator(".clear-left")).to_have_count(0)
    await expect(page.locator(".count.some").first).to_have_text("1")


async def test_a_proposal_is_called_by_the_beginning_of_its_id_which_can_be_copied(place: Workplace) -> None:
    page = place.page
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    id, card = await proposed(place)
    name = card.locator(".proposal-id")
    await expect(name).to_have_text(id[:8])
    await name.click()
    await expect(name).to_have_text("copied")
    assert await page.evaluate("navigator.clipboard.readText()") == id


async def test_without_a_clipboard_the_id_is_copied_all_the_same(place: Workplace) -> None:
    page = place.page
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    id, card = await proposed(place)
    await page.evaluate(
        "() => { Clipboard.prototype.writeText = () => Promise.reject(new Error('no TLS')); }"
    )
    await card.locator(".proposal-id").click()
    await expect(card.locator(".proposal-id")).to_have_text("copied")
    assert await page.evaluate("navigator.clipboard.readText()") == id


@pytest.mark.parametrize("size", [(1440, 900), PHONE])
async def test_all_of_it_can_be_read_by_everyone(
    serve: Serve, browser: Browser, size: tuple[int, int]
) -> None:
    served = await serve(SPACE)
    async with work(served.gateway.url, browser, size=size) as place:
        await crowded(place)
        colors: tuple[Literal["light", "dark"], ...] = ("light", "dark")
        for color in colors:
            await place.page.emulate_media(color_scheme=color)
            await place.page.screenshot(animations="disabled")  # ends the transitions of the colours
            assert await faults(place.page) == [], color
        assert await place.page.evaluate("document.documentElement.scrollWidth") <= size[0]


async def crowded(place: Workplace) -> None:
    """A card with all there can be on it, and one whose proposer has left."""
    async with bob_in(place) as bob:
        until = (datetime.now(UTC) + timedelta(minutes=30)).isoformat()
        why = "Ann asked for a plan before Friday, and the notes name three open points."
        id, card = await proposed(place, why=why, expires_at=until)
        said = {"reason": "unsafe", "message": "It would replace my notes.\nAsk me first."}
        await bob.send("mcp/reject", said, to="bot", correlation_id=id)
        await bob.send("mcp/request", {**READ, "id": 1}, to="files", correlation_id=id)
        await bob.send("mcp/proposal", {**READ, "expires_at": until}, to="files")
        await expect(card.locator(".unrelated")).to_be_visible()
    await expect(place.page.locator(".chip.left")).to_have_count(1)
