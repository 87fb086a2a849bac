"""What a server asks goes to those it works for, as an envelope (decision 0010, 4); both generations."""

import asyncio
from typing import Any

import pytest
from tests.mcp_bridge.server.stage import MODERN, Context, FakeServer, answer, bridged, settings

from mew.client.errors import RpcError

QUESTION = {
    "message": "Which branch?",
    "requestedSchema": {"type": "object", "properties": {"branch": {"type": "string"}}, "x": None},
}
ACCEPTED = {"action": "accept", "content": {"branch": "main", "n": None}, "future": 1.0}


def asking(server: FakeServer, method: str = "elicitation/create") -> None:
    """A tool of the first generation, that asks before it answers."""

    @server.on("tools/call")
    async def call(context: Context, _: dict[str, Any]) -> dict[str, Any]:
        return {"content": [], "answered": await context.send_raw_request(method, QUESTION)}


def needing(server: FakeServer, rounds: int = 1) -> None:
    """A tool of the second, that answers `input_required` so many times."""

    @server.on("tools/call")
    async def call(_: Context, params: dict[str, Any]) -> dict[str, Any]:
        state = int(params.get("requestState", "0"))
        if state < rounds:
            asked = {"method": "elicitation/create", "params": QUESTION}
            return {
                "resultType": "input_required",
                "inputRequests": {"q": asked},
                "requestState": str(state + 1),
            }
        return {"resultType": "complete", "content": [], "answered": params["inputResponses"]["q"]}


async def test_whoever_called_is_asked_and_their_answer_passes_as_it_is() -> None:
    server = FakeServer()
    asking(server)
    async with bridged(server) as stage:
        calling = asyncio.ensure_future(stage.ann.request("files", "tools/call", {"name": "t"}))
        request = await stage.ear.hears_of("mcp/request")
        question = await stage.ear.hears_of("mcp/request", request)
        assert question.content["method"] == "elicitation/create"
        assert question.content["params"] == QUESTION
        assert question.to == ("ann",)
        await answer(stage.ann, question, ACCEPTED)
        assert (await calling)["answered"] == ACCEPTED


@pytest.mark.parametrize("rounds", [1, 3, 10])
async def test_a_server_of_the_second_generation_is_asked_again_with_the_answers(rounds: int) -> None:
    server = FakeServer(MODERN)
    needing(server, rounds)
    async with bridged(server) as stage:
        params = {"name": "t", "arguments": {"a": None}}
        calling = asyncio.ensure_future(stage.ann.request("files", "tools/call", params))
        request = await stage.ear.hears_of("mcp/request")
        for n in range(1, rounds + 1):
            await answer(stage.ann, await stage.ear.hears_of("mcp/request", request, many=n), ACCEPTED)
        assert (await calling)["answered"] == ACCEPTED
    last = [params for method, params in server.asked if method == "tools/call"][-1]
    assert last["name"] == "t"
    assert last["arguments"] == {"a": None}
    assert last["requestState"] == str(rounds)


async def test_one_that_needs_time_alone_is_asked_again_by_itself() -> None:
    server = FakeServer(MODERN)

    @server.on("tools/call")
    async def call(_: Context, params: dict[str, Any]) -> dict[str, Any]:
        if "requestState" not in params:
            return {"resultType": "input_required", "requestState": "later"}
        return {"resultType": "complete", "content": [], "state": params["requestState"]}

    async with bridged(server) as stage:
        result = await stage.ann.request("files", "tools/call", {"name": "t"})
    assert result["state"] == "later"


async def test_one_that_never_has_enough_is_given_up() -> None:
    server = FakeServer(MODERN)
    needing(server, rounds=1_000)

    async with bridged(server) as stage:
        calling = asyncio.ensure_future(stage.ann.request("files", "tools/call", {"name": "t"}))
        request = await stage.ear.hears_of("mcp/request")
        for n in range(1, 11):
            await answer(stage.ann, await stage.ear.hears_of("mcp/request", request, many=n), ACCEPTED)
        with pytest.raises(RpcError, match="more input than 10 times"):
            await calling


async def test_one_that_asks_without_end_about_one_request_is_not_listened_to_any_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mew.mcp_bridge.server.inflight._QUESTIONS_MAX", 3)
    server = FakeServer()

    @server.on("tools/call")
    async def call(context: Context, _: dict[str, Any]) -> dict[str, Any]:
        while True:
            await context.send_raw_request("elicitation/create", QUESTION)

    async with bridged(server) as stage:
        calling = asyncio.ensure_future(stage.ann.request("files", "tools/call", {"name": "t"}))
        request = await stage.ear.hears_of("mcp/request")
        for n in range(1, 4):
            await answer(stage.ann, await stage.ear.hears_of("mcp/request", request, many=n), ACCEPTED)
        with pytest.raises(RpcError, match="too many questions about one request"):
            await calling


async def test_where_the_server_does_not_say_for_whom_all_who_wait_are_asked_and_the_first_counts() -> None:
    server = FakeServer()
    both = asyncio.Barrier(2)

    @server.on("tools/call")
    async def call(context: Context, params: dict[str, Any]) -> dict[str, Any]:
        await both.wait()
        if params["name"] == "asks":
            return {"content": [], "answered": await context.send_raw_request("elicitation/create", QUESTION)}
        return {"content": []} if await server.hears("done") else {}

    @server.on("done")
    async def done(_: Context, __: dict[str, Any]) -> dict[str, Any]:
        return {}

    async with bridged(server) as stage:
        asks = asyncio.ensure_future(stage.ann.request("files", "tools/call", {"name": "asks"}))
        waits = asyncio.ensure_future(stage.ben.request("files", "tools/call", {"name": "waits"}))
        found = [await stage.ear.hears_of("mcp/request", many=n) for n in (3, 4)]
        assert {envelope.to for envelope in found} == {("ann",), ("ben",)}
        for_ben = next(envelope for envelope in found if envelope.to == ("ben",))
        for_ann = next(envelope for envelope in found if envelope.to == ("ann",))
        await answer(stage.ben, for_ben, ACCEPTED)
        assert (await asks)["answered"] == ACCEPTED
        withdrawn = await stage.ear.hears("mcp/request", for_ann)
        assert withdrawn["method"] == "notifications/cancelled"
        await stage.ann.request("files", "done")
        await waits


async def test_where_the_server_says_for_whom_nobody_else_is_asked() -> None:
    server = FakeServer()
    server.says_whose = True
    both = asyncio.Barrier(2)

    @server.on("tools/call")
    async def call(context: Context, params: dict[str, Any]) -> dict[str, Any]:
        await both.wait()
        if params["name"] == "asks":
            return {"content": [], "answered": await context.send_raw_request("elicitation/create", QUESTION)}
        return {"content": []} if await server.hears("done") else {}

    @server.on("done")
    async def done(_: Context, __: dict[str, Any]) -> dict[str, Any]:
        return {}

    async with bridged(server) as stage:
        asks = asyncio.ensure_future(stage.ann.request("files", "tools/call", {"name": "asks"}))
        waits = asyncio.ensure_future(stage.ben.request("files", "tools/call", {"name": "waits"}))
        question = await stage.ear.hears_of("mcp/request", many=3)
        assert question.to == ("ann",)
        await answer(stage.ann, question, ACCEPTED)
        await asks
        await stage.ann.request("files", "done")
        await waits
        asked = [one for one in stage.ear.all("mcp/request") if one.content["method"] == "elicitation/create"]
    assert len(asked) == 1


async def test_who_is_named_is_asked_in_the_place_of_who_called() -> None:
    server = FakeServer()
    asking(server, "sampling/createMessage")
    async with bridged(server, settings(ask=["ben"])) as stage:
        calling = asyncio.ensure_future(stage.ann.request("files", "tools/call", {"name": "t"}))
        request = await stage.ear.hears_of("mcp/request")
        question = await stage.ear.hears_of("mcp/request", request)
        assert question.to == ("ben",)
        await answer(stage.ben, question, {"role": "assistant", "content": []})
        await calling


async def test_a_bridge_that_may_not_ask_says_so_to_the_server() -> None:
    server = FakeServer()
    asking(server)
    who = {"ann": ["*"], "ben": ["*"], "files": ["mcp/response"]}
    async with bridged(server, who=who) as stage:
        with pytest.raises(
            RpcError, match="files lacks the capability mcp/request:elicitation/create to ann"
        ):
            await stage.ann.request("files", "tools/call", {"name": "t"})


async def test_an_error_of_who_is_asked_is_the_answer() -> None:
    server = FakeServer()
    asking(server)
    async with bridged(server) as stage:
        calling = asyncio.ensure_future(stage.ann.request("files", "tools/call", {"name": "t"}))
        request = await stage.ear.hears_of("mcp/request")
        question = await stage.ear.hears_of("mcp/request", request)
        error = {"code": -1, "message": "not now", "data": {"x": 1}}
        payload = {"jsonrpc": "2.0", "id": question.content["id"], "error": error}
        await stage.ann.send("mcp/response", payload, to="files", correlation_id=question.id)
        with pytest.raises(RpcError) as raised:
            await calling
    assert (raised.value.code, raised.value.message, raised.value.data) == (-1, "not now", {"x": 1})


async def test_a_question_that_nobody_answers_has_an_end_and_does_not_count_against_the_server() -> None:
    server = FakeServer()
    asking(server)
    async with bridged(server, settings(ask_timeout_s=0.3, request_timeout_s=0.1)) as stage:
        with pytest.raises(RpcError, match=r"elicitation/create was not answered: 'ann' did not answer"):
            await stage.ann.request("files", "tools/call", {"name": "t"})


async def test_roots_are_those_that_were_given() -> None:
    server = FakeServer()

    @server.on("tools/call")
    async def call(context: Context, _: dict[str, Any]) -> dict[str, Any]:
        return {"content": [], "roots": await context.send_raw_request("roots/list", None)}

    async with bridged(server, settings(roots=["file:///data"])) as stage:
        result = await stage.ann.request("files", "tools/call", {"name": "t"})
    assert result["roots"] == {"roots": [{"uri": "file:///data"}]}
    assert "roots" in server.ours


async def test_a_question_nobody_knows_is_refused() -> None:
    server = FakeServer()
    asking(server, "future/question")
    async with bridged(server) as stage:
        with pytest.raises(RpcError, match="future/question is not answered here") as raised:
            await stage.ann.request("files", "tools/call", {"name": "t"})
    assert raised.value.code == -32601
    assert "roots" not in server.ours


async def test_a_question_is_withdrawn_when_the_call_is_cancelled() -> None:
    server = FakeServer(MODERN)
    needing(server)
    async with bridged(server) as stage:
        calling = asyncio.ensure_future(stage.ann.request("files", "tools/call", {"name": "t"}))
        request = await stage.ear.hears_of("mcp/request")
        question = await stage.ear.hears_of("mcp/request", request)
        calling.cancel()
        assert (await stage.ear.hears("mcp/request", question))["method"] == "notifications/cancelled"
