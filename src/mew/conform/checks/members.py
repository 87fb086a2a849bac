"""Inviting and removing (§3.6.4, §3.6.5)."""

import re
from contextlib import suppress
from functools import partial
from typing import Any, Final

from mew.conform.connection import Actor, Refused
from mew.conform.context import Stage
from mew.conform.drafts import CALL, CHAT, HELLO, PROPOSAL, REASONING, Say, allows, call, calling, request
from mew.conform.expectations import arrive, blocked, held_to, passes, refused, shown, taken
from mew.conform.fixtures import a_guest, dismiss, invitation, invite, invited, somebody_new
from mew.conform.http_api import open_door
from mew.conform.mailbox import Mailbox
from mew.conform.match import is_id, leaves, listed, part, refuses
from mew.conform.outcome import NotOffered, Violation, demand
from mew.conform.roles import DOOMED, Role
from mew.conform.runner import check

_URL: Final = re.compile(r"\b(wss?|https?)://\S")


# Inviting.


@check("invite.admits")
async def the_invited_can_come(stage: Stage) -> None:
    """Somebody unknown before can connect after an invitation, is welcomed under that id, and takes part."""
    owner, listener = await stage.enter_all("owner", "listener")
    first = somebody_new()
    ids = (first, f"{first}-2", first[:-1])
    roles = [await invite(stage, owner, invitation(who)) for who in ids]
    for who, role in zip(ids, roles, strict=True):
        guest = await stage.join(role)
        demand(guest.id == who, f"invited as {who!r}, and welcomed as {guest.id!r} (§3.6.4)")
        await passes(stage, guest, listener, HELLO, "after it was invited with chat and let in")
        await stage.settle(listener, guest)
    mixed = somebody_new().title()
    with suppress(NotOffered):  # a gateway may be particular about ids
        guest = await stage.join(await invite(stage, owner, invitation(mixed)))
        demand(guest.id == mixed, f"invited as {mixed!r}, and welcomed as {guest.id!r} (§3.6.4)")


@check("invite.email-optional")
async def an_invitation_may_name_an_email_address(stage: Stage) -> None:
    """An invitation with `email` is accepted, and so is one without."""
    owner, listener = await stage.enter_all("owner", "listener")
    for more in ({}, {"email": "conform@example.invalid"}, {}):
        who = somebody_new()
        sent = await owner.send("space/invite", invitation(who, **more))
        stage.afterwards(partial(dismiss, stage, who))
        await taken(stage, owner, sent, listener)


@check("invite.broadcast")
async def everyone_sees_an_invitation(stage: Stage) -> None:
    """An invitation reaches everyone in the space, once, and one by somebody who may not invite reaches nobody."""
    owner, peer, listener = await stage.enter_all("owner", "peer", "listener")
    for capabilities in ((CHAT,), (PROPOSAL.capability, calling("read_*"))):
        await _shown(stage, owner, invitation(somebody_new(), *capabilities), peer, listener)
    sent = await peer.send("space/invite", invitation(somebody_new()))
    await refused(stage, peer, sent, owner, listener)
    told = peer.heard(lambda e: part(e, "payload", "token") is not None)
    demand(not told, f"{peer.name} may not invite, and was answered with a token: {told[:1]}")


async def _shown(stage: Stage, owner: Actor, payload: dict[str, Any], *others: Actor) -> None:
    sent = await owner.send("space/invite", payload)
    stage.afterwards(partial(dismiss, stage, payload["participant_id"]))
    await arrive(stage, owner, [sent], *others)
    error = owner.already(refuses(sent))
    demand(error is None, f"the owner may invite, and was refused: {error}")


@check("invite.capabilities-kept")
async def the_invited_holds_the_same_when_it_comes_back(stage: Stage) -> None:
    """Who was invited with capabilities holds them also after it disconnected and came back."""
    owner, held = await stage.enter("owner"), [CHAT, PROPOSAL.capability]
    guest = await a_guest(stage, *held)
    for _ in range(2):
        await held_to(stage, guest, owner, held, passing=[HELLO, PROPOSAL], refused=[CALL])
        await stage.rejoin(guest)
    for say in (HELLO, PROPOSAL):
        listed = allows(guest.capabilities, say)
        demand(listed is not False, f"{guest.id} came back, and its welcome lists {guest.capabilities}")


@check("invite.initial-capabilities")
async def the_invited_holds_what_it_was_invited_with(stage: Stage) -> None:
    """From its first welcome on the invited may send what the invitation says, and nothing else."""
    owner = await stage.enter("owner")
    lists: tuple[tuple[list[Any], list[Say]], ...] = (
        ([CHAT], []),
        ([CHAT, PROPOSAL.capability], [PROPOSAL]),
        ([CHAT, calling("read_*"), {"kind": "reasoning/*"}], [call("read_file"), REASONING]),
        (
            [CHAT, {"kind": "mcp/request"}],
            [call("read_file"), call("write_file"), request("tools/list")],
        ),
    )
    every = (PROPOSAL, REASONING, call("read_file"), call("write_file"), request("tools/list"))
    roles = [await invited(stage, *capabilities) for capabilities, _ in lists]
    for role, (capabilities, allowed) in zip(roles, lists, strict=True):
        guest = await stage.join(role)
        told = part(guest.welcome, "payload", "you", "capabilities")
        for say in (HELLO, *every):
            if say in (HELLO, *allowed):
                shown = isinstance(told, list) and allows(told, say) is not False
                demand(shown, f"invited with {capabilities}, its first welcome lists {told} (§3.6.4)")
                await passes(stage, guest, owner, say, f"having been invited with {capabilities}")
            else:
                await blocked(stage, guest, owner, say, f"having been invited with {capabilities}")


@check("invite.email-sent")
async def the_invited_gets_a_mail(stage: Stage) -> None:
    """For an invitation with `email` a mail goes to that address which says how to connect."""
    if stage.cast.mail is None:
        raise NotOffered("the kit was not told where to take the gateway's mail")
    owner = await stage.enter("owner")
    async with Mailbox(stage.cast.mail, stage.cast.patience_s) as mailbox:
        who = somebody_new()
        address = f"{who}@example.org"
        await owner.send("space/invite", invitation(who, email=address))
        stage.afterwards(partial(dismiss, stage, who))
        letter = await mailbox.letter(address)
    body = letter.get_body(("plain", "html"))
    text = "" if body is None else str(body.get_content())
    stage.transcript.received(address, f"mail: {letter['subject']}")
    demand(
        _URL.search(text),
        f"expected a mail with the address to connect to (§3.6.4); it has {len(text)} characters",
    )


@check("invite.other-notification")
async def a_token_goes_to_the_inviter(stage: Stage) -> None:
    """A token that answers an invitation opens the space to the invited, and is shown to the inviter alone."""
    others = await stage.enter_all("peer", "listener")
    roles = [await invited(stage, CHAT) for _ in range(2)]
    demand(roles[0].token != roles[1].token, "two invitations were answered with the same token")
    for role in roles:
        guest = await stage.join(role)
        demand(guest.id == role.id, f"the token for {role.id!r} let in {guest.id!r}")
        others.append(guest)
    await stage.settle(await stage.enter("owner"), *others)
    for other in others:
        shown = [role.name for role in roles for text in other.texts if role.token in text]
        demand(
            not shown,
            f"{other.name} was shown the token of {shown[:1]}, with which it could speak in its name",
        )


@check("delivery.accepted")
async def everyone_sees_how_the_space_is_managed(stage: Stage) -> None:
    """Grants, revocations, invitations and removals reach everyone in the space, once, like any other envelope."""
    owner, peer, listener = await stage.enter_all("owner", "peer", "listener")
    guest = await a_guest(stage, CHAT)
    gift = {"recipient": guest.id, "capabilities": [PROPOSAL.capability]}
    sent = [await owner.send("capability/grant", gift)]
    sent.append(await owner.send("capability/revoke", {"recipient": guest.id, "grant_id": sent[0]["id"]}))
    sent.append(await owner.send("capability/grant", gift))
    sent.append(await owner.send("capability/revoke", gift))
    sent.append(await owner.send("space/kick", {"participant_id": guest.id}))
    await arrive(stage, owner, sent, peer, listener)


# Removing.


@check("kick.removes")
async def the_kicked_are_out(stage: Stage) -> None:
    """Who is kicked gets and sends nothing more: its connections end, it left, and is listed no longer."""
    owner, peer, listener = await stage.enter_all("owner", "peer", "listener")
    role, other = await _two(stage, owner)
    try:
        target = await stage.join(role)
    except Refused as error:
        if role.name != DOOMED:
            raise
        raise NotOffered(
            f"{DOOMED} is not let in any more; it may have been kicked in an earlier run"
        ) from error
    bystander = await stage.join(other)
    connections = await stage.twice(target, owner)
    payload = {"participant_id": target.id, "reason": "conformance"}
    await refused(stage, peer, await peer.send("space/kick", payload), owner, listener)
    await passes(stage, connections[-1], listener, HELLO, "after a space/kick by somebody who may not kick")
    while listener.already(leaves(target.id)):
        continue  # its first connection may have been replaced by the second
    before = len(listener.heard(leaves(target.id)))
    await shown(await owner.send("space/kick", payload), listener)
    for connection in connections:
        late = {"id": ""}
        with suppress(Violation):  # it was disconnected already
            late = await connection.send("chat", {"text": "still here"})
        await connection.disconnected("by a space/kick (§3.6.5)")
        await stage.settle(owner, listener)
        heard = listener.heard(is_id(late["id"]))
        demand(
            not heard, f"{listener.name} received what the kicked said after the kick was shown: {heard[:1]}"
        )
    await listener.hear(leaves(target.id), f"a system/presence: {target.id} left, for it was kicked")
    said = await owner.send("chat", {"text": "it is gone"})
    await shown(said, bystander)
    demand(not target.heard(is_id(said["id"])), "the kicked still receives what is said")
    await _is_listed(stage, bystander.id, but_not=target.id)
    await passes(stage, bystander, listener, HELLO, f"after {target.id} was kicked, who is another")
    left = len(listener.heard(leaves(target.id))) - before
    demand(left == 1, f"{listener.name} was told {left} times that the kicked left, not once")


@check("kick.lasting", needs=("kick.removes",))
async def the_kicked_do_not_just_come_back(stage: Stage) -> None:
    """With the token that it had, who was kicked is not let in again; nor is who was kicked before it came."""
    owner, listener = await stage.enter_all("owner", "listener")
    for has_come in (True, False):
        role = await invited(stage, CHAT)
        guest = await stage.join(role) if has_come else None
        await shown(await owner.send("space/kick", {"participant_id": role.id}), listener)
        if guest is not None:
            await guest.disconnected("by a space/kick (§3.6.5)")
        came = await stage.let_in(role)
        demand(
            came is None,
            f"expected that {role.name} is not let in after it was kicked (§3.6.5); it was welcomed",
        )
        await _is_listed(stage, listener.id, but_not=role.name)
        with suppress(NotOffered):
            door = await open_door(stage)
            answer = await door.ask("POST", role.name, role, body={"kind": "chat", "payload": {"text": "hi"}})
            why = f"{role.name} was kicked, and over HTTP its chat was accepted with {answer.status} (§3.6.5)"
            demand(not answer.is_accepted, why)


async def _two(stage: Stage, owner: Actor) -> tuple[Role, Role]:
    """One to be kicked and one to stay, whose id begins like the other's where they can be invited."""
    who = somebody_new()
    try:
        first = await invite(stage, owner, invitation(who))
        return first, await invite(stage, owner, invitation(f"{who}-2"))
    except NotOffered:
        return stage.role(DOOMED), stage.role("spare-1")


async def _is_listed(stage: Stage, who: str, *, but_not: str) -> None:
    later = await stage.enter("proposer")
    there = listed(later.welcome)
    demand(who in there, f"expected {who!r} among the participants of a later welcome; it lists {there}")
    demand(but_not not in there, f"a later welcome lists {but_not!r}, who was kicked (§3.6.5)")
