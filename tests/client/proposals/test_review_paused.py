"""A reviewer who is paused: what it approved is sent after that only where it is still to be decided."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.client.ear import Ear, settled

from mew.client.client import Client
from mew.client.errors import AlreadyDecided
from mew.client.participant.participant import Participant
from mew.client.proposals.proposer import Proposal
from mew.client.proposals.review import Review
from mew.protocol.kinds import Kind
from mew.testing import Space

WHO: dict[str, list[Any]] = {
    "ann": ["*"],
    "bob": ["*"],
    "bot": ["chat", "mcp/proposal", "mcp/withdraw"],
    "shop": [],
}


@asynccontextmanager
async def pausing() -> AsyncIterator[tuple[Client, Proposal, Review, "asyncio.Future[Any]"]]:
    """Ann has approved while bob pauses her."""
    shop = Participant("shop")
    shop.tool(name="order")(_sold)
    async with (
        asyncio.timeout(5),
        Space(WHO) as space,
        space.serving(shop, "shop"),
        space.connect("bot") as bot,
        space.connect("bob") as bob,
        space.connect("ann") as ann,
    ):
        await ann.tools("shop")
        proposal = await bot.propose_call("shop", "order")
        review = await anext(ann.proposals())
        await bob.control.pause("ann", timeout_s=60)
        await settled(bob.connection)
        assert ann.paused
        approving = asyncio.ensure_future(review.approve())
        await asyncio.sleep(0)
        yield bob, proposal, review, approving
        await bob.control.resume("ann")
        ear = Ear(bob.connection)
        await settled(ann.connection)
        assert not [one for one in ear.all(Kind.MCP_REQUEST) if one.sender == "ann"]


async def _sold() -> str:
    return "sold"


async def test_an_approval_that_waits_is_not_sent_once_the_proposal_is_withdrawn() -> None:
    async with pausing() as (_, proposal, review, approving):
        await proposal.withdraw("changed my mind")
        with pytest.raises(AlreadyDecided, match="was withdrawn by bot"):
            await approving
        assert not review.open


async def test_an_approval_that_waits_is_not_sent_once_another_has_approved() -> None:
    async with pausing() as (bob, proposal, _, approving):
        assert await bob.review(proposal.id).approve() == "sold"
        with pytest.raises(AlreadyDecided, match="was approved by bob"):
            await approving


async def test_an_approval_that_waits_is_sent_in_the_end_where_nothing_changed() -> None:
    shop = Participant("shop")
    shop.tool(name="order")(_sold)
    async with (
        asyncio.timeout(5),
        Space(WHO) as space,
        space.serving(shop, "shop"),
        space.connect("bot") as bot,
        space.connect("bob") as bob,
        space.connect("ann") as ann,
    ):
        proposal = await bot.propose_call("shop", "order")
        review = await anext(ann.proposals())
        await bob.control.pause("ann", timeout_s=60)
        approving = asyncio.ensure_future(review.approve())
        await settled(bob.connection)
        await bob.control.resume("ann")
        assert await approving == await proposal.value() == "sold"
