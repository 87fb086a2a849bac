"""Sees a proposal through: waits, asks others, gives up and withdraws as its strategy has it (§3.3, design §5)."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from mew.client.errors import AlreadyDecided, Disconnected, MewError, Unanswered
from mew.client.mcp.requests import operation
from mew.client.wire.connection import Connection
from mew.protocol.envelope import Envelope
from mew.protocol.kinds import Kind

from .catalogue import Catalogue
from .decided import TIMEOUT
from .following import Following
from .outcomes import Outcome, Rejected, Strategy, TimedOut, Withdrawn, is_rejected

__all__ = ["NO_LONGER_NEEDED", "Plan", "Pursuit"]

NO_LONGER_NEEDED: Final = "no_longer_needed"
_DUPLICATE: Final = "duplicate"
_CONFIRM_S: Final = 5.0


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to propose, to whom, and when to give up."""

    method: str
    params: dict[str, Any] | None
    target: str | None
    strategy: Strategy
    reviewers: tuple[str, ...]
    timeout_s: float
    fallback_s: float
    context: str | None
    correlation_id: tuple[str, ...]


class Pursuit:
    """Once begun it goes on by itself, to its `outcome`."""

    def __init__(self, connection: Connection, catalogue: Catalogue, plan: Plan) -> None:
        self.plan = plan
        self.following = Following(catalogue)
        self.outcome: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._connection = connection
        self._changed = asyncio.Event()
        self._taken_back: str | None = None
        self._deadline_s = 0.0

    async def begin(self) -> None:
        """Send the proposal; return once it was accepted. Cancelled, it is withdrawn, as nobody knows it yet.

        Raises:
            Refused: the gateway said no.
            Unanswered: the gateway did not accept it in time.
            Disconnected: the connection ended for good.
        """
        timeout_s = self.plan.timeout_s
        try:
            async with asyncio.timeout(timeout_s):
                await self._propose(self.plan.correlation_id, reviewers=self.plan.reviewers)
        except TimeoutError:
            self.take_back()
            raise Unanswered(f"the gateway did not accept the proposal within {timeout_s:g} s") from None
        except asyncio.CancelledError:
            self.take_back()
            raise
        self._deadline_s = asyncio.get_running_loop().time() + timeout_s
        running = self._run()
        self._connection.spawn(running).add_done_callback(lambda _: self._over(running))

    def take(self, envelope: Envelope, payload: Any) -> None:
        """Take the next envelope that may be about it."""
        if self.following.take(envelope, payload, datetime.now(UTC)):
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
            raise AlreadyDecided(f"proposal {self.following.id} has come to its end")
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
        if self.outcome.done() or self.following.fulfilments or self._taken_back is not None:
            return
        if self._may_withdraw(NO_LONGER_NEEDED):
            self._taken_back = NO_LONGER_NEEDED
            self._connection.post(self._withdrawal(NO_LONGER_NEEDED))

    def _check_not_approved(self) -> None:
        if self.following.fulfilments:
            by = self.following.fulfilments[0].by
            raise AlreadyDecided(f"proposal {self.following.id} was approved by {by}")

    async def _propose(self, correlation_id: Sequence[str], *, reviewers: Sequence[str]) -> None:
        plan = self.plan
        payload = operation(plan.method, plan.params)
        if reviewers:  # decision 004
            only = {"exclusive": True} if plan.strategy is Strategy.EXCLUSIVE else {}
            payload["targeting"] = {"preferred": list(reviewers), **only}
        envelope = self._connection.compose(
            Kind.MCP_PROPOSAL,
            payload,
            to=() if plan.target is None else (plan.target,),
            correlation_id=correlation_id,
            context=plan.context,
        )
        self.following.propose(envelope, datetime.now(UTC))  # now: what is said of it may come before we wake
        await self._connection.send(envelope)

    async def _run(self) -> None:
        ended = self._connection.ended
        ended.add_done_callback(self._connection_ended)
        try:
            self.outcome.set_result(await self._pursue())
        except MewError as error:
            self.outcome.set_exception(error)
        finally:
            ended.remove_done_callback(self._connection_ended)

    def _over(self, running: Coroutine[Any, Any, None]) -> None:
        """It ran to its end, or was cancelled with the connection, maybe before it began."""
        running.close()
        if not self.outcome.done():
            self.outcome.set_exception(Disconnected(1000, "closed here"))
        self.outcome.exception()  # marks it as seen: nobody has to ask

    def _connection_ended(self, ended: asyncio.Future[Disconnected]) -> None:
        self._changed.set()

    async def _pursue(self) -> Outcome:
        strategy, following = self.plan.strategy, self.following
        if strategy is Strategy.PREFERRED:
            strategy = Strategy.RESILIENT
            await self._ask_the_preferred()
        await self._until(lambda: not following.is_open or self._is_rejected(strategy), self._deadline_s)
        if following.is_open:
            rejected = self._rejected() if self._is_rejected(strategy) else None
            await self._retract(TIMEOUT if rejected is None else NO_LONGER_NEEDED)
            if not following.fulfilments:
                return rejected or TimedOut(rejections=following.rejections)
        if following.fulfilments and following.record.is_open:
            await self._retract(_DUPLICATE)  # what the preferred were asked was carried out after all
        if following.fulfilments:
            await self._until(lambda: following.is_answered, self._deadline_s)
        end = following.end()
        return Withdrawn(reason=self._taken_back) if isinstance(end, Withdrawn) and self._taken_back else end

    async def _ask_the_preferred(self) -> None:
        """Wait for those named; where they do not take it up, withdraw it and ask everyone."""
        following, loop = self.following, asyncio.get_running_loop()
        fallback_s = min(loop.time() + self.plan.fallback_s, self._deadline_s)
        await self._until(lambda: not following.is_open or self._is_rejected(Strategy.PREFERRED), fallback_s)
        if not following.is_open or loop.time() >= self._deadline_s or self._is_rejected(Strategy.RESILIENT):
            return
        # What cannot be withdrawn stays open, and open to all: a second one could be carried out beside it.
        is_withdrawn = await self._retract(NO_LONGER_NEEDED if following.rejections else TIMEOUT)
        if is_withdrawn and not following.fulfilments and self._taken_back is None:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(self._deadline_s):
                    await self._propose((*self.plan.correlation_id, following.id), reviewers=())

    async def _until(self, reached: Callable[[], bool], deadline_s: float) -> None:
        """Until it is reached, or the time is over."""
        with suppress(TimeoutError):
            async with asyncio.timeout_at(deadline_s):
                while not reached():
                    ended = self._connection.ended
                    if ended.done():
                        raise ended.result().copy()
                    self._changed.clear()
                    await self._changed.wait()

    def _is_rejected(self, strategy: Strategy) -> bool:
        rejecters = {rejection.by for rejection in self.following.rejections}
        if not rejecters:
            return False
        able = self._able() if strategy is Strategy.RESILIENT else set()
        return is_rejected(strategy, rejecters, reviewers=self.plan.reviewers, able=able)

    def _able(self) -> set[str]:
        """Those here, beside us, whose capabilities fit the request."""
        session, plan = self._connection.session, self.plan
        payload = {"jsonrpc": "2.0", "id": 0, **operation(plan.method, plan.params)}
        targets = list(session.roster) if plan.target is None else [plan.target]
        return {
            who
            for who, held in session.roster.items()
            if who != session.me
            and any(held.fits(Kind.MCP_REQUEST, [target], lambda: payload) for target in targets)
        }

    def _rejected(self) -> Rejected:
        """By the last whose word counts."""
        rejections, plan = self.following.rejections, self.plan
        counted = [
            said
            for said in rejections
            if plan.strategy is not Strategy.EXCLUSIVE or said.by in plan.reviewers
        ]
        return Rejected(by=counted[-1].by, reason=counted[-1].reason, rejections=rejections)

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
        about = [self.following.id]
        return self._connection.compose(Kind.MCP_WITHDRAW, {"reason": reason}, correlation_id=about)
