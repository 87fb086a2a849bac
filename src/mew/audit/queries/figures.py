"""Gathers the statistics of a space from its record, its journal and the sizes of their files."""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from mew.audit.record.index import Index
from mew.journal.files.folder import space_folder
from mew.journal.port import JournalUnavailable
from mew.journal.reader import JournalReader
from mew.protocol.envelope import GATEWAY
from mew.protocol.kinds import Kind

from .proposals import records_of
from .search import first_and_last, first_since, proposal_facts, tally, tally_refused
from .statistics import Counted, OfGrants, Statistics, of_proposals

__all__ = ["statistics_of"]


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
    together, tools = of_proposals(records, now)
    return Statistics(
        space=journal.space,
        first=ends and ends[0],
        last=ends and ends[1],
        entries=max(0, journal.last - max(begin, 1) + 1),
        facts=sum(kinds.values()),
        kept_from=journal.begin.seq + 1,
        files=_sizes(journal.folder) | _sizes(space_folder(journal.folder, journal.space)),
        kinds=_counted(kinds, refused_kinds),
        participants=_counted(people, refused_people),
        refusals=dict(codes.most_common()),
        grants=_of_grants(index, begin),
        proposals=together,
        tools=tools,
    )


def _counted(all_of: Mapping[str, int], refused: Mapping[str, int]) -> list[Counted]:
    return [Counted(name, times - refused[name], refused[name]) for name, times in all_of.items()]


def _of_grants(index: Index, first: int) -> OfGrants:
    query = """
        SELECT kind, who = ? AS by_gateway, who = ? AND note = 'expired', count(*) FROM facts
        WHERE kind IN (?, ?, ?, ?) AND refusal = '' AND seq >= ? GROUP BY 1, 2, 3
    """
    kinds = (Kind.GRANT, Kind.REVOKE, Kind.INVITE, Kind.KICK)
    found = index.rows(query, (GATEWAY, GATEWAY, *kinds, first))
    times = {(kind, bool(by_gateway), bool(expired)): count for kind, by_gateway, expired, count in found}
    return OfGrants(
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
