"""Several spaces at one gateway, each by itself (§3.6)."""

from dataclasses import replace
from typing import Any, Final

from mew.conform.connection import Actor
from mew.conform.context import Stage
from mew.conform.drafts import HELLO, PROPOSAL, REASONING, STATUS, Say, call, fresh
from mew.conform.expectations import blocked, passes, refused, shown, unseen
from mew.conform.fixtures import grant, granted, invitation, invite, opened, revoke, somebody_new
from mew.conform.match import answers, events, is_id, is_kind, joins, leaves, listed
from mew.conform.outcome import NotOffered, Violation, demand
from mew.conform.runner import check

_FORGET: Final = Say("participant/forget", {"direction": "oldest", "entries": 1})


@check("space.several")
async def spaces_are_told_apart_by_their_name(stage: Stage) -> None:
    """Who names one space in the URL is in that one, and who names another is in the other."""
    owner, listener = await stage.enter_all("owner", "listener")
    there, away = await _enter_elsewhere(stage, "owner"), await _enter_elsewhere(stage, "peer")
    for strangers, newcomer in (((listener.id,), away), ((away.id,), await stage.enter("proposer"))):
        both = [who for who in strangers if who in listed(newcomer.welcome)]
        demand(not both, f"the welcome of {newcomer.name} lists {both}, who is in another space")
    for speaker, fellow, stranger in ((owner, listener, away), (there, away, listener)):
        sent = await speaker.send("chat", {"text": "hi"})
        await shown(sent, fellow)
        await _settle_in_each(stage, (owner, listener), (there, away))
        demand(
            not stranger.heard(is_id(sent["id"])), f"{stranger.name} received what was said in another space"
        )


@check("space.own-participants")
async def each_space_has_its_own_participants(stage: Stage) -> None:
    """Welcome and presence name who is in this space, also where somebody is in both."""
    owner, peer = await stage.enter_all("owner", "peer")
    there = await _enter_elsewhere(stage, "owner")
    listener = await stage.enter("listener")
    await stage.settle(peer, owner)
    before = events(owner.received, peer.id)
    away = await _enter_elsewhere(stage, "peer")  # who is in the first as well
    await there.hear(joins(away.id), f"a join of {away.id}, though it was in another space before")
    await stage.settle(owner, listener)
    await _settle_in_each(stage, (listener, owner), (away, there))
    demand(there.id in listed(away.welcome), f"{away.name} is not told of {there.id}, who is there before it")
    for newcomer in (there, away):
        demand(
            listener.id not in listed(newcomer.welcome) and not events(newcomer.received, listener.id),
            f"{newcomer.name} is told of {listener.id}, who is in another space alone (§3.6)",
        )
    _nothing_new(owner, peer.id, before, "joined another space")
    await away.leave()
    await there.hear(leaves(away.id), f"a leave of {away.id}, though it still is in another space")
    await _settle_in_each(stage, (listener, owner))
    _nothing_new(owner, peer.id, before, "left another space")
    await passes(stage, peer, owner, HELLO, "after it left another space")
    there_now = listed((await stage.enter("proposer")).welcome)
    for who in (owner.id, peer.id, listener.id):
        demand(there_now.count(who) == 1, f"a welcome lists {there_now}; {who} is in this space, once")


@check("space.own-participants")
async def removed_from_one_space_is_still_in_the_other(stage: Stage) -> None:
    """Somebody invited to two spaces and kicked from one stays in the other."""
    owner, there = await stage.enter("owner"), await _enter_elsewhere(stage, "owner")
    assert stage.cast.elsewhere is not None
    who = somebody_new()
    role = await invite(stage, owner, invitation(who))
    role_there = replace(await invite(stage, there, invitation(who), owner=there), name=f"{who} elsewhere")
    here = await stage.join(role)
    away = await stage.join(role_there, space=stage.cast.elsewhere.space)
    await there.send("space/kick", {"participant_id": who, "reason": "conformance"})
    await away.disconnected("by a space/kick (§3.6.5)")
    await passes(stage, here, owner, HELLO, "after it was kicked from another space")
    demand(
        "leave" not in events(owner.received, who),
        f"{owner.name} is told that {who} left, who left another space",
    )


@check("space.own-capabilities")
async def each_space_has_its_own_capabilities(stage: Stage) -> None:
    """What somebody holds in one space, or is granted there, allows it nothing in the other."""
    owner, peer = await stage.enter_all("owner", "peer")
    there, away = await _enter_elsewhere(stage, "owner"), await _enter_elsewhere(stage, "peer")
    for say in (call("read_file"), PROPOSAL, REASONING):
        await passes(stage, peer, owner, say, "in the space where it holds that")
        await blocked(stage, away, there, say, f"though it may elsewhere: here {away.id} may chat (§3.6)")
    try:
        here_only = await granted(stage, owner, peer, STATUS.capability, shown=STATUS)
    except NotOffered:
        return  # what one holds stays as it is
    await blocked(stage, away, there, STATUS, "by a grant in another space (§3.6)")
    await granted(stage, there, away, _FORGET.capability, shown=_FORGET)
    await blocked(stage, peer, owner, _FORGET, "by a grant in another space (§3.6)")
    await grant(stage, there, away, STATUS.capability)
    await revoke(stage, owner, peer, grant_id=here_only)
    await blocked(stage, peer, owner, STATUS, "after it was revoked, though it is granted in another space")
    await passes(stage, away, there, STATUS, "after a grant in another space was revoked")


@check("space.isolated")
async def nothing_crosses_from_one_space_to_another(stage: Stage) -> None:
    """Envelopes and errors stay in their space, also where `to` names somebody of the other."""
    owner, peer, listener = await stage.enter_all("owner", "peer", "listener")
    there, away = await _enter_elsewhere(stage, "owner"), await _enter_elsewhere(stage, "peer")
    rooms = (((owner, peer), (there, away)), ((there, away), (owner, peer, listener)))
    for (speaker, fellow), strangers in rooms:
        addressed: tuple[Any, ...] = (..., [], [fellow.id], [one.id for one in strangers], [listener.id])
        sent = [await speaker.send("chat", {"text": "for us"}, to=to) for to in addressed]
        sent += [await say.by(speaker) for say in (call("read_file"), PROPOSAL, REASONING)]
        await _settle_in_each(stage, (owner, peer, listener), (there, away))
        ids = {one["id"] for one in sent}
        for stranger in strangers:
            crossed = [one for one in stranger.received if one.get("id") in ids]
            demand(
                not crossed, f"{stranger.name} received what was said in another space (§3.6): {crossed[:1]}"
            )
    await blocked(stage, away, there, call("read_file"), "in the second space, where it may only chat")
    await _settle_in_each(stage, (owner, peer), (there, away))
    errors = peer.heard(is_kind("system/error"))
    demand(not errors, f"{peer.name} received an error about another space: {errors[:1]}")


@check("space.isolated")
async def no_stream_crosses_from_one_space_to_another(stage: Stage) -> None:
    """What is written to a stream arrives in its own space, also where the other has a stream as well."""
    owner, peer = await stage.enter_all("owner", "peer")
    there, away = await _enter_elsewhere(stage, "owner"), await _enter_elsewhere(stage, "peer")
    try:
        streams = [await opened(stage, writer) for writer in (owner, there)]
    except Violation as error:
        raise NotOffered(f"the gateway opens no streams: {error}") from error
    for stream, reader, strangers in zip(streams, (peer, away), ((there, away), (owner, peer)), strict=True):
        data = fresh()
        await stream.carries(data, reader)
        await _settle_in_each(stage, (owner, peer), (there, away))
        asked = stream.request
        for stranger in strangers:
            crossed = [frame for frame in stranger.frames if data in str(frame)]
            demand(not crossed, f"{stranger.name} received a frame of another space (§3.6): {crossed[:1]}")
            told = [one for one in stranger.received if answers(one, asked) or one.get("id") == asked["id"]]
            demand(not told, f"{stranger.name} was told of a stream in another space (§3.6): {told[:1]}")


@check("space.rules-in-each")
async def the_rules_hold_in_every_space(stage: Stage) -> None:
    """In the second space, too, what is allowed is delivered to all, and what is not is refused."""
    there, away = await _enter_elsewhere(stage, "owner"), await _enter_elsewhere(stage, "peer")
    for say in (call("read_file"), PROPOSAL, REASONING, STATUS, HELLO, PROPOSAL):
        if say is HELLO:
            await passes(stage, away, there, say, "in the second space, where it holds that")
        else:
            await blocked(stage, away, there, say, "in the second space, where it may only chat (§3.6)")
        await passes(stage, there, away, say, "in the second space, where it may do everything")
    gift = {"recipient": away.id, "capabilities": [PROPOSAL.capability]}
    await refused(stage, away, await away.send("capability/grant", gift), there)
    for fields in ({"from": there.id}, {"protocol": "mew/v0.3"}):
        await unseen(stage, away, await away.send("chat", {"text": "hi"}, **fields), there)
    for to in ([], [there.id], [there.id, away.id]):
        await shown(await away.send("chat", {"text": "hi"}, to=to), there)


async def _enter_elsewhere(stage: Stage, name: str) -> Actor:
    """Connect in this role to the second space, and hear the welcome.

    Raises:
        NotOffered: the kit was told of none, or has no token for the role there.
    """
    elsewhere = stage.cast.elsewhere
    if elsewhere is None:
        raise NotOffered("the kit was told of no second space")
    if name not in elsewhere.roles:
        raise NotOffered(f"the kit has no token for the role {name!r} in the second space")
    role = elsewhere.roles[name]
    there = replace(role, name=f"{name} elsewhere", id=role.id or name)
    return await stage.join(there, space=elsewhere.space)


async def _settle_in_each(stage: Stage, *spaces: tuple[Actor, ...]) -> None:
    """In each of these spaces all that was on its way has arrived with everyone."""
    for first, *others in spaces:
        await stage.settle(first, *others)
        await stage.settle(others[-1], first)


def _nothing_new(observer: Actor, who: str, before: list[Any], why: str) -> None:
    told = events(observer.received, who)[len(before) :]
    demand(not told, f"{observer.name} is told {told} of {who}, who {why} alone (§3.6)")
