"""The host behind a request: what it can do, and what is said to it meanwhile.

The one place that reaches below what the SDK makes public: whether a request was cancelled, and JSON as it is.
"""

import asyncio
import re
from collections.abc import Mapping
from typing import Any, Final, get_args

from mcp.server.connection import Connection, allowed_log_levels
from mcp.server.context import ServerRequestContext
from mcp.shared.dispatcher import DispatchContext
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import progress_token_from_params
from mcp_types import LOG_LEVEL_META_KEY
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from mew.client.errors import RpcError
from mew.client.mcp.call import Level
from mew.mcp_bridge.host.calls.params import NotificationOptions
from mew.mcp_bridge.host_profiles import HostProfile, detect_profile

__all__ = ["Context", "HostRequest", "cancellations_of", "connection_of", "is_wanted", "set_level"]

Context = ServerRequestContext[Any, Any]

_STEP: Final = 1e-6
_LEVEL: Final = "mew/level"
_CANCELLATIONS: Final = "mew/cancellations"
_CANCELLATIONS_MAX: Final = 64
_REASON_S: Final = 1.0
_TIMED_OUT: Final = re.compile(r"timed? ?-?out", re.IGNORECASE)
_LEVELS: Final[tuple[str, ...]] = get_args(Level)


class HostRequest:
    """One request of a host, for as long as it is answered."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._progress: float | None = None

    @property
    def is_modern(self) -> bool:
        """Of the generation that is answered `input_required`, and asks again."""
        return self._context.protocol_version in MODERN_PROTOCOL_VERSIONS

    @property
    def has_cancelled(self) -> bool:
        """Whether it said that it wants no answer; to be gone is not to say so."""
        return self._channel.cancel_requested.is_set()

    @property
    def profile(self) -> HostProfile:
        """What is known of the host, as far as it can be told from what it says."""
        params = self._context.session.client_params
        can = self._context.session.client_capabilities
        return detect_profile(
            None if params is None else params.client_info.name,
            is_modern=self.is_modern,
            can_be_asked=can is not None and (can.elicitation is not None or can.sampling is not None),
            has_progress=progress_token_from_params(self._context.params) is not None,
        )

    async def has_timed_out(self) -> bool:
        """Whether a request that it cancelled took too long for it, as the reason says that it gives."""
        reasons = cancellations_of(connection_of(self._context))
        request_id = str(self._context.request_id)
        try:
            async with asyncio.timeout(_REASON_S):
                while request_id not in reasons.given:
                    await reasons.changed()
        except TimeoutError:
            return False
        return _TIMED_OUT.search(reasons.given.pop(request_id)) is not None

    @property
    def news(self) -> NotificationOptions:
        """What it wants to hear meanwhile."""
        kept = connection_of(self._context).state.get(_LEVEL)
        level = (self._context.meta or {}).get(LOG_LEVEL_META_KEY) if self.is_modern else kept
        has_token = progress_token_from_params(self._context.params) is not None
        return NotificationOptions(has_token, level if level in _LEVELS else None)

    def can_answer(self, method: str, params: Mapping[str, Any]) -> bool:
        """Whether it says that it can answer such a request of ours."""
        can = self._context.session.client_capabilities
        if can is None or not (self.is_modern or self._context.session.can_send_request):
            return False
        if method == "sampling/createMessage":
            return can.sampling is not None
        if method != "elicitation/create" or can.elicitation is None:
            return False
        return params.get("mode") != "url" or can.elicitation.url is not None

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Its answer to a request of ours; for hosts of the first generation.

        Raises:
            RpcError: it answers with an error, or is gone.
        """
        try:
            return await self._channel.send_raw_request(method, params)
        except MCPError as error:
            raise RpcError(error.error.code, error.error.message, error.error.data) from error

    async def progress(self, done: float | None, total: float | None = None, message: str = "") -> None:
        """How far it is, where it wants to know; without `done`, that there is news. It always goes forward."""
        least = 0.0 if self._progress is None else self._progress + _STEP
        self._progress = max(least, done or 0.0)
        await self._context.session.report_progress(self._progress, total, message or None)

    async def log(self, params: Mapping[str, Any]) -> None:
        """A line of a participant's log that belongs to this request, if it wants such."""
        allowed = allowed_log_levels(self._context.protocol_version, self._context.meta)
        if params.get("level") in allowed and is_wanted(connection_of(self._context), params):
            await self._channel.notify("notifications/message", params)

    @property
    def _channel(self) -> DispatchContext[Any]:
        return self._context.session._request_outbound


def connection_of(context: Context) -> Connection:
    """What outlives the request: the connection of the host, with a place for what is kept for it."""
    return context.session._connection


class Cancellations:
    """Why a host cancelled requests, by their ids: the notification comes after its effect."""

    def __init__(self) -> None:
        self.given: dict[str, str] = {}
        self._changed = asyncio.Event()

    def add(self, params: Mapping[str, Any] | None) -> None:
        request_id, reason = (params or {}).get("requestId"), (params or {}).get("reason")
        while len(self.given) >= _CANCELLATIONS_MAX:
            del self.given[next(iter(self.given))]
        self.given[str(request_id)] = reason if isinstance(reason, str) else ""
        self._changed.set()
        self._changed = asyncio.Event()

    async def changed(self) -> None:
        await self._changed.wait()


def cancellations_of(connection: Connection) -> Cancellations:
    found: Cancellations = connection.state.setdefault(_CANCELLATIONS, Cancellations())
    return found


def set_level(connection: Connection, level: str) -> None:
    """The least severe line of a log that a host of the first generation wants."""
    connection.state[_LEVEL] = level


def is_wanted(connection: Connection, line: Mapping[str, Any]) -> bool:
    """Whether a line is as severe as the host wants it; where it has not said, all are."""
    level, least = line.get("level"), connection.state.get(_LEVEL, _LEVELS[0])
    return level in _LEVELS and _LEVELS.index(level) >= _LEVELS.index(least)
