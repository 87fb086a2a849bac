"""Reasoning aloud (§3.5)."""

from collections.abc import Mapping
from typing import Any

from mew.conform.match import about, both, causes, is_kind, payload_of
from mew.conform.outcome import NotOffered, demand
from mew.conform.participant.context import ParticipantContext
from mew.conform.participant.runner import check
from mew.conform.participant.steps import every, fresh_word, some
from mew.conform.participant.subject import FrameDirection

Envelope = Mapping[str, Any]
_WITHIN = ("reasoning/thought", "reasoning/conclusion", "reasoning/cancel")


async def _begin(ctx: ParticipantContext, prompt: str = "reason") -> tuple[dict[str, Any], dict[str, Any]]:
    """What made it reason, and its `reasoning/start`."""
    since = ctx.subject.place
    sent = await ctx.prompt(prompt)
    start = await ctx.expect_optional(is_kind("reasoning/start"), since=since)
    if start is None:
        raise NotOffered(f"the prompt {prompt!r} does not make the participant reason")
    return sent, start


def _of(start: Envelope) -> Any:
    """What belongs to the sequence of this start: its context is that, or ends in it."""
    return lambda e: str(e.get("context", "")).rpartition("/")[2] == start["id"]


async def _ponder(ctx: ParticipantContext) -> tuple[dict[str, Any], dict[str, Any]]:
    """It reasons without an end; cancelled when the check is over."""
    sent, start = await _begin(ctx, "ponder")

    async def stop() -> None:
        await ctx.show("reasoning/cancel", {"reason": "over"}, context=start["id"], to=...)

    ctx.add_cleanup(stop)
    return sent, start


async def _cancel(ctx: ParticipantContext, start: Envelope) -> int:
    """Somebody cancels it; where it has read that, for certain: what was on its way before is no fault."""
    await ctx.ask("reasoning/cancel", {"reason": "superseded"}, context=start["id"], to=...)
    await ctx.barrier()
    return ctx.subject.place


@check("reasoning.start-correlates")
async def a_start_names_what_it_is_about(ctx: ParticipantContext) -> None:
    """A `reasoning/start` about a request or a chat names it in `correlation_id`."""
    sent, start = await _begin(ctx)
    demand(sent["id"] in causes(start), f"expected it to name {sent['id']}, it names {causes(start)}")


@check("reasoning.context-is-start-id")
async def the_start_is_the_context(ctx: ParticipantContext) -> None:
    """The context of each thought and conclusion is the id of a `reasoning/start` that came before."""
    _, start = await _begin(ctx)
    within = await ctx.expect_optional(both(is_kind(*_WITHIN), _of(start)))
    demand(within, f"nothing came with the context {start['id']} after its reasoning/start")
    begun: set[Any] = set()
    for frame in ctx.subject.frames:
        envelope = frame.envelope or {}
        if envelope.get("kind") == "reasoning/start":
            begun.add(envelope.get("id"))
        elif frame.way is FrameDirection.SENT and envelope.get("kind") in _WITHIN:
            last = str(envelope.get("context", "")).rpartition("/")[2]
            demand(last in begun, f"its context is not that of a reasoning/start before it: {frame.data!r}")


@check("context.in-sub-contexts")
async def a_sequence_has_one_context(ctx: ParticipantContext) -> None:
    """All of one sequence carries the same context, and what does not belong to it does not carry that."""
    _, start = await _ponder(ctx)
    await ctx.expect(both(is_kind("reasoning/thought"), _of(start)), "a reasoning/thought in its context")
    if ctx.traits.answers_mcp:
        answer = await ctx.answer(await ctx.request("ping"))
        demand(not _of(start)(answer), "the answer to another request carries the context of its reasoning")
    if ctx.traits.answers_status:
        status = await ctx.expect_status(await ctx.ask("participant/request-status"))
        demand(not _of(start)(status), "its status carries the context of its reasoning")
    contexts = {e.get("context") for e in ctx.said(_of(start))}
    demand(len(contexts) == 1, f"one sequence has one context, not {contexts}")
    loose = ctx.said(lambda e: e.get("kind") in _WITHIN and "context" not in e, since=0)
    demand(not loose, f"it belongs to a sequence, and has no context: {loose[:1]}")


@check("reasoning.thoughts")
async def thoughts_come_within_a_sequence(ctx: ParticipantContext) -> None:
    """Thoughts come after the start of their sequence and before its end."""
    _, start = await _begin(ctx)
    await ctx.expect_optional(both(is_kind("reasoning/conclusion", "reasoning/cancel"), _of(start)))
    loose = [e for e in every(ctx, "reasoning/thought") if not isinstance(e.get("context"), str)]
    demand(not loose, f"a thought outside of any sequence: {loose[:1]}")
    kinds = [e["kind"] for e in ctx.said(both(is_kind(*_WITHIN), _of(start)))]
    if "reasoning/thought" not in kinds:
        raise NotOffered("the participant shares no thoughts")
    ended = [kind for kind in kinds[:-1] if kind in ("reasoning/conclusion", "reasoning/cancel")]
    demand(not ended, f"the sequence goes on after its end: {kinds}")


@check("reasoning.chat-in-context")
async def a_chat_in_a_context_is_attended_to(ctx: ParticipantContext) -> None:
    """A chat to it with the context of a sequence, its own or another's, is attended to like any other."""
    if not ctx.traits.replies and not ctx.traits.acknowledges:
        raise NotOffered("the participant neither answers nor acknowledges what is said to it")
    text = ctx.prompt_of("chat")
    for context in (f"conform-{fresh_word()}", "conform/child"):
        since = ctx.subject.place
        sent = await ctx.ask("chat", {"text": text}, context=context)
        await ctx.expect(
            lambda e, sent=sent: (
                e.get("kind") in ("chat", "chat/acknowledge")  # type: ignore[misc]
                and (about(sent)(e) or not causes(e))
            ),
            f"an answer to a chat in the context {context!r}",
            since=since,
        )


@check("reasoning.conclusion")
async def a_conclusion_ends_a_sequence_of_its_own(ctx: ParticipantContext) -> None:
    """A `reasoning/conclusion` ends a sequence that was begun and not ended before."""
    _, start = await _begin(ctx)
    end = await ctx.expect_optional(both(is_kind("reasoning/conclusion"), _of(start)))
    if end is None:
        raise NotOffered("the participant ends its reasoning without a conclusion")
    many = ctx.said(both(is_kind("reasoning/conclusion", "reasoning/cancel"), _of(start)))
    demand(len(many) == 1, f"a sequence ends once: {many}")


@check("reasoning.final-response")
async def what_was_reasoned_about_is_answered(ctx: ParticipantContext) -> None:
    """A request that was reasoned about still gets its response, which names it."""
    sent, start = await _begin(ctx)
    if sent["kind"] != "mcp/request":
        raise NotOffered("the prompt 'reason' is no call, so that no response is due")
    await ctx.answer(sent, f"beside the reasoning {start['id']}, an mcp/response")


@check("reasoning.autonomous")
async def reasoning_may_begin_at_any_time(ctx: ParticipantContext) -> None:
    """A `reasoning/start` without `correlation_id`, of its own or of another, is one like any other."""
    novice = await ctx.client("novice")
    start = await novice.send("reasoning/start", {"message": "a whim"})
    await novice.send("reasoning/thought", {"message": "odd"}, context=start["id"])
    await novice.send("reasoning/conclusion", {"message": "done"}, context=start["id"])
    await ctx.subject.reached(start["id"], ctx.began)
    ctx.never(
        lambda e: e.get("kind") in _WITHIN and _of(start)(e),
        "somebody else's reasoning is not its own to go on with",
    )
    await ctx.barrier()
    begun = every(ctx, "reasoning/start")
    if not begun:
        raise NotOffered("the participant does not reason aloud")
    if all(causes(e) for e in begun):
        raise NotOffered("the participant reasons only about what it was asked")


@check("reasoning.no-reply")
async def nobody_need_answer_a_thought(ctx: ParticipantContext) -> None:
    """Thoughts of others need no answer, and its own reasoning waits for none."""
    novice = await ctx.client("novice")
    start = await novice.send("reasoning/start", {"message": "hm"})
    sent = [start, await novice.send("reasoning/thought", {"message": "hm"}, context=start["id"])]
    await ctx.subject.reached(sent[-1]["id"], ctx.began)
    await ctx.barrier()
    if ctx.said(about(*sent)):
        raise NotOffered("the participant answers thoughts of others")
    if "reason" in ctx.test_run.prompts.said:
        asked, begun = await _begin(ctx)
        await ctx.expect(
            lambda e: (e.get("kind") in _WITHIN[1:] and _of(begun)(e)) or asked["id"] in causes(e),
            "an end of its reasoning, though nobody replied",
            since=ctx.subject.said(lambda e: e.get("id") == begun["id"])[0].place + 1,
        )


@check("reasoning.message")
async def reasoning_says_what_in_message(ctx: ParticipantContext) -> None:
    """A start, a thought and a conclusion have a string in `payload.message`."""
    if "reason" in ctx.test_run.prompts.said:
        _, start = await _begin(ctx)
        await ctx.expect_optional(both(is_kind("reasoning/conclusion", "reasoning/cancel"), _of(start)))
    await some(ctx, "reasoning/start")
    for envelope in every(ctx, "reasoning/start", "reasoning/thought", "reasoning/conclusion"):
        message = payload_of(envelope).get("message")
        demand(isinstance(message, str), f"`payload.message` is a string: {envelope}")


@check("reasoning.conclusion-ends")
async def nothing_comes_after_a_conclusion(ctx: ParticipantContext) -> None:
    """After its conclusion no thought comes in that context, and no second conclusion."""
    _, start = await _begin(ctx)
    if await ctx.expect_optional(both(is_kind("reasoning/conclusion"), _of(start))) is None:
        raise NotOffered("the participant ends its reasoning without a conclusion")
    await ctx.barrier()
    concluded: set[Any] = set()
    for envelope in ctx.said(is_kind("reasoning/thought", "reasoning/conclusion"), since=0):
        context = str(envelope.get("context"))
        demand(context not in concluded, f"it comes after the conclusion of its context: {envelope}")
        if envelope["kind"] == "reasoning/conclusion":
            concluded.add(context)
    more = both(is_kind("reasoning/thought", "reasoning/conclusion"), _of(start))
    ctx.never(more, "it comes after the conclusion", since=ctx.subject.place)


@check("reasoning.cancel-without-conclusion")
async def a_cancelled_sequence_has_no_conclusion(ctx: ParticipantContext) -> None:
    """A sequence that somebody cancelled gets no conclusion."""
    _, start = await _ponder(ctx)
    since = await _cancel(ctx, start)
    ctx.never(
        both(is_kind("reasoning/conclusion"), _of(start)), "it was cancelled, and is concluded", since=since
    )
    await ctx.barrier()
    cancelled = {str(e.get("context")) for e in every(ctx, "reasoning/cancel")}
    ended = [e for e in every(ctx, "reasoning/conclusion") if str(e.get("context")) in cancelled]
    demand(not ended, f"it cancelled the sequence itself, and concludes it: {ended[:1]}")


@check("reasoning.cancel-stops-thoughts")
async def a_cancelled_sequence_has_no_more_thoughts(ctx: ParticipantContext) -> None:
    """When a sequence is cancelled no more thoughts come in its context."""
    _, start = await _ponder(ctx)
    await ctx.expect(both(is_kind("reasoning/thought"), _of(start)), "a reasoning/thought")
    since = await _cancel(ctx, start)
    ctx.never(both(is_kind("reasoning/thought"), _of(start)), "it was cancelled, and goes on", since=since)
    await ctx.barrier()
    await ctx.barrier()


@check("reasoning.cancel-context")
async def a_cancellation_names_its_sequence(ctx: ParticipantContext) -> None:
    """A `reasoning/cancel` has in `context` the id of the `reasoning/start` it ends."""
    cancels = await some(ctx, "reasoning/cancel", "abandon")
    begun = {e.get("id") for e in ctx.said(is_kind("reasoning/start"), since=0)}
    begun |= {(frame.envelope or {}).get("id") for frame in ctx.subject.was_shown(is_kind("reasoning/start"))}
    for envelope in cancels:
        last = str(envelope.get("context", "")).rpartition("/")[2]
        demand(last in begun, f"`context` is the id of a reasoning/start: {envelope}")


@check("reasoning.cancel-correlates")
async def a_cancellation_may_name_what_was_asked(ctx: ParticipantContext) -> None:
    """A `reasoning/cancel` may name the request or chat that was reasoned about, which it was shown."""
    cancels = [e for e in await some(ctx, "reasoning/cancel", "abandon") if causes(e)]
    if not cancels:
        raise NotOffered("the participant's cancellations name nothing in `correlation_id`")
    known = {(frame.envelope or {}).get("id") for frame in ctx.subject.frames}
    for envelope in cancels:
        demand(known.issuperset(causes(envelope)), f"it names what there never was: {envelope}")


@check("reasoning.cancel-reason")
async def a_cancellation_has_a_code(ctx: ParticipantContext) -> None:
    """A `reasoning/cancel` has one word in `payload.reason`."""
    for envelope in await some(ctx, "reasoning/cancel", "abandon"):
        reason = payload_of(envelope).get("reason")
        one = isinstance(reason, str) and reason != "" and len(reason.split()) == 1
        demand(one, f"`payload.reason` is a code, one word: {envelope}")


@check("context.parallel")
async def sequences_run_side_by_side(ctx: ParticipantContext) -> None:
    """Another's sequence begins, is cancelled and ends while its own goes on under its own context."""
    _, start = await _ponder(ctx)
    thought = both(is_kind("reasoning/thought"), _of(start))
    await ctx.expect(thought, "a reasoning/thought")
    for end, payload in (
        ("reasoning/conclusion", {"message": "so"}),
        ("reasoning/cancel", {"reason": "over"}),
    ):
        other = await ctx.ask("reasoning/start", {"message": "mine"}, by="novice", to=...)
        await ctx.ask("reasoning/thought", {"message": "hm"}, by="novice", to=..., context=other["id"])
        await ctx.ask(end, payload, by="novice", to=..., context=other["id"])
        await ctx.barrier()
        since = ctx.subject.place
        await ctx.expect(thought, f"another reasoning/thought after somebody else's {end}", since=since)
        mixed = ctx.said(lambda e, other=other: _of(other)(e))  # type: ignore[misc]
        demand(not mixed, f"it speaks in the context of somebody else's reasoning: {mixed[:1]}")


@check("reasoning.cancel-affordance")
async def a_person_can_cancel_reasoning(ctx: ParticipantContext) -> None:
    """Its interface can cancel a sequence of another: `reasoning/cancel` with that context is sent."""
    start = await ctx.ask("reasoning/start", {"message": "long"}, by="novice", to=...)
    await ctx.prompt("cancel_reasoning", start=start["id"])
    await ctx.expect(
        both(is_kind("reasoning/cancel"), _of(start)), f"reasoning/cancel with the context {start['id']}"
    )
