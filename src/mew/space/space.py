"""One space: `apply` takes the next log entry and returns what must now happen."""

from collections.abc import Callable, Mapping
from datetime import datetime
from hmac import compare_digest
from typing import Any, Final, NamedTuple, assert_never

from msgspec import Struct

from mew.protocol import kinds
from mew.protocol.capability import AmbiguousPayload, Capability, CapabilitySet, short_form
from mew.protocol.envelope import Envelope, EnvelopeId, ParticipantId
from mew.protocol.errors import CloseCode, ProtocolError, Refusal
from mew.protocol.json import decode_json, decode_payload
from mew.protocol.kinds import Kind

from . import grants, holdings, members, pauses, presence, proposals, streams
from .decisions import Decision, Deliver, Refuse, Refused, WakeAt
from .entries import (
    Configured,
    Connection,
    Entry,
    Event,
    Identified,
    Joined,
    Left,
    Sent,
    TimePassed,
    Violated,
)
from .state import GATEWAY_ID_PREFIX, SpaceState, is_gateway_id, signed

__all__ = ["CHANGING_KINDS", "RECENT_IDS", "Space", "Standing"]

RECENT_IDS: Final = 65_536
_FREE_KINDS_MAX: Final = 64


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


class Standing(NamedTuple):
    """By what an envelope is plain: who may send which kinds, ids that were used, whose each connection is.

    `addressed`: it is shown to whom it is for and to nobody else.
    """

    free: dict[str, set[str]]
    recent: dict[str, str]
    connections: dict[Connection, ParticipantId]
    addressed: bool


class Space:
    """One space, after the log entries applied so far. The same entries give the same space."""

    __slots__ = ("_free", "_standing", "state")

    def __init__(self, state: SpaceState | None = None) -> None:
        self.state = state if state is not None else SpaceState()
        # By sender, the kinds that need no second look; forgotten whenever something changes.
        self._free: dict[str, set[str]] = {}
        self._standing = self._stand()

    @property
    def seq(self) -> int:
        return self.state.seq

    def apply(self, entry: Entry) -> list[Decision]:
        """Take the next entry; return what must now happen, in order."""
        state = self.state
        assert entry.seq == state.seq + 1, f"entry {entry.seq} after {state.seq}"
        state.seq = entry.seq
        state.made = 0
        event = entry.event
        if state.expires_next is not None and state.expires_next <= entry.at:
            self._free.clear()
            return [*grants.expire_due(state, entry), *self._apply(entry, event)]
        return self._sent(entry, event) if type(event) is Sent else self._apply(entry, event)

    def _apply(self, entry: Entry, event: Event) -> list[Decision]:
        state = self.state
        self._free.clear()
        match event:
            case Sent():
                return self._sent(entry, event)
            case Joined(who, connection, resumed):
                return presence.join(state, entry, who, connection, resumed=resumed)
            case Left(connection):
                return presence.leave(state, entry, connection)
            case Identified(who, capabilities):
                return self._identified(entry, who, capabilities)
            case Violated():
                return self._violated(entry, event)
            case TimePassed():
                pauses.lift_due(state, entry.at)
                return self._next_wake()
            case Configured():
                return self._configured(entry, event)
            case _:
                assert_never(event)

    def refusal(self, at: datetime, envelope: Envelope, *, lenient: bool = False) -> Refused | None:
        """Why this envelope would not be accepted now, or None. Asked before the log, and again by `apply`.

        None also where a grant ends at this moment: the log takes it back first, and then decides.
        """
        state, envelope_id = self.state, envelope.id
        if state.expires_next is not None and state.expires_next <= at:
            return None
        if not lenient and envelope_id in state.recent:
            return Refused(Refusal.DUPLICATE_ID, f"an envelope {envelope_id!r} was accepted before")
        if envelope_id.startswith(GATEWAY_ID_PREFIX) and is_gateway_id(envelope_id):
            return Refused(Refusal.RESERVED_ID, f"an id like {envelope_id[:64]!r} is the gateway's to give")
        if envelope.kind in self._free.get(envelope.sender, ()):
            return None
        return self._refusal_of_kind(at, envelope)

    def is_plain(self, at: datetime, envelope: Envelope, connection: Connection | None) -> bool:
        """Whether this is one of many that its sender may send and that nothing follows from: then `refusal` is None.

        False says nothing: `refusal` does.
        """
        state, sender, envelope_id = self.state, envelope.sender, envelope.id
        free = self._free.get(sender)
        return (
            free is not None
            and envelope.kind in free
            and envelope_id not in state.recent
            and (state.expires_next is None or at < state.expires_next)
            and not envelope_id.startswith(GATEWAY_ID_PREFIX)
            and (connection is None or state.connections.get(connection) == sender)
        )

    def standing(self, at: datetime) -> Standing | None:
        """What tells those apart for which `is_plain`, as long as no other is taken; None where a grant ends now."""
        state = self.state
        return None if state.expires_next is not None and state.expires_next <= at else self._standing

    def _stand(self) -> Standing:
        state = self.state
        return Standing(self._free, state.recent, state.connections, state.rules.delivery == "addressed")

    def take_plain(self, first: int, said: Mapping[str, ParticipantId]) -> None:
        """What `apply` does with entries that have such envelopes and nothing else to them: ids, and who sent each."""
        state = self.state
        assert first == state.seq + 1, f"entry {first} after {state.seq}"
        state.seq += len(said)
        recent, order = state.recent, state.recent_order
        recent.update(said)
        order.extend(said)
        while len(recent) > RECENT_IDS:
            del recent[order.popleft()]

    def _refusal_of_kind(self, at: datetime, envelope: Envelope) -> Refused | None:
        state = self.state
        who = ParticipantId(envelope.sender)
        try:
            if not holdings.held(state, who).fits(envelope.kind, envelope.to, lambda: _payload(envelope)):
                return self._violation(who, envelope)
            if who in state.paused or who in state.shut_down:
                silenced = pauses.silenced(state, at, who, envelope.kind)
                if silenced is not None:
                    return silenced
            rule = _RULES.get(envelope.kind)
            if rule is None:
                self._remember_free(who, envelope.kind)
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

    def receivers(self, envelope: Envelope) -> tuple[ParticipantId, ...] | None:
        """Who is shown this; None: everyone."""
        if not envelope.to or self.state.rules.delivery != "addressed":
            return None
        return tuple(map(ParticipantId, dict.fromkeys((*envelope.to, envelope.sender))))

    def connections_of(self, participants: tuple[ParticipantId, ...]) -> list[Connection]:
        """All their connections, those of each in the order they came. Nobody may be named twice."""
        connected = self.state.connected
        found: list[Connection] = []
        for who in participants:
            found += connected.get(who, ())
        return found

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
        state, envelope, connection = self.state, sent.envelope, sent.connection
        if self.is_plain(entry.at, envelope, connection):
            self._remember(envelope.id, envelope.sender)
            return [Deliver(envelope, sent.raw, self.receivers(envelope))]
        refused = self.refusal(entry.at, envelope, lenient=sent.lenient)
        if connection is not None and state.connections.get(connection) != envelope.sender:
            refused = Refused(Refusal.NOT_A_MEMBER, "this connection is no longer in the space")
        if refused is not None:
            envelope_id = EnvelopeId(envelope.id)
            told = Refuse(sent.who, envelope_id, envelope.kind, refused, sent.connection)
            if refused.refusal is Refusal.DUPLICATE_ID:
                return [told]
            return [
                told,
                *self._violated(entry, Violated(sent.who, envelope_id, envelope.kind, refused.refusal)),
            ]
        if not sent.lenient or envelope.id not in state.recent:
            # where a lenient sender uses an id again the first stands, so that nobody takes over another's proposal
            self._remember(envelope.id, envelope.sender)
        shown = Deliver(envelope, sent.raw, self.receivers(envelope))
        rule = _RULES.get(envelope.kind)
        if rule is None or rule.act is None:
            return [shown]
        self._free.clear()
        asked = decode_payload(envelope.payload, rule.shape)
        return [shown, *rule.act(state, entry, sent, asked)]

    def _remember_free(self, who: ParticipantId, kind: str) -> None:
        """The kind alone allowed it, so it will allow the next one too."""
        state = self.state
        if who in state.paused or who in state.shut_down or not holdings.held(state, who).allows(kind):
            return
        free = self._free.setdefault(who, set())
        if len(free) < _FREE_KINDS_MAX:  # kinds are the sender's to make up
            free.add(kind)

    def _remember(self, envelope_id: str, who: str) -> None:
        state = self.state
        state.recent[envelope_id] = who
        state.recent_order.append(envelope_id)
        if len(state.recent) > RECENT_IDS:
            del state.recent[state.recent_order.popleft()]

    def _violation(self, who: ParticipantId, envelope: Envelope) -> Refused:
        if not holdings.is_known(self.state, who):
            return Refused(Refusal.NOT_A_MEMBER, f"{who!r} does not belong to this space")
        try:
            lacked = short_form(envelope.kind, _payload(envelope))
        except ProtocolError:  # a number no reader takes
            lacked = envelope.kind
        message = f"you lack a capability such as {lacked!r}; see 'your_capabilities'"
        return Refused(Refusal.CAPABILITY_VIOLATION, message, lacked=lacked)

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
        notice = signed(self.state, entry, kind=Kind.ERROR, payload=payload, correlation_id=cause)
        return [Deliver(notice)]

    def _identified(
        self, entry: Entry, who: ParticipantId, capabilities: tuple[Capability, ...] | None
    ) -> list[Decision]:
        if capabilities is None:
            self.state.identities.pop(who, None)
        else:
            self.state.identities[who] = capabilities
        holdings.cut_again(self.state, [who])
        return grants.settle(self.state, entry, [who])

    def _configured(self, entry: Entry, event: Configured) -> list[Decision]:
        state = self.state
        before = {who: holdings.held(state, who) for who in state.members}
        named = [who for who in state.rules.profiles if holdings.is_known(state, who)]
        state.rules, state.epoch = event.rules, event.epoch
        self._standing = self._stand()
        holdings.forget(state)
        decisions: list[Decision] = []
        for who in named:  # connected or not: who comes back later starts afresh
            if not holdings.is_known(state, who):
                reason = "no longer in the gateway's configuration"
                decisions += members.remove(state, entry, who, CloseCode.BAD_TOKEN, reason)
        holdings.cut_again(state, tuple(state.cuts))
        notices, _ = grants.take_back(state, entry, [granted.by for granted in state.grants.values()])
        decisions += notices
        for who, had in before.items():
            if who in state.members and holdings.held(state, who) != had:
                decisions += presence.rewelcome(state, entry, who)
        return decisions + self._next_wake()

    def _next_wake(self) -> list[Decision]:
        moments = [pause.until for pause in self.state.paused.values() if pause.until is not None]
        moments += [g.expires_at for g in self.state.grants.values() if g.expires_at is not None]
        return [WakeAt(min(moments))] if moments else []


def _payload(envelope: Envelope) -> Any:
    raw = bytes(envelope.payload)
    return decode_json(raw) if raw else None
