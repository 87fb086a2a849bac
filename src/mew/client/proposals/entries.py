"""PURE. How one envelope changes the record of one proposal: each function returns the record after it, or None.

Everything that can be repeated has a bound in all and one for each participant, so that none drowns another's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from mew.protocol.differences import Difference, differences
from mew.protocol.envelope import Envelope
from mew.protocol.errors import ProtocolError
from mew.protocol.kinds import Chat, JsonRpcError, McpProposal, McpRequest, McpResponse, Reason
from mew.protocol.visible import cut

from .catalogue import Catalogue
from .decided import Explanation, Fulfilment, Rejection, Response, Target, Withdrawal, names_in
from .digest import NotCanonical, digest
from .offer import Tool
from .record import ProposalRecord, tool_called

__all__ = ["explanation", "fulfilment", "offered", "proposed", "rejection", "response", "withdrawal"]

_OVERHEAD_BYTES: Final = 512
_VALUE_BYTES: Final = 32
_OBJECT_BYTES: Final = 200
_REASON_CHARS_MAX: Final = 1024
_TEXT_CHARS_MAX: Final = 4096
_LISTED_MAX: Final = 64
_LISTED_EACH_MAX: Final = 8
_TOOLS_MAX: Final = 16
_ALSO_BYTES_MAX: Final = 64 * 1024

_Name = Annotated[str, Meta(min_length=1, max_length=256)]


class _Targeting(Struct, frozen=True):
    preferred: Annotated[tuple[_Name, ...], Meta(max_length=64)] = ()
    exclusive: bool = False


class _Ours(Struct, frozen=True):
    """What our proposals may say beyond §3.2; `targeting` after decision 004, the end as in a grant."""

    targeting: _Targeting = _Targeting()
    expires_at: Annotated[datetime, Meta(tz=True)] | UnsetType = UNSET
    ttl_seconds: Annotated[float, Meta(ge=0, le=10 * 366 * 86_400)] | UnsetType = UNSET


def proposed(envelope: Envelope, at: datetime, catalogue: Catalogue) -> ProposalRecord:
    """The record of a new proposal.

    Raises:
        ProtocolError: its payload is no proposal.
    """
    asked = envelope.read(McpProposal)
    ours = _ours(envelope)
    expires_at = None if ours.expires_at is UNSET else ours.expires_at
    if expires_at is None and ours.ttl_seconds is not UNSET:
        expires_at = at + timedelta(seconds=ours.ttl_seconds)
    record = ProposalRecord(
        id=envelope.id,
        proposer=envelope.sender,
        target=_target(envelope.to),
        method=asked.method,
        params={} if asked.params is UNSET else asked.params,
        created=at,
        context=None if envelope.context is UNSET else envelope.context,
        expires_at=expires_at,
        preferred=ours.targeting.preferred,
        exclusive=ours.targeting.exclusive and bool(ours.targeting.preferred),
        size=_room_bytes(envelope),
    )
    return offered(record, catalogue)


def offered(record: ProposalRecord, catalogue: Catalogue) -> ProposalRecord:
    """The record with the tools it may call as they are now; those it did not know yet are as proposed with."""
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


def rejection(
    record: ProposalRecord, envelope: Envelope, said: Reason, at: datetime
) -> ProposalRecord | None:
    """With one rejection more. Others may still fulfil it (§3.3.2)."""
    if not _has_room(record.rejections, envelope):
        return None
    reason = _reason(said)
    listed = Rejection(id=envelope.id, at=at, by=envelope.sender, reason=reason)
    return replace(
        record,
        rejections=(*record.rejections, listed),
        size=record.size + _OVERHEAD_BYTES + len(reason or ""),
    )


def explanation(
    record: ProposalRecord, envelope: Envelope, said: Chat, at: datetime
) -> ProposalRecord | None:
    """With what somebody who rejected it adds to that (§3.3.3)."""
    named = (listed for listed in record.rejections if listed.id in envelope.correlation_id)
    own = next((listed for listed in named if listed.by == envelope.sender), None)
    if own is None or len(own.explanations) >= _LISTED_EACH_MAX:
        return None
    if any(known.id == envelope.id for known in own.explanations):
        return None
    text = cut(said.text, _TEXT_CHARS_MAX)
    more = Explanation(id=envelope.id, at=at, text=text)
    explained = msgspec.structs.replace(own, explanations=(*own.explanations, more))
    return replace(
        record,
        rejections=tuple(explained if listed is own else listed for listed in record.rejections),
        size=record.size + _OVERHEAD_BYTES + len(text),
    )


def withdrawal(
    record: ProposalRecord, envelope: Envelope, said: Reason, at: datetime
) -> ProposalRecord | None:
    """Withdrawn, if it is its proposer who says so (§3.3.1) and it came to nothing before."""
    if record.proposer != envelope.sender or record.is_settled:
        return None
    ended = Withdrawal(id=envelope.id, at=at, reason=_reason(said), after_rejection=bool(record.rejections))
    return replace(record, withdrawn=ended)


def fulfilment(
    record: ProposalRecord, envelope: Envelope, request: McpRequest, at: datetime, catalogue: Catalogue
) -> ProposalRecord | None:
    """With a request that names it (§3.2.1): the first that carries it out decides, any other is listed beside it.

    It carries it out if it asks the same of one that the proposal names, be it with other arguments. So nobody who may
    call some other tool, or his own, can answer in the place of the one that was meant.
    """
    sent = _sent(record, envelope, request, at, catalogue)
    size = _room_bytes(envelope) if sent.edited else _OVERHEAD_BYTES
    if record.is_open and not sent.unrelated:
        return replace(record, fulfilment=sent, size=record.size + size)
    if sent.id in {known.id for known in record.fulfilments} or not _has_room(record.also, envelope):
        return None
    if size > _ALSO_BYTES_MAX:
        where = tuple(Difference(difference.path) for difference in sent.differences)
        sent = msgspec.structs.replace(sent, params=UNSET, differences=where, abridged=True)
        size = _OVERHEAD_BYTES
    return replace(record, also=(*record.also, sent), size=record.size + size)


def response(
    record: ProposalRecord, envelope: Envelope, answer: McpResponse, at: datetime
) -> ProposalRecord | None:
    """With the answer to a fulfilment, by one it was addressed to (§3.1.2); the first answer counts."""
    if answer.result is UNSET and answer.error is UNSET:
        return None
    named = (sent for sent in record.fulfilments if sent.id in envelope.correlation_id)
    sent = next((sent for sent in named if _may_answer(sent, envelope.sender)), None)
    if sent is None:
        return None
    given = Response(id=envelope.id, at=at, by=envelope.sender, result=answer.result, error=answer.error)
    size = _room_bytes(envelope)
    if sent is not record.fulfilment and size > _ALSO_BYTES_MAX:
        given = _abridged(given)
        size = 2 * _OVERHEAD_BYTES
    answered = msgspec.structs.replace(sent, response=given)
    if sent is record.fulfilment:
        return replace(record, fulfilment=answered, size=record.size + size)
    others = tuple(answered if other is sent else other for other in record.also)
    return replace(record, also=others, size=record.size + size)


def _carries_out(record: ProposalRecord, target: Target, method: str, tool: str | None) -> bool:
    meant, asked = set(names_in(record.target)), set(names_in(target))
    is_meant = not meant or (bool(asked) and asked <= meant)
    return is_meant and (method, tool) == (record.method, record.tool_name)


def _room_bytes(envelope: Envelope) -> int:
    """About what a payload takes once it is read: `[[],[]]` some twenty times its length."""
    raw = bytes(envelope.payload)
    values = raw.count(b",") + raw.count(b"[")
    return _OVERHEAD_BYTES + len(raw) + _VALUE_BYTES * values + _OBJECT_BYTES * raw.count(b"{")


def _may_answer(sent: Fulfilment, participant: str) -> bool:
    return sent.response is None and (sent.target is None or participant in names_in(sent.target))


def _ours(envelope: Envelope) -> _Ours:
    try:
        return envelope.read(_Ours)
    except ProtocolError:
        return _Ours()


def _target(to: tuple[str, ...]) -> Target:
    names = tuple(dict.fromkeys(to))
    return names if len(names) > 1 else next(iter(names), None)


def _reason(said: Reason) -> str | None:
    return None if said.reason is UNSET else cut(said.reason, _REASON_CHARS_MAX)


def _has_room(listed: Sequence[Rejection | Fulfilment], envelope: Envelope) -> bool:
    """Whether one more may be listed, and is not listed already."""
    if len(listed) >= _LISTED_MAX or any(entry.id == envelope.id for entry in listed):
        return False
    return sum(entry.by == envelope.sender for entry in listed) < _LISTED_EACH_MAX


def _sent(
    record: ProposalRecord, envelope: Envelope, request: McpRequest, at: datetime, catalogue: Catalogue
) -> Fulfilment:
    """What the request sent, compared with what was proposed."""
    target = _target(envelope.to)
    params = {} if request.params is UNSET else request.params
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
        after_close=record.is_settled,
        unrelated=not _carries_out(record, target, request.method, tool),
    )


def _differences(
    record: ProposalRecord, target: Target, method: str, params: dict[str, Any]
) -> tuple[Difference, ...]:
    """A proposal to everybody leaves open who is to act: naming one is no change of it."""
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


def _abridged(given: Response) -> Response:
    """Whether it failed is kept, if not with what."""
    if given.error is not UNSET:
        error = JsonRpcError(code=given.error.code, message=cut(given.error.message, _OVERHEAD_BYTES))
        return msgspec.structs.replace(given, error=error, abridged=True)
    return msgspec.structs.replace(given, result={"isError": True} if given.failed else {}, abridged=True)
