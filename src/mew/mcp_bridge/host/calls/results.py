"""PURE. How each end of a call becomes an MCP result: the result and its origin, or why there is none.

A tool that gives no result gives one that says so (`isError`), for a model to read, with a stable code in
`_meta["mew/why"]`. Where there are no such results, as for a resource, it is a JSON-RPC error with the same in `data`.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeAlias

from msgspec import UNSET

from mew.client.errors import Absent, Disconnected, MewError, Refused, RpcError, StreamBroken, Unanswered
from mew.client.proposals.outcomes import Fulfilled, Outcome, Rejected, TimedOut, Withdrawn
from mew.mcp_bridge.host.offers.offers import ORIGIN, OfferOrigin
from mew.mcp_bridge.marks import unmarked_fields
from mew.proposals.differences import Difference
from mew.protocol.kinds import JsonRpcError
from mew.protocol.visible import literal, named, visible

__all__ = [
    "WHY",
    "CallEnd",
    "DeniedByPolicy",
    "HostOperation",
    "NoResultCode",
    "completed",
    "failed",
    "joined",
    "pending",
    "told",
]

WHY: Final = "mew/why"
JOINED: Final = "mew/joined"
_JOINED: Final = "[This call was made before and ran once: this is what became of that one.]"
_APPROVAL: Final = "mew/approval"
_EDITED: Final = "mew/edited"

_UNAVAILABLE: Final = -32000
_INVALID_PARAMS: Final = -32602
_CHANGES_MAX: Final = 8
_TEXT_CHARS_MAX: Final = 2_000
_ARGUMENTS: Final = "$.params.arguments."


CallEnd: TypeAlias = dict[str, Any] | Outcome | MewError
"""A result, what became of a proposal, or what went wrong."""


class NoResultCode(StrEnum):
    """Why there is no result. Codes never change; a bridge has more, such as `server_died`, which pass as they are."""

    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"
    TIMED_OUT = "timed_out"
    """Nobody decided in time: nobody's no."""
    UNANSWERED = "approved_unanswered"
    """It was approved, and no answer came: it may have been carried out."""
    PENDING = "pending"
    TIMEOUT = "timeout"
    """It was asked for, and no answer came in time."""
    ABSENT = "absent"
    NO_SUCH_TOOL = "no_such_tool"
    SCHEMA_MISMATCH = "schema_mismatch"
    REFUSED = "refused"
    DENIED = "denied"
    """By the policy of a wrapped server."""
    DISCONNECTED = "disconnected"
    BROKEN = "broken"
    FAILED = "failed"
    """The participant's own JSON-RPC error."""
    LOST = "lost"
    """What was asked before a restart, and is not to be found."""


_OURS: Final = frozenset(NoResultCode)


class DeniedByPolicy(MewError):
    """The policy of a wrapped server says no; the text says which rule."""


@dataclass(frozen=True)
class HostOperation:
    """What a host asked for. `is_listed`: whether the participant lists it; None where it has not said."""

    method: str
    name: str
    origin: OfferOrigin
    is_listed: bool | None = None
    is_structured: bool = False
    """Whether a result that is no error must have `structuredContent`, as the tool says."""

    @property
    def is_tool(self) -> bool:
        return self.method == "tools/call"


def told(operation: HostOperation, end: CallEnd) -> dict[str, Any]:
    """What the host is told of the end of a call.

    Raises:
        RpcError: a JSON-RPC error is what it is told.
    """
    if isinstance(end, dict):
        return completed(operation.origin, end)
    return failed(operation, end) if isinstance(end, MewError) else _ended(operation, end)


def completed(origin: OfferOrigin, result: dict[str, Any], **marks: Any) -> dict[str, Any]:
    """A result with our marks alone, and its origin among them. Whatever a participant calls it, it is one."""
    meta = result.get("_meta")
    theirs = unmarked_fields(meta) if isinstance(meta, dict) else {}
    told = {name: value for name, value in result.items() if name != "resultType"}
    return told | {"_meta": {**theirs, ORIGIN: origin.mark(), **marks}}


def _approved(operation: HostOperation, result: dict[str, Any], outcome: Fulfilled) -> dict[str, Any]:
    """A result that somebody approved: who, and what they changed."""
    marks: dict[str, Any] = {_APPROVAL: {"by": outcome.by, "via": outcome.via, "request": outcome.request_id}}
    if outcome.edited:
        marks[_EDITED] = {"by": outcome.by, "changes": [_change(one) for one in outcome.differences]}
        if operation.is_tool and isinstance(result.get("content"), list):
            result = {**result, "content": [*result["content"], _text(_edits(outcome))]}
    return completed(operation.origin, result, **marks)


def _ended(operation: HostOperation, outcome: Outcome) -> dict[str, Any]:
    """What became of a proposal.

    Raises:
        RpcError: there is no result, and no form of one that says so.
    """
    match outcome:
        case Fulfilled(error=None, result=dict(result)):
            return _approved(operation, result, outcome)
        case Fulfilled(error=JsonRpcError() as error):
            data = None if error.data is UNSET else error.data
            return failed(operation, RpcError(error.code, error.message, data), outcome)
        case Fulfilled():
            return failed(
                operation, RpcError(_UNAVAILABLE, f"{named(outcome.response_by)} gave no result of MCP")
            )
        case Rejected():
            return _without(
                operation,
                NoResultCode.REJECTED,
                _rejection(outcome),
                by=outcome.by,
                reason=outcome.reason,
                message=outcome.message,
            )
        case Withdrawn(reason=reason):
            text = "The proposal of this call was withdrawn" + (f": {visible(reason)}." if reason else ".")
            return _without(
                operation, NoResultCode.WITHDRAWN, f"{text} It was not carried out.", reason=reason
            )
        case TimedOut(approved_by=str(by)):
            text = (
                f"{named(by)} approved this call, but no answer came in time. It may have been carried out."
            )
            return _without(operation, NoResultCode.UNANSWERED, text, by=by)
        case TimedOut():
            text = "Nobody decided on this call in time, which is not a no. It was withdrawn and not carried out."
            return _without(operation, NoResultCode.TIMED_OUT, text)


def failed(operation: HostOperation, error: MewError, approved: Fulfilled | None = None) -> dict[str, Any]:
    """What went wrong on the way, or was answered with an error. A server's own JSON-RPC error stays one.

    Raises:
        RpcError: there is no form of a result that says so.
    """
    whose = named(operation.origin.participant)
    match error:
        case RpcError():
            return _rpc_error(operation, error, approved)
        case Absent():
            return _without(
                operation, NoResultCode.ABSENT, f"{whose} is not in the space now. Nothing was done."
            )
        case Unanswered():
            text = f"{whose} did not answer in time: {error}. It may have been carried out."
            return _without(operation, NoResultCode.TIMEOUT, text)
        case DeniedByPolicy():
            text = f"This call is not allowed: {error}. Nothing was done; do not try it again."
            return _without(operation, NoResultCode.DENIED, text)
        case Refused(why=why):
            text = f"The gateway refused this call: {error}. Nothing was done."
            return _without(operation, NoResultCode.REFUSED, text, reason=str(why))
        case StreamBroken():
            text = f"{whose} answered, but the result was lost on its way: {error}. It has been carried out."
            return _without(operation, NoResultCode.BROKEN, text)
        case Disconnected():
            text = f"The connection to the space ended: {error}. It may have been carried out."
            return _without(operation, NoResultCode.DISCONNECTED, text)
        case _:
            return _without(operation, NoResultCode.FAILED, f"This call failed: {error}.")


def pending(operation: HostOperation, stage: str, handle: str, *, ask_again: bool) -> dict[str, Any]:
    """It waits still, and how to hear of its end; `ask_again`: with the tool that is there for it.

    Raises:
        RpcError: there is no form of a result that says so.
    """
    how = f' Ask for its outcome with mew_outcome(handle="{handle}").' if ask_again else ""
    text = (
        f"No result yet: {stage}. The call stays proposed in the space under the handle {handle}.{how}"
        " The same call, made again meanwhile, is this one and does not run twice."
    )
    waits = _without(operation, NoResultCode.PENDING, text, handle=handle)
    return waits if operation.is_structured else {**waits, "isError": False}


def joined(result: dict[str, Any], handle: str | None) -> dict[str, Any]:
    """The result of a call that was made before, as the answer to the same call made again."""
    content = result.get("content")
    told = {"content": [*content, _text(_JOINED)]} if isinstance(content, list) else {}
    meta = result.get("_meta")
    return {**result, **told, "_meta": {**(meta if isinstance(meta, dict) else {}), JOINED: handle or True}}


def _rpc_error(operation: HostOperation, error: RpcError, approved: Fulfilled | None) -> dict[str, Any]:
    why = _reported(error.data) or _why(operation, error)
    if why == NoResultCode.NO_SUCH_TOOL or _reported(error.data) is None or not operation.is_tool:
        data = error.data if isinstance(error.data, dict) else {} if error.data is None else None
        marked = (
            error.data
            if data is None
            else {**unmarked_fields(data), WHY: why, ORIGIN: operation.origin.mark()}
        )
        raise RpcError(error.code, error.message, marked)
    by = None if approved is None else approved.by
    text = f"{named(operation.origin.participant)} could not carry this out: {visible(error.message, _TEXT_CHARS_MAX)}"
    return _without(operation, why, text, by=by)


def _why(operation: HostOperation, error: RpcError) -> NoResultCode:
    """MCP has one code for a tool that does not exist and for arguments that do not fit."""
    if error.code != _INVALID_PARAMS or not operation.is_tool:
        return NoResultCode.FAILED
    return NoResultCode.NO_SUCH_TOOL if operation.is_listed is False else NoResultCode.SCHEMA_MISMATCH


def _reported(data: Any) -> str | None:
    """What a bridge says of its server; what became of a call in the space, only we say."""
    match data:
        case {"mew": {"why": str(why)}} if why not in _OURS:
            return why
        case _:
            return None


def _without(operation: HostOperation, why: str, text: str, **more: str | None) -> dict[str, Any]:
    """No result. Codes for machines, a sentence for whoever reads it."""
    marks: dict[str, Any] = {WHY: why, ORIGIN: operation.origin.mark()}
    marks |= {f"mew/{name}": value for name, value in more.items() if value is not None}
    if not operation.is_tool:
        raise RpcError(_UNAVAILABLE, text, marks)
    return {"content": [_text(text)], "isError": True, "_meta": marks}


def _rejection(outcome: Rejected) -> str:
    reason = f" ({visible(outcome.reason)})" if outcome.reason else ""
    words = f": {visible(outcome.message, _TEXT_CHARS_MAX)}" if outcome.message else ""
    return f"{named(outcome.by)} rejected this call{reason}{words}{_stop(words)} It was not carried out."


def _stop(text: str) -> str:
    """What ends a sentence that may have ended by itself."""
    return "" if text.endswith((".", "!", "?", "…")) else "."


def _edits(approved: Fulfilled) -> str:
    """`ann changed path from "/a" to "/b"`"""
    changes = [_said(one) for one in approved.differences[:_CHANGES_MAX]]
    more = ["…"] if len(approved.differences) > _CHANGES_MAX else []
    return f"[{named(approved.by)} changed the call before approving it: {', '.join([*changes, *more])}]"


def _said(change: Difference) -> str:
    what = visible(change.path.removeprefix(_ARGUMENTS))
    if change.old is UNSET:
        return f"{what} was added: {literal(change.new)}"
    if change.new is UNSET:
        return f"{what} was left out, it was {literal(change.old)}"
    return f"{what} from {literal(change.old)} to {literal(change.new)}"


def _change(change: Difference) -> dict[str, Any]:
    values = {"from": change.old, "to": change.new}
    return {"path": change.path, **{name: value for name, value in values.items() if value is not UNSET}}


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}
