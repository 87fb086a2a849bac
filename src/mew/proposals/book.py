"""PURE. All proposals of a space (§3.2, §3.3, §10.2): which are open, who decided what, and whether that is what ran.

Any participant, page or terminal feeds it the envelopes it sees, in order.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Final

from mew.protocol.envelope import Envelope
from mew.protocol.errors import ProtocolError
from mew.protocol.kinds import Kind

from .bounded import Seen, Shares
from .catalogue import Catalogue, Tool
from .parsing import (
    AskedRequest,
    read_explanation,
    read_proposal,
    read_rejection,
    read_request,
    read_response,
    read_withdrawal,
    room_bytes,
    with_tools,
)
from .record import (
    ENTRY_BYTES,
    Fulfilment,
    ProposalRecord,
    Rejection,
    add_explanation,
    add_fulfilment,
    add_rejection,
    add_response,
    add_withdrawal,
)

__all__ = ["ProposalBook"]

_MIB: Final = 1024 * 1024
_FULFILLED_MAX: Final = 4  # by one request: each is compared with all of it, which takes time


class ProposalBook:
    """Fed with the envelopes of a space in order; an envelope seen twice changes nothing.

    It keeps at most `open_max` proposals that may still come to something, `closed_max` others, and about `bytes_max`
    in all. The others are dropped first, oldest first; then the oldest of whoever proposes the most; held ones never.
    """

    def __init__(
        self,
        catalogue: Catalogue | None = None,
        *,
        open_max: int = 1000,
        closed_max: int = 1000,
        bytes_max: int = 32 * _MIB,
    ) -> None:
        """The catalogue is fed by the book; it may be another's too, as seeing an envelope twice does it no harm."""
        self.catalogue = Catalogue() if catalogue is None else catalogue
        self._open_max = open_max
        self._closed_max = closed_max
        self._bytes_max = bytes_max
        self._records: dict[str, ProposalRecord] = {}
        self._settled: dict[str, None] = {}
        self._held: set[str] = set()
        self._unsettled: Shares[str] = Shares()
        self._bytes = 0
        self._about: dict[str, dict[str, None]] = {}  # a rejection or a request -> the proposals it is about
        self._seen = Seen()

    def apply(self, envelope: Envelope, at: datetime) -> ProposalRecord | None:
        """Take the next envelope; return the record it changed, the first if it names several (see `apply_all`)."""
        changed = self.apply_all(envelope, at)
        return changed[0] if changed else None

    def apply_all(self, envelope: Envelope, at: datetime) -> tuple[ProposalRecord, ...]:
        """Take the next envelope; return every record it changed, also those whose tool is now known or another."""
        if not envelope.correlation_id and envelope.kind == Kind.CHAT:
            return ()  # the most of what comes, and about nothing
        tools = self.catalogue.apply(envelope, at)
        changed: dict[str, ProposalRecord] = {}
        for change in (self._changed_by(envelope, at), self._with(tools)):
            for record in change:
                self._keep(record)
                changed[record.id] = record
        self._shrink()
        return tuple(changed.values())

    def adopt(self, record: ProposalRecord) -> None:
        """Know what another book knows of a proposal, and go on from there."""
        self._keep(record)

    def hold(self, id: str) -> None:
        """Never forget this proposal, be it known yet or not: somebody waits for its end."""
        self._held.add(id)
        self._settled.pop(id, None)
        if id in self._records:
            self._unsettled.release(self._records[id].proposer, id)

    def release(self, id: str) -> None:
        """Treat a proposal that was held like any other."""
        self._held.discard(id)
        if id in self._records:
            self._keep(self._records[id])
            self._shrink()

    def open(self, now: datetime) -> tuple[ProposalRecord, ...]:
        """The proposals a reviewer can still decide, oldest first."""
        return tuple(record for record in self._records.values() if record.is_open(now))

    def for_reviewer(
        self, me: str, now: datetime, may_fulfil: Callable[[ProposalRecord], bool]
    ) -> tuple[ProposalRecord, ...]:
        """What waits for this reviewer's decision: not its own, nor meant for others alone, nor rejected by it."""
        return tuple(
            record
            for record in self.open(now)
            if record.proposer != me
            and not (record.exclusive and me not in record.preferred)
            and all(rejection.by != me for rejection in record.rejections)
            and may_fulfil(record)
        )

    def get(self, id: str) -> ProposalRecord | None:
        return self._records.get(id)

    def __getitem__(self, id: str) -> ProposalRecord:
        return self._records[id]

    def __contains__(self, id: object) -> bool:
        return id in self._records

    def __iter__(self) -> Iterator[ProposalRecord]:
        return iter(tuple(self._records.values()))

    def __len__(self) -> int:
        return len(self._records)

    def _changed_by(self, envelope: Envelope, at: datetime) -> list[ProposalRecord]:
        handle = self._handlers().get(envelope.kind)
        if handle is None or (envelope.kind != Kind.MCP_PROPOSAL and not envelope.correlation_id):
            return []
        if not self._seen.first(envelope):
            return []
        try:
            return list(handle(envelope, at))
        except ProtocolError:
            return []

    def _handlers(self) -> dict[str, Callable[[Envelope, datetime], Iterator[ProposalRecord]]]:
        return {
            Kind.MCP_PROPOSAL: self._propose,
            Kind.MCP_REJECT: self._reject,
            Kind.MCP_WITHDRAW: self._withdraw,
            Kind.MCP_REQUEST: self._fulfil,
            Kind.MCP_RESPONSE: self._respond,
            Kind.CHAT: self._explain,
        }

    def _propose(self, envelope: Envelope, at: datetime) -> Iterator[ProposalRecord]:
        known = self._records.get(envelope.id)
        record = read_proposal(envelope, at, self.catalogue)
        if known is not None:
            # A TypeScript client counts its ids from the start again; what still waits is never replaced.
            if not known.is_settled or known.proposer != envelope.sender:
                return
            self._drop(known)
        yield record

    def _reject(self, envelope: Envelope, at: datetime) -> Iterator[ProposalRecord]:
        rejection = read_rejection(envelope, at)
        for record in self._named(envelope.correlation_id):
            yield from _one(add_rejection(record, rejection))

    def _withdraw(self, envelope: Envelope, at: datetime) -> Iterator[ProposalRecord]:
        withdrawal = read_withdrawal(envelope, at)
        for record in self._named(envelope.correlation_id):
            yield from _one(add_withdrawal(record, envelope.sender, withdrawal))

    def _fulfil(self, envelope: Envelope, at: datetime) -> Iterator[ProposalRecord]:
        records = self._named(envelope.correlation_id)[:_FULFILLED_MAX]
        if not records:
            return
        request = envelope.read(AskedRequest)
        for record in records:
            sent = read_request(envelope, request, record, at, self.catalogue)
            if sent is not None:
                size = room_bytes(envelope) if sent.edited else ENTRY_BYTES
                yield from _one(add_fulfilment(record, sent, size))

    def _respond(self, envelope: Envelope, at: datetime) -> Iterator[ProposalRecord]:
        records = self._concerned(envelope)
        response = read_response(envelope, at) if records else None
        if response is not None:
            for record in records:
                yield from _one(add_response(record, envelope.correlation_id, response, room_bytes(envelope)))

    def _explain(self, envelope: Envelope, at: datetime) -> Iterator[ProposalRecord]:
        records = self._concerned(envelope)
        if records:
            said = read_explanation(envelope, at)
            for record in records:
                yield from _one(add_explanation(record, envelope.correlation_id, envelope.sender, said))

    def _concerned(self, envelope: Envelope) -> list[ProposalRecord]:
        """The records of the rejections and requests that the envelope names."""
        return self._named(id for entry in envelope.correlation_id for id in self._about.get(entry, ()))

    def _named(self, ids: Iterable[str]) -> list[ProposalRecord]:
        return [self._records[id] for id in dict.fromkeys(ids) if id in self._records]

    def _with(self, tools: tuple[Tool, ...]) -> Iterator[ProposalRecord]:
        """The open records that may call one of these tools, with the tools as they are now."""
        if not tools:
            return
        names = {tool.name for tool in tools}
        for record in tuple(self._records.values()):
            if record.tool_name in names and not record.fulfilments and record.withdrawn is None:
                known = with_tools(record, self.catalogue)
                if known != record:
                    yield known

    def _keep(self, record: ProposalRecord) -> None:
        known = self._records.get(record.id)
        self._bytes += record.size - (known.size if known else 0)
        self._records[record.id] = record
        if record.id in self._held:
            pass
        elif record.is_settled:
            self._settled.setdefault(record.id)
            self._unsettled.release(record.proposer, record.id)
        else:
            self._unsettled.hold(record.proposer, record.id, record.size)
        for entry in _about(record):
            self._about.setdefault(entry.id, {})[record.id] = None

    def _drop(self, record: ProposalRecord) -> None:
        self._bytes -= record.size
        del self._records[record.id]
        self._settled.pop(record.id, None)
        self._unsettled.release(record.proposer, record.id)
        for entry in _about(record):
            about = self._about.get(entry.id, {})
            about.pop(record.id, None)
            if not about:
                self._about.pop(entry.id, None)

    def _shrink(self) -> None:
        while len(self._settled) > self._closed_max:
            self._drop(self._records[next(iter(self._settled))])
        while self._unsettled.count > self._open_max:
            self._drop(self._records[self._unsettled.oldest_of_most()])
        while self._bytes > self._bytes_max and len(self._settled) + self._unsettled.count > 1:
            settled = next(iter(self._settled), None)
            self._drop(self._records[settled or self._unsettled.oldest_of_largest()])


def _about(record: ProposalRecord) -> Iterator[Fulfilment | Rejection]:
    yield from record.rejections
    yield from record.fulfilments
    yield from record.unrelated


def _one(record: ProposalRecord | None) -> Iterator[ProposalRecord]:
    if record is not None:
        yield record
