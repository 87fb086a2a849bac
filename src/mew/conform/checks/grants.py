"""Granting and revoking (§3.6.1, §3.6.2, §3.6.6)."""

from contextlib import suppress
from typing import Any, Final

from mew.conform.context import CheckContext
from mew.conform.drafts import (
    CHAT,
    HELLO,
    PROPOSAL,
    REASONING,
    STATUS,
    THOUGHT,
    Draft,
    call,
    calling,
    request,
)
from mew.conform.expectations import expect_draft_refused, expect_passes, expect_refused, expect_shown
from mew.conform.fixtures import a_guest, grant, granted, invitation, invite, revoke, somebody, somebody_new
from mew.conform.match import refuses
from mew.conform.outcome import NotOffered, demand
from mew.conform.runner import check

_BROKEN: Final = {1006, 1011}
"""The codes of a connection that ended without a word, and of one whose handler failed."""

# Who may grant.


@check("grant.needs-capability")
async def only_who_may_grant_does(ctx: CheckContext) -> None:
    """A grant from somebody without a capability for it is refused, nobody sees it, and nobody holds more."""
    owner, recipient = await ctx.client("owner"), await somebody(ctx)
    senders = [await ctx.client("peer")]  # who holds what it tries to give
    with suppress(NotOffered):
        near = {"kind": "capability/grant-ack"}, {"kind": "capability/revoke"}, {"kind": "capability/gran"}
        senders.append(await somebody(ctx, *near, PROPOSAL.capability, CHAT))
        narrow = {"kind": "capability/grant", "payload": {"recipient": "somebody-else"}}
        senders.append(await somebody(ctx, narrow, PROPOSAL.capability, CHAT))
    for sender in senders:
        gifts = (
            (recipient, PROPOSAL.capability),
            (sender, {"kind": "capability/grant"}),
            (sender, STATUS.capability),
        )
        for whom, gift in gifts:
            payload = {"recipient": whom.id, "capabilities": [gift], "reason": "conformance"}
            sent = await sender.send("capability/grant", payload, to=[whom.id])
            await expect_refused(ctx, sender, sent, owner, recipient)
        why = "through a grant whose sender may not grant (§3.6.6)"
        await expect_draft_refused(ctx, recipient, owner, PROPOSAL, why)
        await expect_draft_refused(ctx, sender, owner, STATUS, why)


@check("grant.only-what-you-hold")
async def nobody_grants_a_kind_that_it_lacks(ctx: CheckContext) -> None:
    """Whatever somebody grants who may propose and not request, nobody can send a request by it."""
    owner, granter = await ctx.clients("owner", "granter")
    recipient = await somebody(ctx)
    wide: tuple[Any, ...] = (
        *({"kind": kind} for kind in ("mcp/request", "*", "mcp/*", "mcp/re*", "m*", "**")),
        {"kind": "mcp/request", "payload": {"method": "tools/call"}},
        {"kind": "*", "payload": {"method": "tools/call"}},
    )
    for whom in (recipient, granter):
        why = f"by a grant of {granter.name}, who may not send it (§3.6.6)"
        for gift in wide:
            await grant(ctx, granter, whom, gift)
            await expect_draft_refused(ctx, whom, owner, call("read_file"), f"after {gift} {why}")
        await grant(ctx, granter, whom, PROPOSAL.capability, {"kind": "mcp/request"})
        await expect_draft_refused(ctx, whom, owner, call("read_file"), f"after a grant of both {why}")
    await granted(ctx, granter, recipient, PROPOSAL.capability, shown=PROPOSAL)


@check("grant.only-what-you-hold")
async def nobody_grants_a_payload_that_it_lacks(ctx: CheckContext) -> None:
    """Whatever somebody grants who may call tools that begin with read_, nobody can call another by it."""
    owner, recipient = await ctx.client("owner"), await somebody(ctx)
    granter = await somebody(ctx, {"kind": "capability/grant"}, calling("read_*"), CHAT)
    wide: tuple[tuple[Any, Draft], ...] = (
        ({"kind": "mcp/request"}, call("write_file")),
        ({"kind": "mcp/request", "payload": {}}, call("write_file")),
        ({"kind": "mcp/request", "payload": {"method": "tools/call"}}, call("write_file")),
        ({"kind": "mcp/request", "payload": {"method": "tools/call", "params": {}}}, call("write_file")),
        (calling("*"), call("write_file")),
        (calling("r*"), call("run")),
        (calling("read*"), call("readme")),
        (calling("read_*", "*"), request("prompts/get", {"name": "read_me"})),
        (calling("read_*", "tools/*"), request("tools/list", {"name": "read_me"})),
        ({"kind": "mcp/*", "payload": calling("read_*")["payload"]}, PROPOSAL),
    )
    for gift, draft in wide:
        await grant(ctx, granter, recipient, gift)
        why = f"after a grant of {gift} by {granter.name}, who may not send it (§3.6.6)"
        await expect_draft_refused(ctx, recipient, owner, draft, why)
    await granted(ctx, granter, recipient, calling("read_file"), shown=call("read_file"))
    await expect_draft_refused(ctx, recipient, owner, call("write_file"), "by a grant of read_file")


@check("grant.only-what-you-hold")
async def nobody_grants_what_was_taken_from_it(ctx: CheckContext) -> None:
    """What was revoked from somebody it can give neither to another nor back to itself."""
    owner, recipient = await ctx.client("owner"), await somebody(ctx)
    granter = await somebody(ctx, {"kind": "capability/grant"}, CHAT)
    held = await granted(ctx, owner, granter, PROPOSAL.capability, shown=PROPOSAL)
    await revoke(ctx, owner, granter, grant_id=held)
    for whom in (recipient, granter):
        await grant(ctx, granter, whom, PROPOSAL.capability)
        why = f"by a grant of {granter.name}, from whom it was revoked before that (§3.6.6)"
        await expect_draft_refused(ctx, whom, owner, PROPOSAL, why)


@check("grant.only-what-you-hold")
async def nobody_invites_with_what_it_lacks(ctx: CheckContext) -> None:
    """Somebody invited cannot send what its inviter may not, whatever the invitation says, and whomever it names."""
    owner, richer = await ctx.client("owner"), await a_guest(ctx, CHAT, {"kind": "mcp/request"})
    inviter = await a_guest(ctx, {"kind": "space/invite"}, PROPOSAL.capability, CHAT)
    wide = [(somebody_new(), {"kind": kind}) for kind in ("mcp/request", "*", "mcp/*")]
    for who, gift in (*wide, (richer.id, CHAT)):
        try:
            role = await invite(ctx, inviter, invitation(who, CHAT, gift))
        except NotOffered:
            continue  # refused as a whole
        invited = await ctx.join(role)
        why = f"by an invitation of {who} with {gift} from {inviter.name}, who may not send it (§3.6.6)"
        await expect_draft_refused(ctx, invited, owner, call("read_file"), why)
    invited = await ctx.join(await invite(ctx, inviter, invitation(somebody_new(), CHAT)))
    await expect_passes(
        ctx, invited, owner, HELLO, f"having been invited with it by {inviter.name}, who holds it"
    )


# What a grant does.


@check("grant.payload")
async def a_grant_names_recipient_and_capabilities(ctx: CheckContext) -> None:
    """A grant without a recipient, or without an array of capabilities, gives nobody anything."""
    owner, listener = await ctx.clients("owner", "listener")
    recipient = await somebody(ctx)
    whom, what = recipient.id, [PROPOSAL.capability]
    lacking: tuple[Any, ...] = (
        {},
        {"recipient": whom},
        {"capabilities": what},
        {"recipient": None, "capabilities": what},
        {"recipient": "", "capabilities": what},
        {"recipient": "*", "capabilities": what},
        {"recipient": {"id": whom}, "capabilities": what},
        {"participant_id": whom, "capabilities": what},
        {"recipient": whom, "capabilities": None},
        {"recipient": whom, "capabilities": []},
        {"recipient": whom, "capability": PROPOSAL.capability},
        {"recipient": whom, "capabilities": [None, 1, []]},
        {"recipient": f"{whom}-2", "capabilities": what},
    )
    for payload in lacking:
        sent = await owner.send("capability/grant", payload, to=[whom])
        await ctx.round_trip(owner, recipient, listener)
        broken = set(owner.closings) & _BROKEN
        demand(
            not broken or owner.matching(refuses(sent)),
            f"the gateway broke off over the grant {sent['id']} with the payload {payload} instead of refusing it "
            f"(§3.6.1): closed with code {broken}",
        )
        for each in (recipient, listener):
            await expect_draft_refused(
                ctx, each, owner, PROPOSAL, f"by a grant with the payload {payload} (§3.6.1)"
            )
    await granted(ctx, owner, recipient, PROPOSAL.capability, shown=PROPOSAL)


@check("grant.adds")
async def a_grant_counts_on_the_connections_there_are(ctx: CheckContext) -> None:
    """After a grant its recipient, and nobody else, may send what it could not before, without reconnecting."""
    owner, listener = await ctx.clients("owner", "listener")
    connections = await ctx.connect_twice(await somebody(ctx), owner)
    recipient = connections[-1]
    gifts: tuple[tuple[Draft, Any, Any], ...] = (
        (PROPOSAL, PROPOSAL.capability, ...),
        (REASONING, REASONING.capability, []),
        (call("read_file"), calling("read_file"), [recipient.id]),
        (STATUS, STATUS.capability, [listener.id]),  # `recipient` counts, not `to`
    )
    for draft, gift, to in gifts:
        await expect_draft_refused(ctx, recipient, owner, draft, "before it is granted")
        await grant(ctx, owner, recipient, gift, to=to)
        for connection in connections:
            await expect_passes(ctx, connection, owner, draft, f"after it was granted {gift} (§3.6.1)")
        await expect_draft_refused(ctx, listener, owner, draft, f"by a grant to {recipient.name}")


@check("grant.patterns")
async def granted_capabilities_are_patterns(ctx: CheckContext) -> None:
    """What is granted is matched like any capability: by kind, by wildcard, and by what is in the payload."""
    owner, recipient = await ctx.client("owner"), await somebody(ctx)
    await granted(ctx, owner, recipient, calling("read_file"), shown=call("read_file"))
    others = [call(name) for name in ("write_file", "read_file2", "read_fil", "Read_file", "read_file\n", "")]
    others += [request("tools/list"), request("tools/call"), request("resources/read", {"name": "read_file"})]
    others += [Draft("mcp/proposal", call("read_file").payload), Draft("mcp/request", {})]
    for draft in others:
        await expect_draft_refused(
            ctx, recipient, owner, draft, "by a grant of tools/call with read_file (§4.1)"
        )
    await grant(ctx, owner, recipient, calling("list_*"), {"kind": "reasoning/*"})
    for draft in (call("list_files"), call("list_x"), REASONING, THOUGHT):
        await expect_passes(ctx, recipient, owner, draft, "by a grant of list_* and reasoning/*")
    for draft in (call("listing"), call("my_list_x"), PROPOSAL, Draft("reasonings/start", {})):
        await expect_draft_refused(
            ctx, recipient, owner, draft, "by a grant of list_* and reasoning/* (§4.1)"
        )


@check("grant.cumulative")
async def grants_add_up(ctx: CheckContext) -> None:
    """A second and a third grant add to the first and to what there was: all of it passes."""
    owner, recipient = await ctx.client("owner"), await somebody(ctx)
    held = [HELLO]
    gifts = (
        (PROPOSAL.capability, PROPOSAL),
        ({"kind": "mcp/request"}, call("write_file")),
        (calling("read_*"), call("read_file")),  # inside the one before, which it does not narrow
        (REASONING.capability, REASONING),
    )
    for gift, draft in gifts:
        await granted(ctx, owner, recipient, gift, shown=draft)
        held.append(draft)
        for each in held:
            await expect_passes(ctx, recipient, owner, each, f"as before, after a grant of {gift} (§3.6.1)")


@check("grant.id-is-grant-id", "revoke.by-grant-id")
async def a_grant_is_revoked_by_the_id_of_its_envelope(ctx: CheckContext) -> None:
    """A revocation with the id of a grant takes back that grant, and neither another nor what was held before."""
    owner, recipient = await ctx.client("owner"), await somebody(ctx)
    held = {}
    for gift, draft in (
        (PROPOSAL.capability, PROPOSAL),
        (REASONING.capability, REASONING),
        (STATUS.capability, STATUS),
    ):
        held[await granted(ctx, owner, recipient, gift, shown=draft)] = draft
    first, second, third = held
    for grant_id in (second, first, third):
        await revoke(ctx, owner, recipient, grant_id=grant_id)
        gone = held.pop(grant_id)
        await expect_draft_refused(ctx, recipient, owner, gone, "after the grant of it was revoked (§3.6.2)")
        for kept in (*held.values(), HELLO):
            await expect_passes(
                ctx, recipient, owner, kept, "after another grant than the one of it was revoked"
            )
    await ctx.rejoin(recipient)
    for draft in (PROPOSAL, REASONING, STATUS):
        await expect_draft_refused(
            ctx, recipient, owner, draft, "after it was revoked, having connected again (§3.6.2)"
        )


@check("grant.id-is-grant-id")
async def only_the_grant_of_that_id_is_revoked(ctx: CheckContext) -> None:
    """Of two grants of the same the other stays; an id of no grant, or of another's, takes nothing from anyone else."""
    owner, recipient, other = await ctx.client("owner"), await somebody(ctx), await somebody(ctx)
    first = await granted(ctx, owner, recipient, PROPOSAL.capability, shown=PROPOSAL)
    second = await grant(ctx, owner, recipient, PROPOSAL.capability)
    of_another = await granted(ctx, owner, other, PROPOSAL.capability, shown=PROPOSAL)
    for grant_id in (f"{first}x", first[:-1], first.upper(), "", "*", of_another):
        await revoke(ctx, owner, recipient, grant_id=grant_id)
        await expect_passes(
            ctx, recipient, owner, PROPOSAL, f"after a revocation of {grant_id!r}, no grant of it"
        )
    await revoke(ctx, owner, recipient, grant_id=first)
    await expect_passes(
        ctx, recipient, owner, PROPOSAL, "by a second grant of it, after the first was revoked"
    )
    await revoke(ctx, owner, recipient, grant_id=second)
    await expect_draft_refused(
        ctx, recipient, owner, PROPOSAL, "after both grants of it were revoked (§3.6.2)"
    )


@check("revoke.by-grant-id")
async def a_revocation_concerns_its_recipient_alone(ctx: CheckContext) -> None:
    """A grant with two capabilities goes as a whole; what another was granted stays, and who may not revoke cannot."""
    owner, peer = await ctx.clients("owner", "peer")
    recipient, other = await somebody(ctx), await somebody(ctx)
    gifts = PROPOSAL.capability, REASONING.capability
    both = await granted(ctx, owner, recipient, *gifts, shown=PROPOSAL)
    await granted(ctx, owner, other, *gifts, shown=PROPOSAL)
    payload = {"recipient": recipient.id, "grant_id": both}
    await expect_refused(ctx, peer, await peer.send("capability/revoke", payload), owner)
    for draft in (PROPOSAL, REASONING):
        await expect_passes(ctx, recipient, owner, draft, "after a revocation by somebody who may not revoke")
    await revoke(ctx, owner, recipient, grant_id=both)
    for draft in (PROPOSAL, REASONING):
        await expect_draft_refused(ctx, recipient, owner, draft, "after the grant of it was revoked (§3.6.2)")
        await expect_passes(ctx, other, owner, draft, f"after a grant of {recipient.name} was revoked")


@check("revoke.by-pattern")
async def a_pattern_revokes_all_that_matches(ctx: CheckContext) -> None:
    """A revocation by pattern takes all that is inside it, from however many grants, and nothing else, for good."""
    owner, recipient = await ctx.client("owner"), await somebody(ctx)
    reading = {"kind": "mcp/request", "payload": {"method": "resources/read"}}
    thinking = {"kind": "reasoning/thought"}
    await granted(ctx, owner, recipient, calling("read_file"), PROPOSAL.capability, shown=PROPOSAL)
    for gifts in (
        (calling("write_*"), reading),
        (calling("write_*"),),
        (thinking, REASONING.capability, STATUS.capability),
    ):
        await grant(ctx, owner, recipient, *gifts)
    read = request("resources/read", {"uri": "file:///a"})
    held = [call("read_file"), call("write_file"), PROPOSAL, read, REASONING, THOUGHT, STATUS, HELLO]
    for draft in held:
        await expect_passes(ctx, recipient, owner, draft, "after it was granted")
    steps: tuple[tuple[list[Any], list[Draft]], ...] = (
        ([{"kind": "mcp/request", "payload": {"method": "tools/*"}}], held[:2]),  # the example of §3.6.2
        ([REASONING.capability, thinking], [REASONING, THOUGHT]),
        ([{"kind": "mcp/*"}], [PROPOSAL, read]),
    )
    for patterns, gone in steps:
        await revoke(ctx, owner, recipient, capabilities=patterns)
        held = [draft for draft in held if draft not in gone]
        for draft in gone:
            await expect_draft_refused(ctx, recipient, owner, draft, f"after {patterns} was revoked (§3.6.2)")
        for draft in held:
            await expect_passes(
                ctx, recipient, owner, draft, f"after {patterns} was revoked, which it does not fit"
            )
    await ctx.rejoin(recipient)
    for patterns, gone in steps:
        for draft in gone:
            why = f"after {patterns} was revoked, having connected again (§3.6.2)"
            await expect_draft_refused(ctx, recipient, owner, draft, why)


@check("revoke.by-pattern")
async def a_pattern_is_revoked_from_its_recipient_alone(ctx: CheckContext) -> None:
    """What others hold inside the pattern they keep, and who may not revoke takes nothing."""
    owner, peer = await ctx.clients("owner", "peer")
    recipient, other = await somebody(ctx), await somebody(ctx)
    for whom in (recipient, other):
        await granted(ctx, owner, whom, PROPOSAL.capability, shown=PROPOSAL)
    taking = {"recipient": recipient.id, "capabilities": [PROPOSAL.capability]}
    await expect_refused(ctx, peer, await peer.send("capability/revoke", taking), owner)
    await expect_passes(ctx, recipient, owner, PROPOSAL, "after a revocation by somebody who may not revoke")
    await revoke(ctx, owner, recipient, capabilities=[PROPOSAL.capability])
    await expect_draft_refused(
        ctx, recipient, owner, PROPOSAL, "after it was revoked by its pattern (§3.6.2)"
    )
    for keeper in (other, peer, owner):
        observer = peer if keeper is owner else owner
        await expect_passes(ctx, keeper, observer, PROPOSAL, f"after it was revoked from {recipient.name}")


@check("revoke.immediate")
async def a_revocation_counts_at_once(ctx: CheckContext) -> None:
    """From when anybody was shown a revocation the recipient is refused, on all its connections, as it is connected."""
    owner, listener = await ctx.clients("owner", "listener")
    connections = await ctx.connect_twice(await somebody(ctx), owner)
    recipient = connections[-1]
    for _ in range(3):
        for by_id in (True, False):
            grant_id = await granted(ctx, owner, recipient, PROPOSAL.capability, shown=PROPOSAL)
            for connection in connections:
                await expect_passes(ctx, connection, owner, PROPOSAL, "after it was granted")
            what = {"grant_id": grant_id} if by_id else {"capabilities": [PROPOSAL.capability]}
            sent = await owner.send("capability/revoke", {"recipient": recipient.id, **what})
            await expect_shown(sent, listener)
            for connection in connections:
                why = "after a third was shown that it was revoked (§3.6.6)"
                await expect_draft_refused(ctx, connection, owner, PROPOSAL, why)
