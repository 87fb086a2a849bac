"""PURE. Summarize an envelope for the record: the tool called, whom it concerns, and why."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, Any, Final, NamedTuple, TypeVar

import msgspec
from msgspec import Meta, Raw, Struct

from mew.journal.record import to_microseconds
from mew.protocol import kinds
from mew.protocol.capability import name_field, short_text
from mew.protocol.envelope import Envelope
from mew.protocol.json import NOT_JSON
from mew.protocol.kinds import Kind
from mew.protocol.visible import cut, literal
from mew.space import Space

from .digest import AMBIGUOUS, payload_digest

__all__ = ["NO_ANSWER", "RPC_ERROR", "EnvelopeSummary", "McpCall", "mcp_call_in", "summarize"]

RPC_ERROR: Final = "error "
"""How the note of a response begins that is a JSON-RPC error."""
NO_ANSWER: Final = "neither a result nor an error"

_CHARS_MAX: Final = 500
_METHOD_CHARS_MAX: Final = 100
_CAPABILITIES_MAX: Final = 16
_CODE_CHARS_MAX: Final = 40
_BYTES_MAX: Final = 1 << 16  # of a payload that nobody acts on, and that has no more than a reason
_TWICE: Final = "ambiguous: a key occurs twice, or a number is too long"
_Moment = Annotated[datetime, Meta(tz=True)]
_Shape = TypeVar("_Shape")


class EnvelopeSummary(NamedTuple):
    """`about`: method and name as in `tools/call:write_file`, or capabilities; `whom`: those concerned; `note`: why.

    `digest`: of the method and params that are asked for. `grant`: the id of the one grant that is taken back.
    `expires`: when a proposal can no longer be approved, in microseconds since 1970; 0: it does not say.
    """

    about: str = ""
    whom: tuple[str, ...] = ()
    note: str = ""
    digest: str = ""
    grant: str = ""
    expires: int = 0


class _Answered(Struct, frozen=True):
    error: Any = None
    result: Raw = Raw()


class _Result(Struct, frozen=True):
    is_error: bool = msgspec.field(name="isError", default=False)


class _Said(Struct, frozen=True):
    reason: Any = None
    message: Any = None


class _Proposed(Struct, frozen=True):
    params: Raw = Raw(b"{}")
    why: Any = None
    expires_at: Any = None


def summarize(envelope: Envelope) -> EnvelopeSummary:
    """What is worth a line of it, read as the space reads it. A payload that is not what its kind says gives no more
    than its addressees.
    """
    try:
        found = _READERS.get(envelope.kind, _any)(envelope)
    except NOT_JSON:
        found = EnvelopeSummary()
    whom = found.whom or envelope.to
    return found._replace(about=cut(found.about, _CHARS_MAX), whom=whom, note=cut(found.note, _CHARS_MAX))


def _asked(envelope: Envelope) -> EnvelopeSummary:
    raw = bytes(envelope.payload) or b"{}"
    digest = payload_digest(raw)
    note = _TWICE if digest.startswith(AMBIGUOUS) else ""
    method, name = mcp_call_in(raw)
    method = cut(method, _METHOD_CHARS_MAX)
    return EnvelopeSummary(f"{method}:{name}" if name else method, note=note, digest=digest)


def _proposed(envelope: Envelope) -> EnvelopeSummary:
    """As a request, with what it is for and when it expires."""
    found, said = _asked(envelope), _read(envelope, _Proposed)
    try:
        expires = 0 if said.expires_at is None else to_microseconds(msgspec.convert(said.expires_at, _Moment))
    except msgspec.ValidationError:
        expires = 0
    why = said.why if isinstance(said.why, str) else ""
    can_be_called = bytes(said.params).startswith(b"{")
    return found._replace(
        note=found.note or why, expires=expires, digest=found.digest if can_be_called else ""
    )


def _rejected(envelope: Envelope) -> EnvelopeSummary:
    """Both its code and its words, as far as they are texts: `unsafe: Not in the home folder.`"""
    if len(bytes(envelope.payload)) > _BYTES_MAX:
        return EnvelopeSummary()
    said = _read(envelope, _Said)
    return EnvelopeSummary(
        note=": ".join(part for part in (said.reason, said.message) if isinstance(part, str) and part)
    )


def _answered(envelope: Envelope) -> EnvelopeSummary:
    answered = msgspec.json.decode(bytes(envelope.payload) or b"{}", type=_Answered)
    if answered.error is None and not bytes(answered.result):
        return EnvelopeSummary(note=NO_ANSWER)
    match answered.error:
        case None:
            pass
        case {"code": code, "message": str(message)}:
            return EnvelopeSummary(note=f"{RPC_ERROR}{literal(code, _CODE_CHARS_MAX)}: {message}")
        case error:
            return EnvelopeSummary(note=f"{RPC_ERROR}{literal(error, _CHARS_MAX)}")
    try:
        failed = msgspec.json.decode(bytes(answered.result) or b"{}", type=_Result).is_error
    except NOT_JSON:
        failed = False
    return EnvelopeSummary(note="the tool failed" if failed else "")


def _present(envelope: Envelope) -> EnvelopeSummary:
    shown = _read(envelope, kinds.Presence)
    return EnvelopeSummary(shown.event, (shown.participant.id,))


def _granted(envelope: Envelope) -> EnvelopeSummary:
    asked = _read(envelope, kinds.Grant)
    return EnvelopeSummary(_in_short(asked.capabilities), (asked.recipient,), asked.reason or "")


def _revoked(envelope: Envelope) -> EnvelopeSummary:
    asked = _read(envelope, kinds.Revoke)
    if asked.grant_id:
        return EnvelopeSummary(asked.grant_id, (asked.recipient,), asked.reason or "", grant=asked.grant_id)
    return EnvelopeSummary(_in_short(asked.capabilities or ()), (asked.recipient,), asked.reason or "")


def _invited(envelope: Envelope) -> EnvelopeSummary:
    asked = _read(envelope, kinds.Invite)
    return EnvelopeSummary(_in_short(asked.initial_capabilities), (asked.participant_id,), asked.reason or "")


def _invitation_made(envelope: Envelope) -> EnvelopeSummary:
    return EnvelopeSummary(whom=(_read(envelope, kinds.InviteAck).participant_id,))


def _kicked(envelope: Envelope) -> EnvelopeSummary:
    asked = _read(envelope, kinds.Kick)
    return EnvelopeSummary(whom=(asked.participant_id,), note=asked.reason or "")


def _stream_opened(envelope: Envelope) -> EnvelopeSummary:
    return EnvelopeSummary(_read(envelope, kinds.StreamOpen).stream_id)


def _stream_closed(envelope: Envelope) -> EnvelopeSummary:
    asked = _read(envelope, kinds.StreamClose)
    return EnvelopeSummary(asked.stream_id or "", note=asked.reason or "")


def _stream_received(envelope: Envelope) -> EnvelopeSummary:
    return EnvelopeSummary(_read(envelope, kinds.StreamAck).stream_id)


def _written_to(envelope: Envelope) -> EnvelopeSummary:
    asked = _read(envelope, kinds.StreamWriter)
    return EnvelopeSummary(asked.stream_id, (asked.participant_id,))


def _handed_over(envelope: Envelope) -> EnvelopeSummary:
    asked = _read(envelope, kinds.StreamTransfer)
    return EnvelopeSummary(asked.stream_id, (asked.new_owner,))


def _any(envelope: Envelope) -> EnvelopeSummary:
    """Whom it concerns is whom it is addressed to."""
    if len(bytes(envelope.payload)) > _BYTES_MAX and envelope.kind not in Space.RULES:
        return EnvelopeSummary()
    reason = _read(envelope, _Said).reason
    return EnvelopeSummary(note=reason if isinstance(reason, str) else "")


def _in_short(capabilities: Sequence[Any]) -> str:
    about = ", ".join(map(short_text, capabilities[:_CAPABILITIES_MAX]))
    more = len(capabilities) - _CAPABILITIES_MAX
    return f"{about} and {more} more" if more > 0 else about


def _read(envelope: Envelope, shape: type[_Shape]) -> _Shape:
    return msgspec.json.decode(bytes(envelope.payload) or b"{}", type=shape)


_READERS: Final[dict[str, Callable[[Envelope], EnvelopeSummary]]] = {
    Kind.MCP_PROPOSAL: _proposed,
    Kind.MCP_REJECT: _rejected,
    Kind.MCP_REQUEST: _asked,
    Kind.MCP_RESPONSE: _answered,
    Kind.PRESENCE: _present,
    Kind.GRANT: _granted,
    Kind.REVOKE: _revoked,
    Kind.INVITE: _invited,
    Kind.INVITE_ACK: _invitation_made,
    Kind.KICK: _kicked,
    Kind.STREAM_OPEN: _stream_opened,
    Kind.STREAM_CLOSE: _stream_closed,
    Kind.STREAM_ACK: _stream_received,
    Kind.STREAM_GRANT_WRITE: _written_to,
    Kind.STREAM_REVOKE_WRITE: _written_to,
    Kind.STREAM_WRITE_GRANTED: _written_to,
    Kind.STREAM_WRITE_REVOKED: _written_to,
    Kind.STREAM_TRANSFER: _handed_over,
    Kind.STREAM_TRANSFERRED: _handed_over,
}


class McpCall(NamedTuple):
    """`name`: of the tool or prompt, or the URI of the resource; empty where the method has none."""

    method: str
    name: str = ""


class _Asked(Struct, gc=False):
    method: str
    params: Raw = Raw(b"{}")


_calls: Final = msgspec.json.Decoder(_Asked)
_fields: Final = msgspec.json.Decoder(dict[str, Raw])
_strings: Final = msgspec.json.Decoder(str)


def mcp_call_in(payload: bytes) -> McpCall:
    """What a payload calls; empty where it says none."""
    method = ""
    try:
        asked = _calls.decode(payload)
        method = asked.method
        field = name_field(method)
        named = None if field is None else _fields.decode(asked.params).get(field)
        return McpCall(method) if named is None else McpCall(method, _strings.decode(named))
    except NOT_JSON:
        return McpCall(method)
