"""The front of a journal: its first entries are dropped beside its writer, a few turns at a time.

A step is one statement of SQL: what goes, and where the file begins from then on, are one transaction, inside which no
other thread is waited for. A crash leaves a file that begins where one of the steps ended.
"""

import struct
import time
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from pathlib import Path
from typing import Final, NamedTuple

from .database import Damaged, Database, Durability, checkpoint
from .record import Link, take_apart, unpack

__all__ = ["Cut", "Front", "Held", "held_in"]

_STEP_TURNS: Final = 256
_STEP_BYTES: Final = 128 << 10  # some 0.4 ms; a turn goes as a whole, however large
_REST_S: Final = 0.008
_REST: Final = 19  # times as long as the step took: so long the writer has the file for itself
_AHEAD_BYTES: Final = 8 << 20
_HEAD_BYTES: Final = 24  # of an entry, with its number and moment
# Pages need not be written over when they are freed: the file is made shorter by them in the same transaction.
_SETTINGS: Final = (
    "PRAGMA busy_timeout = 5000",
    "PRAGMA secure_delete = FAST",
    "PRAGMA temp_store = MEMORY",
    "CREATE TEMP TRIGGER begin_later AFTER UPDATE ON main.journal"
    " BEGIN DELETE FROM turns WHERE last <= NEW.seq; END",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """What goes: of the entries up to `limit` those up to `until`, those made before a moment, and as many as must for
    the rest to fit in so many bytes.
    """

    limit: int
    until: int = 0
    before: datetime | None = None
    bytes: int | None = None


class Held(NamedTuple):
    """What a journal has: all after this entry, the first from that moment; its bytes once all ahead is in the file."""

    begin: int = 0
    since: datetime | None = None
    bytes: int = 0


class _Step(NamedTuple):
    end: Link
    bytes: int


class Front:
    """A journal that another connection writes to. All methods raise `LogUnavailable` and `Damaged`."""

    def __init__(self, path: Path, space: str) -> None:
        self._path = path
        self._database = Database.open(path, space, Durability.PROCESS)
        try:
            for setting in _SETTINGS:
                self._database.ask(setting)
        except BaseException:
            self._database.close()
            raise

    def close(self) -> None:
        self._database.close()

    @property
    def begin(self) -> int:
        return self._database.begin.seq

    @property
    def held(self) -> Held:
        return held_in(self._database)

    def hash_of(self, seq: int) -> bytes | None:
        return self._database.hash_of(seq)

    def has_more_than(self, cut: Cut) -> bool:
        """Whether something is to go."""
        return self._next(cut) is not None

    def drop(self, cut: Cut, rest: Callable[[float], bool]) -> None:
        """Step by step, with a rest after each: `rest` waits so many seconds, and says whether to stop.

        What went is still in what was written ahead, for a while.
        """
        ahead = 0
        while (step := self._next(cut)) is not None:
            begun_s = time.monotonic()
            self._database.ask("UPDATE journal SET seq = ?, hash = ?", step.end)
            if rest(max(_REST_S, _REST * (time.monotonic() - begun_s))):
                return
            ahead += step.bytes
            if ahead > _AHEAD_BYTES:
                ahead = 0
                checkpoint(self._path)

    def settle(self) -> None:
        """Leave nothing that went in what was written ahead, unless somebody reads it now. The writer waits, some 0.1 s
        if it is a lot.
        """
        checkpoint(self._path)  # most of it, while the writer goes on
        self._database.ask("PRAGMA busy_timeout = 50")
        self._database.ask("PRAGMA wal_checkpoint(TRUNCATE)")

    def _next(self, cut: Cut) -> _Step | None:
        query = "SELECT last, length(entries) FROM turns WHERE last <= ? ORDER BY last LIMIT ?"
        turns = self._database.ask(query, (cut.limit, _STEP_TURNS))
        sizes = list(accumulate(size for _, size in turns))
        lasts = [last for last, _ in turns[: max(1, bisect_right(sizes, _STEP_BYTES))]]
        count = bisect_right(lasts, cut.until)
        if cut.bytes is not None:
            surplus = _used_bytes(self._database) - cut.bytes
            count = max(count, sum(before < surplus for before in (0, *sizes)[: len(lasts)]))
        if cut.before is not None:
            count = self._aged(lasts, count, cut.before)
        return _Step(self._end(lasts[count - 1])[0], sizes[count - 1]) if count else None

    def _aged(self, lasts: list[int], count: int, before: datetime) -> int:
        """How many of these turns were over before a moment; those first ones go anyway."""
        high = len(lasts)
        if count < high and self._end(lasts[-1])[1] < before:  # mostly
            return high
        while count < high:
            middle = (count + high + 1) // 2
            if self._end(lasts[middle - 1])[1] < before:
                count = middle
            else:
                high = middle - 1
        return count

    def _end(self, last: int) -> tuple[Link, datetime]:
        """The last entry of a turn, and when it was made."""
        ((entries,),) = self._database.ask("SELECT entries FROM turns WHERE last = ?", (last,))
        try:
            *_, row = unpack(entries)
            at = take_apart(row.content).at
        except (TypeError, ValueError) as error:
            raise Damaged(f"the turn that ends with entry {last} cannot be read ({error})") from error
        if row.seq != last:
            raise Damaged(f"the turn that ends with entry {last} ends with {row.seq}")
        return Link(row.seq, row.hash), at


def held_in(database: Database) -> Held:
    found = database.ask("SELECT substr(entries, 1, ?) FROM turns ORDER BY last LIMIT 1", (_HEAD_BYTES,))
    try:
        since = take_apart(found[0][0]).at if found else None
    except (TypeError, ValueError, struct.error) as error:
        raise Damaged(f"the first entry cannot be read ({error})") from error
    return Held(database.begin.seq, since, _used_bytes(database))


def _used_bytes(database: Database) -> int:
    ((page_bytes,),), ((pages,),), ((free,),) = (
        database.ask(f"PRAGMA {name}") for name in ("page_size", "page_count", "freelist_count")
    )
    return int(page_bytes * (pages - free))
