"""Deciding fast, and without a mishap: what is typed goes where it was meant, and nothing that was written is lost."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest
from playwright.async_api import WebSocketRoute, expect

import mew

from .workplace import Workplace, open_page

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]

_SHUTDOWN: Final = 4001
ASKED: Final = {
    "message": "How is it called?",
    "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
}
TYPED_AT_ONCE: Final = """async () => {
  window.requestAnimationFrame = () => 0;
  document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "c", bubbles: true }));
  const { port1, port2 } = new MessageChannel();
  await new Promise(done => { port1.onmessage = done; port2.postMessage(0); });
  return document.activeElement.id;
}"""


@asynccontextmanager
async def serving(place: Workplace) -> AsyncIterator[None]:
    """Bob offers a tool, for as long as this lasts."""
    participant = mew.Participant("bob")

    @participant.tool()
    async def greet() -> str:
        """Greet."""
        return "hello"

    async with mew.connect(place.url, space="demo", token="t-bob") as bob:
        at_work = bob.connection.spawn(participant.serve(bob))
        yield
        participant.stop()
        await at_work


@asynccontextmanager
async def lost(place: Workplace) -> AsyncIterator[Callable[[], Any]]:
    """The page's connection can be lost, by calling this, until it ends."""
    connections, is_lost = list[WebSocketRoute](), asyncio.Event()

    async def connect(connection: WebSocketRoute) -> None:
        if is_lost.is_set():
            await connection.close(code=_SHUTDOWN)
        else:
            connections.append(connection)
            connection.connect_to_server()

    async def lose() -> None:
        is_lost.set()
        await connections[-1].close(code=_SHUTDOWN)
        await expect(place.page.locator("[data-state=live]")).to_have_count(0)

    await place.page.route_web_socket(re.compile("/ws"), connect)
    await open_page(place.page, place.url)
    yield lose
    is_lost.clear()


async def test_an_approval_waits_until_who_is_to_do_it_is_back(place: Workplace) -> None:
    page = place.page
    async with serving(place):
        proposal = await place.bot.propose_call("bob", "greet", {})
        await place.ready()
        await page.keyboard.press("a")
    line = page.locator(".undo-line")
    await expect(line).to_contain_text("Approving greet, once bob is connected")
    await page.keyboard.press("u")
    await place.ready()
    await page.keyboard.press("a")
    await expect(place.row("approves bot's greet")).to_have_count(0)
    async with serving(place):
        assert isinstance(await proposal, mew.Fulfilled)
    await expect(line).to_have_count(0)


async def test_an_approval_without_a_connection_leaves_when_that_is_back(place: Workplace) -> None:
    async with lost(place) as lose:
        proposal = await place.propose()
        await lose()
        await place.page.keyboard.press("a")
        await expect(place.page.locator(".undo-line")).to_contain_text("once you are connected again")
    assert isinstance(await proposal, mew.Fulfilled)


async def test_what_is_typed_after_r_is_told_with_the_no(place: Workplace) -> None:
    proposal = await place.propose()
    await place.page.keyboard.press("r")
    await place.page.keyboard.type("Not while we are on leave.")
    await place.page.keyboard.press("Enter")
    assert isinstance(await proposal, mew.Rejected)
    await expect(place.row("Not while we are on leave.")).to_be_visible()


async def test_who_moves_on_by_hand_is_not_held_up_and_the_keyboard_comes_along(place: Workplace) -> None:
    keys = place.page.keyboard
    proposals = [await place.propose(path=f"{n}.txt") for n in range(3)]
    for key in (
        "1",
        "a",
        "j",
        "a",
        "a",
    ):  # to the next, where the list was already; the last was not meant for a third
        await keys.press(key)
    selected = place.page.locator(".card.selected")
    await expect(place.page.locator(".notice")).to_contain_text("has only just appeared")
    await expect(place.page.locator(".undo-line")).to_have_count(2)
    await expect(selected).to_have_attribute("data-proposal", proposals[2].id)
    await expect(selected.locator(".card-title")).to_be_focused()
    for key in ("u", "u", "x", "j", "x", "a", "u"):
        await keys.press(key)
    await expect(place.page.locator(".several")).to_contain_text("2 selected")
    for proposal in proposals:
        await proposal.withdraw()


async def test_after_an_answer_was_written_the_next_is_not_decided_until_asked_for(place: Workplace) -> None:
    page = place.page
    async with mew.connect(place.url, space="demo", token="t-bob") as bob:
        asking = asyncio.ensure_future(bob._requests.request(("ann",), "elicitation/create", ASKED))
        await expect(page.locator(".card.question")).to_be_visible()
        proposal = await place.propose()
        await page.keyboard.press("e")
        await page.keyboard.type("Rex")
        await page.keyboard.press("Enter")
        await expect(page.locator(".undo-line")).to_have_count(1)
        await expect(page.locator(".guarded, .card.question input")).to_have_count(0)
        await page.keyboard.press("a")
        await expect(page.locator(".notice")).to_contain_text("press j for the next")
        async with asyncio.timeout(10):
            assert await asking == {"action": "accept", "content": {"name": "Rex"}}
        await expect(page.locator(".undo-line")).to_have_count(0)
        await expect(page.locator(".deciding")).to_have_count(0)
        await page.keyboard.press("j")
        await expect(page.locator(".card.selected")).to_have_attribute("data-proposal", proposal.id)
        await proposal.withdraw()


async def test_an_edit_is_kept_and_sent_with_the_keyboard(place: Workplace) -> None:
    page, dialog = place.page, place.page.locator("dialog")
    proposal = await place.propose(path="plan.md")
    await page.keyboard.press("e")
    await expect(dialog.locator("input")).to_be_focused()
    await page.keyboard.press("End")
    await page.keyboard.type(".old")
    await page.keyboard.press("Escape")
    await expect(page.locator(".notice")).to_contain_text("Your changes are kept")
    await page.keyboard.press("e")
    await expect(dialog.locator("input")).to_have_value("plan.md.old")
    await page.keyboard.press("Tab")
    await page.keyboard.press("Control+Enter")
    await expect(page.locator(".undo-line")).to_contain_text("with your changes")
    await page.keyboard.press("u")
    await page.keyboard.press("e")
    await dialog.get_by_role("button", name="Discard changes").click()
    await expect(dialog.locator("input")).to_have_value("plan.md")
    await dialog.locator("input").press("Enter")
    outcome = await proposal
    assert isinstance(outcome, mew.Fulfilled)
    assert not outcome.edited


async def test_what_is_said_without_a_connection_is_seen_to_wait(place: Workplace) -> None:
    unsaid = place.page.locator(".unsaid")
    async with lost(place) as lose:
        await lose()
        await place.page.keyboard.press("c")
        await place.page.keyboard.type("Anybody there?")
        await place.page.keyboard.press("Enter")
        await expect(unsaid).to_contain_text("waiting to be sent")
        await expect(unsaid).to_contain_text("Anybody there?")
    await expect(place.row("Anybody there?")).to_be_visible()
    await expect(unsaid).to_have_count(0)


async def test_what_is_typed_right_after_c_goes_into_the_field(place: Workplace) -> None:
    await place.page.keyboard.press("3")
    await expect(place.page.locator(".timeline")).to_be_visible()
    assert await place.page.evaluate(TYPED_AT_ONCE) == "say"
