"""Inviting and removing (§3.6.4, §3.6.5)."""

import re
from contextlib import suppress
from functools import partial
from typing import Any, Final

from mew.conform.connection import ScriptedClient, UpgradeRefused
from mew.conform.context import CheckContext
from mew.conform.drafts import CALL, CHAT, HELLO, PROPOSAL, REASONING, Draft, allows, call, calling, request
from mew.conform.expectations import (
    expect_accepted,
    expect_delivered,
    expect_draft_refused,
    expect_enforced,
    expect_passes,
    expect_refused,
    expect_shown,
)
from mew.conform.fixtures import a_guest, dismiss, invitation, invite, invited, somebody_new
from mew.conform.http_api import open_messages_api
from mew.conform.mailbox import Mailbox
from mew.conform.match import is_id, leaves, listed, part, refuses
from mew.conform.outcome import NotOffered, Violation, demand
from mew.conform.roles import KICKED, Role
from mew.conform.runner import check

_URL: Final = re.compile(r"\b(wss?|https?)://\S")


# Inviting.


@check("invite.admits")
async def the_invited_can_come(ctx: CheckContext) -> None:
    """Somebody unknown before can connect after an invitation, is welcomed under that id, and takes part."""
    owner, listener = await ctx.clients("owner", "listener")
    first = somebody_new()
    ids = (first, f"{first}-2", first[:-1])
    roles = [await invite(ctx, owner, invitation(who)) for who in ids]
    for who, role in zip(ids, roles, strict=True):
        guest = await ctx.join(role)
        demand(guest.id == who, f"invited as {who!r}, and welcomed as {guest.id!r} (§3.6.4)")
        await expect_passes(ctx, guest, listener, HELLO, "after it was invited with chat and let in")
        await ctx.barrier(listener, guest)
    mixed = somebody_new().title()
    with suppress(NotOffered):  # a gateway may be particular about ids
        guest = await ctx.join(await invite(ctx, owner, invitation(mixed)))
        demand(guest.id == mixed, f"invited as {mixed!r}, and welcomed as {guest.id!r} (§3.6.4)")


@check("invite.email-optional")
async def an_invitation_may_name_an_email_address(ctx: CheckContext) -> None:
    """An invitation with `email` is accepted, and so is one without."""
    owner, listener = await ctx.clients("owner", "listener")
    for more in ({}, {"email": "conform@example.invalid"}, {}):
        who = somebody_new()
        sent = await owner.send("space/invite", invitation(who, **more))
        ctx.add_cleanup(partial(dismiss, ctx, who))
        await expect_accepted(ctx, owner, sent, listener)


@check("invite.broadcast")
async def everyone_sees_an_invitation(ctx: CheckContext) -> None:
    """An invitation reaches everyone in the space, once, and one by somebody who may not invite reaches nobody."""
    owner, peer, listener = await ctx.clients("owner", "peer", "listener")
    for capabilities in ((CHAT,), (PROPOSAL.capability, calling("read_*"))):
        await _shown(ctx, owner, invitation(somebody_new(), *capabilities), peer, listener)
    sent = await peer.send("space/invite", invitation(somebody_new()))
    await expect_refused(ctx, peer, sent, owner, listener)
    told = peer.matching(lambda e: part(e, "payload", "token") is not None)
    demand(not told, f"{peer.name} may not invite, and was answered with a token: {told[:1]}")


async def _shown(
    ctx: CheckContext, owner: ScriptedClient, payload: dict[str, Any], *others: ScriptedClient
) -> None:
    sent = await owner.send("space/invite", payload)
    ctx.add_cleanup(partial(dismiss, ctx, payload["participant_id"]))
    await expect_delivered(ctx, owner, [sent], *others)
    error = owner.take(refuses(sent))
    demand(error is None, f"the owner may invite, and was refused: {error}")


@check("invite.capabilities-kept")
async def the_invited_holds_the_same_when_it_comes_back(ctx: CheckContext) -> None:
    """Who was invited with capabilities holds them also after it disconnected and came back."""
    owner, held = await ctx.client("owner"), [CHAT, PROPOSAL.capability]
    guest = await a_guest(ctx, *held)
    for _ in range(2):
        await expect_enforced(ctx, guest, owner, held, passing=[HELLO, PROPOSAL], refused=[CALL])
        await ctx.rejoin(guest)
    for draft in (HELLO, PROPOSAL):
        listed = allows(guest.capabilities, draft)
        demand(listed is not False, f"{guest.id} came back, and its welcome lists {guest.capabilities}")


@check("invite.initial-capabilities")
async def the_invited_holds_what_it_was_invited_with(ctx: CheckContext) -> None:
    """From its first welcome on the invited may send what the invitation says, and nothing else."""
    owner = await ctx.client("owner")
    lists: tuple[tuple[list[Any], list[Draft]], ...] = (
        ([CHAT], []),
        ([CHAT, PROPOSAL.capability], [PROPOSAL]),
        ([CHAT, calling("read_*"), {"kind": "reasoning/*"}], [call("read_file"), REASONING]),
        (
            [CHAT, {"kind": "mcp/request"}],
            [call("read_file"), call("write_file"), request("tools/list")],
        ),
    )
    every = (PROPOSAL, REASONING, call("read_file"), call("write_file"), request("tools/list"))
    roles = [await invited(ctx, *capabilities) for capabilities, _ in lists]
    for role, (capabilities, allowed) in zip(roles, lists, strict=True):
        guest = await ctx.join(role)
        told = part(guest.welcome, "payload", "you", "capabilities")
        for draft in (HELLO, *every):
            if draft in (HELLO, *allowed):
                shown = isinstance(told, list) and allows(told, draft) is not False
                demand(shown, f"invited with {capabilities}, its first welcome lists {told} (§3.6.4)")
                await expect_passes(ctx, guest, owner, draft, f"having been invited with {capabilities}")
            else:
                await expect_draft_refused(
                    ctx, guest, owner, draft, f"having been invited with {capabilities}"
                )


@check("invite.email-sent")
async def the_invited_gets_a_mail(ctx: CheckContext) -> None:
    """For an invitation with `email` a mail goes to that address which says how to connect."""
    if ctx.config.mail is None:
        raise NotOffered("the kit was not told where to take the gateway's mail")
    owner = await ctx.client("owner")
    async with Mailbox(ctx.config.mail, ctx.config.timeout_s) as mailbox:
        who = somebody_new()
        address = f"{who}@example.org"
        await owner.send("space/invite", invitation(who, email=address))
        ctx.add_cleanup(partial(dismiss, ctx, who))
        letter = await mailbox.letter(address)
    body = letter.get_body(("plain", "html"))
    text = "" if body is None else str(body.get_content())
    ctx.transcript.received(address, f"mail: {letter['subject']}")
    demand(
        _URL.search(text),
        f"expected a mail with the address to connect to (§3.6.4); it has {len(text)} characters",
    )


@check("invite.other-notification")
async def a_token_goes_to_the_inviter(ctx: CheckContext) -> None:
    """A token that answers an invitation opens the space to the invited, and is shown to the inviter alone."""
    others = await ctx.clients("peer", "listener")
    roles = [await invited(ctx, CHAT) for _ in range(2)]
    demand(roles[0].token != roles[1].token, "two invitations were answered with the same token")
    for role in roles:
        guest = await ctx.join(role)
        demand(guest.id == role.id, f"the token for {role.id!r} let in {guest.id!r}")
        others.append(guest)
    await ctx.barrier(await ctx.client("owner"), *others)
    for other in others:
        shown = [role.name for role in roles for text in other.texts if role.token in text]
        demand(
            not shown,
            f"{other.name} was shown the token of {shown[:1]}, with which it could speak in its name",
        )


@check("delivery.accepted")
async def everyone_sees_how_the_space_is_managed(ctx: CheckContext) -> None:
    """Grants, revocations, invitations and removals reach everyone in the space, once, like any other envelope."""
    owner, peer, listener = await ctx.clients("owner", "peer", "listener")
    guest = await a_guest(ctx, CHAT)
    gift = {"recipient": guest.id, "capabilities": [PROPOSAL.capability]}
    sent = [await owner.send("capability/grant", gift)]
    sent.append(await owner.send("capability/revoke", {"recipient": guest.id, "grant_id": sent[0]["id"]}))
    sent.append(await owner.send("capability/grant", gift))
    sent.append(await owner.send("capability/revoke", gift))
    sent.append(await owner.send("space/kick", {"participant_id": guest.id}))
    await expect_delivered(ctx, owner, sent, peer, listener)


# Removing.


@check("kick.removes")
async def the_kicked_are_out(ctx: CheckContext) -> None:
    """Who is kicked gets and sends nothing more: its connections end, it left, and is listed no longer."""
    owner, peer, listener = await ctx.clients("owner", "peer", "listener")
    role, other = await _two(ctx, owner)
    try:
        target = await ctx.join(role)
    except UpgradeRefused as error:
        if role.name != KICKED:
            raise
        raise NotOffered(
            f"{KICKED} is not let in any more; it may have been kicked in an earlier run"
        ) from error
    bystander = await ctx.join(other)
    connections = await ctx.connect_twice(target, owner)
    payload = {"participant_id": target.id, "reason": "conformance"}
    await expect_refused(ctx, peer, await peer.send("space/kick", payload), owner, listener)
    await expect_passes(
        ctx, connections[-1], listener, HELLO, "after a space/kick by somebody who may not kick"
    )
    while listener.take(leaves(target.id)):
        continue  # its first connection may have been replaced by the second
    before = len(listener.matching(leaves(target.id)))
    await expect_shown(await owner.send("space/kick", payload), listener)
    for connection in connections:
        late = {"id": ""}
        with suppress(Violation):  # it was disconnected already
            late = await connection.send("chat", {"text": "still here"})
        await connection.disconnected("by a space/kick (§3.6.5)")
        await ctx.barrier(owner, listener)
        heard = listener.matching(is_id(late["id"]))
        demand(
            not heard, f"{listener.name} received what the kicked said after the kick was shown: {heard[:1]}"
        )
    await listener.expect(leaves(target.id), f"a system/presence: {target.id} left, for it was kicked")
    said = await owner.send("chat", {"text": "it is gone"})
    await expect_shown(said, bystander)
    demand(not target.matching(is_id(said["id"])), "the kicked still receives what is said")
    await _is_listed(ctx, bystander.id, but_not=target.id)
    await expect_passes(ctx, bystander, listener, HELLO, f"after {target.id} was kicked, who is another")
    left = len(listener.matching(leaves(target.id))) - before
    demand(left == 1, f"{listener.name} was told {left} times that the kicked left, not once")


@check("kick.lasting", needs=("kick.removes",))
async def the_kicked_do_not_just_come_back(ctx: CheckContext) -> None:
    """With the token that it had, who was kicked is not let in again; nor is who was kicked before it came."""
    owner, listener = await ctx.clients("owner", "listener")
    for has_come in (True, False):
        role = await invited(ctx, CHAT)
        guest = await ctx.join(role) if has_come else None
        await expect_shown(await owner.send("space/kick", {"participant_id": role.id}), listener)
        if guest is not None:
            await guest.disconnected("by a space/kick (§3.6.5)")
        came = await ctx.try_join(role)
        demand(
            came is None,
            f"expected that {role.name} is not let in after it was kicked (§3.6.5); it was welcomed",
        )
        await _is_listed(ctx, listener.id, but_not=role.name)
        with suppress(NotOffered):
            api = await open_messages_api(ctx)
            answer = await api.ask("POST", role.name, role, body={"kind": "chat", "payload": {"text": "hi"}})
            why = f"{role.name} was kicked, and over HTTP its chat was accepted with {answer.status} (§3.6.5)"
            demand(not answer.is_accepted, why)


async def _two(ctx: CheckContext, owner: ScriptedClient) -> tuple[Role, Role]:
    """One to be kicked and one to stay, whose id begins like the other's where they can be invited."""
    who = somebody_new()
    try:
        first = await invite(ctx, owner, invitation(who))
        return first, await invite(ctx, owner, invitation(f"{who}-2"))
    except NotOffered:
        return ctx.role(KICKED), ctx.role("spare-1")


async def _is_listed(ctx: CheckContext, who: str, *, but_not: str) -> None:
    later = await ctx.client("proposer")
    there = listed(later.welcome)
    demand(who in there, f"expected {who!r} among the participants of a later welcome; it lists {there}")
    demand(but_not not in there, f"a later welcome lists {but_not!r}, who was kicked (§3.6.5)")
