"""A proposer that waits as long as it makes sense, and says what became of it."""

import asyncio
from collections.abc import Sequence

import mew
from mew.testing import Space

shop = mew.Participant("shop")


@shop.tool
async def order(item: str) -> str:
    """Order something."""
    return f"{item} ordered"


async def propose(
    me: mew.Client,
    item: str,
    strategy: mew.Strategy = mew.Strategy.FIRST_REJECT,
    reviewers: str | Sequence[str] = (),
    timeout_s: float = 300,
) -> str:
    proposal = await me.propose_call(
        "shop", "order", {"item": item}, strategy=strategy, reviewers=reviewers, timeout_s=timeout_s
    )
    outcome = await proposal
    match outcome:
        case mew.Fulfilled(by=by, edited=edited):
            return f"{await proposal.value()}, {'changed' if edited else 'approved'} by {by}"
        case mew.Rejected(by=by, reason=reason):
            return f"rejected by {by}: {reason}"
        case mew.Withdrawn(reason=reason):
            return f"withdrawn: {reason}"
        case mew.TimedOut(approved_by=None):
            return "nobody took it up"
        case mew.TimedOut(approved_by=by):
            return f"approved by {by}, and no answer came: it may have been done"


async def approve(me: mew.Client) -> None:
    async for proposal in me.proposals():
        await proposal.approve()


async def reject(me: mew.Client) -> None:
    async for proposal in me.proposals():
        await proposal.reject("unsafe")


async def main() -> None:
    who = {"ann": ["*"], "bob": ["*"], "shop": [], "bot": ["mcp/proposal", "mcp/withdraw"]}
    async with Space(who) as space, space.connect("bot") as bot:
        assert await propose(bot, "ink", timeout_s=0.05) == "nobody took it up"
        async with (
            asyncio.TaskGroup() as tasks,
            space.serving(shop, "shop"),
            space.connect("ann") as ann,
            space.connect("bob") as bob,
        ):
            tasks.create_task(reject(ann))
            assert await propose(bot, "ink") == "rejected by ann: unsafe"

            waiting = tasks.create_task(propose(bot, "ink", mew.Strategy.RESILIENT))
            async for rejected in bob.envelopes("mcp/reject"):
                await bob.review(rejected.correlation_id[0]).approve()
                break
            assert await waiting == "ink ordered, approved by bob"

            tasks.create_task(approve(bob))
            done = await propose(bot, "pens", mew.Strategy.EXCLUSIVE, reviewers="bob")
            assert done == "pens ordered, approved by bob"


if __name__ == "__main__":
    asyncio.run(main())
