"""Gateways that invite and remove wrongly."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from mew.gateway import mail
from mew.gateway.room import replies
from mew.gateway.room.outbox import Outboxes
from mew.space import Decision, Disconnect, Space, holdings, members, presence

from .breaks import Break, Mutant, of, ruled, shown, wrapping
from .deciding import allowing, changed, deciding, doubled, dropped, narrowed, refusing

__all__ = ["MUTANTS", "forgetting_guests"]

INVITE, KICK, PRESENCE = "space/invite", "space/kick", "system/presence"


# Wrong ways to invite.


def as_the_first(right: Any, space: Space, token_hash: str) -> Any:
    return None if right(space, token_hash) is None else next(iter(space.state.invited))


def with_everything(right: Any, state: Any, entry: Any, sent: Any, asked: Any) -> Any:
    return right(state, entry, sent, replace(asked, initial_capabilities=[{"kind": "*"}]))


def with_chat(right: Any, state: Any, entry: Any, sent: Any, asked: Any) -> Any:
    return right(state, entry, sent, replace(asked, initial_capabilities=[{"kind": "chat"}]))


def with_kinds(right: Any, state: Any, entry: Any, sent: Any, asked: Any) -> Any:
    kinds = [{"kind": one["kind"]} for one in asked.initial_capabilities]
    return right(state, entry, sent, replace(asked, initial_capabilities=kinds))


def all_get_the_token(right: Any, outboxes: Outboxes, frames: bytes, to: Any = None, **but: Any) -> Any:
    return right(outboxes, frames, None if b"space/invite-ack" in frames else to, **but)


def another_token(right: Any, at: Any, invite: Any, token: str, *more: Any) -> Any:
    return right(at, invite, token[::-1], *more)


def without_details(right: Any, *given: Any) -> Any:
    letter = right(*given)
    letter.set_content("You are invited.\n")
    return letter


def forgetful(right: Any, state: Any, entry: Any, who: Any) -> Any:
    """What somebody invited holds ends with its last connection."""
    if who in state.invited:
        for granted in [one for one in state.grants.values() if one.recipient == who]:
            del state.grants[granted.id]
        holdings.changed(state, who)
    return right(state, entry, who)


forgetting_guests: Final = wrapping(presence, "drop", forgetful)


# Wrong ways to kick.


def wrapped(kind: str, right: Any, wrong: Callable[..., Any]) -> Break:
    return ruled(kind, act=lambda *given: wrong(right, *given))


def from_the_last_connection(space: Space, decision: Decision) -> list[Decision]:
    if not isinstance(decision, Disconnect):
        return [decision]
    return [replace(decision, connections=decision.connections[-1:])]


def all_that_begin_so(right: Any, state: Any, entry: Any, sent: Any, asked: Any) -> Any:
    named = [who for who in [*state.members] if who.startswith(asked.participant_id)]
    return [one for who in named for one in right(state, entry, sent, replace(asked, participant_id=who))]


def still_known(right: Any, state: Any, entry: Any, sent: Any, asked: Any) -> Any:
    invitation = state.invited.get(asked.participant_id)
    decisions = right(state, entry, sent, asked)
    state.invited[asked.participant_id] = invitation
    return decisions


def known_if_absent(right: Any, state: Any, entry: Any, sent: Any, asked: Any) -> Any:
    known = asked.participant_id in state.members
    return (right if known else partial(still_known, right))(state, entry, sent, asked)


def keep_listening(space: Space, decision: Decision) -> list[Decision]:
    """Those that are kicked may no longer speak; they go on hearing."""
    return [] if isinstance(decision, Disconnect) else [decision]


def still_listed(right: Any, state: Any, entry: Any, who: Any, **more: Any) -> Any:
    gone = [one for one in state.kicked if one not in state.members]
    state.members |= dict.fromkeys(gone, 1)
    envelope = right(state, entry, who, **more)
    for one in gone:
        del state.members[one]
    return envelope


KEPT = "members.the_invited_holds_the_same_when_it_comes_back"
INVITED = "members.the_invited_can_come"
EMAIL = "members.an_invitation_may_name_an_email_address"
BROADCAST = "members.everyone_sees_an_invitation"
INITIAL = "members.the_invited_holds_what_it_was_invited_with"
MAIL = "members.the_invited_gets_a_mail"
TOKEN = "members.a_token_goes_to_the_inviter"
KICKED = "members.the_kicked_are_out"
COMES_BACK = "members.the_kicked_do_not_just_come_back"
MANAGED = "members.everyone_sees_how_the_space_is_managed"

MUTANTS: Final = (
    Mutant(
        "invite.admits", INVITED, wrapping(Space, "invited", lambda *_: None), "a connection it had to accept"
    ),
    Mutant("invite.admits", INVITED, wrapping(Space, "invited", as_the_first), "and welcomed as"),
    Mutant(
        "invite.email-optional",
        EMAIL,
        refusing(lambda e: e.kind == INVITE and "email" in e.content),
        "the gateway refused a space/invite",
    ),
    Mutant(
        "invite.email-optional",
        EMAIL,
        refusing(lambda e: e.kind == INVITE and "email" not in e.content),
        "the gateway refused a space/invite",
    ),
    Mutant("invite.broadcast", BROADCAST, dropped(shown(INVITE)), "receives the space/invite"),
    Mutant(
        "invite.broadcast", BROADCAST, narrowed(of(INVITE), lambda e: ["owner", "peer"]), "listener receives"
    ),
    Mutant("invite.broadcast", BROADCAST, doubled(shown(INVITE)), "2 times, not once"),
    Mutant(
        "invite.broadcast",
        BROADCAST,
        changed(shown(INVITE), lambda said: said["payload"].pop("initial_capabilities")),
        "with another payload",
    ),
    Mutant("invite.broadcast", BROADCAST, allowing(of(INVITE, sender="peer")), "refuses the space/invite"),
    Mutant(
        "invite.initial-capabilities",
        INITIAL,
        wrapped(INVITE, members.invite, with_everything),
        "may not send",
    ),
    Mutant(
        "invite.initial-capabilities",
        INITIAL,
        wrapped(INVITE, members.invite, with_chat),
        "its first welcome",
    ),
    Mutant(
        "invite.initial-capabilities", INITIAL, wrapped(INVITE, members.invite, with_kinds), "may not send"
    ),
    Mutant("invite.capabilities-kept", KEPT, forgetting_guests, "may send"),
    Mutant(
        "invite.email-sent",
        MAIL,
        wrapping(mail.InvitationMailer, "invite", lambda *_: None),
        "none came within",
    ),
    Mutant(
        "invite.email-sent", MAIL, wrapping(mail, "invitation", without_details), "the address to connect to"
    ),
    Mutant(
        "invite.other-notification",
        TOKEN,
        wrapping(Outboxes, "send", all_get_the_token),
        "was shown the token",
    ),
    Mutant(
        "invite.other-notification",
        TOKEN,
        wrapping(replies, "invite_ack", another_token),
        "a connection it had to accept",
    ),
    Mutant(
        "kick.removes",
        KICKED,
        deciding(keep_listening),
        "is disconnected by a space/kick",
    ),
    Mutant(
        "kick.removes",
        KICKED,
        deciding(from_the_last_connection),
        "is disconnected by a space/kick",
    ),
    Mutant("kick.removes", KICKED, wrapped(KICK, members.kick, all_that_begin_so), "was disconnected"),
    Mutant(
        "kick.lasting",
        COMES_BACK,
        wrapped(KICK, members.kick, still_known),
        "is not let in after it was kicked",
    ),
    Mutant(
        "kick.lasting",
        COMES_BACK,
        wrapped(KICK, members.kick, known_if_absent),
        "is not let in after it was kicked",
    ),
    Mutant(
        "kick.removes", KICKED, wrapped(KICK, members.kick, lambda *_: []), "is disconnected by a space/kick"
    ),
    Mutant("kick.removes", KICKED, allowing(of(KICK, sender="peer")), "refuses the space/kick"),
    Mutant(
        "kick.removes",
        KICKED,
        dropped(lambda said: said["kind"] == PRESENCE and said["payload"]["event"] == "leave"),
        "left, for it was kicked",
    ),
    Mutant("kick.removes", KICKED, doubled(shown(PRESENCE)), "times that the kicked left"),
    Mutant("kick.removes", KICKED, wrapping(presence, "welcome", still_listed), "who was kicked (§3.6.5)"),
    Mutant(
        "delivery.accepted", MANAGED, dropped(shown("capability/revoke")), "receives the capability/revoke"
    ),
)
