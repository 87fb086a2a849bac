"""The facts of all spaces in `index.db`, so that questions about a million entries are answered at once.

It can be made again from the journal, as far back as that is kept: what is older is only here. `catch_up` brings it up
to date, be it in the gateway, behind the journal, or by whoever asks.
"""

import logging
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from mew.journal.files.database import translated
from mew.journal.files.folder import free_name
from mew.journal.files.locator import Locator, exclusive
from mew.journal.record import unpack
from mew.protocol.errors import ProtocolError

from .facts import Fact, FactKey, facts_of

__all__ = ["Index", "Progress", "catch_up"]

_logger = logging.getLogger(__name__)

Progress = Callable[[int, int], None]
"""Told how many records are done, and of how many."""

_RECORDS: Final = 256
_YIELD_RECORDS: Final = 16
_YIELD_S: Final = 0.0001  # other threads get the interpreter in between
_BEYOND_ALL: Final = 1 << 62
_BEGIN: Final[FactKey] = (-1, 0)
_END: Final[FactKey] = (_BEYOND_ALL, 0)
_NAMES: Final = Fact.__struct_fields__
_LISTS: Final = tuple(_NAMES.index(name) for name in ("whom", "causes"))
_COLUMNS: Final = (
    "seq, n, at, kind, who, id, about, note, refusal, context, whom, causes, digest, grant_id, expires"
)
_SCHEMA: Final = (
    "CREATE TABLE IF NOT EXISTS all_facts (space INTEGER, seq INTEGER, n INTEGER, at INTEGER, kind TEXT, who TEXT,"
    " id TEXT, about TEXT, note TEXT, refusal TEXT, context TEXT, whom TEXT, causes TEXT, digest TEXT, grant_id TEXT,"
    " expires INTEGER,"
    " PRIMARY KEY (space, seq, n)) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS by_id ON all_facts (space, id) WHERE refusal = ''",
    "CREATE INDEX IF NOT EXISTS by_kind ON all_facts (space, kind, seq)",
    "CREATE INDEX IF NOT EXISTS by_who ON all_facts (space, who, seq)",
    "CREATE INDEX IF NOT EXISTS by_refusal ON all_facts (space, refusal, seq) WHERE refusal <> ''",
    "CREATE TABLE IF NOT EXISTS all_causes (space INTEGER, cause TEXT, seq INTEGER, n INTEGER,"
    " PRIMARY KEY (space, cause, seq, n)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS unread (n INTEGER PRIMARY KEY, space INTEGER, why TEXT)",
    # For the query planner, what a large index is like: rows in all, then of a space, and of a space and a kind, ….
    # Without it a space is taken to have ten facts, and all of them are read to find one.
    "ANALYZE main.all_facts",
    "DELETE FROM main.sqlite_stat1",
    """INSERT INTO main.sqlite_stat1 VALUES ('all_facts', 'all_facts', '1000000 100000 1 1'),
    ('all_facts', 'by_id', '1000000 100000 1'), ('all_facts', 'by_kind', '1000000 100000 5000 1'),
    ('all_facts', 'by_who', '1000000 100000 5000 1'), ('all_facts', 'by_refusal', '10000 1000 100 1'),
    ('all_causes', 'all_causes', '1000000 100000 2 1 1')""",
    "ANALYZE main.sqlite_schema",
)
_VIEWS: Final = {"facts": _COLUMNS, "causes": "cause, seq, n"}
_BODIES: Final = """
SELECT own.id, records.n, records.body FROM journal.records
JOIN journal.spaces AS theirs ON theirs.id = records.space JOIN spaces AS own ON own.name = theirs.name
"""
_DUE: Final = f"""
{_BODIES} WHERE records.n > ? AND records.n <= ? AND records.indexed ORDER BY records.n LIMIT ?
"""
_UNREAD: Final = f"{_BODIES} WHERE records.n IN (SELECT n FROM unread ORDER BY n LIMIT ?) ORDER BY records.n"
# Many rows with one statement: Python gives way to other threads only between statements, and then waits for its turn.
_ROWS: Final = 128
_ADD: Final = ("INSERT OR IGNORE INTO all_facts VALUES ", len(_NAMES) + 1)
_ADD_CAUSES: Final = ("INSERT OR IGNORE INTO all_causes VALUES ", 4)
# A response says by itself what was asked, and a rejection what was proposed: the request may be gone one day.
# Only what it answers counts: who names more than that does not choose what it is about.
_INHERIT: Final = """
UPDATE all_facts SET about = coalesce((
    SELECT asked.about FROM json_each(all_facts.causes) AS cause
    JOIN all_facts AS asked INDEXED BY by_id ON asked.space = all_facts.space AND asked.id = cause.value
    WHERE asked.refusal = '' AND asked.seq < all_facts.seq AND CASE all_facts.kind
        WHEN 'mcp/response' THEN asked.kind = 'mcp/request' AND (asked.whom = '[]' OR EXISTS (
            SELECT 1 FROM json_each(asked.whom) AS one WHERE one.value = all_facts.who))
        ELSE asked.kind = 'mcp/proposal' END
    ORDER BY cause.key, asked.seq DESC LIMIT 1
), '')
WHERE space = ? AND seq >= ? AND seq <= ? AND about = '' AND refusal = ''
    AND kind IN ('mcp/response', 'mcp/reject', 'mcp/withdraw')
"""
_LOST_FACTS: Final = """
SELECT 1 FROM lost JOIN all_facts ON all_facts.space = lost.space AND all_facts.seq > lost.after LIMIT 1
"""
_FORGET: Final = (
    "DELETE FROM all_facts WHERE space = ? AND seq > ?",
    "DELETE FROM all_causes WHERE space = ? AND seq > ?",
    "DELETE FROM lost WHERE space = ? AND after = ?",
)
# In the order of `causes`, so that it ends with the last that is wanted, however many there are.
_NAMING: Final = f"""
SELECT {", ".join("facts." + name for name in _COLUMNS.split(", "))}
FROM causes CROSS JOIN facts ON facts.seq = causes.seq AND facts.n = causes.n
WHERE causes.cause = ? AND (causes.seq, causes.n) > (?, ?) ORDER BY causes.seq, causes.n LIMIT ?
"""

_Due: TypeAlias = tuple[int, int, bytes]
"""A record to be indexed: the number of its space here, its own number, and its body."""


class Index:
    """The facts of one space, as the tables `facts` and `causes`. All methods raise `JournalUnavailable`.

    An id belongs to whoever used it first, until so many other envelopes were accepted that it is free again, and some
    senders may use their own again. So whoever names an id means the latest envelope that has it.
    """

    def __init__(self, locator: Locator, space: str) -> None:
        """In this index, which must be open for as long, and serves no other space meanwhile."""
        self.locator = locator
        self.space = space
        _prepare(locator)
        number = locator.space(space) or 0
        for name, columns in _VIEWS.items():
            view = f"CREATE VIEW {name} AS SELECT {columns} FROM main.all_{name} WHERE space = {number:d}"
            made = locator.ask("SELECT sql FROM temp.sqlite_schema WHERE name = ?", (name,))
            assert made in ([], [(view,)]), f"the index serves another space than {space!r}: {made}"
            if not made:
                locator.ask(view.replace("CREATE VIEW", "CREATE TEMP VIEW"))

    def select(self, where: str = "TRUE", values: Sequence[Any] = (), *, tail: str = "") -> list[Fact]:
        """The facts that fit a condition in SQL on the columns of `facts`; `tail` orders and limits."""
        found = self.locator.ask(f"SELECT * FROM facts WHERE {where} {tail}", values)
        return [_fact(row) for row in found]

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The answer to any question in SQL."""
        return self.locator.ask(query, values)

    def with_id(self, envelope_id: str, before: FactKey = _END) -> Fact | None:
        """The accepted envelope that is meant by this id, if it is named there."""
        where = "id = ? AND refusal = '' AND (seq, n) < (?, ?)"
        found = self.select(where, (envelope_id, *before), tail="ORDER BY seq DESC, n DESC LIMIT 1")
        return found[0] if found else None

    def times_used(self, envelope_id: str) -> int:
        """How many accepted envelopes have this id."""
        ((times,),) = self.rows("SELECT count(*) FROM facts WHERE id = ? AND refusal = ''", (envelope_id,))
        return int(times)

    def naming(self, envelope_id: str, limit: int = 1000, after: FactKey = _BEGIN) -> list[Fact]:
        """The accepted envelopes that name this id as a cause, from a place on, oldest first."""
        return [_fact(row) for row in self.rows(_NAMING, (envelope_id, *after, limit))]

    def times_named(self, envelope_id: str, after: FactKey = _BEGIN) -> int:
        """How many accepted envelopes name this id as a cause, from a place on."""
        query = "SELECT count(*) FROM causes WHERE cause = ? AND (seq, n) > (?, ?)"
        ((times,),) = self.rows(query, (envelope_id, *after))
        return int(times)

    def unread(self) -> str | None:
        """Why nothing is known of the first record that could not be read; None: all could."""
        query = "SELECT why FROM unread WHERE space = ? ORDER BY n LIMIT 1"
        found = self.rows(query, (self.locator.space(self.space),))
        return str(found[0][0]) if found else None


def catch_up(
    locator: Locator, progress: Progress = lambda done, of: None, *, is_over: Callable[[], bool] | None = None
) -> None:
    """Index all that was committed until now; some 40 µs for each envelope that is not talk.

    Several processes may do so at once. A record that cannot be read is passed over, and tried again the next time:
    `Index.unread`. `is_over`: asked now and then whether to leave the rest to another time; then other threads get
    their turn too.

    Raises:
        JournalUnavailable: the system says no.
        Damaged: the file of the journal cannot be read; all before the damage is in the index.
    """
    _prepare(locator)
    locator.locate()
    _forget_lost(locator)
    _try_again(locator)
    first, end = locator.indexed, locator.located
    after = first
    while after < end and not (is_over is not None and is_over()):
        due = locator.ask(_DUE, (after, end, _RECORDS))
        until = due[-1][1] if len(due) == _RECORDS else end
        after = _add(locator, after, _read(due, gives_way=is_over is not None), until)
        progress(max(0, after - first), end - first)


class _Indexed(NamedTuple):
    """What is to be said of some records: facts, each with its space; and of those that cannot be read, why."""

    facts: list[tuple[int, Fact]]
    unread: list[tuple[int, int, str]]


def _read(due: Sequence[_Due], *, gives_way: bool = False) -> _Indexed:
    read = _Indexed([], [])
    for place, (space, n, body) in enumerate(due):
        try:
            read.facts.extend([(space, fact) for fact in facts_of(unpack(body))])
        except (ValueError, ProtocolError) as error:
            why = f"record {n} is none that this version of mew knows: {error}"
            read.unread.append((n, space, why))
        if gives_way and place % _YIELD_RECORDS == 0:
            time.sleep(_YIELD_S)
    return read


def _prepare(locator: Locator) -> None:
    with translated(locator.path):
        if locator.connection.execute("SELECT 1 FROM main.sqlite_schema WHERE name = 'unread'").fetchone():
            return
        with exclusive(locator.connection) as connection:
            for statement in _SCHEMA:
                connection.execute(statement)


def _add(locator: Locator, after: int, read: _Indexed, until: int) -> int:
    """Add what is said of the records after one number, up to another; return up to where it is in the index now."""
    with translated(locator.path), exclusive(locator.connection) as connection:
        indexed = _indexed(connection)
        if indexed != after:
            return indexed  # by another process, meanwhile
        _write(connection, read)
        connection.execute("UPDATE progress SET indexed = ?", (until,))
        return until


def _indexed(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT indexed FROM progress").fetchone()[0])


def _write(connection: sqlite3.Connection, read: _Indexed) -> None:
    _insert(connection, _ADD, ((space, *_row(fact)) for space, fact in read.facts))
    causes = (
        (space, cause, fact.seq, fact.n)
        for space, fact in read.facts
        if not fact.refusal
        for cause in fact.causes
    )
    _insert(connection, _ADD_CAUSES, causes)
    for space in dict.fromkeys(space for space, _ in read.facts):
        numbers = [fact.seq for of, fact in read.facts if of == space]
        connection.execute(_INHERIT, (space, numbers[0], numbers[-1]))
    for n, space, why in read.unread:
        _logger.warning("a record cannot be indexed", extra={"record": n, "error": why})
        connection.execute("INSERT OR IGNORE INTO unread VALUES (?, ?, ?)", (n, space, why))


def _try_again(locator: Locator) -> None:
    """Look at records that could not be read before: by another version, or before the journal was repaired."""
    if not locator.ask("SELECT 1 FROM unread LIMIT 1"):
        return
    due = locator.ask(_UNREAD, (_RECORDS,))
    read = _read(due)
    still = {n for n, _, _ in read.unread}
    with translated(locator.path), exclusive(locator.connection) as connection:
        _write(connection, read._replace(unread=[]))
        for _, n, _ in due:
            if n not in still:
                connection.execute("DELETE FROM unread WHERE n = ?", (n,))
        connection.execute(
            "DELETE FROM unread WHERE NOT EXISTS (SELECT 1 FROM journal.records WHERE records.n = unread.n)"
        )


def _forget_lost(locator: Locator) -> None:
    """Facts of entries that the journal has lost must not be taken for those of others: they are set aside."""
    if not locator.ask("SELECT 1 FROM lost LIMIT 1"):
        return
    if locator.ask(_LOST_FACTS):
        aside = _copy(locator)
        _logger.warning(
            "the record tells of entries that the journal has lost; it is kept as it was",
            extra={"file": str(aside)},
        )
    with translated(locator.path), exclusive(locator.connection) as connection:
        for lost in connection.execute("SELECT space, after FROM lost").fetchall():
            for statement in _FORGET:
                connection.execute(statement, lost)


def _copy(locator: Locator) -> Path:
    """The whole index as it is, in a file beside it."""
    aside = free_name(locator.path)
    with translated(aside):
        os.close(os.open(aside, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        locator.connection.execute("VACUUM main INTO ?", (str(aside),))
    return aside


def _insert(
    connection: sqlite3.Connection, statement: tuple[str, int], rows: Iterable[tuple[Any, ...]]
) -> None:
    begin, width = statement
    rows = iter(rows)
    while some := list(islice(rows, _ROWS)):
        places = f"({', '.join('?' * width)})"
        connection.execute(begin + ", ".join([places] * len(some)), list(chain.from_iterable(some)))


def _row(fact: Fact) -> tuple[Any, ...]:
    values = list(msgspec.structs.astuple(fact))
    for place in _LISTS:
        values[place] = msgspec.json.encode(values[place]).decode()
    return tuple(values)


def _fact(row: tuple[Any, ...]) -> Fact:
    values = list(row)
    for place in _LISTS:
        values[place] = tuple(msgspec.json.decode(values[place]))
    return Fact(*values)
