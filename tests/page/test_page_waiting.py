"""Waiting for you: what a reviewer sees of a proposal, and every way to decide it."""

import asyncio
import re
from typing import Final

import pytest
from playwright.async_api import Browser, WebSocketRoute, expect

import mew

from .workplace import Workplace, open_page

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]

_SHUTDOWN: Final = 4001


async def test_a_proposal_is_shown_with_what_it_would_do_and_why(place: Workplace) -> None:
    async with place.bot.reasoning("What is left to do?") as reasoning:
        await reasoning.thought("The plan is not written down.")
        await reasoning.conclude("I write the plan down.")
    proposal = await place.propose()
    await place.bot.chat("So that nobody forgets it.", about=proposal.id)
    card = place.cards.first
    for text in (
        "bot",
        "write_file",
        "files",
        "Write a text file; what it held before is gone.",
        "destructive",
        "plan.md",
        "- rest",
        "I write the plan down.",
        "So that nobody forgets it.",
        "No earlier decisions about write_file",
    ):
        await expect(card).to_contain_text(text)
    await expect(place.page).to_have_title(re.compile(r"^\(1\) demo"))
    await card.get_by_text("Input schema of the tool").click()
    await expect(card).to_contain_text("properties")
    assert await card.locator(".digest").get_attribute("title") == proposal.digest
    await proposal.withdraw()


async def test_a_sends_what_was_proposed_after_three_seconds(place: Workplace) -> None:
    proposal = await place.propose(content="exactly this: é\n")
    await place.page.keyboard.press("a")
    await expect(place.page.locator(".undo-line")).to_contain_text("Approving write_file")
    assert not place.written
    outcome = await proposal
    assert isinstance(outcome, mew.Fulfilled)
    assert (outcome.by, outcome.edited) == ("ann", False)
    assert place.written == {"plan.md": "exactly this: é\n"}
    await expect(place.page).to_have_title(re.compile("^demo"))
    await expect(place.page.locator(".nothing")).to_be_visible()


async def test_u_takes_a_decision_back_before_it_is_sent(place: Workplace) -> None:
    proposal = await place.propose()
    await place.page.keyboard.press("a")
    await place.page.keyboard.press("u")
    await expect(place.page.locator(".undo-line")).to_have_count(0)
    await expect(place.cards.first.locator("button.approve")).to_be_enabled()
    await place.page.wait_for_timeout(3_200)  # nothing is to come, and that takes its time
    assert not place.written
    await proposal.withdraw()


async def test_r_rejects_with_a_reason_and_words(place: Workplace) -> None:
    proposal = await place.propose()
    await place.page.keyboard.press("r")
    dialog = place.page.locator("dialog")
    await dialog.get_by_label("Unsafe").check()
    await dialog.get_by_label("In your own words").fill("Not while we are on leave.")
    await dialog.locator("button[type=submit]").click()
    outcome = await proposal
    assert isinstance(outcome, mew.Rejected)
    assert (outcome.by, outcome.reason) == ("ann", "unsafe")
    await expect(place.row("Not while we are on leave.")).to_be_visible()


async def test_e_changes_what_is_approved_and_shows_the_difference(place: Workplace) -> None:
    proposal = await place.propose(content="one\ntwo\nthree\n")
    await place.page.keyboard.press("e")
    dialog = place.page.locator("dialog")
    await expect(dialog).to_contain_text("No changes yet")
    await dialog.get_by_label("content").fill("one\n2\nthree\n")
    await expect(dialog.locator(".line.removed")).to_contain_text("two")
    await expect(dialog.locator(".line.added")).to_contain_text("2")
    await dialog.get_by_role("button", name="Approve with these changes").click()
    outcome = await proposal
    assert isinstance(outcome, mew.Fulfilled)
    assert outcome.edited
    assert place.written == {"plan.md": "one\n2\nthree\n"}


async def test_an_edit_that_the_schema_forbids_is_not_sent(place: Workplace) -> None:
    params = {"name": "write_file", "arguments": {"path": "a", "content": 7}}
    proposal = await place.bot.propose("tools/call", params, target="files")
    await place.ready()
    await place.page.keyboard.press("e")
    dialog = place.page.locator("dialog")
    await expect(dialog).to_contain_text("must be text")
    await expect(dialog.locator("button[type=submit]")).to_be_disabled()
    await dialog.get_by_label("content").fill("seven")
    await expect(dialog.locator("button[type=submit]")).to_be_enabled()
    await place.page.keyboard.press("Escape")
    await proposal.withdraw()


async def test_several_are_decided_at_once(place: Workplace) -> None:
    proposals = [await place.propose(path=f"{n}.txt") for n in range(3)]
    await place.page.keyboard.press("x")
    await place.page.keyboard.press("j")
    await place.page.keyboard.press("x")
    await expect(place.page.locator(".several")).to_contain_text("2 selected")
    await place.page.keyboard.press("a")
    for proposal in proposals[:2]:
        assert isinstance(await proposal, mew.Fulfilled)
    assert sorted(place.written) == ["0.txt", "1.txt"]
    await expect(place.page).to_have_title(re.compile(r"^\(1\)"))
    await proposals[2].withdraw()


async def test_j_and_k_move_and_a_decision_moves_on(place: Workplace) -> None:
    first, second = [await place.propose(path=f"{n}.txt") for n in range(2)]
    selected = place.page.locator(".card.selected")
    await expect(selected).to_have_attribute("data-proposal", first.id)
    await place.page.keyboard.press("j")
    await expect(selected).to_have_attribute("data-proposal", second.id)
    await place.page.keyboard.press("k")
    await place.page.keyboard.press("a")
    await place.page.keyboard.press("a")  # held a moment too long: not meant for the next
    await expect(selected).to_have_attribute("data-proposal", second.id)
    assert isinstance(await first, mew.Fulfilled)
    assert list(place.written) == ["0.txt"]
    await second.withdraw()


async def test_what_another_decides_changes_in_place_and_cannot_be_decided_twice(place: Workplace) -> None:
    async with mew.connect(place.url, space="demo", token="t-bob", recall=100) as bob:
        proposal = await place.propose()
        await place.page.keyboard.press("a")
        async for review in bob.proposals():
            await review.approve()
            break
        card = place.page.locator(f".card[data-proposal='{proposal.id}']")
        await expect(card).to_contain_text("Approved by bob and fulfilled.")
        await expect(card.locator("button.approve")).to_have_count(0)
        await expect(place.page.locator(".notice")).to_contain_text("Someone else decided it in the meantime")
        outcome = await proposal
        assert isinstance(outcome, mew.Fulfilled)
        assert outcome.by == "bob"


async def test_what_another_decided_while_the_connection_was_lost_is_not_decided_again(
    place: Workplace,
) -> None:
    lost, connections = asyncio.Event(), list[WebSocketRoute]()

    async def connect(connection: WebSocketRoute) -> None:
        if lost.is_set():
            await connection.close(code=_SHUTDOWN)
        else:
            connections.append(connection)
            connection.connect_to_server()

    await place.page.route_web_socket(re.compile("/ws"), connect)
    await open_page(place.page, place.url)
    async with mew.connect(place.url, space="demo", token="t-bob", recall=100) as bob:
        proposal = await place.propose()
        await place.page.keyboard.press("a")
        lost.set()
        await connections[-1].close(code=_SHUTDOWN)
        async for review in bob.proposals():
            await review.approve()
            break
        await expect(place.page.locator(".undo-clock[data-sending=true]")).to_be_attached()
        lost.clear()
        await expect(place.page.locator(".notice")).to_contain_text("in the meantime; nothing was sent")
        await expect(place.row("approves bot's write_file")).to_have_count(1)
        assert isinstance(await proposal, mew.Fulfilled)


async def test_a_withdrawn_one_says_so_where_it_was(place: Workplace) -> None:
    proposal = await place.propose()
    await proposal.withdraw()
    card = place.page.locator(f".card[data-proposal='{proposal.id}']")
    await expect(card).to_contain_text("Withdrawn by bot")
    await expect(card.locator(".deciding")).to_have_count(0)


async def test_how_the_same_was_decided_before_is_told(place: Workplace) -> None:
    first = await place.propose(path="first.txt")
    await place.page.keyboard.press("a")
    await first
    second = await place.propose(path="second.txt")
    card = place.page.locator(f".card[data-proposal='{second.id}']")
    await expect(card).to_contain_text(
        "Earlier decisions about write_file: with other arguments (1 approved)"
    )
    await card.get_by_text("Earlier decisions about write_file").click()
    await expect(card).to_contain_text("first.txt")
    await second.withdraw()


async def test_who_comes_later_finds_what_waits(place: Workplace, browser: Browser) -> None:
    proposal = await place.propose()
    later = await browser.new_page()
    await open_page(later, place.url, "t-bob")
    await expect(later.locator(".card")).to_contain_text("write_file")
    await later.close()
    await proposal.withdraw()


async def test_where_the_proposal_leaves_it_open_the_reviewer_says_who_is_to_do_it(place: Workplace) -> None:
    params = {"name": "unheard_of", "arguments": {}}
    proposal = await place.bot.propose("tools/call", params)
    await place.ready()
    card = place.cards.first
    await expect(card.locator("button.approve")).to_be_disabled()
    await place.page.keyboard.press("a")
    await expect(place.page.locator(".notice")).to_contain_text("Choose a participant to send it to first")
    await card.get_by_label("Send it to").select_option("files")
    await place.page.keyboard.press("Escape")  # out of the field, so that keys are for the card
    await place.page.keyboard.press("a")
    await proposal
    await expect(place.row("approves bot's unheard_of on files")).to_be_visible()
