"""What a participant retains, and what becomes of it (§3.9.3 to §3.9.8), without a line of its author's code.

`bob` is `mew`, and `ann` plain JSON; or, where it is about who controls, the other way round.
"""

import asyncio
from typing import Any

import pytest

import mew

from .client import Client, Door, Json
from .process import WAIT_S
from .test_sdk_connection import joined, serving

__all__ = ["agent", "status", "talk"]


def agent(**memory: Any) -> mew.Participant:
    """One that retains the conversation, at ten tokens an envelope."""
    return mew.Participant("agent", memory=mew.EnvelopeMemory(count=lambda _: 10, **memory))


async def talk(client: Client, many: int) -> None:
    for number in range(many):
        await client.say("chat", {"text": f"{number}"})


async def status(client: Client, payload: Json | None = None) -> Json:
    """What bob answers to `participant/request-status`."""
    asked = await client.say("participant/request-status", payload or {}, to=["bob"])
    answer = await client.until("participant/status", lambda said: asked in said.get("correlation_id", ()))
    assert answer["from"] == "bob"
    told: Json = answer["payload"]
    return told


# Status.


async def test_a_status_comes_promptly_and_counts_what_is_in_context(door: Door) -> None:
    """§3.9.3 SHOULD: answer "with `participant/status` promptly"; §3.9.4 MUST: `messages_in_context` is included."""
    ann = await door.join("ann")
    async with serving(door, agent(max_tokens=1_000)):
        await talk(ann, 3)
        asked = await ann.say("participant/request-status", {}, to=["bob"])
        answer = await ann.until("participant/status")
        assert (answer["from"], answer["correlation_id"]) == ("bob", [asked])
        said = answer["payload"]
        assert (said["messages_in_context"], said["tokens"], said["max_tokens"]) == (3, 30, 1_000)


async def test_a_participant_without_memory_has_nothing_in_context(door: Door) -> None:
    """§3.9.4 MUST: `messages_in_context` is there, also where it is 0."""
    ann = await door.join("ann")
    async with serving(door, mew.Participant("plain")):
        await talk(ann, 3)
        assert (await status(ann))["messages_in_context"] == 0


async def test_the_fields_asked_for_limit_the_metrics_and_never_the_count(door: Door) -> None:
    """§3.9.3 MAY: `payload.fields` limits; §3.9.4 MUST: `messages_in_context` all the same; metrics in snake_case."""
    participant = agent(max_tokens=1_000)

    @participant.status
    def metrics() -> Json:
        return {"latency_ms": 350, "queue_length": 2, "notSnakeCase": 1}

    ann = await door.join("ann")
    async with serving(door, participant):
        whole = await status(ann)
        assert (whole["latency_ms"], whole["queue_length"]) == (350, 2)
        assert "notSnakeCase" not in whole
        some = await status(ann, {"fields": ["tokens", "latency"]})
        assert {"messages_in_context", "tokens", "max_tokens", "latency_ms"} <= some.keys()
        assert "queue_length" not in some


async def test_only_what_concerns_a_participant_is_in_its_context(door: Door) -> None:
    """§3.9.4: "envelopes currently retained"; §3.8.1 SHOULD: no welcome, and §3.5.6 MAY: nobody else's reasoning."""
    ann = await door.join("ann")
    async with serving(door, agent()):
        grant = {"recipient": "bob", "capabilities": [{"kind": "weather/*"}]}
        await ann.say("capability/grant", grant, to=["bob"])  # which makes for another welcome
        await ann.say("reasoning/start", {"message": "hm"})
        await ann.say("chat", {"text": "for cat"}, to=["cat"])
        await ann.say("chat", {"text": "for all"})
        await ann.say("chat", {"text": "for bob"}, to=["bob"])
        assert (await status(ann))["messages_in_context"] == 2


async def test_all_are_told_when_a_tenth_of_the_context_is_left(door: Door) -> None:
    """§3.9.4 MAY: "proactively when approaching a resource limit (… when only 10% of the context window remains)"."""
    ann = await door.join("ann")
    async with serving(door, agent(max_tokens=500)):
        await talk(ann, 46)
        told = await ann.until("participant/status")
        assert "correlation_id" not in told
        assert (told["payload"]["tokens"], told["payload"]["max_tokens"]) == (460, 500)


# Forget.


@pytest.mark.parametrize(("direction", "left"), [("oldest", ["2", "3"]), ("newest", ["0", "1"])])
async def test_what_is_to_be_forgotten_is_dropped_and_confirmed(
    door: Door, direction: str, left: list[str]
) -> None:
    """§3.9.5 SHOULD: "a follow-up `participant/status` or `chat/acknowledge` once the context is dropped"."""
    memory = mew.EnvelopeMemory()
    ann = await door.join("ann")
    async with serving(door, mew.Participant("agent", memory=memory)):
        await talk(ann, 4)
        asked = await ann.say("participant/forget", {"direction": direction, "entries": 2}, to=["bob"])
        told = await ann.until("participant/status")
        assert (told["correlation_id"], told["payload"]["messages_in_context"]) == ([asked], 2)
        assert [envelope.content["text"] for envelope in memory] == left


async def test_no_other_direction_is_taken_or_sent(door: Door) -> None:
    """§3.9.5 MUST: "`direction` MUST be either "oldest" or "newest""."""
    ann = await door.join("ann")
    async with serving(door, agent()) as bob:
        await talk(ann, 4)
        await ann.say("participant/forget", {"direction": "middle", "entries": 2}, to=["bob"])
        await ann.say("participant/forget", {"entries": 2}, to=["bob"])
        assert (await status(ann))["messages_in_context"] == 4
        with pytest.raises(ValueError, match="middle"):
            await bob.control.forget("ann", "middle")  # type: ignore[arg-type]  # a checker sees it too
        await bob.control.forget("ann", "newest", 3)
        sent = await ann.until("participant/forget", lambda said: said["from"] == "bob")
        assert sent["payload"] == {"direction": "newest", "entries": 3}


async def test_who_may_send_no_status_acknowledges_instead(door: Door) -> None:
    """§3.9.5 SHOULD: "`participant/status` or `chat/acknowledge`"; §8.2: within what it may."""
    ann = await door.join("ann")
    grant = {"recipient": "cat", "capabilities": [{"kind": "chat/acknowledge"}]}
    await ann.say("capability/grant", grant)
    async with serving(door, agent(), "cat"):
        asked = await ann.say("participant/forget", {"direction": "oldest"}, to=["cat"])
        assert (await ann.until("chat/acknowledge"))["correlation_id"] == [asked]


async def test_a_context_that_is_nearly_full_is_compacted_by_itself_and_all_are_told(door: Door) -> None:
    """§3.9.5 SHOULD: "automatically trigger a forget/compaction cycle"; MUST: a status that says so, and headroom."""
    ann = await door.join("ann")
    async with serving(door, agent(max_tokens=200)):
        await talk(ann, 20)
        compacted = await ann.until(
            "participant/status", lambda said: said["payload"]["status"] == "compacted"
        )
        assert compacted["payload"]["headroom_tokens"] >= 100
        assert compacted["payload"]["messages_in_context"] <= 10
        states = [said["payload"]["status"] for said in ann.seen if said["kind"] == "participant/status"]
        assert states == ["active", "compacting", "compacted"]
        assert not [said for said in ann.seen if said["kind"] == "participant/compact-done"], "nobody asked"


# Compact.


async def test_a_compaction_is_told_from_its_beginning_to_its_end(door: Door) -> None:
    """§3.9.6 SHOULD: "promptly", with interim status updates; §3.9.7 MUST: `correlation_id`, and an end."""
    ann = await door.join("ann")
    async with serving(door, agent()):
        await talk(ann, 10)
        asked = await ann.say(
            "participant/compact", {"reason": "token_pressure", "target_tokens": 40}, to=["bob"]
        )
        done = await ann.until("participant/compact-done")
        assert (done["from"], done["to"], done["correlation_id"]) == ("bob", ["ann"], [asked])
        assert done["payload"] == {"status": "compacted", "freed_messages": 6, "freed_tokens": 60}
        await ann.until("participant/status", lambda said: said["payload"]["status"] == "compacted")
        states = [said for said in ann.seen if said["kind"] == "participant/status"]
        assert [said["payload"]["status"] for said in states] == ["compacting", "compacted"]
        assert {tuple(said["correlation_id"]) for said in states} == {(asked,)}


@pytest.mark.parametrize("participant", [mew.Participant("plain"), agent()])
async def test_a_compaction_that_is_skipped_says_so(door: Door, participant: mew.Participant) -> None:
    """§3.9.7 MUST: "even if no context was removed"; SHOULD: "include "skipped": true"."""
    ann = await door.join("ann")
    async with serving(door, participant):
        asked = await ann.say("participant/compact", {}, to=["bob"])
        done = await ann.until("participant/compact-done")
        assert (done["correlation_id"], done["payload"]["skipped"]) == ([asked], True)
        assert done["payload"]["reason"]


async def test_a_compaction_that_fails_is_over_too(door: Door) -> None:
    """§3.9.7 MUST: "so orchestrators can clear pending actions"."""

    def broken(_retained: object, _target: object) -> list[mew.Envelope]:
        raise OSError("the model is away")

    ann = await door.join("ann")
    async with serving(door, agent(compactor=broken)):
        await talk(ann, 4)
        asked = await ann.say("participant/compact", {}, to=["bob"])
        done = await ann.until("participant/compact-done")
        assert (done["correlation_id"], done["payload"]["status"]) == ([asked], "failed")
        assert (await status(ann))["messages_in_context"] == 4


async def test_who_asks_for_a_compaction_learns_its_end(door: Door) -> None:
    """§3.9.6, from the other side: the request is well formed, and `compact-done` is what is waited for."""
    ann = await door.join("ann")
    async with joined(door) as bob, asyncio.TaskGroup() as tasks:
        compaction = tasks.create_task(
            bob.control.compact("ann", target_tokens=16_000, reason="token_pressure")
        )
        asked = await ann.until("participant/compact")
        assert asked["payload"] == {"reason": "token_pressure", "target_tokens": 16_000}
        payload = {"freed_tokens": 2048, "status": "compacted"}
        await ann.say("participant/compact-done", payload, to=["bob"], correlation_id=[asked["id"]])
        assert (await compaction).freed_tokens == 2048


# Clear.


@pytest.mark.parametrize("payload", [{}, None])
async def test_clearing_erases_everything_and_is_confirmed(door: Door, payload: Json | None) -> None:
    """§3.9.8 MUST: "erase all cached context"; SHOULD: a status with `messages_in_context = 0`; MAY: no payload."""
    memory = mew.EnvelopeMemory(count=lambda _: 10, max_tokens=1_000)
    ann = await door.join("ann")
    async with serving(door, mew.Participant("agent", memory=memory)):
        await talk(ann, 4)
        asked = await ann.say("participant/clear", payload, to=["bob"])
        told = await ann.until("participant/status")
        assert told["correlation_id"] == [asked]
        assert (told["payload"]["messages_in_context"], told["payload"]["tokens"]) == (0, 0)
        assert list(memory) == []


async def test_clearing_is_stronger_than_what_is_being_compacted(door: Door) -> None:
    """§3.9.8 SHOULD: "stronger than `participant/forget`"; MUST: nothing that was retained comes back."""
    begun = asyncio.Event()

    async def slow(retained: tuple[mew.Envelope, ...], _target: int | None) -> tuple[mew.Envelope, ...]:
        begun.set()
        await asyncio.Event().wait()
        return retained

    memory = mew.EnvelopeMemory(compactor=slow)
    ann = await door.join("ann")
    async with serving(door, mew.Participant("agent", memory=memory)), asyncio.timeout(WAIT_S):
        await talk(ann, 4)
        compact = await ann.say("participant/compact", {}, to=["bob"])
        await begun.wait()
        await ann.say("participant/clear", {}, to=["bob"])
        done = await ann.until("participant/compact-done")
        assert done["correlation_id"] == [compact]  # §3.9.7 MUST
        assert (await status(ann))["messages_in_context"] == 0
        assert list(memory) == []
