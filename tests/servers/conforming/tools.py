"""The tools of the conforming server and the names of its prompts: words and questions are those of the suite."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import mcp_types as types
from mcp.server import ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, PromptsListChanged, ToolsListChanged

from mcp import MCPError

__all__ = [
    "IMAGE",
    "PNG",
    "PROMPTS",
    "Context",
    "Json",
    "answers",
    "bus",
    "call_tool",
    "elicitation",
    "list_tools",
    "required",
    "resource",
    "text",
]

Json = dict[str, Any]
Context = ServerRequestContext[Any, Any]
Tool = Callable[[Context, Mapping[str, Any]], Awaitable[Json]]

PNG: Final = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
WAV: Final = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
STEP_S: Final = 0.02
CLIENT_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"

bus: Final = InMemorySubscriptionBus()


def text(said: str) -> Json:
    return {"type": "text", "text": said}


def content(*blocks: Json, **fields: Any) -> Json:
    return {"resultType": "complete", "content": list(blocks), **fields}


def resource(uri: str, mime_type: str, **body: str) -> Json:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime_type, **body}}


IMAGE: Final = {"type": "image", "data": PNG, "mimeType": "image/png"}
PLAIN: Final[dict[str, Json]] = {
    "test_simple_text": content(text("This is a simple text response for testing.")),
    "test_image_content": content(IMAGE),
    "test_audio_content": content({"type": "audio", "data": WAV, "mimeType": "audio/wav"}),
    "test_embedded_resource": content(
        resource("test://embedded-resource", "text/plain", text="This is an embedded resource content.")
    ),
    "test_multiple_content_types": content(
        text("Multiple content types test:"),
        IMAGE,
        resource("test://mixed-content-resource", "application/json", text='{"test":"data","value":123}'),
    ),
    "test_error_handling": content(
        text("This tool intentionally returns an error for testing"), isError=True
    ),
    "test_x_headers": content(text("The header and the argument agree.")),
    "json_schema_2020_12_tool": content(text("The schema was kept.")),
}

PROMPTS: Final[dict[str, list[str]]] = {
    "test_simple_prompt": [],
    "test_prompt_with_arguments": ["arg1", "arg2"],
    "test_prompt_with_embedded_resource": ["resourceUri"],
    "test_prompt_with_image": [],
    "test_input_required_result_prompt": [],
}
"""Their names, and those of their arguments."""

NO_ARGUMENTS: Final[Json] = {"type": "object", "properties": {}}
SCHEMAS: Final[dict[str, Json]] = {
    "test_sampling": {"type": "object", "properties": {"prompt": {"type": "string"}}, "required": ["prompt"]},
    "test_elicitation": {
        "type": "object",
        "properties": {"message": {"type": "string"}},
        "required": ["message"],
    },
    "test_x_headers": {
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    },
    "json_schema_2020_12_tool": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            }
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    },
}


# What a server says while it works, and asks over the connection (the first generation).


async def log(ctx: Context, said: str) -> None:
    await ctx.session.send_log_message("info", said, related_request_id=ctx.request_id)


async def logging_tool(ctx: Context, _: Mapping[str, Any]) -> Json:
    for said in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await log(ctx, said)
        await asyncio.sleep(STEP_S)
    return content(text("Tool with logging executed successfully"))


async def progress_tool(ctx: Context, _: Mapping[str, Any]) -> Json:
    for done in (0, 50, 100):
        await ctx.session.report_progress(done, 100, f"Completed step {done} of 100")
        await asyncio.sleep(STEP_S)
    return content(text("Tool with progress executed successfully"))


async def reconnection_tool(ctx: Context, _: Mapping[str, Any]) -> Json:
    await log(ctx, "Before disconnect")
    if ctx.close_sse_stream is not None:
        await ctx.close_sse_stream()
    await asyncio.sleep(0.2)
    await log(ctx, "After reconnect")
    return content(text("Reconnection test completed"))


async def sampling_tool(ctx: Context, arguments: Mapping[str, Any]) -> Json:
    asked = types.SamplingMessage(role="user", content=types.TextContent(text=arguments["prompt"]))
    answer = await ctx.session.create_message([asked], max_tokens=100, related_request_id=ctx.request_id)
    said = answer.content.text if isinstance(answer.content, types.TextContent) else "no text"
    return content(text(f"LLM response: {said}"))


def eliciting(schema: Json, message: str = "") -> Tool:
    async def elicit(ctx: Context, arguments: Mapping[str, Any]) -> Json:
        asked = arguments.get("message", message)
        answer = await ctx.session.elicit_form(asked, schema, related_request_id=ctx.request_id)
        given = json.dumps(answer.content or {})
        return content(text(f"Elicitation completed: action={answer.action}, content={given}"))

    return elicit


def form(*required: str, **properties: Json) -> Json:
    return {
        "type": "object",
        "properties": properties,
        **({"required": list(required)} if required else {}),
    }


def titled(*pairs: tuple[str, str]) -> list[Json]:
    return [{"const": const, "title": title} for const, title in pairs]


WORDS: Final = ["option1", "option2", "option3"]
TITLED: Final = titled(("value1", "First"), ("value2", "Second"), ("value3", "Third"))
DEFAULTS: Final = form(
    name={"type": "string", "description": "User name", "default": "John Doe"},
    age={"type": "integer", "description": "User age", "default": 30},
    score={"type": "number", "description": "User score", "default": 95.5},
    status={"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    verified={"type": "boolean", "description": "Verified", "default": True},
)
ENUMS: Final = form(
    untitledSingle={"type": "string", "enum": WORDS},
    titledSingle={"type": "string", "oneOf": TITLED},
    legacyEnum={
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    untitledMulti={"type": "array", "items": {"type": "string", "enum": WORDS}},
    titledMulti={"type": "array", "items": {"anyOf": TITLED}},
)


# What a server asks by its answer (the second generation).


def elicitation(message: str, field: str, kind: str = "string") -> Json:
    asked = {"mode": "form", "message": message, "requestedSchema": form(field, **{field: {"type": kind}})}
    return {"method": "elicitation/create", "params": asked}


def sampling(prompt: str, tokens_max: int) -> Json:
    messages = [{"role": "user", "content": text(prompt)}]
    return {"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": tokens_max}}


NAME: Final = elicitation("What is your name?", "name")
ROOTS: Final[Json] = {"method": "roots/list", "params": {}}
CAPITAL: Final = sampling("What is the capital of France?", 100)
CONFIRM: Final = elicitation("Please confirm", "ok", "boolean")


def required(requests: Mapping[str, Json], state: str | None = None) -> Json:
    asked: Json = {"resultType": "input_required", "inputRequests": dict(requests)}
    return asked if state is None else {**asked, "requestState": state}


def answers(ctx: Context) -> Mapping[str, Json]:
    """What the client answered, where it is an object at all."""
    given = (ctx.params or {}).get("inputResponses") or {}
    return {key: answer for key, answer in given.items() if isinstance(answer, dict)}


def state(ctx: Context) -> str | None:
    return (ctx.params or {}).get("requestState")


def asking(said: Callable[[Mapping[str, Json]], str], state: str | None = None, **requests: Json) -> Tool:
    """A tool that asks all this at once, and says something of the answers."""

    async def ask(ctx: Context, _: Mapping[str, Any]) -> Json:
        given = answers(ctx)
        if not requests.keys() <= given.keys() or ("user_name" in given and named(given) is None):
            return required(requests, state)
        return content(text(said(given)))

    return ask


def named(given: Mapping[str, Json]) -> str | None:
    return (given["user_name"].get("content") or {}).get("name")


async def multi_round(ctx: Context, _: Mapping[str, Any]) -> Json:
    given = answers(ctx)
    if "step2" in given and state(ctx) == "round-2":
        return content(text("Both steps are done."))
    if "step1" in given and state(ctx) == "round-1":
        return required({"step2": elicitation("Step 2: What is your favorite color?", "color")}, "round-2")
    return required({"step1": elicitation("Step 1: What is your name?", "name")}, "round-1")


async def capabilities_tool(ctx: Context, _: Mapping[str, Any]) -> Json:
    can = ((ctx.params or {}).get("_meta") or {}).get(CLIENT_CAPABILITIES, {})
    asked = {"sampling": CAPITAL, "elicitation": NAME}
    return required({name: request for name, request in asked.items() if name in can})


async def missing_capability(ctx: Context, _: Mapping[str, Any]) -> Json:
    if not ctx.session.check_client_capability(types.ClientCapabilities(sampling=types.SamplingCapability())):
        raise MCPError(
            types.MISSING_REQUIRED_CLIENT_CAPABILITY,
            "sampling is needed",
            {"requiredCapabilities": {"sampling": {}}},
        )
    return content(text("Sampling is declared."))


# Not of the suite: what tests of ours need to see at the server itself.

waiting: Final = asyncio.Event()
cancelled: Final = asyncio.Event()


async def wait_until_cancelled(_: Context, __: Mapping[str, Any]) -> Json:
    waiting.set()
    try:
        async with asyncio.timeout(30):
            await asyncio.Event().wait()
    finally:
        waiting.clear()
        cancelled.set()
    raise AssertionError("nobody waits for ever")


def happened(event: asyncio.Event) -> Tool:
    async def say(_: Context, __: Mapping[str, Any]) -> Json:
        async with asyncio.timeout(10):
            await event.wait()
        return content(text("yes"))

    return say


def toggle(names: dict[str, Any], name: str, value: object) -> None:
    """Add it, or take it away again."""
    if names.pop(name, None) is None:
        names[name] = value


async def tools_changed(ctx: Context, _: Mapping[str, Any]) -> Json:
    toggle(PLAIN, "test_added_tool", content(text("I am new here.")))
    await bus.publish(ToolsListChanged())
    await ctx.session.send_tool_list_changed()
    return content(text("The tools have changed."))


async def prompts_changed(ctx: Context, _: Mapping[str, Any]) -> Json:
    toggle(PROMPTS, "test_added_prompt", [])
    await bus.publish(PromptsListChanged())
    await ctx.session.send_prompt_list_changed()
    return content(text("The prompts have changed."))


TOOLS: Final[dict[str, Tool]] = {
    "test_tool_with_logging": logging_tool,
    "test_logging_tool": logging_tool,
    "test_tool_with_progress": progress_tool,
    "test_reconnection": reconnection_tool,
    "test_sampling": sampling_tool,
    "test_elicitation": eliciting(
        form("username", "email", username={"type": "string"}, email={"type": "string"})
    ),
    "test_elicitation_sep1034_defaults": eliciting(DEFAULTS, "Please fill this in"),
    "test_elicitation_sep1330_enums": eliciting(ENUMS, "Please choose"),
    "test_input_required_result_elicitation": asking(lambda given: f"Hello, {named(given)}!", user_name=NAME),
    "test_streaming_elicitation": asking(lambda given: f"Hello, {named(given)}!", user_name=NAME),
    "test_input_required_result_sampling": asking(
        lambda given: str(given["capital_question"].get("content", {})), capital_question=CAPITAL
    ),
    "test_input_required_result_list_roots": asking(
        lambda given: json.dumps(given["client_roots"].get("roots")), client_roots=ROOTS
    ),
    "test_input_required_result_request_state": asking(lambda _: "state-ok", "confirming", confirm=CONFIRM),
    "test_input_required_result_tampered_state": asking(lambda _: "state-ok", "sealed", confirm=CONFIRM),
    "test_input_required_result_multiple_inputs": asking(
        lambda _: "All three were answered.",
        "three",
        user_name=NAME,
        greeting=sampling("Generate a greeting", 50),
        client_roots=ROOTS,
    ),
    "test_input_required_result_multi_round": multi_round,
    "test_input_required_result_capabilities": capabilities_tool,
    "test_missing_capability": missing_capability,
    "wait_until_cancelled": wait_until_cancelled,
    "is_waiting": happened(waiting),
    "was_cancelled": happened(cancelled),
    "test_trigger_tool_change": tools_changed,
    "test_trigger_prompt_change": prompts_changed,
}


async def list_tools(_: Context, __: object) -> Any:
    names = [*PLAIN, *TOOLS]
    tools = [
        {"name": name, "description": f"Tests {name}", "inputSchema": SCHEMAS.get(name, NO_ARGUMENTS)}
        for name in names
    ]
    return {"tools": tools, "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


async def call_tool(ctx: Context, params: types.CallToolRequestParams) -> Any:
    if (result := PLAIN.get(params.name)) is not None:
        return result
    if (tool := TOOLS.get(params.name)) is None:
        raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
    return await tool(ctx, params.arguments or {})
