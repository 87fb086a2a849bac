"""Restart and shutdown (§3.9.9, §3.9.10): played last, as a participant may not come back."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from mew.conform.match import about, both, causes, is_kind, payload_of, word_in
from mew.conform.outcome import NotOffered, Violation, demand
from mew.conform.participant.context import ParticipantContext
from mew.conform.participant.runner import check
from mew.conform.participant.steps import feed, messages, propose, since, time_of_answer
from mew.conform.participant.subject import FrameDirection, stream_of

_HINTS: Final = {"reason": "conformance", "conform_hint": {"a": [1, None]}}


async def _restart(ctx: ParticipantContext, payload: Any = ...) -> dict[str, Any]:
    """Restart it, and wait until it is there and answers again, be it over another connection."""
    sent = await ctx.show("participant/restart", payload=payload)
    deadline_s = asyncio.get_running_loop().time() + 4 * ctx.config.timeout_s
    while True:
        try:
            await ctx.test_run.presence()
            await ctx.barrier()
            return sent
        except Violation as error:
            if asyncio.get_running_loop().time() > deadline_s:
                raise Violation(f"after participant/restart it does not answer again: {error}") from error


@check("restart.baseline")
async def a_restart_leads_back_to_the_beginning(ctx: ParticipantContext) -> None:
    """After `participant/restart` it is as when it first joined: nothing retained, and it answers."""
    if not ctx.traits.answers_mcp and not ctx.traits.answers_status:
        raise NotOffered("the participant answers nothing that one could see")
    await feed(ctx, 40)
    sent = await _restart(ctx)
    first = (ctx.traits.first_status or {}).get("messages_in_context")
    if ctx.traits.remembers and isinstance(first, int):
        now = await messages(ctx)
        demand(
            now <= first + since(ctx, sent),
            f"when it first joined it retained {first} messages, after participant/restart {now}",
        )


@check("restart.hints")
async def a_restart_may_have_hints(ctx: ParticipantContext) -> None:
    """A `participant/restart` with fields that nobody knows, with none, or without a payload is obeyed."""
    if not ctx.traits.remembers:
        raise NotOffered("whether the participant restarts cannot be seen: it retains nothing")
    for payload in (..., {}, _HINTS):
        await feed(ctx)
        before = (await ctx.status()).get("messages_in_context")
        await _restart(ctx, payload)
        after = (await ctx.status()).get("messages_in_context")
        what = "without a payload" if payload is ... else f"with the payload {payload}"
        fewer = isinstance(before, int) and isinstance(after, int) and after < before
        demand(fewer, f"participant/restart {what}: it retained {before} messages before and {after} after")


@check("restart.terminates")
async def a_restart_ends_what_goes_on(ctx: ParticipantContext) -> None:
    """What was going on ends at a restart: streams, proposals and reasoning."""
    said = ctx.test_run.prompts.said
    if not {"pour", "ponder", "propose"}.intersection(said):
        raise NotOffered("none of the prompts 'pour', 'ponder' and 'propose' is configured")
    if "ponder" in said:
        await _ends_reasoning(ctx)
    if "pour" in said:
        await _ends_streams(ctx)
    if "propose" in said:
        await _ends_proposals(ctx)


async def _ends_reasoning(ctx: ParticipantContext) -> None:
    since = ctx.subject.place
    await ctx.prompt("ponder")
    start = await ctx.expect_optional(is_kind("reasoning/start"), since=since)
    if start is None:
        raise NotOffered("the prompt 'ponder' does not make the participant reason")
    await _restart(ctx)
    here = ctx.subject.place
    mine = lambda e: str(e.get("context", "")).rpartition("/")[2] == start["id"]  # noqa: E731
    ctx.never(both(is_kind("reasoning/thought"), mine), "it was restarted, and reasons on", since=here)
    await ctx.barrier()


async def _ends_streams(ctx: ParticipantContext) -> None:
    since = ctx.subject.place
    await ctx.prompt("pour")

    def written(after: int) -> list[str]:
        frames = ctx.subject.frames[after:]
        found = [stream_of(frame.data) for frame in frames if frame.way is FrameDirection.SENT]
        return [one[0] for one in found if one is not None]

    await ctx.subject.wait(lambda: written(since) or None, ctx.config.timeout_s)
    if not written(since):
        raise NotOffered("the prompt 'pour' does not make the participant write to a stream")
    lives = len(ctx.subject.arrivals)
    await _restart(ctx)
    here = ctx.subject.place
    await ctx.barrier()
    await ctx.barrier()
    demand(not written(here), "it was restarted, and writes on to its stream")
    if len(ctx.subject.arrivals) == lives:  # else the gateway closed it when it left
        await ctx.expect(is_kind("stream/close"), "stream/close for the stream it had open", since=since)


async def _ends_proposals(ctx: ParticipantContext) -> None:
    made = await propose(ctx)
    await _restart(ctx)
    if ctx.said(both(is_kind("mcp/withdraw"), about(made.proposal))):
        return
    word = await made.fulfil()
    ctx.never(word_in(word), "it was restarted, and follows what it had proposed before")
    await ctx.barrier()


# Shutdown.


async def _shut_down(ctx: ParticipantContext, payload: Any = ...) -> Mapping[str, Any]:
    """Shut it down; it may acknowledge, leave, and no more."""
    await ctx.barrier()
    sent = await ctx.show("participant/shutdown", payload=payload)
    ctx.test_run.dismissed = True
    ctx.test_run.findings["shutdown"] = sent
    return sent


def _says_goodbye(sent: Mapping[str, Any]) -> Any:
    return lambda e: (
        e.get("kind") in ("chat/acknowledge", "participant/status")
        or (sent["id"] in causes(e) and e.get("kind") != "mcp/response")
    )


@check("shutdown.ceases")
async def a_shutdown_ends_all_activity(ctx: ParticipantContext) -> None:
    """After `participant/shutdown` it sends nothing but its acknowledgement, and does not come back by itself."""
    took_s = await time_of_answer(ctx) if ctx.traits.answers_mcp else ctx.config.timeout_s
    sent = await _shut_down(ctx)
    if ctx.subject.present:
        try:
            asked = [await ctx.show("mcp/request", {"jsonrpc": "2.0", "id": 1, "method": "ping"})]
            asked.append(await ctx.show("participant/request-status"))
            asked.append(await ctx.show("chat", {"text": "Are you still there?"}))
        except Violation:
            asked = []  # it has left
        for one in asked:
            ctx.never(about(one), "after participant/shutdown it answers nothing any more")
    goodbye = _says_goodbye(sent)
    silence = ctx.never(
        lambda e: not goodbye(e) and not _winds_up(e),
        "after participant/shutdown it sends nothing but its acknowledgement",
        since=ctx.subject.was_shown(lambda e: e.get("id") == sent["id"])[0].place,
    )
    lives = len(ctx.subject.arrivals)
    await ctx.subject.wait(lambda: None if ctx.subject.present else True, ctx.config.timeout_s)
    await asyncio.sleep(
        min(ctx.config.timeout_s, max(0.1, 5 * took_s))
    )  # it answers nothing one could wait for
    ctx.keep()
    demand(len(ctx.subject.arrivals) == lives, "after participant/shutdown it comes back by itself")
    ctx.lift(silence)  # who is started again later may speak again


def _winds_up(envelope: Mapping[str, Any]) -> bool:
    """It ends what was going on, which is no new activity."""
    ends = ("mcp/withdraw", "reasoning/cancel", "stream/close", "chat/cancel", "participant/compact-done")
    failed = envelope.get("kind") == "mcp/response" and "error" in payload_of(envelope)
    return envelope.get("kind") in ends or failed


@check("shutdown.acknowledged")
async def a_shutdown_is_acknowledged(ctx: ParticipantContext) -> None:
    """It acknowledges its shutdown with `chat/acknowledge`, or by leaving."""
    before = ctx.test_run.findings.get("shutdown")
    is_over = ctx.test_run.dismissed and ctx.test_run.revive is None  # what was seen then has to do
    sent = before if is_over and isinstance(before, dict) else await _shut_down(ctx, {})
    await _acknowledged(ctx, sent)


@check("shutdown.context")
async def a_shutdown_may_say_more(ctx: ParticipantContext) -> None:
    """A `participant/shutdown` with fields that nobody knows is obeyed as well: it acknowledges, or leaves."""
    await _acknowledged(ctx, await _shut_down(ctx, _HINTS))


async def _acknowledged(ctx: ParticipantContext, sent: Mapping[str, Any]) -> None:
    def done() -> bool | None:
        said = ctx.said(both(is_kind("chat/acknowledge"), about(sent)), since=0)
        return True if said or not ctx.subject.present else None

    acknowledged = await ctx.subject.wait(done, ctx.config.timeout_s)
    demand(acknowledged, "expected chat/acknowledge for the shutdown, or that it leaves; neither came")
