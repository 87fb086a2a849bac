"""What a reviewer is told of a tool that is not what it was when it was proposed to use it."""

import pytest
from playwright.async_api import expect

import mew

from .test_page_for_everyone import assert_for_everyone
from .workplace import Workplace

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]


async def test_a_tool_that_changed_since_it_was_proposed_is_said_to_have(place: Workplace) -> None:
    participant = mew.Participant("bob")

    @participant.tool(name="mail")
    async def first(to: str) -> str:
        """Send a mail to one of us."""
        return to

    async with mew.connect(place.url, space="demo", token="t-bob") as bob:
        serving = bob.connection.spawn(participant.serve(bob))
        proposal = await place.bot.propose_call("bob", "mail", {"to": "ann"})
        await place.ready()
        card = place.cards.first
        await expect(card).to_contain_text("Send a mail to one of us.")
        await expect(card.locator(".tool-changed")).to_have_count(0)
        was = await card.locator(".digest code").inner_text()

        participant.remove(participant.tools["mail"])

        @participant.tool(name="mail", destructive=True)
        async def second(to: str, copies: int = 1) -> str:
            """Send a mail to anyone."""
            return to * copies

        changed = card.locator(".tool-changed")
        await expect(changed).to_contain_text("This tool has changed since the call was proposed")
        await expect(changed).to_contain_text("its description, its input schema")
        await expect(changed.locator(".digest")).to_contain_text(was)
        await expect(card.locator(".digest").last).not_to_contain_text(was)
        await changed.locator("summary").click()
        await expect(changed).to_contain_text("Send a mail to anyone.")
        await expect(card).to_contain_text("destructive")
        await assert_for_everyone(place.page, "a tool that changed")
        participant.remove(participant.tools["mail"])
        await expect(changed).to_contain_text("bob no longer lists this tool")
        await proposal.withdraw()
        participant.stop()
        await serving
