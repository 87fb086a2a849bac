"""A part of what was shown, read from the journal of a space and its index: bounded, and to be done in a thread."""

import logging
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Final, TypeVar

from msgspec import Struct

from mew.audit.chronicle import Chronicle
from mew.audit.links import Linked, linked
from mew.audit.picking import Picking, Wanted
from mew.log.base import LogUnavailable
from mew.log.database import Damaged
from mew.protocol.envelope import ParticipantId
from mew.space import Deliver, Entry, Sent

from .pages import Filling, Query, fitting
from .places import Place, place_in
from .recovery import record_of

__all__ = ["Asked", "Excerpt", "link", "patience", "read_covered", "read_excerpt"]

_logger = logging.getLogger(__name__)

Result = TypeVar("Result")

_EFFORT_MAX: Final = 10_000
"""So many small entries are gone through for one page: some 0.1 s."""
_EFFORT_BYTES: Final = 2048  # so much of one counts like another
_GIVE_WAY: Final = 64
_GIVE_WAY_S: Final = 0.0001  # others wait for Python after so many: a millisecond, and not five
_FIND_S: Final = 5.0
_MICROSECOND: Final = timedelta(microseconds=1)


class Excerpt(Struct, frozen=True):
    """How far it went: to the end, or to the place from which to go on. Not `complete`: some is gone, or not known."""

    next: Place | None
    complete: bool


class Asked(Struct, frozen=True):
    """What is asked of the journal in a folder: what entries up to `until` showed, not before `since`, and fits.

    `chain`: what hangs together, where that is asked for; `stopped`: set when nobody waits for the answer any more.
    """

    folder: Path
    query: Query
    until: int
    since: datetime | None
    chain: Linked | None
    stopped: Event


def read_excerpt(asked: Asked, filling: Filling | None) -> Excerpt | None:
    """Fill a page with that; without a page, say what is known of it.

    None: nothing was done, because the index lacks some of the entries.
    """
    return _read(asked, lambda reading: reading.read(filling) if reading.is_covered else None)


def read_covered(asked: Asked, filling: Filling | None) -> Excerpt:
    """The same, with what the index has."""
    return _read(asked, lambda reading: reading.read(filling))


def patience(stopped: Event) -> Callable[[], bool]:
    """Says whether it is over: after a while from now, or when nobody waits for the answer any more."""
    deadline_s = time.monotonic() + _FIND_S
    return lambda: stopped.is_set() or time.monotonic() >= deadline_s


def link(folder: Path, ids: set[str], who: ParticipantId, is_over: Callable[[], bool]) -> Linked:
    """What hangs together with these, as far as there are facts about it, and time to follow them."""
    try:
        with Chronicle(folder) as chronicle:
            return linked(chronicle, ids, who, is_over)
    except (Damaged, LogUnavailable) as error:
        _unread(folder, error)
        return Linked(ids, [], complete=False)


def _read(asked: Asked, how: "Callable[[_Reading], Result]") -> Result | Excerpt:
    try:
        with Chronicle(asked.folder) as chronicle:
            return how(_Reading(chronicle, asked))
    except (Damaged, LogUnavailable) as error:
        return _unread(asked.folder, error)


def _unread(folder: Path, error: Exception) -> Excerpt:
    what = {"folder": str(folder), "error": str(error)}
    _logger.warning("what was shown earlier cannot be read", extra=what)
    return Excerpt(None, complete=False)


class _Reading:
    """One walk, in the order that is asked for, between two places."""

    def __init__(self, chronicle: Chronicle, asked: Asked) -> None:
        self._chronicle = chronicle
        self._query = query = asked.query
        self._until = asked.until
        self._is_over = patience(asked.stopped)
        self._too_old = 0 if asked.since is None else chronicle.first_since(asked.since) - 1
        self._from = Place(0, 0)
        self._to = Place(asked.until + 1, 0)
        chain = asked.chain
        self._complete = chain is None or chain.complete
        self._fits = fitting(query, None if chain is None else chain.ids)
        self._picking = Picking(
            chronicle,
            Wanted(
                kind=query.kind,
                sender=query.participant,
                numbers=None if chain is None else chain.numbers,
                newest_first=query.newest_first,
            ),
        )
        self._by_cursor()
        self._by_time()
        after, until = max(self._from.seq - 1, self._gone), self._to.seq - (self._to.n == 0)
        self._covered = chronicle.covered(after, until)
        self.is_covered = after >= until or self._covered == [(after, until)]

    def read(self, filling: Filling | None) -> Excerpt:
        following = None if filling is None else self._fill(filling)
        complete = self._complete and self.is_covered
        return Excerpt(following, complete and self._gone < max(self._from.seq, 1))

    @property
    def _gone(self) -> int:
        """The last entry that is no longer kept, or need not be. It may move on at any time."""
        return max(self._chronicle.begin, self._too_old)

    def _by_cursor(self) -> None:
        if self._query.after is not None:
            after = self._place(self._query.after, behind=True)
            self._complete = self._complete and after is not None
            self._from = self._from if after is None else after
        if self._query.before is not None:
            before = self._place(self._query.before, behind=False)
            self._complete = self._complete and before is not None
            self._to = self._from if before is None else min(before, self._to)

    def _by_time(self) -> None:
        since, until = self._query.since, self._query.until
        if since is not None:
            first = self._chronicle.first_since(since)
            gone = self._gone
            if first > self._from.seq:
                # where the first that is kept is late enough, so may be those that are gone
                self._complete = self._complete and (not gone or first > gone + 1)
                self._from = Place(first, 0)
        if until is not None and until.replace(tzinfo=None) < until.max:
            self._to = min(self._to, Place(self._chronicle.first_since(until + _MICROSECOND), 0))

    def _place(self, cursor: str, *, behind: bool) -> Place | None:
        place = place_in(cursor)
        if place is not None:
            return place if place.seq <= self._until + 1 else None
        found = self._chronicle.find(cursor, self._until, self._is_over)
        return None if found is None else Place(found[0], found[1] + behind)

    def _fill(self, filling: Filling) -> Place | None:
        """Where to go on; None: there is nothing more."""
        effort = 0
        ranges = reversed(self._covered) if self._query.newest_first else self._covered
        try:
            for part in (part for one in ranges for part in self._picking.parts(*one)):
                for entry, shown in part.told:
                    unfit = self._take(filling, entry, shown)
                    if unfit is not None:
                        return unfit
                    effort += 1 + _size(entry) // _EFFORT_BYTES
                    if effort % _GIVE_WAY == 0:
                        time.sleep(_GIVE_WAY_S)
                effort += part.effort
                if effort >= _EFFORT_MAX:
                    following = Place(part.reached + 1, 0)
                    return following if self._from < following < self._to else None
        except Damaged as error:
            _logger.warning("a part of what was shown cannot be read", extra={"error": str(error)})
            self._complete = False
        return None

    def _take(self, filling: Filling, entry: Entry, shown: list[Deliver]) -> Place | None:
        """Put in what fits of one entry; before or behind which of it to go on, where the page is full."""
        newest_first = self._query.newest_first
        for n in range(len(shown) - 1, -1, -1) if newest_first else range(len(shown)):
            record = record_of(entry, shown[n])
            if self._from <= (entry.seq, n) < self._to and self._fits(record) and not filling.take(record):
                return Place(entry.seq, n + newest_first)
        return None


def _size(entry: Entry) -> int:
    return len(entry.event.raw) if isinstance(entry.event, Sent) else 0
