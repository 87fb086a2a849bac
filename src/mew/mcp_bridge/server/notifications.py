"""Notifications of a server: routed to the participants they concern, through a rate-limited queue."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Final

from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY

from mew.client.client import Client
from mew.client.errors import MewError
from mew.gateway.room.rate_limit import RateLimiter
from mew.mcp_bridge.marks import unmarked
from mew.protocol.kinds import Kind

from .inflight import InflightRequests
from .server_requests import ServerRequests
from .subscriptions import NotificationInterests

__all__ = ["NotificationQueue", "ServerNotifications"]

_log = logging.getLogger(__name__)

Telling = Callable[[], Awaitable[object]]

_WAITING_MAX: Final = 4_096
_PER_SECOND: Final = 50.0
_BURST: Final = 200
_TELL_S: Final = 5.0


class NotificationQueue:
    """Bounded per key: when full, the newest replaces the last. A token bucket: 50 a second after a burst of 200."""

    def __init__(self) -> None:
        self._waiting: deque[_Waiting] = deque()
        self._by_key: dict[Hashable, deque[_Waiting]] = {}
        self._filled = asyncio.Event()
        self._limiter = RateLimiter(_PER_SECOND, _BURST)
        self._dropped = 0

    def put(self, key: Hashable, telling: Telling, *, most: int = 1) -> None:
        """Take something to tell, without waiting."""
        alike = self._by_key.get(key)
        if alike is not None and len(alike) >= most:
            alike[-1].telling = telling
            self._note_dropped()
            return
        if len(self._waiting) >= _WAITING_MAX:
            self._note_dropped()
            return
        waiting = _Waiting(key, telling)
        self._waiting.append(waiting)
        self._by_key.setdefault(key, deque()).append(waiting)
        self._filled.set()

    async def flush(self, key: Hashable, within_s: float) -> None:
        """Until what waits under a key now has been told, or that time is over."""
        alike = self._by_key.get(key)
        if not alike:
            return
        try:
            async with asyncio.timeout(within_s):
                await alike[-1].told.wait()
        except TimeoutError:
            pass

    async def run(self) -> None:
        """Tell, one after the other, for ever."""
        while True:
            await self._filled.wait()
            while self._waiting:
                await self._pace()
                waiting = self._waiting.popleft()
                try:
                    async with asyncio.timeout(_TELL_S):
                        await waiting.telling()
                except (MewError, TimeoutError) as error:
                    _log.debug("a notification was not passed on: %s", error)
                finally:
                    self._done(waiting)
            self._filled.clear()
            self._dropped = 0

    async def _pace(self) -> None:
        loop = asyncio.get_running_loop()
        if not self._limiter.take(loop.time()):
            await asyncio.sleep(self._limiter.wait_s)
            self._limiter.take(loop.time())

    def _done(self, waiting: "_Waiting") -> None:
        waiting.told.set()
        alike = self._by_key[waiting.key]
        alike.remove(waiting)
        if not alike:
            del self._by_key[waiting.key]

    def _note_dropped(self) -> None:
        self._dropped += 1
        if self._dropped == _BURST:
            _log.warning("the server tells more than can be passed on; some of it is left out")


class _Waiting:
    def __init__(self, key: Hashable, telling: Telling) -> None:
        self.key = key
        self.telling = telling
        self.told = asyncio.Event()


_PROGRESS_MAX: Final = 32
_LOG_MAX: Final = 256
_OTHERS_MAX: Final = 64
_LISTS: Final = ("tools", "resources", "prompts")
_LIST_CHANGED: Final = {f"notifications/{what}/list_changed": what for what in _LISTS}


class ServerNotifications:
    """Until there is a space to tell, it tells nobody."""

    def __init__(
        self,
        inflight: InflightRequests,
        interests: NotificationInterests,
        relay: NotificationQueue,
        progress: NotificationQueue,
        asking: ServerRequests,
    ) -> None:
        self.client: Client | None = None
        self.acknowledged: Callable[[dict[str, Any]], None] = lambda _: None
        self.tools_changed: Callable[[], None] = lambda: None
        self._inflight = inflight
        self._interests = interests
        self._relay = relay
        self._progress = progress
        self._lacks: set[str] = set()
        self._server_requests = asking

    async def asked(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        return await self._server_requests.ask(method, params)

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
        one = self._inflight.of_token(token)
        if one is None or one.call is None:
            return
        one.moved()
        call, told = one.call, {**params, "progressToken": one.token}
        self._progress.put(token, lambda: call.tell("notifications/progress", told), most=_PROGRESS_MAX)

    def _logged(self, params: dict[str, Any]) -> None:
        callers = tuple(one.call.sender for one in self._inflight.concerned() if one.call is not None)
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
