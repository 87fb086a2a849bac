"""Propose (§3.2): one proposal to await, follow and withdraw, and requests that become proposals if they must."""

import asyncio
from collections.abc import Awaitable, Generator, Sequence
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from math import inf
from typing import Any, Final, TypedDict
from weakref import WeakSet

from msgspec import UNSET

from mew.client.connection.connection import ClientConnection
from mew.client.connection.feed import Feed
from mew.client.errors import NotFulfilled, Refused, RpcError, StreamBroken
from mew.client.history import HistoryFilter, HistoryIterator
from mew.client.mcp.large_result import large_result_in
from mew.client.mcp.model_tools import ToolListings
from mew.client.mcp.requests import OnProgress, Requests, lacking, operation, with_progress_token
from mew.client.mcp.results import value_of
from mew.proposals.book import ProposalBook
from mew.proposals.preview import PROPOSED_TOKEN
from mew.proposals.record import Explanation, ProposalRecord, Rejection
from mew.protocol.envelope import Envelope, EnvelopeId
from mew.protocol.errors import Refusal
from mew.protocol.kinds import Grant, Kind, Presence, Revoke, Welcome

from .outcomes import Fulfilled, OnUpdate, Outcome, ProposalUpdate, Strategy
from .runner import NO_LONGER_NEEDED, ProposalPlan, ProposalRunner

__all__ = ["AskOptions", "Proposal", "ProposeOptions", "Proposer"]

_CALL_TOOL: Final = "tools/call"


class AskOptions(TypedDict, total=False):
    """The options of `Proposer.ask`, for what forwards them."""

    timeout_s: float | None
    on_progress: OnProgress | None
    on_update: OnUpdate | None
    strategy: Strategy
    reviewers: str | Sequence[str]
    context: str | None
    correlation_id: Sequence[str]
    why: str | None
    expires_in: float | None


class ProposeOptions(AskOptions, total=False):
    """The options of `Proposer.propose`, for what forwards them."""

    fallback_s: float


class Proposal(Awaitable[Outcome]):
    """What was proposed, and what becomes of it. `await` it for the outcome, or `value()` for what it was proposed for.

    It goes on by itself: who waits for it may be cancelled, and it is withdrawn only by `withdraw`, by the end of its
    time, by a rejection that its strategy takes for an answer, or by the cancellation of `value()` or `result()`.
    """

    def __init__(self, connection: ClientConnection, book: ProposalBook, runner: ProposalRunner) -> None:
        """Made by `Proposer.propose`."""
        self._connection = connection
        self._book = book
        self._pursuit = runner

    def __await__(self) -> Generator[Any, None, Outcome]:
        return self._outcome().__await__()

    @property
    def id(self) -> EnvelopeId:
        """Of its envelope; it becomes another where everyone is asked after the preferred."""
        return self._pursuit.tracker.id

    @property
    def digest(self) -> str | None:
        """What identifies exactly this operation (design §5); None where it has no canonical form."""
        return self.record.digest

    @property
    def record(self) -> ProposalRecord:
        """What was proposed, and all that is known to have become of it."""
        return self._pursuit.tracker.record

    @property
    def stage(self) -> ProposalUpdate:
        """Where it stands, as far as we know: open, approved and running, or at its end."""
        return self._pursuit.stage

    @property
    def outcome(self) -> Outcome | None:
        """What became of it; None while it is open or running."""
        return self._pursuit.stage.outcome

    def stages(self) -> Feed[ProposalUpdate]:
        """Each stage, for `async for`: the one it is at now, and those that follow; it ends with the proposal.

        async for stage in proposal.stages():
            print(stage)  # waiting for approval / approved by ann, running / …
        """
        return self._pursuit.notifier.stages(self._pursuit.stage)

    @property
    def rejections(self) -> tuple[Rejection, ...]:
        """Those that came so far, also after the end."""
        return self._pursuit.tracker.rejections

    @property
    def explanations(self) -> tuple[Explanation, ...]:
        """What those who rejected it said about it in chats (§3.3.3), so far; they may come late or never."""
        return tuple(said for rejection in self.rejections for said in rejection.explanations)

    async def value(self) -> Any:
        """What was proposed for: the value of the tool that was called, or the result. Cancelled, it withdraws.

        Raises:
            ToolError: the tool ran and failed.
            NotFulfilled, RpcError, StreamBroken, Disconnected: as `result`.
        """
        result = await self.result()
        return value_of(result) if self._pursuit.plan.method == _CALL_TOOL else result

    async def result(self) -> Any:
        """The result of the request that was proposed, as MCP has it. Cancelled, it withdraws.

        Raises:
            NotFulfilled: it was rejected, withdrawn, or no end came in time.
            RpcError: the answer is a JSON-RPC error.
            StreamBroken: the result came over a stream, and was not seen or did not arrive.
            Disconnected: the connection ended for good.
        """
        try:
            outcome = await self._outcome()
        except asyncio.CancelledError:
            self._pursuit.take_back()
            raise
        if not isinstance(outcome, Fulfilled):
            raise NotFulfilled(outcome)
        error = outcome.error
        if error is not None:
            raise RpcError(error.code, error.message, None if error.data is UNSET else error.data)
        parcel = large_result_in(outcome.result)
        if parcel is not None:
            raise StreamBroken(
                f"the result, of {parcel.size} bytes, went over stream {parcel.stream_id}, which is kept nowhere, "
                "and did not arrive here"
            )
        return outcome.result

    async def withdraw(self, reason: str = NO_LONGER_NEEDED) -> None:
        """Take it back (§3.3.1); returns once that was accepted.

        Raises:
            AlreadyDecided: it had come to an end, or was approved before the withdrawal.
            Refused: the gateway said no.
            Disconnected: the connection ended for good.
        """
        await self._pursuit.withdraw(reason)

    async def _outcome(self) -> Outcome:
        with self._connection.expecting():
            return await asyncio.shield(self._pursuit.outcome)


_REQUEST_S: Final = 60.0
_PROPOSAL_S: Final = 300.0
_FALLBACK_S: Final = 30.0
_RECALLED_MAX: Final = 10_000
_FOLLOWED: Final = frozenset(
    {Kind.MCP_REJECT, Kind.MCP_WITHDRAW, Kind.MCP_REQUEST, Kind.MCP_RESPONSE, Kind.CHAT}
)
_HEARD: Final = _FOLLOWED | {Kind.PRESENCE, Kind.GRANT, Kind.REVOKE, Kind.WELCOME}
_NAMED: Final = (Strategy.PREFERRED, Strategy.EXCLUSIVE)


class Proposer:
    """Proposes, over one connection. `book` is what `Proposal.digest` is looked up in; others feed it."""

    def __init__(self, connection: ClientConnection, requests: Requests, book: ProposalBook) -> None:
        self._connection = connection
        self._requests = requests
        self.listings = ToolListings(connection, requests, book.catalogue)
        self._book = book
        self._alive: WeakSet[ProposalRunner] = WeakSet()
        connection.listen(self._listen, _HEARD)

    async def propose(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        target: str | None = None,
        strategy: Strategy = Strategy.FIRST_REJECT,
        reviewers: str | Sequence[str] = (),
        timeout_s: float | None = None,
        fallback_s: float = _FALLBACK_S,
        context: str | None = None,
        correlation_id: str | Sequence[str] = (),
        on_update: OnUpdate | None = None,
        on_progress: OnProgress | None = None,
        why: str | None = None,
        expires_in: float | None = None,
    ) -> Proposal:
        """Propose an MCP request that somebody else may make; returns once everyone is being shown it.

        `target` is to carry it out; without one, it is for whoever approves to say. `reviewers` are for the strategies
        that name some. What has not come to an end after `timeout_s` is withdrawn. With `on_progress`, it is part of
        what is proposed that whoever carries it out says how far they are. `why` is shown to reviewers. After
        `expires_in` seconds nobody can approve it any more, whether this process still runs or not; without
        `timeout_s` it is withdrawn then, or else after 300 seconds.

        Raises:
            ValueError: the strategy names reviewers and none were given, or the other way round; `expires_in` is not
                positive.
            Refused: the gateway said no.
            Unanswered: the gateway did not accept it in time.
            Disconnected: the connection ended for good.
        """
        reviewers = (reviewers,) if isinstance(reviewers, str) else tuple(reviewers)
        if bool(reviewers) is not (strategy in _NAMED):
            raise ValueError(
                f"strategy {strategy.value!r} {'takes no' if reviewers else 'needs'} reviewers: "
                f"only {' and '.join(named.value for named in _NAMED)} name them"
            )
        if on_progress is not None:
            params = with_progress_token(params, PROPOSED_TOKEN)
        plan = ProposalPlan(
            method=method,
            params=deepcopy(params),  # it may be sent again
            target=target,
            strategy=strategy,
            reviewers=reviewers,
            timeout_s=_within_s(timeout_s, expires_in),
            fallback_s=fallback_s,
            context=context,
            correlation_id=(correlation_id,) if isinstance(correlation_id, str) else tuple(correlation_id),
            on_progress=on_progress,
            why=why,
            expires_at=_after(expires_in),
        )
        runner = ProposalRunner(self._connection, self._book, plan, self._requests.delivery)
        self._alive.add(runner)
        if on_update is not None:
            runner.notifier.watch(on_update)
        await runner.begin()
        return Proposal(self._connection, self._book, runner)

    async def proposal(
        self, id: str, *, strategy: Strategy = Strategy.FIRST_REJECT, timeout_s: float = inf
    ) -> Proposal:
        """A proposal of ours that was made before, by this process or another: go on with it from where it stands.

        From the book, or else from what the gateway keeps. Where it is open still, a rejection ends it as `strategy`
        has it; one that names its reviewers is rejected when all of them did. After `timeout_s` it is withdrawn.

        Raises:
            KeyError: nothing is known of a proposal of ours with that id.
            ConnectError: the gateway does not tell.
            Disconnected: the connection ended for good.
        """
        runner = self._pursued(id)
        if runner is None:
            record = await self._record(id)
            runner = self._pursued(id) or await self._resumed(record, strategy, timeout_s)
        return Proposal(self._connection, self._book, runner)

    async def ask(
        self,
        target: str,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        timeout_s: float | None = None,
        on_progress: OnProgress | None = None,
        on_update: OnUpdate | None = None,
        strategy: Strategy = Strategy.FIRST_REJECT,
        reviewers: str | Sequence[str] = (),
        context: str | None = None,
        correlation_id: Sequence[str] = (),
        why: str | None = None,
        expires_in: float | None = None,
    ) -> Any:
        """Ask, and return the JSON-RPC `result`: by a request where we may, by a proposal where we may only propose.

        Without `timeout_s` a request has 60 seconds, a proposal 300. Cancelled, it takes back what it sent.

        Raises:
            RpcError: the answer is a JSON-RPC error.
            NotFulfilled: it was proposed, and rejected, withdrawn or not taken up in time.
            UnknownTool: the target is known to list no such tool.
            Absent: the target is not in the space.
            Unanswered: no answer came in time.
            Refused: we may neither request nor propose it, or the gateway said no.
            StreamBroken: the result came over a stream, and not all of it arrived.
            Disconnected: the connection ended for good.
        """
        payload = operation(method, params)
        session = self._connection.session
        if session.may(Kind.MCP_REQUEST, [target], {"jsonrpc": "2.0", "id": 0, **payload}):
            if method == _CALL_TOOL:
                await self.listings.check_name(target, params or {})
            try:
                return await self._requests.request(
                    target,
                    method,
                    params,
                    timeout_s=_REQUEST_S if timeout_s is None else timeout_s,
                    on_progress=on_progress,
                    context=context,
                    correlation_id=correlation_id,
                )
            except Refused as refused:
                # Revoked just now, or a gateway that reads capabilities in another way.
                if refused.why is not Refusal.CAPABILITY_VIOLATION:
                    raise
        if not session.may(Kind.MCP_PROPOSAL, [target], payload):
            raise lacking(Kind.MCP_REQUEST, payload, instead=Kind.MCP_PROPOSAL)
        within_s = _within_s(timeout_s, expires_in)
        await self._requests.present(target, within_s=within_s)
        if method == _CALL_TOOL:
            why = await self.listings.check(target, params or {}, why)
        proposal = await self.propose(
            method,
            params,
            target=target,
            strategy=strategy,
            reviewers=reviewers,
            timeout_s=within_s,
            context=context,
            correlation_id=correlation_id,
            on_update=on_update,
            on_progress=on_progress,
            why=why,
            expires_in=expires_in,
        )
        return await proposal.result()

    def _pursued(self, id: str) -> ProposalRunner | None:
        """The one that follows it already."""
        return next((runner for runner in tuple(self._alive) if runner.tracker.follows(id)), None)

    async def _resumed(self, record: ProposalRecord, strategy: Strategy, timeout_s: float) -> ProposalRunner:
        plan = ProposalPlan(
            method=record.method,
            params=record.params or None,
            target=record.target,
            strategy=Strategy.EXCLUSIVE if record.exclusive else strategy,
            reviewers=record.preferred,
            timeout_s=timeout_s,
            fallback_s=0.0,
            context=record.context,
            correlation_id=(),
        )
        runner = ProposalRunner(self._connection, self._book, plan, self._requests.delivery)
        self._alive.add(runner)
        await runner.resume(record)
        return runner

    async def _record(self, id: str) -> ProposalRecord:
        """
        Raises:
            KeyError: none of ours has that id.
        """
        record = self._book.get(id) or await self._recall(id)
        if record is None or record.proposer != self._connection.session.me:
            raise KeyError(f"nothing is known of a proposal {id!r} of {self._connection.session.me!r}")
        return record

    async def _recall(self, id: str) -> ProposalRecord | None:
        """What the gateway keeps of it; what is said of it meanwhile comes after that."""
        said: list[Envelope] = []

        def hear(envelope: Envelope, payload: Any) -> None:
            if envelope.correlation_id:
                said.append(envelope)

        self._connection.listen(hear, _FOLLOWED)
        try:
            shown = await HistoryIterator(
                self._connection, HistoryFilter(correlation=id, limit=_RECALLED_MAX)
            ).list()
        finally:
            self._connection.unlisten(hear)
        book = ProposalBook(self._book.catalogue)
        for envelope in (*shown, *said):
            book.apply_all(envelope, datetime.now(UTC) if envelope.ts is UNSET else envelope.ts)
        return book.get(id)

    def _listen(self, envelope: Envelope, payload: Any) -> None:
        if envelope.kind in _FOLLOWED:
            if envelope.correlation_id:
                for runner in tuple(self._alive):
                    runner.take(envelope, payload)
        elif isinstance(payload, Presence | Grant | Revoke | Welcome):
            for runner in tuple(self._alive):
                runner.look_again()


def _within_s(timeout_s: float | None, expires_in: float | None) -> float:
    if timeout_s is not None:
        return timeout_s
    return _PROPOSAL_S if expires_in is None else expires_in


def _after(seconds: float | None) -> datetime | None:
    if seconds is None:
        return None
    if not 0 < seconds < inf:
        raise ValueError(f"expires_in must be a positive number of seconds, not {seconds:g}")
    return datetime.now(UTC) + timedelta(seconds=seconds)
