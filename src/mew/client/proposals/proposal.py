"""One proposal of ours, to await, to follow and to take back."""

import asyncio
from collections.abc import Awaitable, Generator
from typing import Any, Final

from msgspec import UNSET

from mew.client.errors import NotFulfilled, RpcError, StreamBroken
from mew.client.mcp.parcel import parcel_in
from mew.client.mcp.results import value_of
from mew.client.wire.connection import Connection
from mew.client.wire.feed import Feed
from mew.proposals.book import ProposalBook
from mew.proposals.record import Explanation, ProposalRecord, Rejection
from mew.protocol.envelope import EnvelopeId

from .outcomes import Fulfilled, Outcome
from .pursuit import NO_LONGER_NEEDED, Pursuit
from .stages import Stage

__all__ = ["Proposal"]

_CALL_TOOL: Final = "tools/call"


class Proposal(Awaitable[Outcome]):
    """What was proposed, and what becomes of it. `await` it for the outcome, or `value()` for what it was proposed for.

    It goes on by itself: who waits for it may be cancelled, and it is withdrawn only by `withdraw`, by the end of its
    time, by a rejection that its strategy takes for an answer, or by the cancellation of `value()` or `result()`.
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
        return self.record.digest

    @property
    def record(self) -> ProposalRecord:
        """What was proposed, and all that is known to have become of it."""
        return self._pursuit.following.record

    @property
    def stage(self) -> Stage:
        """Where it stands, as far as we know: open, approved and running, or at its end."""
        return self._pursuit.stage

    @property
    def outcome(self) -> Outcome | None:
        """What became of it; None while it is open or running."""
        return self._pursuit.stage.outcome

    def stages(self) -> Feed[Stage]:
        """Each stage, for `async for`: the one it is at now, and those that follow; it ends with the proposal.

        async for stage in proposal.stages():
            print(stage)  # waiting for approval / approved by ann, running / …
        """
        return self._pursuit.telling.stages(self._pursuit.stage)

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
        parcel = parcel_in(outcome.result)
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
