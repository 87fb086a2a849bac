"""Finds its way in a journal, from any place in both directions, by time and by what an entry holds.

What is read at a time is bounded, whatever a turn holds.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from .database import Damaged
from .reading import JournalReader
from .record import Row, take_apart, unpack

__all__ = ["Seeker", "Stretch", "TookTooLong"]

_TURNS: Final = 256
_BYTES: Final = 1 << 20
_HEAD_BYTES: Final = 24
_SPAN: Final = 50_000  # entries that are looked through at a time


class TookTooLong(Exception):
    """Something may be there, but nobody waits that long."""


class Stretch(NamedTuple):
    """The rows of a part of the way, up to which entry that goes, and how many entries were passed."""

    rows: list[Row]
    reached: int
    passed: int


class Seeker:
    """All methods raise `LogUnavailable` where the system says no, and `Damaged` at what cannot be read.

    What one statement of SQL does, it does beside the rest of the process.
    """

    def __init__(self, journal: JournalReader) -> None:
        self._journal = journal

    def some_after(self, seq: int, until: int, texts: Sequence[bytes] = ()) -> Stretch:
        """What follows this entry, up to and with another; with `texts`, of the turns that hold one of them alone."""
        end = min(until, seq + _SPAN) if texts else until
        rows, edge = self._read(self._turns(seq, end, texts, "ASC"))
        reached = end if edge is None else min(edge.last, end)
        return Stretch([row for row in rows if seq < row.seq <= end], reached, reached - seq)

    def some_before(self, seq: int, after: int, texts: Sequence[bytes] = ()) -> Stretch:
        """What comes before this entry and is after another, the newest first; with `texts` likewise."""
        begin = max(after, seq - 1 - _SPAN) if texts else after
        rows, edge = self._read(self._turns(begin, seq - 1, texts, "DESC"))
        reached = begin if edge is None else max(edge.first - 1, begin)
        return Stretch([row for row in reversed(rows) if begin < row.seq < seq], reached, seq - 1 - reached)

    def first_since(self, moment: datetime) -> int:
        """The number of the first entry at or after a moment; of the next to come, if there is none.

        Times never go back in a journal: this takes some twenty looks, however long it is.
        """
        before, end = self._journal.begin.seq, self._journal.last
        query = "SELECT last, substr(entries, 1, ?) FROM turns WHERE last > ? ORDER BY last LIMIT 1"
        while before < end:
            found = self._journal.ask(query, (_HEAD_BYTES, (before + end) // 2))
            if not found:
                break
            ((last, head),) = found
            first, at = _head(head)
            if at < moment:
                earlier = self._journal.ask("SELECT entries FROM turns WHERE last = ?", (last,))
                for row in _unpacked(earlier[0][0]) if earlier else ():
                    if _head(row.content)[1] >= moment:
                        return row.seq
                before = last
            else:
                end = first - 1
        return before + 1

    def holding(self, text: bytes, until: int, is_over: Callable[[], bool]) -> Iterator[Row]:
        """The rows up to this one in which this text is, the newest first.

        Raises:
            TookTooLong: it is over, and not all were looked through; that is asked now and then.
        """
        query = (
            "SELECT last, entries FROM turns WHERE last > ? AND last <= ? AND instr(entries, ?)"
            " ORDER BY last DESC LIMIT 1"
        )
        begin, end = self._journal.begin.seq, self._last_of_turn(until)
        while end > begin:
            if is_over():
                raise TookTooLong(f"looked through from entry {until} back to {end}")
            start = max(begin, end - _SPAN)
            found = self._journal.ask(query, (start, end, text))
            for last, entries in found:
                rows = [row for row in _unpacked(entries) if row.seq <= until and text in row.content]
                yield from reversed(rows)
                start = last - 1
            end = start

    def _last_of_turn(self, seq: int) -> int:
        """Under which number the turn is kept that has this entry."""
        ((found,),) = self._journal.ask("SELECT min(last) FROM turns WHERE last >= ?", (seq,))
        return seq if found is None else int(found)

    def _turns(self, after: int, until: int, texts: Sequence[bytes], order: str) -> list[tuple[Any, ...]]:
        holding = " OR ".join(["instr(entries, ?)"] * len(texts)) or "TRUE"
        query = (
            f"SELECT last, length(entries) FROM turns WHERE last > ? AND last <= ? AND ({holding})"
            f" ORDER BY last {order} LIMIT ?"
        )
        return self._journal.ask(query, (after, self._last_of_turn(until), *texts, _TURNS))

    def _read(self, turns: list[tuple[Any, ...]]) -> tuple[list[Row], "_Edge | None"]:
        """The rows of these turns in order, as many as fit; and which turn is the last of them, if some are left."""
        taken: list[list[Row]] = []
        edge = None
        size = 0
        for last, length in turns:
            size += length or 0
            if taken and size > _BYTES:
                break
            try:
                found = self._journal.ask("SELECT entries FROM turns WHERE last = ?", (last,))
                rows = [row for (entries,) in found for row in _unpacked(entries)]
            except Damaged:
                if taken:
                    break
                raise
            taken.append(rows)
            edge = _Edge(rows[0].seq if rows else last, last)
        if len(taken) == len(turns) < _TURNS:
            edge = None
        in_order = taken if not turns or turns[0][0] <= turns[-1][0] else reversed(taken)
        return [row for rows in in_order for row in rows], edge


class _Edge(NamedTuple):
    """The first and the last entry of a turn."""

    first: int
    last: int


def _head(content: object) -> tuple[int, datetime]:
    if not isinstance(content, bytes) or len(content) < _HEAD_BYTES:
        raise Damaged("a turn without entries")
    try:
        seq, at, _, _ = take_apart(content)
    except ValueError as error:
        raise Damaged(str(error)) from error
    return seq, at


def _unpacked(entries: object) -> list[Row]:
    if not isinstance(entries, bytes):
        raise Damaged("a turn without entries")
    try:
        return list(unpack(entries))
    except ValueError as error:
        raise Damaged(str(error)) from error
