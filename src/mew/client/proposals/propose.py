"""The proposer's side: propose what one may not do, and follow it to its end (§3.2, §3.3, design §5)."""

import asyncio
from collections.abc import Awaitable, Generator, Sequence
from copy import deepcopy
from typing import Any, Final
from weakref import WeakSet

from msgspec import UNSET

from mew.client.errors import NotFulfilled, Refused, RpcError
from mew.client.mcp.requests import OnProgress, Requests, lacking, operation
from mew.client.mcp.results import value_of
from mew.client.wire.connection import Connection
from mew.protocol.envelope import Envelope, EnvelopeId
from mew.protocol.errors import Refusal
from mew.protocol.kinds import Grant, Kind, Presence, Revoke, Welcome

from .book import ProposalBook
from .decided import Explanation, Rejection
from .outcomes import Fulfilled, Outcome, Strategy
from .pursuit import NO_LONGER_NEEDED, Plan, Pursuit

__all__ = ["Proposal", "Proposals"]

_REQUEST_S: Final = 60.0
_PROPOSAL_S: Final = 300.0
_FALLBACK_S: Final = 30.0
_CALL_TOOL: Final = "tools/call"
_FOLLOWED: Final = frozenset(
    {Kind.MCP_REJECT, Kind.MCP_WITHDRAW, Kind.MCP_REQUEST, Kind.MCP_RESPONSE, Kind.CHAT}
)
_HEARD: Final = _FOLLOWED | {Kind.PRESENCE, Kind.GRANT, Kind.REVOKE, Kind.WELCOME}
_NAMED: Final = (Strategy.PREFERRED, Strategy.EXCLUSIVE)


class Proposals:
    """Proposes, over one connection. `book` is what `Proposal.digest` is looked up in; others feed it."""

    def __init__(self, connection: Connection, requests: Requests, book: ProposalBook) -> None:
        self._connection = connection
        self._requests = requests
        self._book = book
        self._alive: WeakSet[Pursuit] = WeakSet()
        connection.listen(self._listen, _HEARD)

    async def propose(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        target: str | None = None,
        strategy: Strategy = Strategy.FIRST_REJECT,
        reviewers: str | Sequence[str] = (),
        timeout_s: float = _PROPOSAL_S,
        fallback_s: float = _FALLBACK_S,
        context: str | None = None,
        correlation_id: str | Sequence[str] = (),
    ) -> "Proposal":
        """Propose an MCP request that somebody else may make; returns once everyone is being shown it.

        `target` is to carry it out; without one, it is for whoever approves to say. `reviewers` are for the strategies
        that name some. What has not come to an end after `timeout_s` is withdrawn.

        Raises:
            ValueError: the strategy names reviewers and none were given, or the other way round.
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
        plan = Plan(
            method=method,
            params=deepcopy(params),  # it may be sent again
            target=target,
            strategy=strategy,
            reviewers=reviewers,
            timeout_s=timeout_s,
            fallback_s=fallback_s,
            context=context,
            correlation_id=(correlation_id,) if isinstance(correlation_id, str) else tuple(correlation_id),
        )
        pursuit = Pursuit(self._connection, self._book.catalogue, plan)
        self._alive.add(pursuit)
        await pursuit.begin()
        return Proposal(self._connection, self._book, pursuit)

    async def call(
        self,
        target: str,
        tool: str,
        arguments: dict[str, Any] | None = None,
        *,
        timeout_s: float | None = None,
        on_progress: OnProgress | None = None,
        strategy: Strategy = Strategy.FIRST_REJECT,
        reviewers: str | Sequence[str] = (),
        context: str | None = None,
        correlation_id: Sequence[str] = (),
    ) -> Any:
        """Call a tool and return its value: by a request where capabilities allow it, by a proposal otherwise.

        Without `timeout_s` a request has 60 seconds, a proposal 300. Cancelled, it takes back what it sent.

        Raises:
            ToolError: the tool ran and failed.
            RpcError: the answer is a JSON-RPC error.
            NotFulfilled: it was proposed, and rejected, withdrawn or not taken up in time.
            Absent: the target is not in the space.
            Unanswered: no answer came in time.
            Refused: we may neither request nor propose it, or the gateway said no.
            Disconnected: the connection ended for good.
        """
        params = {"name": tool, "arguments": arguments or {}}
        payload = operation(_CALL_TOOL, params)
        session = self._connection.session
        if session.may(Kind.MCP_REQUEST, [target], {"jsonrpc": "2.0", "id": 0, **payload}):
            try:
                result = await self._requests.request(
                    target,
                    _CALL_TOOL,
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
            else:
                return value_of(result)
        if not session.may(Kind.MCP_PROPOSAL, [target], payload):
            raise lacking(Kind.MCP_REQUEST, payload, instead=Kind.MCP_PROPOSAL)
        within_s = _PROPOSAL_S if timeout_s is None else timeout_s
        await self._requests.present(target, within_s=within_s)
        proposal = await self.propose(
            _CALL_TOOL,
            params,
            target=target,
            strategy=strategy,
            reviewers=reviewers,
            timeout_s=within_s,
            context=context,
            correlation_id=correlation_id,
        )
        return await proposal.value()

    def _listen(self, envelope: Envelope, payload: Any) -> None:
        if envelope.kind in _FOLLOWED:
            if envelope.correlation_id:
                for pursuit in tuple(self._alive):
                    pursuit.take(envelope, payload)
        elif isinstance(payload, Presence | Grant | Revoke | Welcome):
            for pursuit in tuple(self._alive):
                pursuit.look_again()


class Proposal(Awaitable[Outcome]):
    """What was proposed, and what becomes of it. `await` it for the outcome, or `value()` for what it was proposed for.

    It goes on by itself: who waits for it may be cancelled, and it is withdrawn only by `withdraw`, by the end of its
    time, by a rejection that its strategy takes for an answer, or by the cancellation of `value()`.
    """

    def __init__(self, connection: Connection, book: ProposalBook, pursuit: Pursuit) -> None:
        """Made by `Proposals.propose`."""
        self._connection = connection
        self._book = book
        self._pursuit = pursuit

    def __await__(self) -> Generator[Any, None, Outcome]:
        return self._outcome().__await__()

    @property
    def id(self) -> EnvelopeId:
        """Of its envelope; it becomes another where everyone is asked after the preferred."""
        return self._pursuit.following.id

    @property
    def digest(self) -> str | None:
        """What identifies exactly this operation (design §5); None where it has no canonical form."""
        return (self._book.get(self.id) or self._pursuit.following.record).digest

    @property
    def rejections(self) -> tuple[Rejection, ...]:
        """Those that came so far, also after the end."""
        return self._pursuit.following.rejections

    @property
    def explanations(self) -> tuple[Explanation, ...]:
        """What those who rejected it said about it in chats (§3.3.3), so far; they may come late or never."""
        return tuple(said for rejection in self.rejections for said in rejection.explanations)

    async def value(self) -> Any:
        """What was proposed for: the value of the tool that was called, or the result. Cancelled, it withdraws.

        Raises:
            NotFulfilled: it was rejected, withdrawn, or no end came in time.
            RpcError: the answer is a JSON-RPC error.
            ToolError: the tool ran and failed.
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
        return value_of(outcome.result) if self._pursuit.plan.method == _CALL_TOOL else outcome.result

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
