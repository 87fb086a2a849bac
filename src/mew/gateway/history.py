"""PURE. What was shown in a space, newest last, within bounds: for those who come back and those who ask."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from itertools import islice
from typing import Final

from msgspec import Struct

from mew.protocol.capability import Capability
from mew.protocol.envelope import Envelope, EnvelopeId, ParticipantId

from .correlations import Chain, Correlations

__all__ = ["PAGE_BYTES_MAX", "History", "Page", "Query", "Record"]

PAGE_BYTES_MAX: Final = 4 << 20
"""A page ends early rather than hold more; one record it always has."""

_NAME_BYTES: Final = 128  # what a name among many takes, decoded and indexed, beside its letters


class Record(Struct, frozen=True, gc=False):
    """One envelope as it was shown. `only`: those it was for, None for everyone."""

    at: datetime
    envelope: Envelope
    raw: bytes
    only: tuple[ParticipantId, ...] | None

    def is_for(self, who: ParticipantId) -> bool:
        return self.only is None or who in self.only


class Query(Struct, frozen=True, kw_only=True):
    """What `who` asks for. `since` and `until` are the gateway's time, both included; `kind` may be a glob."""

    who: ParticipantId
    after: str | None = None
    before: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    kind: Capability | None = None
    participant: str | None = None
    correlation: str | None = None
    newest_first: bool = False
    limit: int = 100


class Page(Struct, frozen=True):
    """`more` fit the query and did not fit the page; not `complete`: some that may have fitted are gone."""

    records: tuple[Record, ...]
    more: bool
    complete: bool


class History:
    """The last envelopes of one space, numbered as they come; `bytes` is what they take, as received and decoded."""

    def __init__(
        self, envelopes_max: int, bytes_max: int, *, first: int = 0, dropped_at: datetime | None = None
    ) -> None:
        """One that goes on where another ended: so many were shown before, the last at that time."""
        self._envelopes_max = envelopes_max
        self._bytes_max = bytes_max
        self._records: deque[Record] = deque()
        self._first = first
        self._bytes = 0
        self._bytes_dropped = 0
        self._dropped_at = dropped_at
        self._correlations = Correlations()

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self._records)

    @property
    def bytes(self) -> int:
        return self._bytes

    @property
    def bytes_shown(self) -> int:
        """Those of all that were appended here, kept or not."""
        return self._bytes + self._bytes_dropped

    @property
    def first(self) -> int:
        """The number of the oldest record kept."""
        return self._first

    @property
    def end(self) -> int:
        """The number that the next record will have."""
        return self._first + len(self._records)

    def append(self, record: Record) -> None:
        self._records.append(record)
        self._bytes += _weight(record)
        if len(self._records) > self._envelopes_max or self._bytes > self._bytes_max:
            self._keep_bounds()

    def resize(self, envelopes_max: int, bytes_max: int) -> None:
        """Other bounds, from now on."""
        self._envelopes_max = envelopes_max
        self._bytes_max = bytes_max
        self._keep_bounds()

    def knows(self, envelope_id: str) -> bool:
        return self._number(envelope_id) is not None

    def after(self, envelope_id: EnvelopeId | None) -> Iterator[Record]:
        """Those after this one, oldest first; all of them if it is None or no longer known."""
        number = None if envelope_id is None else self._number(envelope_id)
        return self.between(self._first if number is None else number + 1, self.end)

    def between(self, first: int, end: int) -> Iterator[Record]:
        """The records kept that have these numbers, oldest first. The last ones cost no walk over the rest."""
        length = len(self._records)
        start, stop = (min(max(0, number - self._first), length) for number in (first, end))
        if start < length - start:
            return islice(self._records, start, stop)
        tail = list(islice(reversed(self._records), length - stop, length - start))
        return reversed(tail)

    def reaches_back_to(self, since: datetime | None) -> bool:
        """Whether nothing shown at or after this moment is gone; None: nothing at all."""
        return self._dropped_at is None or (since is not None and self._dropped_at < since)

    def select(self, query: Query, *, first: int = 0) -> Page:
        """A page of what fits, among those numbered `first` or later."""
        start, end = self._first, self.end
        complete = self.reaches_back_to(query.since)
        if query.after is not None:
            last_seen = self._number(query.after)
            complete = last_seen is not None
            start = start if last_seen is None else last_seen + 1
        if query.before is not None:
            next_seen = self._number(query.before)
            complete = complete and next_seen is not None
            end = self._first if next_seen is None else next_seen
        records: Iterable[Record] = self.between(max(start, first), end)
        if query.newest_first:
            records = reversed(list(records))
        chain = None if query.correlation is None else self._chain(query.correlation, query.who)
        complete = complete and (chain is None or chain.complete)
        fits = _fits(query, None if chain is None else chain.ids)
        return _page((record for record in records if fits(record)), query.limit, complete=complete)

    def _chain(self, envelope_id: str, who: ParticipantId) -> Chain:
        index = self._correlations
        index.drop_before(self._first)
        index.add(record.envelope for record in self.between(index.end, self.end))
        records = list(self._records)
        return index.chain(envelope_id, lambda number: records[number - self._first].is_for(who))

    def _number(self, envelope_id: str) -> int | None:
        """Its number, searched from the newest on: who asks has mostly seen all but the last few."""
        for back, record in enumerate(reversed(self._records), 1):
            if record.envelope.id == envelope_id:
                return self.end - back
        return None

    def _keep_bounds(self) -> None:
        while len(self._records) > self._envelopes_max or self._bytes > self._bytes_max:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        oldest = self._records.popleft()
        self._bytes -= _weight(oldest)
        self._bytes_dropped += _weight(oldest)
        self._dropped_at = oldest.at
        self._first += 1


def _fits(query: Query, chain: set[str] | None) -> Callable[[Record], bool]:
    def fits(record: Record) -> bool:
        envelope = record.envelope
        return (
            record.is_for(query.who)
            and (query.participant is None or envelope.sender == query.participant)
            and (query.since is None or record.at >= query.since)
            and (query.until is None or record.at <= query.until)
            and (query.kind is None or query.kind.fits(envelope.kind, envelope.to, _no_payload))
            and (chain is None or envelope.id in chain)
        )

    return fits


def _page(records: Iterable[Record], limit: int, *, complete: bool) -> Page:
    taken: list[Record] = []
    size = 0
    for record in records:
        size += len(record.raw)
        if len(taken) == limit or (taken and size > PAGE_BYTES_MAX):
            return Page(tuple(taken), more=True, complete=complete)
        taken.append(record)
    return Page(tuple(taken), more=False, complete=complete)


def _no_payload() -> None:
    return None


def _weight(record: Record) -> int:
    names = len(record.envelope.to) + len(record.envelope.correlation_id)
    return len(record.raw) + _NAME_BYTES * names if names else len(record.raw)
