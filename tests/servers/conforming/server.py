"""An MCP server of both generations with all that the conformance suite of MCP asks a server for.

Without arguments it speaks over stdio; with `--http PORT` over Streamable HTTP, at a free port where that is 0, and
writes its address to stderr. With `--legacy` it knows nothing of the second generation, over stdio.
"""

import argparse
import asyncio
import json
import re
import socket
import sys
import warnings
from typing import Any, Final

import mcp_types as types
import uvicorn
from mcp.server import Server
from mcp.server.lowlevel.server import NotificationOptions
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.runner import serve_loop
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp.server.subscriptions import ListenHandler
from mcp.shared.exceptions import MCPDeprecationWarning
from tests.servers.conforming.tools import (
    IMAGE,
    PNG,
    PROMPTS,
    Context,
    Json,
    answers,
    bus,
    call_tool,
    elicitation,
    list_tools,
    required,
    resource,
    text,
)

from mcp import MCPError

NOT_KEPT: Final = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
RESOURCES: Final[dict[str, Json]] = {
    "test://static-text": {
        "mimeType": "text/plain",
        "text": "This is the content of the static text resource.",
    },
    "test://static-binary": {"mimeType": "image/png", "blob": PNG},
    "test://watched-resource": {"mimeType": "text/plain", "text": "Watched resource content."},
}
TEMPLATE: Final = re.compile(r"test://template/([^/]+)/data")


async def list_resources(_: Context, __: object) -> Any:
    listed = [
        {"uri": uri, "name": uri, "description": f"Tests {uri}", "mimeType": body["mimeType"]}
        for uri, body in RESOURCES.items()
    ]
    return {"resources": listed, **NOT_KEPT}


async def list_templates(_: Context, __: object) -> Any:
    template = {
        "uriTemplate": "test://template/{id}/data",
        "name": "template",
        "description": "Tests templates",
        "mimeType": "application/json",
    }
    return {"resourceTemplates": [template], **NOT_KEPT}


async def read_resource(_: Context, params: types.ReadResourceRequestParams) -> Any:
    uri = str(params.uri)
    if (found := TEMPLATE.fullmatch(uri)) is not None:
        said = {"id": found[1], "templateTest": True, "data": f"Data for ID: {found[1]}"}
        body: Json | None = {"mimeType": "application/json", "text": json.dumps(said)}
    else:
        body = RESOURCES.get(uri)
    if body is None:
        raise MCPError(types.INVALID_PARAMS, "Resource not found", {"uri": uri})
    return {"contents": [{"uri": uri, **body}], **NOT_KEPT}


async def acknowledge(_: Context, __: object) -> types.EmptyResult:
    return types.EmptyResult()


async def list_prompts(_: Context, __: object) -> Any:
    listed = [
        {
            "name": name,
            "description": f"Tests {name}",
            "arguments": [{"name": argument, "required": True} for argument in arguments],
        }
        for name, arguments in PROMPTS.items()
    ]
    return {"prompts": listed, **NOT_KEPT}


async def get_prompt(ctx: Context, params: types.GetPromptRequestParams) -> Any:
    given = params.arguments or {}
    match params.name:
        case "test_simple_prompt":
            blocks = [text("This is a simple prompt for testing.")]
        case "test_prompt_with_arguments":
            blocks = [text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'")]
        case "test_prompt_with_embedded_resource":
            body = "Embedded resource content for testing."
            blocks = [
                resource(given["resourceUri"], "text/plain", text=body),
                text("Please process the embedded resource above."),
            ]
        case "test_prompt_with_image":
            blocks = [IMAGE, text("Please analyze the image above.")]
        case "test_input_required_result_prompt":
            if "user_context" not in answers(ctx):
                return required(
                    {"user_context": elicitation("What context should the prompt use?", "context")}
                )
            blocks = [text(json.dumps(answers(ctx)["user_context"]))]
        case name:
            raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {name}")
    return {"resultType": "complete", "messages": [{"role": "user", "content": block} for block in blocks]}


async def complete(_: Context, params: types.CompleteRequestParams) -> Any:
    values = [word for word in ("paris", "park", "party") if word.startswith(params.argument.value)]
    found = {"values": values, "total": len(values), "hasMore": False}
    return {"resultType": "complete", "completion": found}


class Events(EventStore):
    """What was said on each stream, so that a client that lost one can go on."""

    def __init__(self) -> None:
        self._events: list[tuple[str, types.JSONRPCMessage | None]] = []

    async def store_event(self, stream_id: str, message: types.JSONRPCMessage | None) -> str:
        self._events.append((stream_id, message))
        return str(len(self._events))

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        last = int(last_event_id)
        if not 0 < last <= len(self._events):
            return None
        stream_id = self._events[last - 1][0]
        for number, (stream, message) in enumerate(self._events[last:], last + 1):
            if stream == stream_id and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream_id


def server() -> Server[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MCPDeprecationWarning)  # of logging/setLevel: it is what is tested
        made: Server[Any] = Server(
            "conforming",
            version="1.0.0",
            on_list_tools=list_tools,
            on_call_tool=call_tool,
            on_list_resources=list_resources,
            on_list_resource_templates=list_templates,
            on_read_resource=read_resource,
            on_subscribe_resource=acknowledge,
            on_unsubscribe_resource=acknowledge,
            on_subscriptions_listen=ListenHandler(bus),
            on_list_prompts=list_prompts,
            on_get_prompt=get_prompt,
            on_completion=complete,
            on_set_logging_level=acknowledge,
        )
    made.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=made.name))
    return made


async def over_stdio(*, legacy: bool) -> None:
    serving = server()
    changes = NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)
    options = serving.create_initialization_options(changes)
    async with stdio_server() as (reading, writing):
        if legacy:
            await serve_loop(serving, reading, writing, lifespan_state={}, init_options=options)
        else:
            await serving.run(reading, writing, options)


async def over_http(port: int) -> None:
    app = server().streamable_http_app(event_store=Events(), retry_interval=100)
    listening = socket.create_server(("127.0.0.1", port))
    sys.stderr.write(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp\n")
    sys.stderr.flush()
    config = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1)
    await uvicorn.Server(config).serve(sockets=[listening])


def main() -> None:
    parser = argparse.ArgumentParser(prog="conforming", description=__doc__)
    parser.add_argument("--http", type=int, metavar="PORT")
    parser.add_argument("--legacy", action="store_true")
    asked = parser.parse_args()
    asyncio.run(over_stdio(legacy=asked.legacy) if asked.http is None else over_http(asked.http))


if __name__ == "__main__":
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    main()
