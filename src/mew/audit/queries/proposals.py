"""PURE. What became of proposals, reduced from the facts of the record by the rules of `mew.proposals`.

Facts outlive the envelopes they describe: whether a request matches its proposal is decided by digest alone.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple

from msgspec import UNSET, Struct

from mew.audit.record.digest import AMBIGUOUS
from mew.audit.record.facts import Fact, FactKey
from mew.audit.record.subjects import NO_ANSWER, RPC_ERROR
from mew.journal.record import from_microseconds
from mew.proposals.differences import Difference, differences
from mew.proposals.record import (
    ENTRY_BYTES,
    Fulfilment,
    ProposalRecord,
    ProposalStatus,
    Rejection,
    Response,
    Target,
    Withdrawal,
    add_fulfilment,
    add_rejection,
    add_response,
    add_withdrawal,
)
from mew.protocol.kinds import JsonRpcError, Kind

__all__ = [
    "Execution",
    "ProposalStep",
    "RequestMatch",
    "compare_request",
    "is_as_proposed",
    "record_of",
    "records_of",
    "steps_of",
]

_NOTIFICATION: Final = "notifications/"


class ProposalStep(NamedTuple):
    """What a fact did to the proposal with this id, in a word: approved, rejected, fulfilled, failed, withdrew."""

    word: str
    proposal_id: str


def records_of(facts: Iterable[Fact]) -> list[tuple[Fact, ProposalRecord]]:
    """Return each proposal among these facts, which are in order, with what became of it."""
    records: dict[FactKey, tuple[Fact, ProposalRecord]] = {}
    latest: dict[str, FactKey] = {}
    asked: dict[str, list[FactKey]] = {}
    for fact in facts:
        if fact.refusal:
            continue
        if fact.kind == Kind.MCP_PROPOSAL:
            record = record_of(fact)
            if record is not None:
                records[fact.key] = fact, record
                latest[fact.id] = fact.key
            continue
        if fact.kind == Kind.MCP_RESPONSE:
            keys = [key for cause in fact.causes for key in asked.get(cause, ())]
        else:
            keys = [latest[cause] for cause in fact.causes if cause in latest]
        for key in dict.fromkeys(keys):
            proposal, record = records[key]
            changed = _changed(proposal, record, fact)
            if changed is not None:
                records[key] = proposal, changed
        if fact.kind == Kind.MCP_REQUEST and keys:
            asked[fact.id] = keys
    return list(records.values())


def record_of(fact: Fact) -> ProposalRecord | None:
    """Return the record of a proposal of which nothing else is known; None if nobody can tell what it proposes."""
    if not fact.digest or fact.digest.startswith(AMBIGUOUS):
        return None
    return ProposalRecord(
        id=fact.id,
        proposer=fact.who,
        target=_target(fact.whom),
        method=fact.about,  # with the tool: a fact has no other params
        params={},
        created=fact.time,
        why=fact.note or None,
        expires_at=from_microseconds(fact.expires) if fact.expires else None,
    )


def steps_of(facts: Iterable[Fact], record: ProposalRecord, now: datetime) -> dict[FactKey, ProposalStep]:
    """Say of each of these facts what it did to one proposal, as far as it did anything."""
    words: dict[tuple[str, str], str] = {}
    for sent in record.fulfilments:
        words[Kind.MCP_REQUEST, sent.id] = "approved late" if sent.late else "approved"
        if sent.response is not None:
            words[Kind.MCP_RESPONSE, sent.response.id] = "failed" if sent.response.failed else "fulfilled"
    for rejection in record.rejections:
        words[Kind.MCP_REJECT, rejection.id] = "rejected"
    if record.withdrawn is not None:
        words[Kind.MCP_WITHDRAW, record.withdrawn.id] = "withdrew"
    if record.status(now) is ProposalStatus.EXPIRED:
        words[Kind.MCP_PROPOSAL, record.id] = "expired"
    found = ((fact, words.get((fact.kind, fact.id))) for fact in facts)
    return {fact.key: ProposalStep(word, record.id) for fact, word in found if word is not None}


def is_as_proposed(proposal: Fact, request: Fact) -> bool:
    """Whether a request is what was proposed: a proposal that names nobody leaves open who is to act."""
    same = bool(proposal.digest) and request.digest == proposal.digest
    return same and (not proposal.whom or set(proposal.whom) == set(request.whom))


def _changed(proposal: Fact, record: ProposalRecord, fact: Fact) -> ProposalRecord | None:
    at = fact.time
    match fact.kind:
        case Kind.MCP_REJECT:
            words = Rejection(id=fact.id, at=at, by=fact.who, message=fact.note or None)
            return add_rejection(record, words)
        case Kind.MCP_WITHDRAW:
            return add_withdrawal(record, fact.who, Withdrawal(id=fact.id, at=at, reason=fact.note or None))
        case Kind.MCP_REQUEST if _is_request(fact):
            sent = Fulfilment(
                id=fact.id,
                at=at,
                by=fact.who,
                target=_target(fact.whom),
                method=fact.about,
                params=UNSET,
                digest=fact.digest,
                edited=not is_as_proposed(proposal, fact),
            )
            return add_fulfilment(record, sent, ENTRY_BYTES)
        case Kind.MCP_RESPONSE if fact.note != NO_ANSWER:
            return add_response(record, fact.causes, _response(fact, at), ENTRY_BYTES)
        case _:
            return None


def _is_request(fact: Fact) -> bool:
    is_clear = bool(fact.digest) and not fact.digest.startswith(AMBIGUOUS)
    return is_clear and not fact.about.startswith(_NOTIFICATION)


def _response(fact: Fact, at: datetime) -> Response:
    if fact.note.startswith(RPC_ERROR):
        error = JsonRpcError(code=0, message=fact.note)
        return Response(id=fact.id, at=at, by=fact.who, error=error)
    return Response(id=fact.id, at=at, by=fact.who, result={"isError": True} if fact.note else {})


def _target(whom: Sequence[str]) -> Target:
    names = tuple(dict.fromkeys(whom))
    return names if len(names) > 1 else next(iter(names), None)


class RequestMatch(StrEnum):
    """What a request is beside the proposal it names."""

    AS_PROPOSED = "as_proposed"
    EDITED = "edited"
    UNRELATED = "unrelated"


class Execution(Struct, frozen=True):
    """`changes`: from what was proposed to what was sent, where both are still kept; None: they are not."""

    verdict: RequestMatch
    changes: tuple[Difference, ...] | None


def compare_request(proposal: Fact, request: Fact, payloads: tuple[Any, Any] | None) -> Execution:
    """Compare a request with the proposal it names; with the payloads of both, where they are kept."""
    if is_as_proposed(proposal, request):
        return Execution(RequestMatch.AS_PROPOSED, ())
    record = record_of(proposal)
    fulfils = record is not None and record.is_fulfilled_by(request.whom, request.about, {})
    verdict = RequestMatch.EDITED if fulfils else RequestMatch.UNRELATED
    if payloads is None:
        return Execution(verdict, None)
    changes = differences(*map(_compared, payloads))
    if proposal.whom and set(proposal.whom) != set(request.whom):
        changes = (Difference("$.target", _one_or_many(proposal.whom), _one_or_many(request.whom)), *changes)
    return Execution(verdict, changes)


def _compared(payload: Any) -> dict[str, Any]:
    asked = payload if isinstance(payload, dict) else {}
    return {"method": asked.get("method"), "params": asked.get("params", {})}


def _one_or_many(whom: Sequence[str]) -> Any:
    return whom[0] if len(whom) == 1 else list(whom)
