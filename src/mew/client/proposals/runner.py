"""Run one proposal to its end: watch for rejections, fulfilment, answer and timeout, and report each step."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf
from typing import Any, Final
from weakref import WeakSet

from mew.client.connection.connection import ClientConnection
from mew.client.connection.feed import Feed
from mew.client.errors import AlreadyDecided, Disconnected, MewError, StreamBroken, Unanswered
from mew.client.mcp.large_result import LargeResultDownload, large_result_in
from mew.client.mcp.requests import PROGRESS, OnProgress, operation, tell_progress
from mew.proposals.book import ProposalBook
from mew.proposals.record import ProposalRecord, ProposalStatus, Target, names_in
from mew.protocol.envelope import Envelope
from mew.protocol.kinds import Kind, McpRequest, McpResponse

from .outcomes import (
    TIMEOUT,
    OnUpdate,
    Outcome,
    ProposalUpdate,
    Rejected,
    Strategy,
    TimedOut,
    Withdrawn,
    is_rejected,
)
from .tracker import ProposalTracker

__all__ = ["NO_LONGER_NEEDED", "ProposalPlan", "ProposalRunner", "StatusNotifier"]

_log = logging.getLogger(__name__)


class StatusNotifier:
    """Of one proposal."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._told: ProposalUpdate | None = None
        self._watchers: list[OnUpdate] = []
        self._feeds: WeakSet[Feed[ProposalUpdate]] = WeakSet()

    def watch(self, watcher: OnUpdate) -> None:
        """Tell it each stage from now on."""
        self._watchers.append(watcher)

    def stages(self, now: ProposalUpdate) -> Feed[ProposalUpdate]:
        """The present stage and those that follow, for as long as somebody holds the feed."""
        feed: Feed[ProposalUpdate] = self._connection.feed()
        feed.offer(now)
        if now.outcome is None:
            self._feeds.add(feed)
        else:
            feed.close()
        return feed

    def tell(self, stage: ProposalUpdate) -> None:
        """It is at this stage now. One who fails at being told keeps no other from it."""
        if stage == self._told or (self._told is not None and self._told.outcome is not None):
            return
        self._told = stage
        for watcher in self._watchers:
            try:
                watcher(stage)
            except Exception:
                _log.exception("on_update failed")
        for feed in tuple(self._feeds):
            feed.offer(stage)
            if stage.outcome is not None:
                feed.close()


_log = logging.getLogger(__name__)

NO_LONGER_NEEDED: Final = "no_longer_needed"
_DUPLICATE: Final = "duplicate"
_CONFIRM_S: Final = 5.0

Deliver = Callable[[Envelope, McpResponse], LargeResultDownload | None]


@dataclass(frozen=True, kw_only=True)
class ProposalPlan:
    """What to propose, to whom, and when to give up."""

    method: str
    params: dict[str, Any] | None
    target: Target
    strategy: Strategy
    reviewers: tuple[str, ...]
    timeout_s: float
    fallback_s: float
    context: str | None
    correlation_id: tuple[str, ...]
    why: str | None = None
    expires_at: datetime | None = None
    on_progress: OnProgress | None = None


class ProposalRunner:
    """Once begun it goes on by itself, to its `outcome`."""

    def __init__(
        self, connection: ClientConnection, book: ProposalBook, plan: ProposalPlan, deliver: Deliver
    ) -> None:
        """`deliver` brings the result of a response that only announces it."""
        self.plan = plan
        self._deliver = deliver
        self.tracker = ProposalTracker(book)
        self.outcome: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._connection = connection
        self._changed = asyncio.Event()
        self._taken_back: str | None = None
        self._deadline_s = 0.0
        self.notifier = StatusNotifier(connection)

    async def begin(self) -> None:
        """Send the proposal; return once it was accepted. Cancelled, it is withdrawn, as nobody knows it yet.

        Raises:
            Refused: the gateway said no.
            Unanswered: the gateway did not accept it in time.
            Disconnected: the connection ended for good.
        """
        timeout_s = self.plan.timeout_s
        try:
            async with asyncio.timeout(None if timeout_s == inf else timeout_s):
                await self._propose(self.plan.correlation_id, reviewers=self.plan.reviewers)
        except TimeoutError:
            self.take_back()
            self.tracker.release()
            raise Unanswered(f"the gateway did not accept the proposal within {timeout_s:g} s") from None
        except asyncio.CancelledError:
            self.take_back()
            self.tracker.release()
            raise
        except MewError:
            self.tracker.release()
            raise
        self._go_on()

    async def resume(self, record: ProposalRecord) -> None:
        """Go on with one that was made before, from where it stands now; return once that is known."""
        tracker = self.tracker
        tracker.adopt(record)
        self._go_on()
        is_over = tracker.is_answered or not (tracker.is_open or tracker.fulfilments)
        if is_over or (tracker.is_open and self._is_rejected(self._strategy)):
            await asyncio.wait((self.outcome,), timeout=_CONFIRM_S)

    @property
    def stage(self) -> ProposalUpdate:
        """Where it stands, as far as we know."""
        tracker = self.tracker
        if self.outcome.done() and self.outcome.exception() is None:
            status = tracker.record.status(datetime.now(UTC))
            return ProposalUpdate.at_the_end(tracker.id, status, self.outcome.result())
        sent = tracker.fulfilments[0] if tracker.fulfilments else None
        return ProposalUpdate.on_the_way(tracker.id, sent, tracker.rejections)

    def take(self, envelope: Envelope, payload: Any) -> None:
        """Take the next envelope that may be about it."""
        if isinstance(payload, McpRequest) and payload.method == PROGRESS:
            self._progressed(envelope, payload)
            return
        is_large = isinstance(payload, McpResponse) and large_result_in(payload.result) is not None
        if self.tracker.take(envelope, payload, announces=is_large):
            if is_large and self.tracker.announced(envelope.id):
                self._connection.spawn(self._receive(envelope.id, self._deliver(envelope, payload), payload))
            self._changed.set()
            self._tell()

    def _progressed(self, envelope: Envelope, told: McpRequest) -> None:
        """How far the request is that carries it out; told to who sent it, and we hear it too."""
        if self.plan.on_progress is not None and isinstance(told.params, dict):
            for sent in self.tracker.fulfilments:
                if sent.id in envelope.correlation_id and envelope.sender in names_in(sent.target):
                    tell_progress(self.plan.on_progress, told.params)

    async def _receive(
        self, response_id: str, delivery: LargeResultDownload | None, response: McpResponse
    ) -> None:
        """The result itself, or what announced it where that does not come."""
        result = response.result
        try:
            if delivery is not None:
                result = await delivery.result()
        except StreamBroken as broken:
            _log.warning("%s", broken)
        finally:
            self.tracker.arrived(response_id, result)
            self._changed.set()

    def look_again(self) -> None:
        """Who could fulfil it may be others now."""
        self._changed.set()

    async def withdraw(self, reason: str) -> None:
        """Withdraw it; return once that was accepted.

        Raises:
            AlreadyDecided: it had come to an end, or was approved before the withdrawal.
            Refused: the gateway said no.
            Disconnected: the connection ended for good.
        """
        if self.outcome.done():
            raise AlreadyDecided(f"proposal {self.tracker.id} has come to its end")
        self._check_not_approved()
        self._taken_back = reason
        try:
            await self._connection.send(self._withdrawal(reason))
        except MewError:
            self._taken_back = None
            raise
        self._check_not_approved()

    def take_back(self) -> None:
        """Withdraw it without waiting, if it is open and we may."""
        if self.outcome.done() or self.tracker.fulfilments or self._taken_back is not None:
            return
        if self._may_withdraw(NO_LONGER_NEEDED):
            self._taken_back = NO_LONGER_NEEDED
            self._connection.post(self._withdrawal(NO_LONGER_NEEDED))

    def _go_on(self) -> None:
        left_s = self.plan.timeout_s
        if self.tracker.record.expires_at is not None:
            until_then = self.tracker.record.expires_at - datetime.now(UTC)
            left_s = min(left_s, until_then.total_seconds())
        self._deadline_s = asyncio.get_running_loop().time() + left_s
        self._tell()
        running = self._run()
        self._connection.spawn(running).add_done_callback(lambda _: self._over(running))

    def _tell(self) -> None:
        """Tell the stage to who wants to know; a rejection that is the end of it is told with the end."""
        stage = self.stage
        if stage.status is not ProposalStatus.OPEN or not self._is_rejected(self._strategy):
            self.notifier.tell(stage)

    @property
    def _strategy(self) -> Strategy:
        """Whose word is the last, once the preferred were asked."""
        strategy = self.plan.strategy
        return Strategy.RESILIENT if strategy is Strategy.PREFERRED else strategy

    def _check_not_approved(self) -> None:
        if self.tracker.fulfilments:
            by = self.tracker.fulfilments[0].by
            raise AlreadyDecided(f"proposal {self.tracker.id} was approved by {by}")

    async def _propose(self, correlation_id: Sequence[str], *, reviewers: Sequence[str]) -> None:
        plan = self.plan
        payload = operation(plan.method, plan.params)
        if reviewers:  # decision 004
            only = {"exclusive": True} if plan.strategy is Strategy.EXCLUSIVE else {}
            payload["targeting"] = {"preferred": list(reviewers), **only}
        if plan.why:
            payload["why"] = plan.why
        if plan.expires_at is not None:
            payload["expires_at"] = plan.expires_at.isoformat()
        envelope = self._connection.compose(
            Kind.MCP_PROPOSAL,
            payload,
            to=names_in(plan.target),
            correlation_id=correlation_id,
            context=plan.context,
        )
        self.tracker.propose(envelope.id)  # now: what is said of it may come before we wake
        await self._connection.send(envelope)
        self.tracker.accepted(envelope, datetime.now(UTC))

    async def _run(self) -> None:
        ended = self._connection.ended
        ended.add_done_callback(self._connection_ended)
        try:
            self.outcome.set_result(await self._pursue())
            self._tell()
        except MewError as error:
            self.outcome.set_exception(error)
        finally:
            ended.remove_done_callback(self._connection_ended)

    def _over(self, running: Coroutine[Any, Any, None]) -> None:
        """It ran to its end, or was cancelled with the connection, maybe before it began."""
        running.close()
        self.tracker.release()
        if not self.outcome.done():
            self.outcome.set_exception(Disconnected(1000, "closed here"))
        self.outcome.exception()  # marks it as seen: nobody has to ask

    def _connection_ended(self, ended: asyncio.Future[Disconnected]) -> None:
        self._changed.set()

    async def _pursue(self) -> Outcome:
        strategy, tracker = self._strategy, self.tracker
        if self.plan.strategy is Strategy.PREFERRED:
            await self._ask_the_preferred()
        await self._until(lambda: not tracker.is_open or self._is_rejected(strategy), self._deadline_s)
        if tracker.is_open:
            was_rejected = self._is_rejected(strategy)
            await self._retract(NO_LONGER_NEEDED if was_rejected else TIMEOUT)
            if not tracker.fulfilments:  # and by now the explanation of a rejection is there too
                return self._rejected() if was_rejected else TimedOut(rejections=tracker.rejections)
        if tracker.fulfilments and tracker.record.is_open(datetime.now(UTC)):
            await self._retract(_DUPLICATE)  # what the preferred were asked was carried out after all
        if tracker.fulfilments:
            await self._until(lambda: tracker.is_answered or tracker.is_open, self._deadline_s)
            if tracker.is_open:  # again: what came too late was refused
                await self._retract(TIMEOUT)
        end = tracker.end()
        is_ours = self._taken_back is not None and not tracker.fulfilments
        return Withdrawn(reason=self._taken_back) if is_ours else end

    async def _ask_the_preferred(self) -> None:
        """Wait for those named; where they do not take it up, withdraw it and ask everyone."""
        tracker, loop = self.tracker, asyncio.get_running_loop()
        fallback_s = min(loop.time() + self.plan.fallback_s, self._deadline_s)
        await self._until(lambda: not tracker.is_open or self._is_rejected(Strategy.PREFERRED), fallback_s)
        if not tracker.is_open or loop.time() >= self._deadline_s or self._is_rejected(Strategy.RESILIENT):
            return
        # What cannot be withdrawn stays open, and open to all: a second one could be carried out beside it.
        is_withdrawn = await self._retract(NO_LONGER_NEEDED if tracker.rejections else TIMEOUT)
        if is_withdrawn and not tracker.fulfilments and self._taken_back is None:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(None if self._deadline_s == inf else self._deadline_s):
                    await self._propose((*self.plan.correlation_id, tracker.id), reviewers=())

    async def _until(self, reached: Callable[[], bool], deadline_s: float) -> None:
        """Until it is reached, or the time is over."""
        with suppress(TimeoutError):
            async with asyncio.timeout_at(None if deadline_s == inf else deadline_s):
                while not reached():
                    ended = self._connection.ended
                    if ended.done():
                        raise ended.result().copy()
                    self._changed.clear()
                    await self._changed.wait()

    def _is_rejected(self, strategy: Strategy) -> bool:
        rejecters = {rejection.by for rejection in self.tracker.rejections}
        if not rejecters:
            return False
        able = self._able() if strategy is Strategy.RESILIENT else set()
        return is_rejected(strategy, rejecters, reviewers=self.plan.reviewers, able=able)

    def _able(self) -> set[str]:
        """Those here, beside us, whose capabilities fit the request."""
        session, plan = self._connection.session, self.plan
        payload = {"jsonrpc": "2.0", "id": 0, **operation(plan.method, plan.params)}
        targets = [[who] for who in session.roster] if plan.target is None else [names_in(plan.target)]
        return {
            who
            for who, held in session.roster.items()
            if who != session.me
            and any(held.fits(Kind.MCP_REQUEST, target, lambda: payload) for target in targets)
        }

    def _rejected(self) -> Rejected:
        """By the last whose word counts."""
        rejections, plan = self.tracker.rejections, self.plan
        counted = [
            said
            for said in rejections
            if plan.strategy is not Strategy.EXCLUSIVE or said.by in plan.reviewers
        ]
        last = counted[-1]
        return Rejected(by=last.by, reason=last.reason, message=last.words, rejections=rejections)

    async def _retract(self, reason: str) -> bool:
        """Withdraw it if we may, so that no one approves into the void; whether everyone has seen that."""
        if not self._may_withdraw(reason):
            return False
        answer = self._connection.post(self._withdrawal(reason))
        await asyncio.wait((answer,), timeout=_CONFIRM_S)
        return answer.done() and not answer.cancelled() and answer.exception() is None

    def _may_withdraw(self, reason: str) -> bool:
        return self._connection.session.may(Kind.MCP_WITHDRAW, (), {"reason": reason})

    def _withdrawal(self, reason: str) -> Envelope:
        about = [self.tracker.id]
        return self._connection.compose(Kind.MCP_WITHDRAW, {"reason": reason}, correlation_id=about)
