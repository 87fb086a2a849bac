"""What a participant does with what others get wrong (§4.3, §6.1, §7.2, §8.2 "Message Validation").

Our gateway passes payloads on unread, so most of it comes through it. What it would stop itself comes from
`other_gateway`, one of another make.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import websockets
from websockets.asyncio.server import ServerConnection

import mew

from .client import Door, Json, envelope
from .test_sdk_connection import first, joined, serving

MALFORMED: list[tuple[str, Json]] = [
    ("mcp/request", {"jsonrpc": "2.0", "id": 1, "params": {}}),
    ("mcp/request", {"jsonrpc": "2.0", "id": 1, "result": {}}),
    ("mcp/request", {"jsonrpc": "2.0", "id": 1, "method": ["tools/list"]}),
    ("mcp/request", {"jsonrpc": "1.0", "id": 1, "method": "tools/list"}),
    ("mcp/response", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
    ("mcp/response", {"jsonrpc": "2.0", "id": 1, "result": {}, "error": {"code": 1, "message": "x"}}),
    ("mcp/proposal", {"params": {"name": "x"}}),
    ("chat", {}),
    ("chat", {"text": 42}),
    ("chat", {"text": "x", "format": "html"}),
    ("participant/status", {"tokens": 1}),
    ("participant/forget", {"direction": "middle"}),
    ("participant/request-status", {"fields": "tokens"}),
    ("reasoning/cancel", {"reason": 1}),
]


@pytest.mark.parametrize(("kind", "payload"), MALFORMED)
async def test_a_payload_that_is_not_of_its_kind_is_dropped(door: Door, kind: str, payload: Json) -> None:
    """§8.2: "Validate `kind` matches the payload type", "Validate payload structure", "Drop messages that fail"."""
    ann = await door.join("ann")
    async with joined(door) as bob:
        envelopes = bob.envelopes(sender="ann")
        wrong = await ann.send(kind, payload, to=["bob"], correlation_id=["x"])
        good = await ann.say("chat", {"text": "and now?"})
        assert (await first(envelopes)).id == good
        assert [offence.envelope_id for offence in bob.misconduct.values()] == [wrong]


async def test_a_message_that_names_nothing_where_it_must_is_dropped(door: Door) -> None:
    """§3.1.2, §3.3, §3.4 MUST: `correlation_id` of responses, rejections, acknowledgements, cancellations.

    A withdrawal that names nothing is stopped by the gateway (§3.3.1).
    """
    ann = await door.join("ann")
    async with joined(door) as bob:
        envelopes = bob.envelopes(sender="ann")
        for kind, payload in (
            ("mcp/response", {"jsonrpc": "2.0", "id": 1, "result": {}}),
            ("mcp/reject", {"reason": "busy"}),
            ("chat/acknowledge", {"status": "received"}),
            ("chat/cancel", {"reason": "duplicate"}),
        ):
            await ann.send(kind, payload)
        good = await ann.send("chat", {"text": "and now?"})
        assert (await first(envelopes)).id == good
        assert {who: wrong.count for who, wrong in bob.misconduct.items()} == {"ann": 4}


async def test_who_misbehaves_is_counted_and_the_others_are_not(
    door: Door, caplog: pytest.LogCaptureFixture
) -> None:
    """§8.2: "Track/report misbehaving participants"; §4.3 SHOULD: "Drop or report malformed messages"."""
    ann, cat = await door.join("ann"), await door.join("cat")
    async with joined(door) as bob:
        envelopes = bob.envelopes(sender="ann")
        for _ in range(3):
            await cat.send("chat", {"txt": "oops"})
        await cat.until("chat", lambda said: said["from"] == "cat")
        await cat.say("chat", {"text": "better"})
        good = await ann.say("chat", {"text": "hi"})
        assert (await first(envelopes)).id == good
        ((who, wrong),) = bob.misconduct.items()
    assert (who, wrong.count) == ("cat", 3)
    assert "text" in wrong.why
    told = [record for record in caplog.records if "cat" in record.getMessage()]
    assert len(told) == 1, "once in the log, not for each"


async def test_a_malformed_request_gets_no_answer_and_the_next_one_does(door: Door) -> None:
    """§8.2: "Drop messages that fail validation": a server goes on."""
    ann = await door.join("ann")
    async with serving(door, mew.Participant("tools")):
        await ann.say("mcp/request", {"jsonrpc": "2.0", "id": 1}, to=["bob"])
        asked = await ann.say("mcp/request", {"jsonrpc": "2.0", "id": 2, "method": "ping"}, to=["bob"])
        answer = await ann.until("mcp/response")
        assert (answer["correlation_id"], answer["payload"]["id"]) == ([asked], 2)
        assert not [said for said in await ann.since_now() if said["kind"] == "mcp/response"]


async def test_an_answer_by_another_or_to_another_request_is_none(door: Door) -> None:
    """§4.3: "may see responses to requests they never observed"; nobody answers in another's name (§7.2)."""
    ann, cat = await door.join("ann"), await door.join("cat")
    async with joined(door) as bob, asyncio.TaskGroup() as tasks:
        asked = tasks.create_task(bob.request("ann", "tools/list"))
        request = await cat.until("mcp/request")
        number = request["payload"]["id"]
        forged = {"jsonrpc": "2.0", "id": number, "result": {"tools": [{"name": "evil"}]}}
        await cat.say("mcp/response", forged, to=["bob"], correlation_id=[request["id"]])
        await ann.until("mcp/response")
        await ann.say("mcp/response", forged, to=["bob"], correlation_id=["of-another-day"])
        real = {"jsonrpc": "2.0", "id": number, "result": {"tools": []}}
        await ann.say("mcp/response", real, to=["bob"], correlation_id=[request["id"]])
        assert await asked == {"tools": []}


async def test_a_kind_nobody_knows_is_shown_and_does_no_harm(door: Door) -> None:
    """§4.3: "parse messages defensively": other kinds are the application's."""
    ann = await door.join("ann")
    async with joined(door) as bob:
        envelopes = bob.envelopes(sender="ann")
        await ann.send("weather/report", {"sky": "blue"})
        assert (await first(envelopes)).content == {"sky": "blue"}
        assert not bob.misconduct


# A gateway of another make.


@dataclass
class Other:
    """What it hears, and how often somebody connected."""

    url: str = ""
    connections: int = 0
    heard: list[Json] = field(default_factory=list)


def welcome(who: str = "bob", **fields: Any) -> Json:
    you = {"id": who, "capabilities": [{"kind": "*"}]}
    payload = {"you": you, "participants": [{"id": "eve", "capabilities": [{"kind": "chat"}]}]}
    return envelope("system:gateway", "system/welcome", payload, to=[who], **fields)


@asynccontextmanager
async def other_gateway(*says: Json | str, greeting: Json | None = None) -> AsyncIterator[Other]:
    """Says all this to who connects, and from then on echoes what it hears."""
    other = Other()

    async def serve(connection: ServerConnection) -> None:
        other.connections += 1
        for said in (welcome() if greeting is None else greeting, *says):
            await connection.send(said if isinstance(said, str) else json.dumps(said))
        async for heard in connection:
            other.heard.append(json.loads(heard))
            await connection.send(heard)

    async with websockets.serve(serve, "127.0.0.1", 0) as server:
        (listening, *_) = server.sockets
        other.url = f"ws://127.0.0.1:{listening.getsockname()[1]}"
        yield other


async def shown(other: Other) -> tuple[mew.Client, list[mew.Envelope]]:
    """What a client of it is shown, from the welcome to its own first word."""
    came: list[mew.Envelope] = []
    async with asyncio.timeout(2), mew.connect(other.url, space="x") as bob:
        envelopes = bob.envelopes()
        mine = await bob.chat("hello?")
        async for said in envelopes:
            came.append(said)
            if said.id == mine.id:
                break
    return bob, came


NO_ENVELOPES: list[Json | str] = [
    "this is not JSON",
    json.dumps([1, 2]),
    envelope("eve", "chat", {"text": "x"}, id=...),
    envelope("eve", "chat", {"text": "x"}, sender=...),
    envelope("eve", "chat", {"text": "x"}, correlation_id="x"),
    envelope("eve", "chat", {"text": "x"}, to="bob"),
    envelope("eve", "chat", ["x"]),
    envelope("eve", "chat", {"text": "x"}, protocol="mew/v0.3"),
]


async def test_what_is_no_envelope_is_dropped_and_the_rest_goes_on() -> None:
    """§8.2: "Verify envelope structure before processing"; §6.1 MUST: "matching protocol versions"."""
    async with other_gateway(*NO_ENVELOPES, envelope("eve", "chat", {"text": "fine"})) as other:
        _, came = await shown(other)
    assert [said.content["text"] for said in came if said.kind == "chat"] == ["fine", "hello?"]
    assert other.connections == 1


async def test_a_gateway_of_another_version_is_none() -> None:
    """§6.1 MUST: "Clients and gateways MUST use matching protocol versions"."""
    async with other_gateway(greeting=welcome(protocol="mew/v0.3")) as other:
        with pytest.raises(mew.ConnectError, match=r"mew/v0\.3") as refused:
            await shown(other)
    assert not refused.value.come_back
    assert other.connections == 1


async def test_the_welcome_of_another_is_ignored() -> None:
    """§3.8.1 SHOULD: "ignore welcome messages not addressed to them"."""
    async with other_gateway(welcome("eve")) as other:
        bob, came = await shown(other)
    assert bob.id == "bob"
    assert [said.kind for said in came if said.to == ("eve",)] == []
    assert {said["from"] for said in other.heard} == {"bob"}


async def test_what_only_a_gateway_may_say_is_believed_of_nobody_else() -> None:
    """§4.1, §7.2: "Detect and report malformed or spoofed messages"."""
    payload = {"event": "join", "participant": {"id": "mallory"}}
    async with other_gateway(envelope("eve", "system/presence", payload)) as other:
        bob, came = await shown(other)
    assert "mallory" not in list(bob.participants)
    assert not [said for said in came if said.kind == "system/presence"]
    assert {who: wrong.count for who, wrong in bob.misconduct.items()} == {"eve": 1}
