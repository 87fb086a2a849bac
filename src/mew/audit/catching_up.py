"""Brings an index up to date from the journal: the entries are gone through again, and give the same facts."""

import time
from collections.abc import Callable, Sequence
from typing import Final

from mew.log.database import Damaged
from mew.log.reading import JournalReader
from mew.space import Decision, Entry, Space

from .facts import Fact, facts_of
from .index import Index

__all__ = ["Progress", "catch_up"]

Progress = Callable[[int, int], None]
"""Told how many entries are done, and of how many."""

_SOME: Final = 4096
_MANY: Final = 32_768  # at once: less than half the work of as many by 4,096
_BYTES_MAX: Final = 16 << 20
_GIVE_WAY: Final = 64
_GIVE_WAY_S: Final = 0.0001  # others wait for Python after so many: a few milliseconds


def catch_up(
    journal: JournalReader,
    index: Index,
    progress: Progress = lambda done, of: None,
    *,
    is_over: Callable[[], bool] | None = None,
) -> None:
    """Have the facts of every entry that is kept now in the index. Costs some 40 µs for each that is missing.

    `is_over`: asked now and then whether to leave the rest to another time, where others run beside.

    Raises:
        LogUnavailable: the system says no, or what came before is gone and there is no snapshot.
        Damaged: an entry cannot be read; all before it is in the index.
    """
    gaps = index.gaps(journal.begin.seq, journal.last)
    for after, until in gaps:
        if not _fill(journal, index, (after, until), progress, is_over):
            return
    if gaps and index.rows("SELECT 1 FROM covered WHERE until > ? LIMIT 1", (gaps[0][1],)):
        index.inherit()


def _fill(
    journal: JournalReader,
    index: Index,
    gap: tuple[int, int],
    progress: Progress,
    is_over: Callable[[], bool] | None,
) -> bool:
    """Whether that was done to its end."""
    after, until = gap
    space = Space(journal.state_before(after + 1))
    start = space.seq
    batch = _Batch(index, after, _MANY if is_over is None else _MANY // 4)
    try:
        for entry in journal.entries(start):
            if entry.seq != space.seq + 1:
                raise Damaged(f"entry {space.seq + 1} is missing, the next one is {entry.seq}")
            decisions = space.apply(entry)
            if entry.seq > after:
                batch.take(entry, decisions)
            if entry.seq % _SOME == 0:
                progress(entry.seq - start, until - start)
            if entry.seq >= until:
                break
            if is_over is not None and entry.seq % _GIVE_WAY == 0:
                if is_over():
                    return False
                time.sleep(_GIVE_WAY_S)
    finally:
        batch.write()
    return True


class _Batch:
    """Facts that are written together."""

    def __init__(self, index: Index, after: int, many: int) -> None:
        self._index = index
        self._many = many
        self._after = self._until = after
        self._facts: list[Fact] = []
        self._bytes = 0

    def take(self, entry: Entry, decisions: Sequence[Decision]) -> None:
        found = facts_of(entry, decisions)
        self._facts += found
        self._bytes += sum(len(fact.made or "") for fact in found)
        self._until = entry.seq
        if len(self._facts) >= self._many or self._bytes >= _BYTES_MAX:
            self.write()

    def write(self) -> None:
        if self._until > self._after:
            self._index.add(self._facts, self._after, self._until)
            self._after, self._facts, self._bytes = self._until, [], 0
