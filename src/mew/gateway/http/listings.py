"""PURE. Participants and proposals of a space, as the HTTP API lists them."""

from collections.abc import Iterable
from datetime import datetime
from itertools import dropwhile
from typing import Any, Final

from msgspec import Raw, Struct

from mew.gateway.history.query import PAGE_BYTES_MAX, DeliveredEnvelope
from mew.proposals.book import ProposalBook
from mew.proposals.record import (
    Fulfilment,
    ProposalRecord,
    ProposalStatus,
    Rejection,
    Withdrawal,
    names_in,
)
from mew.protocol.codec import fields_in, repeats_a_field
from mew.protocol.envelope import ParticipantId
from mew.protocol.json import encode_json
from mew.protocol.kinds import Kind
from mew.space import Space

__all__ = [
    "ListedParticipant",
    "ListedPause",
    "ListedProposal",
    "ProposalList",
    "list_participants",
    "list_proposals",
]


class ListedPause(Struct, frozen=True):
    """`until` null: until somebody resumes."""

    by: str
    envelope_id: str
    until: datetime | None


class ListedParticipant(Struct, frozen=True):
    """`streams`: the ids of those it owns."""

    id: str
    connected: bool
    connections: int
    capabilities: list[dict[str, Any]]
    paused: ListedPause | None
    shut_down: bool
    streams: list[str]


def list_participants(space: Space, at: datetime) -> list[ListedParticipant]:
    """Those connected first, in the order they came; then those absent, as configured or invited."""
    state = space.state
    absent = (*state.rules.profiles, *state.invited, *state.identities)
    everyone = dict.fromkeys((*state.members, *(who for who in absent if space.is_known(who))))
    return [_shown(space, who, at) for who in everyone]


def _shown(space: Space, who: ParticipantId, at: datetime) -> ListedParticipant:
    state = space.state
    connections = state.members.get(who, 0)
    return ListedParticipant(
        id=who,
        connected=connections > 0,
        connections=connections,
        capabilities=[capability.source for capability in space.held(who)],
        paused=_pause(space, who, at),
        shut_down=who in state.shut_down,
        streams=[stream.id for stream in state.streams.values() if stream.owner == who],
    )


def _pause(space: Space, who: ParticipantId, at: datetime) -> ListedPause | None:
    pause = space.state.paused.get(who)
    if pause is None or (pause.until is not None and pause.until <= at):
        return None
    return ListedPause(pause.by, pause.envelope_id, pause.until)


_RECORDS_MAX: Final = 10_000
_BYTES_MAX: Final = 128 << 20
_LISTS_TOOLS: Final = b"tools/list"
_ANSWERS: Final = frozenset({Kind.MCP_REJECT, Kind.MCP_WITHDRAW, Kind.MCP_RESPONSE, Kind.CHAT})


class ListedProposal(Struct, frozen=True, kw_only=True):
    """One proposal and what became of it, under the names that `mew proposals --json` and the SDK use.

    `rejections` close it for nobody else. `fulfilments` are the requests that carry it out; `unrelated` are those that
    name it and ask for something else, which change nothing. `why` and `expires_at` are the proposer's words. `params`
    are as they came, so that who approves them sends no other number.
    """

    id: str
    proposer: str
    to: tuple[str, ...]
    method: str
    params: Raw
    status: ProposalStatus
    at: datetime
    why: str | None
    expires_at: datetime | None
    context: str | None
    digest: str | None
    tool: str | None
    schema_changed: bool
    preferred: tuple[str, ...]
    exclusive: bool
    rejections: tuple[Rejection, ...]
    fulfilments: tuple[Fulfilment, ...]
    unrelated: tuple[Fulfilment, ...]
    withdrawn: Withdrawal | None


class ProposalList(Struct, frozen=True):
    """Oldest first. `more`: older ones that fit the question did not fit the page.

    `complete`: all that were delivered were looked at, `before` among them.
    """

    proposals: list[ListedProposal]
    more: bool
    complete: bool


def list_proposals(
    delivered: Iterable[DeliveredEnvelope],
    now: datetime,
    *,
    status: ProposalStatus | None = None,
    before: str | None = None,
    limit: int,
) -> ProposalList:
    """List the newest proposals, of those before one of them if it is named, up to `PAGE_BYTES_MAX` in all."""
    book, proposed = _book(delivered)
    complete = len(book) == len(proposed) and (before is None or before in book)
    newest = iter(list(book)[::-1] if before is None or before in book else ())
    if before is not None:
        newest = dropwhile(lambda record: record.id != before, newest)
        next(newest, None)
    listed: list[ListedProposal] = []
    size = 0
    for record in newest:
        if status is not None and record.status(now) is not status:
            continue
        told = _listed(record, proposed[record.id], now)
        size += len(encode_json(told))
        if len(listed) == limit or (listed and size > PAGE_BYTES_MAX):
            return ProposalList(listed[::-1], more=True, complete=complete)
        listed.append(told)
    return ProposalList(listed[::-1], more=False, complete=complete)


def _book(delivered: Iterable[DeliveredEnvelope]) -> tuple[ProposalBook, dict[str, DeliveredEnvelope]]:
    """Read what concerns a proposal, and no other payload; return all proposals as they were delivered, too."""
    book = ProposalBook(open_max=_RECORDS_MAX, closed_max=_RECORDS_MAX, bytes_max=_BYTES_MAX)
    known: set[str] = set()
    proposed: dict[str, DeliveredEnvelope] = {}
    for one in delivered:
        if one.kind == Kind.MCP_PROPOSAL or (
            one.kind == Kind.MCP_REQUEST
            and (not known.isdisjoint(one.correlation_id) or _LISTS_TOOLS in one.raw)
        ):
            known.add(one.id)
        elif one.kind not in _ANSWERS or known.isdisjoint(one.correlation_id):
            continue
        elif one.kind == Kind.MCP_REJECT:
            known.add(one.id)
        for record in book.apply_all(one.envelope, one.at):
            if one.kind == Kind.MCP_PROPOSAL and record.id == one.id:
                proposed[record.id] = one
    return book, proposed


def _listed(record: ProposalRecord, proposed: DeliveredEnvelope, now: datetime) -> ListedProposal:
    return ListedProposal(
        id=record.id,
        proposer=record.proposer,
        to=names_in(record.target),
        method=record.method,
        params=_params(record, proposed),
        status=record.status(now),
        at=record.created,
        why=record.why,
        expires_at=record.expires_at,
        context=record.context,
        digest=record.digest,
        tool=record.tool_name,
        schema_changed=record.schema_changed,
        preferred=record.preferred,
        exclusive=record.exclusive,
        rejections=record.rejections,
        fulfilments=record.fulfilments,
        unrelated=record.unrelated,
        withdrawn=record.withdrawn,
    )


def _params(record: ProposalRecord, proposed: DeliveredEnvelope) -> Raw:
    """What was proposed, byte for byte; or as it was read, if a reader could take it for something else."""
    payload = bytes(proposed.envelope.payload)
    fields = fields_in(payload)
    if "params" not in fields or repeats_a_field(payload, fields):
        return Raw(encode_json(record.params))
    return fields["params"]
