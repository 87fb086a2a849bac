"""PURE. What became of proposals, in numbers: how many were carried out, changed, rejected, and how long it took."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from math import ceil

from msgspec import Struct

from mew.proposals.record import ProposalRecord, ProposalStatus

__all__ = [
    "Counted",
    "OfGrants",
    "OfProposals",
    "Statistics",
    "of_proposals",
    "percentile",
]


class OfProposals(Struct, frozen=True, kw_only=True):
    """How many proposals stand where, by the statuses that `mew proposals` shows too; they add up to `proposed`.

    `edited`: of those approved, fulfilled or failed, with something else than was proposed. `rejected`: somebody said
    no to them, whatever became of them. The times are from a proposal to the request that carried it out, or else to
    the first rejection. A withdrawal is nobody's decision, and may be a timeout. None: nobody decided.
    """

    about: str
    proposed: int
    open: int
    approved: int
    fulfilled: int
    failed: int
    withdrawn: int
    expired: int
    edited: int
    rejected: int
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

    `kept_from`: the first entry that is still kept. `files`: bytes by name, those of all spaces too.
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
    records: Iterable[tuple[str, ProposalRecord]], now: datetime
) -> tuple[OfProposals, list[OfProposals]]:
    """Count all together, and by what was proposed, the most frequent first."""
    by_tool: dict[str, list[ProposalRecord]] = {}
    for about, record in records:
        by_tool.setdefault(about, []).append(record)
    each = [_counted(about, some, now) for about, some in by_tool.items()]
    each.sort(key=lambda one: (-one.proposed, one.about))
    return _counted("", [record for some in by_tool.values() for record in some], now), each


def percentile(ordered: Sequence[float], percent: int) -> float | None:
    """The smallest of these, in ascending order, that so many percent are not above."""
    return ordered[max(0, ceil(len(ordered) * percent / 100) - 1)] if ordered else None


def _decided_s(record: ProposalRecord) -> float | None:
    sent = record.fulfilment
    if sent is None and (record.withdrawn is not None or not record.rejections):
        return None
    decision = record.rejections[0] if sent is None else sent
    return (decision.at - record.created).total_seconds()


def _counted(about: str, records: Sequence[ProposalRecord], now: datetime) -> OfProposals:
    statuses = Counter(record.status(now) for record in records)
    times = sorted(seconds for record in records if (seconds := _decided_s(record)) is not None)
    return OfProposals(
        about=about,
        proposed=len(records),
        open=statuses[ProposalStatus.OPEN],
        approved=statuses[ProposalStatus.APPROVED],
        fulfilled=statuses[ProposalStatus.FULFILLED],
        failed=statuses[ProposalStatus.FAILED],
        withdrawn=statuses[ProposalStatus.WITHDRAWN],
        expired=statuses[ProposalStatus.EXPIRED],
        edited=sum(record.fulfilment is not None and record.fulfilment.edited for record in records),
        rejected=sum(bool(record.rejections) for record in records),
        decided_median_s=percentile(times, 50),
        decided_p90_s=percentile(times, 90),
    )
