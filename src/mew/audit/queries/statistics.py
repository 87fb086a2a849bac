"""Statistics of a space: proposals and their outcomes, grants, refusals, kinds, and sizes of files."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from math import ceil
from pathlib import Path

from msgspec import Struct

from mew.audit.record.index import Index
from mew.journal.files.folder import space_folder
from mew.journal.port import JournalUnavailable
from mew.journal.reader import JournalReader
from mew.proposals.record import ProposalRecord, ProposalStatus
from mew.protocol.envelope import GATEWAY
from mew.protocol.kinds import Kind

from .proposals import records_of
from .search import first_and_last, first_since, proposal_facts, tally, tally_refused

__all__ = [
    "FactCounts",
    "GrantCounts",
    "ProposalCounts",
    "Statistics",
    "percentile",
    "proposal_counts",
    "statistics_of",
]


class ProposalCounts(Struct, frozen=True, kw_only=True):
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


class FactCounts(Struct, frozen=True):
    """So many facts with a kind, or of a participant."""

    name: str
    accepted: int
    refused: int


class GrantCounts(Struct, frozen=True, kw_only=True):
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
    kinds: list[FactCounts]
    participants: list[FactCounts]
    refusals: dict[str, int]
    grants: GrantCounts
    proposals: ProposalCounts
    tools: list[ProposalCounts]


def proposal_counts(
    records: Iterable[tuple[str, ProposalRecord]], now: datetime
) -> tuple[ProposalCounts, list[ProposalCounts]]:
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


def _counted(about: str, records: Sequence[ProposalRecord], now: datetime) -> ProposalCounts:
    statuses = Counter(record.status(now) for record in records)
    times = sorted(seconds for record in records if (seconds := _decided_s(record)) is not None)
    return ProposalCounts(
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


def statistics_of(
    journal: JournalReader, index: Index, now: datetime, since: datetime | None = None
) -> Statistics:
    """What happened since then, in numbers. Two seconds for a million entries.

    Raises:
        JournalUnavailable: the system says no.
        Damaged: the journal does not say where it begins.
    """
    begin = first_since(index, since)
    ends = first_and_last(index, begin)
    kinds, people = tally(index, "kind", begin), tally(index, "who", begin)
    refused_kinds, refused_people, codes = Counter[str](), Counter[str](), Counter[str]()
    for kind, who, refusal, times in tally_refused(index, begin):
        refused_kinds[kind] += times
        refused_people[who] += times
        codes[refusal] += times
    records = [(fact.about, record) for fact, record in records_of(proposal_facts(index, begin))]
    together, tools = proposal_counts(records, now)
    return Statistics(
        space=journal.space,
        first=ends and ends[0],
        last=ends and ends[1],
        entries=max(0, journal.last - max(begin, 1) + 1),
        facts=sum(kinds.values()),
        kept_from=journal.begin.seq + 1,
        files=_sizes(journal.folder) | _sizes(space_folder(journal.folder, journal.space)),
        kinds=_tallied(kinds, refused_kinds),
        participants=_tallied(people, refused_people),
        refusals=dict(codes.most_common()),
        grants=_of_grants(index, begin),
        proposals=together,
        tools=tools,
    )


def _tallied(all_of: Mapping[str, int], refused: Mapping[str, int]) -> list[FactCounts]:
    return [FactCounts(name, times - refused[name], refused[name]) for name, times in all_of.items()]


def _of_grants(index: Index, first: int) -> GrantCounts:
    query = """
        SELECT kind, who = ? AS by_gateway, who = ? AND note = 'expired', count(*) FROM facts
        WHERE kind IN (?, ?, ?, ?) AND refusal = '' AND seq >= ? GROUP BY 1, 2, 3
    """
    kinds = (Kind.GRANT, Kind.REVOKE, Kind.INVITE, Kind.KICK)
    found = index.rows(query, (GATEWAY, GATEWAY, *kinds, first))
    times = {(kind, bool(by_gateway), bool(expired)): count for kind, by_gateway, expired, count in found}
    return GrantCounts(
        given=times.get((Kind.GRANT, False, False), 0),
        revoked=times.get((Kind.REVOKE, False, False), 0),
        taken_back=times.get((Kind.REVOKE, True, False), 0),
        expired=times.get((Kind.REVOKE, True, True), 0),
        invited=times.get((Kind.INVITE, False, False), 0),
        kicked=times.get((Kind.KICK, False, False), 0),
    )


def _sizes(folder: Path) -> dict[str, int]:
    try:
        files = [path for path in folder.iterdir() if path.is_file()]
        return {path.name: path.stat().st_size for path in sorted(files) if not path.name.startswith(".")}
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise JournalUnavailable(f"{folder}: {error.strerror}") from error
