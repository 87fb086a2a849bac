"""PURE. What a proposer knows of its own proposal: what was said about it, and what carried it out (§3.2.1)."""

from datetime import datetime

from msgspec import UNSET

from mew.protocol.envelope import Envelope, EnvelopeId
from mew.protocol.kinds import McpResponse

from .book import ProposalBook
from .catalogue import Catalogue
from .decided import Fulfilment, Rejection
from .outcomes import Fulfilled, TimedOut, Withdrawn
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

    def propose(self, envelope: Envelope, at: datetime) -> None:
        """Follow this one from now on, too."""
        self.id = EnvelopeId(envelope.id)
        self._take(envelope, at)

    def take(self, envelope: Envelope, payload: object, at: datetime) -> bool:
        """Take the next envelope; whether it is about this proposal."""
        if self._known.isdisjoint(envelope.correlation_id):
            return False
        self._take(envelope, at)
        if isinstance(payload, McpResponse):
            for sent in self.fulfilments:
                if sent.response is not None and sent.response.id == envelope.id:
                    self._responses[envelope.id] = payload
        return True

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

    def end(self) -> Fulfilled | TimedOut | Withdrawn:
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
        withdrawn = self.record.withdrawn
        return Withdrawn(reason=None if withdrawn is None else withdrawn.reason)

    def _take(self, envelope: Envelope, at: datetime) -> None:
        for record in self._book.apply_all(envelope, at):
            self._records[record.id] = record
            said = (*record.rejections, *record.fulfilments)
            self._known.update((record.id, *(entry.id for entry in said)))
