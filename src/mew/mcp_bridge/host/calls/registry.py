"""All calls of hosts in flight: routes envelopes to them, and finds the one that a host asks for again."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final, Self

from msgspec import UNSET

from mew.client.client import Client
from mew.client.errors import MewError
from mew.client.proposals.proposer import Proposal
from mew.mcp_bridge.host.offers.offers import OfferOrigin
from mew.mcp_bridge.host.settings import HostSettings
from mew.proposals.differences import same
from mew.proposals.record import ProposalStatus, names_in
from mew.protocol.envelope import Envelope
from mew.protocol.kinds import Kind, McpProposal, McpRequest

from .call import HostCall
from .notes import LogNote, ProgressNote
from .params import NotificationOptions, inward
from .questions import ASKED, ServerQuestion
from .results import HostOperation

__all__ = ["HostCalls"]

_UNDER_WAY_MAX: Final = 1_000
_ENDED_MAX: Final = 64  # their results may be large
_LEAST_S: Final = 0.1
_RETRIED_S: Final = 2.0
"""Calls that are alike and closer together are meant to be two."""
_ABANDON_S: Final = 2.0
_GONE: Final = "the host that made the call does not wait for it now"


class HostCalls:
    """Those of this process, until their ends were told, and proposals of an earlier one. A context: it listens."""

    def __init__(self, me: Client, settings: HostSettings) -> None:
        self._me = me
        self._settings = settings
        self._calls: dict[str, HostCall] = {}
        self._unseen: list[HostCall] = []
        self._last: HostCall | None = None
        self._taken_up: list[Proposal] = []  # they are followed for as long as they are held

    def __enter__(self) -> Self:
        self._me.connection.listen(self._listen, (Kind.MCP_REQUEST,))
        return self

    def __exit__(self, *_: object) -> None:
        self._me.connection.unlisten(self._listen)

    async def begin(
        self,
        operation: HostOperation,
        params: dict[str, Any],
        news: NotificationOptions,
        *,
        schema: Any = None,
        approved: Callable[[], None] | None = None,
    ) -> HostCall:
        """A new call, under way; `schema` and `approved` as `HostCall.begin` has them.

        Raises:
            MewError: as `HostCall.begin`.
        """
        if sum(call.end is None for call in self._calls.values()) >= _UNDER_WAY_MAX:
            raise MewError(f"{_UNDER_WAY_MAX:,} calls are under way; wait for some of them to end")
        call = HostCall(self._me, self._settings, operation, params)
        self._unseen = [known for known in self._unseen if known.end is None and known.handle is None]
        self._unseen.append(call)
        try:
            await call.begin(schema=schema, news=news, approved=approved)
        except BaseException:
            # Or a later call of the same kind would be taken for it.
            self._unseen = [known for known in self._unseen if known is not call]
            raise
        self._keep(call)
        self._last = call
        return call

    async def same_call(
        self, operation: HostOperation, params: dict[str, Any], *, is_repeatable: bool
    ) -> HostCall | None:
        """The same call if it was made before and waits, runs, or has just ended without a host having heard of it.

        `is_repeatable`: that it runs twice does no harm.
        """
        now_s = asyncio.get_running_loop().time()
        for call in reversed(self._calls.values()):
            if not _is_same(call, operation, params):
                continue
            if call.handle is None:
                joins = not is_repeatable and call.end is None and now_s - call.begun_s >= _RETRIED_S
            elif call.end is None:
                joins = True
            else:
                joins = not is_repeatable and call.may_be_untold and call is self._last
            if joins:
                return call
        return await self._same_proposal(operation, params)

    async def _same_proposal(self, operation: HostOperation, params: dict[str, Any]) -> HostCall | None:
        """One that an earlier process of ours proposed, and that waits or runs."""
        whose, now = operation.origin.participant, datetime.now(UTC)
        for record in tuple(self._me.book):
            if (
                record.proposer == self._me.id
                and record.status(now) in (ProposalStatus.OPEN, ProposalStatus.APPROVED)
                and record.id not in self._calls
                and record.method == operation.method
                and whose in names_in(record.target)
                and same(inward(record.params), params)
            ):
                with suppress(KeyError, MewError):
                    return await self.proposed(record.id)
        return None

    async def abandon(self) -> None:
        """Withdraw the proposals that nobody waits for and of which no host knows the handle: we end."""
        left = [call.abandoned_now() for call in self._calls.values() if call.end is None]
        if left and self._me.connected:
            with suppress(TimeoutError):
                async with asyncio.timeout(_ABANDON_S):
                    await asyncio.gather(*left, return_exceptions=True)
        else:
            for work in left:
                work.close()

    def forget(self, call: HostCall) -> None:
        """Whoever made it has been told of its end; a proposal is still known to the space."""
        if self._calls.get(call.key) is call:
            del self._calls[call.key]

    def get(self, key: str) -> HostCall | None:
        """One of this process."""
        return self._calls.get(key)

    async def proposed(self, handle: str) -> HostCall:
        """One that was proposed, by this process or an earlier one.

        Raises:
            KeyError: none of ours has this handle.
            ConnectError, Disconnected: the gateway cannot be asked.
        """
        known = self._calls.get(handle)
        if known is not None and known.handle == handle:
            return known
        proposal = await self._me.proposal(handle, timeout_s=self._settings.open_s)
        operation, params = await self._proposed(handle)
        call = HostCall(self._me, self._settings, operation, params)
        call.resume(proposal)
        self._keep(call)
        return call

    async def take_up(self) -> None:
        """Follow what an earlier process proposed and nobody has decided: it ends as it would have with that one.

        Others may have rejected it meanwhile, or its time may be over: then it is withdrawn, so that nobody approves
        what nobody waits for.
        """
        for record in self._me.book.open(datetime.now(UTC)):
            if record.proposer == self._me.id and record.id not in self._calls:
                age_s = (datetime.now(UTC) - record.created).total_seconds()
                left_s = max(_LEAST_S, self._settings.open_s - age_s)
                with suppress(KeyError, MewError):
                    self._taken_up.append(await self._me.proposal(record.id, timeout_s=left_s))

    async def _proposed(self, handle: str) -> tuple[HostOperation, dict[str, Any]]:
        """What was proposed, as everyone was shown it."""
        record = self._me.book.get(handle)
        if record is not None:
            whose, method, params = names_in(record.target), record.method, record.params
        else:
            shown = await self._me.history(correlation=handle, kind=Kind.MCP_PROPOSAL).list()
            envelope = next(one for one in shown if one.id == handle)
            request = envelope.read(McpProposal)
            whose, method = envelope.to, request.method
            params = {} if request.params is UNSET else request.params
        name = params.get("name") or params.get("uri")
        origin = OfferOrigin(whose[0] if whose else "somebody", self._me.space)
        return HostOperation(method, name if isinstance(name, str) else "", origin), inward(params)

    def concerns(self, envelope: Envelope) -> bool:
        """Whether it is about a call that is under way."""
        return len(self._concerned(envelope)) > 0

    def _keep(self, call: HostCall) -> None:
        self._calls[call.key] = call
        record = None if call.handle is None else self._me.book.get(call.handle)
        if (
            record is not None and record.fulfilment is not None
        ):  # approved before the proposal came back to us
            call.request_ids.add(record.fulfilment.id)
        ended = [kept for kept in self._calls.values() if kept.end is not None]
        for kept in ended[: max(0, len(ended) - _ENDED_MAX)]:
            self.forget(kept)

    def _listen(self, envelope: Envelope, request: Any) -> None:
        if not isinstance(request, McpRequest):
            return
        params = {} if request.params is UNSET else request.params
        if not request.is_notification:
            if envelope.correlation_id:
                self._approved(envelope, request.method)
            if envelope.sender == self._me.id:
                self._recognise(envelope, request.method, params)
            elif request.method in ASKED and self._me.id in envelope.to:
                self._asked(ServerQuestion(self._me, envelope, request))
        elif request.method == "notifications/cancelled":
            self._taken_back(envelope.sender, params.get("requestId"))
        elif request.method == "notifications/message" or (
            request.method == "notifications/progress" and envelope.correlation_id
        ):
            self._told(envelope, request.method, params)

    def _approved(self, envelope: Envelope, method: str) -> None:
        """Somebody carries out what we proposed: what is told about that request is about our call."""
        for handle in envelope.correlation_id:
            call = self._calls.get(handle)
            if call is not None and call.operation.method == method:
                call.request_ids.add(envelope.id)

    def _recognise(self, envelope: Envelope, method: str, params: dict[str, Any]) -> None:
        """A request of ours comes back as everyone sees it: in the order in which they were sent."""
        for call in self._unseen:
            whose = call.operation.origin.participant
            if (
                (whose,) == envelope.to
                and call.operation.method == method
                and same(call.params, inward(params))
            ):
                call.request_ids.add(envelope.id)
                self._unseen.remove(call)
                return

    def _asked(self, question: ServerQuestion) -> None:
        """For the call it is about; where it does not say, for the last one that a host waits for."""
        under_way = [
            call
            for call in self._calls.values()
            if call.end is None
            and call.handle is None
            and call.operation.origin.participant == question.asker
        ]
        meant = [call for call in under_way if call.request_ids.intersection(question.about)]
        meant = meant or (under_way if not question.about else [])
        attended = [call for call in meant if call.attending or call.awaits_retry]
        if attended:
            attended[-1].ask(question)
        elif meant:
            self._me.connection.spawn(question.decline(_GONE))

    def _taken_back(self, asker: str, request_id: Any) -> None:
        for call in self._calls.values():
            call.drop_question(asker, request_id)

    def _told(self, envelope: Envelope, method: str, params: dict[str, Any]) -> None:
        for call in self._concerned(envelope):
            if method == "notifications/message":
                call.note(LogNote(params))
            elif call.handle is not None:  # a request of our own has its progress told by itself
                call.note(_progress(params))

    def _concerned(self, envelope: Envelope) -> list[HostCall]:
        """The calls it is about; what a server logs without saying for whom is for the last that a host waits for."""
        under_way = [
            call
            for call in self._calls.values()
            if call.end is None and envelope.sender == call.operation.origin.participant and call.request_ids
        ]
        if envelope.correlation_id:
            return [call for call in under_way if call.request_ids.intersection(envelope.correlation_id)]
        return [call for call in under_way if call.attending][-1:] if self._me.id in envelope.to else []


def _is_same(call: HostCall, operation: HostOperation, params: dict[str, Any]) -> bool:
    return (
        call.operation.method == operation.method
        and call.operation.origin == operation.origin
        and same(call.params, params)
    )


def _progress(params: dict[str, Any]) -> ProgressNote:
    done, total, message = params.get("progress"), params.get("total"), params.get("message")
    return ProgressNote(
        message if isinstance(message, str) else "",
        done if isinstance(done, int | float) else None,
        total if isinstance(total, int | float) else None,
    )
