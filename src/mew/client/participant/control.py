"""What a participant is told to do (§3.9): pause, compact, forget, clear, restart and shut down."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType, TracebackType
from typing import Any, Final, Self

from msgspec import UNSET

from mew.client.connection.connection import ClientConnection
from mew.client.mcp.call import run
from mew.protocol.envelope import Envelope
from mew.protocol.kinds import Compact, Forget, Kind, RequestStatus

from .memory import Freed, Memory, NoMemory, concerns
from .outbound import Outbound
from .status import Metrics, StatusReporter
from .worker_pool import Work, WorkerPool

__all__ = ["CONTROL_KINDS", "Compaction", "Control", "Hooks", "Override", "PauseClock"]


class PauseClock:
    """Beside `Outgoing`, which holds back what we send: until when, it says there."""

    def __init__(self, connection: ClientConnection, over: Callable[[Envelope], None]) -> None:
        self._outgoing = connection.session.outgoing
        self._over = over
        self._pause: Envelope | None = None
        self._timer: asyncio.TimerHandle | None = None

    def start(self, pause: Envelope) -> None:
        """This is the pause now, in the place of any before it."""
        self.stop()
        self._pause = pause
        self._wait()

    def stop(self) -> Envelope | None:
        """It was lifted; returns the pause that was, if there was one."""
        pause, self._pause = self._pause, None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        return pause

    def _wait(self) -> None:
        until_s = self._outgoing.paused_until
        if until_s is not None and until_s != float("inf"):
            self._timer = asyncio.get_running_loop().call_at(until_s, self._look)

    def _look(self) -> None:
        until_s = self._outgoing.paused_until
        if until_s is not None and asyncio.get_running_loop().time() < until_s:
            self._wait()  # the gateway has said that it goes on
            return
        pause = self.stop()
        if pause is not None:
            self._over(pause)


_log = logging.getLogger(__name__)

_LOW: Final = 0.90  # so full, everyone is told
_FULL: Final = 0.95  # so full, it compacts by itself
_AGAIN: Final = 0.01  # by so much fuller, it tries again after it could not
_COMPACTIONS_MAX: Final = 64
_COMPACT_S: Final = 600.0

_NOTHING: Final = {"status": "skipped", "skipped": True, "reason": "there is nothing to compact"}
_BUSY: Final = {"status": "skipped", "skipped": True, "reason": "too many compactions are waiting"}


class Compaction:
    """One at a time. Each that was asked for is answered by `participant/compact-done`, whatever becomes of it."""

    def __init__(
        self, connection: ClientConnection, voice: Outbound, memory: Memory, telemetry: StatusReporter
    ) -> None:
        self._voice = voice
        self._memory = memory
        self._telemetry = telemetry
        self._lane = WorkerPool(connection, waiting_max=_COMPACTIONS_MAX)
        self._telling = WorkerPool(connection)
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


_log = logging.getLogger(__name__)

Doing = Coroutine[Any, Any, None]
Override = Callable[[Envelope], Any]
"""Answers a control envelope in the author's way; async, or else run in a thread."""

_WAITING_MAX: Final = 256
_OVERRIDES_AT_ONCE: Final = 8
_RESTARTS_MAX: Final = 8
_GOODBYE_S: Final = 2.0
_CLOSED: Final = "the participant is leaving"


async def _nothing(*_: object) -> None:
    pass


async def _no_metrics() -> Mapping[str, Any]:
    return {}


@dataclass(frozen=True, kw_only=True)
class Hooks:
    """What control asks of a participant beside its memory."""

    paused: Callable[[Envelope], Doing] = _nothing
    resumed: Callable[[Envelope | None], Doing] = _nothing
    """With the envelope that resumed us; None where the time of the pause was over."""
    metrics: Metrics = _no_metrics
    stop: Callable[[str], Doing] = _nothing
    """End all work and streams, because of this; new work waits."""
    start: Callable[[], Doing] = _nothing
    """Begin again."""
    cease: Callable[[], None] = lambda: None
    """We were shut down: take up nothing more."""
    leave: Callable[[], None] = lambda: None
    """And that has been said."""


class Control:
    """An ordinary context: inside it, it listens. `overrides` are by kind, and replace what is done here."""

    def __init__(
        self,
        connection: ClientConnection,
        memory: Memory | None = None,
        hooks: Hooks | None = None,
        overrides: Mapping[str, Override] = MappingProxyType({}),
        *,
        voice: Outbound | None = None,
    ) -> None:
        self._connection = connection
        self._memory = NoMemory() if memory is None else memory
        self._hooks = Hooks() if hooks is None else hooks
        self._overrides = overrides
        self._voice = Outbound(connection) if voice is None else voice
        self._telemetry = StatusReporter(connection, self._voice, self._memory, self._hooks.metrics)
        self._compaction = Compaction(connection, self._voice, self._memory, self._telemetry)
        self._clock = PauseClock(connection, self._timed_out)
        self._reports = WorkerPool(connection, waiting_max=_WAITING_MAX)
        self._hooked = WorkerPool(connection, waiting_max=_WAITING_MAX)
        self._overriding = WorkerPool(connection, at_once=_OVERRIDES_AT_ONCE, waiting_max=_WAITING_MAX)
        self._lives = WorkerPool(connection, waiting_max=_RESTARTS_MAX)
        self._last = WorkerPool(connection)
        self._shut_down = False
        self._forgetful = False
        self._default: dict[str, Callable[[Envelope, Any], None]] = {
            Kind.PAUSE: self._pause,
            Kind.RESUME: self._resume,
            Kind.REQUEST_STATUS: self._request_status,
            Kind.FORGET: self._forget,
            Kind.COMPACT: self._compact,
            Kind.CLEAR: self._clear,
            Kind.RESTART: self._restart,
            Kind.SHUTDOWN: self._shutdown,
        }
        assert self._default.keys() == CONTROL_KINDS, "a kind without an answer"

    def __enter__(self) -> Self:
        self._connection.listen(self._listen)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.unlisten(self._listen)
        self._clock.stop()
        self._compaction.cancel(_CLOSED)
        for lane in (self._reports, self._hooked, self._overriding, self._lives, self._last):
            lane.drop()

    async def report(self) -> bool:
        """Show everyone how we are doing, where we may (§3.9.4)."""
        return await self._telemetry.report()

    def _listen(self, envelope: Envelope, payload: Any) -> None:
        me = self._connection.session.me
        if concerns(envelope, me):
            self._remember(envelope)
        if envelope.kind not in CONTROL_KINDS or me not in envelope.to or self._shut_down:
            return
        override = self._overrides.get(envelope.kind)
        if override is None:
            self._default[envelope.kind](envelope, payload)
        else:
            self._offer(self._overriding, envelope, partial(run, override, envelope))

    def _remember(self, envelope: Envelope) -> None:
        try:
            self._memory.remember(envelope)
        except Exception as error:
            if not self._forgetful:
                self._forgetful = True
                _log.error("the memory does not take envelopes", exc_info=error)
        self._compaction.look()

    def _offer(self, lane: WorkerPool, envelope: Envelope, work: Work) -> None:
        if not lane.offer(work, envelope):
            _log.warning("too much control at once: %s of %s is dropped", envelope.kind, envelope.sender)

    # Pause and resume.

    def _pause(self, envelope: Envelope, _payload: Any) -> None:
        self._clock.start(envelope)
        self._offer(self._hooked, envelope, partial(self._hooks.paused, envelope))

    def _resume(self, envelope: Envelope, _payload: Any) -> None:
        if self._clock.stop() is not None:
            self._offer(self._hooked, envelope, partial(self._hooks.resumed, envelope))

    def _timed_out(self, pause: Envelope) -> None:
        # To nobody: a resume lifts the pauses of those it is addressed to, and this one lifts only ours.
        self._voice.say(Kind.RESUME, {"reason": "timeout"}, about=(pause.id,))
        self._offer(self._hooked, pause, partial(self._hooks.resumed, None))

    # Status and memory.

    def _request_status(self, envelope: Envelope, asked: RequestStatus) -> None:
        fields = None if asked.fields is UNSET else asked.fields
        self._offer(self._reports, envelope, partial(self._telemetry.report, about=envelope, fields=fields))

    def _forget(self, envelope: Envelope, asked: Forget) -> None:
        entries = None if asked.entries is UNSET else asked.entries
        failed = self._failure("forget", lambda: self._memory.forget(asked.direction, entries))
        self._offer(self._reports, envelope, partial(self._confirm, envelope, failed))
        self._compaction.look()

    def _compact(self, envelope: Envelope, asked: Compact) -> None:
        self._compaction.ask(envelope, None if asked.target_tokens is UNSET else asked.target_tokens)

    def _clear(self, envelope: Envelope, _payload: Any) -> None:
        self._compaction.cancel("everything was cleared")
        failed = self._failure("clear", self._memory.clear)
        self._offer(self._reports, envelope, partial(self._confirm, envelope, failed))
        self._compaction.look()

    def _failure(self, what: str, work: Callable[[], None]) -> str | None:
        try:
            work()
        except Exception as error:
            _log.exception("the memory could not %s", what)
            return f"could not {what}: {type(error).__name__}"
        return None

    async def _confirm(self, envelope: Envelope, failed: str | None) -> None:
        """By a status, or by an acknowledgement where no status may be sent (§3.9.5)."""
        status = None if failed is None else "failed"
        if not await self._telemetry.report(status, about=envelope, reason=failed):
            self._acknowledge(envelope, failed or "done")

    def _acknowledge(self, envelope: Envelope, status: str) -> asyncio.Future[Envelope] | None:
        payload = {"status": status}
        return self._voice.say(Kind.CHAT_ACKNOWLEDGE, payload, to=(envelope.sender,), about=(envelope.id,))

    # Restart and shutdown.

    def _restart(self, envelope: Envelope, _payload: Any) -> None:
        self._compaction.cancel("the participant restarts")
        self._offer(self._lives, envelope, partial(self._start_again, envelope))

    async def _start_again(self, envelope: Envelope) -> None:
        """One that cannot start again leaves: it would be here and do nothing."""
        try:
            await self._hooks.stop("the participant was restarted")
            failed = self._failure("clear", self._memory.clear)
            await self._hooks.start()
        except Exception as error:
            _log.exception("the participant could not be restarted")
            await self._confirm(envelope, f"could not restart: {type(error).__name__}")
            self._hooks.leave()
        else:
            await self._confirm(envelope, failed)
            self._compaction.look()

    def _shutdown(self, envelope: Envelope, _payload: Any) -> None:
        self._shut_down = True
        self._hooks.cease()
        self._lives.drop()
        self._offer(self._last, envelope, partial(self._say_goodbye, envelope))

    async def _say_goodbye(self, envelope: Envelope) -> None:
        """After this the gateway shows that we have left, which says it too (§3.9.10)."""
        try:
            if self._acknowledge(envelope, "shutting_down") is None:
                await self._telemetry.report("shutting_down", about=envelope)
            await self._voice.flush(_GOODBYE_S)
        finally:
            self._hooks.leave()


CONTROL_KINDS: Final = frozenset(
    {
        Kind.PAUSE,
        Kind.RESUME,
        Kind.REQUEST_STATUS,
        Kind.FORGET,
        Kind.COMPACT,
        Kind.CLEAR,
        Kind.RESTART,
        Kind.SHUTDOWN,
    }
)
