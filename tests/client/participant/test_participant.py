"""A participant in a real space: it answers as §3.1.2, §3.5.6, §4.3 and §8.2 ask, and looks after its own life."""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.client.ear import Ear, settled

from mew.client.client import Client
from mew.client.errors import Disconnected, RpcError, ToolError
from mew.client.mcp.call import Call
from mew.client.participant.memory import EnvelopeMemory
from mew.client.participant.outbound import Outbound
from mew.client.participant.participant import Participant
from mew.client.participant.responder import Responder
from mew.client.proposals.outcomes import Fulfilled, Rejected
from mew.client.proposals.review import Review
from mew.client.tools.server import McpServer
from mew.proposals.record import ProposalStatus
from mew.protocol.envelope import Envelope
from mew.protocol.kinds import Chat, Kind
from mew.testing import Space

WHO = {"ann": ["*"], "bot": ["*"], "cy": ["*"], "tool": []}


@dataclass
class Stage:
    """Ann, who asks, and a participant that serves as `bot`."""

    space: Space
    ann: Client
    bot: Client
    ear: Ear
    served: "asyncio.Task[None]"


@asynccontextmanager
async def on_update(participant: Participant, who: str = "bot") -> AsyncIterator[Stage]:
    async with (
        asyncio.timeout(5),
        Space(WHO) as space,
        space.connect("ann") as ann,
        asyncio.TaskGroup() as tasks,
        space.connect(who) as bot,
    ):
        served = tasks.create_task(participant.serve(bot))
        await asyncio.sleep(0)
        yield Stage(space, ann, bot, Ear(ann.connection), served)
        participant.stop()
        await asyncio.wait([served])


def calculator() -> Participant:
    participant = Participant("calculator", version="1.2", instructions="Add.")

    @participant.tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    return participant


class Gate:
    """A tool that waits until it is let through, and says what became of each call."""

    def __init__(self, participant: Participant) -> None:
        self.begun = asyncio.Semaphore(0)
        self.open = asyncio.Event()
        self.running = 0
        self.most = 0
        self.cancelled = 0
        participant.tool(self.wait)

    async def wait(self) -> str:
        self.running += 1
        self.most = max(self.most, self.running)
        self.begun.release()
        try:
            await self.open.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.running -= 1
        return "through"


def calling(tool: str, id: int | str = 1, **arguments: Any) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}


def notifying(method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method} | ({} if params is None else {"params": params})


# Requests and their answers.


async def test_a_response_names_its_request_and_goes_to_who_asked_3_1_2() -> None:
    async with on_update(calculator()) as stage:
        asked = await stage.ear.ask(Kind.MCP_REQUEST, calling("add", 42, a=2, b=3))
        response = await stage.ear.hears_of(Kind.MCP_RESPONSE)
        assert (response.sender, response.to, response.correlation_id) == ("bot", ("ann",), (asked.id,))
        assert response.content["id"] == 42
        assert response.content["jsonrpc"] == "2.0"
        assert response.content["result"]["structuredContent"] == {"result": 5}


async def test_the_tool_of_a_participant_is_called_as_in_the_readme() -> None:
    async with on_update(calculator()) as stage:
        assert await stage.ann.call("bot", "add", {"a": 2, "b": 3}) == 5
        (tool,) = await stage.ann.tools("bot")
        assert tool.description == "Add two numbers."
        hello = await stage.ann.request("bot", "initialize", {"protocolVersion": "2025-06-18"})
        assert hello["serverInfo"] == {"name": "calculator", "version": "1.2"}


async def test_a_request_is_not_ignored_for_its_context_3_5_6() -> None:
    async with on_update(calculator()) as stage:
        asked = await stage.ear.ask(Kind.MCP_REQUEST, calling("add", a=1, b=1), context="reason-1/deep")
        response = await stage.ear.hears_of(Kind.MCP_RESPONSE, asked)
        assert response.context == "reason-1/deep"


async def test_errors_are_json_rpc_errors_and_answer_once_8_2() -> None:
    async with on_update(calculator()) as stage:
        with pytest.raises(RpcError) as unknown:
            await stage.ann.request("bot", "tools/dance")
        assert unknown.value.code == -32601
        with pytest.raises(RpcError) as missing:
            await stage.ann.call("bot", "subtract", {"a": 1})
        assert missing.value.code == -32602
        await settled(stage.bot.connection)
        assert len(stage.ear.all(Kind.MCP_RESPONSE)) == 2


async def test_a_notification_gets_no_response_8_2() -> None:
    async with on_update(calculator()) as stage:
        for method in ("notifications/initialized", "notifications/nonsense"):
            await stage.ear.ask(Kind.MCP_REQUEST, notifying(method))
            await stage.ear.ask(Kind.MCP_REQUEST, notifying(method), to=())
        await settled(stage.ann.connection, stage.bot.connection)
        assert stage.ear.all(Kind.MCP_RESPONSE) == []


async def test_a_request_without_a_json_rpc_id_is_answered_without_one() -> None:
    async with on_update(calculator()) as stage:
        params = {"name": "add", "arguments": {"a": 2, "b": 3}}
        asked = await stage.ear.ask(Kind.MCP_REQUEST, {"method": "tools/call", "params": params})
        response = await stage.ear.hears_of(Kind.MCP_RESPONSE, asked)
        assert response.content["result"]["structuredContent"] == {"result": 5}
        assert "id" not in response.content
        asked = await stage.ear.ask(Kind.MCP_REQUEST, {"method": "nonsense"})
        response = await stage.ear.hears_of(Kind.MCP_RESPONSE, asked)
        assert response.content["error"]["code"] == -32601


async def test_a_request_without_a_json_rpc_id_to_nobody_is_not_answered() -> None:
    async with on_update(calculator()) as stage:
        await stage.ear.ask(Kind.MCP_REQUEST, {"method": "tools/list"}, to=())
        await settled(stage.ann.connection, stage.bot.connection)
        assert stage.ear.all(Kind.MCP_RESPONSE) == []


async def test_what_asks_nobody_or_others_is_not_answered() -> None:
    async with on_update(calculator()) as stage:
        await stage.ear.ask(Kind.MCP_REQUEST, calling("add", a=1, b=1), to=())
        await stage.ear.ask(Kind.MCP_REQUEST, calling("add", a=1, b=1), to=["cy"])
        await settled(stage.ann.connection, stage.bot.connection)
        assert stage.ear.all(Kind.MCP_RESPONSE) == []


async def test_a_malformed_request_is_dropped_and_counted_4_3() -> None:
    async with on_update(calculator()) as stage:
        await stage.ear.ask(Kind.MCP_REQUEST, {"id": 1, "params": {}})
        await stage.ear.ask(Kind.MCP_REQUEST, {"id": 1, "method": 7})
        assert await stage.ann.call("bot", "add", {"a": 1, "b": 1}) == 2
        assert stage.bot.misconduct[stage.ann.id].count == 2
        assert len(stage.ear.all(Kind.MCP_RESPONSE)) == 1


async def test_a_participant_may_call_itself() -> None:
    participant = calculator()

    @participant.tool
    async def double(a: int) -> int:
        total: int = await participant.client.call("bot", "add", {"a": a, "b": a})
        return total

    async with on_update(participant) as stage:
        assert await stage.ann.call("bot", "double", {"a": 4}) == 8


async def test_what_expired_before_it_was_approved_is_refused() -> None:
    async with on_update(calculator()) as stage:
        call = {"name": "add", "arguments": {"a": 1, "b": 2}}
        payload = {"method": "tools/call", "params": call, "expires_at": "2026-01-01T00:00:00Z"}
        late = await stage.ann.send("mcp/proposal", payload, to="bot")
        with pytest.raises(RpcError, match="before it was approved: nothing was done"):
            await stage.ann.request("bot", "tools/call", call, correlation_id=[late.id])
        for _ in range(9):  # more than are listed of one participant
            with pytest.raises(RpcError, match="before it was approved"):
                await stage.ann.request("bot", "tools/call", call, correlation_id=[late.id])
        assert stage.ann.book[late.id].status(datetime.now(UTC)) is ProposalStatus.EXPIRED
        assert await stage.ann.request("bot", "tools/list", correlation_id=[late.id])


async def test_what_was_withdrawn_before_it_was_approved_runs_only_anyway() -> None:
    async with on_update(calculator()) as stage:
        call = {"name": "add", "arguments": {"a": 1, "b": 2}}
        proposal = await stage.ann.send("mcp/proposal", {"method": "tools/call", "params": call}, to="bot")
        await stage.ann.send("mcp/withdraw", {"reason": "host_gone"}, correlation_id=[proposal.id])
        with pytest.raises(RpcError, match="withdrawn before it was approved: nothing was done"):
            await stage.ann.request("bot", "tools/call", call, correlation_id=[proposal.id])
        assert await stage.ann.review(proposal.id).approve(anyway=True) == 3


async def test_what_was_approved_in_time_runs() -> None:
    async with on_update(calculator()) as stage:
        call = {"name": "add", "arguments": {"a": 1, "b": 2}}
        payload = {"method": "tools/call", "params": call, "expires_at": "2126-01-01T00:00:00Z"}
        proposal = await stage.ann.send("mcp/proposal", payload, to="bot")
        await stage.ann.request("bot", "tools/call", call, correlation_id=[proposal.id])
        assert stage.ann.book[proposal.id].status(datetime.now(UTC)) is ProposalStatus.FULFILLED


async def test_an_answer_that_the_gateway_refuses_becomes_an_error() -> None:
    participant = Participant("large")

    @participant.tool
    def everything() -> str:
        return "x" * (2 << 20)

    async with on_update(participant, who="tool") as stage:
        with pytest.raises(RpcError, match="too large for an envelope"):
            await stage.ann.call("tool", "everything")
        assert await stage.ann.request("tool", "ping") == {}


async def test_who_may_not_respond_says_so_in_its_log_once(caplog: pytest.LogCaptureFixture) -> None:
    async with on_update(calculator()) as stage:
        await stage.ann.revoke("bot", "mcp/response")
        for _ in range(3):
            await stage.ear.ask(Kind.MCP_REQUEST, calling("add", a=1, b=1))
        await settled(stage.ann.connection)
        assert stage.ear.all(Kind.MCP_RESPONSE) == []
    told = [record for record in caplog.records if "bot may not send mcp/response" in record.getMessage()]
    assert [record.levelno for record in told] == [logging.WARNING]


async def test_a_request_in_flight_when_the_connection_is_lost_is_answered_after_it() -> None:
    participant = Participant("slow")
    gate = Gate(participant)
    async with on_update(participant) as stage, asyncio.TaskGroup() as tasks:
        call = tasks.create_task(stage.ann.call("bot", "wait"))
        await gate.begun.acquire()
        stage.space.cut("bot")
        gate.open.set()
        assert await call == "through"
        assert len(stage.ear.all(Kind.MCP_RESPONSE)) == 1


async def test_what_runs_while_paused_is_answered_when_resumed_3_9_1() -> None:
    participant = Participant("slow")
    gate = Gate(participant)
    async with on_update(participant) as stage:
        asked = await stage.ear.ask(Kind.MCP_REQUEST, calling("wait"))
        await gate.begun.acquire()
        await stage.ear.ask(Kind.PAUSE)
        gate.open.set()
        await settled(stage.ann.connection)
        assert gate.running == 0
        assert stage.ear.all(Kind.MCP_RESPONSE) == []
        await stage.ear.ask(Kind.RESUME)
        await stage.ear.hears(Kind.MCP_RESPONSE, asked)


async def test_so_many_run_so_many_wait_and_the_rest_is_told_that_we_are_busy() -> None:
    toolbox = Participant("slow")
    gate = Gate(toolbox)
    async with (
        asyncio.timeout(5),
        Space(WHO) as space,
        space.connect("ann") as ann,
        space.connect("bot") as bot,
    ):
        ear, server = Ear(ann.connection), McpServer("slow", "1", None, toolbox)
        answering = Responder(bot.connection, server, Outbound(bot.connection), at_once=2, waiting_max=3)
        bot.connection.listen(answering.listen)
        answering.open()
        for number in range(7):
            await ear.ask(Kind.MCP_REQUEST, calling("wait", number))
        busy = [await ear.hears(Kind.MCP_RESPONSE, many=many) for many in (1, 2)]
        assert [(answer["id"], answer["error"]["code"]) for answer in busy] == [(5, -32000), (6, -32000)]
        assert gate.running == 2
        gate.open.set()
        await ear.hears(Kind.MCP_RESPONSE, many=7)
        assert gate.most == 2
        assert [answer.content["id"] for answer in ear.all(Kind.MCP_RESPONSE)] == [5, 6, 0, 1, 2, 3, 4]


async def test_answers_do_not_pile_up_while_paused() -> None:
    async with (
        asyncio.timeout(5),
        Space(WHO) as space,
        space.connect("ann") as ann,
        space.connect("bot") as bot,
    ):
        server, connection = McpServer("calc", "1", None, calculator()), bot.connection
        answering = Responder(connection, server, Outbound(connection), at_once=2, waiting_max=3)
        connection.listen(answering.listen)
        answering.open()
        ear = Ear(ann.connection)
        await ear.ask(Kind.PAUSE)
        for number in range(5):
            await ear.ask(Kind.MCP_REQUEST, {"jsonrpc": "2.0", "id": number, "method": "ping"})
        await settled(ann.connection)
        assert len(connection.session.outgoing) == 2
        await ear.ask(Kind.RESUME)
        await ear.hears(Kind.MCP_RESPONSE, many=5)


async def test_what_waits_for_a_handler_is_bounded_in_bytes() -> None:
    participant, may_end, last = Participant("slow"), asyncio.Event(), asyncio.Event()
    seen: list[str] = []

    @participant.on("chat")
    async def slow(envelope: Envelope) -> None:
        seen.append(envelope.content["text"][:2])
        await may_end.wait()
        if seen[-1] == "zz":
            last.set()

    async with on_update(participant) as stage:
        for number in range(30):
            await stage.ann.chat(f"{number:02}" + "x" * 900_000)
        may_end.set()
        await settled(stage.bot.connection)
        await stage.ann.chat("zz")
        await last.wait()
        assert seen == [f"{number:02}" for number in range(1 + (16 << 20) // 900_000)] + ["zz"]


@pytest.mark.slow
async def test_what_is_said_while_too_much_is_not_accepted_is_dropped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with (
        asyncio.timeout(5),
        Space(WHO) as space,
        space.connect("ann") as ann,
        space.connect("bot") as bot,
    ):
        await ann.control.pause("bot")
        voice = Outbound(bot.connection)
        said = [voice.say(Kind.CHAT, {"text": "hi"}) for _ in range(4_100)]
        assert [one is None for one in said] == [False] * 4_096 + [True] * 4
        assert [record.message for record in caplog.records if "dropped" in record.message] == [
            "4096 envelopes are not accepted yet: what is said now is dropped"
        ]


# Cancellation and progress.


async def test_a_cancelled_request_is_cancelled_and_not_answered() -> None:
    participant = Participant("slow")
    gate = Gate(participant)
    async with on_update(participant) as stage:
        asked = await stage.ear.ask(Kind.MCP_REQUEST, calling("wait", 7))
        await gate.begun.acquire()
        cancelling = notifying("notifications/cancelled", {"requestId": 7})
        other = stage.space.connect("cy")
        async with other:
            await other.send(Kind.MCP_REQUEST, cancelling, to="bot")  # it is not theirs to cancel
            await settled(other.connection)
        assert gate.cancelled == 0
        await stage.ear.ask(Kind.MCP_REQUEST, cancelling)
        await settled(stage.ann.connection, stage.bot.connection)
        assert gate.cancelled == 1
        assert stage.ear.all(Kind.MCP_RESPONSE, asked) == []


async def test_one_that_is_cancelled_while_it_waits_never_begins() -> None:
    participant = Participant("slow")
    gate = Gate(participant)
    async with on_update(participant) as stage:
        for number in range(65):
            await stage.ear.ask(Kind.MCP_REQUEST, calling("wait", number))
        await stage.ear.ask(Kind.MCP_REQUEST, notifying("notifications/cancelled", {"requestId": 64}))
        await stage.ear.ask(Kind.MCP_REQUEST, notifying("notifications/cancelled", {"requestId": True}))
        gate.open.set()
        await stage.ear.hears(Kind.MCP_RESPONSE, many=64)
        await settled(stage.bot.connection)
        assert 64 not in {answer.content["id"] for answer in stage.ear.all(Kind.MCP_RESPONSE)}


async def test_progress_goes_to_who_asked_for_it() -> None:
    participant = Participant("slow")

    @participant.tool
    async def steps(call: Call) -> str:
        for done in (1, 2, 3):
            await call.progress(done, 3, f"step {done}")
        return "done"

    async with on_update(participant) as stage:
        told: list[tuple[float, float | None, str | None]] = []
        await stage.ann.call("bot", "steps", on_progress=lambda *progress: told.append(progress))
        assert told == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]
        (asked, *progress) = stage.ear.all(Kind.MCP_REQUEST)
        assert {(each.to, each.correlation_id) for each in progress} == {(("ann",), (asked.id,))}


async def test_any_notification_goes_to_who_asked_and_none_after_the_answer() -> None:
    participant = Participant("telling")
    calls: list[Call] = []

    @participant.tool
    async def told(call: Call) -> None:
        calls.append(call)
        await call.tell("notifications/x", {"a": 1})

    async with on_update(participant) as stage:
        await stage.ann.call("bot", "told")
        await calls[0].tell("notifications/x", {"a": 2})
        await settled(stage.bot.connection)
        (asked, said) = stage.ear.all(Kind.MCP_REQUEST)
        assert (said.to, said.correlation_id) == (("ann",), (asked.id,))
        assert said.content == {"jsonrpc": "2.0", "method": "notifications/x", "params": {"a": 1}}


async def test_progress_is_left_out_by_who_may_not_send_it() -> None:
    participant = Participant("slow")

    @participant.tool
    async def steps(call: Call) -> str:
        await call.progress(1)
        return "done"

    async with on_update(participant, who="tool") as stage:
        assert await stage.ann.call("tool", "steps", on_progress=lambda *_: None) == "done"
        assert len(stage.ear.all(Kind.MCP_REQUEST)) == 1


async def test_a_change_of_the_tools_is_announced_once() -> None:
    participant = calculator()
    async with on_update(participant) as stage:
        assert stage.ear.all(Kind.MCP_REQUEST) == []

        def grow() -> None:
            participant.tool(name="one")(lambda: 1)
            participant.tool(name="two")(lambda: 2)

        await asyncio.to_thread(grow)
        announced = await stage.ear.hears_of(Kind.MCP_REQUEST)
        assert announced.to == ()
        assert announced.content["method"] == "notifications/tools/list_changed"
        await settled(stage.bot.connection)
        assert {tool.name for tool in await stage.ann.tools("bot")} == {"add", "one", "two"}


async def test_who_subscribed_to_a_resource_hears_that_it_changed() -> None:
    participant = Participant("notes")

    @participant.resource("notes://{name}")
    def note(name: str) -> str:
        return f"about {name}"

    async with on_update(participant) as stage:
        read = await stage.ann.request("bot", "resources/read", {"uri": "notes://cats"})
        assert read["contents"][0]["text"] == "about cats"
        await stage.ann.request("bot", "resources/subscribe", {"uri": "notes://cats"})
        participant.updated("notes://dogs")
        participant.updated("notes://cats")
        await settled(stage.bot.connection)
        (told,) = [each for each in stage.ear.all(Kind.MCP_REQUEST) if each.sender == "bot"]
        assert told.to == ("ann",)
        assert told.content["params"] == {"uri": "notes://cats"}


# Handlers and proposals.


async def test_handlers_hear_what_others_say_and_not_what_they_say_themselves() -> None:
    participant = Participant("echo")
    heard: list[tuple[str, str]] = []

    @participant.on("chat")
    async def echo(envelope: Envelope, chat: Chat) -> None:
        heard.append((envelope.sender, chat.text))
        await participant.client.chat(f"{chat.text}!", to=[envelope.sender])

    async with on_update(participant) as stage:
        await stage.ann.chat("one")
        await stage.ann.chat("two", to=["cy"])
        await stage.ear.hears("chat", many=4)
        await settled(stage.bot.connection)
        assert heard == [("ann", "one"), ("ann", "two")]


async def test_a_handler_may_be_plain_and_want_only_what_is_addressed_to_it() -> None:
    participant = Participant("plain")
    heard: list[tuple[str, bool]] = []
    done = threading.Event()

    @participant.on(["chat", "reasoning/*"], to_me=True)
    def hear(envelope: Envelope) -> None:
        heard.append((envelope.kind, threading.current_thread() is threading.main_thread()))
        if len(heard) == 2:
            done.set()

    async with on_update(participant) as stage:
        await stage.ann.chat("to all")
        await stage.ann.chat("to cy", to=["cy"])
        await stage.ann.chat("to bot", to=["bot"])
        await stage.ear.ask("reasoning/start", {"message": "hm"})
        await asyncio.to_thread(done.wait)
        assert heard == [("chat", False), ("reasoning/start", False)]


async def test_a_handler_takes_one_after_another_and_outlives_its_failures() -> None:
    participant = Participant("fragile")
    order: list[str] = []

    @participant.on("chat")
    async def hear(_: Envelope, chat: Chat) -> None:
        order.append(f"begin {chat.text}")
        await asyncio.sleep(0)
        if chat.text == "0":
            raise OSError("disk")
        order.append(f"end {chat.text}")

    async with on_update(participant) as stage:
        for number in range(3):
            await stage.ann.chat(str(number))
        await settled(stage.ann.connection)
        assert order == ["begin 0", "begin 1", "end 1", "begin 2", "end 2"]


def test_a_handler_takes_the_envelope_and_perhaps_the_payload() -> None:
    with pytest.raises(TypeError, match="not 0 arguments"):
        Participant("p").on("chat")(lambda: None)
    Participant("p").on("chat")(lambda *anything: None)


async def test_a_reviewer_decides_proposals_8_2() -> None:
    participant = Participant("reviewer")

    @participant.on_proposal
    async def review(proposal: Review) -> None:
        if proposal.tool == "add":
            await proposal.approve()
        else:
            await proposal.reject("unsafe")

    async with on_update(calculator(), who="tool") as stage, stage.space.connect("bot") as bot:
        served = bot.connection.spawn(participant.serve(bot))
        sum_up = {"name": "add", "arguments": {"a": 1, "b": 2}}
        proposal = await stage.ann.propose("tools/call", sum_up, target="tool")
        assert isinstance(await proposal, Fulfilled)
        requests = [each for each in stage.ear.all(Kind.MCP_REQUEST) if each.sender == "bot"]
        assert proposal.id in requests[-1].correlation_id
        erase = {"name": "erase", "arguments": {}}
        assert isinstance(await (await stage.ann.propose("tools/call", erase, target="tool")), Rejected)
        participant.stop()
        await served


async def test_a_proposal_without_a_hook_is_left_to_others_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    async with on_update(calculator()) as stage:
        proposal = {"method": "tools/call", "params": {"name": "add", "arguments": {"a": 1, "b": 1}}}
        for _ in range(2):
            await stage.ear.ask(Kind.MCP_PROPOSAL, proposal, context="deep")
        await settled(stage.ann.connection, stage.bot.connection)
        assert stage.ear.all(Kind.MCP_REJECT) + stage.ear.all(Kind.MCP_RESPONSE) == []
        assert len(stage.bot.book.open(datetime.now(UTC))) == 2
    assert len([record for record in caplog.records if "no on_proposal" in record.message]) == 1


# Its life.


async def test_nothing_is_answered_before_it_has_started_and_then_all() -> None:
    participant = calculator()
    go_on = asyncio.Event()
    participant.on_start(go_on.wait)
    async with on_update(participant) as stage:
        asked = await stage.ear.ask(Kind.MCP_REQUEST, calling("add", a=1, b=1))
        status = await stage.ear.ask(Kind.REQUEST_STATUS)
        await stage.ear.hears(Kind.STATUS, status)
        assert stage.ear.all(Kind.MCP_RESPONSE) == []
        go_on.set()
        await stage.ear.hears(Kind.MCP_RESPONSE, asked)


async def test_a_restart_answers_what_runs_with_an_error_and_starts_again_3_9_9() -> None:
    participant = Participant("slow", memory=EnvelopeMemory())
    gate, life = Gate(participant), list[str]()
    participant.on_start(lambda: life.append("start"))
    participant.on_stop(lambda: life.append("stop"))
    async with on_update(participant) as stage:
        stream = await stage.bot.streams.open()
        asked = [await stage.ear.ask(Kind.MCP_REQUEST, calling("wait", number)) for number in range(65)]
        await gate.begun.acquire()
        restart = await stage.ear.ask(Kind.RESTART)
        status = await stage.ear.hears(Kind.STATUS, restart)
        assert status["status"] == "active"
        assert life == ["start", "stop", "start"]
        for each in asked:
            answer = await stage.ear.hears(Kind.MCP_RESPONSE, each)
            assert "restarted" in answer["error"]["message"]
        await stage.ear.hears(Kind.STREAM_CLOSE)
        assert stream.closed
        gate.open.set()
        assert await stage.ann.call("bot", "wait") == "through"
        assert len(stage.ear.all(Kind.MCP_RESPONSE)) == 66
    assert life == ["start", "stop", "start", "stop"]


async def test_one_that_cannot_start_again_leaves() -> None:
    participant = calculator()
    starts: list[int] = []

    @participant.on_start
    def start() -> None:
        starts.append(1)
        if len(starts) > 1:
            raise OSError("disk")

    with pytest.RaisesGroup(pytest.RaisesExc(OSError, match="disk")):
        async with on_update(participant) as stage:
            restart = await stage.ear.ask(Kind.RESTART)
            assert (await stage.ear.hears(Kind.STATUS, restart))["status"] == "failed"


async def test_a_shutdown_ends_it_well_3_9_10() -> None:
    participant = Participant("slow")
    gate, life = Gate(participant), list[str]()
    participant.on_stop(lambda: life.append("stop"))
    async with on_update(participant) as stage:
        await stage.ear.ask(Kind.MCP_REQUEST, calling("wait"))
        await gate.begun.acquire()
        asked = await stage.ear.ask(Kind.SHUTDOWN)
        await stage.ear.hears(Kind.CHAT_ACKNOWLEDGE, asked)
        await stage.served
        assert gate.cancelled == 1
        assert life == ["stop"]


async def test_what_runs_when_it_leaves_is_answered_with_an_error() -> None:
    participant = Participant("slow")
    gate = Gate(participant)
    async with on_update(participant) as stage:
        asked = await stage.ear.ask(Kind.MCP_REQUEST, calling("wait"))
        await gate.begun.acquire()
        participant.stop()
        await stage.served
        assert "leaving" in (await stage.ear.hears(Kind.MCP_RESPONSE, asked))["error"]["message"]


async def test_a_shutdown_does_not_wait_for_a_start_that_never_ends() -> None:
    participant = calculator()
    participant.on_start(asyncio.Event().wait)
    async with on_update(participant) as stage:
        await stage.ear.ask(Kind.SHUTDOWN)
        await stage.served


async def test_a_start_that_fails_ends_it() -> None:
    participant = calculator()

    @participant.on_start
    async def start() -> None:
        raise OSError("disk")

    async with asyncio.timeout(5), Space(WHO) as space, space.connect("bot") as bot:
        with pytest.raises(OSError, match="disk"):
            await participant.serve(bot)
        with pytest.raises(RuntimeError, match="not running"):
            _ = participant.client


async def test_one_that_is_kicked_is_told_so() -> None:
    with pytest.RaisesGroup(Disconnected):
        async with on_update(calculator()) as stage:
            await stage.ann.kick("bot")
            await asyncio.wait([stage.served])


async def test_it_runs_once_at_a_time_and_again_after_that() -> None:
    participant = calculator()
    async with asyncio.timeout(5), Space(WHO) as space, space.connect("bot") as bot:
        listeners = bot.connection.listeners
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(participant.serve(bot))
            await asyncio.sleep(0)
            participant.stop()
        assert bot.connection.listeners == listeners
    async with on_update(participant) as stage:
        with pytest.raises(RuntimeError, match="already"):
            await participant.serve(stage.bot)
        assert participant.client is stage.bot
    async with on_update(participant) as stage:
        assert await stage.ann.call("bot", "add", {"a": 1, "b": 1}) == 2


async def test_hooks_hear_of_pauses_and_status_has_more_to_tell_3_9() -> None:
    participant = Participant("agent", memory=EnvelopeMemory())
    heard: list[str | None] = []
    participant.on_pause(lambda pause: heard.append(pause.kind))
    participant.on_resume(lambda resume: heard.append(None if resume is None else resume.kind))

    @participant.status
    def latency() -> dict[str, Any]:
        return {"latency_ms": 12}

    @participant.status
    async def model() -> dict[str, Any]:
        return {"model": "m"}

    async with on_update(participant) as stage:
        await stage.ann.chat("hello")
        await stage.ear.ask(Kind.PAUSE)
        await stage.ear.ask(Kind.RESUME)
        asked = await stage.ear.ask(Kind.REQUEST_STATUS)
        assert await stage.ear.hears(Kind.STATUS, asked) == {
            "messages_in_context": 1,
            "status": "active",
            "latency_ms": 12,
            "model": "m",
        }
        assert await participant.report()
        assert (await stage.ear.hears_of(Kind.STATUS, many=2)).to == ()
        assert heard == [Kind.PAUSE, Kind.RESUME]


async def test_an_author_may_answer_control_in_another_way() -> None:
    participant = calculator()

    @participant.override(Kind.REQUEST_STATUS)
    async def fine(envelope: Envelope) -> None:
        await participant.client.chat("fine", to=[envelope.sender])

    async with on_update(participant) as stage:
        await stage.ear.ask(Kind.REQUEST_STATUS)
        assert (await stage.ear.hears("chat"))["text"] == "fine"
    with pytest.raises(ValueError, match="is none of"):
        participant.override("chat")(fine)


async def test_a_tool_that_fails_says_so_to_its_caller() -> None:
    participant = Participant("fragile")

    @participant.tool
    def fail() -> str:
        raise ToolError("no such file")

    async with on_update(participant) as stage:
        with pytest.raises(ToolError, match="no such file"):
            await stage.ann.call("bot", "fail")


async def test_leaving_the_connection_begins_nothing_that_waited() -> None:
    participant = Participant("slow")
    gate = Gate(participant)
    async with (
        asyncio.timeout(5),
        Space(WHO) as space,
        space.connect("ann") as ann,
        asyncio.TaskGroup() as tasks,
    ):
        ear = Ear(ann.connection)
        async with space.connect("bot") as bot:
            tasks.create_task(participant.serve(bot))
            for number in range(70):
                await ear.ask(Kind.MCP_REQUEST, calling("wait", number))
            for _ in range(64):
                await gate.begun.acquire()
        assert gate.running == 0
        assert gate.cancelled == 64


async def test_open_proposals_are_reviewed_again_after_a_restart() -> None:
    participant = Participant("reviewer")
    seen: list[str] = []

    @participant.on_proposal
    async def review(proposal: Review) -> None:
        seen.append(proposal.id)

    async with on_update(participant) as stage:
        payload = {"method": "tools/call", "params": {"name": "add", "arguments": {}}}
        proposal = await stage.ear.ask(Kind.MCP_PROPOSAL, payload, context="deep")
        await settled(stage.ann.connection)
        assert seen == [proposal.id]
        restart = await stage.ear.ask(Kind.RESTART)
        await stage.ear.hears(Kind.STATUS, restart)
        await settled(stage.ann.connection)
        assert seen == [proposal.id, proposal.id]


async def test_who_runs_twice_is_warned_that_both_do_what_is_asked(caplog: pytest.LogCaptureFixture) -> None:
    async with (
        asyncio.timeout(5),
        Space({"ann": ["*"], "bot": ["chat"]}) as space,
        space.connect("ann") as ann,
        space.serving(calculator(), "bot"),
    ):
        assert await ann.call("bot", "add", {"a": 1, "b": 2}) == 3
        assert "runs twice" not in caplog.text
        async with space.serving(calculator(), "bot"):
            answers = ann.envelopes("mcp/response", sender="bot")
            assert await ann.call("bot", "add", {"a": 1, "b": 2}) == 3
            for _ in range(2):
                await anext(answers)
            await settled(ann.connection)
    assert "bot runs twice in this space" in caplog.text


async def test_who_is_shut_down_leaves_a_test_space_too() -> None:  # §3.9.10
    async with (
        asyncio.timeout(5),
        Space({"ann": ["*"], "bot": []}) as space,
        space.connect("ann") as ann,
        space.serving(calculator(), "bot"),
    ):
        await ann.control.shutdown("bot")
        assert "bot" not in ann.participants
