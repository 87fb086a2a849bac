"""Every dialog and state of the page for everyone (WCAG AA): in light and dark, on a wide screen and on a phone."""

from typing import Final

import pytest
from playwright.async_api import Page, ViewportSize, expect

from .axe import faults
from .workplace import Workplace

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]

WIDE: Final = ViewportSize(width=1440, height=900)
PHONE: Final = ViewportSize(width=390, height=844)
PEOPLE: Final = ("Grant…", "Revoke…", "Pause…", "Forget…", "Shut down…", "Remove…")


async def assert_for_everyone(page: Page, name: str) -> None:
    """As it stands, in both colours and both sizes; nothing is wider than the screen."""
    found: dict[str, list[str]] = {}
    for size in (WIDE, PHONE):
        await page.set_viewport_size(size)
        await page.emulate_media(color_scheme="light", reduced_motion="reduce")
        found[f"{name}, light, {size['width']}"] = await faults(page)
        await page.emulate_media(color_scheme="dark")
        found[f"{name}, dark, {size['width']}"] = await faults(page, only="color-contrast")
        assert await page.evaluate("document.documentElement.scrollWidth") <= size["width"], name
    await page.set_viewport_size(WIDE)
    assert not any(found.values()), {where: what for where, what in found.items() if what}


async def assert_dialog(page: Page, name: str) -> None:
    """The dialog that is open, which has the focus and closes with Escape."""
    await expect(page.locator("dialog")).to_be_visible()
    assert await page.evaluate("document.activeElement.closest('dialog') !== null"), name
    await assert_for_everyone(page, name)
    await page.keyboard.press("Escape")
    await expect(page.locator("dialog")).to_have_count(0)


async def test_the_dialogs_about_a_proposal_are_for_everyone(place: Workplace) -> None:
    page = place.page
    proposal = await place.propose()
    await assert_for_everyone(page, "a proposal")
    for key, name in (
        ("?", "keys"),
        ("e", "edit"),
        ("r", "reject"),
        ("g", "chain"),
        ("v", "raw"),
        ("h", "history"),
    ):
        await page.keyboard.press(key)
        await assert_dialog(page, name)
    await page.keyboard.press("x")
    await assert_for_everyone(page, "picked")
    await page.keyboard.press("a")
    await expect(page.locator(".undo-line")).to_be_visible()
    await assert_for_everyone(page, "undo")
    await proposal
    await expect(page.locator(".card")).to_contain_text("fulfilled")
    await assert_for_everyone(page, "decided")
    await page.keyboard.press("e")  # nothing is left to edit
    await page.keyboard.press("u")
    await expect(page.locator(".notice").last).to_be_visible()
    await assert_for_everyone(page, "a notice")


async def test_the_dialogs_about_a_participant_are_for_everyone(place: Workplace) -> None:
    page = place.page
    await place.bot.send("participant/status", {"messages_in_context": 9, "tokens": 7200, "max_tokens": 8000})
    proposal = await place.propose()
    await page.keyboard.press("4")
    await page.locator(".person summary", has_text="bot").click()
    await assert_for_everyone(page, "people")
    person = page.locator(".person", has=page.locator("summary", has_text="bot"))
    for button in PEOPLE:
        await person.get_by_role("button", name=button).click()
        await assert_dialog(page, button)
        await expect(person.get_by_role("button", name=button)).to_be_focused()
    await page.get_by_role("button", name="Invite…").click()
    await page.locator("dialog").get_by_label("Participant id").fill("no name?")
    await expect(page.locator("dialog .fault")).to_be_visible()
    await assert_for_everyone(page, "a fault")
    await page.locator("dialog").get_by_label("Participant id").fill("carol")
    await page.locator("dialog").get_by_role("button", name="Invite", exact=True).click()
    await expect(page.locator("dialog")).to_contain_text("carol is invited")
    await assert_for_everyone(page, "invited")
    await page.keyboard.press("Escape")
    await assert_for_everyone(page, "leaving without the link")
    await page.get_by_role("button", name="Close anyway").click()
    await expect(page.locator("dialog")).to_have_count(0)
    await proposal.withdraw()


async def test_the_other_states_are_for_everyone(place: Workplace) -> None:
    page = place.page
    await assert_for_everyone(page, "nothing waits")
    await place.bot.chat(
        "> quoted\n\n`code` and [a link](https://example.org)\n\n|a|b|\n|-|-|\n|1|2|", format="markdown"
    )
    await place.bot.chat("ann, please read this")
    async with place.bot.reasoning("Is it done?") as reasoning:
        await reasoning.thought("Not yet.")
        await page.locator(".reasoning summary").click()
        await page.locator(".acknowledging summary").click()
        await assert_for_everyone(page, "the stream")
    await page.keyboard.press("3")
    await expect(page.locator(".lanes .bar:focus")).to_have_count(1)
    await assert_for_everyone(page, "the timeline")
    await page.keyboard.press("/")
    await page.keyboard.type("nothing like it")
    await expect(page.locator(".stream-pane .empty")).to_be_visible()
    await assert_for_everyone(page, "nothing fits")
    for theme in ("Light", "Dark"):
        await page.locator("#filter-text").blur()
        await page.keyboard.press("d")
        await expect(page.get_by_role("button", name=theme)).to_be_visible()
        await assert_for_everyone(page, f"{theme} by choice")


async def test_on_a_phone_the_keys_are_listed_and_a_box_is_large_enough_for_a_finger(
    place: Workplace,
) -> None:
    page = place.page
    proposal = await place.propose()
    await page.set_viewport_size(PHONE)
    box = await page.locator(".card-head input").bounding_box()
    assert box is not None
    assert min(box["width"], box["height"]) >= 24
    await expect(page.locator(".deciding kbd").first).to_be_hidden()
    await page.get_by_role("button", name="keyboard shortcuts").click()
    await expect(page.locator("dialog kbd").first).to_be_visible()
    await page.keyboard.press("Escape")
    await proposal.withdraw()
