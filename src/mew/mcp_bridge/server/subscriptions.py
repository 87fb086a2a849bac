"""What participants want to hear of a server, made known to it: in the words of its generation, and after a restart."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final, get_args

from mew.client.errors import RpcError
from mew.client.mcp.call import Level
from mew.protocol.visible import visible

from .change_stream import ChangeStream, Spawn
from .lifecycle import ServerLifecycle
from .link import LinkLost, ServerLink

__all__ = ["NotificationInterests", "ServerSubscriptions"]

_LEVELS: Final[tuple[Level, ...]] = get_args(Level)
_DEFAULT: Final = _LEVELS.index("info")
_INVALID_PARAMS: Final = -32602
_SUBSCRIPTIONS_MAX: Final = 1_024  # of one participant
_URI_CHARS_MAX: Final = 4_096


class NotificationInterests:
    """To the server we are one client: it hears of the first who wants something, and when nobody does any more."""

    def __init__(self) -> None:
        self._subscriptions: dict[str, dict[str, None]] = {}
        self._levels: dict[str, Level] = {}

    @property
    def uris(self) -> tuple[str, ...]:
        """All that anyone is subscribed to, each once."""
        return tuple({uri: None for uris in self._subscriptions.values() for uri in uris})

    @property
    def level(self) -> Level | None:
        """The least severe that anyone wants; None: nobody said."""
        return min(self._levels.values(), key=_LEVELS.index, default=None)

    def is_wanted(self, uri: str) -> bool:
        return any(uri in uris for uris in self._subscriptions.values())

    def subscribe(self, who: str, uri: str) -> None:
        self._subscriptions.setdefault(who, {})[uri] = None

    def unsubscribe(self, who: str, uri: str) -> None:
        uris = self._subscriptions.get(who, {})
        uris.pop(uri, None)
        if not uris:
            self._subscriptions.pop(who, None)

    def subscribers(self, uri: str) -> tuple[str, ...]:
        """Who wants to know of a change here; what is below a URI belongs to it, as a server may see it."""
        exact = tuple(who for who, uris in self._subscriptions.items() if uri in uris)
        return exact or tuple(
            who
            for who, uris in self._subscriptions.items()
            if any(uri.startswith(f"{above.rstrip('/')}/") for above in uris)
        )

    def listeners(self, level: Any, callers: tuple[str, ...]) -> tuple[str, ...]:
        """Who gets a line of the log: who said how severe it must be, and of the callers also who did not."""
        if level not in _LEVELS:
            return ()
        severity = _LEVELS.index(level)
        wanted = {who: _LEVELS.index(least) for who, least in self._levels.items()}
        return tuple(
            who
            for who in {**dict.fromkeys(wanted), **dict.fromkeys(callers)}
            if severity >= wanted.get(who, _DEFAULT)
        )

    def level_of(self, who: str) -> Level | None:
        return self._levels.get(who)

    def set_level(self, who: str, level: Level | None) -> None:
        if level is None:
            self._levels.pop(who, None)
        else:
            self._levels[who] = level

    def forget(self, who: str) -> tuple[str, ...]:
        """Somebody left. Returns the URIs that nobody wants any more."""
        self._levels.pop(who, None)
        left = self._subscriptions.pop(who, {})
        return tuple(uri for uri in left if not self.is_wanted(uri))

    def checked_uri(self, who: str, params: dict[str, Any]) -> str:
        """
        Raises:
            RpcError: no URI, too long a one, or too many.
        """
        uri = params.get("uri")
        if not isinstance(uri, str) or not uri:
            raise RpcError(_INVALID_PARAMS, "params: expected a `uri`")
        if len(uri) > _URI_CHARS_MAX:
            raise RpcError(_INVALID_PARAMS, f"a URI of more than {_URI_CHARS_MAX} characters")
        if len(self._subscriptions.get(who, ())) >= _SUBSCRIPTIONS_MAX:
            raise RpcError(_INVALID_PARAMS, f"more than {_SUBSCRIPTIONS_MAX} subscriptions")
        return uri

    def checked_level(self, params: dict[str, Any]) -> Level:
        """
        Raises:
            RpcError: no such level.
        """
        level = params.get("level")
        if level not in _LEVELS:
            raise RpcError(_INVALID_PARAMS, f"params: expected a `level`, one of {', '.join(_LEVELS)}")
        return _LEVELS[_LEVELS.index(level)]


_log = logging.getLogger(__name__)

_UNKNOWN_METHOD: Final = -32601
_RESTORE_S: Final = 30.0


class ServerSubscriptions:
    """To the server there is one client: it is asked once for what many want."""

    def __init__(self, interests: NotificationInterests, lifecycle: ServerLifecycle, spawn: Spawn) -> None:
        self._interests = interests
        self._lifecycle = lifecycle
        self._spawn = spawn
        self._changing = asyncio.Lock()
        self._listening: ChangeStream | None = None

    async def subscribe(self, who: str, params: dict[str, Any]) -> dict[str, Any]:
        """
        Raises:
            RpcError: the server does not want to, or is not there.
        """
        uri = self._interests.checked_uri(who, params)
        async with self._changing:
            result: dict[str, Any] = {}
            if not self._interests.is_wanted(uri):
                link = await self._lifecycle.reached()
                if link.terms.is_modern:
                    if uri in await self._listen((*self._interests.uris, uri)):
                        raise RpcError(_INVALID_PARAMS, "the server takes no subscription to this resource")
                else:
                    result = await self._lifecycle.request("resources/subscribe", params)
            self._interests.subscribe(who, uri)
            return result

    async def unsubscribe(self, who: str, params: dict[str, Any]) -> dict[str, Any]:
        """
        Raises:
            RpcError: as `subscribe`.
        """
        uri = params.get("uri")
        async with self._changing:
            if isinstance(uri, str):
                was_wanted = self._interests.is_wanted(uri)
                self._interests.unsubscribe(who, uri)
                if was_wanted and not self._interests.is_wanted(uri):
                    return await self._drop(uri, params)
            return {}

    async def set_level(self, who: str, params: dict[str, Any]) -> dict[str, Any]:
        """
        Raises:
            RpcError: no such level, or the server has no log to tell of.
        """
        level = self._interests.checked_level(params)
        async with self._changing:
            link = await self._lifecycle.reached()
            before = self._interests.level_of(who)
            self._interests.set_level(who, level)
            try:
                return await self._tell_level(link, params)
            except RpcError:
                self._interests.set_level(who, before)
                raise

    def forget(self, who: str) -> None:
        """Somebody left; what nobody else wants, the server need not tell any more."""
        level = self._interests.level
        unwanted = self._interests.forget(who)
        if unwanted or level != self._interests.level:
            self._spawn(self._forgotten(unwanted, level))

    def restart(self, link: ServerLink, missed: Callable[[], None]) -> None:
        """A new life of the server: nothing of the one before is known to it."""
        if self._listening is not None:
            self._listening.stop()
        self._listening = ChangeStream(link, self._spawn, missed) if link.terms.is_modern else None
        self._spawn(self._restore(link))

    def acknowledged(self, params: dict[str, Any]) -> None:
        if self._listening is not None:
            self._listening.acknowledged(params)

    async def _restore(self, link: ServerLink) -> None:
        async with self._changing:
            try:
                async with asyncio.timeout(_RESTORE_S):
                    if link.terms.is_modern:
                        await self._listen(self._interests.uris)
                        return
                    if self._interests.level is not None:
                        await self._again(link, "logging/setLevel", {"level": self._interests.level})
                    for uri in self._interests.uris:
                        await self._again(link, "resources/subscribe", {"uri": uri})
            except (RpcError, LinkLost, TimeoutError) as error:
                _log.warning(
                    "the server does not take what was subscribed to before: %s", visible(str(error))
                )

    async def _again(self, link: ServerLink, method: str, params: dict[str, Any]) -> None:
        try:
            await link.request(method, params)
        except RpcError as error:
            _log.warning("the server does not take %s any more: %s", method, visible(str(error)))

    async def _forgotten(self, unwanted: tuple[str, ...], level: Level | None) -> None:
        async with self._changing:
            link = self._lifecycle.link
            if link is None:
                return
            try:
                async with asyncio.timeout(_RESTORE_S):  # others wait for the lock
                    for uri in unwanted:
                        if not self._interests.is_wanted(uri):
                            await self._drop(uri, {"uri": uri})
                    if level != self._interests.level and self._interests.level is not None:
                        await self._tell_level(link, {"level": self._interests.level})
            except (RpcError, TimeoutError) as error:
                _log.debug("the server was not told what is not wanted any more: %s", visible(str(error)))

    async def _drop(self, uri: str, params: dict[str, Any]) -> dict[str, Any]:
        link = await self._lifecycle.reached()
        if link.terms.is_modern:
            await self._listen(self._interests.uris)
            return {}
        return await self._lifecycle.request("resources/unsubscribe", params)

    async def _listen(self, uris: tuple[str, ...]) -> frozenset[str]:
        assert self._listening is not None, "a server of the second generation that is not listened to"
        try:
            return await self._listening.want(uris)
        except LinkLost:
            raise self._lifecycle.absence() from None

    async def _tell_level(self, link: ServerLink, params: dict[str, Any]) -> dict[str, Any]:
        if link.terms.is_modern:
            if not link.terms.has("logging"):
                raise RpcError(_UNKNOWN_METHOD, "the server has no log to tell of")
            return {}  # it goes with each request
        return await self._lifecycle.request("logging/setLevel", {**params, "level": self._interests.level})
