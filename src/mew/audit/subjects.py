"""PURE. What an envelope is about, in a line that needs no other: the tool that is asked for, whom it concerns, why."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from mew.protocol.capability import in_short
from mew.protocol.envelope import Envelope
from mew.protocol.json import NOT_JSON
from mew.protocol.kinds import Kind
from mew.protocol.visible import cut

from .sameness import digest_of

__all__ = ["Subject", "subject"]

_CHARS_MAX: Final = 500
_METHOD_CHARS_MAX: Final = 100
_CAPABILITIES_MAX: Final = 16
_BYTES_MAX: Final = (
    1 << 16
)  # of a payload that has no more than a line worth taking; requests are read in any size


class Subject(NamedTuple):
    """`about`: method and name as in `tools/call:write_file`, or capabilities; `whom`: those concerned; `note`: why.

    `digest`: of the method and params that are asked for.
    """

    about: str = ""
    whom: tuple[str, ...] = ()
    note: str = ""
    digest: str = ""


class _Asked(Struct, frozen=True):
    method: str = ""
    params: Raw = Raw()


class _Named(Struct, frozen=True):
    name: str | UnsetType = UNSET
    uri: str | UnsetType = UNSET


class _Error(Struct, frozen=True):
    code: int = 0
    message: str = ""


class _Answered(Struct, frozen=True):
    error: _Error | None = None
    result: Raw = Raw()


class _Result(Struct, frozen=True):
    is_error: bool = msgspec.field(name="isError", default=False)


class _Said(Struct, frozen=True):
    reason: str = ""


class _Management(Struct, frozen=True):
    recipient: str = ""
    participant_id: str = ""
    new_owner: str = ""
    grant_id: str = ""
    stream_id: str = ""
    reason: str = ""
    capabilities: tuple[Any, ...] = ()
    initial_capabilities: tuple[Any, ...] = ()


class _Who(Struct, frozen=True):
    id: str = ""


class _Presence(Struct, frozen=True):
    event: str = ""
    participant: _Who = _Who()


def subject(envelope: Envelope) -> Subject:
    """What is worth a line of it. A payload that is not what its kind says gives no more than its addressees."""
    try:
        found = _READERS.get(envelope.kind, _managed)(envelope)
    except NOT_JSON:
        found = Subject()
    about, whom, note, digest = found
    return Subject(cut(about, _CHARS_MAX), whom or envelope.to, cut(note, _CHARS_MAX), digest)


def _asked(envelope: Envelope) -> Subject:
    asked = msgspec.json.decode(bytes(envelope.payload) or b"{}", type=_Asked)
    method, digest = cut(asked.method, _METHOD_CHARS_MAX), digest_of(asked.method, bytes(asked.params))
    if not bytes(asked.params):
        return Subject(method, digest=digest)
    try:
        named = msgspec.json.decode(asked.params, type=_Named)
    except NOT_JSON:
        return Subject(method, digest=digest)
    name = named.uri if named.name is UNSET else named.name
    return Subject(method if name is UNSET else f"{method}:{name}", digest=digest)


def _answered(envelope: Envelope) -> Subject:
    answered = msgspec.json.decode(bytes(envelope.payload) or b"{}", type=_Answered)
    if answered.error is not None:
        return Subject(note=f"error {answered.error.code}: {answered.error.message}")
    try:
        failed = msgspec.json.decode(bytes(answered.result) or b"{}", type=_Result).is_error
    except NOT_JSON:
        failed = False
    return Subject(note="the tool failed" if failed else "")


def _decided(envelope: Envelope) -> Subject:
    return Subject(note=_read(envelope, _Said).reason)


def _present(envelope: Envelope) -> Subject:
    shown = msgspec.json.decode(bytes(envelope.payload), type=_Presence)
    return Subject(shown.event, (shown.participant.id,))


def _managed(envelope: Envelope) -> Subject:
    said = _read(envelope, _Management)
    capabilities = said.capabilities or said.initial_capabilities
    about = ", ".join(map(in_short, capabilities[:_CAPABILITIES_MAX]))
    if len(capabilities) > _CAPABILITIES_MAX:
        about += f" and {len(capabilities) - _CAPABILITIES_MAX} more"
    concerned = said.recipient or said.participant_id or said.new_owner
    return Subject(about or said.grant_id or said.stream_id, (concerned,) if concerned else (), said.reason)


def _read(envelope: Envelope, shape: type[Any]) -> Any:
    raw = bytes(envelope.payload) or b"{}"
    return msgspec.json.decode(raw, type=shape) if len(raw) <= _BYTES_MAX else shape()


_READERS: Final[dict[str, Callable[[Envelope], Subject]]] = {
    Kind.MCP_PROPOSAL: _asked,
    Kind.MCP_REQUEST: _asked,
    Kind.MCP_RESPONSE: _answered,
    Kind.MCP_REJECT: _decided,
    Kind.MCP_WITHDRAW: _decided,
    Kind.PRESENCE: _present,
}
