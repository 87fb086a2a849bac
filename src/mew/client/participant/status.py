"""How a participant is doing: `participant/status` (§3.9.3, §3.9.4)."""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from mew.client.connection.connection import ClientConnection
from mew.protocol.envelope import Envelope
from mew.protocol.json import encode_json
from mew.protocol.kinds import Kind, Status

from .memory import Memory, MemoryUsage
from .outbound import Outbound

__all__ = ["Metrics", "StatusReporter"]

_log = logging.getLogger(__name__)

Metrics = Callable[[], Awaitable[Mapping[str, Any]]]

_METRICS_S: Final = 5.0
_SNAKE_CASE: Final = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", re.ASCII)
_ALWAYS: Final = frozenset({"messages_in_context", "status"})


class StatusReporter:
    """Reports on a memory, and on what `metrics` adds to or puts in the place of what is known here."""

    def __init__(
        self, connection: ClientConnection, voice: Outbound, memory: Memory, metrics: Metrics
    ) -> None:
        self._outgoing = connection.session.outgoing
        self._voice = voice
        self._memory = memory
        self._metrics = metrics
        self._usage = MemoryUsage(0)
        self._is_silent = False

    @property
    def paused(self) -> bool:
        until_s = self._outgoing.paused_until
        return until_s is not None and asyncio.get_running_loop().time() < until_s

    def usage(self) -> MemoryUsage:
        """Of the memory; as it last was where it does not say."""
        try:
            self._usage = self._memory.usage()
        except Exception as error:
            if not self._is_silent:
                self._is_silent = True
                _log.error("the memory does not say how full it is", exc_info=error)
        return self._usage

    async def report(
        self,
        status: str | None = None,
        *,
        about: Envelope | None = None,
        fields: Iterable[str] | None = None,
        reason: str | None = None,
    ) -> bool:
        """Say how we are doing, to who asked or to everyone; whether that may be said.

        `status` is `active` or `paused` unless given. `fields` limits the metrics: `tokens` also gives `max_tokens`,
        `latency` also `latency_ms`.
        """
        known = await self._completed(self._known(status, reason))
        if status is not None:
            known["status"] = status
        if fields is not None:
            wanted = frozenset(fields)
            known = {name: value for name, value in known.items() if _is_wanted(name, wanted)}
        to, ids = ((), ()) if about is None else ((about.sender,), (about.id,))
        return self._voice.say(Kind.STATUS, known, to=to, about=ids) is not None

    def _known(self, status: str | None, reason: str | None) -> dict[str, Any]:
        usage = self.usage()
        known: dict[str, Any] = {
            "messages_in_context": max(0, usage.messages),
            "status": status or ("paused" if self.paused else "active"),
        }
        if usage.tokens is not None:
            known["tokens"] = max(0, usage.tokens)
        if usage.max_tokens is not None:
            known["max_tokens"] = max(0, usage.max_tokens)
        if usage.tokens is not None and usage.max_tokens is not None:
            known["headroom_tokens"] = max(0, usage.max_tokens - usage.tokens)
        if reason is not None:
            known["reason"] = reason
        return known

    async def _completed(self, known: dict[str, Any]) -> dict[str, Any]:
        """With the author's metrics, as far as they can be sent; without where they fail or take too long."""
        try:
            async with asyncio.timeout(_METRICS_S):
                added = dict(await self._metrics())
            encode_json(added)
            wrong = [name for name in added if not _SNAKE_CASE.fullmatch(name)]
            completed = known | {name: value for name, value in added.items() if name not in wrong}
            msgspec.convert(completed, Status)
        except Exception:
            _log.exception("the metrics of the status failed")
            return known
        if wrong:
            _log.warning("metrics must be named in snake_case (§3.9.4), so these are left out: %s", wrong)
        return completed


def _is_wanted(name: str, wanted: frozenset[str]) -> bool:
    if name in _ALWAYS or name in wanted or name.removeprefix("max_") in wanted:
        return True
    return any(name[:place] in wanted for place, letter in enumerate(name) if letter == "_")
