"""PURE. What became of proposals, in numbers: how many were carried out, changed, rejected, and how long it took."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil
from typing import Final, NamedTuple

from msgspec import Struct

from mew.protocol.kinds import Kind

from .execution import carries_out, is_as_proposed
from .uses import Place

__all__ = [
    "Counted",
    "Decided",
    "OfGrants",
    "OfProposals",
    "Proposed",
    "Statistics",
    "of_proposals",
    "percentile",
]

_SECOND_US: Final = 1_000_000


class Proposed(NamedTuple):
    """A proposal as the record has it: where, since its id may be used again. `at` is in microseconds."""

    place: Place
    at: int
    who: str
    about: str
    whom: tuple[str, ...]
    digest: str


class Decided(NamedTuple):
    """What may have decided a proposal: a request, a rejection or a withdrawal that means it."""

    proposal: Place
    kind: str
    at: int
    who: str
    about: str
    whom: tuple[str, ...]
    digest: str


class OfProposals(Struct, frozen=True, kw_only=True):
    """How many proposals came to what. `edited`: of those fulfilled, with something else than was proposed.

    The times are from a proposal to the request that carried it out, or else to the first rejection. A withdrawal is
    nobody's decision, and may be a timeout. None: nobody decided.
    """

    about: str
    proposed: int
    open: int
    fulfilled: int
    edited: int
    rejected: int
    withdrawn: int
    decided_median_s: float | None
    decided_p90_s: float | None


class Counted(Struct, frozen=True):
    """So many facts with a kind, or of a participant."""

    name: str
    accepted: int
    refused: int


class OfGrants(Struct, frozen=True, kw_only=True):
    """How often something was given and taken. Taken back: by the gateway, from whose giver no longer held it."""

    given: int = 0
    revoked: int = 0
    taken_back: int = 0
    expired: int = 0
    invited: int = 0
    kicked: int = 0


class Statistics(Struct, frozen=True, kw_only=True):
    """A space in numbers. `entries` are those of the journal; talk, connections and time have no facts.

    `kept_from`: the first entry that is still kept. `files`: bytes by name.
    """

    space: str
    first: datetime | None
    last: datetime | None
    entries: int
    facts: int
    kept_from: int
    files: dict[str, int]
    kinds: list[Counted]
    participants: list[Counted]
    refusals: dict[str, int]
    grants: OfGrants
    proposals: OfProposals
    tools: list[OfProposals]


def of_proposals(
    proposed: Iterable[Proposed], decided: Iterable[Decided]
) -> tuple[OfProposals, list[OfProposals]]:
    """Of all together, and by what was proposed, the most frequent first. What decided comes in its order.

    A proposal that was carried out is fulfilled, whatever else was said of it. One that was only rejected is rejected,
    though that closes it for nobody else.
    """
    cases = {proposal.place: _Case(proposal) for proposal in proposed}
    for decision in decided:
        case = cases.get(decision.proposal)
        if case is not None:
            case.take(decision)
    by_tool: dict[str, list[_Case]] = {}
    for case in cases.values():
        by_tool.setdefault(case.proposal.about, []).append(case)
    each = [_counted(about, some) for about, some in by_tool.items()]
    each.sort(key=lambda one: (-one.proposed, one.about))
    return _counted("", list(cases.values())), each


def percentile(ordered: Sequence[float], percent: int) -> float | None:
    """The smallest of these, in ascending order, that so many percent are not above."""
    return ordered[max(0, ceil(len(ordered) * percent / 100) - 1)] if ordered else None


@dataclass(slots=True)
class _Case:
    proposal: Proposed
    fulfilled: Decided | None = None
    rejected: Decided | None = None
    withdrawn: bool = False

    def take(self, decision: Decided) -> None:
        if decision.kind == Kind.MCP_REQUEST:
            if self.fulfilled is None and carries_out(self.proposal, decision):
                self.fulfilled = decision
        elif decision.kind == Kind.MCP_REJECT:
            self.rejected = self.rejected or decision
        elif decision.who == self.proposal.who:
            self.withdrawn = True

    @property
    def decided_s(self) -> float | None:
        decision = self.fulfilled or (None if self.withdrawn else self.rejected)
        return None if decision is None else (decision.at - self.proposal.at) / _SECOND_US


def _counted(about: str, cases: Sequence[_Case]) -> OfProposals:
    fulfilled = [case for case in cases if case.fulfilled is not None]
    others = [case for case in cases if case.fulfilled is None]
    withdrawn = sum(case.withdrawn for case in others)
    rejected = sum(case.rejected is not None and not case.withdrawn for case in others)
    times = sorted(seconds for case in cases if (seconds := case.decided_s) is not None)
    return OfProposals(
        about=about,
        proposed=len(cases),
        open=len(others) - withdrawn - rejected,
        fulfilled=len(fulfilled),
        edited=sum(not is_as_proposed(case.proposal, case.fulfilled) for case in fulfilled if case.fulfilled),
        rejected=rejected,
        withdrawn=withdrawn,
        decided_median_s=percentile(times, 50),
        decided_p90_s=percentile(times, 90),
    )
