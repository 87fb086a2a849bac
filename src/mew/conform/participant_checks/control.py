"""Pausing a participant and asking for its status (§3.9.1 to §3.9.4)."""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from mew.conform.match import about, both, causes, is_kind, payload_of
from mew.conform.outcome import NotOffered, demand
from mew.conform.participant.context import ParticipantContext
from mew.conform.participant.runner import check
from mew.conform.participant.steps import (
    PASSES,
    calm,
    count_of,
    feed,
    fresh_word,
    lull,
    needs_memory,
    needs_responses,
    pause,
    resume,
    some,
    time_of_answer,
)
from mew.conform.participant.subject import Frame

_TIMEOUT_S: Final = 1
_EARLY: Final = 0.9  # clocks differ a little


@check("pause.obeyed")
async def who_is_paused_does_no_work(ctx: ParticipantContext) -> None:
    """Requests and chats that come while it is paused are not answered before it is resumed."""
    took_s = await time_of_answer(ctx)
    await ctx.barrier()
    paused = await pause(ctx)
    held = ctx.never(
        lambda e: e.get("kind") not in PASSES,
        "who is paused sends nothing but acknowledgements and cancellations (§3.9.1)",
        since=ctx.subject.place,
    )
    sent = []
    if ctx.traits.answers_mcp:
        sent = [await ctx.request("tools/list"), await ctx.request("ping", by="reviewer", context="a/b")]
    if ctx.traits.replies:
        await ctx.prompt("chat")
    await lull(ctx, took_s)
    ctx.keep()
    ctx.lift(held)
    await resume(ctx, paused)
    for one in sent:
        await ctx.answer(one, "once it is resumed, an mcp/response")


class _Outlasted(NamedTuple):
    """A pause with a time limit that nobody lifted."""

    pause: Mapping[str, Any]
    shown: Frame
    answer: Frame | None
    resume: Frame | None


async def _outlast(ctx: ParticipantContext) -> _Outlasted:
    """Pause it for a second, ask something, and wait for the answer."""
    needs_responses(ctx)
    await ctx.barrier()
    paused = await pause(ctx, {"reason": "conformance", "timeout_seconds": _TIMEOUT_S})
    shown = await ctx.subject.reached(paused["id"], ctx.began)
    sent = await ctx.request("ping")
    timeout_s = _TIMEOUT_S + ctx.config.timeout_s
    answering = both(is_kind("mcp/response"), about(sent))
    answer = await ctx.subject.wait(
        lambda: next(iter(ctx.subject.said(answering, since=shown.place)), None), timeout_s
    )
    if answer is not None:
        await ctx.barrier()
    resumes = ctx.subject.said(is_kind("participant/resume"), since=shown.place)
    return _Outlasted(paused, shown, answer, next(iter(resumes), None))


@check("pause.timeout", "resume.autonomous")
async def a_pause_ends_with_its_time(ctx: ParticipantContext) -> None:
    """A pause with `timeout_seconds` ends by itself when these are over and not before; one without does not."""
    done = await _outlast(ctx)
    if done.answer is None:
        raise NotOffered("the participant stays paused when the time of the pause is over")
    held_s = done.answer.at_s - done.shown.at_s
    demand(held_s >= _TIMEOUT_S * _EARLY, f"paused for {_TIMEOUT_S} s, it answers after {held_s:.2f} s")
    paused = await pause(ctx)
    sent = await ctx.request("ping")
    early = await ctx.subject.wait(
        lambda: ctx.said(both(is_kind("mcp/response"), about(sent))) or None, 2 * _TIMEOUT_S
    )
    demand(early is None, "a pause without `timeout_seconds` lasts until a resume, and it answers before")
    await resume(ctx, paused)
    await ctx.answer(sent, "once it is resumed, an mcp/response")


@check("resume.documented")
async def who_resumes_by_itself_says_so(ctx: ParticipantContext) -> None:
    """A participant that goes on after the timeout of a pause sends `participant/resume`."""
    done = await _outlast(ctx)
    if done.answer is None:
        raise NotOffered("the participant stays paused when the time of the pause is over")
    demand(done.resume is not None, "it goes on after the timeout, and sent no participant/resume")


@check("resume.correlates")
async def its_resume_names_the_pause(ctx: ParticipantContext) -> None:
    """The `participant/resume` that it sends after the timeout names the pause in `correlation_id`."""
    done = await _outlast(ctx)
    if done.resume is None:
        raise NotOffered("the participant sends no participant/resume")
    named = causes(done.resume.envelope or {})
    demand(done.pause["id"] in named, f"expected it to name the pause {done.pause['id']}, it names {named}")


@check("resume.lifts")
async def a_resume_lifts_the_pause(ctx: ParticipantContext) -> None:
    """After a resume, with or without a `correlation_id`, it works as before the pause."""
    took_s = await time_of_answer(ctx)
    variants: tuple[dict[str, Any], ...] = ({}, {"correlation_id": ...}, {"context": "conform"})
    for fields in variants:
        paused = await pause(ctx)
        await lull(ctx, took_s)
        await resume(ctx, paused, **fields)
        if ctx.traits.answers_mcp:
            await ctx.answer(await ctx.request("tools/list"), "after a resume, an mcp/response")
        if ctx.traits.replies:
            since = ctx.subject.place
            await ctx.prompt("chat")
            await ctx.expect(is_kind("chat"), "after a resume, an answer to a chat", since=since)


@check("status-request.answered")
async def it_tells_its_status(ctx: ParticipantContext) -> None:
    """`participant/request-status` is soon answered with `participant/status`, whoever asks."""
    for who in ("owner", "reviewer"):
        await ctx.expect_status(await ctx.ask("participant/request-status", by=who))


@check("status.correlates")
async def a_status_names_the_question(ctx: ParticipantContext) -> None:
    """A status that answers a request names it in `correlation_id`."""
    if not ctx.traits.answers_status:
        raise NotOffered("the participant does not answer participant/request-status")
    for who in ("owner", "reviewer"):
        sent = await ctx.ask("participant/request-status", by=who)
        answer = await ctx.expect_status(sent)
        demand(sent["id"] in causes(answer), f"expected it to name {sent['id']}, it names {causes(answer)}")


@check("status-request.fields")
async def a_status_may_be_asked_in_part(ctx: ParticipantContext) -> None:
    """A question that names metrics is answered, as is one that names none, or only unknown ones."""
    variants: tuple[dict[str, Any], ...] = ({"fields": ["tokens", "latency"]}, {"fields": []}, {})
    for payload in (*variants, {"fields": [fresh_word()]}):
        status = await ctx.status(payload)
        demand("messages_in_context" in status, f"asked for {payload}, the status lacks messages_in_context")
    sent = await ctx.show("participant/request-status", payload=...)
    await ctx.expect_status(sent)


@check("status-request.name")
async def the_hyphenated_name_counts(ctx: ParticipantContext) -> None:
    """It never sends `participant/requestStatus`, and answers the hyphenated one."""
    old = ctx.said(lambda e: _letters(e.get("kind")) == "participantrequeststatus", since=0)
    wrong = [e for e in old if e["kind"] != "participant/request-status"]
    demand(not wrong, f"the kind is participant/request-status: {wrong[:1]}")
    await ctx.show("participant/requestStatus")
    await ctx.status()


def _letters(kind: Any) -> str:
    return re.sub(r"[^a-z]", "", str(kind).lower())


@check("status.messages-in-context")
async def a_status_counts_messages(ctx: ParticipantContext) -> None:
    """Every status has `messages_in_context`, a whole number from 0 on, that grows and falls with what it retains."""
    for status in await some(ctx, "participant/status"):
        count = payload_of(status).get("messages_in_context")
        whole = isinstance(count, int) and not isinstance(count, bool) and count >= 0
        demand(whole, f"`messages_in_context` must be a whole number not below 0: {status}")
    if not ctx.traits.answers_status:
        return
    before = count_of(await ctx.status())
    await feed(ctx)
    after, _ = await calm(ctx)
    if after == before == 0 and not ctx.traits.remembers:
        return  # who retains nothing reports that
    if after <= before:  # it may have been full
        await ctx.ask("participant/clear")
        before, _ = await calm(ctx)
        await feed(ctx)
        after, _ = await calm(ctx)
    demand(after > before, f"`messages_in_context` was {before}, twelve chats to all later it is {after}")


@check("status.tokens")
async def a_status_counts_tokens(ctx: ParticipantContext) -> None:
    """A status reports `tokens` and `max_tokens` as numbers."""
    needs_memory(ctx)
    status = await ctx.status({"fields": ["tokens", "max_tokens"]})
    for name in ("tokens", "max_tokens"):
        value = status.get(name)
        number = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
        demand(number, f"expected a number in `{name}`, got {value!r}")


@check("status.other-metrics")
async def unknown_metrics_upset_nothing(ctx: ParticipantContext) -> None:
    """A status of somebody else with metrics that nobody knows is coped with."""
    strange = {"messages_in_context": 3, "moon_phase": "waxing", "nested": {"a": [1, None]}, "big": 1e300}
    await ctx.ask("participant/status", strange)
    await ctx.ask("participant/status", {**strange, "tokens": "many", "status": {"a": 1}}, to=...)
    ctx.never(is_kind("system/error"), "only the gateway reports errors so")
    await ctx.barrier()
