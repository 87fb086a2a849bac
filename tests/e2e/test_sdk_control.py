"""Pause, restart and shutdown (§3.9.1, §3.9.2, §3.9.9, §3.9.10), without a line of a participant's author.

`bob` is `mew`, and `ann` plain JSON; or, where it is about who controls, the other way round.
"""

import asyncio
from contextlib import AsyncExitStack

import pytest

from .client import Door, Json
from .process import WAIT_S
from .test_sdk_connection import first, joined, serving
from .test_sdk_context import agent, status, talk

# Pause and resume.


async def test_who_is_paused_sends_nothing_but_acknowledgements_and_cancellations(door: Door) -> None:
    """§3.9.1 SHOULD: "stop sending envelopes other than acknowledgements or cancellations until resumed"."""
    ann = await door.join("ann")
    async with serving(door, agent()) as bob, asyncio.TaskGroup() as tasks:
        chat = await ann.say("chat", {"text": "hi"})
        mine = await bob.chat("a question", to=["ann"])
        pause = await ann.say("participant/pause", {"reason": "rate_limit"}, to=["bob"])
        assert (await status(ann))["status"] == "paused"
        assert bob.paused
        waits = tasks.create_task(bob.chat("later"))
        await bob.chats.acknowledge(chat)
        await bob.chats.cancel_chat(mine)
        await ann.until("chat/cancel")
        assert not waits.done()
        assert not [said for said in await ann.since_now() if said["from"] == "bob"]
        await ann.say("participant/resume", {}, to=["bob"], correlation_id=[pause])
        assert (await ann.until("chat"))["payload"]["text"] == "later"
    since = [said["kind"] for said in ann.seen if said["from"] == "bob"]
    assert since == ["chat", "participant/status", "chat/acknowledge", "chat/cancel", "chat"]
    assert not [said for said in ann.seen if said["kind"] == "system/error"], "and nothing was even tried"


async def test_requests_that_come_during_a_pause_are_answered_after_it(door: Door) -> None:
    """§3.9.1 SHOULD; §3.5.6: not ignored either."""
    ann = await door.join("ann")
    async with serving(door, agent()):
        pause = await ann.say("participant/pause", {}, to=["bob"])
        asked = await ann.say("mcp/request", {"jsonrpc": "2.0", "id": 1, "method": "ping"}, to=["bob"])
        assert (await status(ann))["status"] == "paused"
        resume = await ann.say("participant/resume", {}, to=["bob"], correlation_id=[pause])
        answer = await ann.until("mcp/response")
        assert answer["correlation_id"] == [asked]
        ids = [said["id"] for said in ann.seen]
        assert ids.index(answer["id"]) > ids.index(resume)


async def test_a_pause_that_times_out_is_ended_by_a_resume_that_names_it(door: Door) -> None:
    """§3.9.2 SHOULD: "still emit a `participant/resume` to document the change in state"."""
    ann = await door.join("ann")
    async with serving(door, agent()):
        pause = await ann.say("participant/pause", {"timeout_seconds": 0.1}, to=["bob"])
        resume = await ann.until("participant/resume")
        assert (resume["from"], resume["correlation_id"]) == ("bob", [pause])
        assert (await status(ann))["status"] == "active"


async def test_who_resumes_another_names_the_pause(door: Door) -> None:
    """§3.9.2 SHOULD: "`correlation_id` SHOULD reference the pause being cleared when known"."""
    ann = await door.join("ann")
    async with joined(door) as bob:
        pause = await bob.control.pause("ann", reason="busy", timeout_s=60)
        paused = await ann.until("participant/pause")
        assert (paused["to"], paused["payload"]) == (["ann"], {"reason": "busy", "timeout_seconds": 60})
        await bob.control.resume("ann")
        resumed = await ann.until("participant/resume")
        assert (resumed["to"], resumed["correlation_id"]) == (["ann"], [pause.id])


# Restart and shutdown.


async def test_a_restart_ends_workflows_and_streams_and_begins_again(door: Door) -> None:
    """§3.9.9 SHOULD: "terminate outstanding workflows and streams when restarting"."""
    participant, stopped, starts = agent(), asyncio.Event(), 0

    @participant.on_start
    async def start() -> None:
        nonlocal starts
        starts += 1

    @participant.tool
    async def stream() -> None:
        await participant.client.streams.open(description="log")
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    ann = await door.join("ann")
    async with serving(door, participant):
        await talk(ann, 2)
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "stream"}}
        asked = await ann.say("mcp/request", call, to=["bob"])
        opened = (await ann.until("stream/open"))["payload"]["stream_id"]
        restart = await ann.say("participant/restart", {}, to=["bob"])
        told = await ann.until("participant/status", lambda said: said.get("correlation_id") == [restart])
        assert told["payload"]["messages_in_context"] == 0
        assert stopped.is_set()
        assert starts == 2
        (answer,) = [said for said in ann.seen if said["kind"] == "mcp/response"]
        assert (answer["correlation_id"], "error" in answer["payload"]) == ([asked], True)
        if not [said for said in ann.seen if said["kind"] == "stream/close"]:
            await ann.until("stream/close")
        (closed,) = [said for said in ann.seen if said["kind"] == "stream/close"]
        assert (closed["payload"]["stream_id"], closed["payload"]["reason"]) == (opened, "restart")
        await ann.say("mcp/request", {"jsonrpc": "2.0", "id": 2, "method": "ping"}, to=["bob"])
        assert (await ann.until("mcp/response"))["payload"] == {"jsonrpc": "2.0", "id": 2, "result": {}}


async def test_a_shutdown_is_acknowledged_and_then_nothing_more_is_said(door: Door) -> None:
    """§3.9.10 SHOULD: "acknowledge shutdown via `chat/acknowledge` or by emitting a terminal … leave event"."""
    ann = await door.join("ann")
    async with serving(door, agent()):
        asked = await ann.say("participant/shutdown", {}, to=["bob"])
        acknowledged = await ann.until("chat/acknowledge")
        assert (acknowledged["from"], acknowledged["correlation_id"]) == ("bob", [asked])
        await ann.say("mcp/request", {"jsonrpc": "2.0", "id": 1, "method": "ping"}, to=["bob"])
    await ann.until("system/presence", lambda said: said["payload"]["event"] == "leave")
    ids = [said["id"] for said in ann.seen]
    after = ann.seen[ids.index(acknowledged["id"]) + 1 :]
    assert not [said for said in after if said["from"] == "bob"]


async def test_a_program_that_is_shut_down_leaves_by_itself(door: Door) -> None:
    """§3.9.10 SHOULD: "or by emitting a terminal `system/presence` leave event"."""
    ann = await door.join("ann")
    async with asyncio.timeout(WAIT_S), asyncio.TaskGroup() as tasks, AsyncExitStack() as stack:
        bob = await stack.enter_async_context(joined(door))
        served = tasks.create_task(agent().serve(bob))
        await ann.until("system/presence", lambda said: said["payload"]["participant"]["id"] == "bob")
        await status(ann)
        await ann.say("participant/shutdown", {}, to=["bob"])
        await served
        await stack.aclose()
        left = await ann.until("system/presence")
        assert (left["payload"]["event"], left["payload"]["participant"]["id"]) == ("leave", "bob")


async def test_who_shuts_down_another_learns_that_it_is_done(door: Door) -> None:
    """§3.9.10, from the other side: an acknowledgement or the leaving is what is waited for."""
    ann = await door.join("ann")
    async with joined(door) as bob, asyncio.TaskGroup() as tasks:
        shutdown = tasks.create_task(bob.control.shutdown("ann"))
        asked = await ann.until("participant/shutdown")
        assert asked["to"] == ["ann"]
        await ann.send("chat/acknowledge", {"status": "received"}, to=["bob"], correlation_id=[asked["id"]])
        assert (await shutdown).id == asked["id"]


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        ("participant/forget", {"direction": "oldest"}),
        ("participant/clear", {}),
        ("participant/restart", {}),
        ("participant/shutdown", {}),
        ("participant/compact", {}),
        ("participant/request-status", {}),
    ],
)
async def test_what_is_asked_of_others_is_done_by_nobody_else(door: Door, kind: str, payload: Json) -> None:
    """§3.9: control is for those in `to`; seeing it is no reason to obey it."""
    ann = await door.join("ann")
    await door.join("cat")
    async with serving(door, agent()) as bob:
        seen = bob.envelopes(kind)
        await talk(ann, 3)
        await ann.say(kind, payload, to=["cat"])
        await first(seen)
        assert (await status(ann))["messages_in_context"] == 3
        assert [said["kind"] for said in ann.seen if said["from"] == "bob"] == ["participant/status"]
