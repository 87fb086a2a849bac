"""Space management (§3.6): granting, revoking, inviting and removing, and being the one it happens to."""

import asyncio

import pytest

import mew

from .client import Door, Json
from .process import WAIT_S, secrets_used
from .test_sdk_connection import first, joined

READ: Json = {"kind": "mcp/request", "payload": {"method": "tools/call", "params": {"name": "read_file"}}}


async def test_a_grant_says_what_and_to_whom_and_returns_when_acknowledged(door: Door) -> None:
    """§3.6.1: "The grant message ID becomes the `grant_id`"; §3.6.3."""
    cat = await door.join("cat")
    async with joined(door, "ann") as ann, asyncio.TaskGroup() as tasks:
        granting = tasks.create_task(ann.grant("cat", READ, "chat/*", reason="safe so far"))
        grant = await cat.until("capability/grant")
        assert grant["to"] == ["cat"]
        assert grant["payload"] == {
            "recipient": "cat",
            "capabilities": [READ, {"kind": "chat/*"}],
            "reason": "safe so far",
        }
        await cat.say(
            "capability/grant-ack", {"status": "accepted"}, to=["ann"], correlation_id=[grant["id"]]
        )
        granted = await granting
        assert (granted.id, granted.recipient, granted.acknowledged) == (grant["id"], "cat", True)


async def test_who_is_granted_something_acknowledges_it(door: Door) -> None:
    """§3.6.3: "Recipients acknowledge capability grants", and §3.6.1: "Multiple grants are cumulative"."""
    ann = await door.join("ann")
    async with joined(door, "cat") as cat:
        for kind in ("reasoning/*", "stream/*"):
            payload = {"recipient": "cat", "capabilities": [{"kind": kind}]}
            grant = await ann.say("capability/grant", payload, to=["cat"])
            acknowledged = await ann.until("capability/grant-ack")
            assert (acknowledged["from"], acknowledged["correlation_id"]) == ("cat", [grant])
            assert acknowledged["payload"] == {"status": "accepted"}
        await cat.send("reasoning/start", {"message": "hm"})
        await cat.streams.open()


async def test_a_grant_to_another_is_not_ours_to_acknowledge(door: Door) -> None:
    """§3.6.3: the recipient does."""
    ann = await door.join("ann")
    async with joined(door, "cat") as cat:
        grants = cat.envelopes("capability/grant")
        payload = {"recipient": "bob", "capabilities": [{"kind": "weather/*"}]}
        await ann.say("capability/grant", payload, to=["bob", "cat"])
        await first(grants)
        assert not cat.can_send("weather/report")
        await cat.chat("noted")
    await ann.until("chat")
    assert not [said for said in ann.seen if said["kind"] == "capability/grant-ack"]


async def test_nobody_grants_what_they_do_not_hold(door: Door) -> None:
    """§3.6.6: "Participants cannot grant capabilities they don't possess", and only who may grant can."""
    admin = await door.join("ann")
    async with joined(door) as bob:
        with pytest.raises(mew.Refused) as refused:
            await bob.grant("cat", "chat/*")
        assert refused.value.why == "capability_violation"
        payload = {"recipient": "bob", "capabilities": [{"kind": "capability/grant"}]}
        await admin.say("capability/grant", payload, to=["bob"])
        await admin.until("capability/grant-ack")
        assert not (await bob.grant("cat", "chat/*")).acknowledged  # it is not here
        with pytest.raises(mew.Refused) as refused:
            await bob.grant("cat", "space/kick")
        assert refused.value.why == "grant_exceeds_own"


async def test_a_revocation_names_the_grant_or_a_pattern(door: Door) -> None:
    """§3.6.2: by `grant_id`, or by capability pattern; §3.6.6: "take effect immediately"."""
    cat = await door.join("cat")
    async with joined(door, "ann") as ann:
        granted = await ann.grant("cat", "reasoning/*", ack_within_s=0)
        await cat.until("capability/grant")
        await cat.say("reasoning/start", {"message": "hm"})
        await ann.revoke("cat", grant_id=granted.id, reason="done")
        said = await cat.until("capability/revoke")
        assert said["payload"] == {"recipient": "cat", "grant_id": granted.id, "reason": "done"}
        assert (await cat.refused("reasoning/start", {}))["error"] == "capability_violation"
        await ann.revoke("cat", "chat")
        said = await cat.until("capability/revoke")
        assert said["payload"] == {"recipient": "cat", "capabilities": [{"kind": "chat"}]}
        assert (await cat.refused("chat", {"text": "x"}))["error"] == "capability_violation"


async def test_who_is_invited_comes_in_with_the_token_that_was_made(door: Door) -> None:
    """§3.6.4: everyone is shown the invitation, and the inviter alone the token."""
    cat = await door.join("cat")
    async with joined(door, "ann") as ann:
        invited = await ann.invite("dan", "chat", "mcp/proposal", reason="analysis")
        secrets_used.add(invited.token)
        said = await cat.until("space/invite")
        assert said["payload"] == {
            "participant_id": "dan",
            "initial_capabilities": [{"kind": "chat"}, {"kind": "mcp/proposal"}],
            "reason": "analysis",
        }
        dan = await door.join("dan", token=invited.token)
        kinds = [held["kind"] for held in dan.welcome["payload"]["you"]["capabilities"]]
        assert {"chat", "mcp/proposal"} <= set(kinds)
    await cat.since_now()
    assert not [message for message in cat.raw if invited.token in str(message)]


async def test_who_is_removed_is_gone_when_it_is_said(door: Door) -> None:
    """§3.6.5, as the one who removes."""
    cat = await door.join("cat")
    async with joined(door, "ann") as ann:
        await ann.kick("cat", reason="Repeated capability violations")
        assert "cat" not in list(ann.participants)
    code, _ = await cat.closed()
    assert 4500 <= code < 5000
    (kick,) = [said for said in cat.seen if said["kind"] == "space/kick"]
    assert kick["payload"] == {"participant_id": "cat", "reason": "Repeated capability violations"}


async def test_who_was_removed_does_not_come_back(door: Door) -> None:
    """§3.6.5, as the one who is removed."""
    ann = await door.join("ann")
    async with joined(door, "cat") as cat:
        envelopes = cat.envelopes("chat")
        await ann.say("space/kick", {"participant_id": "cat"})
        async with asyncio.timeout(WAIT_S):
            with pytest.raises(mew.Disconnected):
                await anext(envelopes)
        with pytest.raises(mew.Disconnected) as over:
            await cat.chat("still here?")
        assert 4500 <= over.value.code < 5000
        assert not cat.connected
