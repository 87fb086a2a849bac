"""Restart and shutdown (§3.9.9, §3.9.10): played last, as a participant may not come back."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from mew.conform.match import about, both, causes, is_kind, payload_of, word_in
from mew.conform.outcome import NotOffered, Violation, demand
from mew.conform.participant.context import ParticipantStage
from mew.conform.participant.runner import check
from mew.conform.participant.steps import feed, messages, propose, since, time_of_answer
from mew.conform.participant.subject import Way, stream_of

_HINTS: Final = {"reason": "conformance", "conform_hint": {"a": [1, None]}}


async def _restart(stage: ParticipantStage, payload: Any = ...) -> dict[str, Any]:
    """Restart it, and wait until it is there and answers again, be it over another connection."""
    sent = await stage.show("participant/restart", payload=payload)
    deadline_s = asyncio.get_running_loop().time() + 4 * stage.cast.patience_s
    while True:
        try:
            await stage.company.presence()
            await stage.barrier()
            return sent
        except Violation as error:
            if asyncio.get_running_loop().time() > deadline_s:
                raise Violation(f"after participant/restart it does not answer again: {error}") from error


@check("restart.baseline")
async def a_restart_leads_back_to_the_beginning(stage: ParticipantStage) -> None:
    """After `participant/restart` it is as when it first joined: nothing retained, and it answers."""
    if not stage.traits.answers_mcp and not stage.traits.answers_status:
        raise NotOffered("the participant answers nothing that one could see")
    await feed(stage, 40)
    sent = await _restart(stage)
    first = (stage.traits.first_status or {}).get("messages_in_context")
    if stage.traits.remembers and isinstance(first, int):
        now = await messages(stage)
        demand(
            now <= first + since(stage, sent),
            f"when it first joined it retained {first} messages, after participant/restart {now}",
        )


@check("restart.hints")
async def a_restart_may_have_hints(stage: ParticipantStage) -> None:
    """A `participant/restart` with fields that nobody knows, with none, or without a payload is obeyed."""
    if not stage.traits.remembers:
        raise NotOffered("whether the participant restarts cannot be seen: it retains nothing")
    for payload in (..., {}, _HINTS):
        await feed(stage)
        before = (await stage.status()).get("messages_in_context")
        await _restart(stage, payload)
        after = (await stage.status()).get("messages_in_context")
        what = "without a payload" if payload is ... else f"with the payload {payload}"
        fewer = isinstance(before, int) and isinstance(after, int) and after < before
        demand(fewer, f"participant/restart {what}: it retained {before} messages before and {after} after")


@check("restart.terminates")
async def a_restart_ends_what_goes_on(stage: ParticipantStage) -> None:
    """What was going on ends at a restart: streams, proposals and reasoning."""
    said = stage.company.prompts.said
    if not {"pour", "ponder", "propose"}.intersection(said):
        raise NotOffered("none of the prompts 'pour', 'ponder' and 'propose' is configured")
    if "ponder" in said:
        await _ends_reasoning(stage)
    if "pour" in said:
        await _ends_streams(stage)
    if "propose" in said:
        await _ends_proposals(stage)


async def _ends_reasoning(stage: ParticipantStage) -> None:
    since = stage.subject.place
    await stage.prompt("ponder")
    start = await stage.heard_if(is_kind("reasoning/start"), since=since)
    if start is None:
        raise NotOffered("the prompt 'ponder' does not make the participant reason")
    await _restart(stage)
    here = stage.subject.place
    mine = lambda e: str(e.get("context", "")).rpartition("/")[2] == start["id"]  # noqa: E731
    stage.never(both(is_kind("reasoning/thought"), mine), "it was restarted, and reasons on", since=here)
    await stage.barrier()


async def _ends_streams(stage: ParticipantStage) -> None:
    since = stage.subject.place
    await stage.prompt("pour")

    def written(after: int) -> list[str]:
        frames = stage.subject.frames[after:]
        found = [stream_of(frame.data) for frame in frames if frame.way is Way.SENT]
        return [one[0] for one in found if one is not None]

    await stage.subject.wait(lambda: written(since) or None, stage.cast.patience_s)
    if not written(since):
        raise NotOffered("the prompt 'pour' does not make the participant write to a stream")
    lives = len(stage.subject.arrivals)
    await _restart(stage)
    here = stage.subject.place
    await stage.barrier()
    await stage.barrier()
    demand(not written(here), "it was restarted, and writes on to its stream")
    if len(stage.subject.arrivals) == lives:  # else the gateway closed it when it left
        await stage.hear(is_kind("stream/close"), "stream/close for the stream it had open", since=since)


async def _ends_proposals(stage: ParticipantStage) -> None:
    made = await propose(stage)
    await _restart(stage)
    if stage.said(both(is_kind("mcp/withdraw"), about(made.proposal))):
        return
    word = await made.fulfil()
    stage.never(word_in(word), "it was restarted, and follows what it had proposed before")
    await stage.barrier()


# Shutdown.


async def _shut_down(stage: ParticipantStage, payload: Any = ...) -> Mapping[str, Any]:
    """Shut it down; it may acknowledge, leave, and no more."""
    await stage.barrier()
    sent = await stage.show("participant/shutdown", payload=payload)
    stage.company.dismissed = True
    stage.company.findings["shutdown"] = sent
    return sent


def _says_goodbye(sent: Mapping[str, Any]) -> Any:
    return lambda e: (
        e.get("kind") in ("chat/acknowledge", "participant/status")
        or (sent["id"] in causes(e) and e.get("kind") != "mcp/response")
    )


@check("shutdown.ceases")
async def a_shutdown_ends_all_activity(stage: ParticipantStage) -> None:
    """After `participant/shutdown` it sends nothing but its acknowledgement, and does not come back by itself."""
    took_s = await time_of_answer(stage) if stage.traits.answers_mcp else stage.cast.patience_s
    sent = await _shut_down(stage)
    if stage.subject.present:
        try:
            asked = [await stage.show("mcp/request", {"jsonrpc": "2.0", "id": 1, "method": "ping"})]
            asked.append(await stage.show("participant/request-status"))
            asked.append(await stage.show("chat", {"text": "Are you still there?"}))
        except Violation:
            asked = []  # it has left
        for one in asked:
            stage.never(about(one), "after participant/shutdown it answers nothing any more")
    goodbye = _says_goodbye(sent)
    silence = stage.never(
        lambda e: not goodbye(e) and not _winds_up(e),
        "after participant/shutdown it sends nothing but its acknowledgement",
        since=stage.subject.was_shown(lambda e: e.get("id") == sent["id"])[0].place,
    )
    lives = len(stage.subject.arrivals)
    await stage.subject.wait(lambda: None if stage.subject.present else True, stage.cast.patience_s)
    await asyncio.sleep(
        min(stage.cast.patience_s, max(0.1, 5 * took_s))
    )  # it answers nothing one could wait for
    stage.keep()
    demand(len(stage.subject.arrivals) == lives, "after participant/shutdown it comes back by itself")
    stage.lift(silence)  # who is started again later may speak again


def _winds_up(envelope: Mapping[str, Any]) -> bool:
    """It ends what was going on, which is no new activity."""
    ends = ("mcp/withdraw", "reasoning/cancel", "stream/close", "chat/cancel", "participant/compact-done")
    failed = envelope.get("kind") == "mcp/response" and "error" in payload_of(envelope)
    return envelope.get("kind") in ends or failed


@check("shutdown.acknowledged")
async def a_shutdown_is_acknowledged(stage: ParticipantStage) -> None:
    """It acknowledges its shutdown with `chat/acknowledge`, or by leaving."""
    before = stage.company.findings.get("shutdown")
    is_over = stage.company.dismissed and stage.company.revive is None  # what was seen then has to do
    sent = before if is_over and isinstance(before, dict) else await _shut_down(stage, {})
    await _acknowledged(stage, sent)


@check("shutdown.context")
async def a_shutdown_may_say_more(stage: ParticipantStage) -> None:
    """A `participant/shutdown` with fields that nobody knows is obeyed as well: it acknowledges, or leaves."""
    await _acknowledged(stage, await _shut_down(stage, _HINTS))


async def _acknowledged(stage: ParticipantStage, sent: Mapping[str, Any]) -> None:
    def done() -> bool | None:
        said = stage.said(both(is_kind("chat/acknowledge"), about(sent)), since=0)
        return True if said or not stage.subject.present else None

    acknowledged = await stage.subject.wait(done, stage.cast.patience_s)
    demand(acknowledged, "expected chat/acknowledge for the shutdown, or that it leaves; neither came")
