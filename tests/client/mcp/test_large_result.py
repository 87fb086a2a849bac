"""Results that are too large for an envelope, over streams in a real space (decision 0010, 7)."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from tests.client.ear import Ear

from mew.client.client import Client
from mew.client.errors import RpcError, StreamBroken, ToolError
from mew.client.mcp.large_result import ENVELOPE_BYTES_MAX, PARCEL_BYTES_MAX, large_result_in
from mew.client.mcp.results import ToolResult
from mew.client.participant.participant import Participant
from mew.client.proposals.outcomes import Fulfilled
from mew.protocol.json import encode_json
from mew.protocol.kinds import Kind
from mew.testing import Space

WHO: dict[str, list[Any]] = {
    "ann": ["*"],
    "eve": ["*"],
    "bot": ["chat", "mcp/proposal", "mcp/withdraw", "stream/ack"],
    "disk": ["stream/request", "stream/close"],
    "plain": [],
}
MIB = 1 << 20


def disk() -> Participant:
    offered = Participant("disk")

    @offered.tool
    async def read(size: int) -> str:
        return "x" * size

    @offered.tool
    async def fail(size: int) -> str:
        raise ToolError("y" * size)

    @offered.tool
    async def forge(stream_id: str) -> ToolResult:
        return ToolResult(
            content="small", meta={"mew/stream": {"stream_id": stream_id, "size": 1, "sha256": "0" * 64}}
        )

    @offered.resource("disk://all")
    async def everything() -> bytes:
        return bytes(2 * MIB)

    return offered


@asynccontextmanager
async def people(*names: str, who: str = "disk") -> AsyncIterator[tuple[Any, ...]]:
    async with asyncio.timeout(10), Space(WHO) as space, AsyncExitStack() as stack:
        served = await stack.enter_async_context(space.serving(disk(), who))
        yield space, served, *[await stack.enter_async_context(space.connect(name)) for name in names]


@pytest.mark.parametrize("size", [ENVELOPE_BYTES_MAX, 3 * MIB, 10 * MIB])
async def test_a_large_result_is_returned_as_if_nothing_had_happened(size: int) -> None:
    async with people("ann", "eve") as (_, _, ann, eve):
        ear = Ear(eve.connection)
        assert await ann.call("disk", "read", {"size": size}) == "x" * size
        seen = (await ear.hears(Kind.MCP_RESPONSE))["result"]
        parcel = large_result_in(seen)
        assert parcel is not None
        assert seen["content"][0]["text"].startswith("The result has ")
        assert parcel.stream_id in seen["content"][0]["text"]
        assert len(encode_json(seen)) < 1_000
        opened = await ear.hears(Kind.STREAM_OPEN)
        assert opened["target"] == ["ann"]
        assert opened["description"] == "result of tools/call"
        await ear.hears(Kind.STREAM_CLOSE)


async def test_a_result_that_fits_goes_in_an_envelope() -> None:
    async with people("ann") as (_, _, ann):
        ear = Ear(ann.connection)
        assert len(await ann.call("disk", "read", {"size": 200_000})) == 200_000
        assert not ear.all(Kind.STREAM_OPEN)


async def test_any_method_may_have_a_large_result() -> None:
    async with people("ann") as (_, _, ann):
        ear = Ear(ann.connection)
        assert await ann.read("disk", "disk://all") == bytes(2 * MIB)
        assert (await ear.hears(Kind.MCP_RESPONSE))["result"].keys() == {"_meta"}


async def test_several_large_results_at_a_time_are_not_confused() -> None:
    async with people("ann") as (_, _, ann):
        sizes = [MIB + number for number in range(8)]
        results = await asyncio.gather(*(ann.call("disk", "read", {"size": size}) for size in sizes))
        assert [len(result) for result in results] == sizes


async def test_a_stream_that_brings_a_result_is_not_among_those_that_come() -> None:
    async with people("ann") as (_, _, ann):
        incoming = ann.streams.incoming()
        await ann.call("disk", "read", {"size": MIB})
        assert len(incoming) == 0


async def test_that_a_tool_failed_is_seen_by_all() -> None:
    async with people("ann", "eve") as (_, _, ann, eve):
        ear = Ear(eve.connection)
        with pytest.raises(ToolError) as failed:
            await ann.call("disk", "fail", {"size": MIB})
        assert len(str(failed.value)) == MIB
        assert (await ear.hears(Kind.MCP_RESPONSE))["result"]["isError"] is True


async def test_who_approves_and_who_proposed_both_get_all_of_it() -> None:
    async with people("ann", "bot", "eve") as (_, _, ann, bot, eve):
        ear = Ear(eve.connection)
        proposal = await bot.propose_call("disk", "read", {"size": 5 * MIB})
        async for review in ann.proposals():
            assert len(await review.approve()) == 5 * MIB
            break
        outcome = await proposal
        assert isinstance(outcome, Fulfilled)
        assert outcome.result["content"][0]["text"] == "x" * (5 * MIB)
        assert len(await proposal.value()) == 5 * MIB
        assert (await ear.hears(Kind.STREAM_OPEN))["target"] == ["ann", "bot"]


async def test_a_proposal_made_before_the_one_who_does_it_came_is_found_again() -> None:
    async with (
        asyncio.timeout(10),
        Space(WHO) as space,
        space.connect("ann") as ann,
        space.connect("bot") as bot,
    ):
        proposal = await bot.propose_call("disk", "read", {"size": MIB})
        async with space.serving(disk(), "disk"):
            await ann.review(proposal.id).approve()
            assert len(await proposal.value()) == MIB


async def test_a_proposal_that_is_followed_again_has_what_is_kept_of_its_result() -> None:
    async with people("ann") as (space, _, ann):
        async with space.connect("bot") as bot:
            id = (await bot.propose_call("disk", "read", {"size": MIB})).id
        async for review in ann.proposals():
            await review.approve()
            break
        async with space.connect("bot") as bot:
            proposal = await bot.proposal(id)
            outcome = await proposal
            assert isinstance(outcome, Fulfilled)
            assert "comes over stream" in outcome.result["content"][0]["text"]
            with pytest.raises(StreamBroken, match="which is kept nowhere"):
                await proposal.value()


async def test_without_the_capability_it_is_an_error_that_names_it() -> None:
    async with people("ann", who="plain") as (_, _, ann):
        assert len(await ann.call("plain", "read", {"size": 700_000})) == 700_000
        with pytest.raises(RpcError) as refused:
            await ann.call("plain", "read", {"size": 2 * MIB})
        assert str(refused.value) == (
            "the result has 2.0 MiB, too large for an envelope; "
            "with the capability 'stream/*' 'plain' could send it over a stream (-32000)"
        )
        assert refused.value.data == {"size": 2 * MIB + 39}


async def test_there_is_an_end_to_how_large_a_result_may_be() -> None:
    async with people("ann") as (_, _, ann):
        with pytest.raises(RpcError, match=r"at most 64\.0 MiB are sent: ask for less"):
            await ann.call("disk", "read", {"size": PARCEL_BYTES_MAX})


async def test_a_mark_is_ours_to_set() -> None:
    async with people("ann") as (_, _, ann):
        assert await ann.call("disk", "forge", {"stream_id": "s1"}) == "small"


# A sender that does not keep its word.


@asynccontextmanager
async def announcing(
    eve: Client, *, size: int, sha256: str, data: bytes, owner: Client | None = None, reason: str = "complete"
) -> AsyncIterator[None]:
    """Eve answers everything with the announcement of a stream."""

    async def answer() -> None:
        async for envelope in eve.envelopes(Kind.MCP_REQUEST, to_me=True):
            stream = await (owner or eve).streams.open(target=[envelope.sender])
            parcel = {"stream_id": stream.id, "size": size, "sha256": sha256}
            said = {
                "jsonrpc": "2.0",
                "id": envelope.content["id"],
                "result": {"_meta": {"mew/stream": parcel}},
            }
            await eve.send(Kind.MCP_RESPONSE, said, to=envelope.sender, correlation_id=envelope.id)
            await stream.write(data)
            await stream.close(reason)

    answering = asyncio.ensure_future(answer())
    await asyncio.sleep(0)
    yield
    answering.cancel()


WHOLE = b'{"ok":1}'
DIGEST = hashlib.sha256(WHOLE).hexdigest()


async def test_a_result_is_put_together_from_what_was_announced() -> None:
    async with people("ann", "eve") as (_, _, ann, eve), announcing(eve, size=8, sha256=DIGEST, data=WHOLE):
        assert await ann.ask("eve", "x") == {"ok": 1}


@pytest.mark.parametrize(
    ("size", "sha256", "data", "why"),
    [
        (9, DIGEST, WHOLE, r"8 arrived \(the stream was closed: complete\)"),
        (4, DIGEST, WHOLE, "8 arrived"),
        (8, "0" * 64, WHOLE, "another checksum"),
        (1, hashlib.sha256(b"{").hexdigest(), b"{", "it is no JSON"),
    ],
)
async def test_what_is_not_what_was_announced_is_one_clear_error(
    size: int, sha256: str, data: bytes, why: str
) -> None:
    async with people("ann", "eve") as (_, _, ann, eve), announcing(eve, size=size, sha256=sha256, data=data):
        with pytest.raises(StreamBroken, match=rf"the result, of {size} bytes, did not arrive .*{why}"):
            await ann.request("eve", "x")


async def test_anothers_stream_does_not_bring_a_result() -> None:
    async with (
        people("ann", "eve") as (_, disks, ann, eve),
        announcing(eve, size=8, sha256=DIGEST, data=WHOLE, owner=disks),
    ):
        with pytest.raises(StreamBroken, match="there is no such stream of theirs for us"):
            await ann.request("eve", "x")


async def test_a_sender_that_is_lost_on_the_way_is_an_error() -> None:
    async with people("ann") as (space, _, ann):
        async with space.connect("eve") as eve:
            calling = asyncio.ensure_future(ann.request("eve", "x", timeout_s=9))
            ear = Ear(eve.connection)
            request = await ear.hears_of(Kind.MCP_REQUEST)
            stream = await eve.streams.open(target=["ann"])
            parcel = {"stream_id": stream.id, "size": 8, "sha256": DIGEST}
            said = {
                "jsonrpc": "2.0",
                "id": request.content["id"],
                "result": {"_meta": {"mew/stream": parcel}},
            }
            await eve.send(Kind.MCP_RESPONSE, said, to="ann", correlation_id=request.id)
            await stream.write(WHOLE[:4])
        with pytest.raises(StreamBroken, match=r"4 arrived \(the stream was closed: owner_left\)"):
            await calling
