"""What can be played: the entries of a journal or of an export, and the state before them where it is known."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import BinaryIO

from mew.log.base import LogUnavailable
from mew.log.database import Damaged
from mew.log.reading import JournalReader, entry_of
from mew.log.record import take_apart
from mew.space import Entry
from mew.space.state import SpaceState

from .exported import read_export
from .playing import Part

__all__ = ["Recording", "of_export", "of_journal"]


@dataclass(frozen=True, slots=True)
class Recording:
    """The entries after a number in their order, read as they are asked for, and the state before the first.

    `state` None: it is not known, because what came before is not kept. Reading may raise `Damaged` where an entry
    cannot be read, or the next one is missing, and `LogUnavailable` where the system says no.
    """

    space: str
    after: int
    state: SpaceState | None
    entries: Iterator[Entry]


def of_journal(reader: JournalReader, part: Part) -> Recording:
    """A part of a journal, from the last state that is kept of a time before it. Costs a few reads.

    Raises:
        LogUnavailable: it cannot be read now.
        Damaged: something that is needed cannot be read.
    """
    begin = reader.begin.seq
    first = max(part.first, begin + 1)
    if part.since is not None:
        first = max(first, _first_since(reader, begin + 1, part.since))
    try:
        state = reader.state_before(first)
    except LogUnavailable:
        if not begin:
            raise
        return Recording(reader.space, begin, None, _in_order(reader.entries(begin), begin))
    return Recording(reader.space, state.seq, state, _in_order(reader.entries(state.seq), state.seq))


def of_export(file: BinaryIO) -> Recording:
    """All of an export, each entry of which is checked before it is played.

    Raises:
        LogUnavailable: it was written in a later format, or cannot be read.
        Damaged: it is no export.
    """
    exported = read_export(file)
    after = exported.after.seq
    state = None if after else SpaceState()
    return Recording(exported.space, after, state, map(entry_of, exported.rows))


def _first_since(reader: JournalReader, first: int, since: datetime) -> int:
    """The number of the first entry at this time or later: found by halves, since times rise."""
    end = reader.last + 1
    while first < end:
        middle = (first + end) // 2
        row = reader.row(middle)
        if row is None:
            raise Damaged(f"entry {middle} is missing")
        if take_apart(row.content).at < since:
            first = middle + 1
        else:
            end = middle
    return first


def _in_order(entries: Iterable[Entry], after: int) -> Iterator[Entry]:
    for entry in entries:
        if entry.seq != after + 1:
            raise Damaged(f"entry {after + 1} is missing, the next one is {entry.seq}")
        after = entry.seq
        yield entry
