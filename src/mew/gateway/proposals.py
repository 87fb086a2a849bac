"""PURE. What became of each proposal (§3.2, §3.3), read from the envelopes that were shown.

The gateway keeps no state about proposals: this is worked out when somebody asks.
"""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum

from msgspec import UNSET, Raw, Struct, UnsetType

from mew.protocol.codec import decode_payload
from mew.protocol.envelope import Envelope
from mew.protocol.errors import ProtocolError
from mew.protocol.kinds import Kind, Reason

from .history import Record

__all__ = ["Decided", "Proposal", "Status", "proposals"]


class Status(StrEnum):
    """Where a proposal stands. One rejection closes it for nobody else: `rejected` has only rejections."""

    OPEN = "open"
    FULFILLED = "fulfilled"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"


class Decided(Struct, frozen=True, omit_defaults=True):
    """An envelope that decided something, and whose it is."""

    id: str
    by: str
    reason: str | UnsetType = UNSET


class Proposal(Struct, frozen=True, omit_defaults=True):
    """One `mcp/proposal`. Fulfilled: somebody sent a request for it, be it after a withdrawal."""

    id: str
    proposer: str
    at: datetime
    status: Status
    to: tuple[str, ...]
    fulfilments: tuple[Decided, ...]
    rejections: tuple[Decided, ...]
    withdrawals: tuple[Decided, ...]
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET


def proposals(records: Iterable[Record]) -> list[Proposal]:
    """All proposals among these records, oldest first, as they stand after the last."""
    cases: dict[str, _Case] = {}
    for record in records:
        envelope = record.envelope
        for named in envelope.correlation_id:
            if named in cases:
                cases[named].take(envelope)
        if envelope.kind == Kind.MCP_PROPOSAL:
            cases.setdefault(envelope.id, _Case(record))
    return [case.told() for case in cases.values()]


class _Asked(Struct, frozen=True):
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET


class _Case:
    """A proposal and what was said of it so far."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._fulfilments: list[Decided] = []
        self._rejections: list[Decided] = []
        self._withdrawals: list[Decided] = []

    def take(self, envelope: Envelope) -> None:
        decided = Decided(envelope.id, envelope.sender, _reason(envelope))
        if envelope.kind == Kind.MCP_REQUEST:
            self._fulfilments.append(decided)
        elif envelope.kind == Kind.MCP_REJECT:
            self._rejections.append(decided)
        elif envelope.kind == Kind.MCP_WITHDRAW and envelope.sender == self._record.envelope.sender:
            self._withdrawals.append(decided)

    def told(self) -> Proposal:
        envelope = self._record.envelope
        try:
            asked = decode_payload(envelope.payload, _Asked)
        except ProtocolError:
            asked = _Asked()  # shown to everyone as it came; what it asks for is anyone's guess
        return Proposal(
            id=envelope.id,
            proposer=envelope.sender,
            at=self._record.at,
            status=self._status(),
            to=envelope.to,
            fulfilments=tuple(self._fulfilments),
            rejections=tuple(self._rejections),
            withdrawals=tuple(self._withdrawals),
            method=asked.method,
            params=asked.params,
        )

    def _status(self) -> Status:
        if self._fulfilments:
            return Status.FULFILLED
        if self._withdrawals:
            return Status.WITHDRAWN
        return Status.REJECTED if self._rejections else Status.OPEN


def _reason(envelope: Envelope) -> str | UnsetType:
    if envelope.kind == Kind.MCP_REQUEST:
        return UNSET
    try:
        return decode_payload(envelope.payload, Reason).reason
    except ProtocolError:
        return UNSET
