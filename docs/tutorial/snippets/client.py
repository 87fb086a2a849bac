import asyncio
from pathlib import Path

import mew


async def main() -> None:
    async with mew.connect("ws://127.0.0.1:8080", space="demo", token=Path(".mew/tokens/ann.token")) as me:
        await me.chat("hello")  # returns when the gateway has accepted it
        print(await me.call("bot", "add", {"a": 2, "b": 3}))  # by a proposal, if I may not ask


asyncio.run(main())
