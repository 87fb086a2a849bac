"""PURE. What a proposer knows of its own proposal: what was said about it, and what carried it out (§3.2.1)."""

from datetime import datetime
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from mew.protocol.envelope import Envelope, EnvelopeId
from mew.protocol.kinds import McpResponse

from .book import ProposalBook
from .catalogue import Catalogue
from .decided import Fulfilment, ProposalStatus, Rejection
from .outcomes import Fulfilled, Outcome, Rejected, TimedOut, Withdrawn
from .record import ProposalRecord

__all__ = ["Following"]


class Following:
    """One proposal, or several that are one after another the same. `id` is that of the last.

    It has a book of its own: the proposals of others must not push this one out.
    """

    def __init__(self, catalogue: Catalogue) -> None:
        self.id = EnvelopeId("")
        self._book = ProposalBook(catalogue)
        self._records: dict[str, ProposalRecord] = {}
        self._known: set[str] = set()  # it, what rejected it and what carried it out
        self._responses: dict[str, McpResponse] = {}  # in full, which the book may not keep
        self._announced: dict[str, McpResponse] = {}  # of which the result is still on its way

    def propose(self, envelope: Envelope, at: datetime) -> None:
        """Follow this one from now on, too."""
        self.id = EnvelopeId(envelope.id)
        self._take(envelope, at)

    def adopt(self, record: ProposalRecord) -> None:
        """Follow one that was made before, from what another book knows of it."""
        self.id = EnvelopeId(record.id)
        self._book.adopt(record)
        self._keep(record)
        for sent in record.fulfilments:
            if sent.response is not None:
                said = McpResponse(result=sent.response.result, error=sent.response.error)
                self._responses[sent.response.id] = said

    def take(self, envelope: Envelope, payload: object, at: datetime, *, announces: bool = False) -> bool:
        """Take the next envelope; whether it is about this proposal. `announces`: its result is yet to be `arrived`."""
        if self._known.isdisjoint(envelope.correlation_id):
            return False
        self._take(envelope, at)
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
        """The requests that carried it out, the one that decided first; also those that came after a withdrawal."""
        every = (sent for record in self._records.values() for sent in record.fulfilments)
        return tuple(sent for sent in every if not sent.unrelated)

    @property
    def is_open(self) -> bool:
        """Whether nobody has carried it out, and it was not withdrawn."""
        return self.record.is_open and not self.fulfilments

    @property
    def is_answered(self) -> bool:
        return len(self._responses) > 0

    def end(self) -> Outcome:
        """What became of it, where it is no longer open."""
        for sent in self.fulfilments:
            said = None if sent.response is None else self._responses.get(sent.response.id)
            if sent.response is not None and said is not None:
                return Fulfilled(
                    by=sent.by,
                    request_id=sent.id,
                    response_by=sent.response.by,
                    result=None if said.result is UNSET else said.result,
                    error=None if said.error is UNSET else said.error,
                    edited=sent.edited,
                    differences=sent.differences,
                )
        if self.fulfilments:
            return TimedOut(rejections=self.rejections, approved_by=self.fulfilments[0].by)
        return self._retracted()

    def _retracted(self) -> Rejected | TimedOut | Withdrawn:
        """Why it was withdrawn, be it by an earlier process: its proposer gave up, or changed its mind."""
        match self.record.status:
            case ProposalStatus.TIMED_OUT:
                return TimedOut(rejections=self.rejections)
            case ProposalStatus.REJECTED:
                last = self.rejections[-1]
                return Rejected(by=last.by, reason=last.reason, rejections=self.rejections)
        withdrawn = self.record.withdrawn
        return Withdrawn(reason=None if withdrawn is None else withdrawn.reason)

    def _take(self, envelope: Envelope, at: datetime) -> None:
        for record in self._book.apply_all(envelope, at):
            self._keep(record)

    def _keep(self, record: ProposalRecord) -> None:
        self._records[record.id] = record
        said = (*record.rejections, *record.fulfilments)
        self._known.update((record.id, *(entry.id for entry in said)))
