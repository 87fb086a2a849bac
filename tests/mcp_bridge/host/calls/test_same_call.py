"""A call that a host makes again, because it gave up waiting, is the one it made before: nothing runs twice."""

import asyncio
from dataclasses import replace
from typing import Any

import mcp_types
import pytest
from mcp.shared.exceptions import MCPError
from tests.mcp_bridge.host.stage import GENERATIONS, LEGACY, MAY_PROPOSE, ProgressNote, Stage, stage

from mew.client.errors import AlreadyDecided
from mew.mcp_bridge.host.server import hosting
from mew.mcp_bridge.host.settings import HostSettings
from mew.mcp_bridge.host_profiles import ProfileName, detect_profile, profile_of
from mew.protocol.envelope import Envelope

EITHER = pytest.mark.parametrize("mode", GENERATIONS)
READ: dict[str, Any] = {"path": "/a"}
CONTENTS = mcp_types.TextContent(text="contents of /a")
SHORTLY = HostSettings(wait_s=0.1)


async def proposed(here: Stage) -> int:
    return len(await here.ann.history(kind="mcp/proposal").list())


@EITHER
async def test_the_same_call_while_the_first_waits_joins_it(mode: str) -> None:
    async with stage(MAY_PROPOSE, SHORTLY) as here:
        host = await here.host(mode)
        first = await host.call_tool("files__read_file", READ)
        second = await host.call_tool("files__read_file", READ)
        assert first.meta is not None
        assert second.meta is not None
        assert first.meta["mew/handle"] == second.meta["mew/handle"]
        await here.ann.review(first.meta["mew/handle"]).approve()

        told = await host.call_tool("files__read_file", READ)

        assert told.content[0] == CONTENTS
        assert told.meta is not None
        assert told.meta["mew/joined"] == first.meta["mew/handle"]
        assert await proposed(here) == 1


async def test_other_arguments_are_another_call() -> None:
    async with stage(MAY_PROPOSE, SHORTLY) as here:
        host = await here.host(LEGACY)
        await host.call_tool("files__read_file", READ)
        await host.call_tool("files__read_file", {"path": "/b"})
        assert await proposed(here) == 2


async def test_a_call_after_the_first_was_answered_is_a_new_one() -> None:
    async with stage(MAY_PROPOSE) as here, asyncio.TaskGroup() as tasks:
        host = await here.host(LEGACY)
        for count in (1, 2):
            calling = tasks.create_task(host.call_tool("files__read_file", READ))
            await (await here.reviewing()).approve()
            assert (await calling).content == [CONTENTS]
            assert await proposed(here) == count


@EITHER
async def test_a_host_that_timed_out_finds_its_call_again(mode: str) -> None:
    async with stage(MAY_PROPOSE) as here, asyncio.TaskGroup() as tasks:
        host = await here.host(mode)
        with pytest.raises(MCPError, match="timed out"):
            await host.session.call_tool("files__read_file", READ, read_timeout_seconds=0.2)
        review = await here.reviewing()
        again = tasks.create_task(host.call_tool("files__read_file", READ))
        await review.approve()
        assert (await again).content[0] == CONTENTS
        assert await proposed(here) == 1
        assert await here.ann.history(kind="mcp/withdraw").list() == []


async def test_what_a_host_that_timed_out_does_not_ask_for_again_is_withdrawn() -> None:
    async with stage(MAY_PROPOSE, HostSettings(abandon_s=0.05)) as here:
        host = await here.host(LEGACY)
        withdrawn: asyncio.Future[Envelope] = asyncio.get_running_loop().create_future()
        here.ann.connection.listen(
            lambda envelope, _: None if withdrawn.done() else withdrawn.set_result(envelope),
            ("mcp/withdraw",),
        )
        with pytest.raises(MCPError, match="timed out"):
            await host.session.call_tool("files__read_file", READ, read_timeout_seconds=0.2)
        async with asyncio.timeout(5):
            envelope = await withdrawn
        assert envelope.content["reason"] == "host_gone"


async def test_what_a_gone_host_called_runs_only_if_the_reviewer_says_so() -> None:
    async with stage(MAY_PROPOSE, HostSettings(abandon_s=0.0)) as here:
        host = await here.host(LEGACY)
        async with here.ann.envelopes("mcp/withdraw") as withdrawn, asyncio.timeout(5):
            with pytest.raises(MCPError, match="timed out"):
                await host.session.call_tool("files__read_file", READ, read_timeout_seconds=0.2)
            handle = (await anext(withdrawn)).correlation_id[0]
        review = here.ann.review(handle)
        with pytest.raises(AlreadyDecided, match="withdrawn by host"):
            await review.approve()
        assert await review.approve(anyway=True) == "contents of /a"


async def test_the_same_call_after_a_restart_joins_what_was_proposed_before() -> None:
    async with stage(MAY_PROPOSE, SHORTLY) as here:
        host = await here.host(LEGACY)
        await host.call_tool("files__read_file", READ)
        await here.me.connection.leave()
        later = replace(SHORTLY, wait_s=5.0)
        async with here.space.connect("host", recall=100) as again, hosting(again, later) as here.server:
            restarted = await here.host(LEGACY)
            async with asyncio.TaskGroup() as tasks:
                progress = ProgressNote()
                calling = tasks.create_task(
                    restarted.call_tool("files__read_file", READ, progress_callback=progress)
                )
                await progress.tells("waiting for approval")
                await (await here.reviewing()).approve()
            assert calling.result().content[0] == CONTENTS
            assert await proposed(here) == 1


def test_a_nameless_client_of_2026_is_answered_before_it_gives_up() -> None:
    nameless = detect_profile("mcp", is_modern=True, can_be_asked=False, has_progress=False)
    assert nameless == profile_of(ProfileName.OPENAI_AGENTS)
    assert not nameless.retries
    assert detect_profile("mcp", is_modern=True, can_be_asked=True, has_progress=False).retries
    assert detect_profile("mcp", is_modern=False, can_be_asked=False, has_progress=False).wait_s > 50
    assert profile_of(ProfileName.CLAUDE_CODE).wait_s > 50
