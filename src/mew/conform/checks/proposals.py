"""Proposals and what becomes of them: withdrawn, rejected, and why (§3.2.1, §3.3)."""

from contextlib import suppress
from typing import Any, Final

from mew.conform.checking import check
from mew.conform.guests import somebody
from mew.conform.matching import leaves
from mew.conform.passing import arrive, shown
from mew.conform.refusing import refused
from mew.conform.sayings import CHAT
from mew.conform.stage import Stage
from mew.conform.verdicts import NotOffered, Violation
from mew.conform.wire import Actor

_CALL: Final = {"method": "tools/call", "params": {"name": "write_file", "arguments": {"path": "/a"}}}
_CODES: Final = (
    "disagree",
    "inappropriate",
    "unsafe",
    "busy",
    "incapable",
    "policy",
    "duplicate",
    "invalid",
    "timeout",
    "resource_limit",
    "no_longer_needed",
    "other",
)
_OWN_WORDS: Final = ("Busy", "out-of-office", "vendor:42", "zu spät 🐱", "no " * 200)


_NOT_ITS_OWN: Final = (
    "of another's proposal (§3.3.1: only the original proposer can withdraw it; §4.2 has the gateway look at kind and "
    "payload alone, and §10.2 leaves proposals to agents: the document disagrees with itself, and we keep to §3.3.1)"
)


async def _proposal(proposer: Actor, **fields: Any) -> dict[str, Any]:
    return await proposer.send("mcp/proposal", _CALL, **fields)


@check("proposal.without-correlation")
async def a_proposal_needs_no_cause(stage: Stage) -> None:
    """A proposal without `correlation_id`, with an empty one, and with one is delivered."""
    owner, proposer, listener = await stage.enter_all("owner", "proposer", "listener")
    asked = await owner.send("chat", {"text": "would you?"})
    await shown(asked, proposer)
    sent = [
        await _proposal(proposer),
        await _proposal(proposer, correlation_id=[]),
        await _proposal(proposer, correlation_id=[asked["id"]]),
    ]
    await arrive(stage, proposer, sent, owner, listener)
    addressed = await _proposal(proposer, to=[owner.id])
    await arrive(stage, proposer, [addressed], owner)


@check("withdraw.own")
async def a_proposer_withdraws_its_own(stage: Stage) -> None:
    """A withdrawal by the proposer is delivered: with a reason or none, of one or of two, after a rejection too."""
    owner, proposer, listener = await stage.enter_all("owner", "proposer", "listener")
    first, second, third, fourth = [await _proposal(proposer) for _ in range(4)]
    await arrive(stage, proposer, [first, second, third, fourth], owner, listener)
    rejected = await owner.send("mcp/reject", {"reason": "busy"}, correlation_id=[second["id"]])
    await shown(rejected, proposer)
    sent = [
        await proposer.send("mcp/withdraw", {"reason": "no_longer_needed"}, correlation_id=[first["id"]]),
        await proposer.send("mcp/withdraw", {}, correlation_id=[second["id"]]),
        await proposer.send("mcp/withdraw", {"reason": "other"}, correlation_id=[third["id"], fourth["id"]]),
    ]
    await arrive(stage, proposer, sent, owner, listener)


@check("withdraw.own")
async def a_proposer_withdraws_after_it_came_back(stage: Stage) -> None:
    """Who proposed, left and joined again is still the proposer, and may withdraw."""
    owner, proposer = await stage.enter_all("owner", "proposer")
    proposal = await _proposal(proposer)
    await arrive(stage, proposer, [proposal], owner)
    await proposer.leave()
    with suppress(Violation):
        await owner.hear(leaves(proposer.id), "that it left")
    again = await stage.enter("proposer")
    sent = await again.send("mcp/withdraw", {"reason": "timeout"}, correlation_id=[proposal["id"]])
    await arrive(stage, again, [sent], owner)


@check("withdraw.only-proposer")
async def nobody_else_withdraws_a_proposal(stage: Stage) -> None:
    """A withdrawal of another's proposal is refused, and nobody sees it, whatever else its sender may do."""
    owner, peer, proposer, listener = await stage.enter_all("owner", "peer", "proposer", "listener")
    proposal = await _proposal(proposer, to=[peer.id])
    await arrive(stage, proposer, [proposal], peer)
    for meddler in (owner, peer):
        own = await _proposal(meddler)
        await arrive(stage, meddler, [own], listener)
        for named in ([proposal], [own, proposal], [proposal, own]):
            ids = [one["id"] for one in named]
            sent = await meddler.send("mcp/withdraw", {"reason": "other"}, correlation_id=ids)
            await refused(
                stage, meddler, sent, proposer, listener, what=f"the mcp/withdraw {sent['id']} {_NOT_ITS_OWN}"
            )
        sent = await meddler.send("mcp/withdraw", {"reason": "other"}, correlation_id=[own["id"]])
        await arrive(stage, meddler, [sent], proposer, listener)
    sent = await proposer.send("mcp/withdraw", {"reason": "other"}, correlation_id=[proposal["id"]])
    await arrive(stage, proposer, [sent], owner, peer, listener)


@check("reject.needs-capability")
async def who_may_reject_rejects_any_proposal(stage: Stage) -> None:
    """A rejection passes for who holds `mcp/reject`, addressed in the proposal or not, and for nobody else."""
    owner, peer, proposer, listener = await stage.enter_all("owner", "peer", "proposer", "listener")
    granter, reader = await stage.enter_all("granter", "reader")
    for addressees in ([peer.id], [owner.id], [listener.id], []):
        proposal = await _proposal(proposer, to=addressees)
        for rejecter in (owner, peer):
            about = {"correlation_id": [proposal["id"]]}
            sent = await rejecter.send("mcp/reject", {"reason": "busy"}, **about)
            await arrive(stage, rejecter, [sent], proposer, listener)
            sent = await rejecter.send("mcp/reject", {"reason": "busy"}, to=[proposer.id], **about)
            await arrive(stage, rejecter, [sent], proposer)
        for outsider in (proposer, reader, granter, listener):
            sent = await outsider.send("mcp/reject", {"reason": "busy"}, correlation_id=[proposal["id"]])
            await refused(stage, outsider, sent, owner, peer)


@check("reject.needs-capability")
async def mcp_reject_alone_is_enough_to_reject(stage: Stage) -> None:
    """The capability `mcp/reject`, and nothing near it, lets its holder reject a proposal of anyone."""
    owner, proposer = await stage.enter_all("owner", "proposer")
    proposal = await _proposal(proposer, to=[owner.id])
    await arrive(stage, proposer, [proposal], owner)
    able = await somebody(stage, CHAT, {"kind": "mcp/reject"})
    sent = await able.send("mcp/reject", {"reason": "unsafe"}, correlation_id=[proposal["id"]])
    await arrive(stage, able, [sent], proposer, owner)
    near = ("mcp/proposal", "mcp/re", "mcp/reject/*", "mcp/rejected", "mcp/request", "mcp/withdraw")
    unable = await somebody(stage, CHAT, *({"kind": kind} for kind in near))
    sent = await unable.send("mcp/reject", {"reason": "unsafe"}, correlation_id=[proposal["id"]])
    await refused(stage, unable, sent, proposer, owner)


@check("reject.several")
async def several_reject_one_proposal(stage: Stage) -> None:
    """Every rejection of a proposal is delivered, the second and third as well, each with its reason."""
    owner, peer, proposer, listener = await stage.enter_all("owner", "peer", "proposer", "listener")
    rejecters = [owner, peer]
    with suppress(NotOffered):  # two are several
        rejecters.append(await somebody(stage, CHAT, {"kind": "mcp/reject"}))
    proposal = await _proposal(proposer)
    await arrive(stage, proposer, [proposal], *rejecters)
    for rejecter, reason in zip(rejecters, ("unsafe", "busy", "policy"), strict=False):
        sent = await rejecter.send("mcp/reject", {"reason": reason}, correlation_id=[proposal["id"]])
        await arrive(stage, rejecter, [sent], proposer, listener)


@check("reason-code.other")
async def a_reason_may_be_any_string(stage: Stage) -> None:
    """Rejections and withdrawals are delivered with their reason unchanged, on the list or not."""
    owner, proposer, listener = await stage.enter_all("owner", "proposer", "listener")
    rejections, withdrawals = list[dict[str, Any]](), list[dict[str, Any]]()
    for reason in (*_CODES, *_OWN_WORDS):
        proposal = await _proposal(proposer)
        await shown(proposal, owner)
        payload = {"reason": reason}
        rejections.append(await owner.send("mcp/reject", payload, correlation_id=[proposal["id"]]))
        withdrawals.append(await proposer.send("mcp/withdraw", payload, correlation_id=[proposal["id"]]))
    await arrive(stage, owner, rejections, proposer, listener)
    await arrive(stage, proposer, withdrawals, owner, listener)


@check("reject.explained-by-chat")
async def a_chat_explains_a_rejection(stage: Stage) -> None:
    """A chat that names a rejection is delivered with it, from who rejected and from another, one after the other."""
    owner, peer, proposer = await stage.enter_all("owner", "peer", "proposer")
    proposal = await _proposal(proposer)
    await arrive(stage, proposer, [proposal], owner, peer)
    rejected = await peer.send("mcp/reject", {"reason": "busy"}, correlation_id=[proposal["id"]])
    await arrive(stage, peer, [rejected], owner, proposer)
    text = {"text": "I need the files for five minutes.", "format": "plain"}
    about = {"correlation_id": [rejected["id"]]}
    await arrive(stage, peer, [await peer.send("chat", text, to=[proposer.id], **about)], proposer)
    await arrive(stage, owner, [await owner.send("chat", text, **about)], proposer, peer)
    both = {"correlation_id": [rejected["id"], proposal["id"]]}
    await arrive(stage, peer, [await peer.send("chat", text, **both)], proposer, owner)
