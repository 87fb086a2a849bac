"""Private envelopes that are not journalled: errors and invitation acknowledgements."""

import secrets
import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, Literal

from msgspec import UNSET, Raw
from msgspec.structs import replace

from mew.gateway.auth.tokens import hash_token
from mew.protocol.envelope import GATEWAY, PROTOCOL, Envelope, ParticipantId
from mew.protocol.errors import FRAMES_DROPPED, Refusal
from mew.protocol.json import encode_json
from mew.protocol.kinds import InviteAck, Kind
from mew.space import Decision, Deliver, Entry, IssueInvitation, RefusalDetails, Refuse, Sent, Space

from .ports import RoomEnvironment

__all__ = ["Invitations", "error", "frames_dropped", "invite_ack", "problem", "reply_in"]

_REPLIES: Final = frozenset(
    {Kind.STREAM_OPEN, Kind.STREAM_WRITE_GRANTED, Kind.STREAM_WRITE_REVOKED, Kind.STREAM_TRANSFERRED}
)


def error(
    at: datetime,
    who: ParticipantId,
    space: Space,
    refused: RefusalDetails,
    *,
    envelope_id: str | None,
    kind: str,
) -> Envelope:
    """`system/error` for a refused envelope (§3.8.2)."""
    return _to_one(
        at,
        who,
        Kind.ERROR,
        problem(who, space, refused, kind),
        correlation_id=() if envelope_id is None else (envelope_id,),
    )


def frames_dropped(at: datetime, who: ParticipantId, stream: str, count: int) -> Envelope:
    """`system/error` for a reader of a stream that was too slow; it refuses nothing, so it names no envelope."""
    message = f"you read stream {stream!r} too slowly, and {count} of its frames were dropped"
    payload = {"error": FRAMES_DROPPED, "message": message, "stream_id": stream, "dropped": count}
    return _to_one(at, who, Kind.ERROR, payload, correlation_id=())


def problem(who: ParticipantId, space: Space, refused: RefusalDetails, kind: str) -> dict[str, Any]:
    """Return the error payload of a refusal, for WebSocket and HTTP."""
    payload: dict[str, Any] = {"error": refused.refusal, "message": refused.message}
    if kind:
        payload["attempted_kind"] = kind
    if refused.refusal is Refusal.CAPABILITY_VIOLATION:
        payload["your_capabilities"] = [capability.source for capability in space.held(who)]
    if refused.lacked is not None:
        payload["lacked"] = refused.lacked
    if refused.stream_id is not None:
        payload["stream_id"] = refused.stream_id
    if refused.retry_after_s is not None:
        payload["retry_after_s"] = round(refused.retry_after_s, 3)
    return payload


class Invitations:
    """The tokens of invitations under way: made before they are journalled, because they are random."""

    def __init__(self, space: str, world: RoomEnvironment) -> None:
        self.tokens: dict[str, str] = {}  # by their hash
        self._space = space
        self._world = world

    def make_token(self) -> str:
        """Make a token; return its hash."""
        token = secrets.token_urlsafe(32)
        token_hash = hash_token(token)
        self.tokens[token_hash] = token
        return token_hash

    def forget(self, token_hash: str) -> None:
        self.tokens.pop(token_hash, None)

    def ack(self, entry: Entry, invite: IssueInvitation) -> Envelope | None:
        """The inviter's answer (§3.6.4), for nobody else to see; None: another node made the token, and has it."""
        assert isinstance(entry.event, Sent), f"an invitation from {entry.event}"
        token = self.tokens.get(entry.event.token_hash)
        if token is None:
            return None
        return invite_ack(entry.at, invite, token, self._space, self._world)


def invite_ack(
    at: datetime, invite: IssueInvitation, token: str, space: str, world: RoomEnvironment
) -> Envelope:
    """The inviter's answer; over HTTP and on its connections the same."""
    mail: Literal["sending", "not_configured"] = "sending" if world.sends_mail() else "not_configured"
    ack = InviteAck(
        status="created",
        participant_id=invite.participant,
        token=token,
        connection_url=world.connection_url(space),
        email=UNSET if invite.email is None else mail,
    )
    inviter = ParticipantId(invite.envelope.sender)
    answer = _to_one(at, inviter, Kind.INVITE_ACK, ack, correlation_id=(invite.envelope.id,))
    return replace(answer, id=str(uuid.uuid5(uuid.NAMESPACE_OID, f"{at} {invite.envelope.id}")))


def reply_in(decisions: Sequence[Decision]) -> Envelope | RefusalDetails | None:
    """What the gateway itself answers to an envelope (§3.10.1), for who posted it; or why it was refused after all."""
    for decision in decisions:
        if isinstance(decision, Refuse):
            return decision.refused
        if isinstance(decision, Deliver):
            sender, kind = decision.envelopes.senders[0], decision.envelopes.kinds[0]
            if sender == GATEWAY and kind in _REPLIES:
                return decision.envelopes[0]
    return None


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
