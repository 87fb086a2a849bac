"""A call of a host in the space: requested if our capabilities allow it, proposed otherwise.

It goes on by itself, to its `end`: who waits for it may give up, come back, or be of a process that was restarted.
"""

import asyncio
import secrets
from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final, TypeVar
from weakref import WeakSet

from mew.client.client import Client
from mew.client.errors import Absent, AlreadyDecided, MewError, Refused, Unanswered
from mew.client.mcp.requests import lacking
from mew.client.mcp.validation import mismatch
from mew.client.proposals.outcomes import Outcome, ProposalUpdate, TimedOut
from mew.client.proposals.proposer import Proposal
from mew.mcp_bridge.host.settings import HostSettings
from mew.proposals.record import ProposalStatus
from mew.protocol.envelope import Envelope
from mew.protocol.errors import Refusal
from mew.protocol.kinds import Kind
from mew.protocol.visible import named

from .notes import CallNote, CallNotes, ProgressNote
from .params import NotificationOptions, with_news
from .questions import ServerQuestion
from .results import CallEnd, HostOperation

__all__ = ["HostCall", "departed", "unless"]

Result = TypeVar("Result")


async def departed(me: Client, who: str, back_s: float) -> None:
    """Return when somebody has left the space and did not come back within this time."""
    changed = asyncio.Event()

    def listen(envelope: Envelope, payload: Any) -> None:
        changed.set()

    me.connection.listen(listen, (Kind.PRESENCE, Kind.WELCOME))
    try:
        while True:
            while who in me.participants:
                changed.clear()
                await changed.wait()
            try:
                async with asyncio.timeout(back_s):
                    while who not in me.participants:
                        changed.clear()
                        await changed.wait()
            except TimeoutError:
                return
    finally:
        me.connection.unlisten(listen)


async def unless(
    gone: Coroutine[Any, Any, None], work: Coroutine[Any, Any, Result], otherwise: Result
) -> Result:
    """What comes of the work; where `gone` ends before it, the work is cancelled. Neither may raise."""
    async with asyncio.TaskGroup() as tasks:
        working, watching = tasks.create_task(work), tasks.create_task(gone)
        await asyncio.wait((working, watching), return_when=asyncio.FIRST_COMPLETED)
        watching.cancel()
        if not working.done():
            working.cancel()
            return otherwise
    return working.result()


_NO_NEWS: Final = NotificationOptions()
_APPROVED: Final = (ProposalStatus.APPROVED, ProposalStatus.FULFILLED, ProposalStatus.FAILED)
_BACK_S: Final = 15.0
_WITHDRAW_S: Final = 10.0
_ACCEPT_S: Final = 5.0
_UNHEARD_S: Final = 4.5
"""Hosts that give up without a word do so after five seconds or more."""
_JUST_ENDED_S: Final = 60.0
_HOST_GONE: Final = "host_gone"
_SHOWN_MAX: Final = 3
_AT_ONCE_MAX: Final = 16
_QUESTIONS_MAX: Final = 256  # of one call


class HostCall:
    """`key` is by which a host finds it again: that of a proposal is its handle, and good for ever."""

    def __init__(
        self, me: Client, settings: HostSettings, operation: HostOperation, params: dict[str, Any]
    ) -> None:
        self.operation = operation
        self.params = params
        self.key = secrets.token_urlsafe(12)
        self.notes = CallNotes()
        self.questions: dict[str, ServerQuestion] = {}
        """Those that nobody is answering yet."""
        self._being_answered: WeakSet[ServerQuestion] = WeakSet()
        self._asked = 0
        self.end: CallEnd | None = None
        self.moved = asyncio.Event()
        """Set when there is news, and then another takes its place."""
        self.request_ids: set[str] = set()
        """Of the envelopes that carry it out, as far as they were seen."""
        self.attending = 0
        """How many hosts wait for it now."""
        self.awaits_retry = False
        """Whether a host was told to ask again."""
        self.is_handle_known = False
        """Whether a host was given the handle, and may ask for the outcome at any time."""
        self.begun_s = asyncio.get_running_loop().time()
        self._told: tuple[float, float] | None = None
        self._me = me
        self._settings = settings
        self._proposal: Proposal | None = None
        self._task: asyncio.Task[None] | None = None
        self._approved = asyncio.Event()
        self._on_approved: Callable[[], None] | None = None

    @property
    def handle(self) -> str | None:
        """The id of its proposal; None where it is simply made."""
        return None if self._proposal is None else self._proposal.id

    @property
    def status(self) -> ProposalStatus | None:
        """Where its proposal stands; None where it is simply made."""
        return None if self._proposal is None else self._proposal.record.status(datetime.now(UTC))

    @property
    def stands(self) -> str:
        """Where it stands, in a few words."""
        if not self._me.connected:
            return "the connection to the space is lost, and being made again"
        if self._me.paused:
            return "somebody in the space paused us"
        if self._proposal is None:
            return f"{named(self.operation.origin.participant)} works on it"
        stage = self._proposal.stage
        if stage.status is ProposalStatus.OPEN and not stage.rejections:
            return f"waiting for approval by {self._approvers()}"
        return str(stage)

    @property
    def is_held_up(self) -> bool:
        """Whether it waits for something else than the tool."""
        return self._proposal is not None or not self._me.connected or self._me.paused

    @property
    def is_running(self) -> bool:
        """Whether somebody approved it, and no answer came yet."""
        return self.end is None and self._approved.is_set()

    async def begin(
        self,
        *,
        schema: Any = None,
        news: NotificationOptions = _NO_NEWS,
        approved: Callable[[], None] | None = None,
    ) -> None:
        """Send it; `schema` is of its arguments, where it is a tool of which that is known.

        With `approved` it is proposed even where it could be requested; that is called when somebody has approved it.

        What is to be proposed is checked against it first: a reviewer sees what does not fit.

        Raises:
            Absent: the participant is not here.
            Refused: we may neither request nor propose it, or the gateway said no.
            MewError: it could not be proposed in time.
            Disconnected: the connection ended for good.
        """
        self._on_approved = approved
        if approved is None and self._may_request():
            self._task = self._me.connection.spawn(self._request(news))
        else:
            await self._propose(schema, news)

    def resume(self, proposal: Proposal) -> None:
        """Go on with a proposal that was made before."""
        self._proposal = proposal
        self.key = proposal.id
        self._task = self._me.connection.spawn(self._follow(proposal))

    def cancel(self) -> None:
        """The host no longer wants it: take back what was proposed, or tell who works on it."""
        if self.end is None and self._task is not None:
            if self._proposal is None:
                self._task.cancel()
                self._finish(MewError("cancelled by the host"))
            else:
                self._me.connection.spawn(self._withdraw(self._proposal))

    def told(self, after_s: float) -> None:
        """A host was answered with the end, so long after it had asked."""
        self._told = (asyncio.get_running_loop().time(), after_s)

    @property
    def may_be_untold(self) -> bool:
        """Whether it ended just now, and no host may have heard of that: none waited, or one for long."""
        if self.end is None or self._proposal is None:
            return False
        if self._told is None:
            return True
        at_s, after_s = self._told
        return after_s >= _UNHEARD_S and asyncio.get_running_loop().time() - at_s < _JUST_ENDED_S

    def abandon(self) -> None:
        """Nobody waits for it: withdraw it later, unless somebody comes back for it or knows its handle."""
        if self._proposal is not None:
            self.spawn(self._abandoned(self._settings.abandon_s))

    async def abandoned_now(self) -> None:
        """The same without waiting, because we end."""
        if self._proposal is not None:
            await self._abandoned(0.0)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self._me.connection.spawn(work)

    async def _abandoned(self, within_s: float) -> None:
        await asyncio.sleep(within_s)
        is_wanted = self.attending > 0 or self.is_handle_known or self.awaits_retry
        if self._proposal is not None and self.end is None and not self.is_running and not is_wanted:
            await self._withdraw(self._proposal, _HOST_GONE)

    def note(self, note: CallNote) -> None:
        self.notes.add(note)
        self._move()

    def ask(self, question: ServerQuestion) -> None:
        """The participant wants to know something before it goes on. One that floods us gets no answers."""
        self._asked += 1
        if self._asked <= _QUESTIONS_MAX and len(self.questions) + len(self._being_answered) < _AT_ONCE_MAX:
            self.questions[question.key] = question
            self._move()

    def take_question(self, key: str) -> ServerQuestion | None:
        """One that is going to be answered; once."""
        question = self.questions.pop(key, None)
        if question is not None:
            self._being_answered.add(question)
        return question

    def drop_question(self, asker: str, request_id: Any) -> None:
        """Its asker takes it back: who was asked need not answer."""
        for question in (*self.questions.values(), *self._being_answered):
            if question.asker == asker and question.is_known_as(request_id):
                self.questions.pop(question.key, None)
                question.drop()

    def respond(self, question: ServerQuestion, result: dict[str, Any]) -> None:
        """Give the participant an answer, without waiting."""
        self._me.connection.spawn(question.answer(result))

    def _move(self) -> None:
        self.moved.set()
        self.moved = asyncio.Event()

    def _finish(self, end: CallEnd) -> None:
        if self.end is None:
            self.end = end
            for question in self.questions.values():
                question.drop()
            self.questions.clear()
            self._move()

    # Made.

    def _may_request(self) -> bool:
        payload = {"jsonrpc": "2.0", "id": 0, "method": self.operation.method, "params": self.params}
        return self._me.can_send(Kind.MCP_REQUEST, payload, to=self.operation.origin.participant)

    async def _request(self, news: NotificationOptions) -> None:
        whose, method = self.operation.origin.participant, self.operation.method
        end = await unless(
            departed(self._me, whose, _BACK_S),
            self._answer(news),
            otherwise=Unanswered(f"it left the space while it worked on {method}"),
        )
        if isinstance(end, Refused):
            await self._refused(end, news)
        else:
            self._finish(end)

    async def _answer(self, news: NotificationOptions) -> CallEnd:
        whose, method = self.operation.origin.participant, self.operation.method
        try:
            result = await self._me.request(
                whose,
                method,
                with_news(self.params, news, proposed=False),
                timeout_s=self._settings.call_s,
                on_progress=self._progressed if news.progress else None,
            )
        except MewError as error:
            return error
        return result if isinstance(result, dict) else MewError(f"{named(whose)} gave no result of MCP")

    async def _refused(self, refused: Refused, news: NotificationOptions) -> None:
        """Revoked just now, or a gateway that reads capabilities in another way: then it is proposed."""
        try:
            if refused.why is not Refusal.CAPABILITY_VIOLATION:
                raise refused
            await self._propose(None, news)
        except MewError as error:
            self._finish(error)

    def _progressed(self, done: float, total: float | None, message: str | None) -> None:
        self.note(ProgressNote(message or "", done, total))

    # Proposed.

    async def _propose(self, schema: Any, news: NotificationOptions) -> None:
        operation, whose = self.operation, self.operation.origin.participant
        payload = {"method": operation.method, "params": self.params}
        if not self._me.can_send(Kind.MCP_PROPOSAL, payload, to=whose):
            raise lacking(Kind.MCP_REQUEST, payload, instead=Kind.MCP_PROPOSAL)
        if whose not in self._me.participants:
            raise Absent(f"nobody called {whose!r} is in the space")
        within_s = max(self._settings.wait_s, _ACCEPT_S)
        try:
            async with asyncio.timeout(within_s):
                self._proposal = await self._me.propose(
                    operation.method,
                    with_news(self.params, news, proposed=True),
                    target=whose,
                    why=mismatch(self.params.get("arguments", {}), schema),
                    expires_in=self._settings.open_s,
                )
        except TimeoutError:
            raise MewError(f"it could not be proposed within {within_s:g} s: {self.stands}") from None
        self.key = self._proposal.id
        self._task = self._me.connection.spawn(self._follow(self._proposal))

    async def _follow(self, proposal: Proposal) -> None:
        async with asyncio.TaskGroup() as tasks:
            telling = tasks.create_task(self._tell_stages(proposal))
            end = await unless(self._lost(), _outcome(proposal), otherwise=None)
            telling.cancel()
        if proposal.stage.status in _APPROVED and self._on_approved is not None:
            self._on_approved()
        self._finish(TimedOut(approved_by=proposal.stage.by) if end is None else end)

    async def _lost(self) -> None:
        """Until who carries it out is gone: before it is approved, they may come and go."""
        await self._approved.wait()
        await departed(self._me, self.operation.origin.participant, _BACK_S)

    async def _tell_stages(self, proposal: Proposal) -> None:
        with suppress(MewError):
            async for stage in proposal.stages():
                if stage.outcome is None:
                    self._staged(stage)

    def _staged(self, stage: ProposalUpdate) -> None:
        if stage.status is ProposalStatus.APPROVED:
            self._approved.set()
        self.note(ProgressNote(self.stands))

    def _approvers(self) -> str:
        """Those here who could carry it out themselves, if they are few enough to be named."""
        whose = self.operation.origin.participant
        payload = {"jsonrpc": "2.0", "id": 0, "method": self.operation.method, "params": self.params}
        able = [
            named(who)
            for who, held in self._me.participants.items()
            if who not in (self._me.id, whose) and held.fits(Kind.MCP_REQUEST, [whose], lambda: payload)
        ]
        if not able:
            return self._settings.approver
        return " or ".join(able) if len(able) <= _SHOWN_MAX else "somebody who may"

    async def _withdraw(self, proposal: Proposal, reason: str = "cancelled by the host") -> None:
        try:
            async with asyncio.timeout(_WITHDRAW_S):
                await proposal.withdraw(reason)
        except (AlreadyDecided, Refused, TimeoutError):
            return  # it runs, or has run


async def _outcome(proposal: Proposal) -> Outcome | MewError | None:
    try:
        return await proposal
    except MewError as error:
        return error
