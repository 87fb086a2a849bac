"""The generation of MCP from 2026-07-28 on, beside the one before it; shapes as the official SDK reads them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp_types import _v2026_07_28 as modern
from tests.client.ear import Ear

from mew.client.client import Client
from mew.client.errors import RpcError
from mew.client.mcp.call import Call
from mew.client.participant.participant import Participant
from mew.protocol.kinds import Kind
from mew.testing import Space

WHO: dict[str, list[Any]] = {"ann": ["*"], "bot": ["*"]}
VERSION = "io.modelcontextprotocol/protocolVersion"
STATELESS = {
    VERSION: "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "host", "version": "1"},
}


def offering() -> Participant:
    offered = Participant("calculator", version="1.2", instructions="Add.")

    @offered.tool
    async def add(a: int, b: int, call: Call) -> int:
        await call.log("notice", "adding")
        return a + b

    @offered.resource("notes://all")
    async def notes() -> str:
        return "none"

    @offered.prompt
    async def greet() -> str:
        return "Hello."

    return offered


@asynccontextmanager
async def calculating() -> AsyncIterator[Client]:
    """Ann, and the calculator as bot."""
    async with (
        asyncio.timeout(5),
        Space(WHO) as space,
        space.connect("ann") as ann,
        space.serving(offering(), "bot"),
    ):
        yield ann


async def asked(method: str, params: dict[str, Any] | None = None) -> Any:
    async with calculating() as ann:
        return await ann.request("bot", method, params)


async def test_a_participant_says_what_it_is_without_a_handshake() -> None:
    found = modern.DiscoverResult.model_validate(await asked("server/discover", {"_meta": STATELESS}))
    assert found.supported_versions == ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
    assert found.result_type == "complete"
    assert found.instructions == "Add."
    assert found.capabilities.tools is not None
    plain = await asked("server/discover")
    assert plain["_meta"]["io.modelcontextprotocol/serverInfo"] == {"name": "calculator", "version": "1.2"}


@pytest.mark.parametrize(
    ("method", "params", "shape"),
    [
        ("tools/list", {}, modern.ListToolsResult),
        ("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}}, modern.CallToolResult),
        ("resources/list", {}, modern.ListResourcesResult),
        ("resources/templates/list", {}, modern.ListResourceTemplatesResult),
        ("resources/read", {"uri": "notes://all"}, modern.ReadResourceResult),
        ("prompts/list", {}, modern.ListPromptsResult),
        ("prompts/get", {"name": "greet"}, modern.GetPromptResult),
        (
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "x", "value": ""}},
            modern.CompleteResult,
        ),
    ],
)
async def test_a_result_is_of_the_generation_of_its_request(
    method: str, params: dict[str, Any], shape: Any
) -> None:
    result = await asked(method, {**params, "_meta": STATELESS})
    assert shape.model_validate(result).result_type == "complete"
    for meta in ({}, {VERSION: "2025-11-25"}):
        before = await asked(method, {**params, "_meta": meta})
        assert not before.keys() & {"resultType", "ttlMs", "cacheScope"}
        assert result == {**before, **{name: result[name] for name in result.keys() - before.keys()}}


async def test_a_version_that_nobody_knows_is_refused_with_those_that_are() -> None:
    with pytest.raises(RpcError, match="MCP '2999-01-01' is not supported") as refused:
        await asked("tools/list", {"_meta": {VERSION: "2999-01-01"}})
    assert refused.value.code == -32022
    assert refused.value.data["requested"] == "2999-01-01"
    assert "2026-07-28" in refused.value.data["supported"]


async def test_a_resource_that_is_not_there_has_the_code_of_its_generation() -> None:
    for meta, code in ((STATELESS, -32602), ({}, -32002)):
        with pytest.raises(RpcError, match="no resource") as missing:
            await asked("resources/read", {"uri": "x://y", "_meta": meta})
        assert missing.value.code == code


@pytest.mark.parametrize(("level", "many"), [(None, 0), ("error", 0), ("info", 1), ("nonsense", 0)])
async def test_lines_of_the_log_are_for_those_who_ask_for_them_with_the_request(
    level: str | None, many: int
) -> None:
    async with calculating() as ann:
        ear = Ear(ann.connection)
        wanted = {} if level is None else {"io.modelcontextprotocol/logLevel": level}
        params = {"name": "add", "arguments": {"a": 1, "b": 2}, "_meta": {**STATELESS, **wanted}}
        await ann.request("bot", "tools/call", params)
        lines = [one for one in ear.all(Kind.MCP_REQUEST) if one.sender == "bot"]
        assert len(lines) == many
