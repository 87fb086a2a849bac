"""Ann asks the calculator."""

import asyncio
from pathlib import Path

import mew


async def main() -> None:
    async with mew.connect("ws://127.0.0.1:8080", space="demo", token=Path(".mew/tokens/ann.token")) as me:
        for tool in await me.tools("calculator"):
            print(tool.name, "-", tool.description)
        print("2 + 3 =", await me.call("calculator", "add", {"a": 2, "b": 3}))
        await me.chat("The calculator works.")


asyncio.run(main())
