"""The tools with which a host takes part, and the history it can read."""

import json
from typing import Any

import mcp_types
import pytest
from mcp.shared.exceptions import MCPError
from tests.mcp_bridge.host.stage import GENERATIONS, LEGACY, MAY_PROPOSE, Heard, stage

from mew.client.mcp.validation import check
from mew.mcp_bridge.host.own_tools import SHAPES
from mew.mcp_bridge.host.settings import HostSettings

EITHER = pytest.mark.parametrize("mode", GENERATIONS)
OF_THE_FIRST = pytest.mark.filterwarnings("ignore:resources/:mcp.shared.exceptions.MCPDeprecationWarning")


def structured(result: mcp_types.CallToolResult) -> dict[str, Any]:
    assert not result.is_error, result.content
    assert isinstance(result.structured_content, dict)
    return result.structured_content


@EITHER
async def test_a_host_says_something_in_the_space(mode: str) -> None:
    async with stage(MAY_PROPOSE) as here:
        chats = here.ann.envelopes("chat")
        host = await here.host(mode)

        said = structured(await host.call_tool("mew_chat", {"text": "hello", "to": ["ann"]}))
        heard = await anext(chats)

        assert (heard.id, heard.sender, heard.to) == (said["id"], "host", ("ann",))
        assert heard.content["text"] == "hello"


@EITHER
async def test_a_host_sees_who_is_there_and_what_they_offer(mode: str) -> None:
    async with stage(MAY_PROPOSE) as here:
        host = await here.host(mode)
        await host.list_tools()

        told = structured(await host.call_tool("mew_participants", {}))

        assert (told["space"], told["you"]) == ("demo", "host")
        assert told["participants"] == [
            {"id": "ann", "offers": {}},
            {"id": "files", "offers": {"tools": 3, "resources": 1, "resourceTemplates": 1, "prompts": 1}},
        ]


async def test_a_host_sees_what_waits_for_approval_of_whomever() -> None:
    async with stage(MAY_PROPOSE, HostSettings(wait_s=0.05)) as here:
        host = await here.host(LEGACY)
        pending = await host.call_tool("files__read_file", {"path": "/a"})
        theirs = await here.ann.propose_call("files", "add", {"a": 1, "b": 2})

        told = structured(await host.call_tool("mew_open_proposals", {}))["proposals"]

        assert pending.meta is not None
        assert [(it["handle"], it["mine"], it["proposer"]) for it in told] == [
            (pending.meta["mew/handle"], True, "host"),
            (theirs.id, False, "ann"),
        ]
        assert told[1]["params"] == {"name": "add", "arguments": {"a": 1, "b": 2}}


async def test_what_was_approved_can_no_longer_be_withdrawn() -> None:
    async with stage(MAY_PROPOSE, HostSettings(wait_s=0.05)) as here:
        host = await here.host(LEGACY)
        pending = await host.call_tool("files__read_file", {"path": "/a"})
        assert pending.meta is not None
        handle = pending.meta["mew/handle"]
        await here.ann.review(handle).approve()

        told = structured(await host.call_tool("mew_withdraw", {"handle": handle}))

        assert told == {"handle": handle, "withdrawn": False}


@pytest.mark.parametrize("tool", ["mew_outcome", "mew_withdraw"])
async def test_a_proposal_of_somebody_else_is_none_of_ours(tool: str) -> None:
    async with stage(MAY_PROPOSE) as here:
        host = await here.host(LEGACY)
        theirs = await here.ann.propose_call("files", "add", {"a": 1, "b": 2})

        for handle in (theirs.id, "nothing"):
            result = await host.call_tool(tool, {"handle": handle})

            assert result.is_error
            assert (result.meta or {})["mew/why"] == "lost"


async def test_wrong_arguments_are_told() -> None:
    async with stage(["*"]) as here:
        host = await here.host(LEGACY)

        result = await host.call_tool("mew_chat", {"txet": "hello"})

        assert result.is_error
        assert (result.meta or {})["mew/why"] == "schema_mismatch"


async def test_without_tools_of_our_own_there_are_none() -> None:
    async with stage(["*"], HostSettings(own_tools=False)) as here:
        host = await here.host(LEGACY)

        tools = [tool.name for tool in (await host.list_tools()).tools]
        resources = [resource.uri for resource in (await host.list_resources()).resources]

        assert tools == ["files__read_file", "files__add", "files__fail"]
        assert resources == ["mew://files/file:///notes.txt"]
        with pytest.raises(MCPError):
            await host.call_tool("mew_chat", {"text": "hello"})


@EITHER
async def test_the_history_is_a_resource_and_a_tool(mode: str) -> None:
    async with stage(["*"]) as here:
        host = await here.host(mode)
        for text in ("one", "two", "three"):
            await here.ann.chat(text)

        read = await host.read_resource("mew:history?count=2&kind=chat")
        told = structured(await host.call_tool("mew_history", {"count": 1, "kind": "chat"}))["envelopes"]
        whole = await host.read_resource("mew:history")

        assert isinstance(read.contents[0], mcp_types.TextResourceContents)
        found = json.loads(read.contents[0].text)
        assert [(it["from"], it["payload"]["text"]) for it in found] == [("ann", "two"), ("ann", "three")]
        assert [it["payload"]["text"] for it in told] == ["three"]
        assert isinstance(whole.contents[0], mcp_types.TextResourceContents)
        assert len(json.loads(whole.contents[0].text)) > 3


async def test_a_token_that_an_invitation_gave_is_not_in_the_history() -> None:
    async with stage(["*"]) as here:
        host = await here.host(LEGACY)
        invited = await here.me.invite("guest", "chat")

        told = structured(await host.call_tool("mew_history", {"count": 100}))["envelopes"]

        assert "space/invite" in [it["kind"] for it in told]
        assert invited.token not in json.dumps(told)


@pytest.mark.parametrize("query", ["count=x", "count=1&count=2", "colour=red", "kind=/(/"])
async def test_a_history_that_is_asked_for_wrongly_says_so(query: str) -> None:
    async with stage(["*"]) as here:
        host = await here.host(LEGACY)

        with pytest.raises(MCPError) as raised:
            await host.read_resource(f"mew:history?{query}")

        assert raised.value.error.code == mcp_types.INVALID_PARAMS


@pytest.mark.slow
@OF_THE_FIRST
async def test_who_subscribes_to_the_history_hears_that_it_goes_on() -> None:
    async with stage(["*"]) as here:
        heard = Heard()
        host = await here.host(LEGACY, message_handler=heard)
        await host.session.subscribe_resource("mew:history")

        await here.ann.chat("hello")
        updated = await heard.hears("notifications/resources/updated")

        assert updated.uri == "mew:history"


def test_each_tool_has_a_schema_for_what_it_takes_and_gives_and_says_what_it_does() -> None:
    for name, shape in SHAPES.items():
        listed = mcp_types.Tool.model_validate(shape.listed(name))

        assert listed.output_schema is not None
        assert listed.annotations is not None
        assert listed.annotations.read_only_hint is (name not in ("mew_chat", "mew_withdraw"))
        check(dict.fromkeys(shape.required, "x"), listed.input_schema)
