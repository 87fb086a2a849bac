"""What can be wrong: bad bytes (ProtocolError), a rule that says no (Refusal), why a connection ends (CloseCode)."""

from enum import IntEnum, StrEnum
from typing import Final

__all__ = ["FRAMES_DROPPED", "CloseCode", "InvalidCapability", "ProtocolError", "Refusal"]

FRAMES_DROPPED: Final = "frames_dropped"
"""The code of a `system/error` that refuses nothing: the receiver read a stream too slowly, and lost frames of it."""


class Refusal(StrEnum):
    """The stable codes of `system/error` and of HTTP problem details. Codes never change, texts may."""

    MALFORMED = "malformed"
    TOO_LARGE = "too_large"
    WRONG_VERSION = "wrong_version"
    WRONG_SENDER = "wrong_sender"
    RESERVED_KIND = "reserved_kind"
    RESERVED_ID = "reserved_id"
    DUPLICATE_ID = "duplicate_id"
    RATE_LIMITED = "rate_limited"
    CAPABILITY_VIOLATION = "capability_violation"
    INVALID_PAYLOAD = "invalid_payload"
    INVALID_CAPABILITY = "invalid_capability"
    GRANT_EXCEEDS_OWN = "grant_exceeds_own"
    UNKNOWN_PARTICIPANT = "unknown_participant"
    UNKNOWN_GRANT = "unknown_grant"
    ALREADY_EXISTS = "already_exists"
    PAUSED = "paused"
    SHUT_DOWN = "shut_down"
    NOT_PROPOSER = "not_proposer"
    UNKNOWN_STREAM = "unknown_stream"
    NOT_STREAM_OWNER = "not_stream_owner"
    UNAUTHORIZED_STREAM_WRITE = "unauthorized_stream_write"
    LIMIT_REACHED = "limit_reached"
    NOT_A_MEMBER = "not_a_member"
    UNAVAILABLE = "unavailable"


class CloseCode(IntEnum):
    """Why the gateway closed a connection: 4000-4499 come back, 4500-4999 do not."""

    SHUTDOWN = 4001
    SLOW_READER = 4008
    JOIN_TIMEOUT = 4009
    UNAVAILABLE = 4010
    SPACE_FULL = 4011
    FLOODING = 4012
    BAD_TOKEN = 4501
    KICKED = 4503
    NO_SUCH_SPACE = 4504
    BAD_JOIN = 4505
    WRONG_VERSION = 4506


class ProtocolError(Exception):
    """The bytes are not what the protocol allows; `refusal` is the code to answer with, `kind` what was attempted."""

    def __init__(self, message: str, refusal: Refusal = Refusal.MALFORMED, kind: str = "") -> None:
        super().__init__(message)
        self.refusal = refusal
        self.kind = kind


class InvalidCapability(ProtocolError):
    """A capability that does not compile: refused where it is written, never while matching."""

    def __init__(self, message: str) -> None:
        super().__init__(message, Refusal.INVALID_CAPABILITY)
