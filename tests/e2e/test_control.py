"""Pause, resume, shutdown and withdrawal, enforced whatever one connects with (§3.3.1, §3.9, design 3.13, 3.14)."""

import asyncio

import pytest

from .client import Client, Door


async def pause(by: Client, who: str, **payload: object) -> str:
    return await by.say("participant/pause", payload, to=[who])


async def test_who_is_paused_is_refused_until_resumed(door: Door) -> None:
    ann, bob = await door.meet("ann", "bob")
    paused = await pause(ann, "bob", reason="wait")
    await bob.until_id(paused)
    assert (await bob.refused("chat", {"text": "x"}))["error"] == "paused"
    await ann.say("participant/resume", {}, to=["bob"], correlation_id=[paused])
    await bob.until("participant/resume")
    await bob.say("chat", {"text": "x"})


async def test_a_pause_holds_on_every_connection_over_http_and_for_streams(door: Door) -> None:
    ann, bob = await door.meet("ann", "bob")
    await bob.say("stream/request", {"direction": "upload"})
    stream = (await bob.until("stream/open"))["payload"]["stream_id"]
    paused = await pause(ann, "bob")
    await bob.until_id(paused)
    second = await door.join("bob")
    assert (await second.refused("chat", {"text": "x"}))["error"] == "paused"
    answer = await door.post("bob", {"kind": "chat", "payload": {"text": "x"}})
    assert (answer.status, answer.json["error"]) == (409, "paused")
    for frame in (f"#{stream}#text", f"#{stream}#binary".encode()):
        await bob.connection.send(frame)
        assert (await bob.error())["error"] == "paused"
    seen = await ann.since_now()
    assert not [said for said in seen if isinstance(said, str | bytes) or said["from"] == "bob"]


async def test_coming_back_does_not_end_a_pause(door: Door) -> None:
    ann, bob = await door.meet("ann", "bob")
    await pause(ann, "bob")
    await bob.connection.close()
    await ann.until("system/presence")
    assert (await (await door.join("bob")).refused("chat", {}))["error"] == "paused"


@pytest.mark.parametrize(
    "kind",
    [
        "chat/acknowledge",
        "chat/cancel",
        "reasoning/cancel",
        "mcp/withdraw",
        "mcp/reject",
        "capability/grant-ack",
        "participant/status",
        "participant/compact-done",
    ],
)
async def test_acknowledgements_cancellations_and_status_pass_a_pause(door: Door, kind: str) -> None:
    ann, bob = await door.meet("ann", "bob")
    await bob.until_id(await pause(ann, "bob"))
    await bob.say(kind, {"messages_in_context": 0}, correlation_id=["x"], context="y")


async def test_who_is_paused_cannot_lift_its_own_pause(door: Door) -> None:
    ann, bob = await door.meet("ann", "bob")
    paused = await pause(ann, "bob", timeout_seconds=60)
    await bob.until_id(paused)
    problem = await bob.refused("participant/resume", {}, to=["bob"], correlation_id=[paused])
    assert problem["error"] == "paused"
    assert 50 < problem["retry_after_s"] <= 60


async def test_a_pause_ends_with_its_time(door: Door) -> None:
    ann, bob = await door.meet("ann", "bob")
    await bob.until_id(await pause(ann, "bob", timeout_seconds=0.4))
    problem = await bob.refused("chat", {"text": "too early"})
    assert problem["error"] == "paused"
    assert 0 < problem["retry_after_s"] <= 0.4
    await asyncio.sleep(problem["retry_after_s"] + 0.002)  # it says itself how long
    await bob.say("chat", {"text": "again"})


async def test_who_was_paused_may_document_the_end_once_its_time_is_over(door: Door) -> None:  # §3.9.2
    ann, bob = await door.meet("ann", "bob")
    await bob.until_id(await pause(ann, "bob", timeout_seconds=0))
    await bob.say("participant/resume", {}, to=["bob"])


async def test_a_pause_must_say_whom_it_is_for(door: Door) -> None:
    ann = await door.join("ann")
    assert (await ann.refused("participant/pause", {}))["error"] == "invalid_payload"
    absurd = await ann.refused("participant/pause", {"timeout_seconds": 1e300}, to=["bob"])
    assert absurd["error"] == "invalid_payload"


async def test_after_a_shutdown_only_a_goodbye_passes_until_one_rejoins(door: Door) -> None:  # §3.9.10
    ann, bob = await door.meet("ann", "bob")
    second = await door.join("bob")
    await bob.until_id(await ann.say("participant/shutdown", {}, to=["bob"]))
    await bob.say("chat/acknowledge", {"status": "received"}, correlation_id=["x"])
    await bob.say("participant/status", {"messages_in_context": 0})
    assert (await bob.refused("chat", {}))["error"] == "shut_down"
    assert (await second.refused("mcp/withdraw", {}, correlation_id=["x"]))["error"] == "shut_down"
    assert (await door.post("bob", {"kind": "chat", "payload": {}})).json["error"] == "shut_down"
    third = await door.join("bob")  # another connection is no rejoining
    assert (await third.refused("chat", {}))["error"] == "shut_down"
    for client in (bob, second, third):
        await client.connection.close()
    await ann.until("system/presence", lambda said: said["payload"]["event"] == "leave")
    await (await door.join("bob")).say("chat", {"text": "new"})


async def test_only_the_proposer_withdraws_a_proposal(door: Door) -> None:  # §3.3.1
    bob, bot = await door.meet("bob", "bot")
    proposal = await bot.say("mcp/proposal", {"method": "tools/call"})
    await bob.until_id(proposal)
    problem = await bob.refused("mcp/withdraw", {"reason": "disagree"}, correlation_id=[proposal])
    assert problem["error"] == "not_proposer"
    withdrawn = await bot.say("mcp/withdraw", {"reason": "no_longer_needed"}, correlation_id=[proposal])
    await bob.until_id(withdrawn)


async def test_a_withdrawal_must_name_its_proposal(door: Door) -> None:
    bot = await door.join("bot")
    assert (await bot.refused("mcp/withdraw", {}))["error"] == "invalid_payload"


async def test_any_participant_with_the_right_may_reject(door: Door) -> None:  # §3.3.2
    bob, bot = await door.meet("bob", "bot")
    proposal = await bot.say("mcp/proposal", {"method": "tools/call"})
    rejected = await bob.say("mcp/reject", {"reason": "unsafe"}, to=["bot"], correlation_id=[proposal])
    assert (await bot.until_id(rejected))["correlation_id"] == [proposal]
