"""One space: `apply` takes the next log entry and returns what must now happen."""

from collections.abc import Callable
from datetime import datetime
from hmac import compare_digest
from typing import Any, Final, NamedTuple, assert_never

from msgspec import Struct

from mew.protocol import kinds
from mew.protocol.capability import AmbiguousPayload, CapabilitySet
from mew.protocol.codec import decode_json, decode_payload
from mew.protocol.envelope import Envelope, EnvelopeId, ParticipantId
from mew.protocol.errors import CloseCode, ProtocolError, Refusal
from mew.protocol.kinds import Kind

from . import grants, holdings, members, pauses, presence, proposals, streams
from .decisions import Decision, Deliver, Refuse, Refused, WakeAt
from .entries import Configured, Entry, Identified, Joined, Left, Sent, TimePassed, Violated
from .state import GATEWAY_ID_PREFIX, SpaceState, signed

__all__ = ["CHANGING_KINDS", "RECENT_IDS", "Space"]

RECENT_IDS: Final = 65_536


class _Rule(NamedTuple):
    """A kind the gateway acts on: its payload, what may refuse it, and what it does once accepted."""

    shape: type[Struct]
    check: Callable[[SpaceState, datetime, Envelope, Any], Refused | None] | None
    act: Callable[[SpaceState, Entry, Sent, Any], list[Decision]] | None


_RULES: Final = {
    Kind.GRANT: _Rule(kinds.Grant, grants.check_grant, grants.grant),
    Kind.REVOKE: _Rule(kinds.Revoke, grants.check_revoke, grants.revoke),
    Kind.INVITE: _Rule(kinds.Invite, members.check_invite, members.invite),
    Kind.KICK: _Rule(kinds.Kick, members.check_kick, members.kick),
    Kind.PAUSE: _Rule(kinds.Pause, pauses.check_addressed, pauses.pause),
    Kind.RESUME: _Rule(kinds.Reason, None, pauses.resume),
    Kind.SHUTDOWN: _Rule(kinds.Nothing, pauses.check_addressed, pauses.shut_down),
    Kind.MCP_WITHDRAW: _Rule(kinds.Nothing, proposals.check_withdraw, None),
    Kind.STREAM_REQUEST: _Rule(kinds.StreamRequest, streams.check_request, streams.request),
    Kind.STREAM_CLOSE: _Rule(kinds.StreamClose, streams.check_close, streams.close),
    Kind.STREAM_GRANT_WRITE: _Rule(kinds.StreamWriter, streams.check_writer, streams.grant_write),
    Kind.STREAM_REVOKE_WRITE: _Rule(kinds.StreamWriter, streams.check_writer, streams.revoke_write),
    Kind.STREAM_TRANSFER: _Rule(kinds.StreamTransfer, streams.check_transfer, streams.transfer),
}

CHANGING_KINDS: Final = frozenset(kind for kind, rule in _RULES.items() if rule.act is not None)
"""Kinds that can change what the space would say of the next envelope."""


class Space:
    """One space, after the log entries applied so far. The same entries give the same space."""

    def __init__(self, state: SpaceState | None = None) -> None:
        self.state = state if state is not None else SpaceState()

    @property
    def seq(self) -> int:
        return self.state.seq

    def apply(self, entry: Entry) -> list[Decision]:
        """Take the next entry; return what must now happen, in order."""
        state = self.state
        assert entry.seq == state.seq + 1, f"entry {entry.seq} after {state.seq}"
        state.seq = entry.seq
        match entry.event:
            case Sent():
                return self._sent(entry, entry.event)
            case Joined(who, connection, resumed):
                return presence.join(state, entry, who, connection, resumed=resumed)
            case Left(connection):
                return presence.leave(state, entry, connection)
            case Identified(who, capabilities):
                return self._identified(entry, who, capabilities)
            case Violated():
                return self._violated(entry, entry.event)
            case TimePassed():
                pauses.lift_due(state, entry.at)
                return [*grants.expire_due(state, entry), *self._next_wake()]
            case Configured():
                return self._configured(entry, entry.event)
            case _:
                assert_never(entry.event)

    def refusal(self, at: datetime, envelope: Envelope, *, lenient: bool = False) -> Refused | None:
        """Why this envelope would not be accepted now, or None. Asked before the log, and again by `apply`."""
        state = self.state
        who = ParticipantId(envelope.sender)
        if not lenient and envelope.id in state.recent:
            return Refused(Refusal.DUPLICATE_ID, f"an envelope {envelope.id!r} was accepted before")
        if envelope.id.startswith(GATEWAY_ID_PREFIX) and state.epoch in envelope.id:
            return Refused(
                Refusal.RESERVED_ID, f"ids that start with {GATEWAY_ID_PREFIX!r} are the gateway's"
            )
        try:
            if not holdings.held(state, who).fits(envelope.kind, envelope.to, lambda: _payload(envelope)):
                return self._violation(who, envelope.kind)
            if who in state.paused or who in state.shut_down:
                silenced = pauses.silenced(state, at, who, envelope.kind)
                if silenced is not None:
                    return silenced
            rule = _RULES.get(envelope.kind)
            if rule is None:
                return None
            asked = decode_payload(envelope.payload, rule.shape)
            return None if rule.check is None else rule.check(state, at, envelope, asked)
        except (AmbiguousPayload, ProtocolError) as error:
            return Refused(error.refusal, str(error))

    def route(self, at: datetime, writer: ParticipantId, stream_id: str) -> streams.Route | Refused:
        """Where a stream frame of `writer` goes now, or why nowhere."""
        return streams.route(self.state, at, writer, stream_id)

    def held(self, who: ParticipantId) -> CapabilitySet:
        return holdings.held(self.state, who)

    def is_known(self, who: str) -> bool:
        return holdings.is_known(self.state, who)

    def invited(self, token_hash: str) -> ParticipantId | None:
        """Whose token this is, where somebody was invited with it."""
        for who, invitation in self.state.invited.items():
            if compare_digest(invitation.token_hash, token_hash):
                return who
        return None

    def is_barred(self, who: str, token_hash: str) -> bool:
        """Whether `who` was kicked and this is a token from before: those stay dead, also after an invitation."""
        return who in self.state.kicked or token_hash in self.state.dead_tokens

    def _sent(self, entry: Entry, sent: Sent) -> list[Decision]:
        envelope = sent.envelope
        refused = self.refusal(entry.at, envelope, lenient=sent.lenient)
        if refused is not None:
            return [Refuse(sent.who, EnvelopeId(envelope.id), envelope.kind, refused, sent.connection)]
        self._remember(EnvelopeId(envelope.id), sent.who)
        only = None
        if envelope.to and self.state.rules.delivery == "addressed":
            only = tuple(map(ParticipantId, dict.fromkeys((*envelope.to, envelope.sender))))
        shown = Deliver(envelope, sent.raw, only)
        rule = _RULES.get(envelope.kind)
        if rule is None or rule.act is None:
            return [shown]
        asked = decode_payload(envelope.payload, rule.shape)
        return [shown, *rule.act(self.state, entry, sent, asked)]

    def _remember(self, envelope_id: EnvelopeId, who: ParticipantId) -> None:
        recent = self.state.recent
        if envelope_id in recent:
            return  # a lenient sender's: the first stands, so that nobody takes over another's proposal
        recent[envelope_id] = who
        if len(recent) > RECENT_IDS:
            del recent[next(iter(recent))]

    def _violation(self, who: ParticipantId, kind: str) -> Refused:
        if not holdings.is_known(self.state, who):
            return Refused(Refusal.NOT_A_MEMBER, f"{who!r} does not belong to this space")
        return Refused(
            Refusal.CAPABILITY_VIOLATION, f"you lack a capability for this {kind!r}; see 'your_capabilities'"
        )

    def _violated(self, entry: Entry, event: Violated) -> list[Decision]:
        """Tell everyone where the operator asked for it (§5.4, §7.3)."""
        if not self.state.rules.announce_violations:
            return []
        payload = {
            "error": event.refusal,
            "message": f"{event.who!r} was refused: {event.refusal}",
            "participant": event.who,
            "attempted_kind": event.kind,
        }
        cause = (event.envelope_id,) if event.envelope_id else ()
        notice = signed(self.state, entry, 0, kind=Kind.ERROR, payload=payload, correlation_id=cause)
        return [Deliver(notice)]

    def _identified(self, entry: Entry, who: ParticipantId, capabilities: Any) -> list[Decision]:
        self.state.identities[who] = capabilities
        decisions = presence.rewelcome(self.state, entry, 0, who)
        return decisions + grants.settle(self.state, entry, len(decisions), [who])

    def _configured(self, entry: Entry, event: Configured) -> list[Decision]:
        state = self.state
        before = {who: holdings.held(state, who) for who in state.members}
        state.rules, state.epoch = event.rules, event.epoch
        holdings.forget(state)
        decisions: list[Decision] = []
        for who, had in before.items():
            if not holdings.is_known(state, who):
                reason = "no longer in the gateway's configuration"
                decisions += members.remove(state, entry, len(decisions), who, CloseCode.BAD_TOKEN, reason)
            elif holdings.held(state, who) != had:
                decisions += presence.rewelcome(state, entry, len(decisions), who)
        givers = tuple(dict.fromkeys(granted.by for granted in state.grants.values()))
        return decisions + grants.settle(state, entry, len(decisions), givers)

    def _next_wake(self) -> list[Decision]:
        moments = [pause.until for pause in self.state.paused.values() if pause.until is not None]
        moments += [g.expires_at for g in self.state.grants.values() if g.expires_at is not None]
        return [WakeAt(min(moments))] if moments else []


def _payload(envelope: Envelope) -> Any:
    raw = bytes(envelope.payload)
    return decode_json(raw) if raw else None
