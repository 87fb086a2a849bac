"""Inviting somebody on the page: a link that lets them in, once, and is shown once."""

import re

import pytest
from playwright.async_api import Browser, expect

import mew

from .test_page_for_everyone import assert_for_everyone
from .workplace import Workplace

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]


async def test_a_link_lets_the_invited_in_once_and_is_shown_once(place: Workplace, browser: Browser) -> None:
    page = place.page
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await page.get_by_role("button", name="Invite…").click()
    dialog = page.locator("dialog")
    await dialog.get_by_label("Participant id").fill("carol")
    await page.keyboard.press("Enter")
    field = dialog.get_by_label("Sign-in link", exact=True)
    await expect(field).to_be_focused()
    await expect(dialog).to_contain_text("works once and expires in 24 h")
    await expect(dialog).to_contain_text("does not work on another one")
    link = await field.input_value()
    assert link.startswith(f"{place.url}/#link=")
    await dialog.get_by_role("button", name="Copy: Sign-in link").click()
    await expect(dialog.get_by_role("button", name="Copied: Sign-in link")).to_be_visible()
    assert await page.evaluate("navigator.clipboard.readText()") == link
    await assert_for_everyone(page, "invited")
    token = await dialog.get_by_label("Token", exact=True).input_value()
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
    await page.get_by_role("button", name="Invite…").click()
    shown = await page.content()
    assert link not in shown
    assert token not in shown
    assert not [url for url in place.asked if link.rpartition("=")[2] in url]

    theirs = await browser.new_page()
    await theirs.goto(link)
    await theirs.wait_for_selector("[data-state=live]")
    assert theirs.url == f"{place.url}/"
    await theirs.fill("#say", "thank you")
    await theirs.keyboard.press("Enter")
    await page.keyboard.press("Escape")
    await expect(place.row("thank you")).to_contain_text("carol")
    late = await browser.new_page()
    await late.goto(link)
    await late.wait_for_selector("text=has been used or has expired")
    await late.close()
    await theirs.close()
    async with mew.connect(place.url, space="demo", token=token) as program:
        await program.chat("the token is good, too")
    await expect(place.row("the token is good, too")).to_be_visible()


async def test_a_link_that_was_not_copied_is_not_lost_by_a_slip_of_the_hand(place: Workplace) -> None:
    page = place.page
    await page.get_by_role("button", name="Invite…").click()
    dialog = page.locator("dialog")
    await dialog.get_by_label("Participant id").fill("dave")
    await page.keyboard.press("Enter")
    link = dialog.get_by_label("Sign-in link", exact=True)
    await expect(link).to_be_focused()
    for _ in range(3):  # the first asks, the next takes the question back
        await page.keyboard.press("Escape")
    await expect(dialog).to_contain_text("You have not copied")
    await expect(link).to_have_value(re.compile("#link="))
    await dialog.get_by_role("button", name="Close anyway").click()
    await expect(dialog).to_have_count(0)
    await page.get_by_role("button", name="Invite…").click()
    await dialog.get_by_label("Participant id").fill("dave")
    await expect(dialog).to_contain_text(
        "For a new link, choose “Remove…” for that participant and invite again"
    )
    await page.keyboard.press("Escape")
