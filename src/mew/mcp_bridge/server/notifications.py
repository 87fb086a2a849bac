"""What is heard of a server: its questions go to `asking`, and its notifications to whom they concern."""

import logging
from collections.abc import Callable
from typing import Any, Final

from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY

from mew.client.client import Client
from mew.mcp_bridge.marks import unmarked
from mew.protocol.kinds import Kind

from .inflight import Errands
from .interests import Interests
from .notification_queue import Relay
from .server_requests import Asking

__all__ = ["Hearing"]

_log = logging.getLogger(__name__)

_PROGRESS_MAX: Final = 32
_LOG_MAX: Final = 256
_OTHERS_MAX: Final = 64
_LISTS: Final = ("tools", "resources", "prompts")
_LIST_CHANGED: Final = {f"notifications/{what}/list_changed": what for what in _LISTS}


class Hearing:
    """Until there is a space to tell, it tells nobody."""

    def __init__(
        self, errands: Errands, interests: Interests, relay: Relay, progress: Relay, asking: Asking
    ) -> None:
        self.client: Client | None = None
        self.acknowledged: Callable[[dict[str, Any]], None] = lambda _: None
        self.tools_changed: Callable[[], None] = lambda: None
        self._errands = errands
        self._interests = interests
        self._relay = relay
        self._progress = progress
        self._lacks: set[str] = set()
        self._asking = asking

    async def asked(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        return await self._asking.ask(method, params)

    def told(self, method: str, params: dict[str, Any]) -> None:
        match method:
            case "notifications/progress":
                self._progressed(params)
            case "notifications/message":
                self._logged(params)
            case "notifications/resources/updated":
                self._updated(params)
            case "notifications/subscriptions/acknowledged":
                self.acknowledged(params)
            case _ if method in _LIST_CHANGED:
                self.changed(_LIST_CHANGED[method])
            case _ if method.startswith("notifications/"):
                self._tell((method,), method, params, None, most=_OTHERS_MAX)

    def changed(self, what: str) -> None:
        """A list of the server's is not what it was: everyone is told, once for all that happens at a time."""
        if what == "tools":
            self.tools_changed()
        method = f"notifications/{what}/list_changed"
        self._tell((method,), method, {}, None)

    def _progressed(self, params: dict[str, Any]) -> None:
        token = params.get("progressToken")
        one = self._errands.of_token(token)
        if one is None or one.call is None:
            return
        one.moved()
        call, told = one.call, {**params, "progressToken": one.token}
        self._progress.put(token, lambda: call.tell("notifications/progress", told), most=_PROGRESS_MAX)

    def _logged(self, params: dict[str, Any]) -> None:
        callers = tuple(one.call.sender for one in self._errands.concerned() if one.call is not None)
        method = "notifications/message"
        for who in self._interests.listeners(params.get("level"), callers):
            self._tell((method, who), method, params, who, most=_LOG_MAX)

    def _updated(self, params: dict[str, Any]) -> None:
        uri = params.get("uri")
        if not isinstance(uri, str):
            return
        method = "notifications/resources/updated"
        for who in self._interests.subscribers(uri):
            self._tell((method, uri, who), method, params, who)

    def _tell(
        self, key: tuple[str, ...], method: str, params: dict[str, Any], to: str | None, *, most: int = 1
    ) -> None:
        """To somebody, or with None to everyone, where we may."""
        client, told = self.client, unmarked(_without_stream(params)) or None
        if client is None:
            return
        payload = {"jsonrpc": "2.0", "method": method, **({} if told is None else {"params": told})}
        if client.can_send(Kind.MCP_REQUEST, payload, to=() if to is None else to):
            self._relay.put(key, lambda: client.notify(to, method, told), most=most)
        elif method not in self._lacks and len(self._lacks) < _OTHERS_MAX:
            self._lacks.add(method)
            _log.warning("%s lacks the capability mcp/request:%s, so nobody is told", client.id, method)


def _without_stream(params: dict[str, Any]) -> dict[str, Any]:
    """The stream that a notification came on is between the server and us."""
    meta = params.get("_meta")
    if not isinstance(meta, dict) or SUBSCRIPTION_ID_META_KEY not in meta:
        return params
    rest = {name: value for name, value in meta.items() if name != SUBSCRIPTION_ID_META_KEY}
    told = {name: value for name, value in params.items() if name != "_meta"}
    return {**told, "_meta": rest} if rest else told
