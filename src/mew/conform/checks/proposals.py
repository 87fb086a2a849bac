"""Proposals and their ends, and how envelopes refer to each other (§3, §3.2.1, §3.3, §3.5.6)."""

import json
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final

from mew.conform.connection import ScriptedClient
from mew.conform.context import CheckContext
from mew.conform.drafts import CHAT, unique_word
from mew.conform.expectations import expect_delivered, expect_refused, expect_shown, expect_unheard
from mew.conform.fixtures import somebody
from mew.conform.match import Predicate, answers, leaves
from mew.conform.outcome import NotOffered, Violation, demand
from mew.conform.runner import check

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


async def _proposal(proposer: ScriptedClient, **fields: Any) -> dict[str, Any]:
    return await proposer.send("mcp/proposal", _CALL, **fields)


@check("proposal.without-correlation")
async def a_proposal_needs_no_cause(ctx: CheckContext) -> None:
    """A proposal without `correlation_id`, with an empty one, and with one is delivered."""
    owner, proposer, listener = await ctx.clients("owner", "proposer", "listener")
    asked = await owner.send("chat", {"text": "would you?"})
    await expect_shown(asked, proposer)
    sent = [
        await _proposal(proposer),
        await _proposal(proposer, correlation_id=[]),
        await _proposal(proposer, correlation_id=[asked["id"]]),
    ]
    await expect_delivered(ctx, proposer, sent, owner, listener)
    addressed = await _proposal(proposer, to=[owner.id])
    await expect_delivered(ctx, proposer, [addressed], owner)


@check("withdraw.own")
async def a_proposer_withdraws_its_own(ctx: CheckContext) -> None:
    """A withdrawal by the proposer is delivered: with a reason or none, of one or of two, after a rejection too."""
    owner, proposer, listener = await ctx.clients("owner", "proposer", "listener")
    first, second, third, fourth = [await _proposal(proposer) for _ in range(4)]
    await expect_delivered(ctx, proposer, [first, second, third, fourth], owner, listener)
    rejected = await owner.send("mcp/reject", {"reason": "busy"}, correlation_id=[second["id"]])
    await expect_shown(rejected, proposer)
    sent = [
        await proposer.send("mcp/withdraw", {"reason": "no_longer_needed"}, correlation_id=[first["id"]]),
        await proposer.send("mcp/withdraw", {}, correlation_id=[second["id"]]),
        await proposer.send("mcp/withdraw", {"reason": "other"}, correlation_id=[third["id"], fourth["id"]]),
    ]
    await expect_delivered(ctx, proposer, sent, owner, listener)


@check("withdraw.own")
async def a_proposer_withdraws_after_it_came_back(ctx: CheckContext) -> None:
    """Who proposed, left and joined again is still the proposer, and may withdraw."""
    owner, proposer = await ctx.clients("owner", "proposer")
    proposal = await _proposal(proposer)
    await expect_delivered(ctx, proposer, [proposal], owner)
    await proposer.leave()
    with suppress(Violation):
        await owner.expect(leaves(proposer.id), "that it left")
    again = await ctx.client("proposer")
    sent = await again.send("mcp/withdraw", {"reason": "timeout"}, correlation_id=[proposal["id"]])
    await expect_delivered(ctx, again, [sent], owner)


@check("withdraw.only-proposer")
async def nobody_else_withdraws_a_proposal(ctx: CheckContext) -> None:
    """A withdrawal of another's proposal is refused, and nobody sees it, whatever else its sender may do."""
    owner, peer, proposer, listener = await ctx.clients("owner", "peer", "proposer", "listener")
    proposal = await _proposal(proposer, to=[peer.id])
    await expect_delivered(ctx, proposer, [proposal], peer)
    for meddler in (owner, peer):
        own = await _proposal(meddler)
        await expect_delivered(ctx, meddler, [own], listener)
        for named in ([proposal], [own, proposal], [proposal, own]):
            ids = [one["id"] for one in named]
            sent = await meddler.send("mcp/withdraw", {"reason": "other"}, correlation_id=ids)
            await expect_refused(
                ctx, meddler, sent, proposer, listener, what=f"the mcp/withdraw {sent['id']} {_NOT_ITS_OWN}"
            )
        sent = await meddler.send("mcp/withdraw", {"reason": "other"}, correlation_id=[own["id"]])
        await expect_delivered(ctx, meddler, [sent], proposer, listener)
    sent = await proposer.send("mcp/withdraw", {"reason": "other"}, correlation_id=[proposal["id"]])
    await expect_delivered(ctx, proposer, [sent], owner, peer, listener)


@check("reject.needs-capability")
async def who_may_reject_rejects_any_proposal(ctx: CheckContext) -> None:
    """A rejection passes for who holds `mcp/reject`, addressed in the proposal or not, and for nobody else."""
    owner, peer, proposer, listener = await ctx.clients("owner", "peer", "proposer", "listener")
    granter, reader = await ctx.clients("granter", "reader")
    for addressees in ([peer.id], [owner.id], [listener.id], []):
        proposal = await _proposal(proposer, to=addressees)
        for rejecter in (owner, peer):
            about = {"correlation_id": [proposal["id"]]}
            sent = await rejecter.send("mcp/reject", {"reason": "busy"}, **about)
            await expect_delivered(ctx, rejecter, [sent], proposer, listener)
            sent = await rejecter.send("mcp/reject", {"reason": "busy"}, to=[proposer.id], **about)
            await expect_delivered(ctx, rejecter, [sent], proposer)
        for outsider in (proposer, reader, granter, listener):
            sent = await outsider.send("mcp/reject", {"reason": "busy"}, correlation_id=[proposal["id"]])
            await expect_refused(ctx, outsider, sent, owner, peer)


@check("reject.needs-capability")
async def mcp_reject_alone_is_enough_to_reject(ctx: CheckContext) -> None:
    """The capability `mcp/reject`, and nothing near it, lets its holder reject a proposal of anyone."""
    owner, proposer = await ctx.clients("owner", "proposer")
    proposal = await _proposal(proposer, to=[owner.id])
    await expect_delivered(ctx, proposer, [proposal], owner)
    able = await somebody(ctx, CHAT, {"kind": "mcp/reject"})
    sent = await able.send("mcp/reject", {"reason": "unsafe"}, correlation_id=[proposal["id"]])
    await expect_delivered(ctx, able, [sent], proposer, owner)
    near = ("mcp/proposal", "mcp/re", "mcp/reject/*", "mcp/rejected", "mcp/request", "mcp/withdraw")
    unable = await somebody(ctx, CHAT, *({"kind": kind} for kind in near))
    sent = await unable.send("mcp/reject", {"reason": "unsafe"}, correlation_id=[proposal["id"]])
    await expect_refused(ctx, unable, sent, proposer, owner)


@check("reject.several")
async def several_reject_one_proposal(ctx: CheckContext) -> None:
    """Every rejection of a proposal is delivered, the second and third as well, each with its reason."""
    owner, peer, proposer, listener = await ctx.clients("owner", "peer", "proposer", "listener")
    rejecters = [owner, peer]
    with suppress(NotOffered):  # two are several
        rejecters.append(await somebody(ctx, CHAT, {"kind": "mcp/reject"}))
    proposal = await _proposal(proposer)
    await expect_delivered(ctx, proposer, [proposal], *rejecters)
    for rejecter, reason in zip(rejecters, ("unsafe", "busy", "policy"), strict=False):
        sent = await rejecter.send("mcp/reject", {"reason": reason}, correlation_id=[proposal["id"]])
        await expect_delivered(ctx, rejecter, [sent], proposer, listener)


@check("reason-code.other")
async def a_reason_may_be_any_string(ctx: CheckContext) -> None:
    """Rejections and withdrawals are delivered with their reason unchanged, on the list or not."""
    owner, proposer, listener = await ctx.clients("owner", "proposer", "listener")
    rejections, withdrawals = list[dict[str, Any]](), list[dict[str, Any]]()
    for reason in (*_CODES, *_OWN_WORDS):
        proposal = await _proposal(proposer)
        await expect_shown(proposal, owner)
        payload = {"reason": reason}
        rejections.append(await owner.send("mcp/reject", payload, correlation_id=[proposal["id"]]))
        withdrawals.append(await proposer.send("mcp/withdraw", payload, correlation_id=[proposal["id"]]))
    await expect_delivered(ctx, owner, rejections, proposer, listener)
    await expect_delivered(ctx, proposer, withdrawals, owner, listener)


@check("reject.explained-by-chat")
async def a_chat_explains_a_rejection(ctx: CheckContext) -> None:
    """A chat that names a rejection is delivered with it, from who rejected and from another, one after the other."""
    owner, peer, proposer = await ctx.clients("owner", "peer", "proposer")
    proposal = await _proposal(proposer)
    await expect_delivered(ctx, proposer, [proposal], owner, peer)
    rejected = await peer.send("mcp/reject", {"reason": "busy"}, correlation_id=[proposal["id"]])
    await expect_delivered(ctx, peer, [rejected], owner, proposer)
    text = {"text": "I need the files for five minutes.", "format": "plain"}
    about = {"correlation_id": [rejected["id"]]}
    await expect_delivered(ctx, peer, [await peer.send("chat", text, to=[proposer.id], **about)], proposer)
    await expect_delivered(ctx, owner, [await owner.send("chat", text, **about)], proposer, peer)
    both = {"correlation_id": [rejected["id"], proposal["id"]]}
    await expect_delivered(ctx, peer, [await peer.send("chat", text, **both)], proposer, owner)


_READ_CALL: Final = {
    "method": "tools/call",
    "params": {"name": "read_file", "arguments": {}},
    "text": "hello",
}
_PATHS: Final = (
    "parent",
    "parent/child",
    "parent/child/grandchild",
    "a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p",
    "Parent/child",
    "a//b",
    "/a/b/",
    "a/../b/./c",
    "a b/ü/路径/🐱",
    "e\u0301/\u00e9/\u212b",
    "a%2Fb\\c?d#e",
)


@check("correlation.request-names-proposal")
async def a_request_may_name_a_proposal(ctx: CheckContext) -> None:
    """An `mcp/request` that names the proposal it fulfils is delivered with it, to the proposer too."""
    owner, peer, proposer = await ctx.clients("owner", "peer", "proposer")
    for payload, fulfilled in (
        (_READ_CALL, {"jsonrpc": "2.0", "id": 44, **_READ_CALL}),
        (_READ_CALL, {"method": "tools/list"}),
    ):
        proposal = await proposer.send("mcp/proposal", payload, to=[peer.id, owner.id])
        await expect_delivered(ctx, proposer, [proposal], owner, peer)
        for fulfiller in (owner, peer):
            request = await fulfiller.send("mcp/request", fulfilled, correlation_id=[proposal["id"]])
            await expect_delivered(ctx, fulfiller, [request], proposer, peer if fulfiller is owner else owner)


@check("correlation.any-envelope")
async def any_envelope_may_name_others(ctx: CheckContext) -> None:
    """An envelope of any kind is delivered with the one it names, known, unknown, its own sender's or another's."""
    owner, peer, listener = await ctx.clients("owner", "peer", "listener")
    chat = await listener.send("chat", {"text": "hi"})
    proposal = await peer.send("mcp/proposal", _READ_CALL)
    await expect_delivered(ctx, listener, [chat], owner)
    await expect_delivered(ctx, peer, [proposal], owner)
    names = (chat["id"], proposal["id"], owner.welcome["id"], "no-such-envelope", "ünknown / id")
    kinds = ("chat", "mcp/request", "mcp/response", "mcp/proposal", "reasoning/start", "reasoning/thought")
    for sender, receiver in ((owner, peer), (peer, owner)):
        sent = [
            await sender.send(kind, _READ_CALL, correlation_id=[name], to=to)
            for kind in (*kinds, "chat/cancel")
            for name, to in zip(names, ([receiver.id], ..., [], [listener.id], ...), strict=True)
        ]
        await expect_delivered(ctx, sender, sent, receiver, listener)


@check("correlation.several")
async def several_may_be_named(ctx: CheckContext) -> None:
    """All that `correlation_id` names arrive, in their order, be it two or forty, with one of them twice."""
    owner, peer, listener = await ctx.clients("owner", "peer", "listener")
    one, other = [await peer.send("mcp/proposal", _READ_CALL) for _ in range(2)]
    await expect_delivered(ctx, peer, [one, other], owner)
    lists = (
        [one["id"], other["id"]],
        [other["id"], one["id"], "no-such-envelope"],
        ["c", "a", "b", "a", "C"],
        [f"id-{97 * number % 40}" for number in range(40)],
    )
    for kind in ("chat", "mcp/request", "mcp/response", "reasoning/start"):
        sent = [await owner.send(kind, _READ_CALL, correlation_id=names) for names in lists]
        await expect_delivered(ctx, owner, sent, peer, listener)


@check("error.correlates")
async def an_error_names_its_cause(ctx: CheckContext) -> None:
    """A `system/error` names the envelope that caused it, whatever was wrong with that."""
    owner, peer, listener = await ctx.clients("owner", "peer", "listener")
    causes: tuple[tuple[ScriptedClient, str, dict[str, Any]], ...] = (
        (listener, "mcp/request", {}),
        (listener, "no/such/thing", {"to": [peer.id], "correlation_id": ["another"]}),
        (owner, "chat", {"protocol": "mew/v0.3"}),
        (owner, "chat", {"from": peer.id}),
        (owner, "system/welcome", {}),
        (owner, "chat", {"to": peer.id}),
        (owner, "chat", {"correlation_id": "another"}),
        (owner, "chat", {"payload": []}),
        (owner, "chat", {"ts": "yesterday"}),
    )
    said: list[dict[str, Any]] = []
    for sender, kind, fields in causes:
        sent = await sender.send(kind, **fields)
        try:
            error = await sender.expect(_about_none_of(said), f"a system/error about {sent['id']}")
        except Violation:
            continue  # whether it is refused is a requirement of its own
        demand(
            answers(error, sent),
            f"expected that an error about {sent['id']} names that in correlation_id; "
            f"it has {json.dumps(error.get('correlation_id'))}",
        )
        await ctx.round_trip(sender, peer)
        said.append(sent)
    demand(said, "expected a system/error about one of several wrong envelopes; there was none")
    if len(listener.welcomes) > 1:
        return  # it was cut off and came back: there is one error at a time
    for sent in [await listener.send(kind) for kind in ("mcp/request", "mcp/proposal", "mcp/request")]:
        what = f"a system/error about {sent['id']}, one of three, that names it in correlation_id"
        await listener.expect(partial(_names, sent), what)


def _names(sent: Mapping[str, Any], envelope: Mapping[str, Any]) -> bool:
    return envelope.get("kind") == "system/error" and answers(envelope, sent)


def _about_none_of(said: list[dict[str, Any]]) -> Predicate:
    """What was said before may have been announced to all as well (§5.4)."""
    return lambda e: e.get("kind") == "system/error" and not any(_names(one, e) for one in said)


@check("context.optional")
async def a_context_may_be_left_out(ctx: CheckContext) -> None:
    """An envelope with a `context` and one without are delivered as they came; one that is no string is not."""
    owner, peer, listener = await ctx.clients("owner", "peer", "listener")
    for kind in ("chat", "mcp/request", "mcp/proposal", "reasoning/thought"):
        sent = [
            await peer.send(kind, _READ_CALL, context=context)
            for context in ("one", ..., "another", ..., "one")
        ]
        await expect_delivered(ctx, peer, sent, owner, listener)
    for receiver in (owner, listener):
        added = receiver.matching(lambda e: "context" in e and e["context"] is None)
        demand(not added, f"{receiver.name} received a `context` that nobody sent: {added[:1]}")
    for context in (7, None, ["a"], {"a": "b"}, True):
        mark = unique_word()
        await peer.send("chat", {"text": mark}, id=mark, context=context)
        await expect_unheard(ctx, peer, mark, f"an envelope whose `context` is {json.dumps(context)}", owner)


@check("context.path")
async def a_path_stays_as_it_is(ctx: CheckContext) -> None:
    """A context with slashes in it, of whatever depth, is delivered unchanged."""
    owner, peer, listener = await ctx.clients("owner", "peer", "listener")
    for sender, receiver in ((owner, peer), (peer, owner)):
        kinds = ("chat", "reasoning/thought", "mcp/request")
        sent = [await sender.send(kind, _READ_CALL, context=path) for kind in kinds for path in _PATHS]
        await expect_delivered(ctx, sender, sent, receiver, listener)


@check("context.parallel")
async def sequences_run_side_by_side(ctx: CheckContext) -> None:
    """Several agents reason at once, each in its own context; one that ends leaves the others going."""
    agents = await ctx.clients("owner", "peer", "proposer")
    listener = await ctx.client("listener")
    starts = [await agent.send("reasoning/start", {"message": "hm"}) for agent in (*agents, agents[0])]
    sequences = list(zip((*agents, agents[0]), starts, strict=True))
    sent = [(agent, start) for agent, start in sequences]
    ends = ("reasoning/cancel", "reasoning/conclusion", "reasoning/cancel", "reasoning/conclusion")
    while sequences:
        for _ in range(2):
            for agent, start in sequences:
                sent.append(
                    (agent, await agent.send("reasoning/thought", {"message": "…"}, context=start["id"]))
                )
                below = f"{start['id']}/aside"
                sent.append((agent, await agent.send("chat", {"text": "?"}, context=below)))
        agent, start = sequences.pop(0)
        end = ends[len(sequences)]
        sent.append((agent, await agent.send(end, {"reason": "superseded"}, context=start["id"])))
        sent.append((agent, await agent.send("chat", {"text": "done"})))
    for agent in agents:
        mine = [envelope for sender, envelope in sent if sender is agent]
        await expect_delivered(ctx, agent, mine, listener, *(other for other in agents if other is not agent))
