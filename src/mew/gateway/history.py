"""PURE. What was shown in a space, newest last, within bounds: for those who come back and those who ask."""

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice, takewhile
from typing import Final

from mew.protocol.envelope import EnvelopeId, ParticipantId

from .correlations import Chain, Correlations
from .pages import Filling, Page, Query, Record, fitting
from .places import Place, cursor, place_in

__all__ = ["History"]

_ALL: Final = 1 << 30


class History:
    """The last envelopes of one space, numbered as they come; `bytes` is what they take, with an index of them."""

    def __init__(
        self,
        envelopes_max: int,
        bytes_max: int,
        *,
        first: int = 0,
        dropped_at: datetime | None = None,
        gone: int = 0,
        life: str = "",
    ) -> None:
        """One that goes on where another ended: so many were shown before, the last at that time by that entry.

        `life`: a name for it in cursors, where no other goes on from here.
        """
        self._envelopes_max = envelopes_max
        self._bytes_max = bytes_max
        self._records: deque[Record] = deque()
        self._first = first
        self._bytes = 0
        self._bytes_dropped = 0
        self._dropped_at = dropped_at
        self._gone = gone
        self._gone_of_it = _ALL  # so many that this entry showed
        self._life = life
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

    @property
    def gone(self) -> int:
        """The last entry of which anything that it showed is no longer here; 0: all is."""
        return self._gone

    @property
    def shown_at(self) -> datetime | None:
        """When the last one was shown, kept or not."""
        return self._records[-1].at if self._records else self._dropped_at

    def append(self, record: Record) -> None:
        self._records.append(record)
        self._bytes += record.weight
        self._shrink(self._envelopes_max, self._bytes_max)

    def extend(self, records: Sequence[Record]) -> None:
        self._records.extend(records)
        more = 0
        for record in records:
            more += record.weight
        self._bytes += more
        self._shrink(self._envelopes_max, self._bytes_max)

    def resize(self, envelopes_max: int, bytes_max: int) -> None:
        """Other bounds, from now on."""
        self._envelopes_max = envelopes_max
        self._bytes_max = bytes_max
        self._shrink(self._envelopes_max, self._bytes_max)

    def forget(self, before: datetime) -> None:
        """Drop what was shown before this moment."""
        old = sum(1 for _ in takewhile(lambda record: record.at < before, self._records))
        self._shrink(len(self._records) - old, self._bytes)

    def knows(self, envelope_id: str) -> bool:
        return self.number_after(envelope_id) is not None

    def after(self, envelope_id: EnvelopeId | None) -> Iterator[Record]:
        """Those after this one, oldest first; all of them if it is None or no longer known."""
        number = None if envelope_id is None else self.number_after(envelope_id)
        return self.between(self._first if number is None else number, self.end)

    def number_after(self, written: str) -> int | None:
        """The number of the first that comes, or will come, after an id or a cursor; None: it is not known here."""
        place = place_in(written, self._life)
        if place is not None:
            return self.number_at(place)
        number = self._number(written)
        return None if number is None else number + 1

    def number_before(self, written: str) -> int | None:
        """The number up to which they come before an id or a cursor; None: it is not known here."""
        place = place_in(written, self._life)
        return self._number(written) if place is None else self.number_at(place)

    def number_at(self, place: Place) -> int | None:
        """The number of the first at this place or after it; None: it is not known here."""
        if place < (self._gone, self._gone_of_it):
            return None
        start = bisect_left(self._records, place.seq, key=_entry)
        if start == len(self._records) and place.seq > self._gone + 1:
            return None  # of a life of which some is lost: what comes may get the same numbers
        before = place.n - self._gone_of_it if place.seq == self._gone else place.n
        of_entry = islice(self._records, start, start + before)
        return self._first + start + sum(record.seq == place.seq for record in of_entry)

    def place_of(self, record: Record) -> Place:
        """Where a record is that is here: before it."""
        start = bisect_left(self._records, record.seq, key=_entry)
        n = next(n for n, one in enumerate(islice(self._records, start, None)) if one is record)
        return Place(record.seq, n + self._gone_of_it if record.seq == self._gone else n)

    def cursor_past(self, record: Record, *, newest_first: bool) -> str:
        """Where to go on once this one was told, which is here."""
        place = self.place_of(record)
        return cursor(place if newest_first else Place(place.seq, place.n + 1), self._life)

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
            following = self.number_after(query.after)
            complete = following is not None
            start = start if following is None else following
        if query.before is not None:
            next_seen = self.number_before(query.before)
            complete = complete and next_seen is not None
            end = self._first if next_seen is None else next_seen
        chain = None if query.correlation is None else self.chain((query.correlation,), query.who)
        complete = complete and (chain is None or chain.complete)
        filling = Filling(query.limit)
        fits = fitting(query, None if chain is None else chain.ids)
        more = not filling.take_all(self.among(query, max(start, first), end), fits)
        taken = tuple(filling.taken)
        past = self.cursor_past(taken[-1], newest_first=query.newest_first) if taken else None
        return Page(taken, more, complete, past)

    def among(self, query: Query, first: int, end: int) -> Iterator[Record]:
        """Those that have these numbers, in the order that is asked for."""
        records = self.between(first, end)
        return reversed(list(records)) if query.newest_first else records

    def chain(self, ids: Iterable[str], who: ParticipantId) -> Chain:
        """What hangs together with these here, as far as it was for `who`."""
        index = self._correlations
        index.drop_before(self._first)
        index.add((record.id, record.refers_to) for record in self.between(index.end, self.end))
        records = list(self._records)
        return index.chain(ids, lambda number: records[number - self._first].is_for(who))

    def _number(self, envelope_id: str) -> int | None:
        """Its number, searched from the newest on: who asks has mostly seen all but the last few."""
        for back, record in enumerate(reversed(self._records), 1):
            if record.id == envelope_id:
                return self.end - back
        return None

    def _shrink(self, envelopes_max: int, bytes_max: int) -> None:
        """Let go of the oldest until no more are left than this."""
        records, kept_bytes = self._records, self._bytes
        count = len(records)
        if count <= envelopes_max and kept_bytes <= bytes_max:
            return
        gone, of_it, at = self._gone, self._gone_of_it, self._dropped_at
        while len(records) > envelopes_max or kept_bytes > bytes_max:
            oldest = records.popleft()
            kept_bytes -= oldest.weight
            of_it = of_it + 1 if oldest.seq == gone else 1
            gone, at = oldest.seq, oldest.at
        self._first += count - len(records)
        self._bytes_dropped += self._bytes - kept_bytes
        self._bytes, self._gone, self._gone_of_it, self._dropped_at = kept_bytes, gone, of_it, at


def _entry(record: Record) -> int:
    return record.seq
