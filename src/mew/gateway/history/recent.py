"""PURE. The recent history of a space: a bounded buffer of delivered envelopes, oldest first."""

from collections import deque
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from mew.journal.port import Delivered, LostEntries
from mew.protocol.envelope import EnvelopeId, ParticipantId

from .correlation import CorrelationChain, CorrelationIndex
from .cursor import Cursor, parse_cursor
from .query import DeliveredEnvelope, HistoryPage, HistoryQuery, PageBuilder, envelopes_in, matcher

__all__ = ["RecentHistory"]

_BEGIN: Final = Cursor(0, 0)
_ENVELOPE_BYTES: Final = 256  # what an envelope takes beside its bytes


class RecentHistory:
    """A bounded buffer of delivered envelopes; evicts the oldest. `bytes` is its approximate size."""

    def __init__(
        self, envelopes_max: int, bytes_max: int, *, life: str = "", losses: tuple[LostEntries, ...] = ()
    ) -> None:
        """`life`: a name for this process in cursors, if no other goes on from here.

        `losses`: what the journal has lost.
        """
        self._envelopes_max = envelopes_max
        self._bytes_max = bytes_max
        self._entries: deque[Delivered] = deque()
        self._weights: deque[int] = deque()  # the bytes that each takes
        self._count = 0
        self._dropped = 0
        self._bytes = 0
        self._evicted = _BEGIN  # the end of the newest that was
        self._evicted_at: datetime | None = None
        self._life = life
        self._losses = losses
        self._correlations = CorrelationIndex()

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[DeliveredEnvelope]:
        return self.between()

    @property
    def bytes(self) -> int:
        return self._bytes

    @property
    def evicted(self) -> int:
        """Sequence number of the newest evicted entry; 0 if none was."""
        return self._evicted.seq

    @property
    def begin(self) -> Cursor:
        """Before the first envelope: after the newest that was evicted."""
        return self._evicted

    @property
    def end(self) -> Cursor:
        """After the last envelope."""
        return _end(self._entries[-1]) if self._entries else self._evicted

    def append(self, delivered: Delivered, size: int) -> None:
        """The next; `size` is about the bytes of its envelopes."""
        count = len(delivered.ids)
        weight = size + _ENVELOPE_BYTES * count
        self._entries.append(delivered)
        self._weights.append(weight)
        self._count += count
        self._bytes += weight
        if self._count > self._envelopes_max or self._bytes > self._bytes_max:
            self._shrink()

    def prepend(self, delivered: Delivered) -> bool:
        """Put an older one in front, while the history is filled from the newest on; whether there is room for it."""
        count = len(delivered.ids)
        weight = sum(map(len, delivered.raws)) + _ENVELOPE_BYTES * count
        if self._count >= self._envelopes_max or self._bytes + weight > self._bytes_max:
            return False
        self._entries.appendleft(delivered)
        self._weights.appendleft(weight)
        self._count += count
        self._bytes += weight
        return True

    def begin_after(self, seq: int, at: datetime, count: int = 0) -> None:
        """What this entry delivered, this many at that moment, came before all that is here, and is not."""
        self._evicted, self._evicted_at = Cursor(seq, count), at

    def resize(self, envelopes_max: int, bytes_max: int) -> None:
        """Other bounds, from now on."""
        self._envelopes_max = envelopes_max
        self._bytes_max = bytes_max
        self._shrink()

    def forget(self, before: datetime) -> None:
        """Evict what was delivered before this moment."""
        while self._entries and self._entries[0].at < before:
            self._drop_first()

    def knows(self, written: str) -> bool:
        """Whether an id or a cursor has its place here."""
        return self.position_after(written) is not None

    def has_all_after(self, written: str) -> bool:
        """Whether an id or a cursor has its place here, and nothing that was delivered after it is lost."""
        position = self.position_after(written)
        return position is not None and all(loss.after < position.seq for loss in self._losses)

    def has_lost(self, query: HistoryQuery) -> bool:
        """Whether something that may have matched a query is lost."""
        if not self._losses:
            return False
        start = None if query.after is None else self.position_after(query.after)
        end = None if query.before is None else self.position_before(query.before)
        return any(
            (start is None or start.seq <= loss.after)
            and (end is None or loss.after < end.seq)
            and (query.since is None or query.since <= loss.noticed)
            and (query.until is None or loss.since is None or loss.since <= query.until)
            for loss in self._losses
        )

    def after(self, envelope_id: EnvelopeId) -> Iterator[DeliveredEnvelope]:
        """Those after this one, oldest first; all of them if it is not known any longer."""
        return self.between(self.position_after(envelope_id))

    def position_after(self, written: str) -> Cursor | None:
        """Behind the envelope that an id names, or where a cursor is; None: it is not known here."""
        cursor = parse_cursor(written, self._life)
        if cursor is not None:
            return self._known(cursor)
        found = self._find(written)
        return None if found is None else Cursor(found.seq, found.n + 1)

    def position_before(self, written: str) -> Cursor | None:
        """Before the envelope that an id names, or where a cursor is; None: it is not known here."""
        cursor = parse_cursor(written, self._life)
        return self._find(written) if cursor is None else self._known(cursor)

    def between(
        self, start: Cursor | None = None, end: Cursor | None = None, *, newest_first: bool = False
    ) -> Iterator[DeliveredEnvelope]:
        """The envelopes kept between two positions."""
        start = _BEGIN if start is None else start
        entries = reversed(self._entries) if newest_first else iter(self._entries)
        if start > _BEGIN and not newest_first:
            entries = iter(self._since(start))
        for delivered in entries:
            if end is not None and delivered.seq > end.seq:
                if newest_first:
                    continue
                return
            if delivered.seq < start.seq:
                if newest_first:
                    return
                continue
            first = max(0, start.n - delivered.start) if delivered.seq == start.seq else 0
            stop = max(0, end.n - delivered.start) if end is not None and delivered.seq == end.seq else None
            found = envelopes_in(delivered, first, stop)
            yield from reversed(found) if newest_first else found

    def reaches_back_to(self, since: datetime | None) -> bool:
        """Whether nothing delivered at or after this moment was evicted; None: nothing at all."""
        return self._evicted_at is None or (since is not None and self._evicted_at < since)

    def select(self, query: HistoryQuery, *, start: Cursor | None = None) -> HistoryPage:
        """A page of what matches, from a position on."""
        complete = self.reaches_back_to(query.since)
        end = None
        if query.after is not None:
            position = self.position_after(query.after)
            complete = position is not None
            start = max(start or _BEGIN, position or _BEGIN)
        if query.before is not None:
            end = self.position_before(query.before)
            complete = complete and end is not None
            end = _BEGIN if end is None else end
        chain = None if query.correlation is None else self.chain((query.correlation,), query.who)
        complete = complete and (chain is None or chain.complete) and not self.has_lost(query)
        builder = PageBuilder(query.limit)
        matches = matcher(query, None if chain is None else chain.ids)
        more = not builder.fill(self.between(start, end, newest_first=query.newest_first), matches)
        return HistoryPage(tuple(builder.taken), more, complete, self.cursor_behind(builder.taken, query))

    def cursor_behind(self, taken: list[DeliveredEnvelope], query: HistoryQuery) -> str | None:
        """Where to go on after the last of these; None: there is none."""
        return taken[-1].behind(newest_first=query.newest_first).text(self._life) if taken else None

    def chain(self, ids: Iterable[str], who: ParticipantId) -> CorrelationChain:
        """What is connected with these here, as far as it was for `who`."""
        index = self._correlations
        index.drop_before(self._dropped)
        hidden: set[int] = set()
        number = self._dropped
        for delivered in self._entries:
            if number >= index.end:
                index.add(zip(delivered.ids, delivered.envelopes.correlation_ids, strict=True))
            for n, only in enumerate(delivered.only or ()):
                if only is not None and who not in only:
                    hidden.add(number + n)
            number += len(delivered.ids)
        return index.chain(ids, lambda number: number not in hidden)

    def _known(self, cursor: Cursor) -> Cursor | None:
        if cursor < self._evicted:
            return None
        # ahead of all there is: of a life of which some is lost, so others may get the same numbers
        return None if cursor.seq > self.end.seq + 1 else cursor

    def _find(self, envelope_id: str) -> Cursor | None:
        """The oldest envelope with this id: a participant may use an id of its own again, and none of another's."""
        for delivered in self._entries:
            if envelope_id in delivered.ids:
                return Cursor(delivered.seq, delivered.start + delivered.ids.index(envelope_id))
        return None

    def _since(self, start: Cursor) -> list[Delivered]:
        """The entries from a position on, found from the newest back: who asks has mostly seen all but the last."""
        found: list[Delivered] = []
        for delivered in reversed(self._entries):
            if delivered.seq < start.seq:
                break
            found.append(delivered)
        return found[::-1]

    def _shrink(self) -> None:
        """Evict the oldest until what is left is within the bounds, but for the last that has to go in part."""
        entries, weights = self._entries, self._weights
        while entries:
            count = len(entries[0].ids)
            if self._bytes <= self._bytes_max and self._count - count < self._envelopes_max:
                return
            oldest = entries.popleft()
            self._count -= count
            self._dropped += count
            self._bytes -= weights.popleft()
            self._evicted, self._evicted_at = Cursor(oldest.seq, oldest.start + count), oldest.at

    def _drop_first(self) -> None:
        oldest = self._entries.popleft()
        self._count -= len(oldest.ids)
        self._dropped += len(oldest.ids)
        self._bytes -= self._weights.popleft()
        self._evicted, self._evicted_at = _end(oldest), oldest.at


def _end(delivered: Delivered) -> Cursor:
    return Cursor(delivered.seq, delivered.start + len(delivered.ids))
