"""PURE. History queries and the pages that answer them."""

from collections.abc import Callable, Collection, Iterable
from datetime import datetime
from typing import Final

from msgspec import Struct

from mew.journal.port import Delivered
from mew.protocol.capability import Capability
from mew.protocol.codec import decode
from mew.protocol.envelope import Envelope, ParticipantId

from .cursor import Cursor

__all__ = [
    "PAGE_BYTES_MAX",
    "DeliveredEnvelope",
    "HistoryPage",
    "HistoryQuery",
    "Matcher",
    "PageBuilder",
    "envelopes_in",
    "matcher",
]

PAGE_BYTES_MAX: Final = 4 << 20
"""A page ends early rather than hold more; one envelope it always has."""


class DeliveredEnvelope(Struct, frozen=True, gc=False):
    """One envelope as it was delivered. `only`: those it was for, None for everyone; `cursor`: right before it."""

    cursor: Cursor
    at: datetime
    id: str
    sender: str
    kind: str
    correlation_id: tuple[str, ...]
    raw: bytes
    only: tuple[ParticipantId, ...] | None

    @property
    def envelope(self) -> Envelope:
        """Decoded anew each time."""
        return decode(self.raw)

    def is_for(self, who: ParticipantId) -> bool:
        return self.only is None or who in self.only

    def behind(self, *, newest_first: bool) -> Cursor:
        """Where to go on once this one was told."""
        return self.cursor if newest_first else Cursor(self.cursor.seq, self.cursor.n + 1)


def envelopes_in(delivered: Delivered, start: int = 0, end: int | None = None) -> list[DeliveredEnvelope]:
    """Those of an entry, from one place on, up to another."""
    columns, only, first = delivered.envelopes, delivered.only, delivered.start
    return [
        DeliveredEnvelope(
            Cursor(delivered.seq, first + n),
            delivered.at,
            columns.ids[n],
            columns.senders[n],
            columns.kinds[n],
            columns.correlation_ids[n],
            columns.raws[n],
            None if only is None else only[n],
        )
        for n in range(len(columns))[start:end]
    ]


class HistoryQuery(Struct, frozen=True, kw_only=True):
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


class HistoryPage(Struct, frozen=True):
    """`more` may match the query and did not fit the page; not `complete`: some that may have matched are gone.

    `cursor` is where to go on, also for what is not there yet; None: that is not known.
    """

    envelopes: tuple[DeliveredEnvelope, ...]
    more: bool
    complete: bool
    cursor: str | None = None

    @property
    def next(self) -> str | None:
        """Where more comes from, if there is more."""
        return self.cursor if self.more else None


Matcher = Callable[[DeliveredEnvelope], bool]


class PageBuilder:
    """A page as it is filled: with this many envelopes at most, and not too large."""

    def __init__(self, limit: int) -> None:
        self.taken: list[DeliveredEnvelope] = []
        self._limit = limit
        self._bytes = 0

    def add(self, delivered: DeliveredEnvelope) -> bool:
        """Put one in; whether it fitted. One always does."""
        self._bytes += len(delivered.raw)
        if len(self.taken) == self._limit or (self.taken and self._bytes > PAGE_BYTES_MAX):
            return False
        self.taken.append(delivered)
        return True

    def fill(self, delivered: Iterable[DeliveredEnvelope], matches: Matcher) -> bool:
        """Put in those that match; whether all of them fitted the page."""
        return all(self.add(one) for one in delivered if matches(one))


def matcher(query: HistoryQuery, chain: Collection[str] | None) -> Matcher:
    """Whether an envelope is one that is asked for, cursors aside; `chain`: the ids of those that are connected."""

    def matches(delivered: DeliveredEnvelope) -> bool:
        return (
            delivered.is_for(query.who)
            and (query.participant is None or delivered.sender == query.participant)
            and (query.since is None or delivered.at >= query.since)
            and (query.until is None or delivered.at <= query.until)
            and (query.kind is None or query.kind.fits(delivered.kind, (), _no_payload))
            and (chain is None or delivered.id in chain)
        )

    return matches


def _no_payload() -> None:
    return None
