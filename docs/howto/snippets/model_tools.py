"""A language model uses the tools of a space. Here a few lines of Python stand for the model."""

import asyncio
import json
from typing import Any

import mew
from mew.testing import Space

shop = mew.Participant("shop")


@shop.tool
async def order(item: str, pieces: int) -> str:
    """Order something."""
    return f"{pieces} x {item} ordered"


def model(tools: list[dict[str, Any]]) -> dict[str, str]:
    assert [tool["function"]["name"] for tool in tools] == ["shop__order"]
    return {"name": "shop__order", "arguments": json.dumps({"item": "ink", "pieces": 2})}


async def answer(me: mew.Client) -> Any:
    tools = await me.tools()
    called = model(mew.openai_tools(tools))  # or mew.anthropic_tools(tools)
    call = mew.resolve_tool_call(tools, called["name"], called["arguments"])
    try:
        return await me.call(*call)
    except mew.MewError as error:
        return f"failed: {error}"  # what the model is told: rejected, unknown tool, wrong arguments, …


async def main() -> None:
    async with (
        Space({"bot": ["mcp/request"], "shop": []}) as space,
        space.serving(shop, "shop"),
        space.connect("bot") as bot,
    ):
        assert await answer(bot) == "2 x ink ordered"


if __name__ == "__main__":
    asyncio.run(main())
