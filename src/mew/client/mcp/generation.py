"""PURE. The two generations of MCP: up to 2025-11-25 with a handshake, from 2026-07-28 on each request stands alone.

Which one a request is of, it says in its `_meta`; where it says nothing, it is of the first. What is answered differs
in little: the second wants to be told that a result is complete, and for how long it may be kept.
"""

from typing import Any, Final, get_args

from mew.client.errors import RpcError

from .call import Level

__all__ = ["HANDSHAKE_VERSIONS", "SERVER_INFO", "VERSIONS", "answered", "is_stateless", "log_level"]

# The revisions that begin with `initialize`, oldest first; nothing we answer differs between them.
HANDSHAKE_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
VERSIONS: Final = (*HANDSHAKE_VERSIONS, "2026-07-28")

SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
_LOG_LEVEL: Final = "io.modelcontextprotocol/logLevel"
_UNSUPPORTED_VERSION: Final = -32022
_SHOWN_CHARS_MAX: Final = 100
_CACHEABLE: Final = frozenset(
    {
        "server/discover",
        "tools/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "prompts/list",
    }
)


def is_stateless(params: dict[str, Any]) -> bool:
    """Whether a request is of the second generation.

    Raises:
        RpcError: it is of one that nobody here knows.
    """
    version = _meta(params).get(_VERSION)
    if isinstance(version, str) and version not in VERSIONS:
        shown = version[:_SHOWN_CHARS_MAX]
        supported = {"supported": list(VERSIONS), "requested": shown}
        raise RpcError(_UNSUPPORTED_VERSION, f"MCP {shown!r} is not supported", supported)
    return isinstance(version, str) and version not in HANDSHAKE_VERSIONS


def log_level(params: dict[str, Any]) -> Level | None:
    """How severe a line of the log must be for who sent a request of the second generation; None: none are wanted."""
    wanted = _meta(params).get(_LOG_LEVEL)
    return next((level for level in get_args(Level) if level == wanted), None)


def answered(method: str, result: dict[str, Any]) -> dict[str, Any]:
    """A result as the second generation wants it: complete, whatever is in it."""
    kept = {"ttlMs": 0, "cacheScope": "private"} if method in _CACHEABLE else {}
    return {**kept, **result, "resultType": "complete"}


def _meta(params: dict[str, Any]) -> dict[str, Any]:
    meta = params.get("_meta")
    return meta if isinstance(meta, dict) else {}
