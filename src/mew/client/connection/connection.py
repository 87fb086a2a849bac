"""One lasting connection: reconnect, ask for a replay of what was missed, resend what was never accepted.

The application sees one unbroken stream. `ClientSession` decides what each message means; this carries it out.
"""

import asyncio
import logging
import secrets
import weakref
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from datetime import UTC, datetime
from math import inf
from types import TracebackType
from typing import Any, Final, Self, assert_never

from msgspec import UNSET, Raw

from mew.client.errors import ConnectError, Disconnected, MewError, Refused, Uncertain
from mew.protocol.codec import encode
from mew.protocol.envelope import NO_PAYLOAD, PROTOCOL, Envelope, EnvelopeId
from mew.protocol.errors import ProtocolError, Refusal
from mew.protocol.frames import MARK
from mew.protocol.json import encode_json
from mew.protocol.kinds import ErrorPayload

from .dialler import Dialler
from .feed import Feed, Filter, Listener, Listeners, Pressure
from .outgoing import PASS_WHEN_PAUSED
from .session import (
    ClientSession,
    EnvelopeAccepted,
    EnvelopeDropped,
    EnvelopeReceived,
    EnvelopeRefused,
    Gap,
    SessionEvent,
)
from .transport import LinkClosed, Transport, TransportLink

__all__ = ["ClientConnection", "FrameListener", "PendingSends", "fresh_ids"]

_ID_BYTES: Final = 16
_AT_ONCE: Final = 256  # chance has its price


def fresh_ids() -> Iterator[str]:
    """One after another, without end."""
    while True:
        several = secrets.token_hex(_ID_BYTES * _AT_ONCE)
        for start in range(0, len(several), 2 * _ID_BYTES):
            yield several[start : start + 2 * _ID_BYTES]


class PendingSends:
    """A future for each envelope on its way. One that nobody looks at is not complained about."""

    def __init__(self) -> None:
        self._waiting: dict[str, tuple[Envelope, asyncio.Future[Envelope]]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def expect(self, envelope: Envelope) -> asyncio.Future[Envelope]:
        """Raises ValueError where one with this id is on its way already."""
        if envelope.id in self._waiting:
            raise ValueError(f"envelope {envelope.id} is already on its way")
        future: asyncio.Future[Envelope] = asyncio.get_running_loop().create_future()
        self._waiting[envelope.id] = envelope, future
        return future

    def abandon(self, envelope: Envelope) -> None:
        """Nobody waits for it any more."""
        self._waiting.pop(envelope.id, None)

    def accepted(self, envelope_id: EnvelopeId) -> None:
        found = self._waiting.pop(envelope_id, None)
        if found is not None and not found[1].done():
            found[1].set_result(found[0])

    def failed(self, envelope_id: EnvelopeId, error: MewError) -> None:
        found = self._waiting.pop(envelope_id, None)
        if found is not None and not found[1].done():
            found[1].set_exception(error)
            found[1].exception()  # looked at, so that asyncio does not say that nobody did

    def over(self, why: Disconnected) -> None:
        """Nobody will be answered any more."""
        for envelope_id in tuple(self._waiting):
            self.failed(EnvelopeId(envelope_id), why.copy())


_log = logging.getLogger(__name__)

FrameListener = Callable[[bytes], None]

_ON_THEIR_WAY_MAX: Final = 256
_GAPS_MAX: Final = 1_000
_STUCK_S: Final = 30.0
_NORMAL: Final = 1000
_TOO_BIG: Final = 1009
_SOON_S: Final = 0.001
_INTERNAL: Final = 1011


class ClientConnection:
    """Inside `async with`, somebody in a space. Everything here belongs to one event loop."""

    def __init__(self, transport: Transport, *, first_within_s: float = 0.0, recall: int = 0) -> None:
        """`first_within_s`: how long to go on trying to connect for the first time, where that may help.

        `recall`: how many of the envelopes that were shown before are wanted.
        """
        self.session = ClientSession()
        self.pressure = Pressure()
        self.stuck_s = _STUCK_S
        """How long an iteration may take nothing before the connection no longer waits for it."""
        self.gaps: list[Gap] = []
        """The times without a connection, the last thousand of them."""
        self.frame_listeners: list[FrameListener] = []
        self.lost_listeners: list[Callable[[], None]] = []
        """Told when the connection is lost; what is not kept anywhere, like stream frames, may be lost with it."""
        self.ended: asyncio.Future[Disconnected]
        self._listeners = Listeners()
        self.transport = transport
        self._dialler = Dialler(transport, self.session)
        self._first_within_s = first_within_s
        self._recall = recall
        self._link: TransportLink | None = None
        self._over: Disconnected | None = None
        self._answers = PendingSends()
        self._slots = asyncio.Semaphore(_ON_THEIR_WAY_MAX)
        self._to_write = asyncio.Event()
        self._expected = 0
        self._lost_at: datetime | None = None
        self._fresh_ids = fresh_ids()
        self._stack = AsyncExitStack()
        self._tasks: asyncio.TaskGroup | None = None
        self._beside: set[asyncio.Task[None]] = set()
        self._feeds: weakref.WeakSet[Feed[Any]] = weakref.WeakSet()
        self._repeatable: tuple[EnvelopeId, ...] = ()

    async def __aenter__(self) -> Self:
        """Connect, and return once welcomed.

        Raises:
            ConnectError: nobody is there, or we are not let in.
        """
        self.ended = asyncio.get_running_loop().create_future()
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self.transport.close)
            link, welcome = await self._dialler.first(self._first_within_s, self._recall)
            self._link = link
            self._tasks = await stack.enter_async_context(asyncio.TaskGroup())
            stack.callback(self._tasks.create_task(self._run(link, welcome)).cancel)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.leave()
        finally:  # cancelled while it says goodbye, too
            for task in tuple(self._beside):
                task.cancel()
            await self._stack.aclose()

    async def leave(self) -> None:
        """Say goodbye, for good. What was sent and not yet accepted is given up; who waits for it is told."""
        self._finish(Disconnected(_NORMAL, "closed here"))
        if self._link is not None:
            with suppress(LinkClosed):
                await self._link.close()

    @property
    def recalled(self) -> Sequence[Envelope]:
        """What was shown before we came, oldest first; nobody who listens is told of it."""
        return tuple(self._dialler.recalled)

    @property
    def connected(self) -> bool:
        return self._link is not None

    # Sending.

    def compose(
        self,
        kind: str,
        payload: Any = None,
        *,
        to: str | Sequence[str] = (),
        correlation_id: str | Sequence[str] = (),
        context: str | None = None,
        id: str | None = None,
    ) -> Envelope:
        """An envelope of ours, not sent yet: with a fresh id, unless one is given.

        Raises:
            ValueError: the kind or the id is empty or longer than 256 characters.
        """
        if not 0 < len(kind) <= 256 or not (id is None or 0 < len(id) <= 256):
            raise ValueError("a kind and an id have 1 to 256 characters")
        return Envelope(
            protocol=PROTOCOL,
            id=id or next(self._fresh_ids),
            ts=datetime.now(UTC),
            sender=self.session.me,
            to=_names(to),
            kind=kind,
            correlation_id=_names(correlation_id),
            context=UNSET if context is None else context,
            payload=NO_PAYLOAD if payload is None else Raw(encode_json(payload)),
        )

    def post(self, envelope: Envelope) -> asyncio.Future[Envelope]:
        """Send without waiting; the future has the envelope once it was accepted, or raises as `send` does."""
        answer = self._answers.expect(envelope)
        if self._over is not None:
            self._answers.over(self._over)
            return answer
        self.session.outgoing.add(envelope, encode(envelope))
        self._to_write.set()
        if self.pressure.high:
            self.pressure.changed()
        return answer

    async def send(self, envelope: Envelope) -> Envelope:
        """Send, and return once the gateway has accepted it and everyone is being shown it.

        Waits while there is no connection, while the gateway says that it comes too fast, and while paused (§3.9.1).
        Cancelled, it is not sent if it was not yet; what is on the wire may still be accepted.

        Raises:
            Refused: the gateway said no, and why.
            Disconnected: the connection ended for good.
            Uncertain: only for who joined by first frame: the connection was lost before the answer.
        """
        free = envelope.kind in PASS_WHEN_PAUSED
        if not free:
            await self._slots.acquire()
        try:
            return await self.post(envelope)
        except asyncio.CancelledError:
            self._answers.abandon(envelope)
            self.session.outgoing.give_up(EnvelopeId(envelope.id))
            raise
        finally:
            if not free:
                self._slots.release()

    def take_back(self, envelope_id: str, error: MewError) -> bool:
        """Do not send what was posted and has not left yet: its answer is the error. Whether it had not."""
        is_taken_back = self.session.outgoing.take_back(EnvelopeId(envelope_id))
        if is_taken_back:
            self._answers.failed(EnvelopeId(envelope_id), error)
        return is_taken_back

    async def send_frame(self, frame: bytes, *, text: bool) -> None:
        """Send a stream frame.

        Raises:
            LinkClosed: it may or may not have arrived.
        """
        if self._link is None:
            raise LinkClosed(_NORMAL, "there is no connection now")
        await self._link.send(frame, text=text)

    @contextmanager
    def expecting(self) -> Iterator[None]:
        """While something is waited for that comes through this connection, no slow iteration holds it back."""
        self._expected += 1
        self.pressure.changed()
        try:
            yield
        finally:
            self._expected -= 1

    # Listening.

    def listen(self, listener: Listener, kinds: Iterable[str] | None = None) -> None:
        """Tell it of every envelope from now on, or of those of these kinds; after those who listen already."""
        self._listeners.add(listener, kinds)

    @property
    def listeners(self) -> tuple[Listener, ...]:
        return self._listeners.all

    def unlisten(self, listener: Listener) -> None:
        self._listeners.remove(listener)

    def feed(self) -> Feed[Any]:
        """A feed whose pressure is this connection's, and that ends with it."""
        feed: Feed[Any] = Feed(self.pressure)
        self._feeds.add(feed)
        if self._over is not None:
            feed.close(None if self._over.code == _NORMAL else self._over.copy())
        return feed

    def subscribe(self, wanted: Filter) -> Feed[Envelope]:
        """Feed the envelopes that fit, from now on, for as long as the feed is referenced."""
        feed: Feed[Envelope] = self.feed()
        reference = weakref.ref(feed)

        def listen(envelope: Envelope, payload: Any) -> None:
            feed = reference()
            if feed is None or feed.closed:
                self.unlisten(listen)
            elif wanted.fits(envelope):
                feed.offer(envelope, memoryview(envelope.payload).nbytes)

        self.listen(listen)
        return feed

    def spawn(self, work: Coroutine[Any, Any, object]) -> asyncio.Task[None]:
        """Run something beside, until the connection is left; its failure is logged and goes no further."""
        assert self._tasks is not None, "spawn outside the connection"
        task = self._tasks.create_task(_guarded(work))
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)
        task.add_done_callback(lambda _: work.close())  # one cancelled before its first step was never begun
        return task

    def _dispatch(self, news: list[SessionEvent]) -> None:
        for item in news:
            match item:
                case EnvelopeAccepted():
                    self._answers.accepted(item.id)
                case EnvelopeReceived():
                    self._listeners.tell(item.envelope, item.payload)
                case EnvelopeRefused():
                    self._answers.failed(item.id, Refused(item.id, item.problem))
                case EnvelopeDropped():
                    if self.session.misconduct[item.sender].count == 1:
                        _log.warning("dropped an envelope of %s: %s", item.sender, item.why)
                case _:
                    assert_never(item)

    # The life of the connection.

    async def _run(self, link: TransportLink, welcome: EnvelopeReceived) -> None:
        """Until the connection is over for good, or cancelled."""
        try:
            while self._over is None:
                closed = await self._live(link, welcome)
                if not closed.come_back or self._over is not None:
                    self._finish(Disconnected(closed.code, closed.reason))
                    return
                if closed.code == _TOO_BIG:
                    self._give_up_largest()
                _log.info("connection lost", extra={"code": closed.code, "reason": closed.reason})
                link, welcome = await self._dialler.again()
                _log.info("connected again as %s", self.session.me)
        except ConnectError as error:
            self._finish(Disconnected(error.status or _INTERNAL, str(error)))
        except Exception:
            _log.exception("the connection failed")
            self._finish(Disconnected(_INTERNAL, "a bug of ours; see the log"))

    async def _live(self, link: TransportLink, welcome: EnvelopeReceived) -> LinkClosed:
        """From one welcome to the end of its connection; returns why it ended."""
        self._link = link
        self._note_gap(welcome)
        if not link.knows_ids:
            self._give_up_uncertain()
        self._dispatch([welcome])
        self._to_write.set()
        assert self._tasks is not None, "alive outside the connection"
        writing = self._tasks.create_task(self._write(link))
        try:
            return await self._read(link)
        finally:
            writing.cancel()
            self._link = None
            self._lost_at = datetime.now(UTC)
            self._repeatable = self.session.outgoing.lost()
            for lost in tuple(self.lost_listeners):
                lost()

    async def _read(self, link: TransportLink) -> LinkClosed:
        session, pressure, waiting = self.session, self.pressure, self.session.outgoing.waiting
        time_s = asyncio.get_running_loop().time
        try:
            while True:
                received = await link.receive()
                if received[:1] == MARK:
                    for listen in tuple(self.frame_listeners):
                        listen(received)
                else:
                    try:
                        self._dispatch(session.receive(received, time_s()))
                    except ProtocolError as error:  # §8.2: dropped; what follows may be sound
                        _log.warning("dropped what is no envelope: %s", error)
                    if waiting:
                        self._to_write.set()  # it may have lifted a pause
                if pressure.high:
                    await self._hold_back()
        except LinkClosed as closed:
            return closed

    async def _write(self, link: TransportLink) -> None:
        time_s, outgoing = asyncio.get_running_loop().time, self.session.outgoing
        with suppress(LinkClosed):  # the reader sees it too
            while True:
                while (message := outgoing.next(time_s())) is not None:
                    await link.send(message)
                self._to_write.clear()
                due_s = outgoing.due_s()
                if due_s is None or due_s == inf:
                    await self._to_write.wait()
                    continue
                with suppress(TimeoutError):
                    async with asyncio.timeout(max(_SOON_S, due_s - time_s())):
                        await self._to_write.wait()

    async def _hold_back(self) -> None:
        """Read no more while an iteration has too much waiting; but not for one that takes nothing at all."""
        pressure, time_s = self.pressure, asyncio.get_running_loop().time
        taken, since_s = pressure.taken, time_s()
        while pressure.high and not (self._expected or self._answers or pressure.stuck):
            await pressure.look_again()
            if pressure.taken != taken:
                taken, since_s = pressure.taken, time_s()
            elif time_s() - since_s > self.stuck_s:
                _log.warning("an iteration that nobody reads has too much waiting; it will end with Lagged")
                pressure.stuck = True

    def _note_gap(self, welcome: EnvelopeReceived) -> None:
        if self._lost_at is None:
            return
        complete = self.session.after is not None and welcome.payload.resumed is True
        if not complete:
            self.session.outgoing.resumed()  # a resume may be among what we missed; the gateway says if we are paused
        self.gaps.append(Gap(self._lost_at, datetime.now(UTC), self.session.after, complete))
        del self.gaps[:-_GAPS_MAX]

    def _give_up_largest(self) -> None:
        """The gateway read no more because of its size, and would not the next time either."""
        envelope_id = self.session.outgoing.largest()
        if envelope_id is not None and self.session.outgoing.give_up(envelope_id):
            problem = ErrorPayload(error=Refusal.TOO_LARGE, message="larger than what the gateway reads")
            self._answers.failed(envelope_id, Refused(envelope_id, problem))

    def _give_up_uncertain(self) -> None:
        for envelope_id in self._repeatable:
            if self.session.outgoing.give_up(envelope_id):
                lost = f"{envelope_id} may or may not have been accepted before the connection was lost"
                self._answers.failed(envelope_id, Uncertain(lost))

    def _finish(self, why: Disconnected) -> None:
        """It is over: tell everyone who waits."""
        if self._over is not None:
            return
        self._over = why
        self._answers.over(why)
        for feed in tuple(self._feeds):
            feed.close(None if why.code == _NORMAL else why.copy())
        self.ended.set_result(why)


def _names(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


async def _guarded(work: Coroutine[Any, Any, object]) -> None:
    try:
        await work
    except Exception:
        _log.exception("something that ran beside failed")
