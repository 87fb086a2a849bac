"""Change notifications of a 2026-07-28 server: one `subscriptions/listen` stream, reopened when interests change."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final

from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY

from mew.client.errors import RpcError
from mew.protocol.visible import visible

from .inflight import current_request
from .link import LinkLost, ServerLink

__all__ = ["ChangeStream", "Spawn"]

_log = logging.getLogger(__name__)

Spawn = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
"""Lets something run beside, as long as the bridge does."""

_ACK_S: Final = 10.0
_DELAY_S: Final = 0.25
_DELAY_S_MAX: Final = 60.0
_HEALTHY_S: Final = 60.0
"""A stream that was open so long is opened again without much ado."""
_INVALID_PARAMS: Final = -32602


class ChangeStream:
    """For one life of a server. A stream that breaks is opened again, and then `missed` is called."""

    def __init__(self, link: ServerLink, spawn: Spawn, missed: Callable[[], None]) -> None:
        self._link = link
        self._spawn = spawn
        self._missed = missed
        self._changing = asyncio.Lock()
        self._uris: tuple[str, ...] = ()
        self._number = 0
        self._delay_s = _DELAY_S
        self._stream: asyncio.Task[None] | None = None
        self._acknowledged: dict[str, asyncio.Future[dict[str, Any]]] = {}

    async def want(self, uris: tuple[str, ...]) -> frozenset[str]:
        """Hear of changes to these resources, and of those to the lists that the server tells of.

        Returns the resources of which the server tells nothing.

        Raises:
            RpcError: the server does not want to.
            Lost: it is over.
        """
        async with self._changing:
            wanted = self._filter(uris)
            refused: frozenset[str] = frozenset()
            before = self._stream
            if wanted:
                self._stream, honoured = await self._opened(wanted)
                refused = frozenset(uris) - frozenset(honoured.get("resourceSubscriptions") or ())
            self._uris = uris
            if before is not None:
                before.cancel()
            return refused

    def acknowledged(self, params: dict[str, Any]) -> None:
        meta = params.get("_meta")
        stream_id = meta.get(SUBSCRIPTION_ID_META_KEY) if isinstance(meta, dict) else None
        waiting = self._acknowledged.get(stream_id) if isinstance(stream_id, str) else None
        if waiting is not None and not waiting.done():
            honoured = params.get("notifications")
            waiting.set_result(honoured if isinstance(honoured, dict) else {})

    def stop(self) -> None:
        if self._stream is not None:
            self._stream.cancel()

    def _filter(self, uris: tuple[str, ...]) -> dict[str, Any]:
        lists = {
            f"{what}ListChanged": True
            for what in ("tools", "prompts", "resources")
            if self._link.terms.has(what, "listChanged")
        }
        return {**lists, **({"resourceSubscriptions": list(uris)} if uris else {})}

    async def _opened(self, wanted: dict[str, Any]) -> tuple[asyncio.Task[None], dict[str, Any]]:
        """The stream, and what the server takes of it."""
        self._number += 1
        stream_id = f"mew-listen-{self._number}"
        acknowledged: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._acknowledged[stream_id] = acknowledged
        stream = self._spawn(self._listen(stream_id, wanted))
        try:
            async with asyncio.timeout(_ACK_S):
                await asyncio.wait((acknowledged, stream), return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError:
            stream.cancel()
            raise RpcError(_INVALID_PARAMS, "the server does not acknowledge the subscription") from None
        finally:
            del self._acknowledged[stream_id]
        if not acknowledged.done():
            acknowledged.cancel()
            raise RpcError(_INVALID_PARAMS, "the server does not take the subscription")
        return stream, acknowledged.result()

    async def _listen(self, stream_id: str, wanted: dict[str, Any]) -> None:
        """Until the stream ends; one that was acknowledged is then opened again, unless that was us."""
        current_request.set(None)
        now_s = asyncio.get_running_loop().time
        begun_s = now_s()
        try:
            await self._link.request("subscriptions/listen", {"notifications": wanted}, request_id=stream_id)
        except RpcError as error:
            _log.debug("the stream of changes ended: %s", visible(str(error)))
        except LinkLost:
            return
        if stream_id not in self._acknowledged:
            if now_s() - begun_s > _HEALTHY_S:
                self._delay_s = _DELAY_S
            self._spawn(self._again())

    async def _again(self) -> None:
        while not self._link.ended.is_set():
            await asyncio.sleep(self._delay_s)
            self._delay_s = min(2 * self._delay_s, _DELAY_S_MAX)
            try:
                await self.want(self._uris)
                self._missed()
                return
            except (RpcError, LinkLost) as error:
                _log.debug("the stream of changes cannot be opened again: %s", visible(str(error)))
