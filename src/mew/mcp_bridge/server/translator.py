"""Forward requests of the space to a server, and its answers back, as raw JSON (decision 0010)."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from mcp.shared.jsonrpc_dispatcher import progress_token_from_params
from mcp_types import HEADER_MISMATCH, LOG_LEVEL_META_KEY

from mew.client.errors import RpcError
from mew.client.mcp.call import (
    HANDSHAKE_VERSIONS,
    SERVER_INFO,
    VERSIONS,
    Call,
    CallCancelled,
    answered,
    is_stateless,
)
from mew.mcp_bridge.marks import unmarked

from .errors import failure
from .handshake import HandshakeResult
from .inflight import InflightRequest, InflightRequests
from .lifecycle import ServerLifecycle
from .notifications import NotificationQueue
from .server_requests import ServerRequests
from .subscriptions import NotificationInterests, ServerSubscriptions
from .tool_fingerprints import ToolFingerprints

__all__ = ["Translator"]

_UNKNOWN_METHOD: Final = -32601
_INVALID_PARAMS: Final = -32602
_ROUNDS_MAX: Final = 10
_STATE_ONLY_S: Final = 0.05
_STATE_ONLY_S_MAX: Final = 0.25
_FLUSH_S: Final = 1.0
_PAGES_MAX: Final = 100
_LISTS: Final = ("tools", "resources", "prompts")
# What is agreed between a server and its own client, and has no meaning beyond that.
_NOT_OURS_TO_GIVE: Final = frozenset({"extensions"})

Answering = Callable[[dict[str, Any], Call], Awaitable[dict[str, Any]]]


class Translator:
    """The port `Answerer`, for one server across its restarts."""

    def __init__(
        self,
        lifecycle: ServerLifecycle,
        inflight: InflightRequests,
        interests: NotificationInterests,
        subscriptions: ServerSubscriptions,
        progress: NotificationQueue,
        asking: ServerRequests,
        fingerprints: ToolFingerprints,
        *,
        timeout_s: float,
    ) -> None:
        self._lifecycle = lifecycle
        self._inflight = inflight
        self._interests = interests
        self._subscriptions = subscriptions
        self._progress = progress
        self._server_requests = asking
        self._fingerprints = fingerprints
        self._timeout_s = timeout_s
        self._own: dict[str, Answering] = {
            "initialize": self._initialize,
            "ping": self._ping,
            "server/discover": self._discover,
            "subscriptions/listen": self._listen,
            "resources/subscribe": lambda params, call: self._subscriptions.subscribe(call.sender, params),
            "resources/unsubscribe": lambda params, call: self._subscriptions.unsubscribe(
                call.sender, params
            ),
            "logging/setLevel": lambda params, call: self._subscriptions.set_level(call.sender, params),
        }

    async def answer(self, method: str, params: dict[str, Any], call: Call) -> dict[str, Any]:
        one = InflightRequest(call, timeout_s=self._timeout_s)
        one.token = progress_token_from_params(params)
        try:
            async with asyncio.timeout(self._timeout_s) as scope:
                with one.within(scope), self._inflight.under_way(one) as token:
                    own = self._own.get(method)
                    if own is not None:
                        return await own(params, call)
                    is_modern = is_stateless(params)
                    result = unmarked(await self._forward(method, self._outbound(params, one, token)))
                    await self._progress.flush(token, _FLUSH_S)
        except (TimeoutError, RpcError) as error:
            if call.cancelled:
                raise CallCancelled from None
            if isinstance(error, RpcError):
                raise
            raise failure(
                "server_timeout", f"the server did not answer {method} within {self._timeout_s:g} s"
            ) from None
        finally:
            call.close()
        if call.cancelled:
            raise CallCancelled
        return answered(method, result) if is_modern else result

    def notice(self, method: str, params: dict[str, Any], sender: str) -> None:
        """Others than cancellations concern the client of a server, and that is the bridge."""
        if method == "notifications/cancelled":
            self._inflight.cancel(sender, params.get("requestId"))

    def forget(self, sender: str) -> None:
        self._subscriptions.forget(sender)

    async def survey(self) -> list[dict[str, Any]]:
        """Return all tools: those that are new are remembered as they are, those that changed are said.

        Raises:
            RpcError: the server does not list them.
        """
        params: dict[str, Any] = {}
        found: list[dict[str, Any]] = []
        for _ in range(_PAGES_MAX):
            page = await self._listed(await self._lifecycle.request("tools/list", params))
            found += [tool for tool in page.get("tools", ()) if isinstance(tool, dict) and "name" in tool]
            cursor = page.get("nextCursor")
            if cursor is None or cursor == params.get("cursor"):
                break
            params = {"cursor": cursor}
        return found

    # What the server is asked.

    def _outbound(self, params: dict[str, Any], one: InflightRequest, token: str) -> dict[str, Any]:
        """The same, and what is between us and the server: a token that is nobody else's, and a level of the log."""
        if not isinstance(params.get("_meta"), dict | None):
            raise RpcError(_INVALID_PARAMS, "params: expected `_meta` to be an object")
        meta: dict[str, Any] = dict(params.get("_meta") or {})
        if one.token is not None:
            meta["progressToken"] = token
        link, call = self._lifecycle.link, one.call
        if link is not None and link.terms.is_modern and call is not None:
            level = self._interests.level_of(call.sender)
            if level is not None:
                meta.setdefault(LOG_LEVEL_META_KEY, level)
        return {**params, "_meta": meta} if meta else params

    async def _forward(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Until the server has all it needs: it is asked again with the answers, as 2026-07-28 has it."""
        result = await self._sent(method, params)
        rounds, delay_s = 0, _STATE_ONLY_S
        while self._needs_more(result):
            rounds += 1
            if rounds > _ROUNDS_MAX:
                raise failure(
                    "question_unanswered", f"the server asked for more input than {_ROUNDS_MAX} times"
                )
            answers: dict[str, Any] = {}
            asked = result.get("inputRequests")
            if isinstance(asked, dict) and asked:
                answers = {"inputResponses": await self._server_requests.ask_all(asked)}
            else:
                await asyncio.sleep(delay_s)
                delay_s = min(2 * delay_s, _STATE_ONLY_S_MAX)
            state = {} if "requestState" not in result else {"requestState": result["requestState"]}
            result = await self._sent(method, {**params, **answers, **state})
        return await self._listed(result) if method == "tools/list" else result

    async def _sent(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        try:
            return await self._lifecycle.request(method, params)
        except RpcError as error:
            if error.code != HEADER_MISMATCH or method != "tools/call":
                raise
            await self.survey()  # which arguments travel as headers may have changed
            return await self._lifecycle.request(method, params)

    def _needs_more(self, result: dict[str, Any]) -> bool:
        """Also of one that has died since: what it said is not yet a result."""
        link = self._lifecycle.link
        return result.get("resultType") == "input_required" and (link is None or link.terms.is_modern)

    async def _listed(self, page: dict[str, Any]) -> dict[str, Any]:
        tools = page.get("tools")
        if not isinstance(tools, list):
            return page
        if self._lifecycle.link is not None:
            tools = self._lifecycle.link.learn(tools)
        marked, has_news = self._fingerprints.mark(
            [unmarked(tool) if isinstance(tool, dict) else tool for tool in tools]
        )
        if has_news:
            await self._fingerprints.save()
        return {**page, "tools": marked}

    # What the bridge answers itself.

    async def _initialize(self, params: dict[str, Any], _call: Call) -> dict[str, Any]:
        terms = (await self._lifecycle.reached()).terms
        asked = params.get("protocolVersion")
        version = asked if asked in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
        return {"protocolVersion": version, "serverInfo": terms.server, **_abilities(terms)}

    async def _discover(self, _params: dict[str, Any], _call: Call) -> dict[str, Any]:
        terms = (await self._lifecycle.reached()).terms
        found = {"supportedVersions": list(VERSIONS), "_meta": {SERVER_INFO: terms.server}}
        return answered("server/discover", {**found, **_abilities(terms)})

    async def _ping(self, _params: dict[str, Any], _call: Call) -> dict[str, Any]:
        return {}

    async def _listen(self, _params: dict[str, Any], _call: Call) -> dict[str, Any]:
        raise RpcError(_UNKNOWN_METHOD, "in a space, changes are heard of with resources/subscribe")


def _abilities(terms: HandshakeResult) -> dict[str, Any]:
    """A list may change even where the server says it never does: after a restart it may be another."""
    offered = {name: value for name, value in terms.capabilities.items() if name not in _NOT_OURS_TO_GIVE}
    for what in _LISTS:
        if isinstance(offered.get(what), dict):
            offered[what] = {**offered[what], "listChanged": True}
    said = {} if terms.instructions is None else {"instructions": terms.instructions}
    return {"capabilities": offered, **said}
