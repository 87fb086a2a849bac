"""The synchronous client: the same client, on an event loop in a thread of its own."""

import asyncio
import gc
import inspect
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from anyio.from_thread import start_blocking_portal

import mew
from mew import Cancelled, connect_sync
from mew.client.errors import AlreadyDecided, ConnectError, Disconnected, NotFulfilled, Refused
from mew.client.proposals.outcomes import Fulfilled, Rejected
from mew.client.sync import SyncClient, SyncProxy
from mew.gateway.config.loader import load_config
from mew.gateway.server import Gateway

SPACE_YAML: Final = """
space: {id: demo}
participants:
  ann: {tokens: [t-ann], capabilities: ["*"]}
  bob: {tokens: [t-bob], capabilities: ["*"]}
  bot: {tokens: [t-bot], capabilities: ["chat", "mcp/proposal", "mcp/withdraw"]}
  calculator: {tokens: [t-calculator], capabilities: ["mcp/*"]}
server: {port: 0}
"""
SOON_S: Final = 5.0
NAME: Final = "mew-sync"


class Stage(NamedTuple):
    url: str
    ann: SyncClient
    bob: SyncClient
    bot: SyncClient


def loops() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == NAME}


@pytest.fixture(autouse=True)
def no_thread_is_left_behind() -> Iterator[None]:
    yield
    assert not loops()


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """Of a gateway in a thread of its own, with a calculator in its space."""
    (tmp_path / "space.yaml").write_text(SPACE_YAML)
    gateway = Gateway(load_config(tmp_path / "space.yaml", {}), {})
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(calculating(gateway)):
        yield gateway.url


@asynccontextmanager
async def calculating(gateway: Gateway) -> AsyncIterator[None]:
    calculator = mew.Participant("calculator")

    @calculator.tool
    async def add(a: int, b: int) -> int:
        return a + b

    @calculator.tool
    async def count(to: int, call: mew.Call) -> int:
        for done in range(1, to + 1):
            await call.progress(done, to)
        return to

    async with (
        gateway,
        mew.connect(gateway.url, space="demo", token="t-calculator") as client,
        asyncio.TaskGroup() as tasks,
    ):
        tasks.create_task(calculator.serve(client))
        yield
        calculator.stop()


def join(url: str, who: str) -> SyncClient:
    return connect_sync(url, space="demo", token=f"t-{who}")


@pytest.fixture
def stage(url: str) -> Iterator[Stage]:
    with join(url, "ann") as ann, join(url, "bob") as bob, join(url, "bot") as bot:
        yield Stage(url, ann, bob, bot)


@pytest.fixture
def aside() -> Iterator[Callable[..., Any]]:
    """Has another thread do something, and gives the future of it."""
    with ThreadPoolExecutor(thread_name_prefix="aside") as pool:
        yield pool.submit


def first(feed: SyncProxy) -> Any:
    found = feed.next_within(SOON_S)
    assert found is not None, "nothing came"
    return found


def interrupt(*_: object) -> None:
    """Ctrl-C, from another thread than the main one; after what is given."""
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


posix = pytest.mark.skipif(sys.platform == "win32", reason="a signal is sent to a thread")


# Calls and values.


def test_what_is_awaited_there_returns_here(stage: Stage) -> None:
    heard = stage.bob.envelopes("chat")
    said = stage.ann.chat("hello", to=["bob"])
    assert first(heard).id == said.id
    assert stage.ann.call("calculator", "add", {"a": 2, "b": 3}) == 5
    assert [tool.name for tool in stage.ann.tools("calculator")] == ["add", "count"]


def test_plain_values_are_what_they_are_and_what_lives_on_is_a_copy(stage: Stage) -> None:
    ann = stage.ann
    assert (ann.id, ann.space, ann.connected, ann.can_send("chat")) == ("ann", "demo", True, True)
    before = stage.bot.participants
    assert type(before) is dict
    stage.bob.close()
    assert "bob" in before


def test_what_is_of_the_loop_is_a_proxy_also_in_a_tuple(stage: Stage) -> None:
    opened = stage.ann.streams.open()
    (found,) = stage.ann.streams.active
    assert isinstance(found, SyncProxy)
    assert found.id == opened.id
    assert repr(found) == repr(opened)
    assert stage.ann.streams == stage.ann.streams
    assert len({stage.ann.streams, stage.ann.streams}) == 1


def test_an_exception_has_its_type(stage: Stage) -> None:
    with pytest.raises(Refused) as refused:
        stage.bot.send("mcp/request", {"jsonrpc": "2.0", "id": 1, "method": "ping"})
    assert refused.value.why == "capability_violation"
    with pytest.raises(KeyError):
        stage.ann.review("unknown")


def test_what_is_not_there_is_said_and_nothing_new_can_be_set(stage: Stage) -> None:
    for name in ("_requests", "chatt"):
        with pytest.raises(AttributeError, match=name):
            getattr(stage.ann, name)
    with pytest.raises(AttributeError, match="cannot be set"):
        stage.ann.reasoning("?").conclusoin = "typo"


def test_several_threads_may_use_one_client(stage: Stage, aside: Callable[..., Any]) -> None:
    heard = stage.bob.envelopes("chat")
    texts = [f"{number}" for number in range(100)]
    for said in [aside(stage.ann.chat, text) for text in texts]:
        said.result(SOON_S)
    assert sorted(first(heard).content["text"] for _ in texts) == sorted(texts)


# Iterations.


def test_a_feed_is_an_iterator_and_a_context(stage: Stage) -> None:
    with stage.bob.envelopes("chat") as heard:
        for text in ("one", "two"):
            stage.ann.chat(text)
        stage.bob.chat("three")
        assert len(heard) == 3
        assert [envelope.content["text"] for envelope in islice(heard, 3)] == ["one", "two", "three"]
    assert heard.closed
    assert list(heard) == []


def test_the_history_is_an_iterator_too(stage: Stage) -> None:
    said = [stage.bot.chat(f"{n}") for n in range(3)]
    history = stage.ann.history(kind="chat", after=said[0])
    assert next(history) == said[1]
    assert list(history) == said[2:]
    assert history.complete
    assert stage.ann.history(kind="chat", limit=2, newest_first=True).list() == said[:0:-1]


def test_waiting_for_the_next_may_have_an_end(stage: Stage) -> None:
    heard = stage.bob.envelopes("chat")
    assert heard.next_within(0.01) is None
    stage.bob.chat("here")
    assert first(heard).content["text"] == "here"
    heard.close()
    assert heard.next_within(SOON_S) is None


def test_threads_may_share_an_iteration(stage: Stage, aside: Callable[..., Any]) -> None:
    heard = stage.bob.envelopes("chat")
    waiting = [aside(heard.next_within, SOON_S) for _ in range(4)]
    said = {stage.ann.chat("work").id for _ in waiting}
    assert {waiter.result(SOON_S).id for waiter in waiting} == said


def test_the_book_is_iterated_over_as_it_is_now(stage: Stage) -> None:
    proposed = stage.bot.propose("tools/call", {"name": "add"}, target="calculator")
    first(stage.ann.proposals())
    book = stage.ann.book
    assert [record.id for record in book] == [proposed.id]
    assert proposed.id in book
    assert book[proposed.id].proposer == "bot"
    assert len(book) == 1


# Proposals.


def test_a_proposal_is_waited_for(stage: Stage) -> None:
    params = {"name": "add", "arguments": {"a": 2, "b": 3}}
    proposed = stage.bot.propose("tools/call", params, target="calculator")
    with pytest.raises(TimeoutError):
        proposed.wait(timeout_s=0.01)
    review = first(stage.ann.proposals())
    assert review.arguments == {"a": 2, "b": 3}
    assert review.approve({"a": 4, "b": 3}) == 7
    outcome = proposed.wait(timeout_s=SOON_S)
    assert isinstance(outcome, Fulfilled)
    assert outcome.edited
    assert proposed.value() == 7
    with pytest.raises(AlreadyDecided):
        review.reject()


def test_a_call_that_is_only_proposed_waits_for_its_reviewer(stage: Stage, aside: Callable[..., Any]) -> None:
    call = aside(stage.bot.call, "calculator", "add", {"a": 2, "b": 3})
    first(stage.ann.proposals()).reject("unsafe", "it overflows")
    with pytest.raises(NotFulfilled) as why:
        call.result(SOON_S)
    assert isinstance(why.value.outcome, Rejected)


# Callbacks.


def test_a_callback_is_called_in_the_thread_that_waits_and_may_use_the_client(stage: Stage) -> None:
    heard: list[tuple[threading.Thread, float, str]] = []

    def told(done: float, total: float | None, message: str | None) -> None:
        heard.append((threading.current_thread(), done, stage.ann.chat(f"{done} of {total}").kind))

    assert stage.ann.call("calculator", "count", {"to": 3}, on_progress=told) == 3
    assert heard == [(threading.current_thread(), done, "chat") for done in (1, 2, 3)]


def test_what_a_callback_raises_ends_the_call(stage: Stage) -> None:
    def told(*_: object) -> None:
        raise OverflowError

    asked = stage.bob.envelopes("mcp/request")
    with pytest.raises(OverflowError):
        ask_slowly(stage, asked, told)
    assert first(asked).content["method"] == "notifications/cancelled"


def ask_slowly(stage: Stage, asked: SyncProxy, told: Callable[..., None]) -> None:
    """A request that bob answers with progress alone."""

    def progress() -> None:
        params = first(asked).content["params"]
        told_of = {"progressToken": params["_meta"]["progressToken"], "progress": 1}
        stage.bob.notify("ann", "notifications/progress", told_of)
        first(asked)  # one's own notification

    bob = threading.Thread(target=progress)
    bob.start()
    try:
        stage.ann.request("bob", "slow", on_progress=told)
    finally:
        bob.join(SOON_S)


def test_a_question_is_answered_in_the_thread_of_the_loop_and_must_not_wait_for_it(stage: Stage) -> None:
    stage.bot.propose("tools/call", {"name": "add"}, target="calculator")
    first(stage.ann.proposals())
    assert (
        len(stage.ann.book.for_reviewer("ann", datetime.now(UTC), lambda record: record.proposer == "bot"))
        == 1
    )
    with pytest.raises(RuntimeError, match="callback"):
        stage.ann.book.for_reviewer("ann", datetime.now(UTC), lambda record: bool(stage.ann.id))


# Reasoning, and other contexts.


def test_a_reasoning_is_a_block(stage: Stage) -> None:
    seen = stage.bob.envelopes("reasoning/*")
    with stage.ann.reasoning("Which file?") as whole:
        whole.thought("YAML")
        with stage.ann.reasoning("Which part?", context=whole) as part:
            part.conclude("the end")
        whole.conclusion = "config.yaml"
    kinds = [first(seen).kind.removeprefix("reasoning/") for _ in range(5)]
    assert kinds == ["start", "thought", "start", "conclusion", "conclusion"]
    assert part.context == f"{whole.id}/{part.id}"


def test_a_cancelled_reasoning_stops_what_its_block_waits_for(
    stage: Stage, aside: Callable[..., Any]
) -> None:
    started, went_on = stage.bob.envelopes("reasoning/start"), False
    aside(lambda: stage.bob.reasonings.cancel(first(started).id, "enough"))
    with stage.ann.reasoning("Forever?") as r:
        stage.ann.envelopes("never").next_within(60)
        went_on = True
    assert not went_on
    assert (r.cancelled, r.cancelled_by, r.cancel_reason) == (True, "bob", "enough")
    assert stage.ann.chat("still here").kind == "chat"


def cancel(stage: Stage, r: Any, aside: Callable[..., Any]) -> None:
    """Bob cancels it, and ann has been shown that."""
    shown = stage.ann.envelopes("reasoning/cancel")
    aside(stage.bob.reasonings.cancel, r.id).result(SOON_S)
    aside(first, shown).result(SOON_S)


def test_a_reasoning_that_is_cancelled_meanwhile_raises_at_the_next_call(
    stage: Stage, aside: Callable[..., Any]
) -> None:
    with stage.ann.reasoning("Compute") as r:
        cancel(stage, r, aside)
        assert r.cancelled  # so that long work can look
        with pytest.raises(Cancelled):
            r.thought("too late")
        with pytest.raises(Cancelled):
            stage.ann.chat("too late")
        stage.ann.chat("too late")
    assert r.cancelled_by == "bob"


def test_a_cancelled_reasoning_ends_the_blocks_within(stage: Stage, aside: Callable[..., Any]) -> None:
    seen, after = stage.bob.envelopes("reasoning/cancel"), []
    with stage.ann.reasoning("whole") as whole:
        with stage.ann.reasoning("part", context=whole) as part:
            cancel(stage, whole, aside)
            after.append("within the part")
        after.append("after the part")
    assert after == ["within the part"]
    assert (whole.cancelled, part.cancelled) == (True, False)
    assert [first(seen).context for _ in range(2)] == [whole.id, part.context]


def test_of_two_blocks_only_the_inner_is_left_when_that_is_cancelled(
    stage: Stage, aside: Callable[..., Any]
) -> None:
    with stage.ann.reasoning("whole") as whole:
        with stage.ann.reasoning("part", context=whole) as part:
            cancel(stage, part, aside)
            part.thought("too late")
        whole.conclude("without it")
    assert (whole.cancelled, part.cancelled) == (False, True)


def test_an_error_leaves_a_block_as_it_is_and_others_are_told(stage: Stage) -> None:
    seen = stage.bob.envelopes("reasoning/cancel")

    def fail() -> None:
        raise OverflowError("too much")

    with pytest.raises(OverflowError), stage.ann.reasoning("Fail"):
        fail()
    assert first(seen).content["reason"] == "error"


def test_an_error_after_a_cancellation_is_not_taken_for_it(stage: Stage, aside: Callable[..., Any]) -> None:
    def fail() -> None:
        with stage.ann.reasoning("Fail") as r:
            cancel(stage, r, aside)
            raise OverflowError

    with pytest.raises(OverflowError):
        fail()


def test_a_block_that_cannot_be_entered_says_why(stage: Stage) -> None:
    with pytest.raises(Refused), stage.bot.reasoning("may I?"):
        pytest.fail("entered")
    assert stage.bot.chat("then not").kind == "chat"


def test_a_block_is_only_its_own_threads(stage: Stage, aside: Callable[..., Any]) -> None:
    with stage.ann.reasoning("mine") as r:
        cancel(stage, r, aside)
        assert aside(stage.ann.chat, "not in it").result(SOON_S).kind == "chat"


# Interruptions.


@posix
def test_ctrl_c_cancels_what_is_waited_for(stage: Stage, aside: Callable[..., Any]) -> None:
    asked = stage.bob.envelopes("mcp/request")

    def then_interrupt() -> None:
        assert first(asked).content["method"] == "slow"
        interrupt()

    done = aside(then_interrupt)
    with pytest.raises(KeyboardInterrupt):
        stage.ann.request("bob", "slow")
    done.result(SOON_S)
    assert first(asked).content["method"] == "notifications/cancelled"
    assert stage.ann.chat("still here").kind == "chat"


@posix
def test_ctrl_c_ends_an_iteration_that_can_go_on(stage: Stage, aside: Callable[..., Any]) -> None:
    heard, begun = stage.ann.envelopes("chat"), threading.Event()

    def iterate() -> None:
        begun.set()
        for envelope in heard:
            assert envelope.content["text"] == "one"

    done = aside(lambda: interrupt(begun.wait(SOON_S), stage.bob.chat("one")))
    with pytest.raises(KeyboardInterrupt):
        iterate()
    done.result(SOON_S)
    stage.bob.chat("two")
    while first(heard).content["text"] != "two":
        pass


@posix
def test_ctrl_c_ends_a_block_as_a_cancellation(stage: Stage, aside: Callable[..., Any]) -> None:
    seen = stage.bob.envelopes("reasoning/*")

    def then_interrupt() -> None:
        assert [first(seen).kind for _ in range(2)] == ["reasoning/start", "reasoning/thought"]
        interrupt()

    def reason() -> None:
        with r:
            r.thought("waiting")
            for _ in stage.ann.envelopes("never"):
                pytest.fail("something came")

    done, r = aside(then_interrupt), stage.ann.reasoning("Forever")
    with pytest.raises(KeyboardInterrupt):
        reason()
    done.result(SOON_S)
    assert first(seen).content["reason"] == "cancelled"
    assert not r.cancelled


# Streams.


def test_a_stream_is_written_and_read(stage: Stage, aside: Callable[..., Any]) -> None:
    incoming = stage.bob.streams.incoming()
    with stage.ann.streams.open(description="numbers") as stream:
        received = first(incoming)
        reader = received.read()
        for number in (b"1", b"2"):
            stream.write(number)
        assert first(reader) == b"1"
    assert list(reader) == [b"2"]
    assert list(received) == [b"1", b"2"]
    assert received.close_reason == "complete"


def test_a_file_is_sent_and_saved_with_progress(
    stage: Stage, aside: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "sent").write_bytes(bytes(300_000))
    incoming, told = stage.bob.streams.incoming(), []
    saved = aside(lambda: stage.bob.save(first(incoming), tmp_path / "saved"))
    stage.ann.upload(tmp_path / "sent", progress=lambda done, total: told.append((done, total)))
    assert saved.result(SOON_S).verified
    assert (tmp_path / "saved").read_bytes() == bytes(300_000)
    assert told[-1] == (300_000, 300_000)


# The end.


def test_after_the_end_everything_says_so(stage: Stage) -> None:
    ann, heard, stream = stage.ann, stage.ann.envelopes("chat"), stage.ann.streams.open()
    ann.close()
    for use in (
        lambda: ann.chat("x"),
        lambda: ann.id,
        heard.__next__,
        lambda: stream.close(),
        lambda: ann.reasoning("x"),
    ):
        with pytest.raises(Disconnected, match="closed"):
            use()
    assert "Stream" in repr(stream)
    ann.close()


def test_what_other_threads_wait_for_ends_with_it(stage: Stage, aside: Callable[..., Any]) -> None:
    asked = stage.bob.envelopes("mcp/request")
    heard, hearing, waiting = stage.ann.envelopes("chat"), threading.Event(), threading.Event()

    def iterate() -> list[str]:
        kinds = []
        for envelope in heard:
            kinds.append(envelope.kind)
            hearing.set()
        return kinds

    def reason() -> None:
        with stage.ann.reasoning("Forever"):
            waiting.set()
            stage.ann.request("bob", "slower")

    iterated, request, reasoned = aside(iterate), aside(stage.ann.request, "bob", "slow"), aside(reason)
    first(asked)
    stage.bob.chat("hello")
    assert hearing.wait(SOON_S)
    assert waiting.wait(SOON_S)
    stage.ann.close()
    assert iterated.result(SOON_S) == ["chat"]
    for waiter in (request, reasoned):
        with pytest.raises(Disconnected):
            waiter.result(SOON_S)


def test_it_may_be_closed_within_a_block(stage: Stage) -> None:
    seen = stage.bob.envelopes("reasoning/cancel")
    with stage.ann.reasoning("Enough?") as r:
        r_id = r.id
        stage.ann.close()
        with pytest.raises(Disconnected):
            r.thought("too late")
    assert first(seen).context == r_id


# MCP both ways.


def test_a_proposal_is_followed_again_and_its_stages_are_iterated_over(
    stage: Stage, aside: Callable[..., Any]
) -> None:
    proposal = stage.bot.propose_call("calculator", "add", {"a": 2, "b": 3})
    stages = proposal.stages()
    assert str(first(stages)) == "waiting for approval"
    approved = aside(lambda: first(stage.ann.proposals()).approve())
    assert [one.status for one in stages] == ["approved", "fulfilled"]
    assert approved.result(SOON_S) == 5
    again = stage.bot.proposal(proposal.id)
    assert again.value() == 5
    assert str(again.outcome) == "approved by ann, answered by calculator"
    with pytest.raises(KeyError, match="no-such"):
        stage.bot.proposal("no-such")


def test_what_is_asked_is_told_in_the_thread_that_waits(stage: Stage, aside: Callable[..., Any]) -> None:
    told: list[tuple[str, threading.Thread]] = []
    aside(lambda: first(stage.ann.proposals()).approve())
    asked = stage.bot.ask(
        "calculator", "ping", on_update=lambda one: told.append((str(one), threading.current_thread()))
    )
    assert asked == {}
    assert [said for said, _ in told][:2] == ["waiting for approval", "approved by ann, running"]
    assert {thread for _, thread in told} == {threading.current_thread()}


def test_questions_are_answered_without_async(stage: Stage, aside: Callable[..., Any]) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    params = {"message": "How many?", "requestedSchema": schema}
    questions = stage.ann.questions()
    asked = aside(lambda: stage.bob.request("ann", "elicitation/create", params))
    question = first(questions)
    assert (question.asker, question.open) == ("bob", True)
    with pytest.raises(mew.InvalidArguments):
        question.answer(n="x")
    question.answer(n=3)
    assert asked.result(SOON_S) == {"action": "accept", "content": {"n": 3}}
    with pytest.raises(AlreadyDecided):
        question.decline()


# Contexts of any kind, threads and loops.


class Hurry:
    """A context that times out, and in which two tasks wait for each other."""

    async def __aenter__(self) -> "Hurry":
        self._tasks = await asyncio.TaskGroup().__aenter__()
        self._timeout = await asyncio.timeout(0.05).__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        try:
            await self._timeout.__aexit__(*error)
        finally:
            await self._tasks.__aexit__(None, None, None)

    async def meet(self) -> str:
        met: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._tasks.create_task(self._come(met))
        return await met

    async def _come(self, met: "asyncio.Future[str]") -> None:
        met.set_result("met")

    async def wait_forever(self) -> None:
        await asyncio.get_running_loop().create_future()


def test_a_context_is_entered_and_left_in_one_task(stage: Stage) -> None:
    hurry = stage.ann._loop.wrap(Hurry())

    def too_long() -> None:
        with hurry as entered:
            assert entered is hurry
            assert hurry.meet() == "met"
            hurry.wait_forever()

    with pytest.raises(TimeoutError):
        too_long()


@posix
def test_ctrl_c_while_a_block_is_entered_leaves_no_block(stage: Stage, aside: Callable[..., Any]) -> None:
    entering = threading.Event()

    class Door:
        async def __aenter__(self) -> None:
            entering.set()
            await asyncio.get_running_loop().create_future()

        async def __aexit__(self, *error: Any) -> None:
            pytest.fail("it was not entered")

    done = aside(lambda: interrupt(entering.wait(SOON_S)))
    with pytest.raises(KeyboardInterrupt), stage.ann._loop.wrap(Door()):
        pytest.fail("it was entered")
    done.result(SOON_S)
    assert stage.ann.chat("still here").kind == "chat"


def test_it_works_in_a_thread_that_runs_an_event_loop(url: str) -> None:
    async def cell() -> int:
        with join(url, "ann") as ann:
            total: int = ann.call("calculator", "add", {"a": 2, "b": 3})
            return total

    assert asyncio.run(cell()) == 5


def test_what_is_of_one_client_does_not_go_to_another(stage: Stage) -> None:
    with pytest.raises(ValueError, match="another client"):
        stage.bob.reasoning("part", context=stage.ann.reasoning("whole"))


def test_it_says_what_it_has(stage: Stage) -> None:
    assert inspect.signature(connect_sync).parameters == inspect.signature(mew.connect).parameters
    assert {"chat", "streams", "book", "id", "close"} <= set(dir(stage.ann))
    assert next(iter(inspect.signature(stage.ann.chat).parameters)) == "text"
    assert repr(stage.ann) == "<sync Client>"


# The ends of the thread.


def test_no_thread_is_left_when_it_is_closed(url: str) -> None:
    with join(url, "ann") as me:
        assert len(loops()) == 1
    assert not loops()
    me.close()


def test_no_thread_is_left_when_nobody_is_let_in(url: str) -> None:
    with pytest.raises(ConnectError, match="token"):
        connect_sync(url, space="demo", token="wrong")
    with pytest.raises(ValueError, match="not the URL"):
        connect_sync("demo")
    assert not loops()


def test_a_client_that_is_dropped_is_closed(url: str) -> None:
    me = join(url, "ann")
    heard = me.envelopes("chat")
    (own,) = loops()
    me.chat("hello")
    del me
    gc.collect()
    assert first(heard).content["text"] == "hello"  # what came from it keeps it
    del heard
    gc.collect()
    own.join(SOON_S)
    assert not own.is_alive()


FORGETFUL: Final = """
import logging
import sys

import mew

logging.getLogger("asyncio").setLevel("ERROR")  # what is slow on a busy machine is not what is looked for
me = mew.connect_sync(sys.argv[1], space="demo", token="t-ann")
me.chat("hello")
print("done")
"""


def test_a_client_that_is_forgotten_does_not_keep_the_process(url: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-X", "dev", "-c", FORGETFUL, url],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "done\n", "")
