"""Reasoning that everyone can follow and anyone can stop (§3.5)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import msgspec
import pytest
from msgspec import UNSET

from mew.client.connection.connection import ClientConnection
from mew.client.connection.reply import awaiting
from mew.client.errors import Refused, StreamBroken
from mew.client.reasoning import ReasoningBlock, ReasoningMonitor
from mew.client.streams.streams import Streams
from mew.protocol.envelope import Envelope
from mew.protocol.errors import Refusal
from mew.protocol.kinds import PAYLOADS, Presence
from mew.testing import Space


class Table(NamedTuple):
    """A bot that reasons, ann who may do anything, and what ann has seen."""

    bot: ClientConnection
    ann: ClientConnection
    seen: list[Envelope]

    def said(self) -> list[tuple[str, str | None, str | None]]:
        """Of what the bot sent: the kind without its namespace, the context, the text or reason."""
        return [
            (envelope.kind.removeprefix("reasoning/"), context_of(envelope), text_of(envelope))
            for envelope in self.seen
            if envelope.sender == "bot"
        ]

    async def both_have_seen_all(self) -> None:
        await self.ann.send(self.ann.compose("done", {}))
        await self.settle()

    async def settle(self) -> None:
        """Until ann has seen everything that the bot has sent."""
        done = self.bot.compose("done", {})
        with awaiting(self.ann, lambda seen, _: seen if seen.id == done.id else None) as shown:
            await self.bot.send(done)
            await shown
        self.seen.remove(done)

    def cancel(self, context: str | None, *, reason: str = "superseded", about: str = "") -> None:
        """Ann sends it; it arrives when the bot waits for something."""
        correlation_id = [about] if about else []
        payload = {"reason": reason}
        self.ann.post(
            self.ann.compose("reasoning/cancel", payload, context=context, correlation_id=correlation_id)
        )


def context_of(envelope: Envelope) -> str | None:
    return None if envelope.context is UNSET else envelope.context


def text_of(envelope: Envelope) -> str | None:
    content = envelope.content
    text: str | None = content.get("message", content.get("reason", content.get("text")))
    return text


@asynccontextmanager
async def a_table() -> AsyncIterator[Table]:
    holdings = {"ann": ["*"], "bot": ["chat", "reasoning/*", "done"]}
    async with asyncio.timeout(5), Space(holdings) as space, space.connection("ann") as ann:
        seen: list[Envelope] = []
        ann.listen(lambda envelope, payload: seen.append(envelope))
        async with space.connection("bot") as bot:
            yield Table(bot, ann, seen)


async def test_the_id_of_the_start_is_the_context_of_what_follows_3_5_1() -> None:
    async with a_table() as table:
        async with ReasoningBlock(table.bot, "Which file?", about="req-1") as r:
            await r.thought("It is YAML")
            await r.chat("Is it?")
            await r.conclude("config.yaml")
        await table.settle()
        assert table.said() == [
            ("start", None, "Which file?"),
            ("thought", r.id, "It is YAML"),
            ("chat", r.id, "Is it?"),
            ("conclusion", r.id, "config.yaml"),
        ]
        start = next(envelope for envelope in table.seen if envelope.id == r.id)
        assert start.correlation_id == ("req-1",)
        assert (r.conclusion, r.cancelled) == ("config.yaml", False)


async def test_what_it_is_about_may_be_given_as_the_envelope() -> None:
    async with a_table() as table:
        request = await table.ann.send(table.ann.compose("chat", {"text": "why?"}, to=["bot"]))
        async with ReasoningBlock(table.bot, "Hm", about=request) as r:
            pass
        await table.settle()
        start = next(envelope for envelope in table.seen if envelope.id == r.id)
        assert start.correlation_id == (request.id,)


async def test_a_reasoning_within_another_has_a_path_as_context_3_5_6() -> None:
    async with a_table() as table:
        async with (
            ReasoningBlock(table.bot, "outer") as outer,
            ReasoningBlock(table.bot, "middle", context=outer) as middle,
            ReasoningBlock(table.bot, "inner", context=middle.context) as inner,
        ):
            await inner.thought("deep")
        await table.settle()
        assert table.said() == [
            ("start", None, "outer"),
            ("start", outer.id, "middle"),
            ("start", f"{outer.id}/{middle.id}", "inner"),
            ("thought", f"{outer.id}/{middle.id}/{inner.id}", "deep"),
        ]


async def test_a_conclusion_is_optional_3_5_1() -> None:
    async with a_table() as table:
        async with ReasoningBlock(table.bot, "Hm") as r:
            await r.thought("well")
        await table.settle()
        assert [kind for kind, _, _ in table.said()] == ["start", "thought"]


async def test_a_conclusion_that_is_set_is_sent_when_the_block_ends() -> None:
    async with a_table() as table:
        async with ReasoningBlock(table.bot, "Hm") as r:
            r.conclusion = "so it is"
        await table.settle()
        assert table.said()[-1] == ("conclusion", r.id, "so it is")


async def test_nothing_follows_a_conclusion() -> None:
    async with a_table() as table:
        async with ReasoningBlock(table.bot, "Hm") as r:
            await r.conclude("so it is")
            for late in (r.thought, r.chat, r.conclude):
                with pytest.raises(RuntimeError, match="concluded"):
                    await late("but")
        with pytest.raises(RuntimeError, match="left"):
            await r.thought("and yet")
        with pytest.raises(RuntimeError, match="entered once"):
            await r.__aenter__()
        await table.settle()
        assert [kind for kind, _, _ in table.said()] == ["start", "conclusion"]


async def test_a_cancellation_after_the_conclusion_stops_nothing() -> None:
    async with a_table() as table:
        async with ReasoningBlock(table.bot, "Hm") as r:
            await r.conclude("so it is")
            table.cancel(r.id)
            await table.both_have_seen_all()
        assert not r.cancelled


async def test_who_may_not_reason_is_told_so() -> None:
    async with asyncio.timeout(5), Space({"bot": ["chat"]}) as space, space.connection("bot") as bot:
        listeners = bot.listeners
        with pytest.raises(Refused) as refused:
            async with ReasoningBlock(bot, "Hm"):
                pytest.fail("it must not begin")
        assert refused.value.why is Refusal.CAPABILITY_VIOLATION
        assert bot.listeners == listeners


# Failing.


async def test_an_exception_cancels_the_sequence_and_goes_on_3_5_5() -> None:
    async with a_table() as table:
        with pytest.raises(ZeroDivisionError):
            async with ReasoningBlock(table.bot, "Hm", about="req-1") as r:
                raise ZeroDivisionError
        await table.settle()
        assert table.said()[-1] == ("cancel", r.id, "error")
        assert table.seen[-1].correlation_id == ("req-1",)
        assert not r.cancelled


async def test_an_exception_after_the_conclusion_leaves_the_conclusion_as_it_is() -> None:
    async with a_table() as table:

        async def conclude_and_fail() -> None:
            async with ReasoningBlock(table.bot, "Hm") as r:
                await r.conclude("so it is")
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await conclude_and_fail()
        await table.settle()
        assert [kind for kind, _, _ in table.said()] == ["start", "conclusion"]


async def test_a_cancellation_from_elsewhere_is_told_and_goes_on_3_5_5() -> None:
    async with a_table() as table:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01), ReasoningBlock(table.bot, "Hm") as r:
                await asyncio.Event().wait()
        await table.settle()
        assert table.said()[-1] == ("cancel", r.id, "cancelled")
        assert not r.cancelled


async def test_who_gives_up_while_it_begins_says_so() -> None:
    async with a_table() as table:
        pause = table.ann.compose("participant/pause", {}, to=["bot"])
        await table.ann.send(pause)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01), ReasoningBlock(table.bot, "Hm"):
                pytest.fail("it must not begin")
        await table.ann.send(table.ann.compose("participant/resume", {}, to=["bot"]))
        await table.settle()
        assert [kind for kind, _, _ in table.said()] == ["cancel"]


# Cancelled by somebody.


async def test_anyone_can_stop_the_work_3_5_5() -> None:
    async with a_table() as table:
        async with ReasoningBlock(table.bot, "Hm") as r:
            table.cancel(r.id, reason="superseded")
            await asyncio.Event().wait()
            pytest.fail("it must not go on")
        assert (r.cancelled, r.cancelled_by, r.cancel_reason) == (True, "ann", "superseded")
        await table.settle()
        assert [kind for kind, _, _ in table.said()] == ["start"]


def by_path(r: ReasoningBlock) -> tuple[str | None, str]:
    return f"parent/{r.id}", ""


def by_correlation(r: ReasoningBlock) -> tuple[str | None, str]:
    return None, r.id


@pytest.mark.parametrize("naming", [by_path, by_correlation])
async def test_a_cancellation_may_name_the_start_in_other_ways(
    naming: Callable[[ReasoningBlock], tuple[str | None, str]],
) -> None:
    async with a_table() as table:
        async with ReasoningBlock(table.bot, "Hm") as r:
            context, about = naming(r)
            table.cancel(context, about=about)
            await asyncio.Event().wait()
        assert r.cancelled


async def test_a_cancellation_of_another_sequence_stops_nothing() -> None:
    async with a_table() as table:
        async with ReasoningBlock(table.bot, "Hm") as r:
            table.cancel("another", about=r.id)  # its correlation is what the other one was about
            table.cancel(f"{r.id}/part")
            await table.both_have_seen_all()
        assert not r.cancelled


async def test_no_thought_follows_a_cancellation_even_if_the_block_ignores_it_3_5_5() -> None:
    async with a_table() as table:
        async with ReasoningBlock(table.bot, "Hm") as r:
            table.cancel(r.id)
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                await r.thought("I go on regardless")
        assert r.cancelled
        await table.settle()
        assert [kind for kind, _, _ in table.said()] == ["start"]


async def test_a_task_beside_cannot_think_on_after_a_cancellation_3_5_5() -> None:
    async with a_table() as table:
        thinking: list[asyncio.Task[None]] = []
        async with ReasoningBlock(table.bot, "Hm") as r, asyncio.TaskGroup() as tasks:
            thinking.append(tasks.create_task(think_when_cancelled(r)))
            table.cancel(r.id)
        assert r.cancelled
        assert thinking[0].cancelled()
        await table.settle()
        assert [kind for kind, _, _ in table.said()] == ["start"]


async def think_when_cancelled(r: ReasoningBlock) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        await r.thought("a last one")


async def test_after_the_block_the_task_is_as_if_it_was_never_cancelled() -> None:
    async with a_table() as table:
        task = asyncio.current_task()
        assert task is not None
        async with ReasoningBlock(table.bot, "Hm") as r:
            table.cancel(r.id)
            await asyncio.Event().wait()
        assert task.cancelling() == 0
        await asyncio.sleep(0)  # and nothing strikes here


async def test_a_cancellation_that_the_block_does_not_notice_strikes_nothing_after_it() -> None:
    async with a_table() as table:
        task = asyncio.current_task()
        assert task is not None
        async with ReasoningBlock(table.bot, "Hm") as r:
            hear_cancel(table.bot, r)  # and the block ends without waiting for anything
        assert r.cancelled
        assert task.cancelling() == 0
        await asyncio.sleep(0)
        await table.settle()


def hear_cancel(bot: ClientConnection, r: ReasoningBlock) -> None:
    """As if a cancellation arrived right now."""
    hear(bot, bot.compose("reasoning/cancel", {}, context=r.id))


def hear(connection: ClientConnection, envelope: Envelope) -> None:
    for listen in connection.listeners:
        listen(envelope, envelope.read(PAYLOADS[envelope.kind]))


async def test_an_error_of_a_block_that_was_cancelled_is_still_an_error() -> None:
    async with a_table() as table:
        task = asyncio.current_task()
        assert task is not None

        async def fail_when_cancelled() -> None:
            async with ReasoningBlock(table.bot, "Hm") as r:
                table.cancel(r.id)
                try:
                    await asyncio.Event().wait()
                finally:
                    raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await fail_when_cancelled()
        assert task.cancelling() == 0
        await table.settle()
        assert [kind for kind, _, _ in table.said()] == ["start"]


async def test_a_cancellation_from_outside_at_the_same_time_is_not_swallowed() -> None:
    async with a_table() as table:
        task = asyncio.current_task()
        assert task is not None

        async def be_cancelled_twice() -> None:
            async with ReasoningBlock(table.bot, "Hm") as r:
                hear_cancel(table.bot, r)
                task.cancel()
                await asyncio.Event().wait()

        with pytest.raises(asyncio.CancelledError):
            await be_cancelled_twice()
        assert task.cancelling() == 1
        task.uncancel()


async def test_one_from_outside_that_was_not_noticed_either_still_strikes() -> None:
    async with a_table() as table:
        task = asyncio.current_task()
        assert task is not None

        async def be_cancelled_twice_and_end() -> None:
            async with ReasoningBlock(table.bot, "Hm") as r:
                hear_cancel(table.bot, r)
                task.cancel()

        with pytest.raises(asyncio.CancelledError):
            await be_cancelled_twice_and_end()
        assert task.cancelling() == 1
        task.uncancel()


async def test_a_timeout_round_a_cancelled_reasoning_is_its_own_thing() -> None:
    async with a_table() as table:

        async def be_cancelled_and_go_on() -> None:
            async with asyncio.timeout(0.05):
                async with ReasoningBlock(table.bot, "Hm") as r:
                    table.cancel(r.id)
                    await asyncio.Event().wait()
                assert r.cancelled
                await asyncio.Event().wait()

        with pytest.raises(TimeoutError):
            await be_cancelled_and_go_on()


async def test_stopping_the_whole_stops_its_parts_and_they_say_so() -> None:
    async with a_table() as table:
        async with ReasoningBlock(table.bot, "whole") as whole:
            async with ReasoningBlock(table.bot, "part", context=whole) as part:
                table.cancel(whole.id)
                await asyncio.Event().wait()
            pytest.fail("the whole must not go on")
        assert (whole.cancelled, part.cancelled) == (True, False)
        await table.settle()
        assert table.said()[-1] == ("cancel", f"{whole.id}/{part.id}", "cancelled")


async def test_stopping_a_part_lets_the_whole_go_on() -> None:
    async with a_table() as table:
        async with ReasoningBlock(table.bot, "whole") as whole:
            async with ReasoningBlock(table.bot, "part", context=whole) as part:
                table.cancel(part.context)
                await asyncio.Event().wait()
            await whole.thought("without it, then")
        assert (whole.cancelled, part.cancelled) == (False, True)


async def test_whole_and_part_may_both_be_stopped() -> None:
    async with a_table() as table:
        task = asyncio.current_task()
        assert task is not None
        async with (
            ReasoningBlock(table.bot, "whole") as whole,
            ReasoningBlock(table.bot, "part", context=whole) as part,
        ):
            hear_cancel(table.bot, part)
            hear_cancel(table.bot, whole)
            await asyncio.Event().wait()
        assert whole.cancelled
        assert part.cancelled
        assert task.cancelling() == 0


async def test_a_cancellation_before_the_start_is_accepted_counts_too() -> None:
    async with a_table() as table:
        r = ReasoningBlock(table.bot, "Hm")

        def at_once(envelope: Envelope, payload: Any) -> None:
            if envelope.id == r.id:
                table.bot.unlisten(at_once)
                hear_cancel(table.bot, r)

        table.bot.listen(at_once)
        async with r:
            await r.thought("already")
            pytest.fail("it must not go on")
        assert r.cancelled
        await table.settle()
        assert [kind for kind, _, _ in table.said()] == ["start"]


async def test_a_cancellation_while_the_connection_is_lost_stops_the_work_when_it_is_back() -> None:
    holdings = {"ann": ["*"], "bot": ["reasoning/*"]}
    async with (
        asyncio.timeout(5),
        Space(holdings) as space,
        space.connection("ann") as ann,
        space.connection("bot") as bot,
    ):
        async with ReasoningBlock(bot, "Hm") as r:
            space.cut("bot")
            await ann.send(ann.compose("reasoning/cancel", {"reason": "superseded"}, context=r.id))
            assert not r.cancelled
            await asyncio.Event().wait()
        assert (r.cancelled_by, r.cancel_reason) == ("ann", "superseded")
        assert len(bot.gaps) == 1


# Over a stream.


class Tape:
    """A stream that keeps what is written."""

    id = "stream-7"

    def __init__(self) -> None:
        self.lines: list[Any] = []
        self.closed: list[str] = []
        self.broken = False

    async def write(self, data: bytes | str) -> None:
        if self.broken:
            raise StreamBroken
        assert data[-1:] in ("\n", b"\n")
        self.lines.append(msgspec.json.decode(data))

    async def close(self, reason: str) -> None:
        self.closed.append(reason)


def opening(tape: Tape) -> Callable[[], Awaitable[Tape]]:
    async def open_stream() -> Tape:
        return tape

    return open_stream


async def test_thoughts_may_go_over_a_stream_that_the_start_names_3_10_1() -> None:
    async with a_table() as table:
        tape = Tape()
        async with ReasoningBlock(table.bot, "Hm", open_stream=opening(tape)) as r:
            await r.thought("one")
            await r.thought("two")
            await r.conclude("three")
        await table.settle()
        assert [kind for kind, _, _ in table.said()] == ["start", "conclusion"]
        start = next(envelope for envelope in table.seen if envelope.id == r.id)
        assert start.content == {"message": "Hm", "stream_id": "stream-7"}
        assert [line["message"] for line in tape.lines] == ["one", "two"]
        assert all("ts" in line for line in tape.lines)
        assert tape.closed == ["complete"]


async def test_a_stream_that_was_given_is_not_closed() -> None:
    async with a_table() as table:
        tape = Tape()
        async with ReasoningBlock(table.bot, "Hm", stream=tape) as r:
            await r.thought("one")
        assert (len(tape.lines), tape.closed) == (1, [])


async def test_the_stream_is_closed_with_why_it_ended_3_10_4() -> None:
    async with a_table() as table:
        failed, stopped = Tape(), Tape()
        with pytest.raises(ZeroDivisionError):
            async with ReasoningBlock(table.bot, "Hm", open_stream=opening(failed)):
                raise ZeroDivisionError
        async with ReasoningBlock(table.bot, "Hm", open_stream=opening(stopped)) as r:
            table.cancel(r.id)
            await asyncio.Event().wait()
        assert (failed.closed, stopped.closed) == (["error"], ["cancelled"])


async def test_the_stream_of_a_start_that_is_refused_is_closed() -> None:
    async with asyncio.timeout(5), Space({"bot": ["chat"]}) as space, space.connection("bot") as bot:
        tape = Tape()
        with pytest.raises(Refused):
            async with ReasoningBlock(bot, "Hm", open_stream=opening(tape)):
                pytest.fail("it must not begin")
        assert tape.closed == ["error"]


async def test_thoughts_go_on_as_envelopes_when_the_stream_breaks() -> None:
    async with a_table() as table:
        tape = Tape()
        async with ReasoningBlock(table.bot, "Hm", stream=tape) as r:
            await r.thought("one")
            tape.broken = True
            await r.thought("two")
            await r.thought("three")
        await table.settle()
        assert table.said()[1:] == [("thought", r.id, "two"), ("thought", r.id, "three")]


async def test_whoever_follows_reads_the_thoughts_from_the_stream_3_10_1() -> None:
    holdings = {"ann": ["*"], "bot": ["reasoning/*", "stream/*"]}
    async with asyncio.timeout(5), Space(holdings) as space:
        ann, bot = space.connection("ann"), space.connection("bot")
        reading, writing, watcher = Streams(ann), Streams(bot), ReasoningMonitor(ann)
        async with ann, bot, reading.incoming() as incoming:
            with awaiting(ann, lambda seen, _: watcher.active or None) as started:
                async with ReasoningBlock(bot, "Hm", open_stream=writing.open) as r:
                    await r.thought("one")
                    await r.thought("two")
                    ((active,), stream) = await started, await anext(incoming)
            lines = b"".join([frame async for frame in stream]).splitlines()
            assert active.stream_id == stream.id
            assert [msgspec.json.decode(line)["message"] for line in lines] == ["one", "two"]
            assert stream.close_reason == "complete"


# Watching.


async def test_it_is_known_who_reasons_about_what() -> None:
    async with a_table() as table:
        watcher = ReasoningMonitor(table.ann)
        async with ReasoningBlock(table.bot, "Hm", about="req-1", stream=Tape()) as r:
            await table.settle()
            (active,) = watcher.of_others
            assert (active.id, active.by, active.context) == (r.id, "bot", r.id)
            assert (active.message, active.about, active.stream_id) == ("Hm", ("req-1",), "stream-7")
            await r.conclude("so it is")
            await table.settle()
            assert watcher.active == ()


async def test_a_person_stops_any_active_sequence_without_writing_envelopes_3_5_5() -> None:
    async with a_table() as table:
        watcher = ReasoningMonitor(table.ann)
        async with (
            ReasoningBlock(table.bot, "whole") as whole,
            ReasoningBlock(table.bot, "part", context=whole, about="req-1") as part,
        ):
            await table.settle()
            table.ann.spawn(watcher.cancel(part.id, "timeout"))
            await asyncio.Event().wait()
        await table.settle()
        assert (part.cancelled_by, part.cancel_reason) == ("ann", "timeout")
        assert not whole.cancelled
        sent = next(envelope for envelope in table.seen if envelope.kind == "reasoning/cancel")
        assert (sent.context, sent.to, sent.correlation_id) == (part.context, ("bot",), ("req-1",))
        assert [active.id for active in watcher.active] == [whole.id]


async def test_a_sequence_that_began_before_one_came_can_be_stopped_too() -> None:
    async with a_table() as table:
        async with ReasoningBlock(table.bot, "Hm") as r:
            table.ann.spawn(ReasoningMonitor(table.ann).cancel(r.id))
            await asyncio.Event().wait()
        assert r.cancelled


async def test_ones_own_sequences_are_among_the_active_and_not_of_others() -> None:
    async with a_table() as table:
        watcher = ReasoningMonitor(table.bot)
        async with ReasoningBlock(table.bot, "Hm") as r:
            assert [active.id for active in watcher.active] == [r.id]
            assert watcher.of_others == ()


async def test_a_part_is_over_with_the_whole() -> None:
    async with a_table() as table:
        watcher = ReasoningMonitor(table.ann)
        async with ReasoningBlock(table.bot, "whole") as whole:
            async with ReasoningBlock(table.bot, "part", context=whole):
                pass
            await whole.conclude("so it is")
        await table.settle()
        assert watcher.active == ()


async def test_the_answer_to_what_it_is_about_ends_it_3_5_1() -> None:
    async with a_table() as table:
        watcher = ReasoningMonitor(table.ann)
        async with ReasoningBlock(table.bot, "Hm", about="req-1"):
            pass
        await table.settle()
        assert [active.about for active in watcher.active] == [("req-1",)]
        answer = {"jsonrpc": "2.0", "id": 1, "result": {}}
        await table.bot.send(table.bot.compose("mcp/response", answer, to=["ann"], correlation_id=["req-1"]))
        await table.settle()
        assert watcher.active == ()


async def test_only_its_author_concludes_a_sequence() -> None:
    async with a_table() as table:
        watcher = ReasoningMonitor(table.ann)
        async with ReasoningBlock(table.bot, "Hm") as r:
            await table.ann.send(table.ann.compose("reasoning/conclusion", {"message": "no"}, context=r.id))
            await table.settle()
            assert len(watcher.active) == 1


async def test_a_sequence_is_over_when_its_author_has_left() -> None:
    holdings = {"ann": ["*"], "bot": ["reasoning/*"]}
    async with asyncio.timeout(5), Space(holdings) as space, space.connection("ann") as ann:
        watcher = ReasoningMonitor(ann)
        with (
            awaiting(ann, lambda seen, _: watcher.active or None) as started,
            awaiting(ann, lambda seen, payload: seen if leaves(payload) else None) as left,
        ):
            async with space.connection("bot") as bot, ReasoningBlock(bot, "Hm") as r:
                assert [active.id for active in await started] == [r.id]
            await left
        assert watcher.active == ()


def leaves(payload: Any) -> bool:
    return isinstance(payload, Presence) and payload.event == "leave"


async def test_nobody_pushes_out_the_sequences_of_another() -> None:
    async with a_table() as table:
        watcher = ReasoningMonitor(table.ann)
        async with ReasoningBlock(table.bot, "Hm") as r:
            await table.settle()
            for _ in range(1_100):
                hear(table.ann, table.ann.compose("reasoning/start", {"message": "flood"}))
            assert r.id in {active.id for active in watcher.active}
            assert len(watcher.active) == 1_024


async def test_what_a_start_names_is_kept_in_part_where_it_is_much() -> None:
    async with a_table() as table:
        watcher = ReasoningMonitor(table.ann)
        payload, about = {"message": "Hm", "stream_id": "x" * 1_000}, [f"req-{n}" for n in range(1_000)]
        await table.bot.send(table.bot.compose("reasoning/start", payload, correlation_id=about))
        await table.settle()
        (active,) = watcher.active
        assert (active.about, active.stream_id) == (tuple(about[:16]), None)
