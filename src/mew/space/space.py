"""One space: `judge` decides whether envelopes are accepted; `apply` applies the next log entry."""

from collections.abc import Callable
from datetime import datetime
from hmac import compare_digest
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias, assert_never

from msgspec import Struct

from mew.protocol import kinds
from mew.protocol.capability import AmbiguousPayload, Capability, CapabilitySet, PathWork, short_form
from mew.protocol.envelope import Envelope, EnvelopeId, ParticipantId, similar_id
from mew.protocol.envelopes import Envelopes
from mew.protocol.errors import CloseCode, ProtocolError, Refusal
from mew.protocol.json import decode_payload
from mew.protocol.kinds import Kind
from mew.protocol.payload import LARGE_BYTES, Payload

from . import grants, holdings, members, pauses, presence, proposals, streams
from .decisions import Audiences, Decision, Deliver, RefusalDetails, Refuse, WakeAt
from .entries import (
    Configured,
    ConnectionId,
    Entry,
    Event,
    Identified,
    Joined,
    Left,
    NodeLeft,
    Sent,
    Submission,
    TimePassed,
    Violated,
)
from .state import GATEWAY_ID_PREFIX, SpaceState, is_gateway_id, signed

__all__ = ["RECENT_IDS", "Judgement", "KindRule", "Space"]

RECENT_IDS: Final = 65_536
_FREE_MAX: Final = 16_384


class KindRule(NamedTuple):
    """A kind the space acts on: its payload, what may refuse it, and what it does once accepted."""

    shape: type[Struct]
    check: Callable[[SpaceState, datetime, Envelope, Any], RefusalDetails | None] | None
    act: Callable[[SpaceState, Entry, Submission, Any], list[Decision]] | None


Judgement: TypeAlias = tuple[int, RefusalDetails | None]
"""How many envelopes are accepted, from the first on, and why the next one is not.

Without a refusal either all are, or the last that is accepted changes the state: the rest must be judged after it.
"""


class Space:
    """One space, after the log entries applied so far. The same entries give the same space."""

    RULES: ClassVar[dict[str, KindRule]] = {
        Kind.GRANT: KindRule(kinds.Grant, grants.check_grant, grants.grant),
        Kind.REVOKE: KindRule(kinds.Revoke, grants.check_revoke, grants.revoke),
        Kind.INVITE: KindRule(kinds.Invite, members.check_invite, members.invite),
        Kind.KICK: KindRule(kinds.Kick, members.check_kick, members.kick),
        Kind.PAUSE: KindRule(kinds.Pause, pauses.check_addressed, pauses.pause),
        Kind.RESUME: KindRule(kinds.ReasonPayload, None, pauses.resume),
        Kind.SHUTDOWN: KindRule(kinds.EmptyPayload, pauses.check_addressed, pauses.shut_down),
        Kind.MCP_WITHDRAW: KindRule(kinds.EmptyPayload, proposals.check_withdraw, None),
        Kind.STREAM_REQUEST: KindRule(kinds.StreamRequest, streams.check_request, streams.request),
        Kind.STREAM_CLOSE: KindRule(kinds.StreamClose, streams.check_close, streams.close),
        Kind.STREAM_GRANT_WRITE: KindRule(kinds.StreamWriter, streams.check_writer, streams.grant_write),
        Kind.STREAM_REVOKE_WRITE: KindRule(kinds.StreamWriter, streams.check_writer, streams.revoke_write),
        Kind.STREAM_TRANSFER: KindRule(kinds.StreamTransfer, streams.check_transfer, streams.transfer),
    }

    __slots__ = ("_free", "path_visits", "state")

    def __init__(self, state: SpaceState | None = None) -> None:
        self.state = state if state is not None else SpaceState()
        # Senders and kinds that need no closer look until the state changes: allowed by the kind alone, with no rule.
        self._free: set[tuple[str, str]] = set()
        self.path_visits: dict[str, int] = {}
        """What `judge` spent on JSONPaths by sender, for the caller to charge to them and to clear."""

    @property
    def seq(self) -> int:
        return self.state.seq

    # Judging: looks, and changes nothing.

    def judge(self, at: datetime, envelopes: Envelopes, lenient: bool = False) -> Judgement:  # noqa: FBT001, FBT002
        """Whether these are accepted, one after the other, as the space is now.

        Ends at the first that is refused, and after one that changes the state. The connection that an envelope came
        over must be in the space, and no grant may be due to expire (`is_due`).
        """
        ids, free = envelopes.ids, self._free
        if (
            not lenient
            and self.state.recent.keys().isdisjoint(ids)
            and (len(ids) == 1 or len(set(ids)) == len(ids))
            and GATEWAY_ID_PREFIX not in "".join(ids)  # else one of them may begin with it
        ):
            for pair in zip(envelopes.senders, envelopes.kinds, strict=True):
                if pair not in free:
                    break
            else:
                return len(ids), None
        accepted: dict[str, str] = {}
        for place, envelope_id in enumerate(ids):
            sender, kind = envelopes.senders[place], envelopes.kinds[place]
            refused = self._refusal_of_id(envelope_id, sender, accepted, lenient=lenient)
            if refused is None and (sender, kind) not in free:
                refused = self._refusal_of_kind(at, envelopes, place)
            if refused is not None:
                return place, refused
            accepted[envelope_id] = sender
            if self.changes_state(kind):
                return place + 1, None
        return len(ids), None

    def changes_state(self, kind: str) -> bool:
        """Whether an envelope of this kind can change what the space would say of the next one."""
        rule = self.RULES.get(kind)
        return rule is not None and rule.act is not None

    def is_due(self, at: datetime) -> bool:
        """Whether a grant has expired that is still there: `TimePassed` ends it."""
        expires = self.state.expires_next
        return expires is not None and expires <= at

    def _refusal_of_id(
        self, envelope_id: str, sender: str, accepted: dict[str, str], *, lenient: bool
    ) -> RefusalDetails | None:
        """An id belongs to whoever used it first; a lenient sender may use its own again."""
        owner = self.state.recent.get(envelope_id) or accepted.get(envelope_id)
        if owner is not None and not (lenient and owner == sender):
            return RefusalDetails(Refusal.DUPLICATE_ID, f"an envelope {envelope_id!r} was accepted before")
        if envelope_id.startswith(GATEWAY_ID_PREFIX) and is_gateway_id(envelope_id):
            return RefusalDetails(
                Refusal.RESERVED_ID, f"an id like {envelope_id[:64]!r} is the gateway's to give"
            )
        return None

    def _refusal_of_kind(self, at: datetime, envelopes: Envelopes, place: int) -> RefusalDetails | None:
        """Decided from the header where that is enough: a large payload is not decoded to be refused."""
        state = self.state
        who, kind, raw = (
            ParticipantId(envelopes.senders[place]),
            envelopes.kinds[place],
            envelopes.raws[place],
        )
        if kind.startswith(kinds.RESERVED_PREFIX):
            return RefusalDetails(Refusal.RESERVED_KIND, f"{kind} is reserved for the gateway")
        work = PathWork()
        try:
            payload = Payload(raw)
            header = payload.header if len(raw) >= LARGE_BYTES else None
            fits = holdings.held(state, who).fits(kind, envelopes.to[place], payload, work, header)
            if work.spent:
                self.path_visits[who] = self.path_visits.get(who, 0) + work.spent
            if not fits:
                return self._violation(who, kind, raw)
            if who in state.paused or who in state.shut_down:
                silenced = pauses.silenced(state, at, who, kind)
                if silenced is not None:
                    return silenced
            rule = self.RULES.get(kind)
            if rule is None:
                self._remember_free(who, kind)
                return None
            envelope = envelopes[place]
            asked = decode_payload(envelope.payload, rule.shape)
            return None if rule.check is None else rule.check(state, at, envelope, asked)
        except (AmbiguousPayload, ProtocolError) as error:
            return RefusalDetails(error.refusal, str(error))

    def _remember_free(self, who: ParticipantId, kind: str) -> None:
        """The kind alone allowed it, so it will allow the next one too."""
        state = self.state
        if who in state.paused or who in state.shut_down or not holdings.held(state, who).allows(kind):
            return
        if len(self._free) < _FREE_MAX:  # kinds are the sender's to make up
            self._free.add((who, kind))

    def _violation(self, who: ParticipantId, kind: str, raw: bytes) -> RefusalDetails:
        if not holdings.is_known(self.state, who):
            return RefusalDetails(Refusal.NOT_A_MEMBER, f"{who!r} does not belong to this space")
        lacked = short_form(kind, Payload(raw).header())
        message = f"you lack a capability such as {lacked!r}; see 'your_capabilities'"
        return RefusalDetails(Refusal.CAPABILITY_VIOLATION, message, lacked=lacked)

    # Applying: changes, and refuses nothing that was judged against this state.

    def apply(self, entry: Entry) -> list[Decision]:
        """Take the next entry; return what must now happen, in order."""
        state, event = self.state, entry.event
        assert entry.seq == state.seq + 1, f"entry {entry.seq} after {state.seq}"
        state.made = 0
        if state.expires_next is not None and state.expires_next <= entry.at:
            expired = grants.expire_due(state, entry)
            if expired:
                state.seq = entry.seq
                self._changed(entry.seq)
                return [*self._happened(entry, event), *expired]
        if type(event) is Sent:
            return self._sent(entry, event)
        return self._happened(entry, event)

    def _sent(self, entry: Entry, sent: Sent) -> list[Decision]:
        """A batch: accepted as it was judged, unless the state has changed since, or an id was used."""
        state, envelopes = self.state, sent.envelopes
        ids, recent = envelopes.ids, state.recent
        if sent.judged_at != state.changed_at or sent.lenient or not recent.keys().isdisjoint(ids):
            return self._judged_at_its_place(entry, sent)
        state.seq += entry.size
        order = state.recent_order
        recent.update(zip(ids, envelopes.senders, strict=True))
        order.extend(ids)
        while len(recent) > RECENT_IDS:
            del recent[order.popleft()]
        only = self._audiences(envelopes) if state.rules.delivery == "addressed" else None
        rule = self.RULES.get(envelopes.kinds[-1])
        if rule is None or rule.act is None:
            return [Deliver(envelopes, only)]
        return [Deliver(envelopes, only), *self._act(Entry(state.seq, entry.at, sent), sent, entry.size - 1)]

    def _judged_at_its_place(self, entry: Entry, sent: Sent) -> list[Decision]:
        """What was judged before the state changed, or not at all, is judged one by one: this answer counts.

        What the gateway says because of it follows on all of them, as it does in the journal.
        """
        state = self.state
        decisions: list[Decision] = []
        said: list[Decision] = []
        for place in range(len(sent.envelopes)):
            state.seq, state.made = entry.seq + place, state.made if place == 0 else 0
            one, origin = sent.envelopes.part(place, place + 1), sent.origins[place]
            _, refused = self.judge(entry.at, one, sent.lenient)
            if origin is not None and state.connections.get(origin) != one.senders[0]:
                refused = RefusalDetails(Refusal.NOT_A_MEMBER, "this connection is no longer in the space")
            here = Entry(state.seq, entry.at, sent)
            if refused is not None:
                refuse, *told = self._refuse(here, one, origin, refused)
                decisions.append(refuse)
                said += told
                continue
            self._remember(one.ids[0], one.senders[0])
            only = self._audiences(one) if state.rules.delivery == "addressed" else None
            decisions.append(Deliver(one, only))
            if self.changes_state(one.kinds[0]):
                said += self._act(here, sent, place)
        return decisions + said

    def _act(self, here: Entry, sent: Sent, place: int) -> list[Decision]:
        """Carry out an accepted envelope that changes the state."""
        self._changed(here.seq)
        envelope = sent.envelopes[place]
        rule = self.RULES[envelope.kind]
        assert rule.act is not None, f"{envelope.kind} changes nothing"
        submission = Submission(envelope, sent.origins[place], sent.token_hash)
        return rule.act(self.state, here, submission, decode_payload(envelope.payload, rule.shape))

    def _refuse(
        self, here: Entry, one: Envelopes, origin: ConnectionId | None, refused: RefusalDetails
    ) -> list[Decision]:
        who, envelope_id, kind = ParticipantId(one.senders[0]), EnvelopeId(one.ids[0]), one.kinds[0]
        told: list[Decision] = [Refuse(who, envelope_id, kind, refused, origin)]
        if refused.refusal is not Refusal.DUPLICATE_ID:
            told += self._violated(here, Violated(who, envelope_id, kind, refused.refusal))
        return told

    def _remember(self, envelope_id: str, sender: str) -> None:
        """An id belongs to whoever used it first, for as long as it is remembered."""
        recent, order = self.state.recent, self.state.recent_order
        if envelope_id not in recent:
            recent[envelope_id] = sender
            order.append(envelope_id)
            if len(recent) > RECENT_IDS:
                del recent[order.popleft()]

    def _changed(self, seq: int) -> None:
        self.state.changed_at = seq
        self._free.clear()

    def _happened(self, entry: Entry, event: Event) -> list[Decision]:  # noqa: C901  # one case an event
        """Something other than a batch, or a batch at a moment when a grant expired."""
        state = self.state
        if type(event) is Sent:
            return self._sent(entry, event)
        state.seq = entry.seq
        if type(event) is not Violated:
            self._changed(entry.seq)
        match event:
            case Joined(who, connection, resumed):
                return presence.join(state, entry, who, connection, resumed=resumed)
            case Left(connection):
                return presence.leave(state, entry, connection)
            case NodeLeft(node):
                return presence.leave_node(state, entry, node)
            case Identified(who, capabilities):
                return self._identified(entry, who, capabilities)
            case Violated():
                return self._violated(entry, event)
            case TimePassed():
                pauses.lift_due(state, entry.at)
                return self._next_wake()
            case Configured():
                return self._configured(entry, event)
            case Sent():
                raise AssertionError("a batch is applied by _sent")
            case _:
                assert_never(event)

    def route(
        self, at: datetime, writer: ParticipantId, stream_id: str
    ) -> streams.FrameRoute | RefusalDetails:
        """Where a stream frame of `writer` goes now, or why nowhere."""
        return streams.route(self.state, at, writer, stream_id)

    def held(self, who: ParticipantId) -> CapabilitySet:
        return holdings.held(self.state, who)

    def is_known(self, who: str) -> bool:
        return holdings.is_known(self.state, who)

    def similar(self, who: str) -> str | None:
        """A participant of the space that a person could take for `who`; None: there is none, or `who` is in it."""
        return None if self.is_known(who) else similar_id(who, holdings.known(self.state))

    def connections_of(self, participants: tuple[ParticipantId, ...]) -> list[ConnectionId]:
        """All their connections, those of each in the order they came. Nobody may be named twice."""
        connected = self.state.connected
        found: list[ConnectionId] = []
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

    def _audiences(self, envelopes: Envelopes) -> Audiences:
        """Whom each of these is delivered to, if that is only those addressed and the sender (§8.1)."""
        return tuple(
            [
                tuple(map(ParticipantId, dict.fromkeys((*to, sender)))) if to else None
                for to, sender in zip(envelopes.to, envelopes.senders, strict=True)
            ]
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
        notice = signed(self.state, entry, kind=Kind.ERROR, payload=payload, correlation_id=cause)
        return [Deliver.one(notice)]

    def _identified(
        self, entry: Entry, who: ParticipantId, capabilities: tuple[Capability, ...] | None
    ) -> list[Decision]:
        decisions: list[Decision] = []
        if self.similar(who) is not None:
            return decisions  # it does not belong to the space, and will not be let in
        if who in self.state.invited and who not in self.state.kicked:  # the invited is somebody else
            reason = f"{who} is the id of a user whom an authenticator vouches for"
            decisions += members.remove(self.state, entry, who, CloseCode.BAD_TOKEN, reason)
        if capabilities is None:
            self.state.identities.pop(who, None)
        else:
            self.state.identities[who] = capabilities
        holdings.cut_again(self.state, [who])
        return decisions + grants.settle(self.state, entry, [who])

    def _configured(self, entry: Entry, event: Configured) -> list[Decision]:
        state = self.state
        if event.rules.revision < state.rules.revision:
            return []  # from a node whose file is older than that of another
        before = {who: holdings.held(state, who) for who in state.members}
        named = [who for who in state.rules.profiles if holdings.is_known(state, who)]
        state.rules, state.epoch = event.rules, event.epoch
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
