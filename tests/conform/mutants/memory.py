"""Gateways that remember what they should forget, and forget what they should not."""

from typing import Any, Final

import pytest
from aiohttp import web
from msgspec import UNSET
from msgspec.structs import replace

from mew.gateway.auth.guard import Denied
from mew.gateway.room.room import Room
from mew.protocol.capability import CapabilitySet
from mew.protocol.kinds import Kind
from mew.space import Decision, Deliver, Space, grants, holdings, members, presence, streams

from .breaks import Mutant, mutants, ruled, wrapping
from .deciding import deciding
from .doors import POSTS

__all__ = ["MUTANTS"]


def lists_whom_it_expects(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who was invited and never came is in every welcome."""
    came: set[str] = set()
    join, welcome = presence.join, presence.welcome

    def joined(state: Any, entry: Any, who: Any, *more: Any, **named: Any) -> Any:
        came.add(who)
        return join(state, entry, who, *more, **named)

    def welcomed(state: Any, entry: Any, who: Any, **named: Any) -> Any:
        expected = [one for one in state.invited if one not in came]
        state.members |= dict.fromkeys(expected, 1)
        envelope = welcome(state, entry, who, **named)
        for one in expected:
            del state.members[one]
        return envelope

    monkeypatch.setattr(presence, "join", joined)
    monkeypatch.setattr(presence, "welcome", welcomed)


def what_it_ever_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who held something once may go on granting it."""
    ever: dict[str, dict[Any, None]] = {}
    held, check_gift = holdings.held, grants.check_gift

    def holding(state: Any, who: Any) -> Any:
        found = held(state, who)
        ever.setdefault(who, {}).update(dict.fromkeys(found))
        return found

    def checked(state: Any, envelope: Any, *more: Any) -> Any:
        state.held[envelope.sender] = CapabilitySet(ever.get(envelope.sender, {}))
        refused = check_gift(state, envelope, *more)
        del state.held[envelope.sender]
        return refused

    monkeypatch.setattr(holdings, "held", holding)
    monkeypatch.setattr(grants, "check_gift", checked)


def revoked_for_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was revoked is there again after a return."""
    gone: list[Any] = []
    join = presence.join

    def revoke(state: Any, entry: Any, sent: Any, asked: Any) -> Any:
        before = dict(state.grants)
        decisions = grants.revoke(state, entry, sent, asked)
        gone.extend(one for one in before.values() if one.id not in state.grants)
        return decisions

    def joined(state: Any, entry: Any, who: Any, *more: Any, **named: Any) -> Any:
        state.grants |= {one.id: one for one in gone if one.recipient == who}
        holdings.changed(state, who)
        return join(state, entry, who, *more, **named)

    ruled(Kind.REVOKE, act=revoke)(monkeypatch)
    monkeypatch.setattr(presence, "join", joined)


def whatever_is_like_it(state: Any, entry: Any, sent: Any, asked: Any) -> Any:
    """An id stands for what was granted by it, whoever has that."""
    named = state.grants.get(asked.grant_id)
    for one in [*state.grants.values()] if named is not None else ():
        if one.recipient == asked.recipient and one.capabilities == named.capabilities:
            del state.grants[one.id]
    return presence.rewelcome(state, entry, asked.recipient)


def from_all(state: Any, entry: Any, sent: Any, asked: Any) -> Any:
    """A pattern is revoked from everyone who was invited."""
    whom = [asked.recipient]
    if asked.capabilities is not UNSET:
        whom += [who for who in state.members if who in state.invited and who != asked.recipient]
    return [one for who in whom for one in grants.revoke(state, entry, sent, replace(asked, recipient=who))]


def in_small_letters(state: Any, entry: Any, sent: Any, asked: Any) -> Any:
    who = asked.participant_id.lower()
    return members.invite(state, entry, sent, replace(asked, participant_id=who))


def all_streams_end(right: Any, state: Any, entry: Any, who: Any) -> Any:
    owners = dict.fromkeys((who, *(stream.owner for stream in state.streams.values())))
    return [one for owner in owners for one in right(state, entry, owner)]


def in_any_letters(right: Any, state: Any, at: Any, writer: Any, stream_id: str) -> Any:
    same = [one for one in state.streams if one.lower() == stream_id.lower()]
    return right(state, at, writer, *same or [stream_id])


def five_at_most(right: Any, state: Any, entry: Any, who: Any, **named: Any) -> Any:
    there = dict(state.members)
    for one in [one for one in there if one != who][5:]:
        del state.members[one]
    envelope = right(state, entry, who, **named)
    state.members |= there
    return envelope


def to_the_first_three(space: Space, decision: Decision) -> list[Decision]:
    if not isinstance(decision, Deliver) or decision.envelopes.kinds != (Kind.PRESENCE,):
        return [decision]
    return [replace(decision, only=(tuple(space.state.members)[:3],))]


def whoever_it_is(state: Any, at: Any, envelope: Any, asked: Any) -> Any:
    """An invitation of somebody who is there already gives a token for it."""
    return grants.check_gift(state, envelope, asked.participant_id, asked.initial_capabilities)


async def shut_down_for_a_connection(right: Any, room: Room, who: Any, received: bytes) -> Any:
    room.space.state.shut_down.pop(who, None)
    return await right(room, who, received)


async def polite_to_the_kicked(right: Any, door: Any, request: web.Request) -> Any:
    try:
        return await right(door, request)
    except Denied as error:
        if error.code != "kicked":
            raise
        return web.json_response({"status": "accepted"})


MUTANTS: Final = (
    *mutants(
        "welcome.participants",
        "presence.the_welcome_lists_the_others",
        (wrapping(presence, "welcome", five_at_most), "who is there, 0 times"),
    ),
    *mutants(
        "presence.join",
        "presence.everyone_is_told_who_joins",
        (deciding(to_the_first_three), "a system/presence that"),
    ),
    *mutants(
        "presence.leave",
        "presence.everyone_is_told_who_leaves",
        (deciding(to_the_first_three), "a system/presence that"),
    ),
    Mutant(
        "shutdown.enforced",
        "control.who_was_shut_down_is_refused_until_it_rejoins",
        wrapping(Room, "post", shut_down_for_a_connection),
        "over HTTP its chat was accepted with 200",
    ),
    Mutant(
        "kick.lasting",
        "members.the_kicked_do_not_just_come_back",
        wrapping(*POSTS, polite_to_the_kicked),
        "over HTTP its chat was accepted with 200",
    ),
    Mutant(
        "grant.only-what-you-hold",
        "grants.nobody_invites_with_what_it_lacks",
        ruled(Kind.INVITE, check=whoever_it_is),
        "by an invitation of guest-",
    ),
    Mutant(
        "connect.state-tracked",
        "access.the_gateway_knows_who_is_there",
        lists_whom_it_expects,
        "who has not connected yet",
    ),
    Mutant(
        "grant.only-what-you-hold",
        "grants.nobody_grants_what_was_taken_from_it",
        what_it_ever_held,
        "from whom it was revoked",
    ),
    *mutants(
        "revoke.by-grant-id",
        "grants.a_grant_is_revoked_by_the_id_of_its_envelope",
        (revoked_for_a_connection, "having connected again"),
    ),
    Mutant(
        "grant.id-is-grant-id",
        "grants.only_the_grant_of_that_id_is_revoked",
        ruled(Kind.REVOKE, check=None, act=whatever_is_like_it),
        "no grant of it",
    ),
    *mutants(
        "revoke.by-pattern",
        "grants.a_pattern_revokes_all_that_matches",
        (revoked_for_a_connection, "having connected again"),
    ),
    Mutant(
        "revoke.by-pattern",
        "grants.a_pattern_is_revoked_from_its_recipient_alone",
        ruled(Kind.REVOKE, act=from_all),
        "after it was revoked from",
    ),
    Mutant(
        "invite.admits",
        "members.the_invited_can_come",
        ruled(Kind.INVITE, act=in_small_letters),
        "invited as 'Guest-",
    ),
    *mutants(
        "stream.close-terminates",
        "streams.a_closed_stream_is_gone",
        (wrapping(streams, "close_owned", all_streams_end), "#three'"),
    ),
    *mutants(
        "stream.close-either-side",
        "streams.the_gateway_may_close_a_stream",
        (wrapping(streams, "close_owned", all_streams_end), "#this goes on'"),
    ),
    Mutant(
        "stream.frame-prefix",
        "streams.a_frame_is_told_by_its_prefix",
        wrapping(streams, "route", in_any_letters),
        "a frame of no open stream, #STREAM-",
    ),
)
