"""A server of the SDK's, of both generations: over stdio, or with a port as its argument over Streamable HTTP."""

import sys
from typing import Any

import anyio
import mcp_types as types
import uvicorn
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated, ToolsListChanged

__all__ = ["NOTE", "make"]

NOTE = "memo://note"
_MODERN = "2026-07-28"
_ASKED: types.ElicitRequestedSchema = {"type": "object", "properties": {"name": {"type": "string"}}}
_TOOLS: list[dict[str, Any]] = [
    {"name": "greet", "description": "Asks for a name.", "inputSchema": {"type": "object"}},
    {"name": "steps", "description": "Takes its time.", "inputSchema": {"type": "object"}},
    {"name": "wait", "description": "Waits.", "inputSchema": {"type": "object"}},
    {"name": "cancelled", "description": "How often.", "inputSchema": {"type": "object"}},
    {"name": "change", "description": "Changes the note.", "inputSchema": {"type": "object"}},
    {
        "name": "regional",
        "description": "Wants an argument as a header, too.",
        "inputSchema": {
            "type": "object",
            "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
        },
    },
]

Context = ServerRequestContext[Any, Any]


class CallNotes:
    """One note, and who is told when it changes."""

    def __init__(self) -> None:
        self.bus = InMemorySubscriptionBus()
        self.text = "first"
        self.cancelled = 0

    async def list_tools(self, _: Context, __: Any) -> types.ListToolsResult:
        return types.ListToolsResult.model_validate({"tools": _TOOLS})

    async def call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> Any:
        match params.name:
            case "greet":
                return await _greet(ctx, params)
            case "steps":
                for step in (1, 2, 3):
                    await ctx.session.report_progress(step, 3, f"step {step}")
            case "change":
                await self._change(ctx)
            case "wait":
                await self._wait(ctx)
            case "cancelled":
                return _text(str(self.cancelled))
        return _text(str(params.arguments))

    async def read(self, _: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        contents = [{"uri": str(params.uri), "text": self.text}]
        return types.ReadResourceResult.model_validate({"contents": contents})

    async def list_resources(self, _: Context, __: Any) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=[types.Resource(uri=NOTE, name="note")])

    async def subscribe(self, _: Context, __: Any) -> types.EmptyResult:
        return types.EmptyResult()

    async def _wait(self, ctx: Context) -> None:
        await ctx.session.report_progress(1)
        try:
            await anyio.sleep(60)
        except anyio.get_cancelled_exc_class():
            self.cancelled += 1
            raise

    async def _change(self, ctx: Context) -> None:
        self.text = "second"
        if ctx.protocol_version == _MODERN:
            await self.bus.publish(ResourceUpdated(NOTE))
            await self.bus.publish(ToolsListChanged())
        else:
            await ctx.session.send_resource_updated(NOTE)
            await ctx.session.send_tool_list_changed()


def make() -> Server[Any]:
    notes = CallNotes()
    return Server(
        "sdk",
        version="1",
        on_list_tools=notes.list_tools,
        on_call_tool=notes.call_tool,
        on_read_resource=notes.read,
        on_list_resources=notes.list_resources,
        on_subscribe_resource=notes.subscribe,
        on_unsubscribe_resource=notes.subscribe,
        on_subscriptions_listen=ListenHandler(notes.bus),
    )


async def _greet(ctx: Context, params: types.CallToolRequestParams) -> Any:
    if ctx.protocol_version != _MODERN:
        answer = await ctx.session.elicit_form("Your name?", _ASKED, ctx.request_id)
    elif params.input_responses is None:
        asked = types.ElicitRequest(
            params=types.ElicitRequestFormParams(message="Your name?", requested_schema=_ASKED)
        )
        return types.InputRequiredResult(input_requests={"who": asked}, request_state="asked")
    else:
        assert params.request_state == "asked"
        answer = types.ElicitResult.model_validate(params.input_responses["who"])
    return _text(f"{answer.action} {answer.content}")


def _text(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)])


async def _stdio() -> None:
    server = make()
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    if len(sys.argv) > 1:
        uvicorn.run(make().streamable_http_app(), port=int(sys.argv[1]), log_level="warning")
    else:
        anyio.run(_stdio)
