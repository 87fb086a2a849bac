"""Run a participant, from its first envelope to its last: handlers, hooks, requests and reviews."""

import asyncio
import inspect
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Literal

from mew.client.client import Client
from mew.client.connection.feed import Filter
from mew.client.errors import Disconnected
from mew.client.mcp.call import Answerer, run
from mew.client.mcp.large_result import LargeResultUpload
from mew.client.mcp.questions import ELICITATION
from mew.protocol.envelope import Envelope
from mew.protocol.kinds import Kind

from .control import CONTROL_KINDS, Control, Hooks, Override
from .memory import Memory
from .outbound import Outbound
from .responder import Responder
from .worker_pool import WorkerPool

__all__ = ["Behaviour", "Handler", "Hook", "ParticipantRuntime", "takes_two"]

_log = logging.getLogger(__name__)

Hook = Callable[..., Any]

_RECALLED: Final = 1_000
_POSITIONAL: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True, kw_only=True)
class Handler:
    """A function for the envelopes that fit; it takes the envelope, and the payload if it has a second parameter."""

    function: Callable[..., Any]
    fits: Filter
    to_me: bool
    at_once: int
    takes_payload: bool

    @classmethod
    def of(
        cls,
        function: Callable[..., Any],
        kind: str | Iterable[str],
        *,
        sender: str | Iterable[str] | None = None,
        context: str | None = None,
        to_me: bool = False,
        at_once: int = 1,
    ) -> "Handler":
        """
        Raises:
            TypeError: it takes neither one nor two arguments.
            InvalidCapability: a kind is no pattern.
        """
        return cls(
            function=function,
            fits=Filter.of(kind=kind, sender=sender, context=context),
            to_me=to_me,
            at_once=at_once,
            takes_payload=takes_two(function, "the envelope, and its payload if wanted"),
        )

    def wants(self, envelope: Envelope, me: str) -> bool:
        """What we sent ourselves is not for a handler: it would answer itself for ever."""
        if envelope.sender == me or (self.to_me and me not in envelope.to):
            return False
        return self.fits.fits(envelope)

    async def handle(self, envelope: Envelope, payload: Any) -> None:
        await (run(self.function, envelope, payload) if self.takes_payload else run(self.function, envelope))


@dataclass
class Behaviour:
    """In the order they were given; several of each are all called."""

    handlers: list[Handler] = field(default_factory=list)
    proposals: list[Hook] = field(default_factory=list)
    questions: list[Hook] = field(default_factory=list)
    answered: set[str] = field(default_factory=set)
    start: list[Hook] = field(default_factory=list)
    stop: list[Hook] = field(default_factory=list)
    pause: list[Hook] = field(default_factory=list)
    resume: list[Hook] = field(default_factory=list)
    status: list[Hook] = field(default_factory=list)
    overrides: dict[str, Override] = field(default_factory=dict)

    @property
    def recalls(self) -> int:
        """How much of what came before it wants to know: who decides or answers, what waits for that."""
        return _RECALLED if self.proposals or self.questions else 0

    def override(self, kind: str, function: Override) -> None:
        """
        Raises:
            ValueError: it is no kind of participant control.
        """
        if kind not in CONTROL_KINDS:
            raise ValueError(f"{kind!r} is none of {', '.join(sorted(CONTROL_KINDS))}")
        self.overrides[kind] = function

    async def metrics(self) -> Mapping[str, Any]:
        """Of all that tell some."""
        metrics: dict[str, Any] = {}
        for function in self.status:
            metrics |= await run(function)
        return metrics

    async def call(self, hooks: Iterable[Hook], *arguments: Any) -> None:
        """Call each, whatever another raises."""
        for hook in hooks:
            try:
                await run(hook, *arguments)
            except Exception:
                _log.exception("%s failed", getattr(hook, "__qualname__", hook))


def takes_two(function: Callable[..., Any], what: str) -> bool:
    """Whether a function takes two positional arguments, and not one.

    Raises:
        TypeError: it takes neither one nor two; `what` says what it is given.
    """
    parameters = list(inspect.signature(function).parameters.values())
    if any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters):
        return True
    many = sum(parameter.kind in _POSITIONAL for parameter in parameters)
    if many not in (1, 2):
        name = getattr(function, "__qualname__", repr(function))
        raise TypeError(f"{name}() takes {what}, not {many} arguments")
    return many == 2


_log = logging.getLogger(__name__)

_HANDLED_MAX: Final = 1_024
_REVIEWED_AT_ONCE: Final = 8
_QUESTIONED_AT_ONCE: Final = 16
_CANCEL_S: Final = 5.0
_STOP_S: Final = 10.0
_FLUSH_S: Final = 2.0
_NORMAL: Final = 1000


class ParticipantRuntime:
    """Control, requests and handlers over one connection.

    From the first moment everything is listened to; requests and handlers begin once `on_start` has ended.
    """

    def __init__(self, client: Client, server: Answerer, behaviour: Behaviour, memory: Memory) -> None:
        connection = client.connection
        self._client = client
        self._connection = connection
        self._behaviour = behaviour
        self._voice = Outbound(connection)
        self._answering = Responder(
            connection,
            server,
            self._voice,
            dispatch=LargeResultUpload(client.streams, client.book),
            book=client.book,
            leave=self._leaves,
        )
        hooks = Hooks(
            paused=partial(behaviour.call, behaviour.pause),
            resumed=partial(behaviour.call, behaviour.resume),
            metrics=behaviour.metrics,
            stop=self._terminate,
            start=self._begin_again,
            cease=self._cease,
            leave=self.stop,
        )
        self._control = Control(connection, memory, hooks, behaviour.overrides, voice=self._voice)
        self._handling = [(handler, self._lane(at_once=handler.at_once)) for handler in behaviour.handlers]
        self._reviewing = self._lane(at_once=_REVIEWED_AT_ONCE)
        self._watching = self._lane(at_once=2)
        self._questioned = self._lane(at_once=_QUESTIONED_AT_ONCE)
        self._lanes = [
            self._watching,
            self._reviewing,
            self._questioned,
            *(lane for _, lane in self._handling),
        ]
        self._over = asyncio.Event()
        self._changing = asyncio.Lock()
        self._beginning: asyncio.Timeout | None = None
        self._announced: set[str] = set()
        self._started = False
        self._ceased = False
        self._failed: Exception | None = None
        self._told_unheard = False

    async def run(self) -> None:
        """Until it is shut down, stopped, or the connection ends.

        Raises:
            Disconnected: the connection ended for good, and not by us.
            Exception: what `on_start` raised.
        """
        connection = self._connection
        with ExitStack() as listening:
            listening.enter_context(self._control)
            connection.listen(self._listen)
            listening.callback(connection.unlisten, self._listen)
            connection.ended.add_done_callback(self._ended)
            listening.callback(connection.ended.remove_done_callback, self._ended)
            try:
                await self._begin()
                await self._over.wait()
            finally:
                listening.close()
                await self._halt(f"{connection.session.me!r} is leaving")
                if not connection.ended.done():
                    await self._voice.flush(_FLUSH_S)
        if self._failed is not None:
            raise self._failed
        if connection.ended.done() and connection.ended.result().code != _NORMAL:
            raise connection.ended.result().copy()

    def stop(self) -> None:
        """Let `run` end."""
        if self._over.is_set():
            return
        self._over.set()
        if self._beginning is not None:
            self._beginning.reschedule(asyncio.get_running_loop().time())

    def changed(self, what: Literal["tools", "resources", "prompts"]) -> None:
        """What is offered has changed: tell everyone, once for all that changes at the same time."""
        if what not in self._announced:
            self._announced.add(what)
            asyncio.get_running_loop().call_soon(self._announce, what)

    def updated(self, uri: str, subscribers: tuple[str, ...]) -> None:
        for who in subscribers:
            self.announce("notifications/resources/updated", {"uri": uri}, to=(who,))

    def announce(
        self, method: str, params: dict[str, Any] | None = None, *, to: tuple[str, ...] = ()
    ) -> None:
        """Send an MCP notification to these, or to everyone, where we may; without waiting."""
        self._answering.announce(method, params, to=to)

    async def report(self) -> bool:
        return await self._control.report()

    def _announce(self, what: str) -> None:
        self._announced.discard(what)
        self.announce(f"notifications/{what}/list_changed")

    def _cease(self) -> None:
        """What comes from now on is not answered, not even with a no (§3.9.10)."""
        self._ceased = True
        for lane in self._lanes:
            lane.hold()

    def _lane(self, *, at_once: int = 1) -> WorkerPool:
        return WorkerPool(self._connection, at_once=at_once, waiting_max=_HANDLED_MAX, held=True)

    def _ended(self, _ended: asyncio.Future[Disconnected]) -> None:
        self.stop()

    def _listen(self, envelope: Envelope, payload: Any) -> None:
        if self._ceased:
            return
        me = self._connection.session.me
        self._answering.listen(envelope, payload)
        for handler, lane in self._handling:
            work = partial(handler.handle, envelope, payload)
            if handler.wants(envelope, me) and not lane.offer(work, envelope):
                _log.warning("a handler is too slow: %s of %s is dropped", envelope.kind, envelope.sender)
        if envelope.kind == Kind.MCP_PROPOSAL and me in envelope.to and not self._behaviour.proposals:
            self._note_unheard(envelope)

    async def _watch(self) -> None:
        """Those that are open when it starts, and each that comes."""
        async with self._client.proposals() as proposals:
            async for review in proposals:
                if not self._reviewing.offer(
                    partial(self._behaviour.call, self._behaviour.proposals, review)
                ):
                    _log.warning("on_proposal is too slow: %s of %s is dropped", review.id, review.proposer)

    async def _watch_questions(self) -> None:
        async with self._client.questions() as questions:
            async for question in questions:
                if not self._questioned.offer(
                    partial(self._behaviour.call, self._behaviour.questions, question)
                ):
                    _log.warning("on_question is too slow: %s of %s is dropped", question.id, question.asker)

    def _leaves(self, method: str) -> bool:
        """Questions are for `on_question`, or for who iterates over them, unless a function answers them."""
        if method != ELICITATION or ELICITATION in self._behaviour.answered:
            return False
        return bool(self._behaviour.questions) or self._client.takes_questions

    async def _begin(self) -> None:
        async with self._changing:
            try:
                async with asyncio.timeout(None) as self._beginning:
                    if self._over.is_set():
                        return
                    for hook in self._behaviour.start:
                        await run(hook)
                    self._started = True
            except TimeoutError:
                if not self._over.is_set():
                    raise  # its own
                return
            finally:
                self._beginning = None
            self._answering.open()
            for lane in self._lanes:
                lane.open()
            if self._behaviour.proposals:
                self._watching.offer(self._watch)
            if self._behaviour.questions:
                self._watching.offer(self._watch_questions)

    async def _begin_again(self) -> None:
        try:
            await self._begin()
        except Exception as error:
            self._failed = error
            raise

    async def _halt(self, reason: str) -> None:
        """End all work: what is asked is answered with an error, what handlers do is cancelled."""
        async with self._changing:
            for lane in self._lanes:
                lane.hold()
                lane.drop()
            await self._answering.stop(reason, within_s=_CANCEL_S)
            for lane in self._lanes:
                await lane.quiet(_CANCEL_S)
            if not self._started:
                return
            self._started = False
            try:
                async with asyncio.timeout(_STOP_S):
                    await self._behaviour.call(self._behaviour.stop)
            except TimeoutError:
                _log.warning("on_stop takes longer than %g s, and is left", _STOP_S)

    async def _terminate(self, reason: str) -> None:
        """For a restart: workflows and streams end (§3.9.9)."""
        await self._halt(reason)
        for stream in self._client.streams.active:
            if stream.owner == self._connection.session.me:
                stream.give_up("restart")

    def _note_unheard(self, envelope: Envelope) -> None:
        """Often `to` names who is to carry it out, while others decide: to reject it would end it for them."""
        if not self._told_unheard:
            self._told_unheard = True
            _log.debug("a proposal of %s is addressed to us, and there is no on_proposal", envelope.sender)
