"""Chat (§3.4) and reasoning (§3.5) as the SDK puts them on the wire, and takes them from it."""

import asyncio
import json

import pytest

import mew

from .client import Door
from .process import WAIT_S
from .test_sdk_connection import first, joined, serving

# Chat.


async def test_what_is_said_has_a_text_and_a_format_and_is_for_all(door: Door) -> None:
    """§3.4: `text` is required, `format` "plain" or "markdown"; "typically broadcast"."""
    ann = await door.join("ann")
    async with joined(door) as bob:
        await bob.chat("Hello everyone!")
        await bob.chat("*Hello*", format="markdown", to=["ann"])
    plain, marked = await ann.until("chat"), await ann.until("chat")
    assert plain["payload"]["text"] == "Hello everyone!"
    assert plain["payload"].get("format", "plain") == "plain"
    assert "to" not in plain
    assert marked["payload"] == {"text": "*Hello*", "format": "markdown"}
    assert marked["to"] == ["ann"]


async def test_an_acknowledgement_names_the_chat(door: Door) -> None:
    """§3.4.1 MUST: "`correlation_id` MUST reference the chat envelope being acknowledged"."""
    ann = await door.join("ann")
    async with joined(door) as bob:
        chats = bob.envelopes("chat")
        said = await ann.say("chat", {"text": "read this"})
        await first(chats)
        assert [chat.id for chat in bob.chats.waiting] == [said]
        await bob.chats.acknowledge(said, "read")
        acknowledged = await ann.until("chat/acknowledge")
        assert (acknowledged["to"], acknowledged["correlation_id"]) == (["ann"], [said])
        assert acknowledged["payload"] == {"status": "read"}
        assert bob.chats.waiting == ()


async def test_clearing_the_queue_acknowledges_each_chat_in_it(door: Door) -> None:
    """§3.4.1 SHOULD: "Clearing that queue SHOULD emit acknowledgements for each entry"."""
    ann = await door.join("ann")
    async with joined(door) as bob:
        chats = bob.envelopes("chat", sender="ann")
        said = [await ann.say("chat", {"text": f"{n}"}, to=to) for n, to in enumerate(([], ["bob"], ["cat"]))]
        for _ in said:
            await first(chats)
        await bob.chats.acknowledge_all()
        cleared = [await ann.until("chat/acknowledge") for _ in range(2)]
        assert [one["correlation_id"] for one in cleared] == [[said[0]], [said[1]]], "not what is for others"
        assert bob.chats.waiting == ()


async def test_a_cancellation_names_the_chat_and_says_why(door: Door) -> None:
    """§3.4.2 MUST: `correlation_id` references the chat message; SHOULD: `payload.reason` communicates why."""
    ann = await door.join("ann")
    async with joined(door) as bob:
        said = await bob.chat("anyone?", to=["ann"])
        await bob.chats.cancel_chat(said, "handled_elsewhere")
        cancelled = await ann.until("chat/cancel")
        assert (cancelled["to"], cancelled["correlation_id"]) == (["ann"], [said.id])
        assert cancelled["payload"] == {"reason": "handled_elsewhere"}
        again = await bob.chat("really?")
        await bob.chats.cancel_chat(again)
        assert (await ann.until("chat/cancel"))["payload"]["reason"], "a reason also where none was given"


async def test_cancelling_everything_emits_one_cancellation_each(door: Door) -> None:
    """§3.4.2 MAY: "emitting one cancellation per message to keep participants in sync"."""
    ann = await door.join("ann")
    async with joined(door) as bob:
        mine = [await bob.chat(f"{n}") for n in range(3)]
        acknowledged = bob.envelopes("chat/acknowledge")
        await ann.say("chat/acknowledge", {"status": "read"}, to=["bob"], correlation_id=[mine[1].id])
        await first(acknowledged)
        await bob.chats.cancel_all()
        cancelled = [(await ann.until("chat/cancel"))["correlation_id"] for _ in range(2)]
        assert cancelled == [[mine[0].id], [mine[2].id]]


async def test_what_others_cancel_no_longer_awaits_acknowledgement(door: Door) -> None:
    """§3.4.2: "helps UIs and agents clear acknowledgement queues"."""
    ann = await door.join("ann")
    async with joined(door) as bob:
        cancels = bob.envelopes("chat/cancel")
        said = await ann.say("chat", {"text": "never mind"}, to=["bob"])
        await ann.say("chat/cancel", {"reason": "duplicate"}, to=["bob"], correlation_id=[said])
        await first(cancels)
        assert bob.chats.waiting == ()


# Reasoning.


async def test_a_reasoning_about_a_request_is_one_context_between_request_and_answer(door: Door) -> None:
    """§3.5.1: the start names the request, its id is the context of what follows, and the answer names the request."""
    participant = mew.Participant("thinker")

    @participant.tool
    async def think(call: mew.Call) -> str:
        async with participant.client.reasoning("Which file?", about=call.envelope) as reasoning:
            await reasoning.thought("It is YAML.")
            await reasoning.chat("Is it yours?", to=["ann"])
            await reasoning.conclude("config.yaml")
        return "config.yaml"

    ann = await door.join("ann")
    async with serving(door, participant):
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "think"}}
        asked = await ann.say("mcp/request", call, to=["bob"])
        answer = await ann.until("mcp/response")
    start, *within = [said for said in ann.seen if said["from"] == "bob"][:-1]
    assert (start["kind"], start["correlation_id"]) == ("reasoning/start", [asked])
    assert start["payload"]["message"] == "Which file?"
    assert "context" not in start
    assert [(said["kind"], said["context"]) for said in within] == [
        ("reasoning/thought", start["id"]),
        ("chat", start["id"]),
        ("reasoning/conclusion", start["id"]),
    ]
    assert answer["correlation_id"] == [asked]


async def test_reasoning_by_oneself_needs_no_request_and_may_be_part_of_another(door: Door) -> None:
    """§3.5.1 "Autonomous Pattern"; §3.5.6: "hierarchical paths"."""
    ann = await door.join("ann")
    async with (
        joined(door) as bob,
        bob.reasoning("Looking around") as outer,
        bob.reasoning("Closer", context=outer) as inner,
    ):
        await inner.thought("hm")
    starts = [await ann.until("reasoning/start") for _ in range(2)]
    assert "correlation_id" not in starts[0]
    assert (await ann.until("reasoning/thought"))["context"] == f"{starts[0]['id']}/{starts[1]['id']}"


async def test_a_reasoning_that_fails_is_cancelled_with_a_reason(door: Door) -> None:
    """§3.5.5 MUST: "`context` MUST reference the `reasoning/start`"; SHOULD: `payload.reason` uses codes."""
    ann = await door.join("ann")
    async with joined(door) as bob:
        with pytest.raises(ZeroDivisionError):
            async with bob.reasoning("Dividing", about="request-1"):
                1 / 0  # noqa: B018
    start, cancel = await ann.until("reasoning/start"), await ann.until("reasoning/cancel")
    assert (cancel["context"], cancel["correlation_id"]) == (start["id"], ["request-1"])
    assert cancel["payload"] == {"reason": "error"}


async def test_whoever_cancels_a_reasoning_stops_the_work_and_its_thoughts(door: Door) -> None:
    """§3.5.5 SHOULD: "Upon cancellation, participants SHOULD stop sending additional `reasoning/thought` messages"."""
    ann = await door.join("ann")
    async with joined(door) as bob, asyncio.timeout(WAIT_S), asyncio.TaskGroup() as tasks:

        async def think() -> mew.Envelope:
            async with bob.reasoning("For ever") as reasoning:
                while True:
                    await reasoning.thought("and on")
            return await bob.chat(f"stopped by {reasoning.cancelled_by}: {reasoning.cancel_reason}")

        thinking = tasks.create_task(think())
        start = await ann.until("reasoning/start")
        await ann.until("reasoning/thought")
        cancel = await ann.say("reasoning/cancel", {"reason": "superseded"}, context=start["id"])
        after = await thinking
        await ann.until_id(after.id)
    assert after.content["text"] == "stopped by ann: superseded"
    ids = [said["id"] for said in ann.seen]
    late = [said["kind"] for said in ann.seen[ids.index(cancel) :]]
    # One that was on its way already may be behind the cancellation; none is begun after it.
    assert late.count("reasoning/thought") <= 1
    assert late.count("reasoning/cancel") == 1


async def test_there_is_a_way_to_cancel_any_active_reasoning(door: Door) -> None:
    """§3.5.5 MUST: `context`; SHOULD: "an explicit affordance": here the call, that surfaces put behind a key."""
    ann = await door.join("ann")
    async with joined(door) as bob:
        starts = bob.envelopes("reasoning/start")
        begun = await ann.say("reasoning/start", {"message": "hm"}, correlation_id=["request-1"])
        await first(starts)
        assert [(active.id, active.by, active.message) for active in bob.reasonings.of_others] == [
            (begun, "ann", "hm")
        ]
        await bob.reasonings.cancel(begun, "timeout")
        cancel = await ann.until("reasoning/cancel")
        assert (cancel["context"], cancel["payload"]) == (begun, {"reason": "timeout"})
        assert (cancel["to"], cancel["correlation_id"]) == (["ann"], ["request-1"])
        assert bob.reasonings.active == ()


async def test_long_thoughts_may_travel_on_a_stream_named_in_the_start(door: Door) -> None:
    """§3.10.1 SHOULD: "consider issuing a `stream/request` alongside `reasoning/start`"."""
    ann = await door.join("ann")
    async with joined(door) as bob, bob.reasoning("At length", over_stream=True) as reasoning:
        await reasoning.thought("first")
        await reasoning.conclude("done")
    opened = await ann.until("stream/open")
    start = await ann.until("reasoning/start")
    assert start["payload"]["stream_id"] == opened["payload"]["stream_id"]
    frame = await ann.frame()
    prefix = f"#{opened['payload']['stream_id']}#"
    assert isinstance(frame, str)
    assert json.loads(frame.removeprefix(prefix))["message"] == "first"
    await ann.until("reasoning/conclusion")
    assert (await ann.until("stream/close"))["payload"]["reason"] == "complete"
    assert not [said for said in ann.seen if isinstance(said, dict) and said["kind"] == "reasoning/thought"]
