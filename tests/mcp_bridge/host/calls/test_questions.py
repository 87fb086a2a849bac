"""What a participant asks while it works on a call of ours: the host's user answers, or it is declined."""

import asyncio
from typing import Any

import mcp_types
import pytest
from mcp.client.context import ClientRequestContext
from tests.mcp_bridge.host.stage import GENERATIONS, LEGACY, MAY_PROPOSE, MODERN, stage

import mew

EITHER = pytest.mark.parametrize("mode", GENERATIONS)
SCHEMA = {"type": "object", "properties": {"branch": {"type": "string"}}}
ASKED = {"message": "Which branch?", "requestedSchema": SCHEMA}
SAMPLED = {"messages": [{"role": "user", "content": {"type": "text", "text": "2+2"}}], "maxTokens": 10}


class Asker:
    """A participant with a tool that asks its caller something, and says what it heard."""

    def __init__(self, method: str, params: dict[str, Any], *, says_about: bool = True) -> None:
        self.participant = mew.Participant("asker")
        self.client: mew.Client
        self.asked = asyncio.Event()

        @self.participant.tool
        async def ask(call: mew.Call) -> dict[str, Any]:
            about = [call.envelope.id] if says_about else []
            self.asked.set()
            try:
                answer = await self.client.request(
                    call.sender, method, params, correlation_id=about, timeout_s=5
                )
            except mew.RpcError as error:
                answer = {"error": error.code, "message": error.message}
            return dict(answer)


async def chosen(
    context: ClientRequestContext, params: mcp_types.ElicitRequestParams
) -> mcp_types.ElicitResult | mcp_types.ErrorData:
    assert params.message == "Which branch?"
    return mcp_types.ElicitResult(action="accept", content={"branch": "main"})


async def sampled(
    context: ClientRequestContext, params: mcp_types.CreateMessageRequestParams
) -> mcp_types.CreateMessageResult | mcp_types.ErrorData:
    return mcp_types.CreateMessageResult(
        role="assistant", content=mcp_types.TextContent(text="4"), model="test"
    )


@pytest.mark.parametrize("says_about", [True, False])
@EITHER
async def test_a_question_goes_to_the_host_whose_call_it_is_about(mode: str, *, says_about: bool) -> None:
    asker = Asker("elicitation/create", ASKED, says_about=says_about)
    async with stage(["*"]) as here:
        asker.client = await here.serve(asker.participant, "late")
        host = await here.host(mode, elicitation_callback=chosen)

        result = await host.call_tool("late__ask", {})

        assert result.structured_content is not None
        assert result.structured_content["action"] == "accept"
        assert result.structured_content["content"] == {"branch": "main"}


@EITHER
async def test_sampling_goes_to_the_host_too(mode: str) -> None:
    asker = Asker("sampling/createMessage", SAMPLED)
    async with stage(["*"]) as here:
        asker.client = await here.serve(asker.participant, "late")
        host = await here.host(mode, sampling_callback=sampled)

        result = await host.call_tool("late__ask", {})

        assert result.structured_content is not None
        assert result.structured_content["content"] == {"type": "text", "text": "4"}


@EITHER
async def test_where_the_host_cannot_ask_its_user_it_is_declined_with_a_reason(mode: str) -> None:
    elicits, samples = Asker("elicitation/create", ASKED), Asker("sampling/createMessage", SAMPLED)
    async with stage(["*"], None, (samples.participant, "samples")) as here:
        elicits.client = await here.serve(elicits.participant, "late")
        samples.client = await here.stack.enter_async_context(here.space.connect("samples"))
        host = await here.host(mode)

        declined = await host.call_tool("late__ask", {})
        failed = await host.call_tool("samples__ask", {})

        assert declined.structured_content is not None
        assert declined.structured_content["action"] == "decline"
        assert "cannot ask its user" in declined.structured_content["_meta"]["mew/reason"]
        assert failed.structured_content is not None
        assert "cannot ask its user" in failed.structured_content["message"]


@EITHER
async def test_of_two_hosts_the_one_whose_call_it_is_about_is_asked(mode: str) -> None:
    asker = Asker("elicitation/create", ASKED)
    other_asked = asyncio.Event()

    async def other(
        context: ClientRequestContext, params: mcp_types.ElicitRequestParams
    ) -> mcp_types.ElicitResult | mcp_types.ErrorData:
        other_asked.set()
        return mcp_types.ElicitResult(action="decline")

    slow = mew.Participant("slow")
    begun = asyncio.Event()

    @asker.participant.tool
    async def wait() -> None:
        begun.set()
        await asyncio.Event().wait()

    async with stage(["*"], None, (slow, "slow")) as here, asyncio.TaskGroup() as tasks:
        asker.client = await here.serve(asker.participant, "late")
        one = await here.host(mode, elicitation_callback=chosen)
        two = await here.host(mode, elicitation_callback=other)
        result = tasks.create_task(one.call_tool("late__ask", {}))
        waiting = tasks.create_task(two.call_tool("late__wait", {}))
        async with asyncio.timeout(5):
            await begun.wait()
            told = await result
        waiting.cancel()

        assert told.structured_content is not None
        assert told.structured_content["action"] == "accept"
        assert not other_asked.is_set()


async def test_the_end_of_a_call_does_not_wait_for_a_question_that_nobody_answers() -> None:
    quick = mew.Participant("quick")
    clients: list[mew.Client] = []

    @quick.tool
    async def ask(call: mew.Call) -> str:
        try:
            await clients[0].request(call.sender, "elicitation/create", ASKED, timeout_s=0.1)
        except mew.Unanswered:
            return "went on without"
        return "answered"

    async def never(
        context: ClientRequestContext, params: mcp_types.ElicitRequestParams
    ) -> mcp_types.ElicitResult | mcp_types.ErrorData:
        await asyncio.Event().wait()
        raise AssertionError

    async with stage(["*"]) as here:
        clients.append(await here.serve(quick, "late"))
        host = await here.host(LEGACY, elicitation_callback=never)

        async with asyncio.timeout(5):
            result = await host.call_tool("late__ask", {})

        assert result.content == [mcp_types.TextContent(text="went on without")]


async def test_a_question_that_is_taken_back_is_taken_back_from_the_host() -> None:
    fickle = mew.Participant("fickle")
    clients: list[mew.Client] = []
    shown, gone = asyncio.Event(), asyncio.Event()

    @fickle.tool
    async def ask(call: mew.Call) -> str:
        asking = asyncio.ensure_future(clients[0].request(call.sender, "elicitation/create", ASKED))
        await shown.wait()
        asking.cancel()
        await gone.wait()
        return "went on without"

    async def never(
        context: ClientRequestContext, params: mcp_types.ElicitRequestParams
    ) -> mcp_types.ElicitResult | mcp_types.ErrorData:
        shown.set()
        try:
            await asyncio.Event().wait()
        finally:
            gone.set()
        raise AssertionError

    async with stage(["*"]) as here, asyncio.timeout(5):
        clients.append(await here.serve(fickle, "late"))
        host = await here.host(LEGACY, elicitation_callback=never)

        result = await host.call_tool("late__ask", {})

        assert result.content == [mcp_types.TextContent(text="went on without")]


async def test_a_participant_that_floods_a_host_with_questions_has_few_of_them_asked() -> None:
    flooder = mew.Participant("flooder")
    clients: list[mew.Client] = []
    asked: list[str] = []

    @flooder.tool
    async def ask(call: mew.Call) -> str:
        for number in range(40):
            payload = {"jsonrpc": "2.0", "id": number, "method": "elicitation/create", "params": ASKED}
            await clients[0].send("mcp/request", payload, to=call.sender, correlation_id=call.envelope.id)
        return "asked"

    async def never(
        context: ClientRequestContext, params: mcp_types.ElicitRequestParams
    ) -> mcp_types.ElicitResult | mcp_types.ErrorData:
        asked.append(params.message)
        await asyncio.Event().wait()
        raise AssertionError

    async with stage(["*"]) as here, asyncio.timeout(5):
        clients.append(await here.serve(flooder, "late"))
        host = await here.host(LEGACY, elicitation_callback=never)

        await host.call_tool("late__ask", {})

        assert 0 < len(asked) <= 16


async def test_a_call_that_failed_to_begin_takes_no_question_of_a_later_one() -> None:
    asker = Asker("elicitation/create", ASKED)
    async with stage(MAY_PROPOSE) as here, asyncio.timeout(10):
        host = await here.host(LEGACY, elicitation_callback=chosen)
        absent = await host.call_tool("late__ask", {})
        asker.client = await here.serve(asker.participant, "late")
        await here.ann.grant("host", "mcp/request:tools/call:*", "mcp/response")

        result = await host.call_tool("late__ask", {})

        assert absent.is_error
        assert result.structured_content is not None
        assert result.structured_content["action"] == "accept"


async def test_a_host_of_2026_is_asked_with_what_the_participant_said_and_nothing_else() -> None:
    asker = Asker("elicitation/create", ASKED)
    async with stage(["*"]) as here:
        asker.client = await here.serve(asker.participant, "late")
        host = await here.host(MODERN, elicitation_callback=chosen)

        first = await host.session.call_tool("late__ask", {}, allow_input_required=True)

        assert isinstance(first, mcp_types.InputRequiredResult)
        assert first.input_requests is not None
        [(key, asked)] = first.input_requests.items()
        assert isinstance(asked, mcp_types.ElicitRequest)
        assert asked.params.message == "Which branch?"
        result = await host.session.call_tool(
            "late__ask",
            {},
            input_responses={key: mcp_types.ElicitResult(action="cancel")},
            request_state=first.request_state,
        )
        assert result.structured_content is not None
        assert result.structured_content["action"] == "cancel"
