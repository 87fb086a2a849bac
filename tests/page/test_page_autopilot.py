"""The autopilot on the page: why it asks, the ladder of rules, the list of rules, objections and the dial."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, expect
from tests.gateway.served import Serve

import mew
from mew.autopilot.participant import AutopilotParticipant
from mew.autopilot.settings import AutopilotSettings, Mode
from mew.client.errors import Disconnected

from .test_page_for_everyone import assert_dialog, assert_for_everyone
from .workplace import SPACE, Workplace, work

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]

SETTINGS: Final = AutopilotSettings(mode=Mode.SUGGEST, min_review_s=0, audit=0)
WITH_AUTOPILOT: Final = SPACE.replace(
    "server:",
    '  autopilot: {tokens: [t-auto], capabilities: ["mcp/request:tools/call:*", "autopilot/*"]}\nserver:',
)


@asynccontextmanager
async def autopilot(url: str) -> AsyncIterator[None]:
    async with mew.connect(url, space="demo", token="t-auto") as client:
        running = AutopilotParticipant(client, SETTINGS, seed="seed")

        async def run() -> None:
            with suppress(Disconnected):
                await running.run()

        client.connection.spawn(run())
        await asyncio.wait_for(running.ready.wait(), 20)
        yield


@pytest_asyncio.fixture(loop_scope="session")
async def guided(serve: Serve, browser: Browser) -> AsyncIterator[Workplace]:
    """Everyone at work, an autopilot among them."""
    served = await serve(WITH_AUTOPILOT)
    async with autopilot(served.gateway.url), work(served.gateway.url, browser) as place:
        yield place


def rule(place: Workplace) -> Locator:
    return place.page.locator(".rule")


async def ratify(place: Workplace, number: int = 0) -> None:
    """Approve a proposal and choose the rule with this number of the ladder, for as long as nobody revokes it."""
    page = place.page
    await place.propose(path="docs/plan.md")
    await page.get_by_role("button", name="Approve and don't ask again").click()
    await page.locator(".rung input").nth(number).check()
    await page.locator(".terms select").select_option("revoked")
    await page.get_by_role("button", name="Approve and don't ask again", exact=True).last.click()
    await expect(page.locator(".notice", has_text="The rule is active")).to_be_visible()


async def test_a_newcomer_finds_dont_ask_again_and_the_rule_and_revokes_it(guided: Workplace) -> None:
    page = guided.page
    await ratify(guided)
    assert guided.written == {"docs/plan.md": "# Plan\n\n- rest\n"}
    await guided.bot.propose_call(
        "files", "write_file", {"path": "docs/plan.md", "content": "# Plan\n\n- rest\n"}
    )
    await expect(page.locator(".row .automatic-chip")).to_contain_text("decided by the autopilot, rule r")
    await page.locator(".view-autopilot").click()
    await expect(rule(guided)).to_contain_text("with exactly")
    await expect(rule(guided)).to_contain_text("accepted by ann")
    await expect(rule(guided)).to_contain_text("Used once")
    await rule(guided).get_by_role("button", name="Revoke").click()
    await expect(rule(guided).locator(".chip")).to_have_text("revoked")
    await guided.propose(path="docs/plan.md")
    await expect(page.locator(".card .asked-because")).to_contain_text("You are asked because")


async def test_the_ladder_has_three_to_five_rules_with_an_end_and_a_number_of_calls(
    guided: Workplace,
) -> None:
    page = guided.page
    await guided.propose(path="docs/plan.md")
    await page.keyboard.press("Shift+A")
    ladder = page.locator("dialog .rung")
    assert 3 <= await ladder.count() <= 5
    await expect(ladder.first).to_contain_text("This exact call")
    await expect(ladder.first).to_contain_text("Nobody has decided about such a call yet")
    await expect(page.locator("dialog .bound-note")).to_contain_text("proposals as they come")
    await expect(page.locator("dialog .bound-note")).to_contain_text("does not cover a proposer who chooses")
    ends = await page.locator(".terms option").all_inner_texts()
    assert ends == ["for 1 hour", "until the end of today", "for 7 days", "until someone revokes it"]
    await page.get_by_label("At most this many calls").fill("0")
    await expect(page.get_by_role("alert")).to_contain_text("whole number")
    await page.get_by_label("At most this many calls").fill("3")
    await ladder.last.locator("input").check()
    await page.locator("dialog button[type=submit]").click()
    await expect(page.locator(".undo-line")).to_contain_text("and adding a rule")
    await expect(page.locator(".notice", has_text="The rule is active")).to_be_visible()
    await page.keyboard.press("4")
    await expect(rule(guided)).to_contain_text("3 calls left")


async def test_an_undone_approval_ratifies_nothing(guided: Workplace) -> None:
    page = guided.page
    await guided.propose(path="docs/plan.md")
    await page.keyboard.press("Shift+A")
    await page.locator("dialog button[type=submit]").click()
    await page.keyboard.press("u")
    await guided.ready()
    await page.keyboard.press("a")
    await expect(guided.row("wrote")).to_be_visible()
    assert guided.written
    await page.keyboard.press("4")
    await expect(page.locator(".rules")).to_contain_text("No rules yet")


async def test_an_objection_demotes_the_rule_that_decided(guided: Workplace) -> None:
    page = guided.page
    await ratify(guided, 1)
    done = await guided.bot.propose_call(
        "files", "write_file", {"path": "docs/plan.md", "content": "# Other\n\n- rest\n"}
    )
    await done
    row = page.locator(f".row[data-envelope='{done.id}']")
    await expect(row.locator(".chip").first).to_have_text("fulfilled, autopilot")
    await row.get_by_role("button", name="chain").click()
    await expect(page.locator("dialog .automatic-chip")).to_be_visible()
    await page.keyboard.press("Escape")
    await row.get_by_role("button", name="This should have been asked").click()
    await expect(row).to_contain_text("objected: this should have been asked")
    await page.keyboard.press("4")
    await expect(rule(guided).locator(".chip")).to_have_text("demoted")


async def test_a_suggestion_is_accepted_paused_and_activated_again(guided: Workplace) -> None:
    page = guided.page
    for number in range(11):
        path = f"docs/part{number}.md"
        proposal = await guided.bot.propose_call("files", "write_file", {"path": path, "content": "text"})
        card = page.locator(f".card[data-proposal='{proposal.id}']")
        await card.get_by_role("button", name="Approve a", exact=True).click()
        await proposal
    await expect(page.locator(".view-autopilot .count")).to_have_text("1")
    await page.keyboard.press("4")
    await expect(rule(guided)).to_contain_text("approved, 0 rejected")
    await rule(guided).get_by_role("button", name="Accept…").click()
    await page.get_by_role("button", name="Activate", exact=True).click()
    await expect(rule(guided).locator(".chip")).to_have_text("active")
    await rule(guided).locator("summary").click()
    await expect(rule(guided).get_by_role("img").first).to_have_attribute(
        "aria-label", re.compile(r"\d+ approved by people, 0 rejected, 0 decided by the autopilot")
    )
    await expect(rule(guided).locator(".rule-states")).to_contain_text("suggested")
    await rule(guided).get_by_role("button", name="Pause").click()
    await expect(rule(guided).locator(".chip")).to_have_text("paused")
    await rule(guided).get_by_role("button", name="Activate again…").click()
    await page.get_by_role("button", name="Activate", exact=True).click()
    await expect(rule(guided).locator(".chip")).to_have_text("active")


async def test_the_dial_shows_what_the_autopilot_says_and_turns_it(guided: Workplace) -> None:
    page = guided.page
    await page.keyboard.press("4")
    await expect(page.get_by_label("suggest", exact=True)).to_be_checked()
    await page.get_by_label("shadow", exact=True).click()
    await expect(page.get_by_label("shadow", exact=True)).to_be_checked()
    await expect(page.locator(".dial")).to_contain_text("The settings say suggest.")
    await expect(page.locator(".figures")).to_contain_text("decided alone")


async def test_a_space_without_an_autopilot_says_how_to_start_one(place: Workplace) -> None:
    page = place.page
    await place.propose()
    await expect(page.get_by_role("button", name="Approve and don't ask again")).to_have_count(0)
    await page.keyboard.press("4")
    await expect(page.locator(".autopilot-pane")).to_contain_text("autopilot:")
    await assert_for_everyone(page, "no autopilot")


async def test_the_autopilot_is_for_everyone(guided: Workplace) -> None:
    page = guided.page
    await ratify(guided, 1)
    await guided.bot.propose_call(
        "files", "write_file", {"path": "docs/plan.md", "content": "# A\n\n- rest\n"}
    )
    await expect(page.locator(".row .automatic-chip")).to_be_visible()
    await assert_for_everyone(page, "an automatic decision")
    await guided.propose(path="other/plan.md")
    await assert_for_everyone(page, "why it asks")
    await page.keyboard.press("Shift+A")
    await assert_dialog(page, "ladder")
    await page.keyboard.press("4")
    await rule(guided).locator("summary").click()
    await assert_for_everyone(page, "rules")
