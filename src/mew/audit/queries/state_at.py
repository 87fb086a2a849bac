"""How a space stood at some time, as far as who holds what: from a snapshot, and only what changed that since."""

from datetime import datetime
from typing import Final

from mew.audit.record.index import Index
from mew.journal.files.database import Damaged
from mew.journal.reader import JournalReader
from mew.space import Entry, Event, Refuse, Sent, Space, TimePassed
from mew.space.state import SpaceState

from .search import facts_of_grants, last_before

__all__ = ["standing_at"]

_NOBODY_WAITS: Final = ("paused", "shut_down")  # what was accepted was accepted, whoever was to be silent


def standing_at(journal: JournalReader, index: Index, at: datetime) -> SpaceState:
    """The state at this time: what everyone held and had granted, who was invited and who kicked.

    Who was connected, paused or streaming is not in it: of a million entries only those are gone through that say who
    may do what.

    Raises:
        JournalUnavailable: the system says no, or what came before is gone and there is no snapshot.
        Damaged: an entry cannot be read, or is not what the index says.
    """
    last = last_before(index, at)
    state = journal.state_before(last + 1)
    for name in _NOBODY_WAITS:
        getattr(state, name).clear()
    space = Space(state)
    for seq in dict.fromkeys(fact.seq for fact in facts_of_grants(index, state.seq, last) if not fact.n):
        record = journal.record(seq)
        if record is None:
            raise Damaged(f"entry {seq} is missing")
        entry = record.entry
        _apply(space, Entry(seq, entry.at, _alone(entry.event, seq - entry.seq)))
    _apply(space, Entry(max(last, state.seq) + 1, at, TimePassed()))  # what has expired by then
    return state


def _apply(space: Space, entry: Entry) -> None:
    space.state.seq = entry.seq - 1
    if any(isinstance(decision, Refuse) for decision in space.apply(entry)):
        raise Damaged(f"entry {entry.seq} was accepted, and would not be now")


def _alone(event: Event, place: int) -> Event:
    """One envelope of a batch, as if without a connection: those of the time are not known. Its id was new then."""
    if isinstance(event, Sent):
        one = event.envelopes.part(place, place + 1)
        return Sent(one, (None,), lenient=True, token_hash=event.token_hash)
    return event
