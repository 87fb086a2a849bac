"""PURE. A proposal as people decide about it: what it would do, all of it, and what became of it."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from difflib import unified_diff
from typing import Any, Final

from msgspec import UNSET
from rich.text import Text

from mew.cli.shown import colour_of
from mew.cli.tables import ID_CHARS, lasting
from mew.client.proposals.decided import ProposalStatus, Rejection, names_in
from mew.client.proposals.record import ProposalRecord
from mew.protocol.differences import Difference
from mew.protocol.json import encode_json
from mew.protocol.visible import cut, literal, named, visible

from .out import whole

__all__ = [
    "circumstances",
    "ended",
    "short",
    "shown_differences",
    "shown_in_full",
    "shown_line",
    "shown_open",
]

_PREVIEWED_CHARS: Final = 200  # of a value, in `ProposalRecord.preview`
_PREVIEWED_FIELDS: Final = 12
_WHOLE: Final = 1 << 30
_FULL_CHARS_MAX: Final = 20_000
_CALL_CHARS_MAX: Final = 120
_DIFFERENT_LINES_MAX: Final = 400
_ENDS: Final = {
    ProposalStatus.OPEN: ("open", ""),
    ProposalStatus.APPROVED: ("running", "yellow"),
    ProposalStatus.FULFILLED: ("done", "green"),
    ProposalStatus.FAILED: ("failed", "red"),
    ProposalStatus.REJECTED: ("rejected", "red"),
    ProposalStatus.WITHDRAWN: ("withdrawn", "dim"),
    ProposalStatus.TIMED_OUT: ("nobody took it up in time", "dim"),
}


def short(id: str) -> str:
    """The beginning of an id, enough to type."""
    return visible(id[:ID_CHARS])


def shown_open(record: ProposalRecord, now: datetime, hindrance: str = "") -> Text:
    """What waits for a decision: its id, since when, what it would do, and what is in the way of it."""
    head, *lines = record.preview().split("\n")
    shown = Text.assemble((short(record.id), "bold"), "  ", (head, "bold"), (f"  {_ago(record, now)}", "dim"))
    in_the_way = [f"  {hindrance}"] if hindrance else []
    for line in (*lines, *circumstances(record), *in_the_way):
        shown.append(f"\n{line}", "red" if line.lstrip().startswith("!") else "")
    return shown


def shown_line(record: ProposalRecord, now: datetime) -> Text:
    """One that was decided, in a line."""
    call = f"{visible(record.tool_name or record.method, 60)}{_called(record)}"
    return Text.assemble(
        (short(record.id), "dim"),
        "  ",
        (named(record.proposer), colour_of(record.proposer)),
        f"  {call}  ",
        ended(record),
        (f"  {_ago(record, now)}", "dim"),
    )


def ended(record: ProposalRecord) -> Text:
    """Where it stands, through whom and why."""
    word, style = _ENDS[record.status]
    match record.status:
        case ProposalStatus.APPROVED | ProposalStatus.FULFILLED | ProposalStatus.FAILED:
            assert record.fulfilment is not None
            by = f", approved by {named(record.fulfilment.by)}"
            edited = (
                f" with changes ({_paths(record.fulfilment.differences)})" if record.fulfilment.edited else ""
            )
            return Text.assemble((word, style), by, edited)
        case ProposalStatus.REJECTED | ProposalStatus.OPEN if record.rejections:
            return Text.assemble((f"{word}, " if record.is_open else "", style), _rejected(record.rejections))
        case ProposalStatus.WITHDRAWN if record.withdrawn is not None and record.withdrawn.reason:
            return Text(f"{word}: {visible(record.withdrawn.reason)}", style)
    return Text(word, style)


def shown_in_full(record: ProposalRecord, arguments: dict[str, Any]) -> Iterator[str]:
    """What a preview cuts or leaves out, line by line; what is too long even so, says so."""
    beside = {name: value for name, value in record.params.items() if name not in ("name", "arguments")}
    groups = (("", arguments), ("params.", beside)) if record.tool_name else (("", record.params),)
    for prefix, fields in groups:
        for place, (name, value) in enumerate(fields.items()):
            shown = literal(value, _WHOLE)
            if len(shown) > _PREVIEWED_CHARS:
                yield f"  {prefix}{named(name)}, all of it:"
                yield from _quoted(record, value)
            elif place >= _PREVIEWED_FIELDS:
                yield f"  {prefix}{named(name)}: {shown}"


def shown_differences(changes: Iterable[Difference]) -> Iterator[str]:
    """What is not as proposed, old above new; of texts of several lines, those lines that differ."""
    for change in changes:
        yield f"  {visible(change.path, 160)}"
        if isinstance(change.old, str) and isinstance(change.new, str) and "\n" in change.old + change.new:
            yield from _changed_lines(change.old, change.new)
            continue
        if change.old is not UNSET:
            yield f"    - {literal(change.old, _FULL_CHARS_MAX)}"
        if change.new is not UNSET:
            yield f"    + {literal(change.new, _FULL_CHARS_MAX)}"


def circumstances(record: ProposalRecord) -> Iterator[str]:
    """For whom it is to decide, and who said no."""
    if record.preferred:
        who = ", ".join(map(named, record.preferred))
        yield f"  for {who} to decide{', and nobody else' if record.exclusive else ' first'}"
    if record.rejections:
        yield f"  {_rejected(record.rejections)}"


def _quoted(record: ProposalRecord, value: Any) -> Iterator[str]:
    text = value if isinstance(value, str) else encode_json(value).decode()
    for line in whole(text[:_FULL_CHARS_MAX]).split("\n"):
        yield f"  | {line}"
    if len(text) > _FULL_CHARS_MAX:
        more = f"{len(text) - _FULL_CHARS_MAX:,} characters more"
        yield f"  ! and {more}: 'mew proposals {short(record.id)} --json' has all"


def _ago(record: ProposalRecord, now: datetime) -> str:
    since_s = (now - record.created).total_seconds()
    return f"{lasting(since_s)} ago" if since_s >= 1 else "just now"


def _changed_lines(old: str, new: str) -> Iterator[str]:
    compared = unified_diff(old.split("\n"), new.split("\n"), n=2, lineterm="")
    for line in list(compared)[2 : 2 + _DIFFERENT_LINES_MAX]:  # without the names of files
        yield f"    {whole(line)}"


def _called(record: ProposalRecord) -> str:
    arguments = cut(literal(record.arguments, _CALL_CHARS_MAX)[1:].removesuffix("}"), _CALL_CHARS_MAX)
    of = " or ".join(map(named, names_in(record.target)))
    return (f"({arguments})" if record.tool_name is not None else "") + (f" of {of}" if of else "")


def _rejected(rejections: Iterable[Rejection]) -> str:
    said = []
    for one in {rejection.by: rejection for rejection in rejections}.values():
        reason = f": {visible(one.reason)}" if one.reason else ""
        more = f" ({literal(one.explanations[-1].text)})" if one.explanations else ""
        said.append(f"rejected by {named(one.by)}{reason}{more}")
    return "; ".join(said)


def _paths(changes: Iterable[Difference]) -> str:
    return ", ".join(visible(change.path, 80) for change in changes)
