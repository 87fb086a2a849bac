"""PURE. Which envelope somebody means who names an id that was used more than once.

An id is free again after so many envelopes, and some clients begin to count anew each time they start. Who names it
means the latest. But while an id is not free, only who has it may use it again: nobody takes over another's proposal.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from mew.space.space import RECENT_IDS

__all__ = ["Place", "Use", "meant_after"]

Place: TypeAlias = tuple[int, int]
"""The number of an entry, and of the fact in it."""


class Use(NamedTuple):
    """An accepted envelope with the id."""

    seq: int
    n: int
    who: str

    @property
    def place(self) -> Place:
        return self.seq, self.n


def meant_after(uses: Sequence[Use]) -> list[Use]:
    """For each use of an id, in their order: the one that is meant right after it."""
    meant: list[Use] = []
    latest: dict[str, Use] = {}
    first = 0
    for use in uses:
        latest[use.who] = use
        while uses[first].seq < use.seq - RECENT_IDS:
            first += 1
        meant.append(latest[uses[first].who])
    return meant
