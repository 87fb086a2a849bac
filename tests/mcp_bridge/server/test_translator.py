"""What is asked in a space reaches the server as it is, and so does its answer: both generations."""

import asyncio
from itertools import count
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import HEADER_MISMATCH
from tests.client.ear import Ear
from tests.mcp_bridge.server.stage import LEGACY, MODERN, Context, FakeServer, bridged, settings

from mew.client.errors import RpcError
from mew.protocol.kinds import Kind

both = pytest.mark.parametrize("version", [LEGACY, MODERN])

ODD = {
    "content": [{"type": "text", "text": "ok", "future": [1.0, None, 2**70]}],
    "structuredContent": {"n": None, "big": 123456789012345678901234567890, "one": 1.0},
    "unknown": {"deep": [[]]},
}


@both
async def test_params_and_results_pass_with_all_that_nobody_knows(version: str) -> None:
    server = FakeServer(version)
    seen: list[dict[str, Any]] = []

    @server.on("tools/call")
    async def call(_: Context, params: dict[str, Any]) -> dict[str, Any]:
        seen.append(params)
        return dict(ODD)

    params = {"name": "odd", "arguments": {"nothing": None, "big": 2**70, "x": 1.0}, "future": {"a": [None]}}
    async with bridged(server) as stage:
        assert await stage.ann.request("files", "tools/call", params) == ODD
    sent = {name: value for name, value in seen[0].items() if name != "_meta"}
    assert sent == params
    assert repr(sent["arguments"]["x"]) == "1.0"


async def test_a_request_without_a_json_rpc_id_reaches_the_server_and_is_answered() -> None:
    async with bridged(FakeServer()) as stage:
        ear = Ear(stage.ann.connection)
        asked = await ear.ask(Kind.MCP_REQUEST, {"method": "tools/list"}, to=["files"])
        assert (await ear.hears(Kind.MCP_RESPONSE, asked))["result"]["tools"] == []


@both
async def test_the_error_of_a_server_passes_unchanged(version: str) -> None:
    async with bridged(FakeServer(version)) as stage:
        with pytest.raises(RpcError) as raised:
            await stage.ann.request("files", "future/method", {"x": 1})
    assert (raised.value.code, raised.value.message, raised.value.data) == (
        -32601,
        "Method not found",
        "future/method",
    )


async def test_initialize_and_ping_are_answered_from_what_is_known() -> None:
    server = FakeServer(capabilities={"tools": {}, "extensions": {"x": {}}, "experimental": {"y": {}}})
    async with bridged(server) as stage:
        said = await stage.ann.request("files", "initialize", {"protocolVersion": "2025-06-18"})
        assert await stage.ann.request("files", "ping") == {}
        found = await stage.ann.request("files", "server/discover")
    assert said == {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {"listChanged": True}, "experimental": {"y": {}}},
        "serverInfo": {"name": "fake", "version": "1", "mood": "good"},
        "instructions": "Be kind.",
    }
    assert found["capabilities"] == said["capabilities"]
    assert [method for method, _ in server.asked if method in ("initialize", "ping")] == []


async def test_several_requests_run_at_the_same_time() -> None:
    server = FakeServer()
    together = asyncio.Barrier(20)

    @server.on("tools/call")
    async def call(_: Context, params: dict[str, Any]) -> dict[str, Any]:
        await together.wait()
        return {"content": [], "n": params["arguments"]["n"]}

    async with bridged(server) as stage:
        answers = await asyncio.gather(
            *(
                stage.ann.request("files", "tools/call", {"name": "t", "arguments": {"n": n}})
                for n in range(20)
            )
        )
    assert [answer["n"] for answer in answers] == list(range(20))


@both
async def test_a_cancellation_by_the_caller_reaches_the_server(version: str) -> None:
    server = FakeServer(version)
    cancelled = asyncio.Event()

    @server.on("tools/call")
    async def call(_: Context, __: dict[str, Any]) -> dict[str, Any]:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return {}

    async with bridged(server) as stage:
        asking = asyncio.ensure_future(stage.ann.request("files", "tools/call", {"name": "slow"}))
        await server.hears("tools/call")
        asking.cancel()
        await cancelled.wait()
        await server.hears("notifications/cancelled")


@both
async def test_progress_comes_back_with_the_token_of_the_caller(version: str) -> None:
    server = FakeServer(version)

    @server.on("tools/call")
    async def call(context: Context, params: dict[str, Any]) -> dict[str, Any]:
        token = params["_meta"]["progressToken"]
        for step in range(1, 6):
            told = {"progressToken": token, "progress": step, "total": 5, "message": f"step {step}"}
            await context.notify("notifications/progress", told)
        return {"content": []}

    steps: list[tuple[float, float | None, str | None]] = []
    async with bridged(server) as stage:
        await stage.ann.request(
            "files", "tools/call", {"name": "t"}, on_progress=lambda *step: steps.append(step)
        )
    assert steps == [(n, 5, f"step {n}") for n in range(1, 6)]


async def test_a_server_that_does_not_answer_in_time_is_told_apart() -> None:
    server = FakeServer()

    @server.on("tools/call")
    async def call(_: Context, __: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(60)
        return {}

    async with bridged(server, settings(request_timeout_s=0.1)) as stage:
        with pytest.raises(RpcError, match=r"did not answer tools/call within 0\.1 s") as raised:
            await stage.ann.request("files", "tools/call", {"name": "slow"})
        await server.hears("notifications/cancelled")
    assert raised.value.data == {"mew": {"why": "server_timeout"}}


@pytest.mark.slow
async def test_pages_of_a_listing_pass_as_they_are() -> None:
    server = FakeServer()

    @server.on("tools/list")
    async def tools(_: Context, params: dict[str, Any]) -> dict[str, Any]:
        start = int(params.get("cursor", "0"))
        page = [{"name": f"tool{n}", "inputSchema": {"type": "object"}} for n in range(start, start + 100)]
        return {"tools": page, **({"nextCursor": str(start + 100)} if start < 900 else {})}

    async with bridged(server) as stage:
        first = await stage.ann.request("files", "tools/list")
        listed = await stage.ann.tools("files")
    assert len(first["tools"]) == 100
    assert first["nextCursor"] == "100"
    assert [tool.name for tool in listed] == [f"tool{n}" for n in range(1_000)]


async def test_no_mark_of_ours_is_taken_from_a_server() -> None:
    server = FakeServer()

    @server.on("tools/call")
    async def call(_: Context, __: dict[str, Any]) -> dict[str, Any]:
        return {"content": [], "_meta": {"mew/stream": {"id": "x"}, "theirs": 1}}

    async with bridged(server) as stage:
        assert await stage.ann.request("files", "tools/call", {"name": "t"}) == {
            "content": [],
            "_meta": {"theirs": 1},
        }


@both
async def test_what_only_the_bridge_says_of_a_server_is_not_taken_from_the_server(version: str) -> None:
    server = FakeServer(version)

    @server.on("tools/call")
    async def call(_: Context, __: dict[str, Any]) -> dict[str, Any]:
        raise MCPError(-32000, "no", {"mew": {"why": "rejected"}, "mew/why": "rejected", "theirs": 1})

    async with bridged(server) as stage:
        with pytest.raises(RpcError) as raised:
            await stage.ann.request("files", "tools/call", {"name": "t"})
    assert raised.value.data == {"theirs": 1}


async def test_what_a_server_of_the_first_generation_calls_its_result_is_no_question_to_anybody() -> None:
    server = FakeServer()

    @server.on("tools/call")
    async def call(_: Context, __: dict[str, Any]) -> dict[str, Any]:
        return {"content": [], "resultType": "input_required", "inputRequests": {}}

    meta = {"io.modelcontextprotocol/protocolVersion": MODERN}
    async with bridged(server) as stage:
        result = await stage.ann.request("files", "tools/call", {"name": "t", "_meta": meta})
    assert result["resultType"] == "complete"


async def test_signs_of_life_do_not_keep_a_request_alive_for_ever() -> None:
    server = FakeServer()

    @server.on("tools/call")
    async def call(context: Context, params: dict[str, Any]) -> dict[str, Any]:
        for step in count():
            told = {"progressToken": params["_meta"]["progressToken"], "progress": step}
            await context.notify("notifications/progress", told)
            await asyncio.sleep(0.005)
        return {}

    async with bridged(server, settings(request_timeout_s=0.02)) as stage:
        with pytest.raises(RpcError, match="did not answer tools/call") as raised:
            await stage.ann.request("files", "tools/call", {"name": "t"}, on_progress=lambda *_: None)
    assert raised.value.data == {"mew": {"why": "server_timeout"}}


async def test_meta_that_is_no_object_is_refused_before_it_reaches_the_server() -> None:
    server = FakeServer()
    async with bridged(server) as stage:
        with pytest.raises(RpcError, match="expected `_meta` to be an object"):
            await stage.ann.request("files", "tools/call", {"name": "t", "_meta": "x"})
    assert "tools/call" not in [method for method, _ in server.asked]


@both
async def test_who_sends_a_request_of_the_second_generation_is_the_bridge(version: str) -> None:
    server = FakeServer(version)

    @server.on("tools/call")
    async def call(_: Context, params: dict[str, Any]) -> dict[str, Any]:
        return {"content": [], "seen": params.get("_meta", {})}

    prefix = "io.modelcontextprotocol"
    sent = {
        f"{prefix}/protocolVersion": MODERN,
        f"{prefix}/clientInfo": {"name": "x", "version": "1"},
        "my": 1,
    }
    async with bridged(server) as stage:
        result = await stage.ann.request("files", "tools/call", {"name": "t", "_meta": sent})
    assert result["resultType"] == "complete"
    assert result["seen"]["my"] == 1
    info = result["seen"].get(f"{prefix}/clientInfo")
    assert (info["name"] if info else None) == ("mew" if version == MODERN else None)


async def test_a_tool_that_wants_headers_in_a_way_mcp_does_not_know_is_left_out() -> None:
    server = FakeServer(MODERN)
    odd = {"name": "odd", "inputSchema": {"properties": {"a": {"type": "object", "x-mcp-header": "A"}}}}

    @server.on("tools/list")
    async def tools(_: Context, __: dict[str, Any]) -> dict[str, Any]:
        return {"resultType": "complete", "tools": [odd, {"name": "good", "inputSchema": {}}]}

    async with bridged(server) as stage:
        assert [tool.name for tool in await stage.ann.tools("files")] == ["good"]


async def test_a_server_that_misses_a_header_is_asked_again_once_its_tools_are_known() -> None:
    server = FakeServer(MODERN)

    @server.on("tools/call")
    async def call(_: Context, __: dict[str, Any]) -> dict[str, Any]:
        asked = [method for method, _ in server.asked]
        if "tools/list" not in asked[asked.index("tools/call") :]:
            raise MCPError(HEADER_MISMATCH, "header mismatch")
        return {"resultType": "complete", "content": []}

    async with bridged(server) as stage:
        assert (await stage.ann.request("files", "tools/call", {"name": "t"}))["content"] == []
