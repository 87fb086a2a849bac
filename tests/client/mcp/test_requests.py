"""Requests and their answers (§3.1), over a real space."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from msgspec import UNSET

from mew.client.connection.connection import ClientConnection
from mew.client.connection.reply import awaiting
from mew.client.errors import Absent, Disconnected, Refused, RpcError, Unanswered
from mew.client.mcp.requests import Requests
from mew.protocol.envelope import Envelope
from mew.protocol.errors import Refusal
from mew.protocol.kinds import Kind, McpRequest
from mew.testing import Space

WHO = {"ann": ["*"], "calc": ["mcp/*"], "eve": ["*"], "bot": ["mcp/request:tools/*"]}

Answer = Callable[[Envelope, McpRequest], dict[str, Any] | None]


@asynccontextmanager
async def meeting(*names: str) -> AsyncIterator[tuple[Any, ...]]:
    """A space, and connections of those named."""
    async with asyncio.timeout(5), Space(WHO) as space, AsyncExitStack() as stack:
        yield space, *[await stack.enter_async_context(space.connection(name)) for name in names]


def answering(who: ClientConnection, answer: Answer) -> None:
    """Answer every request to `who`; None: not yet, or never."""

    def listen(envelope: Envelope, payload: Any) -> None:
        if isinstance(payload, McpRequest) and payload.id is not UNSET and who.session.me in envelope.to:
            said = answer(envelope, payload)
            if said is not None:
                respond(who, envelope, payload, said)

    who.listen(listen)


def respond(who: ClientConnection, envelope: Envelope, request: McpRequest, said: dict[str, Any]) -> None:
    payload = {"jsonrpc": "2.0", "id": request.id, **said}
    to, about = [envelope.sender], [envelope.id]
    who.post(who.compose(Kind.MCP_RESPONSE, payload, to=to, correlation_id=about))


def requested(method: str) -> Callable[[Envelope, Any], tuple[Envelope, McpRequest] | None]:
    def look(envelope: Envelope, payload: Any) -> tuple[Envelope, McpRequest] | None:
        found = isinstance(payload, McpRequest) and payload.method == method
        return (envelope, payload) if found else None

    return look


async def test_a_request_returns_the_result_of_its_response_3_1() -> None:
    async with meeting("ann", "calc") as (_, ann, calc):
        seen: list[Envelope] = []
        calc.listen(lambda envelope, _: seen.append(envelope))
        answering(calc, lambda _, request: {"result": request.params})
        result = await Requests(ann).request(
            "calc", "tools/call", {"name": "add"}, context="sums", correlation_id=["e1"]
        )
        assert result == {"name": "add"}
        (envelope,) = [envelope for envelope in seen if envelope.kind == Kind.MCP_REQUEST]
        assert envelope.to == ("calc",)
        assert envelope.context == "sums"
        assert envelope.correlation_id == ("e1",)
        assert envelope.content["jsonrpc"] == "2.0"
        assert isinstance(envelope.content["id"], int)


async def test_a_result_may_be_null_and_params_may_be_left_out() -> None:
    async with meeting("ann", "calc") as (_, ann, calc):
        answering(calc, lambda _, request: {"result": None if request.params is UNSET else 1})
        assert await Requests(ann).request("calc", "ping") is None


async def test_an_error_is_raised_with_its_code_and_data() -> None:
    async with meeting("ann", "calc") as (_, ann, calc):
        error = {"code": -32601, "message": "unknown method", "data": {"method": "x"}}
        answering(calc, lambda *_: {"error": error})
        with pytest.raises(RpcError, match=r"unknown method \(-32601\)") as caught:
            await Requests(ann).request("calc", "x")
        assert caught.value.data == {"method": "x"}


async def test_a_name_in_place_of_an_error_code_still_ends_the_request() -> None:
    async with meeting("ann", "calc") as (_, ann, calc):
        answering(calc, lambda *_: {"error": {"code": "TOOL_NOT_FOUND", "message": "no such tool"}})
        with pytest.raises(RpcError, match=r"no such tool \(TOOL_NOT_FOUND\)") as caught:
            await Requests(ann).request("calc", "x")
        assert caught.value.integer_code == -32603


async def test_nobody_answers_in_anothers_name() -> None:
    """Design §3.18."""
    async with meeting("ann", "calc", "eve") as (_, ann, calc, eve):

        def intrude(envelope: Envelope, payload: Any) -> None:
            if isinstance(payload, McpRequest):
                respond(eve, envelope, payload, {"result": "eve's"})

        eve.listen(intrude)
        held: list[tuple[Envelope, McpRequest]] = []
        answering(calc, lambda *asked: held.append(asked))
        with awaiting(calc, lambda envelope, _: True if envelope.sender == "eve" else None) as intruded:
            asking = asyncio.ensure_future(Requests(ann).request("calc", "x"))
            await intruded
        respond(calc, *held[0], {"result": "calc's"})
        assert await asking == "calc's"


async def test_an_answer_that_names_another_request_is_not_taken_3_1_2() -> None:
    async with meeting("ann", "calc") as (_, ann, calc):

        def astray(envelope: Envelope, request: McpRequest) -> None:
            payload = {"jsonrpc": "2.0", "id": request.id, "result": 1}
            calc.post(calc.compose(Kind.MCP_RESPONSE, payload, to=["ann"], correlation_id=["other"]))

        answering(calc, astray)
        with pytest.raises(Unanswered):
            await Requests(ann).request("calc", "x", timeout_s=0.05)


async def test_many_requests_at_a_time_get_their_own_answers() -> None:
    async with meeting("ann", "calc") as (_, ann, calc):
        held: list[tuple[Envelope, McpRequest]] = []

        def backwards(envelope: Envelope, request: McpRequest) -> None:
            held.append((envelope, request))
            if len(held) == 50:
                for asked in reversed(held):
                    respond(calc, *asked, {"result": asked[1].params})

        answering(calc, backwards)
        requests = Requests(ann)
        results = await asyncio.gather(*(requests.request("calc", "x", {"n": n}) for n in range(50)))
        assert results == [{"n": n} for n in range(50)]


async def test_who_is_absent_is_named_with_the_nearest_name() -> None:
    async with (
        asyncio.timeout(5),
        Space(WHO) as space,
        space.connection("ann") as ann,
        space.connection("calc"),
    ):
        requests = Requests(ann)
        with pytest.raises(Absent, match=r"nobody called 'calk' is in the space; did you mean 'calc'\?"):
            await requests.request("calk", "x", timeout_s=0.02)
        with pytest.raises(Absent, match="here are: "):
            await requests.request("zzzz", "x", timeout_s=0.02)


async def test_who_joins_in_time_is_asked() -> None:
    async with asyncio.timeout(5), Space(WHO) as space, space.connection("ann") as ann:
        asking = asyncio.ensure_future(Requests(ann).request("calc", "x"))
        await asyncio.sleep(0)
        async with space.connection("calc") as calc:
            answering(calc, lambda *_: {"result": 1})
            assert await asking == 1


async def test_no_answer_in_time_is_told_to_the_addressee() -> None:
    async with meeting("ann", "calc") as (_, ann, calc):
        with (
            awaiting(calc, requested("x")) as asked,
            awaiting(calc, requested("notifications/cancelled")) as told,
        ):
            with pytest.raises(Unanswered, match=r"^'calc' did not answer x within 0.05 s$"):
                await Requests(ann).request("calc", "x", timeout_s=0.05, context="c")
            envelope, cancelled = await told
            assert cancelled.params == {
                "requestId": (await asked)[1].id,
                "reason": "no answer in time",
            }
            assert cancelled.id is UNSET
            assert (envelope.to, envelope.context) == (("calc",), "c")


async def test_a_cancelled_task_tells_the_addressee_and_leaves_nothing_behind() -> None:
    async with meeting("ann", "calc") as (_, ann, calc):
        requests = Requests(ann)
        listeners = len(ann.listeners)
        with (
            awaiting(calc, requested("x")) as asked,
            awaiting(calc, requested("notifications/cancelled")) as told,
        ):
            asking = asyncio.ensure_future(requests.request("calc", "x"))
            envelope, request = await asked
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            assert (await told)[1].params == {"requestId": request.id, "reason": "no longer wanted"}
        respond(calc, envelope, request, {"result": "too late"})
        answering(calc, lambda *_: {"result": "next"})
        assert await requests.request("calc", "y") == "next"
        assert len(ann.listeners) == listeners


async def test_who_may_not_cancel_does_not() -> None:
    async with meeting("bot", "calc") as (_, bot, calc):
        seen: list[str] = []
        calc.listen(lambda _, payload: seen.append(getattr(payload, "method", "")))
        bot.listen(lambda envelope, _: seen.append(envelope.kind))
        with pytest.raises(Unanswered):
            await Requests(bot).request("calc", "tools/list", timeout_s=0.02)
        answering(calc, lambda *_: {"result": 1})
        await Requests(bot).request("calc", "tools/list")
        assert "notifications/cancelled" not in seen
        assert Kind.ERROR not in seen


async def test_initialize_is_never_cancelled() -> None:
    """MCP forbids it."""
    async with meeting("ann", "calc") as (_, ann, calc):
        seen: list[str] = []
        calc.listen(lambda _, payload: seen.append(getattr(payload, "method", "")))
        with pytest.raises(Unanswered):
            await Requests(ann).request("calc", "initialize", timeout_s=0.02)
        answering(calc, lambda *_: {"result": 1})
        await Requests(ann).request("calc", "ping")
        assert seen[-2:] == ["ping", ""]
        assert "notifications/cancelled" not in seen


async def test_who_leaves_may_come_back_and_answer() -> None:
    async with asyncio.timeout(5), Space(WHO) as space, space.connection("ann") as ann:
        requests = Requests(ann)
        async with space.connection("calc") as calc:
            with awaiting(calc, requested("x")) as asked:
                asking = asyncio.ensure_future(requests.request("calc", "x"))
                envelope, request = await asked
        async with space.connection("calc") as calc:
            respond(calc, envelope, request, {"result": "here again"})
            assert await asking == "here again"


async def test_unanswered_says_that_the_addressee_has_left() -> None:
    async with asyncio.timeout(5), Space(WHO) as space, space.connection("ann") as ann:
        requests = Requests(ann)
        async with space.connection("calc") as calc:
            with awaiting(calc, requested("x")) as asked:
                asking = asyncio.ensure_future(requests.request("calc", "x", timeout_s=0.2))
                await asked
        with pytest.raises(Unanswered, match=r"'calc' has left the space and did not answer x within 0\.2 s"):
            await asking


async def test_progress_is_told_by_the_addressee_alone() -> None:
    async with meeting("ann", "calc", "eve") as (_, ann, calc, eve):
        told: list[tuple[float, float | None, str | None]] = []

        def work(envelope: Envelope, request: McpRequest) -> dict[str, Any]:
            assert isinstance(request.params, dict)
            token = request.params["_meta"]["progressToken"]
            for params in (
                {"progressToken": token, "progress": 1},
                {"progressToken": token, "progress": "half"},
                {"progressToken": token, "progress": 2, "total": 2, "message": "done"},
                {"progressToken": "other", "progress": 3},
            ):
                payload = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
                calc.post(calc.compose(Kind.MCP_REQUEST, payload, to=["ann"]))
            return {"result": request.params}

        def intrude(envelope: Envelope, payload: Any) -> None:
            if isinstance(payload, McpRequest) and payload.method == "x":
                assert isinstance(payload.params, dict)
                params = {"progressToken": payload.params["_meta"]["progressToken"], "progress": 9}
                said = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
                eve.post(eve.compose(Kind.MCP_REQUEST, said, to=["ann"]))

        eve.listen(intrude)
        answering(calc, work)
        given = {"a": 1, "_meta": {"mine": True}}
        result = await Requests(ann).request(
            "calc", "x", given, on_progress=lambda *progress: told.append(progress)
        )
        assert told == [(1, None, None), (2, 2, "done")]
        assert result["a"] == 1
        assert result["_meta"]["mine"] is True
        assert given == {"a": 1, "_meta": {"mine": True}}


async def test_a_notification_has_no_id_and_awaits_no_answer() -> None:
    async with meeting("ann", "calc") as (_, ann, calc):
        with awaiting(calc, requested("notifications/x")) as seen:
            await Requests(ann).notify("calc", "notifications/x", {"a": 1})
            envelope, notification = await seen
            assert envelope.to == ("calc",)
            assert (notification.id, notification.params) == (UNSET, {"a": 1})


async def test_what_the_gateway_refuses_is_raised() -> None:
    async with (
        asyncio.timeout(5),
        Space(WHO) as space,
        space.connection("bot") as bot,
        space.connection("calc"),
    ):
        with pytest.raises(Refused) as caught:
            await Requests(bot).request("calc", "resources/list")
        assert caught.value.why is Refusal.CAPABILITY_VIOLATION
        with pytest.raises(Refused):
            await Requests(bot).notify("calc", "notifications/x")


async def test_the_answer_reaches_us_over_a_lost_connection() -> None:
    async with meeting("ann", "calc") as (space, ann, calc):
        with awaiting(calc, requested("x")) as asked:
            asking = asyncio.ensure_future(Requests(ann).request("calc", "x"))
            envelope, request = await asked
        space.cut("ann")
        respond(calc, envelope, request, {"result": "still here"})
        assert await asking == "still here"


async def test_who_waits_is_told_when_the_connection_ends_for_good() -> None:
    async with meeting("ann", "calc", "eve") as (_, ann, calc, eve):
        with awaiting(calc, requested("x")) as asked:
            asking = asyncio.ensure_future(Requests(ann).request("calc", "x"))
            await asked
        absent = asyncio.ensure_future(Requests(ann).present("nobody"))
        await asyncio.sleep(0)
        eve.post(eve.compose(Kind.KICK, {"participant_id": "ann"}))
        with pytest.raises(Disconnected):
            await asking
        with pytest.raises(Disconnected):
            await absent
        with pytest.raises(Disconnected):
            await Requests(ann).request("calc", "x")


@pytest.mark.parametrize("result", [[1], None, {}, {"tools": 3}, {"tools": "abc"}, {"tools": ["x"]}])
async def test_what_is_no_listing_is_an_error_of_who_answers(result: Any) -> None:
    async with meeting("ann", "calc") as (_, ann, calc):
        answering(calc, lambda *_: {"result": result})
        with pytest.raises(RpcError, match="no listing"):
            await Requests(ann).listing("calc", "tools")


async def test_a_listing_without_end_is_given_up() -> None:
    async with meeting("ann", "calc") as (_, ann, calc):
        page = {"tools": [{"name": "x" * 900_000}], "nextCursor": "more"}
        answering(calc, lambda *_: {"result": page})
        with pytest.raises(RpcError, match="without end"):
            await Requests(ann).listing("calc", "tools")
