"""PURE. What became of each proposal (§3.2, §3.3), read from the envelopes that were shown.

The gateway keeps no state about proposals: this is worked out when somebody asks.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import StrEnum
from itertools import dropwhile
from typing import Final

from msgspec import UNSET, Raw, Struct, UnsetType

from mew.protocol.codec import fields_in, repeats_a_field
from mew.protocol.envelope import Envelope
from mew.protocol.errors import ProtocolError
from mew.protocol.json import decode_json, decode_payload
from mew.protocol.kinds import Kind, Reason

from .pages import PAGE_BYTES_MAX, Record

__all__ = ["Decided", "Listed", "Proposal", "Status", "proposals"]

_DECIDING: Final = frozenset({Kind.MCP_REQUEST, Kind.MCP_REJECT, Kind.MCP_WITHDRAW})
_DECIDED_MAX: Final = 100
_DECIDED_BYTES: Final = 128
_REASON_BYTES_MAX: Final = 4096


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
    """One `mcp/proposal`, with the newest 100 of each. Fulfilled: somebody sent a request, be it after a withdrawal."""

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


class Listed(Struct, frozen=True):
    """Oldest first. `more`: older ones that fit the question did not fit the page; `found`: so did `before`."""

    proposals: list[Proposal]
    more: bool
    found: bool


def proposals(
    records: Iterable[Record], *, status: Status | None = None, before: str | None = None, limit: int
) -> Listed:
    """The newest proposals that stand so after the last of these records, of those before one of them if it is named.

    Where they stand their headers tell; payloads are read for those listed only, up to `PAGE_BYTES_MAX` in all.
    """
    cases = _cases(records)
    found = before is None or before in cases
    newest = iter(reversed(cases.items() if found else ()))
    if before is not None:
        newest = dropwhile(lambda item: item[0] != before, newest)
        next(newest, None)
    listed: list[Proposal] = []
    size = 0
    for _, case in newest:
        if status is not None and case.status is not status:
            continue
        size += case.bytes
        if len(listed) == limit or (listed and size > PAGE_BYTES_MAX):
            return Listed(listed[::-1], more=True, found=found)
        listed.append(case.told())
    return Listed(listed[::-1], more=False, found=found)


def _cases(records: Iterable[Record]) -> "dict[str, _Case]":
    cases: dict[str, _Case] = {}
    for record in records:
        if record.kind in _DECIDING:
            for named in record.refers_to:
                if named in cases:
                    cases[named].take(record)
        elif record.kind == Kind.MCP_PROPOSAL:
            cases.setdefault(record.id, _Case(record))
    return cases


class _Asked(Struct, frozen=True):
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET


class _Case:
    """A proposal and what was said of it so far, nothing of it read yet."""

    __slots__ = ("_fulfilments", "_proposed", "_rejections", "_withdrawals")

    def __init__(self, proposed: Record) -> None:
        self._proposed = proposed
        self._fulfilments: list[Record] = []
        self._rejections: list[Record] = []
        self._withdrawals: list[Record] = []

    def take(self, record: Record) -> None:
        if record.kind == Kind.MCP_REQUEST:
            self._fulfilments.append(record)
        elif record.kind == Kind.MCP_REJECT:
            self._rejections.append(record)
        elif record.sender == self._proposed.sender:
            self._withdrawals.append(record)

    @property
    def status(self) -> Status:
        if self._fulfilments:
            return Status.FULFILLED
        if self._withdrawals:
            return Status.WITHDRAWN
        return Status.REJECTED if self._rejections else Status.OPEN

    @property
    def bytes(self) -> int:
        """About what telling it takes."""
        decided = (*self._rejections[-_DECIDED_MAX:], *self._withdrawals[-_DECIDED_MAX:])
        reasons = sum(min(len(record.raw), _REASON_BYTES_MAX) for record in decided)
        requests = min(len(self._fulfilments), _DECIDED_MAX)
        return len(self._proposed.raw) + reasons + _DECIDED_BYTES * (len(decided) + requests)

    def told(self) -> Proposal:
        envelope = self._proposed.envelope
        asked = _asked(envelope)
        return Proposal(
            id=envelope.id,
            proposer=envelope.sender,
            at=self._proposed.at,
            status=self.status,
            to=envelope.to,
            fulfilments=_decided(self._fulfilments),
            rejections=_decided(self._rejections),
            withdrawals=_decided(self._withdrawals),
            method=asked.method,
            params=asked.params,
        )


def _asked(envelope: Envelope) -> _Asked:
    """Its parameters as they came, unread; where it says two things, what it asks for is anyone's guess."""
    payload = bytes(envelope.payload) or b"{}"
    try:
        fields = fields_in(payload)
        method = decode_json(bytes(fields["method"])) if "method" in fields else UNSET
    except ProtocolError:
        return _Asked()
    if repeats_a_field(payload, fields) or not isinstance(method, str | UnsetType):
        return _Asked()
    return _Asked(method, fields.get("params", UNSET))


def _decided(records: Sequence[Record]) -> tuple[Decided, ...]:
    return tuple(Decided(one.id, one.sender, _reason(one)) for one in records[-_DECIDED_MAX:])


def _reason(decided: Record) -> str | UnsetType:
    if decided.kind == Kind.MCP_REQUEST:
        return UNSET
    payload = decided.envelope.payload
    if len(bytes(payload)) > _REASON_BYTES_MAX:
        return UNSET
    try:
        return decode_payload(payload, Reason).reason
    except ProtocolError:
        return UNSET
