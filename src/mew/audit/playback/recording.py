"""A recording: the records of a journal or an export, and the state before them if known."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from mew.audit.proof.export_check import read_export
from mew.journal.files.database import Damaged
from mew.journal.port import JournalUnavailable
from mew.journal.reader import JournalReader, record_of
from mew.journal.record import Record
from mew.space.state import SpaceState

from .timeline import PlaybackRange

__all__ = ["Recording", "recording_from_export", "recording_from_journal"]


@dataclass(frozen=True, slots=True)
class Recording:
    """The records after an entry in their order, read as they are asked for, and the state before the first.

    `state` None: it is not known, because what came before is not kept. Reading may raise `Damaged` if a record cannot
    be read, or the next one is missing, and `JournalUnavailable` if the system says no.
    """

    space: str
    after: int
    state: SpaceState | None
    records: Iterator[Record]


def recording_from_journal(reader: JournalReader, part: PlaybackRange) -> Recording:
    """A part of a journal, from the last state that is kept of a time before it. Costs a few reads.

    Raises:
        JournalUnavailable: it cannot be read now.
        Damaged: something that is needed cannot be read.
    """
    begin = reader.begin.seq
    first = max(part.first, begin + 1)
    if part.since is not None:
        first = max(first, reader.first_since(part.since))
    try:
        state = reader.state_before(first)
    except JournalUnavailable:
        if not begin:
            raise
        return Recording(reader.space, begin, None, _in_order(reader.records(begin), begin))
    return Recording(reader.space, state.seq, state, _in_order(reader.records(state.seq), state.seq))


def recording_from_export(file: BinaryIO) -> Recording:
    """All of an export, each record of which is checked before it is played.

    Raises:
        JournalUnavailable: it was written in a later format, or cannot be read.
        Damaged: it is no export.
    """
    exported = read_export(file)
    after = exported.after.seq
    state = None if after else SpaceState()
    return Recording(exported.space, after, state, map(record_of, exported.rows))


def _in_order(records: Iterable[Record], after: int) -> Iterator[Record]:
    for record in records:
        if record.entry.seq != after + 1:
            raise Damaged(f"entry {after + 1} is missing, the next one is {record.entry.seq}")
        after = record.entry.last
        yield record
