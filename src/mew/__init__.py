"""MEW Protocol v0.4: people, AI agents and MCP servers in one visible workspace.

    import mew

    calc = mew.Participant("calculator")

    @calc.tool
    async def add(a: int, b: int) -> int:
        "Add two numbers."
        return a + b

    calc.run("ws://localhost:8080", space="demo", token=...)

`Participant` answers; `connect` gives a `Client` that acts, `connect_sync` the same without `async`. Errors are all
under `MewError`. `mew.testing` has a space for tests, `mew.protocol.kinds` the payload of each kind.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from mew.client.client import Client, connect
    from mew.client.connection.websocket import Via
    from mew.client.errors import (
        Absent,
        AlreadyDecided,
        ConnectError,
        Corrupt,
        Disconnected,
        Lagged,
        MewError,
        NotFulfilled,
        Refused,
        RpcError,
        StreamBroken,
        ToolError,
        Unanswered,
        Uncertain,
        UnknownTool,
    )
    from mew.client.mcp.call import Call
    from mew.client.mcp.model_tools import ToolCall, anthropic_tools, openai_tools, resolve_tool_call
    from mew.client.mcp.questions import Question
    from mew.client.mcp.results import Image, Message, ToolResult
    from mew.client.mcp.validation import InvalidArguments
    from mew.client.participant.memory import EnvelopeMemory
    from mew.client.participant.participant import Participant
    from mew.client.proposals.outcomes import (
        Fulfilled,
        Outcome,
        ProposalUpdate,
        Rejected,
        Strategy,
        TimedOut,
        Withdrawn,
    )
    from mew.client.proposals.review import Review
    from mew.client.streams.files import safe_name
    from mew.client.sync import Cancelled, connect_sync
    from mew.proposals.catalogue import Tool
    from mew.protocol.envelope import Envelope
    from mew.protocol.errors import InvalidCapability

__all__ = [
    "Absent",
    "AlreadyDecided",
    "Call",
    "Cancelled",
    "Client",
    "ConnectError",
    "Corrupt",
    "Disconnected",
    "Envelope",
    "EnvelopeMemory",
    "Fulfilled",
    "Image",
    "InvalidArguments",
    "InvalidCapability",
    "Lagged",
    "Message",
    "MewError",
    "NotFulfilled",
    "Outcome",
    "Participant",
    "ProposalUpdate",
    "Question",
    "Refused",
    "Rejected",
    "Review",
    "RpcError",
    "Strategy",
    "StreamBroken",
    "TimedOut",
    "Tool",
    "ToolCall",
    "ToolError",
    "ToolResult",
    "Unanswered",
    "Uncertain",
    "UnknownTool",
    "Via",
    "Withdrawn",
    "anthropic_tools",
    "connect",
    "connect_sync",
    "openai_tools",
    "resolve_tool_call",
    "safe_name",
]

_HOMES: Final = {
    "mew.client.sync": ("Cancelled", "connect_sync"),
    "mew.client.client": ("Client", "connect"),
    "mew.client.errors": (
        "Absent",
        "AlreadyDecided",
        "ConnectError",
        "Corrupt",
        "Disconnected",
        "Lagged",
        "MewError",
        "NotFulfilled",
        "Refused",
        "RpcError",
        "StreamBroken",
        "ToolError",
        "Unanswered",
        "Uncertain",
        "UnknownTool",
    ),
    "mew.client.mcp.call": ("Call",),
    "mew.client.mcp.model_tools": ("ToolCall", "anthropic_tools", "openai_tools", "resolve_tool_call"),
    "mew.client.mcp.questions": ("Question",),
    "mew.client.mcp.results": ("Image", "Message", "ToolResult"),
    "mew.client.mcp.validation": ("InvalidArguments",),
    "mew.proposals.catalogue": ("Tool",),
    "mew.client.proposals.outcomes": (
        "Fulfilled",
        "Outcome",
        "Rejected",
        "ProposalUpdate",
        "Strategy",
        "TimedOut",
        "Withdrawn",
    ),
    "mew.client.proposals.review": ("Review",),
    "mew.client.participant.participant": ("Participant",),
    "mew.client.participant.memory": ("EnvelopeMemory",),
    "mew.client.streams.files": ("safe_name",),
    "mew.client.connection.websocket": ("Via",),
    "mew.protocol.envelope": ("Envelope",),
    "mew.protocol.errors": ("InvalidCapability",),
}


if not TYPE_CHECKING:  # or whatever is misspelt would have a type

    def __getattr__(name: str) -> Any:
        """What is asked for is loaded then: a command that needs nothing of the SDK starts without it."""
        home = next((home for home, names in _HOMES.items() if name in names), None)
        if home is None:
            raise AttributeError(f"module 'mew' has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(home), name)
        return found


def __dir__() -> list[str]:
    return [*globals(), *__all__]
