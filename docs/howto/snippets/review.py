"""A reviewer who approves, edits, rejects and delegates."""

import asyncio

import mew
from mew.testing import Space

shop = mew.Participant("shop")
LIMIT = 100
MAY_ORDER_INK = {
    "kind": "mcp/request",
    "to": "shop",
    "payload": {"method": "tools/call", "params": {"name": "order", "arguments": {"item": "ink"}}},
}


@shop.tool(destructive=True)
async def order(item: str, pieces: int) -> str:
    """Order something."""
    return f"{pieces} x {item} ordered"


async def review(me: mew.Client) -> None:
    await me.tools("shop")  # its schema is known from the first proposal on: shown, and edits are checked
    async for proposal in me.proposals():
        print(proposal.preview())
        try:
            await decide(me, proposal)
        except mew.MewError as error:  # withdrawn, decided by somebody else, or it was done and failed
            print("not done:", error)


async def decide(me: mew.Client, proposal: mew.Review) -> None:
    match proposal.arguments:
        case _ if proposal.tool != "order" or proposal.changed:
            await proposal.reject("unsafe", "I do not know this tool, or it is not what it was.")
        case {"item": "pony"}:
            await proposal.reject("disagree", "No ponies.")
        case {"pieces": int(pieces)} if pieces > LIMIT:
            await proposal.approve({**proposal.arguments, "pieces": LIMIT})
        case {"item": "ink"}:
            await proposal.approve()
            await me.grant(proposal.proposer, MAY_ORDER_INK, reason="approved before", ttl_s=3600)
        case _:
            await proposal.approve()


async def main() -> None:
    who = {"ann": ["*"], "shop": [], "bot": ["mcp/proposal", "mcp/withdraw"]}
    async with Space(who) as space, space.serving(shop, "shop"), space.connect("bot") as bot:
        waiting = await bot.propose_call("shop", "order", {"item": "tea", "pieces": 1})
        async with asyncio.TaskGroup() as tasks, space.connect("ann", recall=1_000) as ann:
            tasks.create_task(review(ann))
            assert await waiting.value() == "1 x tea ordered"  # it was proposed before she came
            await propose(bot)
            assert len(ann.book) == 4  # the third of those was a request


async def propose(bot: mew.Client) -> None:
    assert await bot.call("shop", "order", {"item": "pens", "pieces": 500}) == "100 x pens ordered"
    assert await bot.call("shop", "order", {"item": "ink", "pieces": 2}) == "2 x ink ordered"
    call = {"method": "tools/call", "params": {"name": "order", "arguments": {"item": "ink", "pieces": 3}}}
    while not bot.can_send("mcp/request", call, to="shop"):
        await anext(bot.envelopes("system/welcome"))
    assert await bot.call("shop", "order", {"item": "ink", "pieces": 3}) == "3 x ink ordered"
    outcome = await (await bot.propose_call("shop", "order", {"item": "pony", "pieces": 1}))
    assert isinstance(outcome, mew.Rejected)
    assert outcome.reason == "disagree"


if __name__ == "__main__":
    asyncio.run(main())
