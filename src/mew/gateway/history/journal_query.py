"""Read a page of history from the journal through its index: bounded work, run in a thread."""

import logging
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Final

from msgspec import Struct

from mew.audit.record.facts import Fact
from mew.audit.record.index import Index
from mew.journal.files.database import Damaged
from mew.journal.files.locator import open_index
from mew.journal.port import Delivered, JournalUnavailable
from mew.journal.reader import JournalReader, record_of
from mew.journal.record import Record, RecordRow, read_header
from mew.protocol.envelope import GATEWAY, ParticipantId
from mew.protocol.json import encode_json
from mew.protocol.kinds import RESERVED_PREFIX, Kind, is_talk
from mew.space.state import is_gateway_id

from .cursor import Cursor, parse_cursor
from .query import HistoryQuery, PageBuilder, envelopes_in, matcher

__all__ = [
    "CorrelatedEntries",
    "JournalQuery",
    "QueryTimeout",
    "ScanResult",
    "correlated_in_journal",
    "deadline",
    "scan_journal",
]

_logger = logging.getLogger(__name__)

_ENVELOPES_MAX: Final = 10_000  # so many small ones are looked at for one page: some 0.1 s
_ENVELOPE_BYTES: Final = 2048  # so many bytes of one count like another
_SPAN: Final = 50_000  # entries that are searched for a text at a time
_PASSED: Final = 10  # so many are searched for a text while one is read
_KINDS_MAX: Final = 1_000
_FACTS_MAX: Final = 1_000
_YIELD_S: Final = 0.0001  # other threads get the interpreter in between
_FIND_S: Final = 5.0
_MICROSECOND: Final = timedelta(microseconds=1)
_WILDCARDS: Final = re.compile(r"[*?]")
_GATEWAYS: Final = (RESERVED_PREFIX, "capability/", "stream/", "space/", "participant/")
_KINDS: Final = """
WITH RECURSIVE each(kind) AS (
    SELECT min(kind) FROM facts
    UNION ALL SELECT (SELECT min(kind) FROM facts WHERE kind > each.kind) FROM each WHERE each.kind IS NOT NULL
)
SELECT kind FROM each WHERE kind IS NOT NULL LIMIT ?
"""


class QueryTimeout(Exception):
    """The query exceeded its time limit."""


class ScanResult(Struct, frozen=True):
    """How far it went: to the end, or to a cursor from which to go on. Not `complete`: some is gone, or not known."""

    next: str | None
    complete: bool


class CorrelatedEntries(Struct, frozen=True):
    """The ids of envelopes that are connected through `correlation_id`, and the numbers of their entries, in order.

    Not `complete`: there is too much to follow it all, or too little time.
    """

    ids: set[str]
    numbers: list[int]
    complete: bool


class JournalQuery(Struct, frozen=True):
    """What is asked of the journal in a folder: what was delivered up to a position, and not before `since`.

    `chain`: what is connected, if that is asked for.
    """

    folder: Path
    space: str
    query: HistoryQuery
    until: Cursor
    since: datetime | None
    chain: CorrelatedEntries | None


IsOver = Callable[[], bool]


def deadline(stopped: Event) -> IsOver:
    """Says whether time is up: after a while from now, or when nobody waits for the answer any more."""
    end_s = time.monotonic() + _FIND_S
    return lambda: stopped.is_set() or time.monotonic() >= end_s


def scan_journal(asked: JournalQuery, builder: PageBuilder | None, is_over: IsOver) -> ScanResult:
    """Fill a page with that; without a page, say only whether it is complete.

    Raises:
        TookTooLong: an id was to be found, and was not found in time.
    """
    try:
        with open_index(asked.folder) as locator, JournalReader(locator, asked.space) as journal:
            return _Reading(journal, Index(locator, asked.space), asked, is_over).read(builder)
    except (Damaged, JournalUnavailable) as error:
        _unread(asked.space, error)
        return ScanResult(None, complete=False)


def correlated_in_journal(
    folder: Path, space: str, ids: set[str], who: ParticipantId, is_over: IsOver
) -> CorrelatedEntries:
    """What is connected with these, as far as there are facts about it, and time to follow them."""
    try:
        with open_index(folder) as locator, JournalReader(locator, space) as journal:
            return _connected(journal, Index(locator, space), ids, who, is_over)
    except (Damaged, JournalUnavailable) as error:
        _unread(space, error)
        return CorrelatedEntries(ids, [], complete=False)


def _unread(space: str, error: Exception) -> None:
    what = {"space": space, "error": str(error)}
    _logger.warning("what was delivered earlier cannot be read", extra=what)


class _Reading:
    """One walk, in the order that is asked for, between two positions."""

    def __init__(self, journal: JournalReader, index: Index, asked: JournalQuery, is_over: IsOver) -> None:
        self._journal = journal
        self._index = index
        self._query = query = asked.query
        self._until = self._last_of(asked.until.seq)
        self._is_over = is_over
        self._too_old = 0 if asked.since is None else journal.first_since(asked.since) - 1
        self._from = Cursor(0, 0)
        self._to = asked.until
        self._numbers = None if asked.chain is None else asked.chain.numbers
        self._complete = asked.chain is None or asked.chain.complete
        self._matches = matcher(query, None if asked.chain is None else asked.chain.ids)
        self._by_cursor()
        self._by_time()

    def read(self, builder: PageBuilder | None) -> ScanResult:
        following = None if builder is None else self._fill(builder)
        is_kept = self._gone < max(self._from.seq, 1)
        return ScanResult(None if following is None else following.text(), self._complete and is_kept)

    @property
    def _gone(self) -> int:
        """The last entry that is no longer kept, or need not be. It may move on at any time."""
        return max(self._journal.begin.seq, self._too_old)

    def _by_cursor(self) -> None:
        if self._query.after is not None:
            after = self._position(self._query.after, behind=True)
            self._complete = self._complete and after is not None
            self._from = self._from if after is None else after
        if self._query.before is not None:
            before = self._position(self._query.before, behind=False)
            self._complete = self._complete and before is not None
            self._to = self._from if before is None else min(before, self._to)

    def _by_time(self) -> None:
        since, until = self._query.since, self._query.until
        if since is not None:
            first, gone = self._journal.first_since(since), self._gone
            if first > self._from.seq:
                # if the first that is kept is late enough, so may be those that are gone
                self._complete = self._complete and (not gone or first > gone + 1)
                self._from = Cursor(first, 0)
        if until is not None and until.replace(tzinfo=None) < until.max:
            self._to = min(self._to, Cursor(self._journal.first_since(until + _MICROSECOND), 0))

    def _position(self, written: str, *, behind: bool) -> Cursor | None:
        cursor = parse_cursor(written)
        if cursor is not None:
            return cursor if cursor.seq <= self._until + 1 else None
        found = _find(self._journal, self._index, written, self._until, self._is_over)
        return None if found is None else Cursor(found.seq, found.n + behind)

    def _fill(self, builder: PageBuilder) -> Cursor | None:
        """Where to go on; None: there is nothing more."""
        effort, newest_first = 0, self._query.newest_first
        after = max(self._from.seq - 1, self._gone)
        until = self._last_of(self._to.seq if self._to.n else self._to.seq - 1)
        try:
            for row, passed in self._candidates(after, until):
                effort += passed // _PASSED
                if row is not None:
                    delivered = record_of(row).delivered
                    unfit = self._take(builder, delivered)
                    if unfit is not None:
                        return unfit
                    effort += len(delivered.ids) + len(row.body) // _ENVELOPE_BYTES
                    reached = Cursor(delivered.seq, 0) if newest_first else Cursor(row.last + 1, 0)
                    time.sleep(_YIELD_S)
                    if effort >= _ENVELOPES_MAX:
                        return reached if self._from < reached < self._to else None
        except Damaged as error:
            _logger.warning("a part of what was delivered cannot be read", extra={"error": str(error)})
            self._complete = False
        return None

    def _take(self, builder: PageBuilder, delivered: Delivered) -> Cursor | None:
        """Put in what matches of one entry; where to go on, if the page is full."""
        found = envelopes_in(delivered)
        for one in reversed(found) if self._query.newest_first else found:
            if self._from <= one.cursor < self._to and self._matches(one) and not builder.add(one):
                n = one.cursor.n + self._query.newest_first
                return Cursor(one.cursor.seq, n)
        return None

    def _candidates(self, after: int, until: int) -> Iterator[tuple[RecordRow | None, int]]:
        """The records that may have what is asked for, and how many entries were passed over to find each."""
        numbers = self._indexed_numbers(after, until)
        if numbers is not None:
            covered = range(0)  # by the last record: several may be in one
            for number in numbers:
                if number not in covered:
                    row = self._journal.row(number)
                    covered = range(0) if row is None else range(read_header(row.body).seq, row.last + 1)
                    yield row, 2 * _PASSED
            return
        texts = self._certain_texts()
        if texts:
            yield from self._journal.rows_with(texts, after, until, newest_first=self._query.newest_first)
        else:
            for row in self._journal.rows_between(after, until, newest_first=self._query.newest_first):
                yield row, 0

    def _indexed_numbers(self, after: int, until: int) -> Sequence[int] | None:
        """If all that may match has facts, the numbers of those entries, in order."""
        query = self._query
        if self._numbers is not None:
            found: Iterable[int] = self._numbers
        elif query.participant == GATEWAY:
            found = self._numbers_of("who = ?", (GATEWAY,), after, until)
        else:
            kinds = self._indexed_kinds()
            if kinds is None:
                return None
            marks = ", ".join("?" * len(kinds))
            found = self._numbers_of(f"kind IN ({marks})", kinds, after, until)
        numbers = sorted(number for number in found if after < number <= until)
        return numbers[::-1] if query.newest_first else numbers

    def _numbers_of(self, which: str, values: Sequence[str], after: int, until: int) -> list[int]:
        of_sender = "" if self._query.participant is None else "AND who = ?"
        sender = () if self._query.participant is None else (self._query.participant,)
        order = "DESC" if self._query.newest_first else "ASC"
        statement = (
            f"SELECT DISTINCT seq FROM facts WHERE {which} {of_sender} AND seq > ? AND seq <= ? AND refusal = ''"
            f" ORDER BY seq {order} LIMIT {_ENVELOPES_MAX}"
        )
        return [seq for (seq,) in self._index.rows(statement, (*values, *sender, after, until))]

    def _indexed_kinds(self) -> list[str] | None:
        """The kinds that match, if all that can match has facts; None: it may be talk, or there are too many."""
        plain = _WILDCARDS.split(self._pattern)[0]
        if (is_talk(plain) and not plain.startswith(RESERVED_PREFIX)) or self._is_of_kind(Kind.STATUS):
            return None
        kinds = self._index.rows(_KINDS, (_KINDS_MAX,))
        return None if len(kinds) == _KINDS_MAX else [kind for (kind,) in kinds if self._is_of_kind(kind)]

    def _certain_texts(self) -> tuple[bytes, ...]:
        """One of these is in the bytes of all that may match; none: nobody knows.

        A letter may be written otherwise than as itself, but not without a backslash.
        """
        if self._query.participant is not None:
            return self._query.participant.encode(), b"\\u"
        plain = "" if self._pattern[:1] in ("!", "/") else _WILDCARDS.split(self._pattern)[0]
        if not plain or any(plain.startswith(own) or own.startswith(plain) for own in _GATEWAYS):
            return ()
        return plain.encode(), b"\\u", b"\\/"

    def _last_of(self, seq: int) -> int:
        """The number of the last entry in the record that holds this one."""
        row = self._journal.row(seq)
        return seq if row is None else row.last

    @property
    def _pattern(self) -> str:
        kind = self._query.kind
        pattern = "" if kind is None else kind.source.get("kind")
        return pattern if isinstance(pattern, str) else ""

    def _is_of_kind(self, kind: str) -> bool:
        return self._query.kind is None or self._query.kind.fits(kind, (), lambda: None)


def _find(
    journal: JournalReader, index: Index, envelope_id: str, until: int, is_over: IsOver
) -> Cursor | None:
    """The oldest envelope of this id delivered up to this entry.

    Talk is searched for in the journal itself, a second for a million entries if they are not on a slow disk. An id
    that its sender wrote with escapes is not found so.

    Raises:
        TookTooLong: time is up before that.
    """
    query = "SELECT min(seq) FROM facts WHERE id = ? AND refusal = '' AND seq <= ?"
    ((seq,),) = index.rows(query, (envelope_id, until))
    if seq is not None:
        record = journal.record(seq)
        return Cursor(seq, 0) if record is None else _place(record.delivered, envelope_id)
    if is_gateway_id(envelope_id):
        return None
    for row, _ in journal.rows_with((encode_json(envelope_id),), journal.begin.seq, until):
        if row is not None:
            place = _place(record_of(row).delivered, envelope_id)
            if place is not None:
                return place
        if is_over():
            raise QueryTimeout(f"{envelope_id!r} was not found in time")
    return None


def _place(delivered: Delivered, envelope_id: str) -> Cursor | None:
    if envelope_id not in delivered.ids:
        return None
    return Cursor(delivered.seq, delivered.ids.index(envelope_id))


def _connected(
    journal: JournalReader, index: Index, ids: Iterable[str], who: ParticipantId, is_over: IsOver
) -> CorrelatedEntries:
    """All that is connected with these, whoever names whom, through what was for `who`, until time is up."""
    found = set(ids)
    to_visit = deque(found)
    seen: dict[tuple[int, int], bool] = {}
    audience = _Audience(journal, who)
    complete = True
    while to_visit and complete:
        named = to_visit.popleft()
        facts = index.select("id = ? AND refusal = ''", (named,), tail=f"LIMIT {_FACTS_MAX}")
        for fact in (*facts, *index.naming(named, _FACTS_MAX)):
            if (fact.seq, fact.n) in seen:
                continue
            if len(seen) == _FACTS_MAX or is_over():
                complete = False
                break
            is_seen = seen[fact.seq, fact.n] = audience.includes(fact)
            if is_seen:
                fresh = [one for one in (fact.id, *fact.causes) if one not in found]
                found.update(fresh)
                to_visit.extend(fresh)
    return CorrelatedEntries(found, sorted({seq for (seq, _), is_seen in seen.items() if is_seen}), complete)


class _Audience:
    """Whether `who` was to see an envelope. The last record is kept: many of them may be in one."""

    def __init__(self, journal: JournalReader, who: ParticipantId) -> None:
        self._journal = journal
        self._who = who
        self._record: Record | None = None
        self._ids: set[str] = set()

    def includes(self, fact: Fact) -> bool:
        record = self._record
        if record is None or not record.entry.seq <= fact.seq <= record.entry.last:
            record = self._record = self._journal.record(fact.seq)
            found = [] if record is None else envelopes_in(record.delivered)
            self._ids = {one.id for one in found if one.is_for(self._who)}
        return fact.id in self._ids
