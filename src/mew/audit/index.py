"""The facts of a space in a file beside its journal, so that questions about a million entries are answered at once.

It can be made again from the journal, as far back as that is kept: what is older is only here.
"""

import logging
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import msgspec

from mew.log.base import LogUnavailable
from mew.space.space import RECENT_IDS

from .facts import Fact
from .index_file import make_file, set_aside
from .uses import Place

__all__ = ["FILE", "Index"]

_logger = logging.getLogger(__name__)

FILE: Final = "index.db"
_FORMAT: Final = 2
_BUSY_S: Final = 10.0
# Ids are nowhere near each other: with less, most are a page that is read and written again.
_CACHE_KIB: Final = 32 << 10
_BEYOND_ALL: Final = 1 << 62
_BEGIN: Final[Place] = (-1, 0)
_END: Final[Place] = (_BEYOND_ALL, 0)
_NAMES: Final = Fact.__struct_fields__
_LISTS: Final = tuple(_NAMES.index(name) for name in ("whom", "causes", "only"))
_SCHEMA: Final = (
    "CREATE TABLE facts (seq INTEGER, n INTEGER, at INTEGER, kind TEXT, who TEXT, id TEXT, about TEXT, note TEXT,"
    " refusal TEXT, context TEXT, whom TEXT, causes TEXT, made TEXT, only_for TEXT, digest TEXT,"
    " grant_id TEXT, PRIMARY KEY (seq, n)) WITHOUT ROWID",
    "CREATE INDEX by_id ON facts (id) WHERE refusal = ''",
    "CREATE INDEX by_kind ON facts (kind, seq)",
    "CREATE INDEX by_who ON facts (who, seq)",
    "CREATE INDEX by_refusal ON facts (refusal, seq) WHERE refusal <> ''",
    "CREATE TABLE causes (cause TEXT, seq INTEGER, n INTEGER, PRIMARY KEY (cause, seq, n)) WITHOUT ROWID",
    "CREATE TABLE covered (after INTEGER, until INTEGER)",
    f"PRAGMA user_version = {_FORMAT}",
)
# Many rows with one statement: Python gives way to others only between statements, and then waits for its turn.
_ROWS: Final = 128
_ADD: Final = ("INSERT OR IGNORE INTO facts VALUES ", len(_NAMES))
_ADD_CAUSES: Final = ("INSERT OR IGNORE INTO causes VALUES ", 3)
# A response says by itself what was asked, and a rejection what was proposed: the request may be gone one day.
# Only what it answers counts: who names more than that does not choose what it is about.
_INHERIT: Final = """
UPDATE facts SET about = coalesce((
    SELECT asked.about FROM json_each(facts.causes) AS cause
    JOIN facts AS asked INDEXED BY by_id ON asked.id = cause.value
    WHERE asked.refusal = '' AND asked.seq < facts.seq AND CASE facts.kind
        WHEN 'mcp/response' THEN asked.kind = 'mcp/request' AND (
            asked.whom = '[]' OR EXISTS (SELECT 1 FROM json_each(asked.whom) AS one WHERE one.value = facts.who))
        ELSE asked.kind = 'mcp/proposal' END
    ORDER BY cause.key, asked.seq DESC LIMIT 1
), '')
WHERE seq > ? AND seq <= ? AND about = '' AND refusal = '' AND kind IN ('mcp/response', 'mcp/reject', 'mcp/withdraw')
"""
_FORGET: Final = (
    "DELETE FROM facts WHERE seq > ?",
    "DELETE FROM causes WHERE seq > ?",
    "DELETE FROM covered WHERE after >= ?",
    "UPDATE covered SET until = min(until, ?)",
)
# In the order of `causes`, so that it ends with the last that is wanted, however many there are.
_NAMING: Final = """
SELECT facts.* FROM causes CROSS JOIN facts ON facts.seq = causes.seq AND facts.n = causes.n
WHERE causes.cause = ? AND (causes.seq, causes.n) > (?, ?) ORDER BY causes.seq, causes.n LIMIT ?
"""
_OF_ID: Final = "id = ? AND refusal = '' AND (seq, n) < (?, ?)"
_LATEST: Final = "ORDER BY seq DESC, n DESC LIMIT 1"
_FIRST: Final = f"SELECT who FROM facts WHERE {_OF_ID} AND seq >= ? ORDER BY seq, n LIMIT 1"


class Index:
    """An open file. A context: leave it to close it. Its methods may be called in any thread, one after the other.

    All raise `LogUnavailable` where the system says no. A file that is no index, or one of another
    version of mew, is kept under another name.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        with _told(self.path):
            self._connection = self._open()

    def __enter__(self) -> "Index":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def add(self, facts: Sequence[Fact], after: int, until: int) -> None:
        """The facts of the entries after one number, up to and with another. What is known already stays as it is."""
        with _told(self.path), _alone(self._connection) as connection:
            if facts:
                _insert(connection, _ADD, map(_row, facts))
                _insert(
                    connection,
                    _ADD_CAUSES,
                    ((cause, f.seq, f.n) for f in facts if not f.refusal for cause in f.causes),
                )
                connection.execute(_INHERIT, (after, until))
            _cover(connection, after, until)

    def inherit(self) -> None:
        """Look again what those were about that came here before what they answer."""
        with _told(self.path), _alone(self._connection) as connection:
            connection.execute(_INHERIT, (0, _BEYOND_ALL))

    def forget_after(self, seq: int) -> None:
        """Drop what is said of entries after this one: the journal lost them, and others get their numbers."""
        with _told(self.path), _alone(self._connection) as connection:
            for statement in _FORGET:
                connection.execute(statement, (seq,))

    def covered(self, after: int) -> int:
        """The last entry after this one up to which the facts of all are here."""
        return self.gaps(after, _BEYOND_ALL)[0][0]

    def gaps(self, after: int, until: int) -> list[tuple[int, int]]:
        """Of the entries after one number, up to and with another: those whose facts are not here, as such pairs."""
        with _told(self.path):
            ranges = self._connection.execute("SELECT after, until FROM covered ORDER BY after").fetchall()
        gaps: list[tuple[int, int]] = []
        for begin, end in ranges:
            if begin > after:
                gaps.append((after, min(begin, until)))
            after = max(after, end)
            if after >= until:
                break
        if after < until:
            gaps.append((after, until))
        return [(begin, end) for begin, end in gaps if begin < end]

    def select(self, where: str = "TRUE", values: Sequence[Any] = (), *, tail: str = "") -> list[Fact]:
        """The facts that fit a condition in SQL on the columns of `facts`; `tail` orders and limits."""
        with _told(self.path):
            found = self._connection.execute(f"SELECT * FROM facts WHERE {where} {tail}", values)
            return [_fact(row) for row in found]

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The answer to any question in SQL."""
        with _told(self.path):
            return self._connection.execute(query, values).fetchall()

    def with_id(self, envelope_id: str, before: Place = _END) -> Fact | None:
        """The accepted envelope that is meant by this id, where somebody named it."""
        named = (envelope_id, *before)
        found = self.select(_OF_ID, named, tail=_LATEST)
        if found:  # as in `uses`, without going through all of them
            ((owner,),) = self.rows(_FIRST, (*named, found[0].seq - RECENT_IDS))
            if owner != found[0].who:
                found = self.select(f"{_OF_ID} AND +who = ?", (*named, owner), tail=_LATEST)
        return found[0] if found else None

    def times_used(self, envelope_id: str) -> int:
        """How many accepted envelopes have this id."""
        query = "SELECT count(*) FROM facts INDEXED BY by_id WHERE id = ? AND refusal = ''"
        ((times,),) = self.rows(query, (envelope_id,))
        return int(times)

    def naming(self, envelope_id: str, limit: int = 1000, after: Place = _BEGIN) -> list[Fact]:
        """The accepted envelopes that name this id as a cause, from a place on, oldest first."""
        return [_fact(row) for row in self.rows(_NAMING, (envelope_id, *after, limit))]

    def times_named(self, envelope_id: str, after: Place = _BEGIN) -> int:
        """How many accepted envelopes name this id as a cause, from a place on."""
        query = "SELECT count(*) FROM causes WHERE cause = ? AND (seq, n) > (?, ?)"
        ((times,),) = self.rows(query, (envelope_id, *after))
        return int(times)

    def close(self) -> None:
        with _told(self.path):
            self._connection.close()

    def _open(self) -> sqlite3.Connection:
        try:
            return self._opened()
        except _NoIndex as error:
            _logger.warning("the record is made anew: what was there is kept as %s", error)
            return self._opened()

    def _opened(self) -> sqlite3.Connection:
        make_file(self.path)
        connection = sqlite3.connect(
            self.path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version == 0:
                _create(connection)
            elif version != _FORMAT:
                raise sqlite3.DatabaseError(f"of another version of mew, format {version}")
        except BaseException as error:
            try:
                if _is_none(error):  # while it is open: or what was written ahead would be deleted
                    raise _NoIndex(set_aside(self.path).name) from error
                raise
            finally:
                connection.close()
        return connection


class _NoIndex(Exception):
    """The file is none that can be used, and has this name now."""


def _is_none(error: BaseException) -> bool:
    return isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError)


def _create(connection: sqlite3.Connection) -> None:
    with _alone(connection):
        if connection.execute("PRAGMA user_version").fetchone()[0]:
            return  # another process was faster
        for statement in _SCHEMA:
            connection.execute(statement)


def _cover(connection: sqlite3.Connection, after: int, until: int) -> None:
    touching = "until >= ? AND after <= ?"
    query = f"SELECT min(after), max(until) FROM covered WHERE {touching}"
    first, last = connection.execute(query, (after, until)).fetchone()
    if first is not None:
        connection.execute(f"DELETE FROM covered WHERE {touching}", (after, until))
        after, until = min(after, first), max(until, last)
    connection.execute("INSERT INTO covered VALUES (?, ?)", (after, until))


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
        if values[place] is not None:
            values[place] = msgspec.json.encode(values[place]).decode()
    return tuple(values)


def _fact(row: tuple[Any, ...]) -> Fact:
    values = list(row)
    for place in _LISTS:
        if values[place] is not None:
            values[place] = tuple(msgspec.json.decode(values[place]))
    return Fact(*values)


@contextmanager
def _alone(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """A transaction that nobody else writes beside; all of it or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """What SQLite and the system say, as what it means for us."""
    try:
        yield
    except sqlite3.Error as error:
        raise LogUnavailable(f"{path}: {error}") from error
    except OSError as error:
        raise LogUnavailable(f"{path}: {error.strerror}") from error
