"""The logs of participants, at the hosts that want them."""

import asyncio

import mcp_types
import pytest
from tests.mcp_bridge.host.stage import GENERATIONS, LEGACY, MAY_PROPOSE, MODERN, Heard, stage

import mew
from mew.mcp_bridge.host.settings import HostSettings

EITHER = pytest.mark.parametrize("mode", GENERATIONS)
LINE = "notifications/message"


def worker() -> mew.Participant:
    participant = mew.Participant("worker")

    @participant.tool
    async def work(call: mew.Call) -> str:
        await call.log("info", "begun")
        await call.log("error", "the disk is full")
        return "done"

    return participant


def lines(heard: Heard) -> list[tuple[str, str | None, object]]:
    return [
        (params.level, params.logger, params.data)
        for params in heard.params
        if isinstance(params, mcp_types.LoggingMessageNotificationParams)
    ]


@EITHER
async def test_what_is_logged_about_a_call_comes_before_its_end(mode: str) -> None:
    async with stage(["*"], None, (worker(), "worker")) as here:
        heard = Heard()
        host = await here.host(mode, message_handler=heard, log_level="info")

        await host.call_tool("worker__work", {})
        await heard.hears(LINE)

        assert lines(heard) == [("info", "worker", "begun"), ("error", "worker", "the disk is full")]


@EITHER
async def test_also_where_somebody_else_made_the_call_for_us(mode: str) -> None:
    async with stage(MAY_PROPOSE, HostSettings(only="worker"), (worker(), "worker")) as here:
        heard = Heard()
        host = await here.host(mode, message_handler=heard, log_level="info")
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(host.call_tool("work", {}))
            await (await here.reviewing()).approve()
        await heard.hears(LINE)

        assert lines(heard) == [("info", None, "begun"), ("error", None, "the disk is full")]


@EITHER
async def test_a_line_that_does_not_say_what_it_is_about_is_for_the_call_that_is_waited_for(
    mode: str,
) -> None:
    mute = mew.Participant("mute")
    clients: list[mew.Client] = []

    @mute.tool
    async def work(call: mew.Call) -> str:
        await clients[0].notify(call.sender, LINE, {"level": "info", "data": "begun"})
        return "done"

    async with stage(["*"]) as here:
        clients.append(await here.serve(mute, "late"))
        heard = Heard()
        host = await here.host(mode, message_handler=heard, log_level="info")

        await host.call_tool("late__work", {})
        await heard.hears(LINE)

        assert lines(heard) == [("info", "late", "begun")]


async def test_a_host_of_2026_that_asked_for_no_log_gets_none() -> None:
    async with stage(["*"], None, (worker(), "worker")) as here:
        heard = Heard()
        host = await here.host(MODERN, message_handler=heard)

        await host.call_tool("worker__work", {})

        assert lines(heard) == []


async def test_a_line_that_belongs_to_no_call_reaches_hosts_that_want_its_level() -> None:
    async with stage(["*"]) as here:
        heard = Heard()
        host = await here.host(LEGACY, message_handler=heard)
        await host.list_tools()

        await host.session.send_request(
            mcp_types.SetLevelRequest(params=mcp_types.SetLevelRequestParams(level="warning")),
            mcp_types.EmptyResult,
        )
        for level in ("info", "error"):
            params = {"level": level, "logger": "disk", "data": f"a line of {level}"}
            await here.ann.notify("host", LINE, params)
        await heard.hears(LINE)

        assert lines(heard) == [("error", "ann/disk", "a line of error")]
