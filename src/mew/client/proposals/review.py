"""The reviewer's side: what waits for a decision, what it would do, and the decision (§3.2.1, §3.3.2, design §5)."""

import asyncio
import weakref
from collections.abc import Iterable, Sequence
from contextlib import suppress
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any, Final
from weakref import WeakKeyDictionary

from msgspec import UNSET

from mew.client.connection.connection import ClientConnection
from mew.client.connection.feed import Feed
from mew.client.errors import AlreadyDecided, MewError
from mew.client.mcp.requests import Requests, lacking, operation
from mew.client.mcp.results import value_of
from mew.client.mcp.validation import check_call, mismatch
from mew.proposals.book import ProposalBook
from mew.proposals.catalogue import Tool
from mew.proposals.preview import preview
from mew.proposals.record import ProposalRecord, ProposalStatus, Target, names_in
from mew.protocol.envelope import Envelope
from mew.protocol.kinds import Kind, McpProposal, Presence, Welcome

__all__ = ["Review", "Reviews"]

_REQUEST_S: Final = 60.0
_CALL_TOOL: Final = "tools/call"
_LISTING_S: Final = 1.0
_ANSWER_S: Final = 3.0
_DISAGREE: Final = "disagree"
_HEARD: Final = (Kind.MCP_PROPOSAL, Kind.MCP_REQUEST, Kind.MCP_WITHDRAW, Kind.PRESENCE, Kind.WELCOME)


class Reviews:
    """The proposals of others that one may decide."""

    def __init__(
        self, connection: ClientConnection, book: ProposalBook, requests: Requests, *, via: str = "sdk"
    ) -> None:
        """The book is kept current by others. `via` names the surface: the record says where a decision was made."""
        self.book = book
        self._via = via
        self._connection = connection
        self._requests = requests
        self._feeds: WeakKeyDictionary[Feed[Review], set[str]] = WeakKeyDictionary()
        self._asked: dict[str, asyncio.Task[None]] = {}
        self._approving: set[str] = set()
        connection.listen(self._listen, _HEARD)

    def proposals(self) -> Feed["Review"]:
        """Each open proposal that one could fulfil or may reject: those open now, and from now on those that come.

        Not one's own, not those meant for others alone, and not those that one has rejected.
        """
        feed: Feed[Review] = self._connection.feed()
        self._feeds[feed] = set()
        self._offer(feed)
        return feed

    def recall(self, shown: Iterable[Envelope]) -> None:
        """Know of what was proposed and decided before we came."""
        for envelope in shown:
            self.book.apply_all(envelope, datetime.now(UTC) if envelope.ts is UNSET else envelope.ts)

    def review(self, id: str) -> "Review":
        """One proposal, be it open or not.

        Raises:
            KeyError: the book does not know it.
        """
        return self._review(self.book[id])

    def _listen(self, envelope: Envelope, payload: Any) -> None:
        now = datetime.now(UTC)
        for id in self._approving.intersection(envelope.correlation_id):
            record = self.book.get(id)
            if record is not None and not record.is_open(now):
                self._requests.give_up(id, AlreadyDecided(_decided(record, now)))
        # Who is here, and what we may do, decide too what is for us.
        if isinstance(payload, Presence):
            self._asked.pop(payload.participant.id, None)  # who rejoins may answer now
        if isinstance(payload, McpProposal | Presence | Welcome):
            for feed in tuple(self._feeds):
                self._offer(feed)

    def _offer(self, feed: Feed["Review"]) -> None:
        if feed.closed:
            self._feeds.pop(feed, None)
            return
        shown, now = self._feeds[feed], datetime.now(UTC)
        shown &= {record.id for record in self.book.open(now)}

        def is_new(record: ProposalRecord) -> bool:
            return record.id not in shown and self._may_decide(record)

        for record in self.book.for_reviewer(self._connection.session.me, now, is_new):
            shown.add(record.id)
            listing = self._listing(record)
            if listing is None:
                feed.offer(self._review(record))
            else:
                self._connection.spawn(self._offer_after(listing, weakref.ref(feed), record.id))

    def _review(self, record: ProposalRecord) -> "Review":
        return Review(self._connection, self.book, self._requests, record, self._approving, self._via)

    async def _offer_after(
        self, listing: asyncio.Task[None], feed: "weakref.ref[Feed[Review]]", id: str
    ) -> None:
        """A preview is worth little without what the tool is; but a moment is all that we wait for it."""
        await asyncio.wait({listing}, timeout=_LISTING_S)
        wanted, record = feed(), self.book.get(id)
        if wanted is not None and record is not None and record.is_open(datetime.now(UTC)):
            wanted.offer(self._review(record))

    def _listing(self, record: ProposalRecord) -> asyncio.Task[None] | None:
        """On its way from who is to carry it out, asked for once where nobody did; None where that is of no use."""
        target, session = record.target, self._connection.session
        if not isinstance(target, str) or target not in session.roster:
            return None
        if record.tool_name is None or self.book.catalogue.tool(target, record.tool_name) is not None:
            return None
        if target not in self._asked and session.may(Kind.MCP_REQUEST, [target], operation("tools/list", {})):
            self._asked[target] = self._connection.spawn(self._list_tools(target))
        asked = self._asked.get(target)
        return None if asked is None or asked.done() else asked

    async def _list_tools(self, target: str) -> None:
        with suppress(MewError):
            await self._requests.listing(target, "tools", timeout_s=_ANSWER_S)

    def _may_decide(self, record: ProposalRecord) -> bool:
        session = self._connection.session
        if session.may(Kind.MCP_REJECT, [record.proposer], {"reason": _DISAGREE}):
            return True
        payload = _request(record.method, record.params)
        if record.target is not None:
            return session.may(Kind.MCP_REQUEST, names_in(record.target), payload)
        return any(session.may(Kind.MCP_REQUEST, [target], payload) for target in session.roster)


class Review:
    """One proposal, for a reviewer; all it says is as of now."""

    def __init__(
        self,
        connection: ClientConnection,
        book: ProposalBook,
        requests: Requests,
        record: ProposalRecord,
        approving: set[str],
        via: str,
    ) -> None:
        """Made by `Reviews`; `approving` are those being approved, by this or another `Review` of the same."""
        self._connection = connection
        self._book = book
        self._requests = requests
        self._record = record
        self._approving = approving
        self._via = via

    @property
    def record(self) -> ProposalRecord:
        """All that is known of it."""
        known = self._book.get(self._record.id)
        if known is not None and known.created == self._record.created:
            self._record = known
        return self._record

    @property
    def id(self) -> str:
        return self._record.id

    @property
    def proposer(self) -> str:
        return self._record.proposer

    @property
    def target(self) -> Target:
        """Who is to carry it out; None where that is for the reviewer to say."""
        return self._record.target

    @property
    def method(self) -> str:
        return self._record.method

    @property
    def params(self) -> dict[str, Any]:
        """A copy: to change what runs, give `approve` other arguments."""
        return deepcopy(self._record.params)

    @property
    def tool(self) -> str | None:
        """The tool it would call, if it would call one."""
        return self._record.tool_name

    @property
    def arguments(self) -> dict[str, Any]:
        """What it would call the tool with; a copy, to change and give to `approve`."""
        return deepcopy(self._record.arguments)

    @property
    def context(self) -> str | None:
        return self._record.context

    @property
    def why(self) -> str | None:
        """What its proposer says it is for: a claim."""
        return self._record.why

    @property
    def expires_at(self) -> datetime | None:
        """When it can no longer be approved; None: there is no such moment."""
        return self._record.expires_at

    @property
    def description(self) -> str | None:
        """What the tool says of itself; None where no listing of it was seen, or more than one offers it."""
        tool = self._tool(self._sole_target)
        return None if tool is None else tool.description

    @property
    def schema(self) -> Any:
        """The JSON Schema of the tool's arguments, as last seen; None where it was not."""
        tool = self._tool(self._sole_target)
        return None if tool is None else tool.input_schema

    @property
    def annotations(self) -> dict[str, Any]:
        """What the tool claims to be: `readOnlyHint`, `destructiveHint`."""
        tool = self._tool(self._sole_target)
        return {} if tool is None else tool.annotations

    @property
    def digest(self) -> str | None:
        """What identifies exactly this operation; None where it has no canonical form."""
        return self.record.digest

    @property
    def changed(self) -> bool:
        """Whether a tool that it may call is not what it was when first seen, or when this was proposed."""
        record = self.record
        return record.schema_changed or any(tool.changed for tool in record.tools)

    @property
    def changes(self) -> tuple[str, ...]:
        """What of the tools that it may call is not what it was when first seen: `description`, `inputSchema`, …"""
        parts = (part for tool in self.record.tools for part in tool.changed_fields)
        return tuple(dict.fromkeys(parts))

    @property
    def open(self) -> bool:
        """Whether it still waits for a decision; rejections by others do not close it."""
        return self.record.is_open(datetime.now(UTC)) and self._book.get(self.id) is self.record

    @property
    def withdrawn(self) -> bool:
        """Whether its proposer took it back, and nobody has carried it out."""
        return self.record.status(datetime.now(UTC)) is ProposalStatus.WITHDRAWN

    def preview(self) -> str:
        """A few lines that say what it would do."""
        return preview(self.record)

    async def approve(
        self,
        arguments: dict[str, Any] | None = None,
        *,
        target: str | None = None,
        timeout_s: float = _REQUEST_S,
        anyway: bool = False,
    ) -> Any:
        """Carry it out and return the value, as `call` does: exactly as proposed, or with other `arguments`.

        `target` says who is to do it where the proposal does not, and more than one participant offers the tool or
        none is known to. `anyway`: also if its proposer withdrew it, say because the host that made the call is gone.

        Raises:
            AlreadyDecided: it is no longer open, or being approved here already; nothing was sent.
            InvalidArguments: the tool's schema does not allow the arguments; nothing was sent.
            ValueError: it takes no arguments, or needs a `target`, or names another; nothing was sent.
            Refused: we may not do it ourselves.
            ToolError: the tool ran and failed.
            RpcError: the answer is a JSON-RPC error.
            Absent: the target is not in the space.
            Unanswered: no answer came in time.
            StreamBroken: it was done, and its large result did not arrive.
            Disconnected: the connection ended for good.
        """
        self._check_open(anyway=anyway)
        to = self._addressees(target)
        params = self._edited(arguments, to)
        payload = _request(self.method, params)
        if not self._connection.session.may(Kind.MCP_REQUEST, to, payload):
            raise lacking(Kind.MCP_REQUEST, payload)
        self._approving.add(self.id)
        try:
            await self._requests.present(*to, within_s=timeout_s)
            self._check_open(by_us=True, anyway=anyway)
            result = await self._requests.request(
                to,
                self.method,
                params or None,
                timeout_s=timeout_s,
                context=self.context,
                correlation_id=[self.id],
                via=self._via,
                anyway=anyway,
            )
        finally:
            self._approving.discard(self.id)
        return value_of(result) if self.method == _CALL_TOOL else result

    async def reject(self, reason: str = _DISAGREE, message: str | None = None) -> None:
        """Say no, with a code of §3.3.3 or any other, and in words; returns once that was accepted.

        The message reaches the proposer with the rejection, and stays in the audit record.

        Raises:
            AlreadyDecided: it is no longer open, or being approved here; nothing was sent.
            Refused: the gateway said no.
            Disconnected: the connection ended for good.
        """
        self._check_open()
        payload = {"reason": reason, "via": self._via} | ({} if message is None else {"message": message})
        connection = self._connection
        await connection.send(
            connection.compose(Kind.MCP_REJECT, payload, to=[self.proposer], correlation_id=[self.id])
        )

    def _check_open(self, *, by_us: bool = False, anyway: bool = False) -> None:
        record = self.record
        if self.id in self._approving and not by_us:
            raise AlreadyDecided(f"proposal {self.id} is being approved")
        if not self.open and not (anyway and self.withdrawn):
            raise AlreadyDecided(_decided(record, datetime.now(UTC)))

    @property
    def _sole_target(self) -> str | None:
        """The one participant it is for, or the only one here known to offer the tool."""
        roster = self._connection.session.roster
        offering = tuple(tool.participant for tool in self.record.tools if tool.participant in roster)
        named = names_in(self.target) or offering
        return named[0] if len(named) == 1 else None

    def _tool(self, participant: str | None) -> Tool | None:
        known = (tool for tool in self.record.tools if tool.participant == participant)
        return next(known, None)

    def _addressees(self, target: str | None) -> Sequence[str]:
        meant = names_in(self.target)
        if target is not None:
            if meant and target not in meant:
                raise ValueError(f"{self.id} is for {' or '.join(meant)} to do, not for {target!r}")
            return [target]
        if meant:
            return meant
        if self._sole_target is None:
            offering = ", ".join(tool.participant for tool in self.record.tools) or "nobody known"
            raise ValueError(
                f"say with target= who is to do it; {self.tool or self.method!r} is offered by {offering}"
            )
        return [self._sole_target]

    def _edited(self, arguments: dict[str, Any] | None, to: Sequence[str]) -> dict[str, Any]:
        """The params to send."""
        params, tool = self._record.params, self.tool
        if arguments is not None and tool is None:
            raise ValueError(f"only the call of a tool has arguments to change, and this is {self.method}")
        if tool is not None and arguments is not None:
            for participant in to:
                known = self._book.catalogue.tool(participant, tool)
                schema = None if known is None else known.input_schema
                if (
                    mismatch(params.get("arguments", {}), schema) is None
                ):  # else the tool may take more than it says
                    check_call(arguments, schema)
        return params if arguments is None else {**params, "arguments": arguments}


def _request(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 0, **operation(method, params or None)}


def _decided(record: ProposalRecord, now: datetime) -> str:
    """Why it can no longer be decided."""
    if record.fulfilment is not None:
        return f"proposal {record.id} was approved by {record.fulfilment.by}"
    if record.status(now) is ProposalStatus.EXPIRED:
        return f"proposal {record.id} has expired: nobody can approve it any more"
    what = "is no longer known" if record.withdrawn is None else f"was withdrawn by {record.proposer}"
    return f"proposal {record.id} {what}"
