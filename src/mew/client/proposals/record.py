"""PURE. One proposal and all that became of it (§10.2), as a value: a change makes a new record."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Final

from msgspec import UNSET

from mew.protocol.differences import differences, same
from mew.protocol.json import decode_json, encode_json
from mew.protocol.visible import literal, named, visible

from .decided import TIMEOUT, Fulfilment, ProposalStatus, Rejection, Response, Target, Withdrawal, names_in
from .digest import NotCanonical, digest
from .offer import Tool

__all__ = ["PROPOSED_TOKEN", "ProposalRecord", "tool_called"]

PROPOSED_TOKEN: Final = "mew"
"""Of the progress of what is proposed: always the same, so that the same operation has the same digest."""
_CALL_TOOL: Final = "tools/call"
_FIELDS_MAX: Final = 12
_NAMED_MAX: Final = 4
_CHANGES_MAX: Final = 6
_CHANGE_CHARS_MAX: Final = 80


@dataclass(frozen=True, kw_only=True)
class ProposalRecord:
    """What is known of a proposal. `tools` are those it may call, as last seen while it was open.

    `tools_proposed` are the same tools as they were when it was proposed, or first seen after that.
    """

    id: str
    proposer: str
    target: Target
    method: str
    params: dict[str, Any]
    created: datetime
    context: str | None = None
    expires_at: datetime | None = None
    preferred: tuple[str, ...] = ()
    exclusive: bool = False
    tools: tuple[Tool, ...] = ()
    tools_proposed: tuple[Tool, ...] = ()
    rejections: tuple[Rejection, ...] = ()
    fulfilment: Fulfilment | None = None
    also: tuple[Fulfilment, ...] = ()
    withdrawn: Withdrawal | None = None
    size: int = 0

    @property
    def status(self) -> ProposalStatus:
        """The first fulfilment decides; a withdrawal after it does not undo what was sent."""
        if self.fulfilment is not None:
            if self.fulfilment.response is None:
                return ProposalStatus.APPROVED
            return ProposalStatus.FAILED if self.fulfilment.response.failed else ProposalStatus.FULFILLED
        if self.withdrawn is None:
            return ProposalStatus.OPEN
        if self.withdrawn.reason == TIMEOUT:
            return ProposalStatus.TIMED_OUT
        return ProposalStatus.REJECTED if self.withdrawn.after_rejection else ProposalStatus.WITHDRAWN

    @property
    def is_open(self) -> bool:
        """Whether it waits for a decision: not withdrawn, and nobody sent the request. Rejections do not close it."""
        return self.fulfilment is None and self.withdrawn is None

    @property
    def is_settled(self) -> bool:
        """Whether nothing more is to be expected: withdrawn, or answered."""
        return self.withdrawn is not None or self.response is not None

    @property
    def response(self) -> Response | None:
        """The answer to the fulfilment that decided."""
        return None if self.fulfilment is None else self.fulfilment.response

    @property
    def fulfilments(self) -> tuple[Fulfilment, ...]:
        """All requests that named it: the one that decided, then the others."""
        return self.also if self.fulfilment is None else (self.fulfilment, *self.also)

    @property
    def tool_name(self) -> str | None:
        """The tool it would call, if it is a `tools/call`."""
        return tool_called(self.method, self.params)

    @property
    def arguments(self) -> dict[str, Any]:
        """What it would call the tool with."""
        arguments = self.params.get("arguments") if self.method == _CALL_TOOL else None
        return arguments if isinstance(arguments, dict) else {}

    @property
    def schema_changed(self) -> bool:
        """Whether a tool it may call has another schema than when it was proposed."""
        return self.differs_from({tool.participant: tool.input_schema for tool in self.tools})

    def differs_from(self, schemas: Mapping[str, Any]) -> bool:
        """Whether a schema, by participant, is not the one its tool had when this was proposed."""
        return any(
            tool.participant in schemas and not same(tool.input_schema, schemas[tool.participant])
            for tool in self.tools_proposed
        )

    @cached_property
    def digest(self) -> str | None:
        """SHA-256 over target, method, params and the tool's schema; None if they have no canonical form."""
        return self.digest_for(None)

    def digest_for(self, chosen: Target) -> str | None:
        """The digest a fulfilment must have to be what was proposed; a broadcast leaves open whom it is sent to."""
        target = self.target if chosen is None or self.target is not None else chosen
        schemas = [
            tool.input_schema for tool in self.tools_proposed if names_in(target) == (tool.participant,)
        ]
        try:
            return digest(target, self.method, self.params, schemas[0] if schemas else None)
        except NotCanonical:
            return None

    def preview(self) -> str:
        """A few lines, safe for a terminal, that say what it would do, and what is known of the tool."""
        return "\n".join(_preview(self))

    def as_dict(self) -> dict[str, Any]:
        """The record as JSON, with the field names of §10.2 and ours."""
        whole = {
            "proposalId": self.id,
            "proposer": self.proposer,
            "target": self.target,
            "method": self.method,
            "params": self.params,
            "status": self.status,
            "createdAt": self.created,
            "expiresAt": self.expires_at,
            "context": self.context,
            "digest": self.digest,
            "tool": self.tool_name,
            "tools": [_told(tool) for tool in self.tools],
            "schemaChanged": self.schema_changed,
            "preferred": self.preferred,
            "exclusive": self.exclusive,
            "rejections": self.rejections,
            "fulfilment": self.fulfilment,
            "also": self.also,
            "withdrawn": self.withdrawn,
        }
        plain: dict[str, Any] = decode_json(encode_json(whole))
        return plain


def tool_called(method: str, params: Mapping[str, Any]) -> str | None:
    """The tool that a request calls, if it calls one."""
    name = params.get("name") if method == _CALL_TOOL else None
    return name if isinstance(name, str) else None


def _told(tool: Tool) -> dict[str, Any]:
    return {
        "participant": tool.participant,
        "name": tool.name,
        "annotations": tool.annotations,
        "listed": tool.listed,
        "firstSeen": tool.first_seen,
        "changedAt": tool.changed_at,
        "changed": tool.changed_fields,
    }


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
