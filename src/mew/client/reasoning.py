"""Reasoning that everyone can follow (§3.5): one's own sequence as a block, and who is reasoning now."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final, Literal, Protocol, Self

from msgspec import UNSET

from mew.proposals.bounded import oldest_of_the_greediest
from mew.protocol.envelope import Envelope, EnvelopeId, ParticipantId
from mew.protocol.json import encode_json
from mew.protocol.kinds import Chat, Kind, Presence, ReasonPayload, Welcome
from mew.protocol.kinds import ReasoningPayload as Message
from mew.protocol.visible import cut

from .connection.connection import ClientConnection
from .errors import MewError, Refused, StreamBroken

__all__ = ["ActiveReasoning", "ReasoningBlock", "ReasoningMonitor", "ThoughtStream", "is_about"]

_LAST_WORDS_S: Final = 1.0  # for the cancellation of a sequence that failed to be accepted


class ThoughtStream(Protocol):
    """What may carry thoughts instead of envelopes (§3.10.1); `mew.client.streams.stream.Stream` is one."""

    @property
    def id(self) -> str: ...

    async def write(self, data: bytes | str, /) -> None: ...

    async def close(self, reason: str, /) -> None: ...


class ReasoningBlock:
    """A sequence of thoughts, as an async context: `reasoning/start` when entered.

        async with Reasoning(connection, "Which file?", about=request) as r:
            await r.thought("It is YAML, so ...")
            await r.conclude("config.yaml")

    A `reasoning/cancel` of this sequence, whoever sends it, cancels the block where it waits. That is not an error of
    the block: execution goes on after it, with `cancelled` true and `cancelled_by` and `cancel_reason` saying more.
    Only the task that entered is cancelled, so work in tasks of its own belongs in a `TaskGroup` within the block.

    An exception that leaves the block, or a cancellation that comes from elsewhere, goes on, after a `reasoning/cancel`
    of our own with reason `error` or `cancelled`. Where the block ends well without `conclude`, `conclusion` is sent if
    it is set, and nothing otherwise: a conclusion is optional (§3.5.1).
    """

    def __init__(
        self,
        connection: ClientConnection,
        message: str,
        *,
        about: Envelope | str | None = None,
        context: "ReasoningBlock | str | None" = None,
        stream: ThoughtStream | None = None,
        open_stream: Callable[[], Awaitable[ThoughtStream]] | None = None,
    ) -> None:
        """`about`: what it answers. `context`: of which reasoning it is a part.

        Thoughts go to `stream` where one is given, or to one that `open_stream` opens for them and that is closed in
        the end: as JSON lines with `ts` and `message`. The start names it in `stream_id`. Should it break, they go on
        as envelopes.
        """
        assert stream is None or open_stream is None, "either a stream or a way to open one"
        self.id = EnvelopeId("")
        """Of the `reasoning/start`; empty until then."""
        self.context = ""
        """What the envelopes of this sequence carry as `context`: a path, where it is part of another."""
        self.message = message
        self.conclusion: str | None = None
        """What was concluded; set it to conclude when the block ends."""
        self.cancelled_by: ParticipantId | None = None
        self.cancel_reason: str | None = None
        self._connection = connection
        self._about = () if about is None else (about.id if isinstance(about, Envelope) else about,)
        self._parent = context.context if isinstance(context, ReasoningBlock) else context
        self._stream, self._open_stream, self._broken = stream, open_stream, False
        self._state: Literal["new", "open", "concluded", "left"] = "new"
        self._conclusion_id: str | None = None
        self._task: asyncio.Task[Any] | None = None
        self._cancels_before = 0

    @property
    def cancelled(self) -> bool:
        """Whether somebody stopped it."""
        return self.cancelled_by is not None

    async def thought(self, message: str) -> None:
        """Share a step (§3.5.3).

        Raises:
            RuntimeError: it is concluded, or the block was left.
            asyncio.CancelledError: somebody has cancelled it; nothing is sent (§3.5.5).
            Refused: the gateway said no.
        """
        self._check_open()
        if self._stream is not None and not self._broken:
            line = encode_json({"ts": datetime.now(UTC), "message": message}) + b"\n"
            try:
                await self._stream.write(line.decode())
                return
            except StreamBroken:
                self._broken = True
        await self._send(Kind.REASONING_THOUGHT, Message(message=message))

    async def chat(
        self, text: str, *, to: Sequence[str] = (), format: Literal["plain", "markdown"] = "plain"
    ) -> Envelope:
        """Say something within this sequence, for a dialogue with others (§3.5.1); raises as `thought` does."""
        self._check_open()
        return await self._send(Kind.CHAT, Chat(text=text, format=format), to=to)

    async def conclude(self, message: str) -> Envelope:
        """End the sequence with what was found (§3.5.4); raises as `thought` does. The block may go on."""
        self._check_open()
        return await self._conclude(message)

    async def __aenter__(self) -> Self:
        """Show that it begins.

        Raises:
            Refused: the gateway said no.
        """
        if self._state != "new":
            raise RuntimeError("a reasoning is entered once")
        task = asyncio.current_task()
        assert task is not None, "entered outside of a task"
        self._task, self._cancels_before = task, task.cancelling()
        if self._open_stream is not None:
            self._stream = await self._open_stream()
        connection, start = self._connection, self._start()
        connection.listen(self._listen)
        try:
            await connection.send(start)
        except BaseException as error:
            connection.unlisten(self._listen)
            if isinstance(error, asyncio.CancelledError):  # it may be on the wire already
                connection.post(self._cancellation("cancelled"))
            await self._close_stream("error" if isinstance(error, Exception) else "cancelled")
            raise
        self._state = "open"
        if self.cancelled:  # before it had begun
            task.cancel()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self._connection.unlisten(self._listen)
        was_open, self._state = self._state == "open", "left"
        stopped = self.cancelled or not isinstance(error, Exception | None)
        reason = "cancelled" if stopped else "complete" if error is None else "error"
        try:
            if self.cancelled:
                return await self._uncancel(error)
            if was_open and error is not None:
                await self._say_last(self._cancellation(reason))
            elif was_open and self.conclusion is not None:
                await self._conclude(self.conclusion)
            return False
        finally:
            await self._close_stream(reason)

    def _start(self) -> Envelope:
        payload = {"message": self.message}
        if self._stream is not None:
            payload["stream_id"] = self._stream.id
        start = self._connection.compose(
            Kind.REASONING_START, payload, correlation_id=self._about, context=self._parent
        )
        self.id = EnvelopeId(start.id)
        self.context = start.id if self._parent is None else f"{self._parent}/{start.id}"
        return start

    def _listen(self, envelope: Envelope, payload: Any) -> None:
        if envelope.id == self._conclusion_id and envelope.sender == self._connection.session.me:
            self._state = "concluded"  # what comes later in the order is too late
        elif (
            envelope.kind == Kind.REASONING_CANCEL
            and is_about(envelope, self.id)
            and not (self.cancelled or self._state == "concluded")
        ):
            self.cancelled_by = ParticipantId(envelope.sender)
            self.cancel_reason = None if payload.reason is UNSET else payload.reason
            if self._state == "open":
                assert self._task is not None, "open, and nobody entered"
                self._task.cancel()

    async def _uncancel(self, error: BaseException | None) -> bool:
        """Take back our cancellation of the task; whether to swallow what leaves the block.

        As `asyncio.timeout` does: another's cancellation of the same task goes on. Where ours has not reached the
        task yet, it would strike whatever is awaited next; so it is let to strike here.
        """
        assert self._task is not None, "cancelled, and nobody entered"
        struck = False
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            struck = True
        alone = self._task.uncancel() <= self._cancels_before
        if struck and error is None and not alone:
            raise asyncio.CancelledError
        return alone and isinstance(error, asyncio.CancelledError)

    def _check_open(self) -> None:
        if self._state == "open" and not self.cancelled:
            if self._conclusion_id is None:
                return
            raise RuntimeError("this reasoning is concluded")
        if self._state == "open":
            raise asyncio.CancelledError(f"{self.cancelled_by} cancelled this reasoning")
        raise RuntimeError(f"this reasoning is {self._state}")

    async def _conclude(self, message: str) -> Envelope:
        envelope = self._compose(Kind.REASONING_CONCLUSION, Message(message=message))
        self._conclusion_id = envelope.id
        try:
            await self._connection.send(envelope)
        except Refused:
            self._conclusion_id = None
            raise
        self.conclusion = message
        return envelope

    def _compose(self, kind: str, payload: Any, *, to: Sequence[str] = ()) -> Envelope:
        return self._connection.compose(kind, payload, to=to, context=self.context)

    async def _send(self, kind: str, payload: Any, *, to: Sequence[str] = ()) -> Envelope:
        return await self._connection.send(self._compose(kind, payload, to=to))

    def _cancellation(self, reason: str) -> Envelope:
        return self._connection.compose(
            Kind.REASONING_CANCEL,
            ReasonPayload(reason=reason),
            correlation_id=self._about,
            context=self.context,
        )

    async def _say_last(self, envelope: Envelope) -> None:
        """The block has failed: see that others hear of it, without another failure or a long wait."""
        said = self._connection.post(envelope)
        if self._connection.connected:
            await asyncio.wait([said], timeout=_LAST_WORDS_S)

    async def _close_stream(self, reason: str) -> None:
        if self._open_stream is None or self._stream is None:
            return
        with suppress(MewError, TimeoutError):  # the gateway closes it when we are gone
            async with asyncio.timeout(_LAST_WORDS_S):
                await self._stream.close(reason)


def is_about(envelope: Envelope, start_id: str) -> bool:
    """Whether an envelope belongs to what this `reasoning/start` began: its context ends in that id (§3.5.6).

    One without a context may name it in `correlation_id` instead.
    """
    context = envelope.context
    if context is UNSET:
        return start_id in envelope.correlation_id
    return context == start_id or context.endswith(f"/{start_id}")


_ACTIVE_MAX: Final = 1_024
_MESSAGE_CHARS_MAX: Final = 2_000
_ABOUT_MAX: Final = 16
_ID_CHARS_MAX: Final = 256
_ENDS: Final = frozenset({Kind.REASONING_CONCLUSION, Kind.REASONING_CANCEL})
_HEARD: Final = _ENDS | {Kind.REASONING_START, Kind.MCP_RESPONSE, Kind.PRESENCE, Kind.WELCOME}


@dataclass(frozen=True)
class ActiveReasoning:
    """A sequence that has begun and, as far as anyone said, goes on."""

    id: EnvelopeId
    """Of its `reasoning/start`."""
    by: ParticipantId
    context: str
    """Of the envelopes in it."""
    message: str
    about: tuple[EnvelopeId, ...]
    """What it answers: the first 16 that it names."""
    stream_id: str | None
    """Of the stream that carries its thoughts, where one does."""


class ReasoningMonitor:
    """The sequences that are active: started, and neither concluded nor cancelled.

    As a conclusion is optional, one is over too when its author has left or answered what it was about, and with the
    one of which it is a part.
    """

    def __init__(self, connection: ClientConnection) -> None:
        """From here on, those that start are known."""
        self._connection = connection
        self._active: dict[EnvelopeId, ActiveReasoning] = {}
        connection.listen(self._listen, _HEARD)

    @property
    def active(self) -> tuple[ActiveReasoning, ...]:
        """Everyone's, oldest first."""
        return tuple(self._active.values())

    @property
    def of_others(self) -> tuple[ActiveReasoning, ...]:
        me = self._connection.session.me
        return tuple(active for active in self._active.values() if active.by != me)

    async def cancel(self, start_id: str, reason: str = "cancelled") -> Envelope:
        """Stop a sequence; its author is told, whether or not it is known to be active here.

        Raises:
            Refused: the gateway said no.
        """
        connection, known = self._connection, self._active.get(EnvelopeId(start_id))
        return await connection.send(
            connection.compose(
                Kind.REASONING_CANCEL,
                ReasonPayload(reason=reason),
                to=() if known is None else (known.by,),
                correlation_id=() if known is None else known.about,
                context=start_id if known is None else known.context,
            )
        )

    def _listen(self, envelope: Envelope, payload: Any) -> None:
        kind = envelope.kind
        if kind == Kind.REASONING_START:
            self._started(envelope)
        elif kind in _ENDS:
            self._ended(envelope)
        elif kind == Kind.MCP_RESPONSE:
            answered = set(envelope.correlation_id)
            self._drop(lambda one: one.by == envelope.sender and not answered.isdisjoint(one.about))
        elif isinstance(payload, Presence | Welcome):
            here = self._connection.session.roster
            self._drop(lambda one: one.by not in here)

    def _started(self, envelope: Envelope) -> None:
        start_id, said = EnvelopeId(envelope.id), envelope.content
        stream_id, message = said.get("stream_id"), str(said.get("message", ""))
        self._active[start_id] = ActiveReasoning(
            id=start_id,
            by=ParticipantId(envelope.sender),
            context=start_id if envelope.context is UNSET else f"{envelope.context}/{start_id}",
            message=cut(message, _MESSAGE_CHARS_MAX),
            about=tuple(map(EnvelopeId, envelope.correlation_id[:_ABOUT_MAX])),
            stream_id=stream_id if isinstance(stream_id, str) and len(stream_id) <= _ID_CHARS_MAX else None,
        )
        if len(self._active) > _ACTIVE_MAX:
            held = ((one.id, one.by, 1) for one in self._active.values())
            del self._active[oldest_of_the_greediest(held)]

    def _ended(self, envelope: Envelope) -> None:
        """Anyone may cancel; only its author concludes it."""
        anyone = envelope.kind == Kind.REASONING_CANCEL
        for one in self._meant(envelope):
            if anyone or envelope.sender == one.by:
                self._drop_with_parts(one)

    def _meant(self, envelope: Envelope) -> list[ActiveReasoning]:
        if envelope.context is UNSET:
            named = map(EnvelopeId, dict.fromkeys(envelope.correlation_id))
            return [self._active[start_id] for start_id in named if start_id in self._active]
        return [one for one in self._active.values() if is_about(envelope, one.id)]

    def _drop_with_parts(self, whole: ActiveReasoning) -> None:
        path = f"{whole.context}/"
        self._drop(lambda one: one is whole or (one.by == whole.by and one.context.startswith(path)))

    def _drop(self, over: Callable[[ActiveReasoning], bool]) -> None:
        for one in self.active:
            if over(one):
                del self._active[one.id]
