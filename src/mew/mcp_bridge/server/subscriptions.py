"""What participants want to hear of a server, made known to it: in the words of its generation, and after a restart."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final

from mew.client.errors import RpcError
from mew.client.mcp.call import Level
from mew.protocol.visible import visible

from .change_stream import Listening, Spawn
from .interests import Interests
from .lifecycle import Keeper
from .link import Link, Lost

__all__ = ["Subscriptions"]

_log = logging.getLogger(__name__)

_UNKNOWN_METHOD: Final = -32601
_INVALID_PARAMS: Final = -32602
_RESTORE_S: Final = 30.0


class Subscriptions:
    """To the server there is one client: it is asked once for what many want."""

    def __init__(self, interests: Interests, keeper: Keeper, spawn: Spawn) -> None:
        self._interests = interests
        self._keeper = keeper
        self._spawn = spawn
        self._changing = asyncio.Lock()
        self._listening: Listening | None = None

    async def subscribe(self, who: str, params: dict[str, Any]) -> dict[str, Any]:
        """
        Raises:
            RpcError: the server does not want to, or is not there.
        """
        uri = self._interests.checked_uri(who, params)
        async with self._changing:
            result: dict[str, Any] = {}
            if not self._interests.is_wanted(uri):
                link = await self._keeper.reached()
                if link.terms.is_modern:
                    if uri in await self._listen((*self._interests.uris, uri)):
                        raise RpcError(_INVALID_PARAMS, "the server takes no subscription to this resource")
                else:
                    result = await self._keeper.request("resources/subscribe", params)
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
            link = await self._keeper.reached()
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

    def restart(self, link: Link, missed: Callable[[], None]) -> None:
        """A new life of the server: nothing of the one before is known to it."""
        if self._listening is not None:
            self._listening.stop()
        self._listening = Listening(link, self._spawn, missed) if link.terms.is_modern else None
        self._spawn(self._restore(link))

    def acknowledged(self, params: dict[str, Any]) -> None:
        if self._listening is not None:
            self._listening.acknowledged(params)

    async def _restore(self, link: Link) -> None:
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
            except (RpcError, Lost, TimeoutError) as error:
                _log.warning(
                    "the server does not take what was subscribed to before: %s", visible(str(error))
                )

    async def _again(self, link: Link, method: str, params: dict[str, Any]) -> None:
        try:
            await link.request(method, params)
        except RpcError as error:
            _log.warning("the server does not take %s any more: %s", method, visible(str(error)))

    async def _forgotten(self, unwanted: tuple[str, ...], level: Level | None) -> None:
        async with self._changing:
            link = self._keeper.link
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
        link = await self._keeper.reached()
        if link.terms.is_modern:
            await self._listen(self._interests.uris)
            return {}
        return await self._keeper.request("resources/unsubscribe", params)

    async def _listen(self, uris: tuple[str, ...]) -> frozenset[str]:
        assert self._listening is not None, "a server of the second generation that is not listened to"
        try:
            return await self._listening.want(uris)
        except Lost:
            raise self._keeper.absence() from None

    async def _tell_level(self, link: Link, params: dict[str, Any]) -> dict[str, Any]:
        if link.terms.is_modern:
            if not link.terms.has("logging"):
                raise RpcError(_UNKNOWN_METHOD, "the server has no log to tell of")
            return {}  # it goes with each request
        return await self._keeper.request("logging/setLevel", {**params, "level": self._interests.level})
