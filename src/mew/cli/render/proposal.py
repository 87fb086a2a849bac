"""PURE. A proposal as people decide about it: what it would do, all of it, and what became of it."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from difflib import unified_diff
from typing import Any, Final

from msgspec import UNSET
from rich.text import Text

from mew.proposals.differences import Difference
from mew.proposals.preview import preview
from mew.proposals.record import ProposalRecord, ProposalStatus, Rejection, names_in
from mew.protocol.json import encode_json
from mew.protocol.visible import cut, literal, named, visible

from .envelope import colour_of
from .escape import escape_lines
from .ids import short
from .table import lasting

__all__ = [
    "circumstances",
    "ended",
    "shown_differences",
    "shown_in_full",
    "shown_line",
    "shown_open",
]

_PREVIEWED_CHARS: Final = 200  # of a value, in a preview
_PREVIEWED_FIELDS: Final = 12
_WHOLE: Final = 1 << 30
_FULL_CHARS_MAX: Final = 20_000
_CALL_CHARS_MAX: Final = 120
_DIFFERENT_LINES_MAX: Final = 400
_STYLES: Final = {
    ProposalStatus.OPEN: "",
    ProposalStatus.APPROVED: "yellow",
    ProposalStatus.FULFILLED: "green",
    ProposalStatus.FAILED: "red",
    ProposalStatus.WITHDRAWN: "dim",
    ProposalStatus.EXPIRED: "dim",
}


def shown_open(record: ProposalRecord, now: datetime, hindrance: str = "") -> Text:
    """What waits for a decision: its id, since when, what it would do, and what is in the way of it."""
    head, *lines = preview(record).split("\n")
    shown = Text.assemble((short(record.id), "bold"), "  ", (head, "bold"), (f"  {_ago(record, now)}", "dim"))
    in_the_way = [f"  {hindrance}"] if hindrance else []
    for line in (*lines, *circumstances(record, now), *in_the_way):
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
        ended(record, now),
        (f"  {_ago(record, now)}", "dim"),
    )


def ended(record: ProposalRecord, now: datetime) -> Text:
    """Where it stands, through whom and why."""
    status = record.status(now)
    said = Text(status.value, _STYLES[status])
    sent = record.fulfilment
    if sent is not None:
        by = (
            f" by {named(sent.by)}"
            if status is ProposalStatus.APPROVED
            else f", approved by {named(sent.by)}"
        )
        said.append(by + (f" ({visible(sent.via, 20)})" if sent.via else ""))
        if sent.edited:
            said.append(f" with changes ({_paths(sent.differences)})")
        if sent.late:
            said.append(", too late")
    elif status is ProposalStatus.WITHDRAWN and record.withdrawn is not None and record.withdrawn.reason:
        said.append(f": {visible(record.withdrawn.reason)}")
    if record.rejections:
        said.append(f", {_rejected(record.rejections)}")
    return said


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


def circumstances(record: ProposalRecord, now: datetime) -> Iterator[str]:
    """Until when it can be approved, by whom, and who said no."""
    if record.expires_at is not None:
        left_s = (record.expires_at - now).total_seconds()
        yield f"  expires in {lasting(left_s)}" if left_s > 0 else "  has expired"
    if record.preferred:
        who = ", ".join(map(named, record.preferred))
        yield f"  for {who} to decide{', and nobody else' if record.exclusive else ' first'}"
    if record.rejections:
        yield f"  {_rejected(record.rejections)}"


def _quoted(record: ProposalRecord, value: Any) -> Iterator[str]:
    text = value if isinstance(value, str) else encode_json(value).decode()
    for line in escape_lines(text[:_FULL_CHARS_MAX]).split("\n"):
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
        yield f"    {escape_lines(line)}"


def _called(record: ProposalRecord) -> str:
    arguments = cut(literal(record.arguments, _CALL_CHARS_MAX)[1:].removesuffix("}"), _CALL_CHARS_MAX)
    of = " or ".join(map(named, names_in(record.target)))
    return (f"({arguments})" if record.tool_name is not None else "") + (f" of {of}" if of else "")


def _rejected(rejections: Iterable[Rejection]) -> str:
    said = []
    for one in {rejection.by: rejection for rejection in rejections}.values():
        reason = f": {visible(one.reason)}" if one.reason else ""
        more = f" ({literal(one.words)})" if one.words else ""
        said.append(f"rejected by {named(one.by)}{reason}{more}")
    return "; ".join(said)


def _paths(changes: Iterable[Difference]) -> str:
    return ", ".join(visible(change.path, 80) for change in changes)
