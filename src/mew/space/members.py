"""Inviting and kicking (§3.6.4, §3.6.5)."""

from datetime import datetime
from typing import Final

from msgspec import UNSET

from mew.protocol import kinds
from mew.protocol.envelope import Envelope, EnvelopeId, ParticipantId, is_participant_id, similar_id
from mew.protocol.errors import CloseCode, Refusal

from . import grants, holdings, presence, streams
from .decisions import Decision, Disconnect, IssueInvitation, RefusalDetails
from .entries import Entry, Submission
from .state import Invitation, SpaceState

__all__ = ["check_invite", "check_kick", "invite", "kick", "remove"]

_INVITATIONS_MAX: Final = 4096
_DEAD_TOKENS_MAX: Final = 4096


def check_invite(
    state: SpaceState, at: datetime, envelope: Envelope, asked: kinds.Invite
) -> RefusalDetails | None:
    who = asked.participant_id
    if not is_participant_id(who):
        return RefusalDetails(
            Refusal.INVALID_PAYLOAD,
            f"{who[:128]!r} cannot be a participant's id: letters, digits and '._@-', at most 128, not a reserved name",
        )
    if holdings.is_known(state, who):
        return RefusalDetails(Refusal.ALREADY_EXISTS, f"{who!r} belongs to this space already")
    if (similar := similar_id(who, holdings.known(state))) is not None:
        return RefusalDetails(
            Refusal.ALREADY_EXISTS,
            f"{who!r} is easily taken for {similar!r}, who belongs to this space already: choose another id",
        )
    if who not in state.kicked and len(state.invited.keys() | state.kicked.keys()) >= _INVITATIONS_MAX:
        # a kick is never refused and never forgotten, or it would let somebody back in: so this is the bound
        return RefusalDetails(
            Refusal.LIMIT_REACHED,
            f"a space holds at most {_INVITATIONS_MAX} participants that were invited or kicked;"
            " invite one that was kicked before",
        )
    return grants.check_gift(state, envelope, ParticipantId(who), asked.initial_capabilities)


def invite(state: SpaceState, entry: Entry, sent: Submission, asked: kinds.Invite) -> list[Decision]:
    who = ParticipantId(asked.participant_id)
    state.invited[who] = Invitation(sent.who, sent.token_hash)
    if asked.initial_capabilities:
        grants.give(state, entry, sent, who, asked.initial_capabilities)
    holdings.changed(state, who)
    email = None if asked.email is UNSET else asked.email
    return [IssueInvitation(envelope=sent.envelope, participant=who, email=email, connection=sent.connection)]


def check_kick(
    state: SpaceState, at: datetime, envelope: Envelope, asked: kinds.Kick
) -> RefusalDetails | None:
    if not holdings.is_known(state, asked.participant_id):
        return RefusalDetails(
            Refusal.UNKNOWN_PARTICIPANT, f"there is no participant {asked.participant_id!r}"
        )
    return None


def kick(state: SpaceState, entry: Entry, sent: Submission, asked: kinds.Kick) -> list[Decision]:
    who = ParticipantId(asked.participant_id)
    reason = f"kicked by {sent.who}" + ("" if asked.reason is UNSET else f": {asked.reason}")
    state.kicked[who] = EnvelopeId(sent.envelope.id)
    return remove(state, entry, who, CloseCode.KICKED, reason, cause=(sent.envelope.id,))


def remove(
    state: SpaceState,
    entry: Entry,
    who: ParticipantId,
    code: CloseCode,
    reason: str,
    *,
    cause: tuple[str, ...] = (),
) -> list[Decision]:
    """Out: connections, invitation, grants, pauses, streams; and what it granted on goes too."""
    invitation = state.invited.pop(who, None)
    if invitation is not None:
        state.dead_tokens[invitation.token_hash] = who
        if len(state.dead_tokens) > _DEAD_TOKENS_MAX:
            del state.dead_tokens[next(iter(state.dead_tokens))]  # still dead, only no longer known as such
    for granted in tuple(state.grants.values()):
        if granted.recipient == who:
            del state.grants[granted.id]
    for kept in (state.paused, state.shut_down, state.cuts, state.left, state.identities):
        kept.pop(who, None)
    streams.forget_writer(state, who)
    holdings.changed(state, who)
    decisions: list[Decision] = []
    connections = state.connected.get(who, ())
    for connection in connections:
        state.disconnect(connection)
    if connections:
        decisions.append(Disconnect(connections, code, reason))
        decisions += presence.drop(state, entry, who)
    else:
        decisions += streams.close_owned(state, entry, who)  # opened over HTTP
    return decisions + grants.settle(state, entry, [who], cause=cause)
