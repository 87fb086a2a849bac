"""A reviewer who approves, edits, rejects and delegates."""

import asyncio
from typing import Any

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
    await me.tools("shop")  # now its schema is known: it is shown, and edits are checked against it
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
    async with (
        Space({"ann": ["*"], "shop": [], "bot": ["mcp/proposal", "mcp/withdraw"]}) as space,
        asyncio.TaskGroup() as tasks,
        space.connect("shop") as there,
        space.connect("ann") as ann,
        space.connect("bot") as bot,
    ):
        tasks.create_task(shop.serve(there))
        tasks.create_task(review(ann))

        assert await bot.call("shop", "order", item="pens", pieces=500) == "100 x pens ordered"
        assert await bot.call("shop", "order", item="ink", pieces=2) == "2 x ink ordered"
        while not bot.can_send("mcp/request", call(item="ink", pieces=3), to="shop"):
            await anext(bot.envelopes("system/welcome"))
        assert await bot.call("shop", "order", item="ink", pieces=3) == "3 x ink ordered"
        assert len(ann.book) == 2  # the third was a request
        params = call(item="pony", pieces=1)["params"]
        outcome = await (await bot.propose("tools/call", params, target="shop"))
        assert isinstance(outcome, mew.Rejected)
        assert outcome.reason == "disagree"


def call(**arguments: object) -> dict[str, Any]:
    return {"method": "tools/call", "params": {"name": "order", "arguments": arguments}}


if __name__ == "__main__":
    asyncio.run(main())
