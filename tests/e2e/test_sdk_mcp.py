"""MCP over MEW (§3.1, §3.5.6, §8.2 "MCP Integration"): asked and asking, with the wire as the witness."""

import asyncio
from typing import Any

import pytest

import mew

from .client import Client, Door, Json
from .test_sdk_connection import joined, serving


def server() -> mew.Participant:
    participant = mew.Participant("tools", version="1.0", instructions="Add.")

    @participant.tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @participant.tool
    async def fail() -> None:
        raise mew.ToolError("no luck")

    @participant.resource("memo://today")
    async def today() -> str:
        return "nothing"

    @participant.prompt
    async def greet(name: str) -> str:
        return f"Greet {name}."

    return participant


async def ask(client: Client, method: str, params: Json | None = None, **fields: Any) -> Json:
    """Ask bob as any MCP client would, and return the envelope that answers."""
    payload = {"jsonrpc": "2.0", "id": 42, "method": method, "params": params or {}}
    asked = await client.say("mcp/request", payload, to=["bob"], **fields)
    return await client.until("mcp/response", lambda said: asked in said["correlation_id"])


async def test_a_participant_is_an_mcp_server(door: Door) -> None:
    """§8.2: "Implement MCP server capabilities", "Handle incoming MCP requests"."""
    ann = await door.join("ann")
    async with serving(door, server()):

        async def result(method: str, params: Json | None = None) -> Any:
            return (await ask(ann, method, params))["payload"]["result"]

        hello = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "x", "version": "1"},
        }
        initialized = await result("initialize", hello)
        assert initialized["protocolVersion"] == "2025-06-18"
        assert {"tools", "resources", "prompts"} <= initialized["capabilities"].keys()
        assert initialized["serverInfo"] == {"name": "tools", "version": "1.0"}
        assert await result("ping") == {}
        assert [tool["name"] for tool in (await result("tools/list"))["tools"]] == ["add", "fail"]
        called = await result("tools/call", {"name": "add", "arguments": {"a": 2, "b": 3}})
        assert called["content"] == [{"type": "text", "text": "5"}]
        assert [one["uri"] for one in (await result("resources/list"))["resources"]] == ["memo://today"]
        (read,) = (await result("resources/read", {"uri": "memo://today"}))["contents"]
        assert read["text"] == "nothing"
        assert [one["name"] for one in (await result("prompts/list"))["prompts"]] == ["greet"]
        (said,) = (await result("prompts/get", {"name": "greet", "arguments": {"name": "Ann"}}))["messages"]
        assert said["content"]["text"] == "Greet Ann."


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "add", "arguments": {"a": 2, "b": 3}}),
        ("tools/call", {"name": "add", "arguments": {"a": "two"}}),
        ("tools/call", {"name": "fail"}),
        ("tools/call", {"name": "unknown"}),
        ("resources/read", {"uri": "memo://unknown"}),
        ("no/such/method", {}),
    ],
)
async def test_every_answer_names_the_request_and_goes_to_who_asked(
    door: Door, method: str, params: Json
) -> None:
    """§3.1.2 MUST: "Responses MUST include the `correlation_id` field"; §8.2: "in all response messages"."""
    ann = await door.join("ann")
    async with serving(door, server()):
        asked = await ann.say(
            "mcp/request", {"jsonrpc": "2.0", "id": "n-1", "method": method, "params": params}, to=["bob"]
        )
        answer = await ann.until("mcp/response")
        assert (answer["from"], answer["to"], answer["correlation_id"]) == ("bob", ["ann"], [asked])
        assert (answer["payload"]["jsonrpc"], answer["payload"]["id"]) == ("2.0", "n-1")
        assert ("result" in answer["payload"]) is not ("error" in answer["payload"])
        assert not [said for said in await ann.since_now() if said["kind"] == "mcp/response"], (
            "one answer each"
        )


async def test_answers_find_their_requests_whatever_order_they_come_in(door: Door) -> None:
    """§8.2: "Handle incoming MCP … responses", "Generate proper correlation IDs": for those we ask, too."""
    ann = await door.join("ann")
    async with joined(door) as bob, asyncio.TaskGroup() as tasks:
        calls = [tasks.create_task(bob.request("ann", "echo", {"n": n})) for n in range(3)]
        asked = [await ann.until("mcp/request") for _ in calls]
        assert len({request["payload"]["id"] for request in asked}) == 3
        for request in reversed(asked):
            result = {
                "jsonrpc": "2.0",
                "id": request["payload"]["id"],
                "result": request["payload"]["params"],
            }
            await ann.say("mcp/response", result, to=["bob"], correlation_id=[request["id"]])
        assert [await call for call in calls] == [{"n": 0}, {"n": 1}, {"n": 2}]


async def test_an_error_that_answers_is_raised_as_one(door: Door) -> None:
    """§3.1.2: the payload is standard JSON-RPC, errors included."""
    ann = await door.join("ann")
    async with joined(door) as bob, asyncio.TaskGroup() as tasks:

        async def failure() -> mew.RpcError:
            with pytest.raises(mew.RpcError) as failed:
                await bob.request("ann", "tools/list")
            return failed.value

        failing = tasks.create_task(failure())
        request = await ann.until("mcp/request")
        error = {"code": -32601, "message": "unknown method", "data": [1]}
        answer = {"jsonrpc": "2.0", "id": request["payload"]["id"], "error": error}
        await ann.say("mcp/response", answer, to=["bob"], correlation_id=[request["id"]])
        failed = await failing
    assert (failed.code, failed.message, failed.data) == (-32601, "unknown method", [1])


async def test_notifications_and_requests_to_others_or_nobody_get_no_answer(door: Door) -> None:
    """§3.1: a notification is an `mcp/request` without an `id`; §3: `to` says who is to act."""
    ann = await door.join("ann")
    await door.join("cat")
    async with serving(door, server()):
        await ann.say("mcp/request", {"jsonrpc": "2.0", "method": "notifications/initialized"}, to=["bob"])
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        await ann.say("mcp/request", ping, to=["cat"])
        await ann.say("mcp/request", ping)
        answer = await ask(ann, "ping")
        assert [said for said in ann.seen if said["kind"] == "mcp/response"] == [answer]


async def test_a_request_that_is_cancelled_stops_and_gets_no_answer(door: Door) -> None:
    """§8.2: "Implement MCP server capabilities": `notifications/cancelled`."""
    participant, begun, stopped = server(), asyncio.Event(), asyncio.Event()

    @participant.tool
    async def wait() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    ann = await door.join("ann")
    async with serving(door, participant), asyncio.timeout(5):
        call = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "wait"}}
        await ann.say("mcp/request", call, to=["bob"])
        await begun.wait()
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
        await ann.say("mcp/request", cancel, to=["bob"])
        await stopped.wait()
        answer = await ask(ann, "ping")
        assert [said for said in ann.seen if said["kind"] == "mcp/response"] == [answer]


@pytest.mark.parametrize("context", ["reason-start-1", "parent/child/grandchild", ""])
async def test_a_request_with_a_context_is_answered_in_it(door: Door, context: str) -> None:
    """§3.5.6 MUST NOT: "ignore `mcp/request` … even if they have a context field"; §3 MUST: "regardless of context"."""
    ann = await door.join("ann")
    async with serving(door, server()):
        answer = await ask(ann, "ping", context=context)
        assert (answer["payload"]["result"], answer["context"]) == ({}, context)


async def test_whatever_is_addressed_to_a_participant_is_handled_in_any_context(door: Door) -> None:
    """§3 MUST: "Messages addressed to a participant (via `to` field) MUST be handled regardless of context"."""
    participant = server()

    @participant.on("chat", to_me=True)
    async def answer(said: mew.Envelope) -> None:
        await participant.client.chat("yes", about=said)

    ann = await door.join("ann")
    async with serving(door, participant):
        asked = await ann.say("chat", {"text": "there?"}, to=["bob"], context="a/b")
        assert (await ann.until("chat"))["correlation_id"] == [asked]
        asked = await ann.say("participant/request-status", {}, to=["bob"], context="a/b")
        assert (await ann.until("participant/status"))["correlation_id"] == [asked]


async def test_progress_is_told_to_who_asked_for_it_and_correlated(door: Door) -> None:
    """§8.2: "Handle incoming MCP requests": `notifications/progress`, with the token that was given."""
    participant = server()

    @participant.tool
    async def work(call: mew.Call) -> str:
        await call.progress(1, 2, "half")
        return "done"

    ann = await door.join("ann")
    async with serving(door, participant):
        params = {"name": "work", "_meta": {"progressToken": "t"}}
        asked = await ann.say(
            "mcp/request", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}, to=["bob"]
        )
        told = await ann.until("mcp/request")
        assert (told["to"], told["correlation_id"]) == (["ann"], [asked])
        progress = {"progressToken": "t", "progress": 1, "total": 2, "message": "half"}
        assert told["payload"]["params"] == progress
        await ann.until("mcp/response")
