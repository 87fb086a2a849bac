"""PURE, but for `keep_current`. Track a proposal of one's own in the book: what was said, and what carried it out."""

from datetime import UTC, datetime
from typing import Any, Final

from msgspec import UNSET
from msgspec.structs import replace

from mew.client.connection.connection import ClientConnection
from mew.proposals.book import ProposalBook
from mew.proposals.record import Fulfilment, ProposalRecord, Rejection
from mew.protocol.envelope import Envelope, EnvelopeId
from mew.protocol.kinds import Kind, McpResponse

from .outcomes import TIMEOUT, Fulfilled, Outcome, Rejected, TimedOut, Withdrawn

__all__ = ["ProposalTracker", "keep_current"]

_HEARD: Final = (
    Kind.MCP_PROPOSAL,
    Kind.MCP_REQUEST,
    Kind.MCP_RESPONSE,
    Kind.MCP_REJECT,
    Kind.MCP_WITHDRAW,
    Kind.CHAT,
)


def keep_current(connection: ClientConnection, book: ProposalBook) -> None:
    """Apply every envelope that arrives from now on; listeners added later find the book up to date."""

    def listen(envelope: Envelope, payload: Any) -> None:
        book.apply_all(envelope, datetime.now(UTC))

    connection.listen(listen, _HEARD)


class ProposalTracker:
    """One proposal, or several that are one after another the same. `id` is that of the last.

    Until `release` the book holds them, so that the proposals of others do not push them out.
    """

    def __init__(self, book: ProposalBook) -> None:
        """The book is kept current by others."""
        self.id = EnvelopeId("")
        self._book = book
        self._ids: list[str] = []
        self._records: dict[str, ProposalRecord] = {}
        self._responses: dict[str, McpResponse] = {}  # in full, which the book may not keep
        self._announced: dict[str, McpResponse] = {}  # of which the result is still on its way

    def propose(self, id: str) -> None:
        """Follow this one from now on, too."""
        self.id = EnvelopeId(id)
        self._ids.append(id)
        self._book.hold(id)

    def accepted(self, envelope: Envelope, at: datetime) -> None:
        """The gateway took it; if its echo was lost with a connection, the book learns of it now."""
        self._book.apply_all(envelope, at)
        self.refresh()

    def adopt(self, record: ProposalRecord) -> None:
        """Follow one that was made before."""
        if self._book.get(record.id) is None:
            self._book.adopt(record)
        self.propose(record.id)
        self.refresh()
        for sent in record.fulfilments:
            if sent.response is not None:
                said = McpResponse(result=sent.response.result, error=sent.response.error)
                self._responses[sent.response.id] = said

    def release(self) -> None:
        """It came to its end."""
        for id in self._ids:
            self._book.release(id)

    def refresh(self) -> bool:
        """Look it up in the book; whether anything changed."""
        changed = False
        for id in self._ids:
            record = self._book.get(id)
            if record is not None and record is not self._records.get(id):
                self._records[id] = record
                changed = True
        return changed

    def take(self, envelope: Envelope, payload: object, *, announces: bool = False) -> bool:
        """Take an envelope that the book has; whether it changed anything. `announces`: its result follows."""
        if not self.refresh():
            return False
        if isinstance(payload, McpResponse):
            for sent in self.fulfilments:
                if sent.response is not None and sent.response.id == envelope.id:
                    (self._announced if announces else self._responses)[envelope.id] = payload
        return True

    def arrived(self, response_id: str, result: Any) -> None:
        """What a response announced; the announcement itself, where that is all there will be."""
        announced = self._announced.pop(response_id, None)
        if announced is not None:
            self._responses[response_id] = replace(announced, result=result)

    def announced(self, response_id: str) -> bool:
        """Whether the result of this response is on its way."""
        return response_id in self._announced

    def follows(self, id: str) -> bool:
        """Whether this is the id of the proposal, or of one that it was before."""
        return id in self._records

    @property
    def record(self) -> ProposalRecord:
        return self._records[self.id]

    @property
    def rejections(self) -> tuple[Rejection, ...]:
        return tuple(rejection for record in self._records.values() for rejection in record.rejections)

    @property
    def fulfilments(self) -> tuple[Fulfilment, ...]:
        """The requests that carry it out, the one that decides first; late ones too, unless they were refused."""
        found: dict[str, Fulfilment] = {}
        for record in self._records.values():
            decides = () if record.fulfilment is None else (record.fulfilment,)
            for sent in (*decides, *record.fulfilments):
                if not (sent.late and sent.response is not None and not sent.ran):
                    found.setdefault(sent.id, sent)
        return tuple(found.values())

    @property
    def is_open(self) -> bool:
        """Whether nobody has carried it out, and it was not withdrawn."""
        return not self.fulfilments and self.record.withdrawn is None

    @property
    def is_answered(self) -> bool:
        return len(self._responses) > 0

    def end(self) -> Outcome:
        """What became of it, where it is no longer open."""
        for sent in self.fulfilments:
            said = None if sent.response is None else self._responses.get(sent.response.id)
            if sent.response is not None and said is not None:
                params = {} if sent.params is UNSET else sent.params
                arguments = params.get("arguments")
                return Fulfilled(
                    by=sent.by,
                    via=sent.via,
                    request_id=sent.id,
                    response_by=sent.response.by,
                    result=None if said.result is UNSET else said.result,
                    error=None if said.error is UNSET else said.error,
                    arguments=arguments if isinstance(arguments, dict) else {},
                    digest=sent.digest,
                    edited=sent.edited,
                    differences=sent.differences,
                )
        if self.fulfilments:
            return TimedOut(rejections=self.rejections, approved_by=self.fulfilments[0].by)
        return self._retracted()

    def _retracted(self) -> Rejected | TimedOut | Withdrawn:
        """Why it was withdrawn, be it by an earlier process: its proposer gave up, or changed its mind."""
        withdrawn = self.record.withdrawn
        if withdrawn is None or withdrawn.reason == TIMEOUT or self.record.has_expired(withdrawn.at):
            return TimedOut(rejections=self.rejections)
        if withdrawn.after_rejection:
            last = self.rejections[-1]
            return Rejected(by=last.by, reason=last.reason, message=last.words, rejections=self.rejections)
        return Withdrawn(reason=withdrawn.reason)
