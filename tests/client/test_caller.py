"""Using what others offer: tools, resources and prompts, directly or by a proposal, over a real space."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from tests.client.ear import Ear

from mew.client.client import Client
from mew.client.errors import Absent, NotFulfilled, Refused, RpcError, ToolError, Unanswered
from mew.client.mcp.call import Call
from mew.client.mcp.results import Image, Message
from mew.client.participant.participant import Participant
from mew.client.proposals.outcomes import ProposalUpdate, Rejected, TimedOut
from mew.protocol.kinds import Kind
from mew.testing import Space

WHO: dict[str, list[Any]] = {
    "ann": ["*"],
    "bot": ["chat", "mcp/proposal", "mcp/withdraw"],
    "shelf": ["mcp/response", "mcp/request:notifications/*"],
    "nobody": ["chat"],
}


def shelf() -> Participant:
    offered = Participant("shelf")

    @offered.tool
    async def add(a: int, b: int) -> int:
        return a + b

    @offered.tool
    async def fail() -> None:
        raise ToolError("no ink")

    @offered.tool
    async def count(call: Call) -> None:
        for done in (1, 2):
            await call.progress(done, 2, f"step {done}")

    @offered.resource("notes://all", description="All notes.")
    async def everything() -> str:
        return "one, two"

    @offered.resource("notes://{name}")
    async def note(name: str) -> bytes:
        return name.encode()

    @offered.prompt
    async def review(language: str = "python") -> list[Any]:
        return [f"Review this {language}.", Message("Gladly.", "assistant"), Image(b"png")]

    @offered.prompt(complete={"city": lambda begun: [f"{begun}lin", f"{begun}n"]})
    async def travel(city: str) -> str:
        return city

    return offered


@asynccontextmanager
async def people(*names: str) -> AsyncIterator[tuple[Any, ...]]:
    """A space with the shelf, and those named."""
    async with asyncio.timeout(5), Space(WHO) as space, AsyncExitStack() as stack:
        await stack.enter_async_context(space.serving(shelf(), "shelf"))
        yield tuple([await stack.enter_async_context(space.connect(name)) for name in names])


@asynccontextmanager
async def approving(me: Client) -> AsyncIterator[None]:
    """Everything that is proposed is approved."""
    feed = me.proposals()

    async def approve() -> None:
        async for review in feed:
            try:
                await review.approve()
            except (ToolError, RpcError):
                continue

    approved = asyncio.ensure_future(approve())
    try:
        yield
    finally:
        feed.close()
        await approved


async def test_a_resource_is_read_as_text_or_bytes() -> None:
    async with people("ann") as (ann,):
        assert await ann.read("shelf", "notes://all") == "one, two"
        assert await ann.read("shelf", "notes://today") == b"today"
        with pytest.raises(RpcError, match="no resource 'x://y'"):
            await ann.read("shelf", "x://y")


async def test_a_prompt_is_written_as_messages() -> None:
    async with people("ann") as (ann,):
        first, second, third = await ann.prompt("shelf", "review", {"language": "rust"})
        assert first == Message("Review this rust.")
        assert second == Message("Gladly.", "assistant")
        assert third.content["type"] == "image"
        assert await ann.prompt("shelf", "review", {"language": "go"}) != [first]
        assert (await ann.prompt("shelf", "review"))[0] == Message("Review this python.")


async def test_what_is_offered_is_listed() -> None:
    async with people("ann") as (ann,):
        assert [tool.name for tool in await ann.tools("shelf")] == ["add", "fail", "count"]
        assert [resource["uri"] for resource in await ann.resources("shelf")] == ["notes://all"]
        assert [each["uriTemplate"] for each in await ann.resource_templates("shelf")] == ["notes://{name}"]
        assert [prompt["name"] for prompt in await ann.prompts("shelf")] == ["review", "travel"]


async def test_an_argument_is_completed() -> None:
    async with people("ann") as (ann,):
        assert await ann.complete("shelf", "city", "Ber", prompt="travel") == ["Berlin", "Bern"]
        assert await ann.complete("shelf", "name", "x", resource="notes://{name}", given={"a": "b"}) == []
        with pytest.raises(ValueError, match="prompt= or resource="):
            await ann.complete("shelf", "city", "Ber")


async def test_a_misspelt_option_is_an_error_and_never_an_argument_of_the_tool() -> None:
    async with people("ann") as (ann,):
        for use in (ann.call, ann.propose_call, ann.prompt):
            with pytest.raises(TypeError, match="timout_s"):
                await use("shelf", "add", {"a": 2, "b": 3}, timout_s=3)
        with pytest.raises(TypeError, match="arguments are a mapping"):
            await ann.call("shelf", "add", [2, 3])


async def test_what_one_may_only_propose_is_proposed_whatever_the_method() -> None:
    async with people("ann", "bot") as (ann, bot), approving(ann):
        ear = Ear(ann.connection)
        assert await bot.call("shelf", "add", {"a": 2, "b": 3}) == 5
        assert await bot.read("shelf", "notes://all") == "one, two"
        assert (await bot.prompt("shelf", "review"))[1] == Message("Gladly.", "assistant")
        assert await bot.complete("shelf", "city", "Ber", prompt="travel") == ["Berlin", "Bern"]
        proposed = [envelope.content["method"] for envelope in ear.all(Kind.MCP_PROPOSAL)]
        assert proposed == ["tools/call", "resources/read", "prompts/get", "completion/complete"]


async def test_asking_returns_the_result_as_mcp_has_it_either_way() -> None:
    async with people("ann", "bot") as (ann, bot), approving(ann):
        params = {"name": "add", "arguments": {"a": 1, "b": 1}}
        direct = await ann.ask("shelf", "tools/call", params)
        assert direct["structuredContent"] == {"result": 2}
        assert await bot.ask("shelf", "tools/call", params) == direct
        failed = await bot.ask("shelf", "tools/call", {"name": "fail", "arguments": {}})
        assert failed == {"content": [{"type": "text", "text": "no ink"}], "isError": True}
        assert await bot.ask("shelf", "ping") == {}


async def test_the_stages_of_what_is_asked_are_told() -> None:
    async with people("ann", "bot") as (ann, bot):
        told: list[ProposalUpdate] = []
        asking = asyncio.ensure_future(bot.ask("shelf", "ping", on_update=told.append))
        async for review in ann.proposals():
            await review.approve()
            break
        await asking
        assert [str(stage) for stage in told] == [
            "waiting for approval",
            "approved by ann, running",
            "approved by ann, answered by shelf",
        ]
        assert len({stage.proposal_id for stage in told}) == 1


async def test_who_fails_at_being_told_does_not_spoil_what_it_waits_for(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(stage: ProposalUpdate) -> None:
        raise ValueError(str(stage))

    async with people("ann", "bot") as (ann, bot), approving(ann):
        assert await bot.ask("shelf", "ping", on_update=fail) == {}
    assert [record.getMessage() for record in caplog.records] == ["on_update failed"] * 3


async def test_the_progress_of_what_was_approved_is_told_to_who_proposed_it() -> None:
    async with people("ann", "bot") as (ann, bot):
        told: list[tuple[float, float | None, str | None]] = []
        calling = asyncio.ensure_future(
            bot.call("shelf", "count", on_progress=lambda *progress: told.append(progress))
        )
        async for review in ann.proposals():
            assert review.preview().splitlines()[1:] == [
                "  (progress is wanted)",
                "  shelf does not say whether it is destructive",
            ]
            await review.approve()
            break
        await calling
        assert told == [(1, 2, "step 1"), (2, 2, "step 2")]


async def test_what_went_wrong_is_told_apart() -> None:
    async with people("ann", "bot", "nobody") as (ann, bot, nobody):
        with pytest.raises(Absent):
            await bot.ask("shelv", "ping", timeout_s=0.02)
        with pytest.raises(Refused, match="'mcp/request:ping' or 'mcp/proposal:ping'"):
            await nobody.ask("shelf", "ping")
        with pytest.raises(NotFulfilled) as late:
            await bot.ask("shelf", "ping", timeout_s=0.05)
        assert late.value.outcome == TimedOut()
        async with approving(ann):
            with pytest.raises(RpcError) as unknown:
                await bot.ask("shelf", "no/such")
            assert unknown.value.code == -32601
        with pytest.raises(Unanswered):
            await ann.ask("nobody", "ping", timeout_s=0.02)


async def test_a_rejection_is_told_with_its_words() -> None:
    async with people("ann", "bot") as (ann, bot):
        asking = asyncio.ensure_future(bot.read("shelf", "notes://all"))
        async for review in ann.proposals():
            await review.reject("policy", "Notes are private.")
            break
        with pytest.raises(NotFulfilled) as rejected:
            await asking
        assert str(rejected.value) == 'rejected by ann: policy ("Notes are private.")'
        outcome = rejected.value.outcome
        assert isinstance(outcome, Rejected)
        assert (outcome.message, outcome.rejections[0].message) == ("Notes are private.",) * 2


async def test_what_is_no_result_of_mcp_is_an_error_for_who_asks_for_one() -> None:
    async with people("ann", "nobody") as (ann, nobody):

        async def null() -> None:
            async for envelope in nobody.envelopes(Kind.MCP_REQUEST, to_me=True):
                await nobody.send(
                    Kind.MCP_RESPONSE,
                    {"jsonrpc": "2.0", "id": envelope.content["id"], "result": None},
                    to="ann",
                    correlation_id=envelope.id,
                )

        nobody.connection.spawn(null())
        await asyncio.sleep(0)
        assert await ann.request("nobody", "ping") is None
        with pytest.raises(RpcError, match="what 'nobody' answers to ping is no result of MCP"):
            await ann.ask("nobody", "ping")
