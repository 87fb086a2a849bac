"""PURE. The tools of a space as language models are given them, and the way back from a model's call to a tool.

tools = await me.tools()
reply = await anthropic.messages.create(..., tools=mew.anthropic_tools(tools))
for use in reply.content:
    if use.type == "tool_use":
        value = await me.call(*mew.resolve_tool_call(tools, use.name, use.input))
"""

import difflib
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from mew.client.errors import UnknownTool
from mew.proposals.catalogue import Tool
from mew.protocol.visible import cut

from .tool_names import exposed_name
from .validation import InvalidArguments

__all__ = ["ToolCall", "anthropic_tools", "openai_tools", "resolve_tool_call"]

_OPENAI_DESCRIPTION_CHARS_MAX: Final = 1024


class ToolCall(NamedTuple):
    """A call as `Client.call` takes it: `await me.call(*tool_call)`."""

    participant: str
    tool: str
    arguments: dict[str, Any]


def openai_tools(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    """The `tools` of a request to OpenAI's Chat Completions and to servers that are compatible with it.

    Each is called `files__write_file`: whose it is, and its name, within the 64 characters `[A-Za-z0-9_-]` that OpenAI
    and Anthropic take; what does not fit ends in a hash.
    """
    return [
        {
            "type": "function",
            "function": {
                "name": exposed_name(tool.participant, tool.name),
                "description": cut(tool.description or "", _OPENAI_DESCRIPTION_CHARS_MAX - 1),
                "parameters": _object_schema(tool.input_schema),
            },
        }
        for tool in tools
    ]


def anthropic_tools(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    """The `tools` of a request to Anthropic's Messages API, with names as in `openai_tools`."""
    return [
        {
            "name": exposed_name(tool.participant, tool.name),
            "description": tool.description or "",
            "input_schema": _object_schema(tool.input_schema),
        }
        for tool in tools
    ]


def resolve_tool_call(tools: Iterable[Tool], name: str, arguments: str | Mapping[str, Any]) -> ToolCall:
    """The call that a model means by a name it was given and by arguments, as an object or as its JSON text.

    Raises:
        UnknownTool: no tool was given to it under that name.
        InvalidArguments: the text is not a JSON object.
    """
    given = {exposed_name(tool.participant, tool.name): tool for tool in tools}
    if name not in given:
        nearest = difflib.get_close_matches(name, given, n=1)
        hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
        raise UnknownTool(f"there is no tool {name!r}{hint}")
    return ToolCall(given[name].participant, given[name].name, _read(arguments))


def _object_schema(schema: Any) -> dict[str, Any]:
    """Both APIs want a schema of an object."""
    known = schema if isinstance(schema, dict) else {}
    return {"type": "object", "properties": {}, **known}


def _read(arguments: str | Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(arguments, str):
        return dict(arguments)
    try:
        read = json.loads(arguments or "{}")
    except ValueError as error:
        raise InvalidArguments(f"the arguments are not JSON: {error}") from None
    if not isinstance(read, dict):
        raise InvalidArguments(f"the arguments are not a JSON object: {cut(arguments, 80)}")
    return read
