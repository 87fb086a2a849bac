"""The side of who fulfils or rejects proposals (§3.2.1, §3.3)."""

from collections.abc import Mapping
from typing import Any

from mew.conform.matching import is_kind
from mew.conform.participant.checking import check
from mew.conform.participant.matching import about, both, causes, payload_of, to_of
from mew.conform.participant.scenes import every, fresh_word, lull, pause, resume, some, time_of_answer
from mew.conform.participant.stage import ParticipantStage
from mew.conform.verdicts import NotOffered, demand

Envelope = dict[str, Any]
_READ = {"name": "read_note", "arguments": {}}


async def _proposed(stage: ParticipantStage, **fields: Any) -> Envelope:
    """Somebody proposes what the participant may request: to read the note of the worker."""
    worker = await stage.worker()
    payload = {"method": "tools/call", "params": _READ}
    return await stage.ask("mcp/proposal", payload, by="novice", **{"to": [worker.id], **fields})


def _fulfils(proposal: Mapping[str, Any]) -> Any:
    return both(is_kind("mcp/request"), about(proposal))


def _reads(envelope: Mapping[str, Any]) -> bool:
    params = payload_of(envelope).get("params")
    named = params.get("name") if isinstance(params, dict) else None
    return envelope.get("kind") == "mcp/request" and named == "read_note"


async def _fulfilled(stage: ParticipantStage, **fields: Any) -> tuple[Envelope, Envelope]:
    """A proposal, and the request that it makes for it.

    Raises:
        NotOffered: it makes none.
    """
    proposal = await _proposed(stage, **fields)
    since = stage.subject.was_shown(lambda e: e.get("id") == proposal["id"])[0].place
    request = await stage.heard_if(_reads, since=since)
    if request is None:
        raise NotOffered("the participant does not fulfil proposals")
    return proposal, request


@check("fulfilment.is-a-request")
async def a_fulfilment_is_the_request(stage: ParticipantStage) -> None:
    """It fulfils a proposal with a real `mcp/request`, of the proposed method and params, to the target."""
    worker = await stage.worker()
    _, request = await _fulfilled(stage)
    payload = payload_of(request)
    demand(payload.get("method") == "tools/call", f"the method that was proposed is tools/call: {request}")
    params = payload.get("params")
    same = isinstance(params, dict) and params.get("name") == "read_note" and not params.get("arguments")
    demand(same, f"the params that were proposed are {_READ}: {request}")
    demand(
        to_of(request) == [worker.id], f"the proposal is for {worker.id}, the request is to {to_of(request)}"
    )
    demand("id" in payload, f"a fulfilment is a real request, with an id: {request}")
    await stage.barrier()
    many = stage.said(_reads)
    demand(len(many) == 1, f"one proposal is fulfilled once, not {len(many)} times")


@check("fulfilment.correlates")
async def a_fulfilment_names_its_proposal(stage: ParticipantStage) -> None:
    """The request that fulfils a proposal names the proposal in `correlation_id`."""
    proposal, request = await _fulfilled(stage)
    named = causes(request)
    demand(proposal["id"] in named, f"expected it to name the proposal {proposal['id']}, it names {named}")


@check("proposal.without-correlation")
async def a_proposal_needs_no_correlation(stage: ParticipantStage) -> None:
    """A proposal with no `correlation_id`, an empty one, or one that names something is treated as one."""
    variants: tuple[Any, ...] = (..., [], [f"conform-{fresh_word()}"])
    await _fulfilled(stage)
    for named in variants:
        proposal = await _proposed(stage, correlation_id=named)
        what = "without `correlation_id`" if named is ... else f"with `correlation_id` {named}"
        await stage.hear(_fulfils(proposal), f"an mcp/request for a proposal {what}")


@check("withdraw.own")
async def a_withdrawn_proposal_is_not_fulfilled(stage: ParticipantStage) -> None:
    """Who has not yet fulfilled a proposal that is withdrawn no longer does."""
    await _fulfilled(stage)
    took_s = await time_of_answer(stage)
    paused = await pause(stage)  # so that it cannot have fulfilled it before
    proposal = await _proposed(stage)
    await lull(stage, took_s)
    if stage.said(_fulfils(proposal)):
        raise NotOffered("the participant fulfils proposals while it is paused")
    novice = await stage.actor("novice")
    since = stage.subject.place
    sent = await novice.send("mcp/withdraw", {"reason": "no_longer_needed"}, correlation_id=[proposal["id"]])
    await stage.subject.reached(sent["id"], since)
    await lull(stage, took_s)
    stage.never(_fulfils(proposal), "the proposal was withdrawn before it was fulfilled")
    await resume(stage, paused)
    await stage.barrier()
    await _fulfilled(stage)


@check("withdraw.only-proposer")
async def a_forged_withdrawal_changes_nothing(stage: ParticipantStage) -> None:
    """A proposal that somebody else claims to withdraw is still fulfilled."""
    await _fulfilled(stage)
    took_s = await time_of_answer(stage)
    for forger in ("stranger", "owner"):
        paused = await pause(stage)
        proposal = await _proposed(stage)
        await lull(stage, took_s)
        if stage.said(_fulfils(proposal)):
            raise NotOffered("the participant fulfils proposals while it is paused")
        await stage.show(
            "mcp/withdraw", {"reason": "other"}, by=forger, correlation_id=[proposal["id"]], to=...
        )
        await resume(stage, paused)
        await stage.hear(_fulfils(proposal), f"an mcp/request for a proposal that {forger} cannot withdraw")


async def _unwelcome(stage: ParticipantStage) -> Envelope:
    """A proposal to the participant itself that it cannot want to fulfil: a tool that nobody has."""
    payload = {"method": "tools/call", "params": {"name": fresh_word(), "arguments": {}}}
    return await stage.ask("mcp/proposal", payload, by="novice")


async def _decides(stage: ParticipantStage) -> None:
    """
    Raises:
        NotOffered: it neither fulfils proposals nor rejects any.
    """
    if not every(stage, "mcp/reject"):
        await _fulfilled(stage)


@check("reject.when-targeted")
async def who_is_named_rejects_what_it_will_not_do(stage: ParticipantStage) -> None:
    """A proposal that names it, and that it will not fulfil, it rejects."""
    await _decides(stage)
    proposal = await _unwelcome(stage)
    await stage.hear(
        lambda e: e.get("kind") in ("mcp/reject", "mcp/request") and about(proposal)(e),
        "mcp/reject for a proposal that names it and that it does not fulfil",
    )


async def _rejections(stage: ParticipantStage) -> list[Envelope]:
    if not every(stage, "mcp/reject"):
        await stage.worker()
        proposal = await _unwelcome(stage)
        await stage.heard_if(both(is_kind("mcp/reject"), about(proposal)))
    return await some(stage, "mcp/reject")


@check("reject.correlates")
async def a_rejection_names_its_proposal(stage: ParticipantStage) -> None:
    """An `mcp/reject` names the rejected proposal, which it was shown, in `correlation_id`."""
    await _rejections(stage)
    proposed: set[Any] = set()
    for frame in stage.subject.frames:
        envelope = frame.envelope or {}
        if envelope.get("kind") == "mcp/proposal":
            proposed.add(envelope.get("id"))
        elif frame.way == "sent" and envelope.get("kind") == "mcp/reject":
            named = causes(envelope)
            demand(named and proposed.issuperset(named), f"it names no proposal: {frame.data!r}")


@check("reject.sent-at-once")
async def a_rejection_comes_before_its_explanation(stage: ParticipantStage) -> None:
    """The rejection comes at once, and before any chat that explains it."""
    await _decides(stage)
    proposal = await _unwelcome(stage)
    shown = stage.subject.was_shown(lambda e: e.get("id") == proposal["id"])[0]
    no = await stage.hear_frame(both(is_kind("mcp/reject"), about(proposal)), "mcp/reject", since=shown.place)
    early = stage.said(
        lambda e: e.get("kind") == "chat" and about(proposal, no.envelope or {"id": ""})(e),
        since=shown.place,
        until=no.place,
    )
    demand(not early, f"the explanation comes before the rejection: {early[:1]}")


@check("context.request-not-ignored")
async def a_proposal_in_a_context_is_considered(stage: ParticipantStage) -> None:
    """A proposal with a context of any depth is considered as one without."""
    await _fulfilled(stage)
    for context in ("conform", "conform/child/grandchild"):
        proposal = await _proposed(stage, context=context)
        await stage.hear(_fulfils(proposal), f"an mcp/request for a proposal in the context {context!r}")
