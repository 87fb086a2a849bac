"""PURE. One proposal and what became of it (§3.2, §3.3): the values, and the rules by which they change.

Everything that can be repeated has a bound in all and one for each participant, so that nobody drowns another's words.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import UNSET, Struct, UnsetType

from mew.protocol.capability import name_field
from mew.protocol.json import decode_json, encode_json
from mew.protocol.kinds import JsonRpcError
from mew.protocol.visible import cut

from .catalogue import Tool
from .differences import Difference, same
from .digest import NotCanonical, digest

__all__ = [
    "ENTRY_BYTES",
    "Explanation",
    "Fulfilment",
    "ProposalRecord",
    "ProposalStatus",
    "Rejection",
    "Response",
    "Target",
    "Withdrawal",
    "add_explanation",
    "add_fulfilment",
    "add_rejection",
    "add_response",
    "add_withdrawal",
    "names_in",
    "operand_of",
    "tool_called",
]

ENTRY_BYTES: Final = 512
"""About what a listed rejection, explanation or request takes beside its text."""
_CALL_TOOL: Final = "tools/call"
_LISTED_MAX: Final = 64
_LISTED_EACH_MAX: Final = 8
_UNRELATED_BYTES_MAX: Final = 64 * 1024

Target: TypeAlias = str | tuple[str, ...] | None
"""Who is to act: one participant, several, or None if nobody is named."""


def names_in(target: Target) -> tuple[str, ...]:
    """The participants a target names."""
    if target is None:
        return ()
    return (target,) if isinstance(target, str) else target


class ProposalStatus(StrEnum):
    """Where a proposal stands; the same six words in the API, the SDK, the command line, the page and the audit."""

    OPEN = "open"
    """A reviewer can still decide. Rejections are listed beside it: none of them closes it for others (§3.3.2)."""
    APPROVED = "approved"
    """Somebody sent the request, and no response came yet."""
    FULFILLED = "fulfilled"
    """The request was answered with a result."""
    FAILED = "failed"
    """The request was answered with a JSON-RPC error, or with a result that MCP marks as an error."""
    WITHDRAWN = "withdrawn"
    """Its proposer took it back before anybody approved it."""
    EXPIRED = "expired"
    """Its `expires_at` passed before anybody approved it."""


class _Entry(Struct, frozen=True, kw_only=True):
    id: str
    at: datetime


class Explanation(_Entry, frozen=True):
    """A chat in which a participant adds to its rejection (§3.3.3)."""

    text: str


class Rejection(_Entry, frozen=True):
    """One participant's no: `reason` is a code, of §3.3.3 or any other, `message` is in words; None if not given."""

    by: str
    reason: str | None = None
    message: str | None = None
    explanations: tuple[Explanation, ...] = ()

    @property
    def words(self) -> str | None:
        """What was said in words: the message, then what later chats added."""
        said = [self.message or "", *(explanation.text for explanation in self.explanations)]
        return "\n".join(filter(None, dict.fromkeys(said))) or None


class Response(_Entry, frozen=True):
    """The answer to a request: `result` or `error`. Abridged: it was too long to keep."""

    by: str
    result: Any = UNSET
    error: JsonRpcError | UnsetType = UNSET
    abridged: bool = False

    @property
    def failed(self) -> bool:
        """Whether it is a JSON-RPC error, or a result that MCP marks as one."""
        if self.error is not UNSET:
            return True
        return isinstance(self.result, dict) and self.result.get("isError") is True


class Fulfilment(_Entry, frozen=True):
    """A request that names a proposal (decision 001), compared with what was proposed.

    `digest` is of what was sent, with the tool's schema as last seen then; None if it has none. `via` is the surface it
    was approved on, as the sender says. `late`: the proposal had been withdrawn or had expired. Abridged: neither its
    params nor the values of its differences were kept, being too long.
    """

    by: str
    target: Target
    method: str
    params: dict[str, Any] | UnsetType
    digest: str | None
    edited: bool
    differences: tuple[Difference, ...] = ()
    schema_changed: bool = False
    via: str | None = None
    late: bool = False
    abridged: bool = False
    response: Response | None = None

    @property
    def is_as_proposed(self) -> bool:
        """Whether what ran is what was proposed, on a tool that was still the same."""
        return not self.edited and not self.schema_changed

    @property
    def succeeded(self) -> bool:
        return self.response is not None and not self.response.failed

    @property
    def ran(self) -> bool:
        """Whether it was carried out, well or not: a JSON-RPC error says that it was not."""
        return self.response is not None and self.response.error is UNSET


class Withdrawal(_Entry, frozen=True):
    """The proposer took it back. `after_rejection`: somebody had rejected it by then."""

    reason: str | None = None
    after_rejection: bool = False


@dataclass(frozen=True, kw_only=True)
class ProposalRecord:
    """What is known of a proposal. A change makes a new record.

    `why` and `expires_at` are the proposer's words. `fulfilments` are the requests that carry it out, in their order;
    `unrelated` are those that name it and ask for something else, which change nothing. `tools` are those it may call,
    as last seen while it was open, `tools_proposed` as they were when it was proposed, or first seen after that.
    """

    id: str
    proposer: str
    target: Target
    method: str
    params: dict[str, Any]
    created: datetime
    context: str | None = None
    why: str | None = None
    expires_at: datetime | None = None
    preferred: tuple[str, ...] = ()
    exclusive: bool = False
    tools: tuple[Tool, ...] = ()
    tools_proposed: tuple[Tool, ...] = ()
    rejections: tuple[Rejection, ...] = ()
    fulfilments: tuple[Fulfilment, ...] = ()
    unrelated: tuple[Fulfilment, ...] = ()
    withdrawn: Withdrawal | None = None
    size: int = 0

    def status(self, now: datetime) -> ProposalStatus:
        """Where it stands at that moment; what was sent is undone by neither a withdrawal nor the time."""
        sent = self.fulfilment
        if sent is not None:
            if sent.response is None:
                return ProposalStatus.APPROVED
            return ProposalStatus.FAILED if sent.response.failed else ProposalStatus.FULFILLED
        if self.withdrawn is not None:
            has_expired = self.has_expired(self.withdrawn.at)
            return ProposalStatus.EXPIRED if has_expired else ProposalStatus.WITHDRAWN
        return ProposalStatus.EXPIRED if self.has_expired(now) else ProposalStatus.OPEN

    def is_open(self, now: datetime) -> bool:
        """Whether a reviewer can still decide."""
        return self.status(now) is ProposalStatus.OPEN

    def has_expired(self, now: datetime) -> bool:
        """Whether its time is over, be it approved before or not."""
        return self.expires_at is not None and now >= self.expires_at

    @cached_property
    def fulfilment(self) -> Fulfilment | None:
        """The request that decides its status: the first that succeeded, else the first in time, else a late one.

        A late request decides nothing until it is answered with a result: then it did run, and the record must say so.
        """
        counting = [sent for sent in self.fulfilments if not sent.late]
        counting += [sent for sent in self.fulfilments if sent.late and sent.ran]
        succeeded = (sent for sent in self.fulfilments if sent.succeeded)
        return next(succeeded, counting[0] if counting else None)

    @property
    def is_settled(self) -> bool:
        """Whether nothing more is expected: withdrawn, or answered."""
        return self.withdrawn is not None or self.response is not None

    @property
    def response(self) -> Response | None:
        """The answer to the fulfilment that decides."""
        return None if self.fulfilment is None else self.fulfilment.response

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

    def is_fulfilled_by(self, target: Target, method: str, params: Mapping[str, Any]) -> bool:
        """Whether a request carries it out: the same method and tool, of participants that it names, if it names any.

        So nobody who may call some other tool, or their own, can answer in the place of the one that was meant.
        """
        meant, asked = set(names_in(self.target)), set(names_in(target))
        if meant and not (asked and asked <= meant):
            return False
        return method == self.method and same(operand_of(method, params), operand_of(method, self.params))

    @cached_property
    def digest(self) -> str | None:
        """SHA-256 over target, method, params and the tool's schema; None if they have no canonical form."""
        return self.digest_for(None)

    def digest_for(self, chosen: Target) -> str | None:
        """The digest of a fulfilment that is what was proposed; if it names no target, sent to the `chosen` one."""
        target = self.target if chosen is None or self.target is not None else chosen
        schemas = [
            tool.input_schema for tool in self.tools_proposed if names_in(target) == (tool.participant,)
        ]
        try:
            return digest(target, self.method, self.params, schemas[0] if schemas else None)
        except NotCanonical:
            return None

    def as_dict(self, now: datetime) -> dict[str, Any]:
        """The record as JSON, with its status at that moment."""
        whole = {
            "id": self.id,
            "proposer": self.proposer,
            "to": names_in(self.target),
            "method": self.method,
            "params": self.params,
            "status": self.status(now),
            "at": self.created,
            "why": self.why,
            "expires_at": self.expires_at,
            "context": self.context,
            "digest": self.digest,
            "tool": self.tool_name,
            "tools": [_tool_as_dict(tool) for tool in self.tools],
            "schema_changed": self.schema_changed,
            "preferred": self.preferred,
            "exclusive": self.exclusive,
            "rejections": self.rejections,
            "fulfilments": self.fulfilments,
            "unrelated": self.unrelated,
            "withdrawn": self.withdrawn,
        }
        plain: dict[str, Any] = decode_json(encode_json(whole))
        return plain


def tool_called(method: str, params: Mapping[str, Any]) -> str | None:
    """The tool that a request calls, if it calls one."""
    name = params.get("name") if method == _CALL_TOOL else None
    return name if isinstance(name, str) else None


def operand_of(method: str, params: Mapping[str, Any]) -> Any:
    """The tool, prompt or resource that a method is for; None if it is for none."""
    field = name_field(method)
    return None if field is None else params.get(field)


# The rules: each returns the record after the change, or None if nothing changes.


def add_rejection(record: ProposalRecord, rejection: Rejection) -> ProposalRecord | None:
    """List one more rejection. Others may still fulfil the proposal (§3.3.2)."""
    if not _has_room(record.rejections, rejection):
        return None
    size = ENTRY_BYTES + len(rejection.reason or "") + len(rejection.message or "")
    return replace(record, rejections=(*record.rejections, rejection), size=record.size + size)


def add_explanation(
    record: ProposalRecord, rejections: Collection[str], by: str, explanation: Explanation
) -> ProposalRecord | None:
    """Add what a participant says about its own rejection, if that is one of those named (§3.3.3)."""
    own = next((one for one in record.rejections if one.id in rejections and one.by == by), None)
    if own is None or len(own.explanations) >= _LISTED_EACH_MAX:
        return None
    if any(known.id == explanation.id for known in own.explanations):
        return None
    explained = msgspec.structs.replace(own, explanations=(*own.explanations, explanation))
    return replace(
        record,
        rejections=tuple(explained if one is own else one for one in record.rejections),
        size=record.size + ENTRY_BYTES + len(explanation.text),
    )


def add_withdrawal(record: ProposalRecord, by: str, withdrawal: Withdrawal) -> ProposalRecord | None:
    """Withdraw it, if it is its proposer who says so (§3.3.1) and nothing ended it before."""
    if record.proposer != by or record.is_settled:
        return None
    withdrawal = msgspec.structs.replace(withdrawal, after_rejection=bool(record.rejections))
    return replace(record, withdrawn=withdrawal)


def add_fulfilment(record: ProposalRecord, sent: Fulfilment, size: int) -> ProposalRecord | None:
    """List a request that names it: with the fulfilments if it carries the proposal out, else as unrelated."""
    params = {} if sent.params is UNSET else sent.params
    if not record.is_fulfilled_by(sent.target, sent.method, params):
        if not _has_room(record.unrelated, sent) or _is_listed(record.fulfilments, sent.id):
            return None
        if size > _UNRELATED_BYTES_MAX:
            sent, size = _abridged_request(sent), ENTRY_BYTES
        return replace(record, unrelated=(*record.unrelated, sent), size=record.size + size)
    if not _has_room(record.fulfilments, sent) or _is_listed(record.unrelated, sent.id):
        return None
    if record.fulfilments and size > _UNRELATED_BYTES_MAX:
        sent, size = _abridged_request(sent), ENTRY_BYTES
    late = record.withdrawn is not None or record.has_expired(sent.at)
    sent = msgspec.structs.replace(sent, late=late)
    return replace(record, fulfilments=(*record.fulfilments, sent), size=record.size + size)


def add_response(
    record: ProposalRecord, requests: Collection[str], response: Response, size: int
) -> ProposalRecord | None:
    """Add the answer to one of the requests named, by somebody it was addressed to (§3.1.2); the first counts."""
    for listed in ("fulfilments", "unrelated"):
        sents: tuple[Fulfilment, ...] = getattr(record, listed)
        sent = next((one for one in sents if one.id in requests and _may_answer(one, response.by)), None)
        if sent is None:
            continue
        if sent is not record.fulfilment and size > _UNRELATED_BYTES_MAX:
            response, size = _abridged_response(response), 2 * ENTRY_BYTES
        answered = msgspec.structs.replace(sent, response=response)
        changed = tuple(answered if one is sent else one for one in sents)
        if listed == "fulfilments":
            return replace(record, fulfilments=changed, size=record.size + size)
        return replace(record, unrelated=changed, size=record.size + size)
    return None


def _may_answer(sent: Fulfilment, participant: str) -> bool:
    return sent.response is None and (sent.target is None or participant in names_in(sent.target))


def _is_listed(entries: Sequence[Rejection | Fulfilment], id: str) -> bool:
    return any(entry.id == id for entry in entries)


def _has_room(entries: Sequence[Rejection | Fulfilment], entry: Rejection | Fulfilment) -> bool:
    """Whether one more may be listed, and is not listed already."""
    if len(entries) >= _LISTED_MAX or _is_listed(entries, entry.id):
        return False
    return sum(listed.by == entry.by for listed in entries) < _LISTED_EACH_MAX


def _abridged_request(sent: Fulfilment) -> Fulfilment:
    paths = tuple(Difference(difference.path) for difference in sent.differences)
    return msgspec.structs.replace(sent, params=UNSET, differences=paths, abridged=True)


def _abridged_response(given: Response) -> Response:
    """Keep whether it failed, if not with what."""
    if given.error is not UNSET:
        error = JsonRpcError(code=given.error.code, message=cut(given.error.message, ENTRY_BYTES))
        return msgspec.structs.replace(given, error=error, abridged=True)
    return msgspec.structs.replace(given, result={"isError": True} if given.failed else {}, abridged=True)


def _tool_as_dict(tool: Tool) -> dict[str, Any]:
    return {
        "participant": tool.participant,
        "name": tool.name,
        "annotations": tool.annotations,
        "listed": tool.listed,
        "first_seen": tool.first_seen,
        "changed_at": tool.changed_at,
        "changed": tool.changed_fields,
    }
