"""One request being answered, as the function that answers it may see it."""

from collections.abc import Awaitable, Callable
from typing import Any, Final, Literal, get_args

from mew.protocol.envelope import Envelope

__all__ = ["Call", "CallCancelled", "Level", "Notify"]

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
