"""How long a host waits, what it is told then, and how it hears of the end: also after a restart."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import mcp_types
import pytest
from mcp.shared.exceptions import MCPError
from tests.mcp_bridge.host.stage import GENERATIONS, LEGACY, MAY_PROPOSE, MODERN, ProgressNote, stage

import mew
from mew.mcp_bridge.host.calls.wait import RetryState
from mew.mcp_bridge.host.server import hosting
from mew.mcp_bridge.host.settings import HostSettings

EITHER = pytest.mark.parametrize("mode", GENERATIONS)
READ: dict[str, Any] = {"path": "/a"}
SHORTLY = HostSettings(wait_s=0.1)


async def never(context: Any, params: Any) -> Any:
    """What a host has that can be asked: only such a host is answered `input_required`."""
    raise AssertionError("nobody asks")


async def test_a_host_of_the_first_generation_gets_a_handle_and_asks_for_the_outcome() -> None:
    async with stage(MAY_PROPOSE, SHORTLY) as here:
        host = await here.host(LEGACY)

        pending = await host.call_tool("files__read_file", READ)
        assert not pending.is_error, "it is a state, and no failure"
        assert pending.meta is not None
        assert pending.meta["mew/why"] == "pending"
        handle = pending.meta["mew/handle"]
        assert isinstance(pending.content[0], mcp_types.TextContent)
        assert "waiting for approval by ann" in pending.content[0].text
        assert f'mew_outcome(handle="{handle}")' in pending.content[0].text
        assert "does not run twice" in pending.content[0].text

        waits = await host.call_tool("mew_outcome", {"handle": handle, "wait_seconds": 0})
        await here.ann.review(handle).approve()
        told = await host.call_tool("mew_outcome", {"handle": handle})

        assert waits.structured_content is not None
        assert waits.structured_content["status"] == "open"
        assert not told.is_error
        assert told.content == [mcp_types.TextContent(text="contents of /a")]
        assert told.structured_content is not None
        assert told.structured_content["status"] == "fulfilled"
        assert told.structured_content["by"] == "ann"
        assert told.structured_content["result"]["content"] == [{"type": "text", "text": "contents of /a"}]


async def test_a_host_of_2026_asks_again_by_itself() -> None:
    async with stage(MAY_PROPOSE, SHORTLY) as here, asyncio.TaskGroup() as tasks:
        host = await here.host(MODERN, elicitation_callback=never)
        first = await host.session.call_tool("files__read_file", READ, allow_input_required=True)
        assert isinstance(first, mcp_types.InputRequiredResult)
        assert first.input_requests is None
        state = RetryState.read(first.request_state)

        calling = tasks.create_task(
            host.session.call_tool(
                "files__read_file", READ, request_state=first.request_state, allow_input_required=True
            )
        )
        assert state is not None
        await here.ann.review(state.key).approve()
        result = await calling

        assert isinstance(result, mcp_types.CallToolResult)
        assert result.content == [mcp_types.TextContent(text="contents of /a")]
        assert len(await here.ann.history(kind="mcp/proposal").list()) == 1, "it was proposed once"


@pytest.mark.slow
async def test_a_host_of_2026_that_may_be_about_to_stop_asking_gets_a_handle() -> None:
    async with stage(MAY_PROPOSE, HostSettings(wait_s=0.01)) as here:
        host = await here.host(MODERN)

        pending = await host.call_tool("files__read_file", READ)

        assert pending.meta is not None
        assert pending.meta["mew/why"] == "pending"
        handle = pending.meta["mew/handle"]
        await here.ann.review(handle).reject("unsafe")
        async with asyncio.timeout(5):
            while not (told := await host.call_tool("mew_outcome", {"handle": handle})).is_error:
                pass
        assert told.structured_content is not None
        assert told.structured_content["status"] == "withdrawn"
        assert told.structured_content["outcome"] == "rejected"


@pytest.mark.slow
@EITHER
async def test_a_proposal_outlives_the_host_and_a_restart_hears_of_its_end(mode: str) -> None:
    async with stage(MAY_PROPOSE, SHORTLY) as here:
        host = await here.host(LEGACY)
        pending = await host.call_tool("files__read_file", READ)
        assert pending.meta is not None
        handle = pending.meta["mew/handle"]
        await here.me.connection.leave()

        assert here.ann.review(handle).open, "it stays in the space"
        await here.ann.review(handle).approve()
        async with here.space.connect("host") as again, hosting(again, SHORTLY) as here.server:
            restarted = await here.host(mode)
            told = await restarted.call_tool("mew_outcome", {"handle": handle})

            assert told.content == [mcp_types.TextContent(text="contents of /a")]
            assert told.structured_content is not None
            assert told.structured_content["status"] == "fulfilled"


@pytest.mark.slow
@pytest.mark.parametrize("why", ["rejected", "its time is over"])
async def test_what_was_rejected_or_is_over_by_a_restart_is_withdrawn(why: str) -> None:
    later = replace(SHORTLY, open_s=0.05) if why == "its time is over" else SHORTLY
    async with stage(MAY_PROPOSE, SHORTLY) as here:
        host = await here.host(LEGACY)
        pending = await host.call_tool("files__read_file", READ)
        assert pending.meta is not None
        handle = pending.meta["mew/handle"]
        await here.me.connection.leave()
        if why == "rejected":
            await here.ann.review(handle).reject("unsafe")
        async with (
            here.ann.envelopes("mcp/withdraw") as withdrawn,
            here.space.connect("host", recall=100) as again,
            hosting(again, later),
            asyncio.timeout(5),
        ):
            assert (await anext(withdrawn)).correlation_id == (handle,)
        assert not here.ann.review(handle).open


@pytest.mark.slow
async def test_a_host_of_2026_may_ask_again_after_a_restart() -> None:
    async with stage(MAY_PROPOSE, SHORTLY) as here:
        host = await here.host(MODERN, elicitation_callback=never)
        first = await host.session.call_tool("files__read_file", READ, allow_input_required=True)
        assert isinstance(first, mcp_types.InputRequiredResult)
        state = RetryState.read(first.request_state)
        assert state is not None
        await here.me.connection.leave()
        await here.ann.review(state.key).approve()

        async with here.space.connect("host") as again, hosting(again, SHORTLY) as here.server:
            restarted = await here.host(MODERN, elicitation_callback=never)
            result = await restarted.session.call_tool(
                "files__read_file", READ, request_state=first.request_state, allow_input_required=True
            )

            assert isinstance(result, mcp_types.CallToolResult)
            assert result.content == [mcp_types.TextContent(text="contents of /a")]


@EITHER
async def test_a_host_that_is_just_gone_withdraws_nothing(mode: str) -> None:
    async with stage(MAY_PROPOSE) as here, asyncio.TaskGroup() as tasks:
        async with AsyncExitStack() as here.stack:
            host = await here.host(mode)
            calling = tasks.create_task(_ended(host.call_tool("files__read_file", READ)))
            review = await here.reviewing()
        await calling
        await here.me.chat("what the host would say comes before this")

        assert review.open
        assert await here.ann.history(kind="mcp/withdraw").list() == []


async def test_a_state_of_another_call_is_refused() -> None:
    async with stage(MAY_PROPOSE, SHORTLY) as here:
        host = await here.host(MODERN, elicitation_callback=never)
        first = await host.session.call_tool("files__read_file", READ, allow_input_required=True)
        assert isinstance(first, mcp_types.InputRequiredResult)

        for name, arguments in (("files__read_file", {"path": "/b"}), ("files__add", {"a": 1, "b": 2})):
            with pytest.raises(MCPError, match="of another call"):
                await host.session.call_tool(
                    name, arguments, request_state=first.request_state, allow_input_required=True
                )


async def test_a_state_that_leads_nowhere_says_so_and_makes_no_second_call() -> None:
    async with stage(MAY_PROPOSE, SHORTLY) as here:
        host = await here.host(MODERN)

        for state in ("1.p.nothing", "1.c.nothing", "nothing", ""):
            with pytest.raises(MCPError) as raised:
                await host.session.call_tool(
                    "files__read_file", READ, request_state=state, allow_input_required=True
                )
            assert raised.value.error.data["mew/why"] == "lost"
        assert await here.ann.history(kind="mcp/proposal").list() == []


async def test_an_approved_call_that_runs_long_is_pending_too() -> None:
    slow = mew.Participant("slow")
    go_on = asyncio.Event()

    @slow.tool
    async def sleep() -> str:
        await go_on.wait()
        return "slept"

    async with stage(MAY_PROPOSE, SHORTLY, (slow, "slow")) as here, asyncio.TaskGroup() as tasks:
        host = await here.host(LEGACY)
        pending = await host.call_tool("slow__sleep", {})
        assert pending.meta is not None
        handle = pending.meta["mew/handle"]
        tasks.create_task(_approved(here.ann.review(handle)))
        progress = ProgressNote()
        asking = tasks.create_task(
            host.call_tool("mew_outcome", {"handle": handle}, progress_callback=progress)
        )
        running = await asking
        go_on.set()
        told = await host.call_tool("mew_outcome", {"handle": handle})

        assert running.structured_content is not None
        assert running.structured_content["status"] in ("open", "approved")
        assert told.content == [mcp_types.TextContent(text="slept")]


async def test_a_host_that_hears_progress_waits_for_what_runs_longer_than_it_is_kept() -> None:
    slow = mew.Participant("slow")
    go_on = asyncio.Event()

    @slow.tool
    async def sleep() -> str:
        await go_on.wait()
        return "slept"

    async with stage(MAY_PROPOSE, SHORTLY, (slow, "slow")) as here, asyncio.TaskGroup() as tasks:
        host, progress = await here.host(LEGACY), ProgressNote()
        pending = await host.call_tool("slow__sleep", {})
        assert pending.meta is not None
        handle = pending.meta["mew/handle"]
        tasks.create_task(_approved(here.ann.review(handle)))
        async with asyncio.timeout(5):
            while "approved by" not in str(await host.call_tool("mew_outcome", {"handle": handle})):
                pass
        calling = tasks.create_task(host.call_tool("slow__sleep", {}, progress_callback=progress))
        await progress.tells("approved by ann")
        asyncio.get_running_loop().call_later(3 * SHORTLY.wait_s, go_on.set)
        told = await calling
        assert not told.is_error
        assert told.content[0] == mcp_types.TextContent(text="slept")


def test_a_state_is_read_as_it_was_written_and_nothing_else_is() -> None:
    state = RetryState(3, "a.b.c", is_proposal=True)

    assert RetryState.read(str(state)) == state
    for wrong in (None, 7, "", "p.x", "1.x.y", "1.p.", "١.p.x", "99999.p.x"):
        assert RetryState.read(wrong) is None


async def _approved(review: mew.Review) -> None:
    await review.approve()


async def _ended(asked: Any) -> None:
    with pytest.raises(MCPError):
        await asked
