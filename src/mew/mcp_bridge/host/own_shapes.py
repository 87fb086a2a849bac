"""PURE. How our own tools are listed: what they do, what they take and what they give."""

from dataclasses import dataclass, field
from typing import Any, Final

from mew.proposals.record import ProposalStatus

__all__ = ["SHAPES"]

_TEXT: Final = {"type": "string"}
_HANDLE: Final = {
    "type": "string",
    "description": "The handle that a call was answered with.",
    "maxLength": 256,
}


@dataclass(frozen=True, kw_only=True)
class Shape:
    """One tool. `required` are arguments; everything of `gives` is there where the call succeeds."""

    title: str
    description: str
    takes: dict[str, Any] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    gives: dict[str, Any]
    always: tuple[str, ...]
    is_read_only: bool = True
    is_idempotent: bool = True

    @property
    def arguments(self) -> dict[str, Any]:
        """The JSON Schema of what it takes."""
        return {
            "type": "object",
            "properties": self.takes,
            "required": list(self.required),
            "additionalProperties": False,
        }

    def listed(self, name: str) -> dict[str, Any]:
        """As MCP has it."""
        return {
            "name": name,
            "title": self.title,
            "description": self.description,
            "inputSchema": self.arguments,
            "outputSchema": {"type": "object", "properties": self.gives, "required": list(self.always)},
            "annotations": {
                "title": self.title,
                "readOnlyHint": self.is_read_only,
                "destructiveHint": False,
                "idempotentHint": self.is_idempotent,
                "openWorldHint": False,
            },
        }


SHAPES: Final[dict[str, Shape]] = {
    "mew_chat": Shape(
        title="Say something in the space",
        description="Say something to the people and agents in the space. Everyone sees it; `to` is who should act.",
        takes={
            "text": {"type": "string", "minLength": 1},
            "to": {"type": "array", "items": _TEXT, "description": "Participants, by name; nobody: to all."},
            "about": {"type": "array", "items": _TEXT, "description": "Ids of envelopes that it refers to."},
        },
        required=("text",),
        gives={"id": _TEXT},
        always=("id",),
        is_read_only=False,
        is_idempotent=False,
    ),
    "mew_participants": Shape(
        title="Who is in the space",
        description="Who is in the space now, and how many tools, resources and prompts each offers to you.",
        gives={
            "space": _TEXT,
            "you": _TEXT,
            "participants": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"id": _TEXT, "offers": {"type": "object"}},
                    "required": ["id", "offers"],
                },
            },
        },
        always=("space", "you", "participants"),
    ),
    "mew_history": Shape(
        title="What was said in the space",
        description="The last envelopes that everyone in the space saw, oldest first. Replies to a chat are there.",
        takes={
            "count": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 50},
            "kind": {"type": "string", "description": "Only these: `chat`, `mcp/proposal`, `mcp/*`."},
            "participant": {"type": "string", "description": "Only what this one sent."},
        },
        gives={"envelopes": {"type": "array", "items": {"type": "object"}}},
        always=("envelopes",),
    ),
    "mew_open_proposals": Shape(
        title="What waits for approval",
        description="The proposals that wait for somebody's decision now, yours and those of others.",
        gives={"proposals": {"type": "array", "items": {"type": "object"}}},
        always=("proposals",),
    ),
    "mew_outcome": Shape(
        title="What became of a call",
        description=(
            "What became of a call that needs approval: its result, or who rejected it and why, or that it still "
            "waits. Waits a while for the end itself. Works after a restart too."
        ),
        takes={
            "handle": _HANDLE,
            "wait_seconds": {"type": "number", "minimum": 0, "description": "How long to wait for its end."},
        },
        required=("handle",),
        gives={
            "handle": _TEXT,
            "status": {
                "enum": [status.value for status in ProposalStatus],
                "description": "Where the proposal stands.",
            },
            "outcome": {
                "enum": ["answered", "failed", "rejected", "withdrawn", "timed_out"],
                "description": "How the call ended, once it has.",
            },
            "by": {"type": "string", "description": "Who approved or rejected it."},
            "told": {"type": "string"},
            "result": {"type": "object", "description": "The result of the call, where there is one."},
        },
        always=("handle", "status", "told"),
    ),
    "mew_withdraw": Shape(
        title="Withdraw a call",
        description="Take back a call that still waits for approval. What was approved already is not undone.",
        takes={"handle": _HANDLE, "reason": {"type": "string", "maxLength": 200}},
        required=("handle",),
        gives={"handle": _TEXT, "withdrawn": {"type": "boolean"}},
        always=("handle", "withdrawn"),
        is_read_only=False,
    ),
}
