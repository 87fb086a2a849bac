"""Participants: what each may do and is doing, the controls, and who is let in and put out; chain and timeline."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, expect
from tests.gateway.served import Serve

from .workplace import SPACE, Workplace, open_page, work

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]


@pytest_asyncio.fixture(loop_scope="session")
async def place(serve: Serve, browser: Browser) -> AsyncIterator[Workplace]:
    served = await serve(SPACE)
    async with work(served.gateway.url, browser) as place:
        yield place


async def opened(place: Workplace, who: str) -> Locator:
    person = place.page.locator(".person", has=place.page.locator(f".who:text-is('{who}')"))
    await person.locator("summary").click()
    await expect(person.locator(".rights")).to_be_visible()
    return person


async def test_what_somebody_may_do_is_said_in_words(place: Workplace) -> None:
    person = await opened(place, "bot")
    for words in (
        "Propose anything on anyone",
        "Chat",
        "Share its reasoning",
        "Pause, restart and shut down others",
    ):
        await expect(person.locator(".rights")).to_contain_text(words)


async def test_a_pause_is_told_of_before_sent_after_and_lifted(place: Workplace) -> None:
    person = await opened(place, "bot")
    await person.get_by_role("button", name="Pause…").click()
    dialog = place.page.locator("dialog")
    await expect(dialog).to_contain_text("The gateway refuses everything it sends")
    await expect(dialog.get_by_label("Reason (optional)")).to_be_focused()
    await place.page.keyboard.press("Enter")
    await expect(person).to_contain_text("paused")
    assert place.bot.paused
    await person.get_by_role("button", name="Resume").click()
    await expect(person.locator(".doing")).to_be_empty()
    await place.bot.chat("I am not")


async def test_each_control_reaches_whom_it_is_for(place: Workplace) -> None:
    person = await opened(place, "bot")
    heard = place.bot.envelopes("participant/*")
    for button, does, kind in (
        ("Forget…", "Forget", "participant/forget"),
        ("Compact…", "Compact", "participant/compact"),
        ("Clear…", "Clear", "participant/clear"),
        ("Restart…", "Restart", "participant/restart"),
    ):
        await person.get_by_role("button", name=button).click()
        await place.page.locator("dialog").get_by_role("button", name=does, exact=True).click()
        async with asyncio.timeout(10):
            envelope = await anext(heard)
        assert (envelope.sender, envelope.kind, envelope.to) == ("ann", kind, ("bot",))


async def test_a_grant_is_picked_from_what_was_proposed_widened_and_taken_back(place: Workplace) -> None:
    proposal = await place.propose()
    person = await opened(place, "bot")
    await person.get_by_role("button", name="Grant…").click()
    dialog = place.page.locator("dialog")
    await expect(dialog).to_contain_text("Use the tool write_file")
    await expect(dialog.locator(".means")).to_contain_text("without approval, for 1 hour")
    await expect(dialog.locator(".means")).to_contain_text("1 recent proposal")
    await dialog.get_by_role("button", name="write_*").click()
    await dialog.get_by_role("button", name="Grant", exact=True).click()
    await expect(person.locator(".rights")).to_contain_text("Use the tool write_*")
    assert await place.bot.call("files", "write_file", {"path": "own.txt", "content": "x"})
    await person.get_by_role("button", name="Revoke grant…").click()
    await expect(dialog.locator(".means")).to_contain_text("can no longer use the tool write_*")
    await dialog.get_by_role("button", name="Revoke", exact=True).click()
    await expect(person.locator(".rights")).not_to_contain_text("write_*")
    await proposal.withdraw()


async def test_nothing_is_taken_away_that_nobody_chose(place: Workplace) -> None:
    person = await opened(place, "bot")
    await person.get_by_role("button", name="Revoke…").click()
    dialog = place.page.locator("dialog")
    take = dialog.get_by_role("button", name="Revoke", exact=True)
    await expect(take).to_be_disabled()
    await place.page.keyboard.press("Enter")
    await expect(dialog.locator("input:checked")).to_have_count(0)
    await dialog.get_by_label("Chat", exact=True).check()
    await expect(dialog.locator(".means")).to_contain_text("can no longer chat")
    await expect(take).to_be_enabled()
    await place.page.keyboard.press("Escape")


async def test_somebody_is_invited_with_a_token_shown_once_and_removed(
    place: Workplace, browser: Browser
) -> None:
    page = place.page
    await page.get_by_role("button", name="Invite…").click()
    dialog = page.locator("dialog")
    await dialog.get_by_label("Participant id").fill("carol")
    await expect(dialog.locator(".means")).to_contain_text("carol can")
    await dialog.get_by_role("button", name="Invite", exact=True).click()
    token = await dialog.get_by_label("Token", exact=True).input_value()
    await dialog.get_by_role("button", name="Done").click()
    await dialog.get_by_role("button", name="Close anyway").click()
    assert token not in await page.content()
    theirs = await browser.new_page()
    await open_page(theirs, place.url, token)
    person = await opened(place, "carol")
    await person.get_by_role("button", name="Remove…").click()
    await expect(dialog.locator(".means")).to_contain_text("its token stops working")
    await dialog.get_by_role("button", name="Remove", exact=True).click()
    await theirs.wait_for_selector("text=you were removed from the space")
    await expect(page.locator(".person", has_text="carol")).to_have_count(0)
    await theirs.close()


async def test_a_chain_shows_proposal_decision_request_and_answer(place: Workplace) -> None:
    page = place.page
    proposal = await place.propose(content="one\n")
    await page.keyboard.press("e")
    await page.locator("dialog").get_by_label("content").fill("two\n")
    await page.locator("dialog button[type=submit]").click()
    await proposal
    await place.row("proposes write_file").get_by_role("button", name="chain").click()
    chain = page.locator(".chain")
    await expect(chain.locator("h3")).to_have_text(["Proposed", "Approved with changes", "Done"])
    await expect(chain.locator(".line.removed")).to_contain_text("one")
    await expect(chain.locator(".line.added")).to_contain_text("two")
    await expect(chain).to_contain_text("wrote 4 characters")
    await page.keyboard.press("Escape")
    await page.keyboard.press("3")
    lanes = page.locator(".lanes")
    await expect(lanes.locator(".lane-name")).to_have_text(["ann", "bot", "files"])
    await expect(lanes.locator(".bar.waits").first).to_be_visible()
    await expect(lanes.locator(".bar.works").first).to_be_visible()
