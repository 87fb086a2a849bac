"""Every kind of §3 and those that extend it, with the payload each carries.

The gateway reads only the payloads it must act on; the rest are for whoever sends and receives them. A payload may
hold more than its struct names. An optional field is absent, never null.
"""

from datetime import datetime
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

__all__ = [
    "PAYLOADS",
    "RESERVED_PREFIX",
    "Acknowledgement",
    "Chat",
    "Compact",
    "CompactDone",
    "EmptyPayload",
    "ErrorPayload",
    "Forget",
    "Grant",
    "Invite",
    "InviteAck",
    "JsonRpcError",
    "Kick",
    "Kind",
    "McpProposal",
    "McpReject",
    "McpRequest",
    "McpResponse",
    "Pause",
    "Presence",
    "PresentParticipant",
    "ReasonPayload",
    "ReasoningPayload",
    "RequestStatus",
    "Revoke",
    "SpaceName",
    "Status",
    "StreamAck",
    "StreamClose",
    "StreamOpen",
    "StreamRequest",
    "StreamTransfer",
    "StreamTransferred",
    "StreamWriter",
    "StreamWriters",
    "Welcome",
    "is_talk",
]

RESERVED_PREFIX: Final = "system/"
_INDEXED_PREFIXES: Final = ("mcp/", "capability/", "space/", "participant/", "stream/")

Seconds = Annotated[float, Meta(ge=0, le=10 * 366 * 86_400)]
Moment = Annotated[datetime, Meta(tz=True)]
Count = Annotated[int, Meta(ge=0)]
Id = Annotated[str, Meta(min_length=1, max_length=256)]
# Plain ASCII, and no more than the usual of it: Python's mail library fails on some of what RFC 5322 allows.
Email = Annotated[
    str,
    Meta(max_length=320, pattern=r"^[A-Za-z0-9.!#$%&'*+/^_`{|}~-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*$(?!\n)"),
]
Capabilities = Annotated[list[Any], Meta(max_length=32)]
Text = str | UnsetType


class Kind:
    """The kinds the gateway itself must know by name."""

    CHAT: Final = "chat"
    CHAT_ACKNOWLEDGE: Final = "chat/acknowledge"
    CHAT_CANCEL: Final = "chat/cancel"
    MCP_REQUEST: Final = "mcp/request"
    MCP_RESPONSE: Final = "mcp/response"
    MCP_PROPOSAL: Final = "mcp/proposal"
    MCP_WITHDRAW: Final = "mcp/withdraw"
    MCP_REJECT: Final = "mcp/reject"
    REASONING_START: Final = "reasoning/start"
    REASONING_THOUGHT: Final = "reasoning/thought"
    REASONING_CONCLUSION: Final = "reasoning/conclusion"
    REASONING_CANCEL: Final = "reasoning/cancel"
    GRANT: Final = "capability/grant"
    REVOKE: Final = "capability/revoke"
    GRANT_ACK: Final = "capability/grant-ack"
    INVITE: Final = "space/invite"
    INVITE_ACK: Final = "space/invite-ack"
    KICK: Final = "space/kick"
    PAUSE: Final = "participant/pause"
    RESUME: Final = "participant/resume"
    STATUS: Final = "participant/status"
    REQUEST_STATUS: Final = "participant/request-status"
    FORGET: Final = "participant/forget"
    COMPACT: Final = "participant/compact"
    COMPACT_DONE: Final = "participant/compact-done"
    CLEAR: Final = "participant/clear"
    RESTART: Final = "participant/restart"
    SHUTDOWN: Final = "participant/shutdown"
    STREAM_REQUEST: Final = "stream/request"
    STREAM_OPEN: Final = "stream/open"
    STREAM_CLOSE: Final = "stream/close"
    STREAM_ACK: Final = "stream/ack"
    STREAM_GRANT_WRITE: Final = "stream/grant-write"
    STREAM_REVOKE_WRITE: Final = "stream/revoke-write"
    STREAM_TRANSFER: Final = "stream/transfer-ownership"
    STREAM_WRITE_GRANTED: Final = "stream/write-granted"
    STREAM_WRITE_REVOKED: Final = "stream/write-revoked"
    STREAM_TRANSFERRED: Final = "stream/ownership-transferred"
    PRESENCE: Final = "system/presence"
    WELCOME: Final = "system/welcome"
    ERROR: Final = "system/error"


class _Payload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    pass


class EmptyPayload(_Payload, frozen=True):
    """No field is required."""


# MCP (§3.1 to §3.3): JSON-RPC as MCP has it.
class McpRequest(_Payload, frozen=True):
    """An MCP request, or a notification if it has no `id` and its method begins with `notifications/`.

    `via` (ours): the surface on which somebody approved the proposal that it carries out. `anyway` (ours): carry it
    out although its proposer withdrew it.
    """

    method: str
    jsonrpc: Literal["2.0"] | UnsetType = UNSET
    id: str | int | UnsetType = UNSET
    params: dict[str, Any] | UnsetType = UNSET
    via: Text = UNSET
    anyway: bool = False

    @property
    def is_notification(self) -> bool:
        """Whether nobody answers it. A request may leave out its `id`: envelopes correlate answers (§3.1.2)."""
        return self.id is UNSET and self.method.startswith("notifications/")

    def response(self, outcome: dict[str, Any]) -> dict[str, Any]:
        """The payload that answers it with a `result` or `error`; it has an `id` if the request has one."""
        request_id = {} if self.id is UNSET else {"id": self.id}
        return {"jsonrpc": "2.0", **request_id, **outcome}


class JsonRpcError(_Payload, frozen=True):
    """`code` is an integer in JSON-RPC. Agents of the TypeScript implementation also send names."""

    code: int | str
    message: str
    data: Any = UNSET


class McpResponse(_Payload, frozen=True):
    """The answer to one request: `result` or `error`."""

    jsonrpc: Literal["2.0"] | UnsetType = UNSET
    id: str | int | UnsetType | None = UNSET
    result: Any = UNSET
    error: JsonRpcError | UnsetType = UNSET


class McpProposal(_Payload, frozen=True):
    """An MCP request that somebody else may make (§3.2).

    `why` and `expires_at` (ours): what it is for, and when nobody may approve it any more.
    """

    method: str
    params: dict[str, Any] | UnsetType = UNSET
    why: Text = UNSET
    expires_at: Text = UNSET


class McpReject(_Payload, frozen=True):
    """`reason`: one of the codes of §3.3.3, or any other string; `message` (ours): the same in words."""

    reason: Text = UNSET
    message: Text = UNSET


class ReasonPayload(_Payload, frozen=True):
    """Why: one of the codes of §3.3.3, or any other string."""

    reason: Text = UNSET


# Chat (§3.4) and reasoning (§3.5).
class Chat(_Payload, frozen=True):
    text: str
    format: Literal["plain", "markdown"] = "plain"


class Acknowledgement(_Payload, frozen=True):
    status: Text = UNSET


class ReasoningPayload(_Payload, frozen=True):
    message: Text = UNSET


# Space management (§3.6).
class Grant(_Payload, frozen=True):
    """Capabilities for `recipient`, for good or until `expires_at` or for `ttl_seconds`."""

    recipient: Id
    capabilities: Annotated[Capabilities, Meta(min_length=1)]
    reason: Text = UNSET
    expires_at: Moment | UnsetType = UNSET
    ttl_seconds: Seconds | UnsetType = UNSET


class Revoke(_Payload, frozen=True):
    """Take back one grant by `grant_id`, or everything inside `capabilities`."""

    recipient: Id
    grant_id: Id | UnsetType = UNSET
    capabilities: Annotated[Capabilities, Meta(min_length=1)] | UnsetType = UNSET
    reason: Text = UNSET


class Invite(_Payload, frozen=True):
    participant_id: Id
    initial_capabilities: Capabilities = []
    email: Email | UnsetType = UNSET
    reason: Text = UNSET


class InviteAck(_Payload, frozen=True):
    """The inviter's answer, and nobody else's: it holds the token."""

    status: Literal["created"]
    participant_id: str
    token: str
    connection_url: str
    email: Literal["sending", "not_configured"] | UnsetType = UNSET


class Kick(_Payload, frozen=True):
    participant_id: Id
    reason: Text = UNSET


# Participant control (§3.9).
class Pause(_Payload, frozen=True):
    """Without `timeout_seconds` the pause lasts until somebody resumes."""

    reason: Text = UNSET
    timeout_seconds: Seconds | UnsetType = UNSET


class RequestStatus(_Payload, frozen=True):
    fields: list[str] | UnsetType = UNSET


class Status(_Payload, frozen=True):
    """Telemetry; further metrics are welcome, in snake_case."""

    messages_in_context: Count
    tokens: Count | UnsetType = UNSET
    max_tokens: Count | UnsetType = UNSET
    latency_ms: Annotated[float, Meta(ge=0)] | UnsetType = UNSET
    status: Text = UNSET


class Forget(_Payload, frozen=True):
    direction: Literal["oldest", "newest"]
    entries: Count | UnsetType = UNSET


class Compact(_Payload, frozen=True):
    reason: Text = UNSET
    target_tokens: Count | UnsetType = UNSET


class CompactDone(_Payload, frozen=True):
    status: Text = UNSET
    freed_tokens: Count | UnsetType = UNSET
    freed_messages: Count | UnsetType = UNSET
    skipped: bool | UnsetType = UNSET
    reason: Text = UNSET


# Streams (§3.10).
class StreamRequest(_Payload, frozen=True):
    """All other fields are kept too, and shown in `active_streams`."""

    direction: Literal["upload", "download"] = "upload"
    expected_size_bytes: Count | UnsetType = UNSET
    description: Text = UNSET
    target: Id | Annotated[list[Id], Meta(min_length=1, max_length=256)] | UnsetType = UNSET
    encoding: Text = UNSET


class StreamOpen(_Payload, frozen=True):
    """What the request said, with what the gateway decided; §3.10.2 asks only for `stream_id`."""

    stream_id: Id
    owner: Text = UNSET
    direction: Literal["upload", "download"] | UnsetType = UNSET
    authorized_writers: list[str] | UnsetType = UNSET
    created: Moment | UnsetType = UNSET
    encoding: str = "binary"


class StreamClose(_Payload, frozen=True):
    """Names the stream by `stream_id`, or else by the `correlation_id` of its `stream/open`."""

    stream_id: Id | UnsetType = UNSET
    reason: Text = UNSET


class StreamAck(_Payload, frozen=True):
    """How much of a stream somebody has safely taken in; with `error`, that it has given up and why."""

    stream_id: Id
    received: Count
    error: Text = UNSET


class StreamWriter(_Payload, frozen=True):
    stream_id: Id
    participant_id: Id


class StreamTransfer(_Payload, frozen=True):
    stream_id: Id
    new_owner: Id


class StreamWriters(_Payload, frozen=True):
    stream_id: str
    participant_id: str
    authorized_writers: list[str]


class StreamTransferred(_Payload, frozen=True):
    stream_id: str
    previous_owner: str
    new_owner: str
    authorized_writers: list[str]


# What the gateway says (§3.7, §3.8).
class PresentParticipant(_Payload, frozen=True):
    id: str
    capabilities: list[Any] | UnsetType = UNSET


class Presence(_Payload, frozen=True):
    event: Literal["join", "leave"]
    participant: PresentParticipant


class SpaceName(_Payload, frozen=True):
    id: str
    name: Text = UNSET
    description: Text = UNSET


class Welcome(_Payload, frozen=True):
    """`resumed` answers `after`: true when everything missed follows, false when some of it is gone."""

    you: PresentParticipant
    participants: list[PresentParticipant]
    active_streams: list[dict[str, Any]] | UnsetType = UNSET
    space: SpaceName | UnsetType = UNSET
    resumed: bool | UnsetType = UNSET


class ErrorPayload(_Payload, frozen=True):
    """`error` is a stable code, `message` a sentence (§3.8.2 has none); the rest is what helps."""

    error: str
    message: Text = UNSET
    attempted_kind: Text = UNSET
    your_capabilities: list[Any] | UnsetType = UNSET
    lacked: Text = UNSET
    retry_after_s: float | UnsetType = UNSET
    participant: Text = UNSET


PAYLOADS: Final[dict[str, type[_Payload]]] = {
    Kind.MCP_REQUEST: McpRequest,
    Kind.MCP_RESPONSE: McpResponse,
    Kind.MCP_PROPOSAL: McpProposal,
    Kind.MCP_WITHDRAW: ReasonPayload,
    Kind.MCP_REJECT: McpReject,
    Kind.REASONING_START: ReasoningPayload,
    Kind.REASONING_THOUGHT: ReasoningPayload,
    Kind.REASONING_CONCLUSION: ReasoningPayload,
    Kind.REASONING_CANCEL: ReasonPayload,
    Kind.GRANT: Grant,
    Kind.REVOKE: Revoke,
    Kind.GRANT_ACK: Acknowledgement,
    Kind.INVITE: Invite,
    Kind.INVITE_ACK: InviteAck,
    Kind.KICK: Kick,
    Kind.PAUSE: Pause,
    Kind.RESUME: ReasonPayload,
    Kind.STATUS: Status,
    Kind.REQUEST_STATUS: RequestStatus,
    Kind.FORGET: Forget,
    Kind.COMPACT: Compact,
    Kind.COMPACT_DONE: CompactDone,
    Kind.CLEAR: EmptyPayload,
    Kind.RESTART: EmptyPayload,
    Kind.SHUTDOWN: EmptyPayload,
    Kind.STREAM_REQUEST: StreamRequest,
    Kind.STREAM_OPEN: StreamOpen,
    Kind.STREAM_CLOSE: StreamClose,
    Kind.STREAM_ACK: StreamAck,
    Kind.STREAM_GRANT_WRITE: StreamWriter,
    Kind.STREAM_REVOKE_WRITE: StreamWriter,
    Kind.STREAM_TRANSFER: StreamTransfer,
    Kind.STREAM_WRITE_GRANTED: StreamWriters,
    Kind.STREAM_WRITE_REVOKED: StreamWriters,
    Kind.STREAM_TRANSFERRED: StreamTransferred,
    Kind.CHAT: Chat,
    Kind.CHAT_ACKNOWLEDGE: Acknowledgement,
    Kind.CHAT_CANCEL: ReasonPayload,
    Kind.PRESENCE: Presence,
    Kind.WELCOME: Welcome,
    Kind.ERROR: ErrorPayload,
}


def is_talk(kind: str) -> bool:
    """Whether envelopes of this kind are only talk, of which the audit record has no line: chat, reasoning, status."""
    return not kind.startswith(_INDEXED_PREFIXES) or kind == Kind.STATUS
