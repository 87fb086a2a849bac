"""`context` and `correlation_id` of what a participant is sent (§3, §3.5.6)."""

from typing import Any, Final

from mew.conform.matching import is_kind
from mew.conform.participant.checking import check
from mew.conform.participant.matching import about, both
from mew.conform.participant.scenes import fresh_word, lull, needs_responses, pause, resume, time_of_answer
from mew.conform.participant.stage import ParticipantStage
from mew.conform.verdicts import NotOffered, demand

_CONTEXTS: Final = ("conform", "conform/child", "conform/child/grandchild", "a b/ü/0")


@check("context.addressed-is-handled")
async def what_is_addressed_is_handled_in_any_context(stage: ParticipantStage) -> None:
    """A request, a status question and a pause have the same effect with a context as without."""
    tried = False
    for context in _CONTEXTS:
        if stage.traits.answers_mcp:
            await stage.answer(await stage.request("ping", context=context))
            tried = True
        if stage.traits.answers_status:
            await stage.hear_status(await stage.ask("participant/request-status", context=context))
            tried = True
    if not tried:
        raise NotOffered("the participant answers neither MCP requests nor participant/request-status")
    if stage.traits.answers_mcp:
        await _pause_in_context(stage)


async def _pause_in_context(stage: ParticipantStage) -> None:
    took_s = await time_of_answer(stage)
    before = await pause(stage)
    sent = await stage.request("ping")
    await lull(stage, took_s)
    obeys = not stage.said(both(is_kind("mcp/response"), about(sent)))
    await resume(stage, before)
    if not obeys:
        return  # that is pause.obeyed
    await stage.answer(sent)
    paused = await pause(stage, context="conform/child")
    sent = await stage.request("ping")
    await lull(stage, took_s)
    early = stage.said(both(is_kind("mcp/response"), about(sent)))
    demand(not early, "a pause with a `context` does not pause it, one without does")
    await resume(stage, paused, context="conform/other")
    await stage.answer(sent, "after a resume with a `context`, an mcp/response")


@check("context.request-not-ignored")
async def a_request_in_a_context_is_answered(stage: ParticipantStage) -> None:
    """A request with a context of any depth is answered, also in that of somebody's reasoning."""
    needs_responses(stage)
    novice = await stage.actor("novice")
    start = await novice.send("reasoning/start", {"message": "thinking"})
    contexts = (*_CONTEXTS, start["id"], f"{start['id']}/child", "/".join(["deep"] * 20))
    for context in contexts:
        await stage.answer(await stage.request("tools/list", context=context))
        await stage.answer(await stage.request(f"conform/{fresh_word()}", context=context, by="reviewer"))
    await novice.send("reasoning/conclusion", {"message": "thought"}, context=start["id"])


@check("context.optional")
async def a_context_may_be_there_or_not(stage: ParticipantStage) -> None:
    """What has a context and what has none are both taken; its own contexts are strings."""
    needs_responses(stage)
    for fields in ({}, {"context": "conform"}):
        await stage.answer(await stage.request("ping", **fields))
    wrong = stage.said(lambda e: "context" in e and not isinstance(e["context"], str), since=0)
    demand(not wrong, f"`context` is a string where there is one: {wrong[:1]}")


@check("context.path")
async def contexts_are_paths(stage: ParticipantStage) -> None:
    """A context that it sends is a path without empty parts, and the context of a request comes back unchanged."""
    for context in _CONTEXTS if stage.traits.answers_mcp else ():
        answer = await stage.answer(await stage.request("ping", context=context))
        kept = answer.get("context")
        fits = kept is None or kept == context or str(kept).startswith(f"{context}/")
        demand(fits, f"asked in the context {context!r}, it answers in {kept!r}")
    contexts = {e["context"] for e in stage.said(lambda e: isinstance(e.get("context"), str), since=0)}
    if not contexts:
        raise NotOffered("the participant never sent a `context`")
    wrong = [context for context in contexts if not all(context.split("/"))]
    demand(not wrong, f"a context is written parent/child, not {wrong[:1]}")


@check("correlation.any-envelope")
async def what_names_unknown_envelopes_is_taken(stage: ParticipantStage) -> None:
    """A request or a question that names envelopes in `correlation_id` is taken like any other."""
    tried = False
    for named in ([f"conform-{fresh_word()}"], [], ["a", "b", "a"]):
        if stage.traits.answers_mcp:
            await stage.answer(await stage.request("ping", correlation_id=named))
            tried = True
        if stage.traits.answers_status:
            await stage.hear_status(await stage.ask("participant/request-status", correlation_id=named))
            tried = True
    if not tried:
        raise NotOffered("the participant answers neither MCP requests nor participant/request-status")


@check("correlation.several")
async def it_finds_its_request_among_several(stage: ParticipantStage) -> None:
    """A response that names several envelopes is taken by who waits for one of them."""
    await expect_answer(stage, lambda request: [f"conform-{fresh_word()}", request, "conform-other"])


async def expect_answer(stage: ParticipantStage, named: Any) -> None:
    """Have it call a tool of the worker, whose response names these; what that says has to be told."""
    worker = await stage.worker()
    worker.note, worker.named = fresh_word(), named
    word = worker.note
    since = stage.subject.place
    await stage.prompt("request")
    told = await stage.heard_if(lambda e: word in str(e.get("payload")), since=since)
    if told is None and not worker.called:
        raise NotOffered("the prompt 'request' did not make it call read_note")
    demand(told is not None, f"the response to its request, which said {word!r}, was not taken")
