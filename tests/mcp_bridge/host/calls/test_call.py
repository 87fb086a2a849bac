"""Every end that a call can have, as the host is told it."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import mcp_types
import pytest
from mcp.shared.exceptions import MCPError
from tests.client.ear import settled
from tests.mcp_bridge.host.stage import (
    GENERATIONS,
    LEGACY,
    MAY_PROPOSE,
    Heard,
    ProgressNote,
    files,
    stage,
)

import mew
from mew.audit.record.subjects import summarize
from mew.mcp_bridge.host.settings import HostSettings
from mew.protocol.envelope import Envelope
from mew.protocol.kinds import Kind

EITHER = pytest.mark.parametrize("mode", GENERATIONS)
READ: dict[str, Any] = {"path": "/a"}


def text(result: mcp_types.CallToolResult) -> str:
    return " ".join(block.text for block in result.content if isinstance(block, mcp_types.TextContent))


def why(result: mcp_types.CallToolResult) -> Any:
    return (result.meta or {}).get("mew/why")


@EITHER
async def test_what_may_only_be_proposed_is_proposed_and_waited_for(mode: str) -> None:
    async with stage(MAY_PROPOSE) as here, asyncio.TaskGroup() as tasks:
        host = await here.host(mode)
        progress = ProgressNote()
        calling = tasks.create_task(host.call_tool("files__read_file", READ, progress_callback=progress))
        review = await here.reviewing()
        await progress.tells("waiting for approval by ann")
        assert review.arguments == READ
        await review.approve()
        result = await calling

        assert text(result) == "contents of /a"
        assert not result.is_error
        assert "approved by ann, running" in progress.messages
        assert result.meta is not None
        assert result.meta["mew/origin"] == {"participant": "files", "space": "demo"}
        assert result.meta["mew/approval"]["by"] == "ann"


@EITHER
async def test_a_rejection_is_a_tool_error_with_who_why_and_what_they_said(mode: str) -> None:
    async with stage(MAY_PROPOSE) as here, asyncio.TaskGroup() as tasks:
        host = await here.host(mode)
        calling = tasks.create_task(host.call_tool("files__read_file", READ))
        review = await here.reviewing()
        await review.reject("policy", "not on a Monday")
        result = await calling

        assert result.is_error
        assert why(result) == "rejected"
        assert text(result) == "ann rejected this call (policy): not on a Monday. It was not carried out."
        assert result.meta is not None
        assert (result.meta["mew/by"], result.meta["mew/reason"]) == ("ann", "policy")


@EITHER
async def test_fifty_rejections_reach_the_model_and_the_record_with_their_words(mode: str) -> None:
    async with stage(MAY_PROPOSE) as here, asyncio.TaskGroup() as tasks:
        host = await here.host(mode)
        recorded: list[str] = []

        def listen(envelope: Envelope, _: Any) -> None:
            recorded.append(summarize(envelope).note)

        here.ann.connection.listen(listen, [Kind.MCP_REJECT])
        calls = {
            n: tasks.create_task(host.call_tool("files__read_file", {"path": f"/{n}"})) for n in range(50)
        }
        reviews = here.ann.proposals()
        for _ in range(50):
            review = await anext(reviews)
            await review.reject("policy", f"Not file {review.arguments['path']}, please")
        for n, call in calls.items():
            result = await call
            assert result.is_error
            assert text(result) == (
                f"ann rejected this call (policy): Not file /{n}, please. It was not carried out."
            )
            assert result.meta is not None
            assert result.meta["mew/message"] == f"Not file /{n}, please"
        assert sorted(recorded) == sorted(f"policy: Not file /{n}, please" for n in range(50))


@EITHER
async def test_a_deadline_is_in_the_proposal_itself(mode: str) -> None:
    async with stage(MAY_PROPOSE, settings=HostSettings(open_s=90)) as here, asyncio.TaskGroup() as tasks:
        host = await here.host(mode)
        calling = tasks.create_task(host.call_tool("files__read_file", READ))
        review = await here.reviewing()
        assert review.expires_at is not None
        await review.reject()
        await calling


@EITHER
async def test_what_nobody_decided_in_time_is_not_rejected(mode: str) -> None:
    async with stage(MAY_PROPOSE, HostSettings(open_s=0.1)) as here:
        host = await here.host(mode)

        result = await host.call_tool("files__read_file", READ)

        assert result.is_error
        assert why(result) == "timed_out"
        assert "which is not a no" in text(result)


@EITHER
async def test_a_call_that_was_withdrawn_says_so(mode: str) -> None:
    async with stage(MAY_PROPOSE) as here, asyncio.TaskGroup() as tasks:
        host = await here.host(mode)
        calling = tasks.create_task(host.call_tool("files__read_file", READ))
        review = await here.reviewing()
        await host.call_tool("mew_withdraw", {"handle": review.id, "reason": "found it"})
        result = await calling

        assert result.is_error
        assert why(result) == "withdrawn"
        assert "found it" in text(result)


@EITHER
async def test_what_a_reviewer_changed_is_what_runs_and_the_host_is_told(mode: str) -> None:
    async with stage(MAY_PROPOSE) as here, asyncio.TaskGroup() as tasks:
        host = await here.host(mode)
        calling = tasks.create_task(host.call_tool("files__read_file", READ))
        review = await here.reviewing()
        await review.approve({"path": "/b"})
        result = await calling

        assert text(result) == (
            'contents of /b [ann changed the call before approving it: path from "/a" to "/b"]'
        )
        assert result.meta is not None
        assert result.meta["mew/edited"] == {
            "by": "ann",
            "changes": [{"path": "$.params.arguments.path", "from": "/a", "to": "/b"}],
        }


@EITHER
async def test_a_tool_that_fails_gives_its_own_error(mode: str) -> None:
    async with stage(["*"]) as here:
        host = await here.host(mode)

        result = await host.call_tool("files__fail", {})

        assert result.is_error
        assert text(result) == "no such file"
        assert why(result) is None, "it is the tool's, not ours"


@EITHER
async def test_a_tool_that_is_not_there_is_told_apart_from_arguments_that_do_not_fit(mode: str) -> None:
    async with stage(["*"]) as here:
        host = await here.host(mode)
        await host.list_tools()

        with pytest.raises(MCPError) as not_listed:
            await host.call_tool("files__reed_file", {})
        with pytest.raises(MCPError) as no_name:
            await host.call_tool("reed_file", {})
        with pytest.raises(MCPError) as mismatch:
            await host.call_tool("files__read_file", {"path": 7})

        assert not_listed.value.error.data["mew/why"] == "no_such_tool"
        assert no_name.value.error.data["mew/why"] == "no_such_tool"
        assert mismatch.value.error.data["mew/why"] == "schema_mismatch"
        codes = {it.value.error.code for it in (not_listed, no_name, mismatch)}
        assert codes == {mcp_types.INVALID_PARAMS}


@EITHER
async def test_nobody_is_asked_to_approve_a_tool_that_is_not_there(mode: str) -> None:
    async with stage(MAY_PROPOSE) as here:
        host = await here.host(mode)
        await host.list_tools()

        with pytest.raises(MCPError) as not_listed:
            await host.call_tool("files__reed_file", {})

        assert not_listed.value.error.data["mew/why"] == "no_such_tool"
        assert "did you mean 'files__read_file'" in not_listed.value.error.message
        assert await here.ann.history(kind="mcp/proposal").list() == []


@EITHER
async def test_arguments_that_do_not_fit_are_proposed_with_a_mark_for_the_reviewer(mode: str) -> None:
    async with stage(MAY_PROPOSE) as here, asyncio.TaskGroup() as tasks:
        host = await here.host(mode)
        await host.list_tools()
        marked = tasks.create_task(host.call_tool("files__read_file", {"path": 7}))
        review = await here.reviewing()
        fit = "The call does not match the tool's schema: path: 7 is not of type 'string'"
        assert review.record.why == fit
        assert "does not match" in review.preview()
        await review.reject()
        await marked
        tolerated = tasks.create_task(host.call_tool("files__add", {"a": "1", "b": 2}))
        review = await here.reviewing()
        assert review.record.why is None
        await review.reject()
        await tolerated


@EITHER
async def test_a_participant_that_is_not_here_is_not_one_that_says_no(mode: str) -> None:
    async with stage(MAY_PROPOSE) as here:
        host = await here.host(mode)

        result = await host.call_tool("late__read_file", {})

        assert why(result) == "absent"
        assert "late is not in the space now" in text(result)


@EITHER
async def test_a_tool_that_does_not_answer_in_time_is_told_apart(mode: str) -> None:
    slow = mew.Participant("slow")

    @slow.tool
    async def sleep() -> None:
        await asyncio.Event().wait()

    async with stage(["*"], HostSettings(call_s=0.2), (slow, "slow")) as here:
        host = await here.host(mode)

        result = await host.call_tool("slow__sleep", {})

        assert why(result) == "timeout"
        assert "It may have been carried out" in text(result)


@EITHER
async def test_a_server_that_died_behind_its_bridge_is_told_apart(mode: str) -> None:
    bridge = mew.Participant("bridge")

    @bridge.tool
    def read() -> None:
        raise mew.RpcError(-32000, "the server ended", {"mew": {"why": "server_died"}})

    async with stage(["*"], None, (bridge, "bridge")) as here:
        host = await here.host(mode)

        result = await host.call_tool("bridge__read", {})

        assert result.is_error
        assert why(result) == "server_died"
        assert text(result) == "bridge could not carry this out: the server ended"


@EITHER
async def test_a_json_rpc_error_of_a_server_stays_one(mode: str) -> None:
    odd = mew.Participant("odd")

    @odd.tool
    def odd_one() -> None:
        raise mew.RpcError(-31999, "odd", {"their": "own"})

    async with stage(["*"], None, (odd, "odd")) as here:
        host = await here.host(mode)

        with pytest.raises(MCPError) as raised:
            await host.call_tool("odd__odd_one", {})

        error = raised.value.error
        assert (error.code, error.message) == (-31999, "odd")
        assert error.data["their"] == "own"
        assert error.data["mew/why"] == "failed"


async def test_what_may_neither_be_made_nor_proposed_says_what_is_lacking() -> None:
    async with stage(["mcp/request:*/list", "mcp/request:tools/call:add"]) as here:
        host = await here.host(LEGACY)
        await host.list_tools()

        result = await host.call_tool("files__read_file", READ)

        assert why(result) == "refused"
        assert "mcp/request:tools/call:read_file" in text(result)


async def test_arguments_are_passed_exactly_as_the_host_sent_them() -> None:
    async with stage(["*"]) as here:
        host = await here.host(LEGACY)
        await host.list_tools()
        arguments = {"path": "ä\u2028", "more": [1, 2.5, None, {"deep": [True]}]}
        meta: Any = {"vendor/id": "7"}

        with pytest.raises(MCPError):
            await host.call_tool("files__read_file", arguments, meta=meta)

        asked = await here.ann.history(kind="mcp/request", participant="host", newest_first=True).list()
        params = next(it.content["params"] for it in asked if it.content["method"] == "tools/call")
        assert params == {"name": "read_file", "arguments": arguments, "_meta": meta}


@EITHER
async def test_a_tools_own_progress_is_told_whether_it_was_called_or_approved(mode: str) -> None:
    worker = mew.Participant("worker")

    @worker.tool
    async def work(call: mew.Call) -> str:
        await call.progress(1, 2, "half way")
        return "done"

    held = [*MAY_PROPOSE]
    async with stage(held, None, (worker, "worker")) as here, asyncio.TaskGroup() as tasks:
        host = await here.host(mode)
        proposed, made = ProgressNote(), ProgressNote()
        calling = tasks.create_task(host.call_tool("worker__work", {}, progress_callback=proposed))
        review = await here.reviewing()
        await review.approve()
        await calling
        await here.ann.grant("host", "mcp/request:tools/call:*")
        await host.call_tool("worker__work", {}, progress_callback=made)
        await proposed.tells("half way")
        await made.tells("half way")

        assert (1, 2, "half way") in proposed.told
        assert (1, 2, "half way") in made.told
        done = [told[0] for told in proposed.told]
        assert done == sorted(set(done)), "it only goes forward"


@EITHER
async def test_a_host_that_cancels_withdraws_what_it_proposed(mode: str) -> None:
    async with stage(MAY_PROPOSE) as here, asyncio.TaskGroup() as tasks:
        host = await here.host(mode)
        withdrawn = here.ann.envelopes("mcp/withdraw")
        calling = tasks.create_task(host.call_tool("files__read_file", READ))
        review = await here.reviewing()
        calling.cancel()
        async with asyncio.timeout(5):
            envelope = await anext(withdrawn)

        assert envelope.correlation_id == (review.id,)
        assert envelope.content["reason"] == "cancelled by the host"


@EITHER
async def test_a_host_that_cancels_cancels_what_runs(mode: str) -> None:
    slow = mew.Participant("slow")
    begun, ended = asyncio.Event(), asyncio.Event()

    @slow.tool
    async def sleep() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with stage(["*"], None, (slow, "slow")) as here, asyncio.TaskGroup() as tasks:
        host = await here.host(mode)
        calling = tasks.create_task(host.call_tool("slow__sleep", {}))
        async with asyncio.timeout(5):
            await begun.wait()
            calling.cancel()
            await ended.wait()


@pytest.mark.slow
@EITHER
async def test_a_large_result_arrives_whole_whether_it_was_called_or_approved(mode: str) -> None:
    large = mew.Participant("large")

    @large.tool
    def give() -> str:
        return "x" * 1_500_000

    async with stage(MAY_PROPOSE, None, (large, "large")) as here, asyncio.TaskGroup() as tasks:
        host = await here.host(mode)
        calling = tasks.create_task(host.call_tool("large__give", {}))
        await (await here.reviewing()).approve()
        approved = await calling
        await here.ann.grant("host", "mcp/request:tools/call:*")
        made = await host.call_tool("large__give", {})

        assert len(text(approved)) == len(text(made)) == 1_500_000


@EITHER
async def test_a_resource_that_may_only_be_read_by_approval_waits_too(mode: str) -> None:
    async with stage(MAY_PROPOSE) as here, asyncio.TaskGroup() as tasks:
        host = await here.host(mode)
        await host.list_resources()
        uri = "mew://files/file:///notes.txt"
        reading = tasks.create_task(host.read_resource(uri))
        await (await here.reviewing()).approve()
        read = await reading
        again = tasks.create_task(_error_of(host.read_resource(uri)))
        await (await here.reviewing()).reject("policy")

        assert read.contents[0].uri == uri
        assert (await again).error.data["mew/why"] == "rejected"


async def _error_of(asked: Coroutine[Any, Any, object]) -> MCPError:
    with pytest.raises(MCPError) as raised:
        await asked
    return raised.value


@EITHER
async def test_a_call_waits_for_a_server_that_is_still_starting_and_says_so(mode: str) -> None:
    async with stage(["*"], HostSettings(only="late")) as here, asyncio.timeout(10):
        async with here.space.serving(files(), "late"):
            host = await here.host(mode)
        await settled(here.me.connection)
        progress = ProgressNote()
        async with asyncio.TaskGroup() as tasks:
            calling = tasks.create_task(host.call_tool("add", {"a": 1, "b": 2}, progress_callback=progress))
            await progress.tells("waiting for late to start (0 s)")
            await here.serve(files(), "late")
        assert text(calling.result()) == "3"


async def test_a_host_gets_the_tools_of_a_server_when_it_has_started() -> None:
    async with stage(["*"], HostSettings(only="late", own_tools=False)) as here, asyncio.timeout(10):
        heard = Heard()
        async with here.space.serving(mew.Participant("late"), "late"):
            host = await here.host(LEGACY, message_handler=heard)
            assert (await host.list_tools()).tools == []
        await here.serve(files(), "late")
        await heard.hears("notifications/tools/list_changed")
        assert [tool.name for tool in (await host.list_tools()).tools] == ["read_file", "add", "fail"]
