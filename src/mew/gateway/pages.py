"""PURE. What one may ask of what was shown, and the pages that answer."""

from collections.abc import Callable, Collection, Iterable
from datetime import datetime
from typing import Final

from msgspec import Struct

from mew.protocol.capability import Capability
from mew.protocol.codec import decode
from mew.protocol.envelope import Envelope, ParticipantId

__all__ = ["PAGE_BYTES_MAX", "Filling", "Fits", "Page", "Query", "Record", "fitting"]

PAGE_BYTES_MAX: Final = 4 << 20
"""A page ends early rather than hold more; one record it always has."""
_NAME_BYTES: Final = 128  # what a name among many takes, decoded and indexed, beside its letters


class Record(Struct, frozen=True, gc=False):
    """One envelope as it was shown. `only`: those it was for, None for everyone; `seq`: the entry that showed it.

    Thousands are kept, and in a busy space one goes for each that comes: it has few parts, and is read again for who
    asks. `weight`: the bytes that it takes in all. `src/mew/c/plain.c` makes them too, field by field.
    """

    at: datetime
    id: str
    sender: str
    kind: str
    weight: int
    refers_to: tuple[str, ...]
    raw: bytes
    only: tuple[ParticipantId, ...] | None
    seq: int = 0

    @classmethod
    def of(
        cls,
        envelope: Envelope,
        raw: bytes,
        *,
        at: datetime,
        only: tuple[ParticipantId, ...] | None = None,
        seq: int = 0,
        sender: str | None = None,
    ) -> "Record":
        """`sender`: the same as the envelope's, where there is one that others hold too."""
        about = envelope.correlation_id
        weight = len(raw) + _NAME_BYTES * (len(envelope.to) + len(about))
        return cls(at, envelope.id, sender or envelope.sender, envelope.kind, weight, about, raw, only, seq)

    @property
    def envelope(self) -> Envelope:
        """Read anew each time."""
        return decode(self.raw)

    def is_for(self, who: ParticipantId) -> bool:
        return self.only is None or who in self.only


class Query(Struct, frozen=True, kw_only=True):
    """What `who` asks for. `since` and `until` are the gateway's time, both included; `kind` may be a glob.

    `after` and `before` are ids of envelopes, or cursors.
    """

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
    """`more` may fit the query and did not fit the page; not `complete`: some that may have fitted are gone.

    `cursor` is where to go on, also for what is not there yet; None: that is not known. It is the place itself and no
    id: an old client may use one again.
    """

    records: tuple[Record, ...]
    more: bool
    complete: bool
    cursor: str | None = None

    @property
    def next(self) -> str | None:
        """Where more comes from, if there is more."""
        return self.cursor if self.more else None


Fits = Callable[[Record], bool]


class Filling:
    """A page as it is filled: with so many at most, and not too large."""

    def __init__(self, limit: int) -> None:
        self.taken: list[Record] = []
        self._limit = limit
        self._bytes = 0

    def take(self, record: Record) -> bool:
        """Put one in; whether it fitted. One always does."""
        self._bytes += len(record.raw)
        if len(self.taken) == self._limit or (self.taken and self._bytes > PAGE_BYTES_MAX):
            return False
        self.taken.append(record)
        return True

    def take_all(self, records: Iterable[Record], fits: Fits) -> bool:
        """Put in those that fit the query; whether all of them fitted the page."""
        return all(self.take(record) for record in records if fits(record))


def fitting(query: Query, chain: Collection[str] | None) -> Fits:
    """Whether a record is one that is asked for, cursors aside; `chain`: the ids of what hangs together."""

    def fits(record: Record) -> bool:
        return (
            record.is_for(query.who)
            and (query.participant is None or record.sender == query.participant)
            and (query.since is None or record.at >= query.since)
            and (query.until is None or record.at <= query.until)
            and (query.kind is None or query.kind.fits(record.kind, (), _no_payload))
            and (chain is None or record.id in chain)
        )

    return fits


def _no_payload() -> None:
    return None
