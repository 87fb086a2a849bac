"""An MCP server without a connection: what it answers, what it refuses, and that nothing sent to it breaks it."""

import asyncio
import enum
import logging
import threading
from collections.abc import Awaitable, Iterator
from typing import Any, Literal

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mew.client.errors import RpcError, ToolError
from mew.client.mcp.call import Call, CallCancelled, Level
from mew.client.mcp.results import Image, value_of
from mew.client.tools.functions import FunctionTool, Toolbox, What
from mew.client.tools.server import PROTOCOL_VERSIONS, McpServer
from mew.protocol.envelope import Envelope
from mew.protocol.json import encode_json


class Colour(enum.Enum):
    RED = "red"
    ROSE = "rose"
    BLUE = "blue"


class Desk:
    """A server, and what its calls told their callers."""

    def __init__(self, **options: Any) -> None:
        self.box = Toolbox()
        self.changes: list[What] = []
        self.told: list[tuple[str, dict[str, Any]]] = []
        self.server = McpServer("desk", "1.0", "Be kind.", self.box, changed=self.changes.append, **options)
        self._calls = 0

    def call(
        self, method: str, params: dict[str, Any], sender: str = "ann", id: str | int | None = None
    ) -> Call:
        self._calls += 1
        envelope = Envelope(protocol="mew/v0.4", id=f"e-{self._calls}", sender=sender, kind="mcp/request")
        chosen = self._calls if id is None else id
        return Call(envelope, method=method, params=params, id=chosen, notify=self._notify)

    def ask(
        self, method: str, *, sender: str = "ann", id: str | int | None = None, **params: Any
    ) -> Awaitable[Any]:
        return self.server.answer(method, params, self.call(method, params, sender, id))

    def use(self, name: str, **arguments: Any) -> Awaitable[Any]:
        return self.ask("tools/call", name=name, arguments=arguments)

    async def refused(self, method: str, **params: Any) -> RpcError:
        with pytest.raises(RpcError) as caught:
            await self.ask(method, **params)
        return caught.value

    async def _notify(self, method: str, params: dict[str, Any]) -> None:
        self.told.append((method, params))


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def quiet() -> Iterator[None]:
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


# The beginning.


@pytest.mark.parametrize("version", PROTOCOL_VERSIONS)
async def test_a_version_that_is_known_is_agreed_on(desk: Desk, version: str) -> None:
    result = await desk.ask("initialize", protocolVersion=version, capabilities={}, clientInfo={"name": "x"})
    assert result == {
        "protocolVersion": version,
        "capabilities": {
            "tools": {"listChanged": True},
            "resources": {"listChanged": True, "subscribe": True},
            "prompts": {"listChanged": True},
            "completions": {},
            "logging": {},
        },
        "serverInfo": {"name": "desk", "version": "1.0"},
        "instructions": "Be kind.",
    }


@pytest.mark.parametrize("params", [{"protocolVersion": "2099-01-01"}, {"protocolVersion": "1"}, {}], ids=str)
async def test_any_other_version_is_answered_with_the_newest(desk: Desk, params: dict[str, Any]) -> None:
    assert (await desk.ask("initialize", **params))["protocolVersion"] == "2025-11-25"


async def test_a_ping_is_answered_and_an_unknown_method_refused(desk: Desk) -> None:
    assert await desk.ask("ping") == {}
    error = await desk.refused("tools/burn")
    assert (error.code, error.message) == (-32601, "unknown method 'tools/burn'")


# Tools.


async def test_sync_and_async_tools_are_called_with_what_was_sent(desk: Desk) -> None:
    threads = []

    @desk.box.tool
    def add(a: int, b: int) -> int:
        threads.append(threading.current_thread())
        return a + b

    @desk.box.tool
    async def times(a: int, b: int) -> int:
        threads.append(threading.current_thread())
        return a * b

    assert value_of(await desk.use("add", a=2, b=3)) == 5
    assert value_of(await desk.use("times", a=2, b=3)) == 6
    assert [thread is threading.main_thread() for thread in threads] == [False, True]
    listed = (await desk.ask("tools/list"))["tools"]
    assert [tool["name"] for tool in listed] == ["add", "times"]
    result = await desk.use("add", a=2, b=3)
    jsonschema.Draft202012Validator(listed[0]["outputSchema"]).validate(result["structuredContent"])


async def test_functions_that_return_something_to_await_and_async_objects_are_awaited(desk: Desk) -> None:
    class Later:
        async def __call__(self) -> str:
            return "later"

    async def inner() -> str:
        return "inner"

    def outer() -> Awaitable[str]:
        return inner()

    desk.box.add(FunctionTool.of(Later(), name="later"))
    desk.box.tool(outer)
    assert value_of(await desk.use("later")) == "later"
    assert value_of(await desk.use("outer")) == "inner"


async def test_an_unknown_tool_and_wrong_arguments_are_invalid_params(desk: Desk) -> None:
    @desk.box.tool
    def add(a: int) -> int:
        return a

    error = await desk.refused("tools/call", name="burn")
    assert (error.code, error.message) == (-32602, "unknown tool 'burn'")
    error = await desk.refused("tools/call", name="add", arguments={"a": "1"})
    assert (error.code, error.message) == (-32602, "argument 'a': expected int, got str")
    error = await desk.refused("tools/call", name="add")
    assert (error.code, error.message) == (-32602, "argument 'a' is missing, expected integer")
    error = await desk.refused("tools/call", name="add", arguments=[1])
    assert error.code == -32602
    error = await desk.refused("tools/call")
    assert (error.code, error.message) == (-32602, "params: Object missing required field name")


@pytest.mark.usefixtures("quiet")
async def test_what_a_tool_raises_is_a_failed_result_without_a_traceback(desk: Desk) -> None:
    @desk.box.tool
    def precise() -> None:
        raise ToolError("the file is locked")

    @desk.box.tool
    async def broken() -> None:
        raise KeyError("secret")

    @desk.box.tool
    def wrong() -> int:
        return "a"  # type: ignore[return-value]

    @desk.box.tool
    def endless() -> str:
        raise ValueError("x" * 100_000)

    def said(result: dict[str, Any]) -> str:
        assert result["isError"] is True
        text: str = result["content"][0]["text"]
        return text

    assert said(await desk.use("precise")) == "the file is locked"
    assert said(await desk.use("broken")) == "KeyError: 'secret'"
    assert "not what the function promises" in said(await desk.use("wrong"))
    assert len(said(await desk.use("endless"))) == 2000


@pytest.mark.usefixtures("quiet")
async def test_a_tool_cannot_end_the_program_nor_hang_nor_feign_a_cancellation(desk: Desk) -> None:
    @desk.box.tool
    def leave() -> None:
        raise SystemExit(1)

    @desk.box.tool
    async def leave_async() -> None:
        raise SystemExit(1)

    @desk.box.tool
    def stop() -> None:
        next(iter(()))

    @desk.box.tool
    async def feign() -> None:
        raise asyncio.CancelledError

    @desk.box.tool
    async def late() -> None:
        raise TimeoutError

    async with asyncio.timeout(5):
        for name in ("leave", "leave_async", "stop", "feign", "late"):
            assert (await desk.use(name))["isError"] is True, name


async def test_a_tool_may_answer_with_a_json_rpc_error_of_its_own(desk: Desk) -> None:
    @desk.box.tool
    def pay() -> None:
        raise RpcError(402, "pay first", {"price": 3})

    error = await desk.refused("tools/call", name="pay")
    assert (error.code, error.message, error.data) == (402, "pay first", {"price": 3})


async def test_the_failure_of_a_tool_is_in_the_log_with_its_traceback(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    @desk.box.tool
    def broken() -> None:
        raise ValueError("boom")

    await desk.use("broken")
    assert "tool 'broken' failed" in caplog.text
    assert "Traceback" in caplog.text


# What a function may know and tell.


async def test_a_tool_knows_who_calls_and_tells_how_far_it_is(desk: Desk) -> None:
    @desk.box.tool
    async def work(call: Call) -> list[Any]:
        await call.progress(1, total=3)
        await call.progress(1)  # no further: MCP wants each to be more than the last
        await call.progress(2.5, message="nearly")
        return [call.sender, call.id, call.method, call.envelope.id, call.cancelled]

    params = {"name": "work", "_meta": {"progressToken": "t"}}
    call = desk.call("tools/call", params, "bob", 7)
    result = await desk.server.answer("tools/call", params, call)
    assert value_of(result) == ["bob", 7, "tools/call", call.envelope.id, False]
    assert desk.told == [
        ("notifications/progress", {"progressToken": "t", "progress": 1, "total": 3}),
        ("notifications/progress", {"progressToken": "t", "progress": 2.5, "message": "nearly"}),
    ]
    await call.progress(3)
    assert len(desk.told) == 2, "after the answer nothing more is told"


@pytest.mark.parametrize(
    "meta", [None, {}, {"progressToken": None}, {"progressToken": True}, [], "t"], ids=str
)
async def test_who_did_not_ask_for_progress_is_told_none(desk: Desk, meta: Any) -> None:
    @desk.box.tool
    async def work(call: Call) -> None:
        await call.progress(1)

    await desk.ask("tools/call", name="work", _meta=meta)
    assert desk.told == []


async def test_the_log_goes_to_each_caller_from_the_level_they_want(desk: Desk) -> None:
    @desk.box.tool
    async def work(call: Call) -> None:
        levels: tuple[Level, ...] = ("debug", "info", "error")
        for level in levels:
            await call.log(level, level)

    await desk.use("work")
    assert [params["data"] for _, params in desk.told] == ["info", "error"]
    assert desk.told[0] == ("notifications/message", {"level": "info", "data": "info"})
    assert await desk.ask("logging/setLevel", level="warning") == {}
    desk.told.clear()
    await desk.use("work")
    await desk.ask("tools/call", sender="bob", name="work")
    assert [params["data"] for _, params in desk.told] == ["error", "info", "error"]
    assert (await desk.refused("logging/setLevel", level="loud")).code == -32602
    desk.server.forget("ann")
    desk.told.clear()
    await desk.use("work")
    assert len(desk.told) == 2


# Cancelling.


@pytest.mark.parametrize("named_by", ["request", "envelope"])
async def test_a_caller_cancels_its_own_call_and_no_other(desk: Desk, named_by: str) -> None:
    started, stopped = asyncio.Event(), asyncio.Event()

    @desk.box.tool
    async def work() -> None:
        started.set()
        try:
            await asyncio.sleep(60)
        finally:
            stopped.set()

    params = {"name": "work"}
    call = desk.call("tools/call", params, "ann", 1)
    wanted = call.id if named_by == "request" else call.envelope.id
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        answer = tasks.create_task(outcome(desk.server.answer("tools/call", params, call)))
        await started.wait()
        hostile: list[tuple[Any, str]] = [
            (wanted, "bob"),
            ("1", "ann"),
            (True, "ann"),
            ([1], "ann"),
            (None, "ann"),
        ]
        for request, sender in hostile:
            desk.server.notice("notifications/cancelled", {"requestId": request}, sender)
        await asyncio.sleep(0)
        assert not call.cancelled
        desk.server.notice("notifications/cancelled", {"requestId": wanted, "reason": "bored"}, "ann")
        desk.server.notice("notifications/cancelled", {"requestId": wanted}, "ann")
        assert await answer == "CallCancelled"
    assert stopped.is_set()
    assert call.cancelled
    desk.server.notice("notifications/cancelled", {"requestId": wanted}, "ann")


async def outcome(answer: Awaitable[dict[str, Any]]) -> str:
    try:
        return f"answered {await answer}"
    except CallCancelled as error:
        return type(error).__name__


async def test_a_tool_in_a_thread_sees_that_it_is_cancelled_and_nobody_waits_for_it(desk: Desk) -> None:
    started, seen = threading.Event(), threading.Event()

    @desk.box.tool
    def work(call: Call) -> None:
        started.set()
        for _ in range(500):
            if call.cancelled:
                seen.set()
                return
            threading.Event().wait(0.01)

    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        answer = tasks.create_task(outcome(desk.ask("tools/call", id="r", name="work")))
        await asyncio.to_thread(started.wait, 5)
        desk.server.notice("notifications/cancelled", {"requestId": "r"}, "ann")
        assert await answer == "CallCancelled"
        assert await asyncio.to_thread(seen.wait, 5)


async def test_a_tool_that_will_not_be_cancelled_is_still_not_answered(desk: Desk) -> None:
    @desk.box.tool
    async def stubborn() -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "done anyway"
        return "done"

    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        answer = tasks.create_task(outcome(desk.ask("tools/call", id=1, name="stubborn")))
        for _ in range(3):
            await asyncio.sleep(0)
        desk.server.notice("notifications/cancelled", {"requestId": 1}, "ann")
        assert await answer == "CallCancelled"


async def test_who_cancels_the_task_itself_is_obeyed(desk: Desk) -> None:
    @desk.box.tool
    async def work() -> None:
        await asyncio.sleep(60)

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await desk.use("work")


# Lists.


async def test_a_long_list_comes_in_pages() -> None:
    desk = Desk(page_size=2)
    for n in range(5):
        desk.box.tool(name=f"t{n}")(lambda: None)
    names: list[str] = []
    params: dict[str, Any] = {}
    for _ in range(3):
        page = await desk.ask("tools/list", **params)
        names += [tool["name"] for tool in page["tools"]]
        params = {"cursor": page.get("nextCursor")}
    assert names == ["t0", "t1", "t2", "t3", "t4"]
    assert params == {"cursor": None}
    for cursor in ("x", "-1", "1e9", "٣", "9" * 5000, 3):
        assert (await desk.refused("tools/list", cursor=cursor)).code == -32602
    assert (await desk.ask("tools/list", cursor="999"))["tools"] == []


async def test_changes_of_the_toolbox_are_told(desk: Desk) -> None:
    desk.box.tool(name="a")(lambda: None)
    desk.box.resource("a://b", name="b")(lambda: "")
    desk.box.prompt(name="c")(lambda: "")
    desk.box.remove(desk.box.tools["a"])
    assert desk.changes == ["tools", "resources", "prompts", "tools"]
    assert await desk.ask("tools/list") == {"tools": []}


# Resources.


def with_notes(desk: Desk) -> None:
    notes = {"a b": "first", "two": "second"}

    @desk.box.resource("notes://all", mime_type="text/csv")
    def all_notes() -> str:
        return ",".join(notes)

    @desk.box.resource(
        "notes://{name}", complete={"name": lambda begun: [n for n in notes if n.startswith(begun)]}
    )
    async def note(name: str, call: Call) -> str | None:
        return notes.get(name)

    @desk.box.resource("pages://{number}")
    def page(number: int) -> Image:
        return Image(bytes([number]))

    @desk.box.resource("broken://x")
    def broken() -> str:
        raise ValueError("secret")

    @desk.box.resource("locked://x")
    def locked() -> str:
        raise ToolError("ask ann for the key")


@pytest.mark.usefixtures("quiet")
async def test_resources_are_listed_and_read(desk: Desk) -> None:
    with_notes(desk)
    fixed, templates = await desk.ask("resources/list"), await desk.ask("resources/templates/list")
    assert [resource["uri"] for resource in fixed["resources"]] == ["notes://all", "broken://x", "locked://x"]
    assert [each["uriTemplate"] for each in templates["resourceTemplates"]] == [
        "notes://{name}",
        "pages://{number}",
    ]
    read = await desk.ask("resources/read", uri="notes://all")
    assert read == {"contents": [{"uri": "notes://all", "mimeType": "text/csv", "text": "a b,two"}]}
    assert (await desk.ask("resources/read", uri="notes://a%20b"))["contents"][0]["text"] == "first"
    assert (await desk.ask("resources/read", uri="pages://7"))["contents"][0]["blob"] == "Bw=="


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize(
    ("uri", "code", "message"),
    [
        ("notes://nobody", -32002, "no resource 'notes://nobody'"),
        ("other://x", -32002, "no resource 'other://x'"),
        ("notes://..%2Fetc", -32002, "no resource 'notes://..%2Fetc'"),
        ("pages://seven", -32602, "argument 'number': expected int, got str"),
        ("broken://x", -32603, "resource 'broken://x' could not be read"),
        ("locked://x", -32603, "ask ann for the key"),
    ],
)
async def test_what_cannot_be_read_is_refused_without_internals(
    desk: Desk, uri: str, code: int, message: str
) -> None:
    with_notes(desk)
    error = await desk.refused("resources/read", uri=uri)
    assert (error.code, error.message) == (code, message)


async def test_subscriptions_are_kept_by_caller_and_bounded(desk: Desk) -> None:
    with_notes(desk)
    for sender in ("ann", "bob"):
        assert await desk.ask("resources/subscribe", sender=sender, uri="notes://all") == {}
    assert desk.server.subscribers("notes://all") == ("ann", "bob")
    assert await desk.ask("resources/unsubscribe", sender="bob", uri="notes://all") == {}
    assert await desk.ask("resources/unsubscribe", sender="eve", uri="notes://all") == {}
    assert desk.server.subscribers("notes://all") == ("ann",)
    assert (await desk.refused("resources/subscribe", uri="other://x")).code == -32002
    assert (await desk.refused("resources/subscribe", uri="notes://" + "x" * 5_000)).code == -32602
    for n in range(1023):
        await desk.ask("resources/subscribe", uri=f"notes://{n}")
    assert (await desk.refused("resources/subscribe", uri="notes://more")).code == -32602
    desk.server.forget("ann")
    assert desk.server.subscribers("notes://all") == ()


# Prompts and completion.


def with_prompts(desk: Desk) -> None:
    @desk.box.prompt
    def paint(colour: Colour, size: Literal["small", "large"] = "small", times: int = 1) -> str:
        """Paint."""
        return f"{colour.value} {size} {times + 1}"

    async def many(begun: str) -> list[str]:
        return [f"{begun}{n}" for n in range(250)]

    @desk.box.prompt(complete={"city": many})
    def visit(city: str) -> list[Any]:
        return ["go", {"role": "assistant", "content": city}]


@pytest.mark.usefixtures("quiet")
async def test_prompts_are_listed_and_written(desk: Desk) -> None:
    with_prompts(desk)
    assert [prompt["name"] for prompt in (await desk.ask("prompts/list"))["prompts"]] == ["paint", "visit"]
    written = await desk.ask("prompts/get", name="paint", arguments={"colour": "red", "times": "2"})
    assert written == {
        "description": "Paint.",
        "messages": [{"role": "user", "content": {"type": "text", "text": "red small 3"}}],
    }
    error = await desk.refused("prompts/get", name="paint", arguments={"colour": "green"})
    assert (error.code, error.message) == (-32602, "argument 'colour': invalid enum value 'green'")
    assert (await desk.refused("prompts/get", name="burn")).code == -32602

    @desk.box.prompt
    def wrong() -> int:
        return 3

    error = await desk.refused("prompts/get", name="wrong")
    assert (error.code, error.message) == (-32603, "internal error")


async def test_arguments_are_completed(desk: Desk) -> None:
    with_prompts(desk)
    with_notes(desk)

    async def complete(ref: dict[str, Any], name: str, value: str) -> Any:
        result = await desk.ask("completion/complete", ref=ref, argument={"name": name, "value": value})
        return result["completion"]

    paint = {"type": "ref/prompt", "name": "paint"}
    assert await complete(paint, "colour", "r") == {"values": ["red", "rose"], "total": 2, "hasMore": False}
    assert (await complete(paint, "size", ""))["values"] == ["large", "small"]
    assert (await complete(paint, "times", "1"))["values"] == []
    assert (await complete(paint, "nothing", "1"))["values"] == []
    many = await complete({"type": "ref/prompt", "name": "visit"}, "city", "x")
    assert (len(many["values"]), many["total"], many["hasMore"]) == (100, 250, True)
    note = {"type": "ref/resource", "uri": "notes://{name}"}
    assert (await complete(note, "name", "t"))["values"] == ["two"]
    for ref in ({"type": "ref/prompt", "name": "burn"}, {"type": "ref/else"}, {}, "x"):
        error = await desk.refused("completion/complete", ref=ref, argument={"name": "a", "value": ""})
        assert error.code == -32602


# Whatever comes.

METHODS = st.sampled_from(
    [
        "initialize", "ping", "tools/list", "tools/call", "resources/list", "resources/templates/list",
        "resources/read", "resources/subscribe", "resources/unsubscribe", "prompts/list", "prompts/get",
        "completion/complete", "logging/setLevel", "notifications/cancelled", "",
    ]
)  # fmt: skip
WORDS = st.sampled_from(
    [
        "name",
        "arguments",
        "uri",
        "cursor",
        "_meta",
        "progressToken",
        "ref",
        "argument",
        "type",
        "level",
        "requestId",
    ]
)
NAMES = st.sampled_from(
    ["echo", "paint", "notes://all", "notes://two", "ref/prompt", "ref/resource", "red", "1"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS | st.text(), inner, max_size=4),
    max_leaves=10,
)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(METHODS | st.text(), st.dictionaries(WORDS | st.text(), JSON, max_size=5))
def test_no_request_breaks_the_server(method: str, params: dict[str, Any]) -> None:
    desk = Desk()
    with_prompts(desk)

    @desk.box.resource("notes://{name}")
    async def note(name: str) -> str:
        return name

    @desk.box.tool
    async def echo(arguments: Any = None, name: str = "", *, uri: set[int] | None = None) -> Any:
        return arguments

    async def ask() -> None:
        try:
            encode_json(await desk.server.answer(method, params, desk.call(method, params)))
        except RpcError as error:
            encode_json([error.code, error.message, error.data])
            assert error.code in (-32601, -32602, -32002)  # noqa: PT017
        desk.server.notice(method, params, "ann")

    asyncio.run(ask())


async def test_arguments_however_deep_are_only_wrong_arguments(desk: Desk) -> None:
    @desk.box.tool
    async def echo(value: list[int]) -> Any:
        return value

    deep: Any = []
    for _ in range(5000):
        deep = [deep]
    error = await desk.refused("tools/call", name="echo", arguments={"value": deep})
    assert error.code == -32602


@pytest.mark.parametrize(("token", "told"), [("x" * 1_024, 1), ("x" * 1_025, 0), (7, 1), (True, 0)])
async def test_a_progress_token_that_is_long_is_not_repeated_with_each_step(token: Any, told: int) -> None:
    desk = Desk()
    call = desk.call("tools/call", {"_meta": {"progressToken": token}})
    await call.progress(1)
    assert len(desk.told) == told
