"""Proposals, from the side of the proposer and of those who fulfil or reject them (§3.2, §3.3)."""

from collections.abc import Mapping
from typing import Any

from mew.conform.match import about, both, causes, is_kind, payload_of, to_of, word_in
from mew.conform.outcome import NotOffered, demand
from mew.conform.participant.context import ParticipantContext
from mew.conform.participant.runner import check
from mew.conform.participant.steps import (
    Proposed,
    every,
    fresh_word,
    lull,
    pause,
    propose,
    resume,
    some,
    time_of_answer,
)

Envelope = dict[str, Any]


@check("proposal.when-restricted")
async def what_it_may_not_request_it_proposes(ctx: ParticipantContext) -> None:
    """What its capabilities do not allow it proposes, and sends no request for it."""
    made = await propose(ctx)
    demand(
        word_in(made.word)(made.proposal),
        f"the proposal has not the text that was asked for: {made.proposal}",
    )
    await ctx.barrier()
    tried = ctx.said(_writes)
    demand(not tried, f"it may not request this, and tries to: {tried[:1]}")


def _writes(envelope: Mapping[str, Any]) -> bool:
    params = payload_of(envelope).get("params")
    named = params.get("name") if isinstance(params, dict) else None
    return envelope.get("kind") == "mcp/request" and named == "write_note"


@check("proposal.payload")
async def a_proposal_says_what_the_request_would(ctx: ParticipantContext) -> None:
    """The payload of a proposal has `method` and `params` as the request would have them."""
    await propose(ctx)
    for envelope in every(ctx, "mcp/proposal"):
        said = payload_of(envelope)
        demand(isinstance(said.get("method"), str), f"a proposal has a `method`: {envelope}")
        params = said.get("params", {})
        demand(isinstance(params, dict), f"`params` of a proposal is an object: {envelope}")
        if said["method"] == "tools/call":
            whole = isinstance(params.get("name"), str) and isinstance(params.get("arguments", {}), dict)
            demand(whole, f"`params` name the tool and its arguments: {envelope}")


@check("proposal.outcome-followed")
async def it_learns_what_came_of_it(ctx: ParticipantContext) -> None:
    """It learns the outcome from the request that names the proposal and the response that names that request."""
    made = await propose(ctx)
    since = ctx.subject.place
    word = await made.fulfil()
    if await ctx.expect_optional(word_in(word), since=since) is None:
        raise NotOffered("the participant does not say what came of its proposal")
    other = await propose(ctx)
    foreign = await other.fulfil(names="conform-other")
    await ctx.barrier()
    told = ctx.said(both(word_in(foreign), about(other.prompted)))
    demand(not told, f"it takes what came of another proposal for the outcome of its own: {told[:1]}")


@check("withdraw.correlates")
async def a_withdrawal_names_its_proposal(ctx: ParticipantContext) -> None:
    """An `mcp/withdraw` names the withdrawn proposal, one of its own, in `correlation_id`."""
    if "withdraw" in ctx.test_run.prompts.said:
        made = await propose(ctx)
        since = ctx.subject.place
        await ctx.prompt("withdraw")
        said = await ctx.expect(is_kind("mcp/withdraw"), "mcp/withdraw", since=since)
        demand(made.id in causes(said), f"expected it to name the proposal {made.id}, not {causes(said)}")
    await some(ctx, "mcp/withdraw")
    own: set[Any] = set()
    for envelope in every(ctx, "mcp/proposal", "mcp/withdraw"):
        if envelope["kind"] == "mcp/proposal":
            own.add(envelope.get("id"))
        else:
            named = causes(envelope)
            demand(named and own.issuperset(named), f"it names no proposal of its own: {envelope}")


async def _rejected(ctx: ParticipantContext, payload: Any = None) -> tuple[Proposed, Envelope | None]:
    """A proposal of its own that was rejected, and what it does then."""
    made = await propose(ctx)
    since = ctx.subject.place
    await made.reject(payload)
    return made, await made.reaction(since)


@check("reject.proposer-gives-up")
async def it_may_give_up(ctx: ParticipantContext) -> None:
    """After a first rejection it may give up: it withdraws, or takes no notice of a later fulfilment."""
    made, reaction = await _rejected(ctx)
    if reaction is None:
        raise NotOffered("the participant waits on after a rejection")
    await ctx.barrier()
    if ctx.said(both(is_kind("mcp/withdraw"), about(made.proposal))):
        return
    word = await made.fulfil()
    ctx.never(both(word_in(word), about(made.prompted)), "it gave the proposal up, and takes its outcome")
    await ctx.barrier()


@check("reject.proposer-waits-on")
async def it_may_wait_on(ctx: ParticipantContext) -> None:
    """After a rejection it may wait on, and takes the result when another fulfils the proposal."""
    made, reaction = await _rejected(ctx)
    if reaction is not None:
        raise NotOffered("the participant gives up after a rejection")
    since = ctx.subject.place
    word = await made.fulfil()
    await ctx.expect(
        word_in(word), "what came of its proposal, which was rejected and then fulfilled", since=since
    )


@check("reject.several")
async def a_second_rejection_is_coped_with(ctx: ParticipantContext) -> None:
    """Several rejections of one proposal, each with a reason of its own, are one rejection to its proposer."""
    made = await propose(ctx)
    for who, reason in (("reviewer", "unsafe"), ("owner", "busy"), ("reviewer", "unsafe")):
        await made.reject({"reason": reason}, by=who)
    await ctx.barrier()
    answers = ctx.said(both(is_kind("mcp/response"), about(made.prompted)))
    demand(len(answers) <= 1, f"who prompted it is answered {len(answers)} times")
    withdrawals = ctx.said(both(is_kind("mcp/withdraw"), about(made.proposal)))
    demand(len(withdrawals) <= 1, f"it withdraws {len(withdrawals)} times what was rejected several times")


@check("reason-code.unknown-handled", "reason-code.other")
async def an_unknown_reason_is_a_reason(ctx: ParticipantContext) -> None:
    """A rejection with a reason that is on no list, or with none, has the effect of one with a listed reason."""
    _, usual = await _rejected(ctx)
    variants: tuple[Any, ...] = ({"reason": f"conform {fresh_word()}"}, {}, {"reason": "ÜBERHAUPT nicht 🐱"})
    for payload in variants:
        _, reaction = await _rejected(ctx, payload)
        same = (usual is None) == (reaction is None)
        did = "did nothing" if reaction is None else f"sent {reaction['kind']}"
        usually = "does nothing" if usual is None else f"sends {usual['kind']}"
        demand(same, f"rejected with {payload} it {did}; with a listed reason it {usually}")
    await ctx.barrier()
    ctx.never(lambda e: str(e.get("kind")).startswith("system/"), "it reports no errors as the gateway does")


@check("reason-code.suggested")
async def its_reasons_are_words(ctx: ParticipantContext) -> None:
    """`payload.reason` of its withdrawals and rejections is a string."""
    if not every(ctx, "mcp/withdraw", "mcp/reject") and "withdraw" in ctx.test_run.prompts.said:
        await propose(ctx)
        await ctx.prompt("withdraw")
        await ctx.expect_optional(is_kind("mcp/withdraw"))
    said = every(ctx, "mcp/withdraw", "mcp/reject")
    reasons = [payload_of(e)["reason"] for e in said if "reason" in payload_of(e)]
    if not reasons:
        raise NotOffered("the participant never gave a reason for a withdrawal or rejection")
    for reason in reasons:
        demand(isinstance(reason, str) and reason, f"`payload.reason` is a string, not {reason!r}")


@check("reject.explained-by-chat")
async def an_explanation_is_no_second_answer(ctx: ParticipantContext) -> None:
    """A chat that names the rejection explains it, and is taken for no second rejection."""
    made = await propose(ctx)
    no = await made.reject()
    await ctx.barrier()
    await ctx.ask(
        "chat",
        {"text": "For your information: not now, please."},
        by="reviewer",
        correlation_id=[no["id"]],
        to=...,
    )
    await ctx.barrier()
    answers = ctx.said(both(is_kind("mcp/response"), about(made.prompted)))
    demand(len(answers) <= 1, f"who prompted it is answered {len(answers)} times, once for the explanation")
    withdrawals = ctx.said(both(is_kind("mcp/withdraw"), about(made.proposal)))
    demand(len(withdrawals) <= 1, f"it withdraws {len(withdrawals)} times, once for the explanation")


@check("reject.processed-at-once", "reject.explanation-never-comes")
async def a_rejection_is_acted_on_at_once(ctx: ParticipantContext) -> None:
    """It acts on a rejection when it arrives, without another envelope, and hangs on no explanation."""
    made = await propose(ctx)
    since = ctx.subject.place
    await made.reject()
    reaction = await made.reaction(since)
    await ctx.barrier()
    if reaction is None:
        word = await made.fulfil()
        waits = await ctx.expect_optional(word_in(word), since=since)
        demand(waits, "after a rejection it neither does anything nor takes a later fulfilment: it hangs")
        raise NotOffered("the participant waits on for others to fulfil its proposal")


@check("reject.explanation-awaited")
async def it_may_use_an_explanation(ctx: ParticipantContext) -> None:
    """It may wait a while for the chat that explains a rejection, and use it."""
    made = await propose(ctx)
    since = ctx.subject.place
    no = await made.reject()
    word = fresh_word()
    await ctx.ask(
        "chat", {"text": f"For your information: {word}."}, by="reviewer", correlation_id=[no["id"]]
    )
    await ctx.barrier()
    used = ctx.said(both(word_in(word), about(made.prompted)), since=since)
    if not used:
        raise NotOffered("the participant does not use what explains a rejection")
    demand(len(used) == 1, f"the explanation is told {len(used)} times")


_READ = {"name": "read_note", "arguments": {}}


async def _proposed(ctx: ParticipantContext, **fields: Any) -> Envelope:
    """Somebody proposes what the participant may request: to read the note of the worker."""
    worker = await ctx.worker()
    payload = {"method": "tools/call", "params": _READ}
    return await ctx.ask("mcp/proposal", payload, by="novice", **{"to": [worker.id], **fields})


def _fulfils(proposal: Mapping[str, Any]) -> Any:
    return both(is_kind("mcp/request"), about(proposal))


def _reads(envelope: Mapping[str, Any]) -> bool:
    params = payload_of(envelope).get("params")
    named = params.get("name") if isinstance(params, dict) else None
    return envelope.get("kind") == "mcp/request" and named == "read_note"


async def _fulfilled(ctx: ParticipantContext, **fields: Any) -> tuple[Envelope, Envelope]:
    """A proposal, and the request that it makes for it.

    Raises:
        NotOffered: it makes none.
    """
    proposal = await _proposed(ctx, **fields)
    since = ctx.subject.was_shown(lambda e: e.get("id") == proposal["id"])[0].place
    request = await ctx.expect_optional(_reads, since=since)
    if request is None:
        raise NotOffered("the participant does not fulfil proposals")
    return proposal, request


@check("fulfilment.is-a-request")
async def a_fulfilment_is_the_request(ctx: ParticipantContext) -> None:
    """It fulfils a proposal with a real `mcp/request`, of the proposed method and params, to the target."""
    worker = await ctx.worker()
    _, request = await _fulfilled(ctx)
    payload = payload_of(request)
    demand(payload.get("method") == "tools/call", f"the method that was proposed is tools/call: {request}")
    params = payload.get("params")
    same = isinstance(params, dict) and params.get("name") == "read_note" and not params.get("arguments")
    demand(same, f"the params that were proposed are {_READ}: {request}")
    demand(
        to_of(request) == [worker.id], f"the proposal is for {worker.id}, the request is to {to_of(request)}"
    )
    demand("id" in payload, f"a fulfilment is a real request, with an id: {request}")
    await ctx.barrier()
    many = ctx.said(_reads)
    demand(len(many) == 1, f"one proposal is fulfilled once, not {len(many)} times")


@check("fulfilment.correlates")
async def a_fulfilment_names_its_proposal(ctx: ParticipantContext) -> None:
    """The request that fulfils a proposal names the proposal in `correlation_id`."""
    proposal, request = await _fulfilled(ctx)
    named = causes(request)
    demand(proposal["id"] in named, f"expected it to name the proposal {proposal['id']}, it names {named}")


@check("proposal.without-correlation")
async def a_proposal_needs_no_correlation(ctx: ParticipantContext) -> None:
    """A proposal with no `correlation_id`, an empty one, or one that names something is treated as one."""
    variants: tuple[Any, ...] = (..., [], [f"conform-{fresh_word()}"])
    await _fulfilled(ctx)
    for named in variants:
        proposal = await _proposed(ctx, correlation_id=named)
        what = "without `correlation_id`" if named is ... else f"with `correlation_id` {named}"
        await ctx.expect(_fulfils(proposal), f"an mcp/request for a proposal {what}")


@check("withdraw.own")
async def a_withdrawn_proposal_is_not_fulfilled(ctx: ParticipantContext) -> None:
    """Who has not yet fulfilled a proposal that is withdrawn no longer does."""
    await _fulfilled(ctx)
    took_s = await time_of_answer(ctx)
    paused = await pause(ctx)  # so that it cannot have fulfilled it before
    proposal = await _proposed(ctx)
    await lull(ctx, took_s)
    if ctx.said(_fulfils(proposal)):
        raise NotOffered("the participant fulfils proposals while it is paused")
    novice = await ctx.client("novice")
    since = ctx.subject.place
    sent = await novice.send("mcp/withdraw", {"reason": "no_longer_needed"}, correlation_id=[proposal["id"]])
    await ctx.subject.reached(sent["id"], since)
    await lull(ctx, took_s)
    ctx.never(_fulfils(proposal), "the proposal was withdrawn before it was fulfilled")
    await resume(ctx, paused)
    await ctx.barrier()
    await _fulfilled(ctx)


@check("withdraw.only-proposer")
async def a_forged_withdrawal_changes_nothing(ctx: ParticipantContext) -> None:
    """A proposal that somebody else claims to withdraw is still fulfilled."""
    await _fulfilled(ctx)
    took_s = await time_of_answer(ctx)
    for forger in ("stranger", "owner"):
        paused = await pause(ctx)
        proposal = await _proposed(ctx)
        await lull(ctx, took_s)
        if ctx.said(_fulfils(proposal)):
            raise NotOffered("the participant fulfils proposals while it is paused")
        await ctx.show(
            "mcp/withdraw", {"reason": "other"}, by=forger, correlation_id=[proposal["id"]], to=...
        )
        await resume(ctx, paused)
        await ctx.expect(_fulfils(proposal), f"an mcp/request for a proposal that {forger} cannot withdraw")


async def _unwelcome(ctx: ParticipantContext) -> Envelope:
    """A proposal to the participant itself that it cannot want to fulfil: a tool that nobody has."""
    payload = {"method": "tools/call", "params": {"name": fresh_word(), "arguments": {}}}
    return await ctx.ask("mcp/proposal", payload, by="novice")


async def _decides(ctx: ParticipantContext) -> None:
    """
    Raises:
        NotOffered: it neither fulfils proposals nor rejects any.
    """
    if not every(ctx, "mcp/reject"):
        await _fulfilled(ctx)


@check("reject.when-targeted")
async def who_is_named_rejects_what_it_will_not_do(ctx: ParticipantContext) -> None:
    """A proposal that names it, and that it will not fulfil, it rejects."""
    await _decides(ctx)
    proposal = await _unwelcome(ctx)
    await ctx.expect(
        lambda e: e.get("kind") in ("mcp/reject", "mcp/request") and about(proposal)(e),
        "mcp/reject for a proposal that names it and that it does not fulfil",
    )


async def _rejections(ctx: ParticipantContext) -> list[Envelope]:
    if not every(ctx, "mcp/reject"):
        await ctx.worker()
        proposal = await _unwelcome(ctx)
        await ctx.expect_optional(both(is_kind("mcp/reject"), about(proposal)))
    return await some(ctx, "mcp/reject")


@check("reject.correlates")
async def a_rejection_names_its_proposal(ctx: ParticipantContext) -> None:
    """An `mcp/reject` names the rejected proposal, which it was shown, in `correlation_id`."""
    await _rejections(ctx)
    proposed: set[Any] = set()
    for frame in ctx.subject.frames:
        envelope = frame.envelope or {}
        if envelope.get("kind") == "mcp/proposal":
            proposed.add(envelope.get("id"))
        elif frame.way == "sent" and envelope.get("kind") == "mcp/reject":
            named = causes(envelope)
            demand(named and proposed.issuperset(named), f"it names no proposal: {frame.data!r}")


@check("reject.sent-at-once")
async def a_rejection_comes_before_its_explanation(ctx: ParticipantContext) -> None:
    """The rejection comes at once, and before any chat that explains it."""
    await _decides(ctx)
    proposal = await _unwelcome(ctx)
    shown = ctx.subject.was_shown(lambda e: e.get("id") == proposal["id"])[0]
    no = await ctx.expect_frame(both(is_kind("mcp/reject"), about(proposal)), "mcp/reject", since=shown.place)
    early = ctx.said(
        lambda e: e.get("kind") == "chat" and about(proposal, no.envelope or {"id": ""})(e),
        since=shown.place,
        until=no.place,
    )
    demand(not early, f"the explanation comes before the rejection: {early[:1]}")


@check("context.request-not-ignored")
async def a_proposal_in_a_context_is_considered(ctx: ParticipantContext) -> None:
    """A proposal with a context of any depth is considered as one without."""
    await _fulfilled(ctx)
    for context in ("conform", "conform/child/grandchild"):
        proposal = await _proposed(ctx, context=context)
        await ctx.expect(_fulfils(proposal), f"an mcp/request for a proposal in the context {context!r}")
