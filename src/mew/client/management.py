"""Manage a space (§3.6: grant, revoke, invite, kick) and control other participants (§3.9)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal, TypeVar

from msgspec import UNSET, UnsetType

from mew.protocol.capability import Capability
from mew.protocol.envelope import GATEWAY, Envelope, EnvelopeId, ParticipantId
from mew.protocol.kinds import (
    Acknowledgement,
    Compact,
    CompactDone,
    EmptyPayload,
    Forget,
    Grant,
    Invite,
    InviteAck,
    Kick,
    Kind,
    Pause,
    ReasonPayload,
    RequestStatus,
    Revoke,
)

from .connection.connection import ClientConnection
from .connection.reply import answered, awaiting, gone
from .errors import Absent, Unanswered

__all__ = [
    "IssuedGrant",
    "IssuedInvitation",
    "Management",
    "ParticipantControl",
    "Written",
    "acknowledge_grants",
]

Written = str | Mapping[str, Any] | Capability
"""A capability as people write it: an object, or the shorthand `mcp/request:tools/call:read_*`."""

_GATEWAY_S: Final = 10.0  # what the gateway itself says or does; ours takes milliseconds


@dataclass(frozen=True)
class IssuedGrant:
    """A grant that is in force; `id` is what `revoke` takes as `grant_id`."""

    id: EnvelopeId
    recipient: ParticipantId
    capabilities: tuple[dict[str, Any], ...]
    acknowledged: bool
    """Whether the recipient has said so (§3.6.3); the grant holds either way."""


@dataclass(frozen=True)
class IssuedInvitation:
    """An invitation; its token is shown to the inviter alone, here and never again."""

    participant_id: ParticipantId
    token: str = field(repr=False)
    connection_url: str
    email: str | None
    """What becomes of the mail: `sending`, `not_configured`, or None where no address was given."""


class Management:
    """What one may do to the space and to who is in it, as far as one's capabilities go."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection

    async def grant(
        self,
        recipient: str,
        *capabilities: Written,
        reason: str | None = None,
        ttl_s: float | None = None,
        expires_at: datetime | None = None,
        ack_within_s: float = 5.0,
    ) -> IssuedGrant:
        """Give capabilities, for good, for a time or until a moment; none that one does not hold (§3.6.6).

        Returns once the recipient has acknowledged, has left, or has not answered within `ack_within_s`; at once
        where it is not here now.

        Raises:
            ValueError: there are no capabilities.
            InvalidCapability: one of them does not compile; nothing was sent.
            Refused: the gateway said no.
        """
        if not capabilities:
            raise ValueError(f"nothing to grant to {recipient!r}")
        given = _compiled(capabilities)
        payload = Grant(
            recipient=recipient,
            capabilities=list(given),
            reason=UNSET if reason is None else reason,
            ttl_seconds=UNSET if ttl_s is None else ttl_s,
            expires_at=UNSET if expires_at is None else expires_at,
        )
        connection = self._connection
        envelope = connection.compose(Kind.GRANT, payload, to=[recipient])

        def look(seen: Envelope, payload: Any) -> bool | None:
            if isinstance(payload, Acknowledgement) and seen.kind == Kind.GRANT_ACK:
                return True if seen.sender == recipient and envelope.id in seen.correlation_id else None
            return False if gone(connection, recipient) else None

        with awaiting(connection, look) as answer:
            await connection.send(envelope)
            acknowledged = False
            if not gone(connection, recipient):
                try:
                    acknowledged = await answered(answer, ack_within_s, "no acknowledgement")
                except Unanswered:
                    acknowledged = False
        return IssuedGrant(EnvelopeId(envelope.id), ParticipantId(recipient), given, acknowledged)

    async def revoke(
        self,
        recipient: str,
        *capabilities: Written,
        grant_id: str | None = None,
        reason: str | None = None,
    ) -> Envelope:
        """Take back one grant, or everything inside the capabilities named, whoever gave it; in force on return.

        Raises:
            ValueError: neither or both of them were named.
            InvalidCapability: one of them does not compile; nothing was sent.
            Refused: the gateway said no.
        """
        if (grant_id is None) == (not capabilities):
            raise ValueError("revoke takes either capabilities or a grant_id")
        payload = Revoke(
            recipient=recipient,
            grant_id=UNSET if grant_id is None else grant_id,
            capabilities=list(_compiled(capabilities)) if capabilities else UNSET,
            reason=UNSET if reason is None else reason,
        )
        return await self._connection.send(self._connection.compose(Kind.REVOKE, payload))

    async def invite(
        self,
        participant_id: str,
        *capabilities: Written,
        email: str | None = None,
        reason: str | None = None,
    ) -> IssuedInvitation:
        """Let somebody new into the space, with these capabilities to begin with.

        Raises:
            InvalidCapability: one of them does not compile; nothing was sent.
            Refused: the gateway said no.
            Unanswered: accepted, but the token did not reach us; kick and invite again for a new one.
        """
        payload = Invite(
            participant_id=participant_id,
            initial_capabilities=list(_compiled(capabilities)),
            email=UNSET if email is None else email,
            reason=UNSET if reason is None else reason,
        )
        connection = self._connection
        envelope = connection.compose(Kind.INVITE, payload)

        def look(seen: Envelope, payload: Any) -> InviteAck | None:
            ours = isinstance(payload, InviteAck) and seen.sender == GATEWAY
            return payload if ours and envelope.id in seen.correlation_id else None

        with awaiting(connection, look) as answer:
            await connection.send(envelope)
            ack = await answered(answer, _GATEWAY_S, f"{participant_id!r} is invited, but no token came")
        mail = None if ack.email is UNSET else ack.email
        return IssuedInvitation(ParticipantId(ack.participant_id), ack.token, ack.connection_url, mail)

    async def kick(self, participant_id: str, *, reason: str | None = None) -> Envelope:
        """Remove somebody; returns once its leaving was seen, at once where it is not here now.

        Raises:
            Refused: the gateway said no.
            Unanswered: accepted, but nobody left.
        """
        connection = self._connection
        payload = Kick(participant_id=participant_id, reason=UNSET if reason is None else reason)
        envelope = connection.compose(Kind.KICK, payload)

        def look(seen: Envelope, payload: Any) -> bool | None:
            return True if gone(connection, participant_id) else None

        with awaiting(connection, look) as left:
            await connection.send(envelope)
            if participant_id != connection.session.me and not gone(connection, participant_id):
                await answered(left, _GATEWAY_S, f"{participant_id!r} was kicked, and did not leave")
        return envelope


def acknowledge_grants(connection: ClientConnection) -> None:
    """From now on, answer each grant to oneself with `capability/grant-ack` (§3.6.3), where one may."""
    accepted = Acknowledgement(status="accepted")

    def listen(envelope: Envelope, payload: Any) -> None:
        session = connection.session
        if not isinstance(payload, Grant) or payload.recipient != session.me:
            return
        to = (envelope.sender,)
        if session.may(Kind.GRANT_ACK, to, {"status": "accepted"}):
            ack = connection.compose(Kind.GRANT_ACK, accepted, to=to, correlation_id=[envelope.id])
            connection.post(ack)

    connection.listen(listen, (Kind.GRANT,))


def _compiled(capabilities: Iterable[Written]) -> tuple[dict[str, Any], ...]:
    """In the form of §4.1, which every gateway reads."""
    return tuple(
        (written if isinstance(written, Capability) else Capability.parse(written)).source
        for written in capabilities
    )


Field = TypeVar("Field")

_PAUSED_MAX: Final = 1_024
_PAUSES_MAX: Final = 32


class ParticipantControl:
    """All of these raise `Refused` where the gateway says no, which it does where one's capabilities do not reach."""

    def __init__(self, connection: ClientConnection) -> None:
        """From here on, the pauses of everyone are known."""
        self._connection = connection
        self._pauses: dict[str, tuple[str, ...]] = {}
        connection.listen(self._listen, (Kind.PAUSE, Kind.RESUME))

    async def pause(self, who: str, *, timeout_s: float | None = None, reason: str | None = None) -> Envelope:
        """Stop `who` from sending (§3.9.1): until somebody resumes it, or for `timeout_s`."""
        return await self._tell(
            Kind.PAUSE, who, Pause(reason=_given(reason), timeout_seconds=_given(timeout_s))
        )

    async def resume(self, who: str, *, reason: str | None = None) -> Envelope:
        """Lift the pause of `who`, naming those that it lifts where we saw them (§3.9.2)."""
        pauses = self._pauses.get(who, ())
        return await self._tell(Kind.RESUME, who, ReasonPayload(reason=_given(reason)), correlation_id=pauses)

    async def request_status(
        self, who: str, *, fields: Sequence[str] | None = None, timeout_s: float = 5.0
    ) -> dict[str, Any]:
        """What `who` says of itself (§3.9.4): `messages_in_context`, and whatever else it measures.

        Raises:
            Absent: it is not here, or has left.
            Unanswered: it did not say within `timeout_s`.
        """
        asked = RequestStatus(fields=UNSET if fields is None else list(fields))
        answer = await self._ask(Kind.REQUEST_STATUS, who, asked, Kind.STATUS, timeout_s)
        return answer.content

    async def forget(
        self, who: str, direction: Literal["oldest", "newest"], entries: int | None = None
    ) -> Envelope:
        """Have `who` drop the oldest or newest of what it remembers (§3.9.5).

        Raises:
            ValueError: the direction is neither.
        """
        if direction not in ("oldest", "newest"):
            raise ValueError(f"the direction is 'oldest' or 'newest', not {direction!r}")
        return await self._tell(Kind.FORGET, who, Forget(direction=direction, entries=_given(entries)))

    async def compact(
        self,
        who: str,
        *,
        target_tokens: int | None = None,
        reason: str | None = None,
        timeout_s: float = 60.0,
    ) -> CompactDone:
        """Have `who` make room in its memory (§3.9.6); returns once it is done, or was skipped.

        Raises:
            Absent: it is not here, or has left.
            Unanswered: it was not done within `timeout_s`; who has nothing to compact may ignore it.
        """
        asked = Compact(reason=_given(reason), target_tokens=_given(target_tokens))
        answer = await self._ask(Kind.COMPACT, who, asked, Kind.COMPACT_DONE, timeout_s)
        return answer.read(CompactDone)

    async def clear(self, who: str) -> Envelope:
        """Have `who` forget everything (§3.9.8)."""
        return await self._tell(Kind.CLEAR, who, EmptyPayload())

    async def restart(self, who: str) -> Envelope:
        """Have `who` begin again as it was configured (§3.9.9)."""
        return await self._tell(Kind.RESTART, who, EmptyPayload())

    async def shutdown(self, who: str, *, timeout_s: float = 10.0) -> Envelope:
        """Have `who` cease (§3.9.10); returns once it acknowledged or left, at once where it is not here now.

        Raises:
            Unanswered: it did neither within `timeout_s`; nothing it sends passes the gateway any more.
        """
        connection = self._connection
        envelope = connection.compose(Kind.SHUTDOWN, EmptyPayload(), to=[who])

        def look(seen: Envelope, payload: Any) -> bool | None:
            if gone(connection, who):
                return True
            return True if _answers(seen, Kind.CHAT_ACKNOWLEDGE, who, envelope) else None

        with awaiting(connection, look) as answer:
            await connection.send(envelope)
            if not gone(connection, who):
                await answered(answer, timeout_s, f"{who!r} neither acknowledged its shutdown nor left")
        return envelope

    async def _tell(
        self, kind: str, who: str, payload: Any, *, correlation_id: Sequence[str] = ()
    ) -> Envelope:
        connection = self._connection
        return await connection.send(
            connection.compose(kind, payload, to=[who], correlation_id=correlation_id)
        )

    async def _ask(self, kind: str, who: str, payload: Any, wanted: str, timeout_s: float) -> Envelope:
        connection = self._connection
        envelope = connection.compose(kind, payload, to=[who])

        def look(seen: Envelope, payload: Any) -> Envelope | None:
            if gone(connection, who):
                raise Absent(f"{who!r} has left")
            return seen if _answers(seen, wanted, who, envelope) else None

        if gone(connection, who):
            raise Absent(f"{who!r} is not in the space")
        with awaiting(connection, look) as answer:
            await connection.send(envelope)
            return await answered(answer, timeout_s, f"no {wanted} of {who!r}")

    def _listen(self, envelope: Envelope, payload: Any) -> None:
        if envelope.kind == Kind.PAUSE:
            for who in envelope.to:
                before = self._pauses.pop(who, ())
                self._pauses[who] = (*before, envelope.id)[-_PAUSES_MAX:]
            while len(self._pauses) > _PAUSED_MAX:
                del self._pauses[next(iter(self._pauses))]
        elif envelope.kind == Kind.RESUME:
            named = set(envelope.correlation_id)
            lifted = envelope.to or (who for who, pauses in self._pauses.items() if named & set(pauses))
            for who in tuple(lifted):
                self._pauses.pop(who, None)


def _answers(seen: Envelope, kind: str, who: str, asked: Envelope) -> bool:
    return seen.kind == kind and seen.sender == who and asked.id in seen.correlation_id


def _given(value: Field | None) -> Field | UnsetType:
    return UNSET if value is None else value
