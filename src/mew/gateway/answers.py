"""The envelopes that the gateway sends to one alone and that are in no log: refusals and invitations."""

import uuid
from datetime import datetime
from typing import Any

from msgspec import Raw

from mew.protocol.envelope import GATEWAY, PROTOCOL, Envelope, ParticipantId
from mew.protocol.errors import Refusal
from mew.protocol.json import encode_json
from mew.protocol.kinds import InviteAck, Kind
from mew.space import Refused, Space

__all__ = ["error", "invite_ack", "problem"]


def error(
    at: datetime, who: ParticipantId, space: Space, refused: Refused, *, envelope_id: str | None, kind: str
) -> Envelope:
    """`system/error` for a refused envelope (§3.8.2)."""
    return _to_one(
        at,
        who,
        Kind.ERROR,
        problem(who, space, refused, kind),
        correlation_id=() if envelope_id is None else (envelope_id,),
    )


def problem(who: ParticipantId, space: Space, refused: Refused, kind: str) -> dict[str, Any]:
    """What a refusal says, over WebSocket and HTTP alike."""
    payload: dict[str, Any] = {"error": refused.refusal, "message": refused.message}
    if kind:
        payload["attempted_kind"] = kind
    if refused.refusal is Refusal.CAPABILITY_VIOLATION:
        payload["your_capabilities"] = [capability.source for capability in space.held(who)]
    if refused.lacked is not None:
        payload["lacked"] = refused.lacked
    if refused.retry_after_s is not None:
        payload["retry_after_s"] = round(refused.retry_after_s, 3)
    return payload


def invite_ack(at: datetime, invite: Envelope, made: InviteAck) -> Envelope:
    """The inviter's answer (§3.6.4), for nobody else to see."""
    return _to_one(at, ParticipantId(invite.sender), Kind.INVITE_ACK, made, correlation_id=(invite.id,))


def _to_one(
    at: datetime, who: ParticipantId, kind: str, payload: Any, *, correlation_id: tuple[str, ...]
) -> Envelope:
    return Envelope(
        protocol=PROTOCOL,
        id=str(uuid.uuid4()),
        ts=at,
        sender=GATEWAY,
        to=(who,),
        kind=kind,
        correlation_id=correlation_id,
        payload=Raw(encode_json(payload)),
    )
