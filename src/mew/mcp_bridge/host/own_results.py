"""What our own tools answer: who is in the space, what is open there, what became of a call."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from mew.client.client import Client
from mew.client.errors import RpcError
from mew.client.proposals.outcomes import Fulfilled, Rejected, TimedOut, Withdrawn
from mew.mcp_bridge.host.calls.call import Calling
from mew.mcp_bridge.host.calls.results import End, told
from mew.proposals.record import ProposalRecord

__all__ = ["outcome_told", "participants_told", "proposals_told"]


def participants_told(me: Client, offered: Callable[[str], dict[str, int]]) -> dict[str, Any]:
    """Who is here, and what they offer to us."""
    here = [{"id": who, "offers": offered(who)} for who in sorted(me.participants) if who != me.id]
    return {"space": me.space, "you": me.id, "participants": here}


def proposals_told(me: Client) -> dict[str, Any]:
    """What waits for a decision, oldest first."""
    return {"proposals": [_proposal(me, record) for record in me.book.open(datetime.now(UTC))]}


def outcome_told(call: Calling, handle: str, end: End | None) -> dict[str, Any]:
    """What became of a call, with the content that the call itself would have been answered with."""
    if end is None:
        stands = call.stands
        waits = {"handle": handle, "status": call.status, "told": stands}
        return {
            "content": [{"type": "text", "text": f"No result yet: {stands}."}],
            "structuredContent": waits,
        }
    try:
        said = told(call.operation, end)
    except RpcError as error:
        said = {
            "content": [{"type": "text", "text": error.message}],
            "isError": True,
            "_meta": error.data or {},
        }
    value: dict[str, Any] = {
        "handle": handle,
        "status": call.status,
        "outcome": _outcome(end),
        "told": _sentence(end),
    }
    if isinstance(end, Fulfilled | Rejected):
        value["by"] = end.by
    if isinstance(end, Fulfilled) and isinstance(end.result, dict):
        value["result"] = said
    return {**said, "content": said.get("content", []), "structuredContent": value}


def _proposal(me: Client, record: ProposalRecord) -> dict[str, Any]:
    return {
        "handle": record.id,
        "mine": record.proposer == me.id,
        "proposer": record.proposer,
        "target": record.target,
        "method": record.method,
        "params": record.params,
        "since": record.created.isoformat(),
        "why": record.why,
        "expires_at": None if record.expires_at is None else record.expires_at.isoformat(),
        "rejections": [
            {"by": rejection.by, "reason": rejection.reason, "message": rejection.words}
            for rejection in record.rejections
        ],
    }


def _outcome(end: End) -> str:
    match end:
        case Rejected():
            return "rejected"
        case Withdrawn():
            return "withdrawn"
        case TimedOut():
            return "timed_out"
        case Fulfilled() if not end.failed:
            return "answered"
        case _:
            return "failed"


def _sentence(end: End) -> str:
    return "answered" if isinstance(end, dict) else str(end)
