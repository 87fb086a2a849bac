"""PURE. What an envelope says of a proposal: the proposal itself, a rejection, a withdrawal, a request, a response.

Read tolerantly where nobody acts on it: a reason, a deadline or a targeting of the wrong type counts as not given.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct

from mew.protocol.envelope import Envelope
from mew.protocol.errors import ProtocolError
from mew.protocol.kinds import Chat, McpResponse
from mew.protocol.visible import cut

from .catalogue import Catalogue, Tool
from .differences import Difference, differences
from .digest import NotCanonical, digest
from .record import (
    ENTRY_BYTES,
    Explanation,
    Fulfilment,
    ProposalRecord,
    Rejection,
    Response,
    Target,
    Withdrawal,
    names_in,
    tool_called,
)

__all__ = [
    "TEXT_CHARS_MAX",
    "AskedRequest",
    "read_explanation",
    "read_proposal",
    "read_rejection",
    "read_request",
    "read_response",
    "read_withdrawal",
    "room_bytes",
    "with_tools",
]

TEXT_CHARS_MAX: Final = 4096
"""Of a `why`, of the message of a rejection, and of a chat that explains one."""
_VALUE_BYTES: Final = 32
_OBJECT_BYTES: Final = 200
_REASON_CHARS_MAX: Final = 1024
_VIA_CHARS_MAX: Final = 64
_TOOLS_MAX: Final = 16
_NOTIFICATION: Final = "notifications/"

_Name = Annotated[str, Meta(min_length=1, max_length=256)]
_Moment = Annotated[datetime, Meta(tz=True)]
_Shape = TypeVar("_Shape")


class _Proposed(Struct, frozen=True):
    """As `McpProposal`, but for what does not decide what is asked for."""

    method: str
    params: dict[str, Any] = {}
    why: Any = None
    expires_at: Any = None
    targeting: Any = None


class _Targeting(Struct, frozen=True):
    """After decision 004."""

    preferred: Annotated[tuple[_Name, ...], Meta(max_length=64)] = ()
    exclusive: bool = False


class _Words(Struct, frozen=True):
    reason: Any = None
    message: Any = None


class AskedRequest(Struct, frozen=True):
    """As `McpRequest`, but for what does not decide what is asked for."""

    method: str
    jsonrpc: Literal["2.0"] = "2.0"
    params: dict[str, Any] = {}
    via: Any = None


def read_proposal(envelope: Envelope, at: datetime, catalogue: Catalogue) -> ProposalRecord:
    """Return the record of a new proposal.

    Raises:
        ProtocolError: its payload is no proposal.
    """
    asked = envelope.read(_Proposed)
    targeting = _converted(asked.targeting, _Targeting) or _Targeting()
    record = ProposalRecord(
        id=envelope.id,
        proposer=envelope.sender,
        target=_target(envelope.to),
        method=asked.method,
        params=asked.params,
        created=at,
        context=None if envelope.context is UNSET else envelope.context,
        why=_text(asked.why, TEXT_CHARS_MAX),
        expires_at=_converted(asked.expires_at, _Moment),
        preferred=targeting.preferred,
        exclusive=targeting.exclusive and bool(targeting.preferred),
        size=room_bytes(envelope),
    )
    return with_tools(record, catalogue)


def with_tools(record: ProposalRecord, catalogue: Catalogue) -> ProposalRecord:
    """Return the record with the tools it may call as they are now; those not known before are as proposed with."""
    if record.tool_name is None:
        return record
    if record.target is None:
        tools: Sequence[Tool] = catalogue.offering(record.tool_name)
    else:
        known = (catalogue.tool(name, record.tool_name) for name in names_in(record.target))
        tools = [tool for tool in known if tool is not None]
    then = {tool.participant: tool for tool in record.tools_proposed}
    new = [tool for tool in tools if tool.participant not in then]
    return replace(
        record,
        tools=tuple(tools[:_TOOLS_MAX]),
        tools_proposed=(*record.tools_proposed, *new)[:_TOOLS_MAX],
    )


def read_rejection(envelope: Envelope, at: datetime) -> Rejection:
    """Return the rejection, with its reason and its words."""
    said = envelope.read(_Words)
    return Rejection(
        id=envelope.id,
        at=at,
        by=envelope.sender,
        reason=_text(said.reason, _REASON_CHARS_MAX),
        message=_text(said.message, TEXT_CHARS_MAX),
    )


def read_explanation(envelope: Envelope, at: datetime) -> Explanation:
    """Return what a chat adds to a rejection."""
    return Explanation(id=envelope.id, at=at, text=cut(envelope.read(Chat).text, TEXT_CHARS_MAX))


def read_withdrawal(envelope: Envelope, at: datetime) -> Withdrawal:
    reason = _text(envelope.read(_Words).reason, _REASON_CHARS_MAX)
    return Withdrawal(id=envelope.id, at=at, reason=reason)


def read_request(
    envelope: Envelope, request: AskedRequest, record: ProposalRecord, at: datetime, catalogue: Catalogue
) -> Fulfilment | None:
    """Return the request compared with what was proposed; None for a notification, which carries nothing out."""
    if request.method.startswith(_NOTIFICATION) and request.method != record.method:
        return None
    target = _target(envelope.to)
    params = request.params
    changes = _differences(record, target, request.method, params)
    tool = tool_called(request.method, params)
    seen = [catalogue.tool(name, tool) for name in names_in(target)] if tool is not None else []
    schemas = {known.participant: known.input_schema for known in seen if known is not None}
    return Fulfilment(
        id=envelope.id,
        at=at,
        by=envelope.sender,
        target=target,
        method=request.method,
        params=params if changes else record.params,
        digest=_digest(target, request.method, params, schemas),
        edited=bool(changes),
        differences=changes,
        schema_changed=tool == record.tool_name and record.differs_from(schemas),
        via=_text(request.via, _VIA_CHARS_MAX),
    )


def read_response(envelope: Envelope, at: datetime) -> Response | None:
    """Return the answer; None if it says nothing."""
    answer = envelope.read(McpResponse)
    if answer.result is UNSET and answer.error is UNSET:
        return None
    return Response(id=envelope.id, at=at, by=envelope.sender, result=answer.result, error=answer.error)


def room_bytes(envelope: Envelope) -> int:
    """About what a payload takes in memory: `[[],[]]` some twenty times its length."""
    raw = bytes(envelope.payload)
    values = raw.count(b",") + raw.count(b"[")
    return ENTRY_BYTES + len(raw) + _VALUE_BYTES * values + _OBJECT_BYTES * raw.count(b"{")


def _text(said: Any, chars_max: int) -> str | None:
    return cut(said, chars_max) if isinstance(said, str) and said else None


def _converted(said: Any, shape: type[_Shape]) -> _Shape | None:
    try:
        return None if said is None else msgspec.convert(said, shape)
    except (msgspec.ValidationError, ProtocolError):
        return None


def _target(to: tuple[str, ...]) -> Target:
    names = tuple(dict.fromkeys(to))
    return names if len(names) > 1 else next(iter(names), None)


def _differences(
    record: ProposalRecord, target: Target, method: str, params: dict[str, Any]
) -> tuple[Difference, ...]:
    """A proposal that names nobody leaves open who is to act: naming somebody is no change of it."""
    changes = differences(
        {"method": record.method, "params": record.params}, {"method": method, "params": params}
    )
    if record.target is not None and set(names_in(record.target)) != set(names_in(target)):
        return (Difference("$.target", record.target, target), *changes)
    return changes


def _digest(target: Target, method: str, params: dict[str, Any], schemas: Mapping[str, Any]) -> str | None:
    try:
        return digest(target, method, params, schemas.get(target) if isinstance(target, str) else None)
    except NotCanonical:
        return None
