"""What hangs together through `correlation_id`, as far as the index knows: all but talk."""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from msgspec import Struct

from mew.protocol.envelope import ParticipantId

from .chronicle import Chronicle
from .facts import Fact

__all__ = ["Linked", "linked"]

_FACTS_MAX: Final = 1_000


class Linked(Struct, frozen=True):
    """The ids of what hangs together, and the numbers of the entries that showed it, in order.

    Not `complete`: there is too much to follow it all, or too little time.
    """

    ids: set[str]
    numbers: list[int]
    complete: bool


def linked(
    chronicle: Chronicle,
    ids: Iterable[str],
    who: ParticipantId,
    is_over: Callable[[], bool] = lambda: False,
) -> Linked:
    """All that hangs together with these, whoever names whom, through what was for `who`, until it is over."""
    found = set(ids)
    to_visit = deque(found)
    seen: dict[tuple[int, int], bool] = {}
    complete = True
    while to_visit and complete:
        named = to_visit.popleft()
        facts = chronicle.index.select("id = ? AND refusal = ''", (named,), tail=f"LIMIT {_FACTS_MAX}")
        for fact in (*facts, *chronicle.index.naming(named, _FACTS_MAX)):
            if (fact.seq, fact.n) in seen:
                continue
            if len(seen) == _FACTS_MAX or is_over():
                complete = False
                break
            is_seen = _is_for(chronicle, fact, who)
            seen[fact.seq, fact.n] = is_seen
            if is_seen:
                fresh = [one for one in (fact.id, *fact.causes) if one not in found]
                found.update(fresh)
                to_visit.extend(fresh)
    return Linked(found, sorted({seq for (seq, _), is_seen in seen.items() if is_seen}), complete)


def _is_for(chronicle: Chronicle, fact: Fact, who: ParticipantId) -> bool:
    """By the index alone where it says so: what the gateway made is there with those it was for."""
    if fact.made is not None:
        return fact.only is None or who in fact.only
    return any(
        shown.envelope.id == fact.id and (shown.only is None or who in shown.only)
        for _, shows in chronicle.each((fact.seq,))
        for shown in shows
    )
