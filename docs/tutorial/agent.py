"""An agent that may add, and only propose to store."""

import asyncio
from pathlib import Path

import mew


async def main() -> None:
    async with mew.connect("ws://127.0.0.1:8080", space="demo", token=Path(".mew/tokens/agent.token")) as me:
        total = await me.call("calculator", "add", {"a": 2, "b": 3})  # it may: a request
        print("2 + 3 =", total, flush=True)
        try:
            print(await me.call("calculator", "store", {"value": total}))  # it may not: a proposal
        except mew.NotFulfilled as no:
            print("not stored:", no)


asyncio.run(main())
