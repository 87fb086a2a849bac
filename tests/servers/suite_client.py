"""A client for the client scenarios of the conformance suite: `python suite_client.py [--wrapped] URL`.

It asks the server at the URL for all it has; with `--wrapped`, through `mew wrap`, so that the suite sees what a server
sees of that.
"""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable
from contextlib import suppress
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.client.session import ClientRequestContext
from mcp.client.stdio import StdioServerParameters

from mcp import Client, MCPError

CONTEXT: dict[str, Any] = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
VERSION = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "")
MEW = Path(sys.executable).with_name("mew")
WRAP = ["wrap", "--ephemeral", "--allow", "*", "--allow-resource", "**", "--allow-prompt", "*"]
EXAMPLES: dict[str, Any] = {
    "string": "a text",
    "integer": 3,
    "number": 4,
    "boolean": True,
    "object": {},
    "array": [],
}


async def elicit(context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
    """Accept, with what the form has as defaults."""
    fields = (
        params.requested_schema.get("properties", {})
        if isinstance(params, types.ElicitRequestFormParams)
        else {}
    )
    content = {name: field.get("default", EXAMPLES.get(field["type"])) for name, field in fields.items()}
    return types.ElicitResult(action="accept", content=content)


def arguments(tool: types.Tool, tools: list[types.Tool]) -> dict[str, Any]:
    """Something that fits its schema; where it asks for a schema, that of the first tool."""
    fields: dict[str, Any] = tool.input_schema.get("properties", {})
    made = {name: EXAMPLES.get(field.get("type"), "a text") for name, field in fields.items()}
    return {**made, **({"schema": tools[0].input_schema} if "schema" in fields else {})}


async def calls(client: Client) -> list[Awaitable[object]]:
    """All there is to ask: what the scenario wants, or each tool, resource and prompt once."""
    tools = (await client.list_tools()).tools
    if wanted := CONTEXT.get("toolCalls"):
        return [client.call_tool(call["name"], call["arguments"]) for call in wanted]
    asked: list[Awaitable[object]] = [client.call_tool(tool.name, arguments(tool, tools)) for tool in tools]
    can = client.server_capabilities
    if can.resources is not None:
        asked += [client.read_resource(one.uri) for one in (await client.list_resources()).resources]
    if can.prompts is not None:
        asked += [client.get_prompt(one.name) for one in (await client.list_prompts()).prompts]
    return asked


async def main(url: str, *, wrapped: bool) -> None:
    server = (
        StdioServerParameters(command=str(MEW), args=[*WRAP, url], env=dict(os.environ)) if wrapped else url
    )
    mode = "auto" if VERSION >= "2026" else "legacy"
    async with asyncio.timeout(25), Client(server, mode=mode, elicitation_callback=elicit) as client:
        for asked in await calls(client):
            with suppress(MCPError, ValueError):  # the suite judges, by what it is sent
                await asked


if __name__ == "__main__":
    asyncio.run(main(sys.argv[-1], wrapped="--wrapped" in sys.argv))
