"""Revoking (§3.6.2, §3.6.6)."""

from typing import Any

from mew.conform.checking import check
from mew.conform.giving import grant, granted, revoke
from mew.conform.guests import somebody
from mew.conform.passing import passes, shown
from mew.conform.refusing import blocked, refused
from mew.conform.sayings import HELLO, PROPOSAL, REASONING, STATUS, THOUGHT, Say, call, calling, request
from mew.conform.stage import Stage


@check("grant.id-is-grant-id", "revoke.by-grant-id")
async def a_grant_is_revoked_by_the_id_of_its_envelope(stage: Stage) -> None:
    """A revocation with the id of a grant takes back that grant, and neither another nor what was held before."""
    owner, recipient = await stage.enter("owner"), await somebody(stage)
    held = {}
    for gift, say in (
        (PROPOSAL.capability, PROPOSAL),
        (REASONING.capability, REASONING),
        (STATUS.capability, STATUS),
    ):
        held[await granted(stage, owner, recipient, gift, shown=say)] = say
    first, second, third = held
    for grant_id in (second, first, third):
        await revoke(stage, owner, recipient, grant_id=grant_id)
        gone = held.pop(grant_id)
        await blocked(stage, recipient, owner, gone, "after the grant of it was revoked (§3.6.2)")
        for kept in (*held.values(), HELLO):
            await passes(stage, recipient, owner, kept, "after another grant than the one of it was revoked")
    await stage.rejoin(recipient)
    for say in (PROPOSAL, REASONING, STATUS):
        await blocked(stage, recipient, owner, say, "after it was revoked, having connected again (§3.6.2)")


@check("grant.id-is-grant-id")
async def only_the_grant_of_that_id_is_revoked(stage: Stage) -> None:
    """Of two grants of the same the other stays; an id of no grant, or of another's, takes nothing from anyone else."""
    owner, recipient, other = await stage.enter("owner"), await somebody(stage), await somebody(stage)
    first = await granted(stage, owner, recipient, PROPOSAL.capability, shown=PROPOSAL)
    second = await grant(stage, owner, recipient, PROPOSAL.capability)
    of_another = await granted(stage, owner, other, PROPOSAL.capability, shown=PROPOSAL)
    for grant_id in (f"{first}x", first[:-1], first.upper(), "", "*", of_another):
        await revoke(stage, owner, recipient, grant_id=grant_id)
        await passes(stage, recipient, owner, PROPOSAL, f"after a revocation of {grant_id!r}, no grant of it")
    await revoke(stage, owner, recipient, grant_id=first)
    await passes(stage, recipient, owner, PROPOSAL, "by a second grant of it, after the first was revoked")
    await revoke(stage, owner, recipient, grant_id=second)
    await blocked(stage, recipient, owner, PROPOSAL, "after both grants of it were revoked (§3.6.2)")


@check("revoke.by-grant-id")
async def a_revocation_concerns_its_recipient_alone(stage: Stage) -> None:
    """A grant with two capabilities goes as a whole; what another was granted stays, and who may not revoke cannot."""
    owner, peer = await stage.enter_all("owner", "peer")
    recipient, other = await somebody(stage), await somebody(stage)
    gifts = PROPOSAL.capability, REASONING.capability
    both = await granted(stage, owner, recipient, *gifts, shown=PROPOSAL)
    await granted(stage, owner, other, *gifts, shown=PROPOSAL)
    payload = {"recipient": recipient.id, "grant_id": both}
    await refused(stage, peer, await peer.send("capability/revoke", payload), owner)
    for say in (PROPOSAL, REASONING):
        await passes(stage, recipient, owner, say, "after a revocation by somebody who may not revoke")
    await revoke(stage, owner, recipient, grant_id=both)
    for say in (PROPOSAL, REASONING):
        await blocked(stage, recipient, owner, say, "after the grant of it was revoked (§3.6.2)")
        await passes(stage, other, owner, say, f"after a grant of {recipient.name} was revoked")


@check("revoke.by-pattern")
async def a_pattern_revokes_all_that_matches(stage: Stage) -> None:
    """A revocation by pattern takes all that is inside it, from however many grants, and nothing else, for good."""
    owner, recipient = await stage.enter("owner"), await somebody(stage)
    reading = {"kind": "mcp/request", "payload": {"method": "resources/read"}}
    thinking = {"kind": "reasoning/thought"}
    await granted(stage, owner, recipient, calling("read_file"), PROPOSAL.capability, shown=PROPOSAL)
    for gifts in (
        (calling("write_*"), reading),
        (calling("write_*"),),
        (thinking, REASONING.capability, STATUS.capability),
    ):
        await grant(stage, owner, recipient, *gifts)
    read = request("resources/read", {"uri": "file:///a"})
    held = [call("read_file"), call("write_file"), PROPOSAL, read, REASONING, THOUGHT, STATUS, HELLO]
    for say in held:
        await passes(stage, recipient, owner, say, "after it was granted")
    steps: tuple[tuple[list[Any], list[Say]], ...] = (
        ([{"kind": "mcp/request", "payload": {"method": "tools/*"}}], held[:2]),  # the example of §3.6.2
        ([REASONING.capability, thinking], [REASONING, THOUGHT]),
        ([{"kind": "mcp/*"}], [PROPOSAL, read]),
    )
    for patterns, gone in steps:
        await revoke(stage, owner, recipient, capabilities=patterns)
        held = [say for say in held if say not in gone]
        for say in gone:
            await blocked(stage, recipient, owner, say, f"after {patterns} was revoked (§3.6.2)")
        for say in held:
            await passes(stage, recipient, owner, say, f"after {patterns} was revoked, which it does not fit")
    await stage.rejoin(recipient)
    for patterns, gone in steps:
        for say in gone:
            why = f"after {patterns} was revoked, having connected again (§3.6.2)"
            await blocked(stage, recipient, owner, say, why)


@check("revoke.by-pattern")
async def a_pattern_is_revoked_from_its_recipient_alone(stage: Stage) -> None:
    """What others hold inside the pattern they keep, and who may not revoke takes nothing."""
    owner, peer = await stage.enter_all("owner", "peer")
    recipient, other = await somebody(stage), await somebody(stage)
    for whom in (recipient, other):
        await granted(stage, owner, whom, PROPOSAL.capability, shown=PROPOSAL)
    taking = {"recipient": recipient.id, "capabilities": [PROPOSAL.capability]}
    await refused(stage, peer, await peer.send("capability/revoke", taking), owner)
    await passes(stage, recipient, owner, PROPOSAL, "after a revocation by somebody who may not revoke")
    await revoke(stage, owner, recipient, capabilities=[PROPOSAL.capability])
    await blocked(stage, recipient, owner, PROPOSAL, "after it was revoked by its pattern (§3.6.2)")
    for keeper in (other, peer, owner):
        witness = peer if keeper is owner else owner
        await passes(stage, keeper, witness, PROPOSAL, f"after it was revoked from {recipient.name}")


@check("revoke.immediate")
async def a_revocation_counts_at_once(stage: Stage) -> None:
    """From when anybody was shown a revocation the recipient is refused, on all its connections, as it is connected."""
    owner, listener = await stage.enter_all("owner", "listener")
    connections = await stage.twice(await somebody(stage), owner)
    recipient = connections[-1]
    for _ in range(3):
        for by_id in (True, False):
            grant_id = await granted(stage, owner, recipient, PROPOSAL.capability, shown=PROPOSAL)
            for connection in connections:
                await passes(stage, connection, owner, PROPOSAL, "after it was granted")
            what = {"grant_id": grant_id} if by_id else {"capabilities": [PROPOSAL.capability]}
            sent = await owner.send("capability/revoke", {"recipient": recipient.id, **what})
            await shown(sent, listener)
            for connection in connections:
                why = "after a third was shown that it was revoked (§3.6.6)"
                await blocked(stage, connection, owner, PROPOSAL, why)
