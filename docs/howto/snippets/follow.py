"""A proposer that is started again while its proposal waits."""

import asyncio

import mew
from mew.testing import Space

shop = mew.Participant("shop")
DAY_S = 24 * 60 * 60


@shop.tool
async def order(item: str) -> str:
    """Order something."""
    return f"{item} ordered"


async def propose(me: mew.Client) -> str:
    proposal = await me.propose_call("shop", "order", {"item": "ink"}, timeout_s=DAY_S)
    return proposal.id  # all that has to be kept


async def follow(me: mew.Client, proposal_id: str) -> str:
    proposal = await me.proposal(proposal_id)
    async for stage in proposal.stages():
        print(stage)  # waiting for approval; approved by ann, running; approved by ann, answered by shop
    return str(await proposal.value())


async def main() -> None:
    who = {"ann": ["*"], "shop": [], "bot": ["mcp/proposal", "mcp/withdraw"]}
    async with Space(who) as space, space.serving(shop, "shop"), space.connect("ann") as ann:
        async with space.connect("bot") as bot:
            proposal_id = await propose(bot)
        async with space.connect("bot") as bot, asyncio.TaskGroup() as tasks:
            following = tasks.create_task(follow(bot, proposal_id))
            await asyncio.sleep(0)
            await ann.review(proposal_id).approve()
            assert await following == "ink ordered"


if __name__ == "__main__":
    asyncio.run(main())
