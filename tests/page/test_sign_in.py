"""Signing in on the page, and staying connected, in a real browser."""

import logging
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect
from tests.gateway.auth.test_links import code_of
from tests.gateway.served import SPACE_YAML, Caller, Serve, Served

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]

LIVE = "[data-state=live]"


class Visit:
    """A browser's page, and all that went wrong in it or left it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.errors: list[str] = []
        self.asked: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda said: self.errors.append(said.text) if "Policy" in said.text else None)
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("websocket", lambda socket: self.asked.append(socket.url))


@pytest_asyncio.fixture(loop_scope="session")
async def visit(browser: Browser) -> AsyncIterator[Visit]:
    context = await browser.new_context(viewport={"width": 390, "height": 800})
    context.set_default_timeout(5000)
    visit = Visit(await context.new_page())
    yield visit
    await context.close()
    assert not visit.errors


async def link_of(served: Served, caller: Caller) -> str:
    return f"{served.gateway.url}/#link={await code_of(caller)}"


async def test_a_link_signs_in_and_leaves_no_trace_in_the_address(
    served: Served, visit: Visit, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    link = await link_of(served, served.bot)
    await visit.page.goto(link)
    await visit.page.wait_for_selector(LIVE)
    assert visit.page.url == served.gateway.url + "/"
    assert "token" not in await visit.page.evaluate("JSON.stringify(localStorage)")
    code = link.partition("=")[2]
    assert not [url for url in visit.asked if code in url.partition("#")[0] or "bearer" in url]
    assert all(url.replace("ws:", "http:").startswith(served.gateway.url) for url in visit.asked)
    assert code not in caplog.text
    await expect(visit.page.locator("body")).to_contain_text("bot")


async def test_a_link_that_was_used_is_said_to_be(served: Served, visit: Visit, browser: Browser) -> None:
    link = await link_of(served, served.ann)
    await visit.page.goto(link)
    await visit.page.wait_for_selector(LIVE)
    other = await browser.new_page()
    await other.goto(link)
    await other.wait_for_selector("text=has been used or has expired")
    await other.close()


async def test_a_token_is_kept_in_the_browser_only_when_that_is_asked_for(
    served: Served, visit: Visit
) -> None:
    page = visit.page
    await page.goto(served.gateway.url)
    await page.fill("#token", "t-ann")
    await page.keyboard.press("Enter")
    await page.wait_for_selector(LIVE)
    await page.reload()
    await page.wait_for_selector("#token")
    await page.fill("#token", "t-ann")
    await page.check("[name=keep]")
    await page.keyboard.press("Enter")
    await page.wait_for_selector(LIVE)
    await page.reload()
    await page.wait_for_selector(LIVE)
    assert not [url for url in visit.asked if "t-ann" in url]


async def test_a_wrong_token_is_said_to_be_wrong(served: Served, visit: Visit) -> None:
    await visit.page.goto(served.gateway.url)
    await visit.page.fill("#token", "guessed")
    await visit.page.keyboard.press("Enter")
    await visit.page.wait_for_selector("text=This token is not valid for any space")


async def test_who_may_enter_several_spaces_chooses(serve: Serve, visit: Visit) -> None:
    both = "participants: {ann: {tokens: [t-ann], capabilities: ['*']}}"
    served = await serve(f"spaces:\n  - {{id: one, {both}}}\n  - {{id: two, {both}}}\nserver: {{port: 0}}\n")
    await visit.page.goto(served.gateway.url)
    await visit.page.fill("#token", "t-ann")
    await visit.page.keyboard.press("Enter")
    await visit.page.get_by_role("button", name="two").click()
    await visit.page.wait_for_selector(LIVE)
    await expect(visit.page.locator("body")).to_contain_text("two")


async def test_what_was_missed_while_the_gateway_was_away_is_brought(serve: Serve, visit: Visit) -> None:
    before = await serve()
    await visit.page.goto(await link_of(before, before.ann))
    await visit.page.wait_for_selector(LIVE)
    await before.stop()
    await visit.page.wait_for_selector("[data-state=waiting]")
    after = await serve()
    await after.bot.say(payload={"text": "while you were away"})
    await expect(visit.page.locator("body")).to_contain_text("while you were away", timeout=20_000)
    await visit.page.wait_for_selector(LIVE)
    await after.bot.say(payload={"text": "and now"})
    await expect(visit.page.locator("body")).to_contain_text("and now")


async def test_who_is_removed_is_told_and_does_not_come_back(served: Served, visit: Visit) -> None:
    await visit.page.goto(await link_of(served, served.bot))
    await visit.page.wait_for_selector(LIVE)
    await served.ann.say("space/kick", payload={"participant_id": "bot"})
    await visit.page.wait_for_selector("text=removed from the space")
    await visit.page.wait_for_selector("#token")


async def test_a_token_that_died_while_the_gateway_was_away_is_said_to_be_dead(
    serve: Serve, visit: Visit
) -> None:
    before = await serve()
    await visit.page.goto(await link_of(before, before.bot))
    await visit.page.wait_for_selector(LIVE)
    await before.stop()
    await serve(SPACE_YAML.replace("t-bot", "another"))
    await visit.page.wait_for_selector("#token", timeout=20_000)


async def test_nobody_becomes_another_by_following_a_link(served: Served, visit: Visit) -> None:
    page = visit.page
    await page.goto(await link_of(served, served.ann))
    await page.wait_for_selector(LIVE)
    await page.goto(await link_of(served, served.eve))  # only the fragment differs: the page stays
    await page.wait_for_selector("text=different participant")
    assert page.url == served.gateway.url + "/"
    await page.get_by_role("button", name="Stay signed in as ann").click()
    await page.wait_for_selector(LIVE)
    await expect(page.locator("body")).to_contain_text("ann")


async def test_who_came_by_a_link_may_stay_signed_in(served: Served, visit: Visit) -> None:
    page = visit.page
    await page.set_viewport_size({"width": 1280, "height": 800})
    await page.goto(await link_of(served, served.ann))
    await page.wait_for_selector(LIVE)
    await page.get_by_role("button", name="Stay signed in").click()
    later = await page.context.new_page()
    await later.goto(served.gateway.url)
    await later.wait_for_selector(LIVE)
    await page.get_by_role("button", name="Staying signed in").click()
    await later.goto(served.gateway.url)
    await later.wait_for_selector("#token")


async def test_who_came_by_a_link_is_still_in_after_a_reload_until_the_tab_is_closed(
    served: Served, visit: Visit
) -> None:
    page = visit.page
    await page.goto(await link_of(served, served.ann))
    await page.wait_for_selector(LIVE)
    await page.reload()
    await page.wait_for_selector(LIVE)
    assert page.url == served.gateway.url + "/"
    assert await page.evaluate("localStorage.getItem('mew.signed-in')") is None
    other = await page.context.new_page()
    await other.goto(served.gateway.url)
    await other.wait_for_selector("#token")
    await expect(other.locator("body")).to_contain_text("ask for a new one")
    await page.get_by_role("button", name="Sign out").click()
    await page.wait_for_selector("#token")
    await page.reload()
    await page.wait_for_selector("#token")
    assert await page.evaluate("sessionStorage.length") == 0


async def test_signing_out_ends_the_session(served: Served, visit: Visit) -> None:
    await visit.page.goto(await link_of(served, served.ann))
    await visit.page.wait_for_selector(LIVE)
    async with visit.page.expect_response("**/sessions/end") as ended:
        await visit.page.get_by_role("button", name="Sign out").click()
    assert (await ended.value).status == 200
    await visit.page.wait_for_selector("#token")


async def test_what_is_no_longer_in_memory_is_brought_from_the_journal_each_once_and_in_order(
    serve: Serve, visit: Visit
) -> None:
    short = SPACE_YAML + "limits: {history_envelopes: 4}\n"
    before = await serve(short)
    await visit.page.set_viewport_size({"width": 1280, "height": 3000})  # tall enough for all rows
    await visit.page.clock.install()
    await visit.page.goto(await link_of(before, before.ann))
    await visit.page.wait_for_selector(LIVE)
    await before.stop()
    await visit.page.wait_for_selector("[data-state=waiting]")
    await visit.page.clock.pause_at(datetime.now(UTC) + timedelta(minutes=1))
    # Over the same journal on a port that the page does not know: it cannot reconnect before all were sent.
    unknown = await serve(short, on_another_port=True)
    for number in range(12):
        await unknown.bot.say(payload={"text": f"missed-{number:02}"})
    await unknown.stop()
    await serve(short)
    await visit.page.clock.resume()
    await expect(visit.page.locator("body")).to_contain_text("missed-11", timeout=20_000)
    await visit.page.wait_for_selector(LIVE)
    shown = re.findall(r"missed-\d\d", await visit.page.text_content("body") or "")
    assert shown == [f"missed-{number:02}" for number in range(12)]
    assert [url for url in visit.asked if "/envelopes?after=" in url]
