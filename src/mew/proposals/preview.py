"""PURE. A proposal in a few lines of text, safe for a terminal: what it would do, and what is known of the tool."""

from collections.abc import Iterator
from typing import Any, Final

from msgspec import UNSET

from mew.protocol.visible import literal, named, visible

from .catalogue import Tool
from .differences import differences
from .record import ProposalRecord, names_in

__all__ = ["PROPOSED_TOKEN", "preview"]

PROPOSED_TOKEN: Final = "mew"
"""The progress token of every proposal: always the same, so that the same operation has the same digest."""
_FIELDS_MAX: Final = 12
_NAMED_MAX: Final = 4
_CHANGES_MAX: Final = 6
_CHANGE_CHARS_MAX: Final = 80
_WHY_CHARS_MAX: Final = 400


def preview(record: ProposalRecord) -> str:
    """Describe what the proposal would do, and what is known of the tools it may call."""
    return "\n".join(_preview(record))


def _preview(record: ProposalRecord) -> Iterator[str]:
    what = record.tool_name
    whom = " and ".join(_some([named(name) for name in names_in(record.target)])) or "whoever takes it"
    yield f"{named(record.proposer)} proposes {named(record.method if what is None else what)} of {whom}"
    if what is None:
        yield from _fields("", _without_progress(record.params))
    else:
        yield from _fields("", record.arguments)
        yield from _fields("params.", _beside_the_call(record.params))
    if _asks_for_progress(record.params):
        yield "  (progress is wanted)"
    if record.why:
        yield f"  why, says {named(record.proposer)}: {literal(record.why, _WHY_CHARS_MAX)}"
    if what is not None and not record.tools:
        yield "  no listing of this tool was seen"
    yield from _some([f"  {named(tool.participant)} {'; '.join(_traits(tool))}" for tool in record.tools])
    for tool in record.tools[:_NAMED_MAX]:
        yield from _changes(tool)
    if record.schema_changed:
        yield "  ! the tool's schema changed after this was proposed"


def _some(texts: list[str]) -> list[str]:
    more = len(texts) - _NAMED_MAX
    return [*texts[:_NAMED_MAX], f"  … and {more} more"] if more > 0 else texts


def _beside_the_call(params: dict[str, Any]) -> dict[str, Any]:
    """What a call carries beside its name and arguments, or instead of them: nothing of it is hidden."""
    usual = {"name", "arguments"} if isinstance(params.get("arguments", {}), dict) else {"name"}
    return {name: value for name, value in _without_progress(params).items() if name not in usual}


def _asks_for_progress(params: dict[str, Any]) -> bool:
    """With a token that says nothing else."""
    return params.get("_meta") == {"progressToken": PROPOSED_TOKEN}


def _without_progress(params: dict[str, Any]) -> dict[str, Any]:
    """What is said in words instead."""
    if not _asks_for_progress(params):
        return params
    return {name: value for name, value in params.items() if name != "_meta"}


def _fields(prefix: str, fields: dict[str, Any]) -> Iterator[str]:
    for name in list(fields)[:_FIELDS_MAX]:
        yield f"  {prefix}{named(name)}: {literal(fields[name])}"
    if len(fields) > _FIELDS_MAX:
        yield f"  … and {len(fields) - _FIELDS_MAX} more"


def _traits(tool: Tool) -> Iterator[str]:
    """What the tool says of itself: its own word, above all where it says that it does no harm."""
    if not tool.listed:
        yield "no longer lists it"
    if tool.hint("readOnlyHint"):
        yield "says it is read-only (its own claim)"
    destructive = tool.hint("destructiveHint")
    if destructive is not None:
        yield "says it is destructive" if destructive else "says it is not destructive (its own claim)"
    elif not tool.hint("readOnlyHint"):
        yield "does not say whether it is destructive"


def _changes(tool: Tool) -> Iterator[str]:
    """In what it is not the tool that somebody learned to trust."""
    if tool.changed:
        parts = ", ".join(map(named, tool.changed_fields))
        since = f" ({visible(tool.pin.since)})" if tool.pin is not None and tool.pin.since else ""
        yield f"  ! {named(tool.name)} of {named(tool.participant)} changed since first seen{since}: {parts}"
    if tool.former is not None:
        was, now = _parts(tool.former), _parts(tool)
        for change in differences(was, now)[:_CHANGES_MAX]:
            path = visible(change.path.removeprefix("$."), _CHANGE_CHARS_MAX)
            yield f"    {path} was {_quoted(change.old)}, is {_quoted(change.new)}"


def _parts(tool: Tool) -> dict[str, Any]:
    said = {
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "outputSchema": tool.output_schema,
        "annotations": tool.annotations,
    }
    return {name: value for name, value in said.items() if value is not None}


def _quoted(value: Any) -> str:
    return "not there" if value is UNSET else literal(value, _CHANGE_CHARS_MAX)
