"""Every participant-side rule of the specification, kept by the SDK over a real socket; here, who one is.

One side is `mew`, the other the plain `websockets` client of `client.py`: what is checked is the wire. Each test quotes
its rule. Where they are:

    §3 (the envelope), §3.7, §3.8.2, §4.1, §5.2, §8.2 "Connection Behavior"     here
    §3.8.1, §4.3, §6.1, §7.2, §8.2 "Message Validation"                         test_sdk_validation
    §3.1, §3.5.6, §8.2 "MCP Integration"                                        test_sdk_mcp
    §3.2, §3.3, §8.2 "Proposal Handling"                                        test_sdk_proposals
    §3.4, §3.5                                                                  test_sdk_conversation
    §3.6                                                                        test_sdk_management
    §3.9.1, §3.9.2, §3.9.9, §3.9.10                                             test_sdk_control
    §3.9.3 to §3.9.8                                                            test_sdk_context
    §3.10                                                                       test_sdk_streams

What the wire does not show, and what is tested in its place:

    §3.5.5  SHOULD  surfaces offer a way to cancel a reasoning      the call that they put behind a key
    §3.8.1  SHOULD  no welcome of others in prompts                 it is not counted in `messages_in_context`
    §3.9.8  SHOULD  clear is "stronger than" forget                 it ends a compaction that is under way
    §3.9.9          back to "a known baseline"                      nothing in context, and `on_start` ran again
    §3.10.1 SHOULD  "consider" a stream for long reasoning          that a reasoning can have one
"""

import asyncio
import re
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

import pytest

import mew

from .client import Door, Json
from .process import WAIT_S

__all__ = ["first", "joined", "serving"]

PRESENCE = "system/presence"


def joined(door: Door, who: str = "bob", *, via: mew.Via = mew.Via.HEADER) -> mew.Client:
    """A client of ours, for `async with`."""
    return mew.connect(door.gateway.url, space=door.space, token=door.tokens[who], via=via)


@asynccontextmanager
async def serving(door: Door, participant: mew.Participant, who: str = "bob") -> AsyncIterator[mew.Client]:
    """A participant of ours that is ready for whatever comes; it leaves in the end."""
    ready = asyncio.Event()

    @participant.on_start
    async def started() -> None:
        ready.set()

    async with asyncio.TaskGroup() as tasks, joined(door, who) as client:
        served = tasks.create_task(participant.serve(client))
        async with asyncio.timeout(WAIT_S):
            await ready.wait()
        yield client
        participant.stop()
        async with asyncio.timeout(WAIT_S):
            await served


async def first(
    envelopes: AsyncIterator[mew.Envelope], fits: Callable[[mew.Envelope], bool] = lambda _: True
) -> mew.Envelope:
    """The next that fits."""
    async with asyncio.timeout(WAIT_S):
        return await anext(envelope async for envelope in envelopes if fits(envelope))


# The envelope (§3).


async def test_all_that_is_sent_is_one_json_object_of_this_version(door: Door) -> None:
    """§3 MUST: "a single top-level JSON envelope"; MUST: `protocol` is "mew/v0.4"."""
    ann = await door.join("ann")
    async with joined(door) as bob:
        await bob.chat("hello", about=["x"], context="a/b")
        await bob.send("mcp/proposal", {"method": "tools/list"}, to="ann")
    await ann.until("mcp/proposal")
    said = [message for message in ann.seen if message["from"] == "bob"]
    assert [message["protocol"] for message in said] == ["mew/v0.4"] * 2
    chat, proposal = said
    assert chat.keys() == {"protocol", "id", "ts", "from", "kind", "correlation_id", "context", "payload"}
    assert proposal["to"] == ["ann"]


async def test_the_fields_are_what_the_specification_says_they_are(door: Door) -> None:
    """§3: `ts` is RFC 3339, `from` who one is, `to` and `correlation_id` arrays even for one, `payload` an object."""
    ann = await door.join("ann")
    async with joined(door) as bob:
        await bob.send("chat", {"text": "hi"}, to="ann", correlation_id="e1")
    said = await ann.until("chat")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", said["ts"])
    assert datetime.fromisoformat(said["ts"]).tzinfo is not None
    assert (said["from"], said["to"], said["correlation_id"]) == ("bob", ["ann"], ["e1"])
    assert said["payload"] == {"text": "hi"}


async def test_no_id_is_used_twice(door: Door) -> None:
    """§3: `id` is "globally unique", also among the connections of one participant, one after the other."""
    ann = await door.join("ann")
    for _ in range(2):
        async with joined(door) as one, joined(door) as other:
            for _ in range(20):
                await one.chat("x")
                await other.chat("y")
    await ann.since_now()
    ids = [message["id"] for message in ann.seen if message["from"] == "bob"]
    assert len(ids) == len(set(ids)) == 80


# Who one is, who else is here, and what one may (§3.7, §3.8, §5.2, §8.2 "Connection Behavior").


@pytest.mark.parametrize("via", list(mew.Via))
async def test_a_token_is_all_that_is_brought_and_the_welcome_tells_the_rest(
    door: Door, via: mew.Via
) -> None:
    """§8.2: "Process `system/welcome` to learn own ID and capabilities"; §5.2: only the bearer token is provided."""
    await door.join("ann")
    async with joined(door, "cat", via=via) as cat:
        assert (cat.id, cat.space) == ("cat", door.space)
        assert {str(held.source["kind"]) for held in cat.capabilities} == {
            "chat",
            "mcp/response",
            "capability/grant-ack",
        }
        assert set(cat.participants) == {"ann", "cat"}


async def test_a_token_from_a_file_never_travels_in_the_url(door: Door, tmp_path: Path) -> None:
    """§5.2: the token goes in the `Authorization` header."""
    file = tmp_path / "bob.token"
    file.write_text(f"{door.tokens['bob']}\n")
    async with mew.connect(door.gateway.ws_url, space=door.space, token=file) as bob:
        assert bob.id == "bob"
    with pytest.raises(ValueError, match="does not belong in a URL"):
        mew.connect(f"{door.gateway.ws_url}?token={door.tokens['bob']}", space=door.space)


async def test_presence_tells_who_comes_and_goes_and_what_they_may(door: Door) -> None:
    """§8.2: "Handle `system/presence` to track other participants"; §3.7."""
    async with joined(door) as bob:
        presence = bob.envelopes(PRESENCE)
        assert set(bob.participants) == {"bob"}
        cat = await door.join("cat")
        await first(presence, lambda said: said.content["participant"]["id"] == "cat")
        assert set(bob.participants) == {"bob", "cat"}
        held = next(capabilities for who, capabilities in bob.participants.items() if who == "cat")
        assert {"kind": "chat"} in [capability.source for capability in held]
        await cat.connection.close()
        await first(presence, lambda said: said.content["event"] == "leave")
        assert set(bob.participants) == {"bob"}


async def test_the_list_of_the_welcome_says_what_can_be_sent(door: Door) -> None:
    """§5.2 SHOULD: "use this list to understand their allowed operations"; §8.2: "Respect capability restrictions"."""
    async with joined(door, "reader") as reader:
        call: Json = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "read_file"}}
        assert reader.can_send("chat", {"text": "hi"})
        assert reader.can_send("mcp/request", call, to="ann")
        assert not reader.can_send("mcp/request", call | {"params": {"name": "write_file"}}, to="ann")
        assert not reader.can_send("reasoning/start", {"message": "hm"})


async def test_what_one_may_not_do_is_not_tried(door: Door) -> None:
    """§8.2: "Respect capability restrictions from welcome message": nothing that would be refused is on the wire."""
    ann = await door.join("ann")
    async with joined(door, "cat") as cat:
        with pytest.raises(mew.Refused, match="nothing was sent") as refused:
            await cat.call("ann", "write_file", {"path": "x"})
        assert refused.value.why == "capability_violation"
        with_errors = cat.envelopes("system/error")
        await cat.chat("still here")
        with_errors.close()
        assert [error async for error in with_errors] == []
    await ann.until(PRESENCE, lambda said: said["payload"]["event"] == "leave")
    assert [said["kind"] for said in ann.seen if said["from"] == "cat"] == ["chat"]


async def test_a_grant_and_a_revocation_change_the_list_at_once(door: Door) -> None:
    """§8.2, §3.6.6: "Revocations take effect immediately", also in what a client knows of itself."""
    ann = await door.join("ann")
    async with joined(door, "cat") as cat:
        welcomes = cat.envelopes("system/welcome")
        assert not cat.can_send("reasoning/start")
        capabilities = [{"kind": "reasoning/*"}]
        grant = await ann.say(
            "capability/grant", {"recipient": "cat", "capabilities": capabilities}, to=["cat"]
        )
        await first(welcomes, lambda _: cat.can_send("reasoning/start"))
        await ann.say("capability/revoke", {"recipient": "cat", "grant_id": grant})
        await first(welcomes, lambda _: not cat.can_send("reasoning/start"))


async def test_a_violation_is_told_with_the_gateways_reason(door: Door) -> None:
    """§3.8.2: the error names what was attempted and what one may."""
    async with joined(door, "cat") as cat:
        with pytest.raises(mew.Refused, match="capability") as refused:
            await cat.send("mcp/request", {"method": "tools/list"}, to="ann")
    assert refused.value.why == "capability_violation"
    assert refused.value.problem.attempted_kind == "mcp/request"
    assert {"kind": "chat"} in list(refused.value.problem.your_capabilities or [])


async def test_nothing_of_the_gateways_namespace_can_be_sent(door: Door) -> None:
    """§4.1 MUST NOT: "Participants MUST NOT send messages with `kind` starting with `system/`"."""
    ann = await door.join("ann")
    async with joined(door, "ann") as me:
        with pytest.raises(mew.Refused) as refused:
            await me.send(PRESENCE, {"event": "join", "participant": {"id": "eve"}})
        assert refused.value.why == "reserved_kind"
        assert not me.can_send(PRESENCE)
    await ann.since_now()
    assert "eve" not in [
        said["payload"]["participant"]["id"] for said in ann.seen if said["kind"] == PRESENCE
    ]


async def test_who_is_not_let_in_is_told_so_and_does_not_try_again(door: Door) -> None:
    """§5.2: the gateway validates the bearer token."""
    for token, space, status in (
        (f"wrong-{uuid.uuid4()}", door.space, 401),
        (door.tokens["bob"], "nowhere", 404),
    ):
        with pytest.raises(mew.ConnectError) as refused:
            async with mew.connect(door.gateway.url, space=space, token=token, first_within_s=60):
                pass
        assert (refused.value.status, refused.value.come_back) == (status, False)
