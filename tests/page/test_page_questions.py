"""Questions (`elicitation/create` of MCP): asked of whoever looks at the page, and answered there."""

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, expect
from tests.gateway.served import Serve

import mew

from .test_page_for_everyone import assert_for_everyone
from .workplace import SPACE, Workplace, open_page, work

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]

FORM: Final = {
    "message": "Which branch shall I push to?",
    "requestedSchema": {
        "type": "object",
        "properties": {
            "branch": {
                "type": "string",
                "title": "Branch",
                "enum": ["main", "dev"],
                "enumNames": ["Main", "Dev"],
            },
            "mail": {"type": "string", "format": "email", "description": "Who is told"},
            "times": {"type": "integer", "minimum": 1, "default": 2},
            "force": {"type": "boolean"},
        },
        "required": ["branch", "mail"],
    },
}
PAGE: Final = {"mode": "url", "message": "Log in there, please", "url": "https://git.example/login?x=1"}


@pytest_asyncio.fixture(loop_scope="session")
async def place(serve: Serve, browser: Browser) -> AsyncIterator[Workplace]:
    asking = SPACE.replace(
        '"mcp/request:notifications/*"', '"mcp/request:notifications/*", "mcp/request:elicitation/*"'
    )
    served = await serve(asking)
    async with work(served.gateway.url, browser) as place:
        yield place


def ask(asker: mew.Client, params: dict[str, Any] = FORM, **more: Any) -> "asyncio.Future[dict[str, Any]]":
    """As a bridge does for its server."""
    return asyncio.ensure_future(asker._requests.request(("ann",), "elicitation/create", params, **more))


async def shown(place: Workplace) -> Locator:
    card = place.page.locator(".card.question.selected")
    await expect(card).to_be_visible()
    await place.ready()
    return card


async def test_a_question_waits_with_a_form_and_is_answered_with_the_keyboard_alone(place: Workplace) -> None:
    asking = ask(place.files)
    card = await shown(place)
    await expect(place.page).to_have_title(re.compile(r"^\(1\) demo"))
    for text in (
        "files",
        "asks you",
        "Which branch shall I push to?",
        "Who is told",
        "Everyone in the space sees",
    ):
        await expect(card).to_contain_text(text)
    keys = place.page.keyboard
    await keys.press("a")  # two fields are missing: the first of them has the cursor
    await expect(card.get_by_label("Branch")).to_be_focused()
    await expect(card.locator(".fault")).to_have_count(2)
    await assert_for_everyone(place.page, "a question")
    await card.get_by_label("Branch").focus()
    await keys.type("Dev")
    await keys.press("Tab")
    await keys.type("ann")
    await expect(card.locator(".fault")).to_contain_text("must be an e-mail address")
    await keys.type("@example.org")
    await expect(card.locator(".fault")).to_have_count(0)
    await keys.press("Control+Enter")
    await expect(place.page.locator(".undo-line")).to_contain_text("Answering files")
    async with asyncio.timeout(10):
        assert await asking == {
            "action": "accept",
            "content": {"branch": "dev", "mail": "ann@example.org", "times": 2},
        }
    await expect(place.row("asks ann").locator(".answer")).to_contain_text("accepts")
    await expect(place.page.locator(".nothing")).to_be_visible()


async def test_declining_leaving_and_undoing_are_a_key_each(place: Workplace) -> None:
    asking = ask(place.files)
    card = await shown(place)
    await place.page.keyboard.press("r")
    await place.page.keyboard.press("u")
    await expect(card.locator("button.approve")).to_be_enabled()
    await place.ready()
    await place.page.keyboard.press("r")
    async with asyncio.timeout(10):
        assert await asking == {"action": "decline"}
    asking = ask(place.files, PAGE)
    card = place.page.locator(".card.question", has_text="Log in there")
    link = card.get_by_role("link")
    await expect(link).to_have_attribute("href", "https://git.example/login?x=1")
    await expect(card).to_contain_text("a page on git.example")
    await place.ready()
    await place.page.keyboard.press("l")
    async with asyncio.timeout(10):
        assert await asking == {"action": "cancel"}


async def test_one_that_another_session_answers_or_its_asker_takes_back_changes_in_place(
    place: Workplace,
) -> None:
    async with mew.connect(place.url, space="demo", token="t-ann") as elsewhere:
        questions = elsewhere.questions()
        asking = ask(place.files)
        card = await shown(place)
        async with asyncio.timeout(10):
            question = await anext(questions)
            await question.answer(branch="main", mail="a@b.example")
            await asking
    await expect(card.locator(".decided")).to_contain_text("Accepted by you in another session")
    await expect(card.locator(".deciding")).to_have_count(0)
    await expect(place.page).to_have_title(re.compile("^demo"))
    asking = ask(place.files, PAGE)
    card = place.page.locator(".card.question", has_text="Log in there")
    await expect(card).to_be_visible()
    await place.files.send(
        "mcp/request",
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {}},
        to=["ann"],
        correlation_id=[await card.get_attribute("data-question") or ""],
    )
    await expect(card).to_contain_text("withdrawn")
    asking.cancel()


async def test_a_question_from_before_what_is_shown_is_found_after_all(
    place: Workplace, browser: Browser
) -> None:
    asking = ask(place.files)
    await shown(place)
    await asyncio.gather(*(place.bot.send("chat", {"text": f"later {n}"}) for n in range(520)))
    later = await browser.new_page()
    await open_page(later, place.url)
    await expect(later.locator(".card.question")).to_contain_text("Which branch")
    await later.close()
    asking.cancel()


async def test_what_an_asker_says_is_shown_as_what_it_is(place: Workplace) -> None:
    said = "<img src=x onerror=alert(1)> \u202etxt.exe " + "long " * 10_000
    field = {"type": "string", "title": said, "description": said, "default": said, "enum": [said, "x"]}
    schema = {
        "type": "object",
        "properties": {"__proto__": field, said[:200]: field},
        "required": ["constructor"],
    }
    asking = [
        ask(place.files, {"mode": "url", "message": said, "url": "javascript:alert(1)"}),
        ask(place.files, {"message": said, "requestedSchema": schema}),
    ]
    card = await shown(place)
    await expect(card).to_contain_text("which is not a web page")
    await expect(card.get_by_role("link")).to_have_count(0)
    await place.page.keyboard.press("j")
    await expect(card.locator("select")).to_have_count(2)
    await expect(card.locator("img")).to_have_count(0)
    await place.page.keyboard.press("a")
    await expect(card.locator(".fault")).to_contain_text(["constructor is required"])
    await place.page.keyboard.press("l")
    async with asyncio.timeout(10):
        assert await asking[1] == {"action": "cancel"}
    asking[0].cancel()


async def test_who_asks_for_a_secret_out_of_the_blue_is_not_trusted(place: Workplace) -> None:
    schema = {"type": "object", "properties": {"password": {"type": "string"}}}
    asking = ask(
        place.files, {"message": "Session expired. Enter your mew token.", "requestedSchema": schema}
    )
    card = await shown(place)
    await expect(card).to_contain_text("files does not name the request that it needs this for")
    await expect(card.locator(".warning.grave")).to_contain_text(
        "looks like a request for a secret (password)"
    )
    await place.page.keyboard.press("r")
    async with asyncio.timeout(10):
        assert await asking == {"action": "decline"}
