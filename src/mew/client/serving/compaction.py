"""Making room in a memory: because somebody asked (§3.9.6, §3.9.7), or because it is nearly full (§3.9.4, §3.9.5)."""

import asyncio
import logging
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from mew.client.wire.connection import Connection
from mew.protocol.envelope import Envelope
from mew.protocol.kinds import Kind

from .retention import Freed, Memory
from .telemetry import Telemetry
from .voice import Voice
from .work import Lane

__all__ = ["Compaction"]

_log = logging.getLogger(__name__)

_LOW: Final = 0.90  # so full, everyone is told
_FULL: Final = 0.95  # so full, it compacts by itself
_AGAIN: Final = 0.01  # by so much fuller, it tries again after it could not
_WAITING_MAX: Final = 64
_COMPACT_S: Final = 600.0

_NOTHING: Final = {"status": "skipped", "skipped": True, "reason": "there is nothing to compact"}
_BUSY: Final = {"status": "skipped", "skipped": True, "reason": "too many compactions are waiting"}


class Compaction:
    """One at a time. Each that was asked for is answered by `participant/compact-done`, whatever becomes of it."""

    def __init__(self, connection: Connection, voice: Voice, memory: Memory, telemetry: Telemetry) -> None:
        self._voice = voice
        self._memory = memory
        self._telemetry = telemetry
        self._lane = Lane(connection, waiting_max=_WAITING_MAX)
        self._telling = Lane(connection)
        self._open: list[_Asked] = []
        self._told_low = False
        self._tried_at_tokens: int | None = None

    def ask(self, envelope: Envelope, target_tokens: int | None) -> None:
        """Somebody wants it."""
        self._add(_Asked(envelope, target_tokens))

    def look(self) -> None:
        """Something was retained or dropped: see whether everyone should be told, and whether to make room."""
        usage = self._telemetry.usage()
        if usage.tokens is None or not usage.max_tokens:
            return
        tokens, share = usage.tokens, usage.tokens / usage.max_tokens
        is_low, self._told_low = share > _LOW and not self._told_low, share > _LOW
        if is_low:
            self._telling.offer(self._telemetry.report)
        if share <= _FULL:
            self._tried_at_tokens = None
        elif not self._open and self._may_try(tokens, usage.max_tokens):
            self._tried_at_tokens = tokens
            self._add(_Asked(None, usage.max_tokens // 2))

    def cancel(self, reason: str) -> None:
        """What is being compacted is about to go."""
        cancelled, self._open = self._open, []
        self._lane.drop()
        for asked in cancelled:
            self._answer(asked, {"status": "cancelled", "skipped": True, "reason": reason})

    def _may_try(self, tokens: int, max_tokens: int) -> bool:
        before = self._tried_at_tokens
        return before is None or tokens >= before + max_tokens * _AGAIN

    def _add(self, asked: "_Asked") -> None:
        self._open.append(asked)
        if not self._lane.offer(partial(self._carry_out, asked)):
            self._open.remove(asked)
            self._answer(asked, _BUSY)

    async def _carry_out(self, asked: "_Asked") -> None:
        await self._telemetry.report("compacting", about=asked.envelope)
        done = await self._compact(asked.target_tokens)
        if asked in self._open:
            self._open.remove(asked)
            self._answer(asked, done)
            await self._telemetry.report(done["status"], about=asked.envelope, reason=done.get("reason"))
            self.look()

    async def _compact(self, target_tokens: int | None) -> dict[str, Any]:
        try:
            async with asyncio.timeout(_COMPACT_S):
                freed = await self._memory.compact(target_tokens)
        except Exception as error:
            _log.exception("the memory could not be compacted")
            return {"status": "failed", "reason": f"the compaction failed: {type(error).__name__}"}
        return _NOTHING if freed is None else _freed(freed)

    def _answer(self, asked: "_Asked", done: dict[str, Any]) -> None:
        envelope = asked.envelope
        if envelope is not None:
            self._voice.say(Kind.COMPACT_DONE, done, to=(envelope.sender,), about=(envelope.id,))


@dataclass(frozen=True, eq=False)
class _Asked:
    """A compaction to be done; by itself, where there is no envelope that asks for it."""

    envelope: Envelope | None
    target_tokens: int | None


def _freed(freed: Freed) -> dict[str, Any]:
    done: dict[str, Any] = {"status": "compacted"}
    if freed.messages is not None:
        done["freed_messages"] = max(0, freed.messages)
    if freed.tokens is not None:
        done["freed_tokens"] = max(0, freed.tokens)
    return done
