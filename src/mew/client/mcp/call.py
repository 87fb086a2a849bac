"""One request being answered, the port of who answers it, and the version of MCP that it speaks."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Final, Literal, Protocol, get_args

from mew.client.errors import RpcError
from mew.protocol.envelope import Envelope

__all__ = [
    "HANDSHAKE_VERSIONS",
    "SERVER_INFO",
    "VERSIONS",
    "Answerer",
    "Call",
    "CallCancelled",
    "Level",
    "Notify",
    "answered",
    "is_stateless",
    "log_level",
    "run",
]

# The levels of MCP, which are those of RFC 5424, from the least to the most severe.
Level = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]

Notify = Callable[[str, dict[str, Any]], Awaitable[None]]

_LEVELS: Final = get_args(Level)
_TOKEN_CHARS_MAX: Final = 1_024  # it goes back with each step


class CallCancelled(Exception):
    """The caller no longer wants the answer: none is to be sent."""


class Call:
    """Who asks, and what a function may tell them while it works. Annotate a parameter with it to be given it.

    `envelope` is the request, `id` its JSON-RPC id or, without one, its envelope's. `cancelled` becomes true when the
    caller cancels: an async function is cancelled by itself, a sync one runs in a thread and has to look.
    """

    def __init__(
        self,
        envelope: Envelope,
        *,
        method: str,
        params: dict[str, Any],
        id: str | int,
        notify: Notify | None = None,
    ) -> None:
        self.envelope = envelope
        self.sender = envelope.sender
        self.method = method
        self.id = id
        self.cancelled = False
        self.level: Level | None = "info"
        self._token = _progress_token(params)
        self._notify = notify
        self._done: float | None = None

    async def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Tell the caller how far the work is, if they asked to be told; only going forward, as MCP has it."""
        if self._token is None or (self._done is not None and done <= self._done):
            return
        self._done = done
        told = {"progressToken": self._token, "progress": done, "total": total, "message": message}
        await self.tell("notifications/progress", {k: v for k, v in told.items() if v is not None})

    async def log(self, level: Level, message: Any) -> None:
        """Send the caller a line of the log, or any JSON value, if it is as severe as they want it to be.

        Raises:
            ValueError: no such level.
        """
        severity = _LEVELS.index(level)
        if self.level is not None and severity >= _LEVELS.index(self.level):
            await self.tell("notifications/message", {"level": level, "data": message})

    async def tell(self, method: str, params: dict[str, Any]) -> None:
        """Send the caller a notification as it is."""
        if self._notify is not None and not self.cancelled:
            await self._notify(method, params)

    def close(self) -> None:
        """The answer is there: from now on nothing more is told."""
        self._notify = None


def _progress_token(params: dict[str, Any]) -> str | int | None:
    meta = params.get("_meta")
    match meta.get("progressToken") if isinstance(meta, dict) else None:
        case bool():
            return None
        case int(token):
            return token
        case str(token) if len(token) <= _TOKEN_CHARS_MAX:
            return token
    return None


class Answerer(Protocol):
    """Whoever feeds it decides how many calls run at once, and sends what it returns."""

    async def answer(self, method: str, params: dict[str, Any], call: Call) -> dict[str, Any]:
        """The result of a request.

        Raises:
            RpcError: the error to answer with.
            CallCancelled: its sender cancelled it, and expects no answer.
        """
        ...

    def notice(self, method: str, params: dict[str, Any], sender: str) -> None:
        """Take a notification, `notifications/cancelled` for a call that runs among them. Must not wait."""

    def forget(self, sender: str) -> None:
        """A participant has left: what was kept for it goes."""


async def run(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What the function returns, awaited where it is to be.

    Cancelling stops an async function; one in a thread runs on, and nobody waits for it.

    Raises:
        Exception: whatever it raised; never what would end this program or look as if the caller were cancelled.
    """
    try:
        if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__):
            value = function(*args, **kwargs)
        else:
            value = await asyncio.to_thread(_in_thread, function, args, kwargs)
        return await value if inspect.isawaitable(value) else value
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise RuntimeError("something it waited for was cancelled") from error
    except SystemExit as error:
        raise RuntimeError("it tried to exit") from error


def _in_thread(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    try:
        return function(*args, **kwargs)
    except StopIteration as error:  # no future can hold one: whoever awaits it would wait for ever
        raise RuntimeError("it raised StopIteration") from error


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
