"""A space in numbers, for people."""

import operator
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from mew.audit.queries.statistics import FactCounts, ProposalCounts, Statistics
from mew.cli.render.table import CALL, lasting, moment, name, put, table
from mew.protocol.visible import visible

__all__ = ["show_statistics"]

_ROWS_MAX: Final = 20
_COUNTS: Final = (
    "proposed",
    "open",
    "approved",
    "fulfilled",
    "failed",
    "withdrawn",
    "expired",
    "edited",
    "rejected",
)
_NAME_CHARS_MAX: Final = 60
_FILES: Final = {
    "journal.db": "journal of all spaces",
    "high-water": "journal of all spaces",
    "index.db": "its index",
    ".snapshot": "snapshots",
}
_UNITS: Final = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def show_statistics(numbers: Statistics, out: Console) -> None:
    """All of it; of long lists, the most frequent."""
    put(out, _summary(numbers))
    put(out)
    kinds = [(Text(visible(one.name, _NAME_CHARS_MAX)), one) for one in numbers.kinds]
    put(out, _counted(Column("kind", overflow="fold"), kinds, out))
    put(out)
    people = [(name(one.name), one) for one in numbers.participants]
    put(out, _counted(Column("who", no_wrap=True), people, out))
    if numbers.tools:
        put(out)
        put(out, _proposals(numbers.tools, out))


def _summary(numbers: Statistics) -> Table:
    grants = numbers.grants
    gone = "" if numbers.kept_from == 1 else f", kept from {numbers.kept_from:,} on"
    refusals = [f"{times:,} {visible(code, 40)}" for code, times in numbers.refusals.items()]
    lines = {
        "space": visible(numbers.space),
        "time": f"{moment(numbers.first)} to {moment(numbers.last)}" if numbers.first else "nothing happened",
        "entries": f"{numbers.entries:,}{gone}; {numbers.facts:,} facts (talk and connections have none)",
        "proposals": _statuses(numbers.proposals),
        "decisions": _decisions(numbers.proposals),
        "grants": f"{grants.given:,} given, {grants.revoked:,} revoked, {grants.taken_back:,} taken back,"
        f" {grants.expired:,} expired; {grants.invited:,} invited, {grants.kicked:,} kicked",
        "refusals": ", ".join(refusals[:_ROWS_MAX]) or "none",
        "files": ", ".join(f"{what} {_size(size)}" for what, size in _sizes(numbers.files).items()),
    }
    rows = Table.grid(padding=(0, 2, 0, 0))
    for label, line in lines.items():
        rows.add_row(Text(label, "dim"), Text(line))
    return rows


def _sizes(files: Mapping[str, int]) -> dict[str, int]:
    """By what they are for, each with what belongs to it."""
    sizes = Counter[str]()
    for file, size in files.items():
        sizes[next((what for part, what in _FILES.items() if part in file), "other")] += size
    return {what: sizes[what] for what in (*_FILES.values(), "other") if sizes[what]}


def _statuses(of: ProposalCounts) -> str:
    return (
        f"{of.proposed:,}: {of.open:,} open, {of.approved:,} approved, {of.fulfilled:,} fulfilled,"
        f" {of.failed:,} failed, {of.withdrawn:,} withdrawn, {of.expired:,} expired"
    )


def _decisions(of: ProposalCounts) -> str:
    counts = f"{of.edited:,} edited, {of.rejected:,} rejected by somebody"
    if of.decided_median_s is None or of.decided_p90_s is None:
        return counts
    median, p90 = lasting(of.decided_median_s), lasting(of.decided_p90_s)
    return f"{counts}; after {median} (median), 90 % within {p90}"


def _counted(first: Column, counted: Sequence[tuple[Text, FactCounts]], out: Console) -> Table:
    accepted, refused = (Column(count, justify="right", no_wrap=True) for count in ("accepted", "refused"))
    rows = table(out, first, accepted, refused)
    for label, one in counted[:_ROWS_MAX]:
        rows.add_row(label, f"{one.accepted:,}", Text(f"{one.refused:,}", "red" if one.refused else "dim"))
    return _and_more(rows, len(counted))


def _proposals(tools: Sequence[ProposalCounts], out: Console) -> Table:
    counts_of = operator.attrgetter(*_COUNTS)
    rows = table(
        out,
        Column("tool", overflow="fold"),
        *(Column(number, justify="right", no_wrap=True) for number in (*_COUNTS, "median", "90 %")),
    )
    for of in tools[:_ROWS_MAX]:
        times = of.decided_median_s, of.decided_p90_s
        rows.add_row(
            Text(visible(of.about.removeprefix(CALL), _NAME_CHARS_MAX)),
            *(f"{count:,}" for count in counts_of(of)),
            *("" if seconds is None else lasting(seconds) for seconds in times),
        )
    return _and_more(rows, len(tools))


def _and_more(rows: Table, of: int) -> Table:
    if of > _ROWS_MAX:
        rows.add_row(Text(f"and {of - _ROWS_MAX:,} more", "dim"))
    return rows


def _size(size: int) -> str:
    for unit_bytes, unit in _UNITS:
        if size >= unit_bytes:
            return f"{size / unit_bytes:.1f} {unit}"
    return f"{size:,} B"
