"""The tools of a space: who is asked for them, and what is not put to a person because of them."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from tests.client.ear import Ear, settled

import mew
from mew.client.client import Client
from mew.client.mcp.model_tools import ToolListings
from mew.client.mcp.requests import Requests
from mew.protocol.kinds import Kind
from mew.testing import Space

WHO: dict[str, list[Any]] = {
    "ann": ["*"],
    "bot": [
        "participant/settled",
        "mcp/proposal",
        "mcp/withdraw",
        "mcp/request:*/list",
        "mcp/request:notifications/**",
    ],
    "blind": ["participant/settled", "mcp/proposal", "mcp/withdraw"],
    "files": ["mcp/response", "mcp/request:notifications/**"],
    "clock": ["mcp/response"],
    "person": ["chat"],
}


def files() -> mew.Participant:
    served = mew.Participant("files")

    @served.tool(read_only=True)
    async def read_file(path: str) -> str:
        """Read a file."""
        return path

    @served.tool
    async def write_file(path: str, content: str, mode: int = 0o644) -> str:
        """Write a file."""
        return f"{path}: {content} {mode}"

    return served


def clock() -> mew.Participant:
    served = mew.Participant("clock")

    @served.tool
    async def now() -> str:
        return "noon"

    return served


def listings(client: Client, *, answer_s: float = 5.0) -> ToolListings:
    return ToolListings(client.connection, Requests(client.connection), client.catalogue, answer_s=answer_s)


def asked(ear: Ear, whom: str) -> int:
    """How often somebody was asked for their tools."""
    requests = [one for one in ear.all(Kind.MCP_REQUEST) if one.to == (whom,)]
    return sum(one.content["method"] == "tools/list" for one in requests)


# All tools.


async def test_all_tools_of_a_space_are_listed_with_their_types() -> None:
    async with (
        asyncio.timeout(5),
        Space(WHO) as space,
        space.serving(files(), "files"),
        space.serving(clock(), "clock"),
        space.connect("bot") as bot,
    ):
        tools = await bot.tools()
        assert [(tool.participant, tool.name) for tool in tools] == [
            ("clock", "now"),
            ("files", "read_file"),
            ("files", "write_file"),
        ]
        assert tools[1].description == "Read a file."
        assert tools[1].hint("readOnlyHint") is True
        assert tools[2].input_schema["required"] == ["path", "content"]
        assert [tool.name for tool in await bot.tools("clock")] == ["now"]


async def test_who_does_not_answer_is_not_asked_again_until_they_rejoin() -> None:
    async with (
        asyncio.timeout(5),
        Space(WHO) as space,
        space.serving(files(), "files"),
        space.connect("ann") as ann,
    ):
        ear, known = Ear(ann.connection), listings(ann, answer_s=0.01)
        async with space.connect("person"):
            await settled(ann.connection)
            with pytest.raises(mew.Unanswered, match="did not answer tools/list"):
                await known.of("person")
            with pytest.raises(mew.Unanswered, match="has not rejoined since"):
                await known.of("person")
            assert "person" not in {tool.participant for tool in await known.all()}
            assert asked(ear, "person") == 1
        async with space.connect("person"):
            await settled(ann.connection)
            with pytest.raises(mew.Unanswered, match="did not answer tools/list within"):
                await known.of("person")
            assert asked(ear, "person") == 2


# What is proposed.


@pytest.mark.parametrize("use", ["call", "propose_call"])
async def test_a_tool_that_is_not_listed_is_never_put_to_a_person(use: str) -> None:
    async with (
        asyncio.timeout(5),
        Space(WHO) as space,
        space.serving(files(), "files"),
        space.connect("ann") as ann,
        space.connect("bot") as bot,
    ):
        ear = Ear(ann.connection)
        with pytest.raises(
            mew.UnknownTool, match="'files' has no tool 'write_fil'; did you mean 'write_file'"
        ):
            await getattr(bot, use)("files", "write_fil", {"path": "a"})
        with pytest.raises(mew.UnknownTool, match="'files' has no tool 'zzz'; it has: read_file, write_file"):
            await getattr(bot, use)("files", "zzz")
        await settled(bot.connection, ann.connection)
        assert ear.all(Kind.MCP_PROPOSAL) == []


@pytest.mark.parametrize("use", ["call", "propose_call"])
async def test_arguments_that_do_not_match_the_schema_are_proposed_with_a_note(use: str) -> None:
    async with (
        asyncio.timeout(5),
        Space(WHO) as space,
        space.serving(files(), "files"),
        space.connect("ann") as ann,
        space.connect("bot") as bot,
    ):
        asking = asyncio.ensure_future(getattr(bot, use)("files", "write_file", {"path": "a"}, why="to test"))
        async for review in ann.proposals():
            assert review.record.why == (
                "to test\nThe call does not match the tool's schema: 'content' is a required property"
            )
            assert "does not match the tool's schema" in review.preview()
            await review.reject()
            break
        with suppress(mew.NotFulfilled):
            await asking


async def test_what_servers_are_known_to_take_is_proposed() -> None:
    async with (
        asyncio.timeout(5),
        Space(WHO) as space,
        space.serving(files(), "files"),
        space.connect("bot") as bot,
    ):
        proposal = await bot.propose_call("files", "write_file", {"path": "a", "content": "b", "mode": "420"})
        assert proposal.id
        await proposal.withdraw()


async def test_who_may_not_list_tools_is_checked_by_what_others_listed() -> None:
    async with (
        asyncio.timeout(5),
        Space(WHO) as space,
        space.serving(files(), "files"),
        space.connect("ann") as ann,
        space.connect("blind") as blind,
    ):
        unchecked = await blind.propose_call("files", "write_fil", {})
        await unchecked.withdraw()
        await ann.tools("files")
        await settled(ann.connection, blind.connection)
        with pytest.raises(mew.UnknownTool, match="did you mean 'write_file'"):
            await blind.propose_call("files", "write_fil", {})


async def test_a_known_listing_is_not_asked_for_again_until_its_participant_rejoins() -> None:
    async with (
        asyncio.timeout(5),
        Space(WHO) as space,
        space.connect("ann") as ann,
        space.connect("bot") as bot,
    ):
        ear, call = Ear(ann.connection), {"name": "read_file", "arguments": {"path": "a"}}
        known = listings(bot)
        async with space.serving(files(), "files"):
            await settled(bot.connection)
            for _ in range(3):
                await known.check("files", call, None)
            assert asked(ear, "files") == 1
        async with space.serving(clock(), "files"):
            await settled(bot.connection)
            with pytest.raises(mew.UnknownTool):
                await known.check("files", call, None)
            assert asked(ear, "files") == 2


async def test_a_tool_that_came_without_a_word_is_found_by_asking_again() -> None:
    server = files()
    async with (
        asyncio.timeout(5),
        Space({**WHO, "files": ["mcp/response"]}) as space,
        space.serving(server, "files"),
        space.connect("bot") as bot,
    ):
        await bot.tools("files")
        server.tool(name="new")(lambda: "new")
        proposal = await bot.propose_call("files", "new")
        await proposal.withdraw()


async def test_the_arguments_of_a_request_are_left_to_the_tool_but_not_a_name_known_to_be_wrong() -> None:
    async with (
        asyncio.timeout(5),
        Space(WHO) as space,
        space.serving(files(), "files"),
        space.connect("ann") as ann,
    ):
        with pytest.raises(mew.RpcError, match="did you mean 'write_file'"):
            await ann.call("files", "write_fil")
        await ann.tools()
        with pytest.raises(mew.UnknownTool, match="did you mean 'write_file'"):
            await ann.call("files", "write_fil")
        with pytest.raises(mew.RpcError):
            await ann.call("files", "write_file", {"path": 7})
