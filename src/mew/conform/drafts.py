"""What the kit says, and which capabilities allow it: of kinds that a gateway passes on and acts on in no way."""

import json
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from mew.protocol.visible import cut

from .connection import ScriptedClient

__all__ = [
    "CALL",
    "CHAT",
    "HELLO",
    "PROPOSAL",
    "REASONING",
    "STATUS",
    "THOUGHT",
    "Draft",
    "allows",
    "call",
    "calling",
    "request",
    "unique_word",
]


_SHOWN_CHARS_MAX: Final = 200


@dataclass(frozen=True, slots=True)
class Draft:
    """Something to say. A payload that is `...` is left out."""

    kind: str
    payload: Any = field(default_factory=dict)
    fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def capability(self) -> dict[str, Any]:
        """One that allows it, and all else of its kind."""
        return {"kind": self.kind}

    async def send_by(self, sender: ScriptedClient) -> dict[str, Any]:
        """Say it, and return the envelope."""
        return await sender.send(self.kind, self.payload, **self.fields)

    @property
    def completed(self) -> "Draft":
        """The same with what some gateways miss in it: the text of a chat, the method of a request."""
        needed = {"chat": {"text": "hello"}, "mcp/request": {"method": "tools/list"}}.get(self.kind, {})
        return self if self.payload is ... else replace(self, payload={**needed, **self.payload})

    def __str__(self) -> str:
        shown = "without a payload" if self.payload is ... else json.dumps(self.payload)
        return cut(f"{json.dumps(self.kind)[1:-1]} {shown}", _SHOWN_CHARS_MAX)

    def __hash__(self) -> int:
        return hash(self.kind)


def request(method: str, params: Any = None, kind: str = "mcp/request") -> Draft:
    """An MCP request, or a proposal of one."""
    payload = {"jsonrpc": "2.0", "id": 1, "method": method}
    return Draft(kind, payload if params is None else {**payload, "params": params})


def call(tool: Any, arguments: Any = None, kind: str = "mcp/request") -> Draft:
    return request("tools/call", {"name": tool, "arguments": {} if arguments is None else arguments}, kind)


HELLO: Final = Draft("chat", {"text": "hello"})
CALL: Final = call("write_file")
PROPOSAL: Final = call("write_file", kind="mcp/proposal")
REASONING: Final = Draft("reasoning/start", {"message": "let me think"})
THOUGHT: Final = Draft("reasoning/thought", {"message": "it may be"})
STATUS: Final = Draft("participant/request-status", {"fields": ["tokens"]})


def unique_word() -> str:
    """A word that is nowhere else on the wire."""
    return f"conform-{uuid.uuid4().hex}"


# What allows it.

CHAT: Final[Mapping[str, Any]] = HELLO.capability


def calling(tool: Any, method: str = "tools/call") -> dict[str, Any]:
    """The capability for a request of this method with this name, or pattern for one."""
    return {"kind": "mcp/request", "payload": {"method": method, "params": {"name": tool}}}


def allows(capabilities: Iterable[Any], draft: Draft) -> bool | None:
    """Whether a list of capabilities allows this; None where an entry has more to it than §4.1 explains."""
    found = [_fits(capability, draft) for capability in capabilities]
    return True if True in found else None if None in found else False


def _fits(capability: Any, draft: Draft) -> bool | None:
    if not isinstance(capability, Mapping) or not capability.keys() <= {"kind", "payload", "id"}:
        return None
    found = [_matches(capability.get("kind"), draft.kind)]
    if capability.get("payload") is not None:
        found.append(_matches(capability["payload"], draft.payload))
    return False if False in found else None if None in found else True


def _matches(pattern: Any, value: Any) -> bool | None:
    if isinstance(pattern, Mapping):
        if not isinstance(value, Mapping):
            return False
        if any(key.startswith("$") for key in pattern):
            return None
        found = [_matches(each, value.get(key)) for key, each in pattern.items()]
        return False if False in found else None if None in found else True
    if not isinstance(pattern, str):
        return None
    if pattern == "*":
        return True
    start = pattern.removesuffix("*")
    if any(mark in start for mark in "*?!^$[(|\\") or start.startswith("/"):
        return None
    if not isinstance(value, str):
        return False
    return value.startswith(start) if pattern.endswith("*") else value == pattern
