"""Several spaces at one gateway, each by itself (§3.6)."""

from dataclasses import replace
from typing import Any, Final

from mew.conform.connection import ScriptedClient
from mew.conform.context import CheckContext
from mew.conform.drafts import HELLO, PROPOSAL, REASONING, STATUS, Draft, call, unique_word
from mew.conform.expectations import (
    expect_draft_refused,
    expect_passes,
    expect_refused,
    expect_shown,
    expect_unseen,
)
from mew.conform.fixtures import grant, granted, invitation, invite, opened, revoke, somebody_new
from mew.conform.match import answers, events, is_id, is_kind, joins, leaves, listed
from mew.conform.outcome import NotOffered, Violation, demand
from mew.conform.runner import check

_FORGET: Final = Draft("participant/forget", {"direction": "oldest", "entries": 1})


@check("space.several")
async def spaces_are_told_apart_by_their_name(ctx: CheckContext) -> None:
    """Who names one space in the URL is in that one, and who names another is in the other."""
    owner, listener = await ctx.clients("owner", "listener")
    there, away = await _join_second_space(ctx, "owner"), await _join_second_space(ctx, "peer")
    for strangers, newcomer in (((listener.id,), away), ((away.id,), await ctx.client("proposer"))):
        both = [who for who in strangers if who in listed(newcomer.welcome)]
        demand(not both, f"the welcome of {newcomer.name} lists {both}, who is in another space")
    for sender, fellow, stranger in ((owner, listener, away), (there, away, listener)):
        sent = await sender.send("chat", {"text": "hi"})
        await expect_shown(sent, fellow)
        await _settle_in_each(ctx, (owner, listener), (there, away))
        demand(
            not stranger.matching(is_id(sent["id"])),
            f"{stranger.name} received what was said in another space",
        )


@check("space.own-participants")
async def each_space_has_its_own_participants(ctx: CheckContext) -> None:
    """Welcome and presence name who is in this space, also where somebody is in both."""
    owner, peer = await ctx.clients("owner", "peer")
    there = await _join_second_space(ctx, "owner")
    listener = await ctx.client("listener")
    await ctx.barrier(peer, owner)
    before = events(owner.received, peer.id)
    away = await _join_second_space(ctx, "peer")  # who is in the first as well
    await there.expect(joins(away.id), f"a join of {away.id}, though it was in another space before")
    await ctx.barrier(owner, listener)
    await _settle_in_each(ctx, (listener, owner), (away, there))
    demand(there.id in listed(away.welcome), f"{away.name} is not told of {there.id}, who is there before it")
    for newcomer in (there, away):
        demand(
            listener.id not in listed(newcomer.welcome) and not events(newcomer.received, listener.id),
            f"{newcomer.name} is told of {listener.id}, who is in another space alone (§3.6)",
        )
    _nothing_new(owner, peer.id, before, "joined another space")
    await away.leave()
    await there.expect(leaves(away.id), f"a leave of {away.id}, though it still is in another space")
    await _settle_in_each(ctx, (listener, owner))
    _nothing_new(owner, peer.id, before, "left another space")
    await expect_passes(ctx, peer, owner, HELLO, "after it left another space")
    there_now = listed((await ctx.client("proposer")).welcome)
    for who in (owner.id, peer.id, listener.id):
        demand(there_now.count(who) == 1, f"a welcome lists {there_now}; {who} is in this space, once")


@check("space.own-participants")
async def removed_from_one_space_is_still_in_the_other(ctx: CheckContext) -> None:
    """Somebody invited to two spaces and kicked from one stays in the other."""
    owner, there = await ctx.client("owner"), await _join_second_space(ctx, "owner")
    assert ctx.config.second_space is not None
    who = somebody_new()
    role = await invite(ctx, owner, invitation(who))
    role_there = replace(
        await invite(ctx, there, invitation(who), owner=there), name=f"{who} in the second space"
    )
    here = await ctx.join(role)
    away = await ctx.join(role_there, space=ctx.config.second_space.space)
    await there.send("space/kick", {"participant_id": who, "reason": "conformance"})
    await away.disconnected("by a space/kick (§3.6.5)")
    await expect_passes(ctx, here, owner, HELLO, "after it was kicked from another space")
    demand(
        "leave" not in events(owner.received, who),
        f"{owner.name} is told that {who} left, who left another space",
    )


@check("space.own-capabilities")
async def each_space_has_its_own_capabilities(ctx: CheckContext) -> None:
    """What somebody holds in one space, or is granted there, allows it nothing in the other."""
    owner, peer = await ctx.clients("owner", "peer")
    there, away = await _join_second_space(ctx, "owner"), await _join_second_space(ctx, "peer")
    for draft in (call("read_file"), PROPOSAL, REASONING):
        await expect_passes(ctx, peer, owner, draft, "in the space where it holds that")
        await expect_draft_refused(
            ctx, away, there, draft, f"though it may elsewhere: here {away.id} may chat (§3.6)"
        )
    try:
        here_only = await granted(ctx, owner, peer, STATUS.capability, shown=STATUS)
    except NotOffered:
        return  # what one holds stays as it is
    await expect_draft_refused(ctx, away, there, STATUS, "by a grant in another space (§3.6)")
    await granted(ctx, there, away, _FORGET.capability, shown=_FORGET)
    await expect_draft_refused(ctx, peer, owner, _FORGET, "by a grant in another space (§3.6)")
    await grant(ctx, there, away, STATUS.capability)
    await revoke(ctx, owner, peer, grant_id=here_only)
    await expect_draft_refused(
        ctx, peer, owner, STATUS, "after it was revoked, though it is granted in another space"
    )
    await expect_passes(ctx, away, there, STATUS, "after a grant in another space was revoked")


@check("space.isolated")
async def nothing_crosses_from_one_space_to_another(ctx: CheckContext) -> None:
    """Envelopes and errors stay in their space, also where `to` names somebody of the other."""
    owner, peer, listener = await ctx.clients("owner", "peer", "listener")
    there, away = await _join_second_space(ctx, "owner"), await _join_second_space(ctx, "peer")
    rooms = (((owner, peer), (there, away)), ((there, away), (owner, peer, listener)))
    for (sender, fellow), strangers in rooms:
        addressed: tuple[Any, ...] = (..., [], [fellow.id], [one.id for one in strangers], [listener.id])
        sent = [await sender.send("chat", {"text": "for us"}, to=to) for to in addressed]
        sent += [await draft.send_by(sender) for draft in (call("read_file"), PROPOSAL, REASONING)]
        await _settle_in_each(ctx, (owner, peer, listener), (there, away))
        ids = {one["id"] for one in sent}
        for stranger in strangers:
            crossed = [one for one in stranger.received if one.get("id") in ids]
            demand(
                not crossed, f"{stranger.name} received what was said in another space (§3.6): {crossed[:1]}"
            )
    await expect_draft_refused(
        ctx, away, there, call("read_file"), "in the second space, where it may only chat"
    )
    await _settle_in_each(ctx, (owner, peer), (there, away))
    errors = peer.matching(is_kind("system/error"))
    demand(not errors, f"{peer.name} received an error about another space: {errors[:1]}")


@check("space.isolated")
async def no_stream_crosses_from_one_space_to_another(ctx: CheckContext) -> None:
    """What is written to a stream arrives in its own space, also where the other has a stream as well."""
    owner, peer = await ctx.clients("owner", "peer")
    there, away = await _join_second_space(ctx, "owner"), await _join_second_space(ctx, "peer")
    try:
        streams = [await opened(ctx, writer) for writer in (owner, there)]
    except Violation as error:
        raise NotOffered(f"the gateway opens no streams: {error}") from error
    for stream, reader, strangers in zip(streams, (peer, away), ((there, away), (owner, peer)), strict=True):
        data = unique_word()
        await stream.carries(data, reader)
        await _settle_in_each(ctx, (owner, peer), (there, away))
        asked = stream.request
        for stranger in strangers:
            crossed = [frame for frame in stranger.frames if data in str(frame)]
            demand(not crossed, f"{stranger.name} received a frame of another space (§3.6): {crossed[:1]}")
            told = [one for one in stranger.received if answers(one, asked) or one.get("id") == asked["id"]]
            demand(not told, f"{stranger.name} was told of a stream in another space (§3.6): {told[:1]}")


@check("space.rules-in-each")
async def the_rules_hold_in_every_space(ctx: CheckContext) -> None:
    """In the second space, too, what is allowed is delivered to all, and what is not is refused."""
    there, away = await _join_second_space(ctx, "owner"), await _join_second_space(ctx, "peer")
    for draft in (call("read_file"), PROPOSAL, REASONING, STATUS, HELLO, PROPOSAL):
        if draft is HELLO:
            await expect_passes(ctx, away, there, draft, "in the second space, where it holds that")
        else:
            await expect_draft_refused(
                ctx, away, there, draft, "in the second space, where it may only chat (§3.6)"
            )
        await expect_passes(ctx, there, away, draft, "in the second space, where it may do everything")
    gift = {"recipient": away.id, "capabilities": [PROPOSAL.capability]}
    await expect_refused(ctx, away, await away.send("capability/grant", gift), there)
    for fields in ({"from": there.id}, {"protocol": "mew/v0.3"}):
        await expect_unseen(ctx, away, await away.send("chat", {"text": "hi"}, **fields), there)
    for to in ([], [there.id], [there.id, away.id]):
        await expect_shown(await away.send("chat", {"text": "hi"}, to=to), there)


async def _join_second_space(ctx: CheckContext, name: str) -> ScriptedClient:
    """Connect in this role to the second space, and hear the welcome.

    Raises:
        NotOffered: the kit was told of none, or has no token for the role there.
    """
    second_space = ctx.config.second_space
    if second_space is None:
        raise NotOffered("the kit was told of no second space")
    if name not in second_space.roles:
        raise NotOffered(f"the kit has no token for the role {name!r} in the second space")
    role = second_space.roles[name]
    there = replace(role, name=f"{name} in the second space", id=role.id or name)
    return await ctx.join(there, space=second_space.space)


async def _settle_in_each(ctx: CheckContext, *spaces: tuple[ScriptedClient, ...]) -> None:
    """In each of these spaces all that was on its way has arrived with everyone."""
    for first, *others in spaces:
        await ctx.barrier(first, *others)
        await ctx.barrier(others[-1], first)


def _nothing_new(observer: ScriptedClient, who: str, before: list[Any], why: str) -> None:
    told = events(observer.received, who)[len(before) :]
    demand(not told, f"{observer.name} is told {told} of {who}, who {why} alone (§3.6)")
