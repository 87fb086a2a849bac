"""PURE. Capabilities in words: `call read_* of fs`, `propose anything`, `chat`."""

from collections.abc import Iterable
from typing import Any, Final

from mew.protocol.capability import name_field, short_text
from mew.protocol.visible import literal, visible

__all__ = ["in_words", "words_of"]

_VALUE_CHARS_MAX: Final = 120
_KINDS: Final = {
    "*": "anything",
    "**": "anything",
    "chat": "chat",
    "chat/*": "acknowledge and cancel chats",
    "chat/acknowledge": "acknowledge chats",
    "chat/cancel": "cancel chats",
    "mcp/*": "anything of MCP",
    "mcp/request": "make any MCP request",
    "mcp/response": "answer requests",
    "mcp/proposal": "propose anything",
    "mcp/withdraw": "withdraw what it proposed",
    "mcp/reject": "reject proposals",
    "reasoning/*": "think aloud",
    "reasoning/cancel": "stop a reasoning",
    "capability/*": "grant and revoke",
    "capability/grant": "grant what it holds",
    "capability/revoke": "revoke",
    "capability/grant-ack": "acknowledge grants",
    "space/*": "invite and kick",
    "space/invite": "invite",
    "space/kick": "kick",
    "participant/*": "control others",
    "participant/pause": "pause others",
    "participant/resume": "resume others",
    "participant/status": "say how it is",
    "participant/request-status": "ask others how they are",
    "participant/restart": "restart others",
    "participant/shutdown": "shut others down",
    "participant/forget": "have others forget",
    "participant/compact": "have others compact",
    "participant/clear": "have others clear their context",
    "stream/*": "use streams",
    "stream/request": "open streams",
}
_OF_EVERYONE: Final = frozenset({_KINDS["mcp/response"], _KINDS["capability/grant-ack"]})
_VERBS: Final = {"mcp/request": "", "mcp/proposal": "propose to "}
_METHODS: Final = {
    "tools/call": ("call", "any tool"),
    "tools/list": ("list tools", ""),
    "tools/*": ("list and call any tool", ""),
    "resources/read": ("read", "any resource"),
    "resources/list": ("list resources", ""),
    "resources/*": ("list and read any resource", ""),
    "prompts/get": ("get the prompt", "of any name"),
    "prompts/*": ("list and get prompts", ""),
    "notifications/*": ("send MCP notifications", ""),
    "notifications/**": ("send MCP notifications", ""),
}


def in_words(held: Iterable[Any]) -> str:
    """All that somebody may do, in a line; what everyone may is left out where there is more."""
    said = dict.fromkeys(map(words_of, held))
    more = [words for words in said if words not in _OF_EVERYONE]
    return "; ".join(more or said) or "nothing"


def words_of(capability: Any) -> str:
    """One capability as it is written, an object or a string, in a few words."""
    if not isinstance(capability, dict) or not isinstance(capability.get("kind"), str):
        return visible(short_text(capability), _VALUE_CHARS_MAX)
    kind, payload = capability["kind"], capability.get("payload")
    known = set(capability) <= {"kind", "payload", "to", "except"}
    said = (_asking(kind, payload) if kind in _VERBS else _said(kind, payload)) if known else None
    if said is None:
        return visible(short_text(capability), _VALUE_CHARS_MAX)
    return said + _whom(kind, capability.get("to")) + _less(capability.get("except"))


def _said(kind: str, payload: Any) -> str:
    verb = _KINDS.get(kind, f"send {visible(kind, 80)}")
    return verb if payload is None else f"{verb}, where it has {literal(payload, _VALUE_CHARS_MAX)}"


def _asking(kind: str, payload: Any) -> str | None:
    """An MCP request or proposal: by its method, and by what it names."""
    if payload is None:
        return _KINDS[kind]
    if not isinstance(payload, dict) or not isinstance(payload.get("method"), str):
        return None
    method, params = payload["method"], payload.get("params")
    verb, anything = _METHODS.get(method, (f"request {visible(method, 60)}", ""))
    key = name_field(method)
    fields = dict(params) if isinstance(params, dict) else {}
    name = fields.pop(key, None) if key is not None else None
    what = anything if name is None else _names(name)
    more = {**{key: value for key, value in payload.items() if key not in ("method", "params")}, **fields}
    where = f", where it has {literal(more, _VALUE_CHARS_MAX)}" if more else ""
    return f"{_VERBS[kind]}{verb}{' ' if what else ''}{what}{where}"


def _names(pattern: Any) -> str:
    if isinstance(pattern, str):
        return visible(pattern, 80)
    if isinstance(pattern, list) and all(isinstance(one, str) for one in pattern):
        return " or ".join(visible(one, 80) for one in pattern)
    return literal(pattern, _VALUE_CHARS_MAX)


def _whom(kind: str, to: Any) -> str:
    if to is None:
        return ""
    return f"{' of ' if kind in _VERBS else ' to '}{_names(to)}"


def _less(exceptions: Any) -> str:
    if not isinstance(exceptions, list) or not exceptions:
        return ""
    return f", but not {', nor '.join(map(words_of, exceptions))}"
