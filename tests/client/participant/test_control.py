"""Participant control (§3.9), answered over a real space without a line of an author's code."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec import Raw
from tests.client.ear import SETTLED, Ear, settled

from mew.client.connection.connection import ClientConnection
from mew.client.participant.control import Control, Hooks, Override
from mew.client.participant.memory import Direction, EnvelopeMemory, Freed, Memory, MemoryUsage
from mew.protocol.envelope import Envelope
from mew.protocol.kinds import Kind
from mew.testing import Space

WHO = {"ann": ["*"], "bot": ["*"], "cy": ["*"], "mute": ["chat", "chat/acknowledge"], "dumb": []}


class Recorded:
    """Hooks that say what was called, in order."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.left = asyncio.Event()

    def hooks(self, **others: Any) -> Hooks:
        return Hooks(
            paused=self._paused,
            resumed=self._resumed,
            stop=self._stop,
            start=self._start,
            leave=self.left.set,
            **others,
        )

    async def _paused(self, pause: Envelope) -> None:
        self.calls.append(("paused", pause.id))

    async def _resumed(self, resume: Envelope | None) -> None:
        self.calls.append(("resumed", None if resume is None else resume.id))

    async def _stop(self, reason: str) -> None:
        self.calls.append("stop")

    async def _start(self) -> None:
        self.calls.append("start")


@asynccontextmanager
async def controlled(
    memory: Memory | None = None,
    hooks: Hooks | None = None,
    overrides: Mapping[str, Override] | None = None,
    who: str = "bot",
) -> AsyncIterator[tuple[Ear, ClientConnection]]:
    """Ann, who asks, and somebody under control."""
    async with (
        asyncio.timeout(5),
        Space(WHO) as space,
        space.connection("ann") as ann,
        space.connection(who) as bot,
    ):
        with Control(bot, memory, hooks, overrides or {}):
            yield Ear(ann), bot


def counting(max_tokens: int | None = None, **options: Any) -> EnvelopeMemory:
    return EnvelopeMemory(count=lambda _: 10, max_tokens=max_tokens, **options)


async def say(ear: Ear, many: int) -> None:
    for number in range(many):
        await ear.ask("chat", {"text": f"{number}"}, to=())


# Pause and resume (§3.9.1, §3.9.2).


async def test_a_paused_participant_says_nothing_until_it_is_resumed_3_9_1() -> None:
    recorded = Recorded()
    async with controlled(hooks=recorded.hooks()) as (ann, bot):
        pause = await ann.ask(Kind.PAUSE, {"reason": "rate_limit"})
        status = await ann.ask(Kind.REQUEST_STATUS)
        assert (await ann.hears(Kind.STATUS, status))["status"] == "paused"
        said = bot.post(bot.compose("chat", {"text": "later"}))
        await settled(ann.connection)
        assert not said.done()
        resume = await ann.ask(Kind.RESUME)
        assert (await ann.hears("chat"))["text"] == "later"
        status = await ann.ask(Kind.REQUEST_STATUS)
        assert (await ann.hears(Kind.STATUS, status))["status"] == "active"
        assert recorded.calls == [("paused", pause.id), ("resumed", resume.id)]
        assert [envelope.sender for envelope in ann.all(Kind.RESUME)] == ["ann"]


async def test_a_pause_that_times_out_is_documented_by_a_resume_3_9_2() -> None:
    recorded = Recorded()
    async with controlled(hooks=recorded.hooks()) as (ann, _bot):
        pause = await ann.ask(Kind.PAUSE, {"timeout_seconds": 0.05})
        resume = await ann.hears_of(Kind.RESUME)
        assert (resume.sender, resume.correlation_id) == ("bot", (pause.id,))
        await settled(ann.connection)
        assert recorded.calls == [("paused", pause.id), ("resumed", None)]


async def test_a_resume_of_our_own_lifts_nobody_elses_pause() -> None:
    async with controlled() as (ann, _bot):
        await ann.ask(Kind.PAUSE, {"timeout_seconds": 0.05})
        await ann.ask(Kind.PAUSE, to=["ann"])
        assert (await ann.hears_of(Kind.RESUME)).to == ()
        assert ann.connection.session.outgoing.paused_until is not None


async def test_who_may_not_resume_goes_on_without_a_word_3_9_2(caplog: pytest.LogCaptureFixture) -> None:
    async with controlled(who="mute") as (ann, mute):
        await ann.ask(Kind.PAUSE, {"timeout_seconds": 0.05}, to=["mute"])
        await mute.send(mute.compose("chat", {"text": "again"}))
        assert ann.all(Kind.RESUME) == []
    assert [record.levelname for record in caplog.records if "may not send" in record.message] == ["WARNING"]


async def test_a_second_pause_replaces_the_first() -> None:
    recorded = Recorded()
    async with controlled(hooks=recorded.hooks()) as (ann, _bot):
        await ann.ask(Kind.PAUSE, {"timeout_seconds": 0.05})
        second = await ann.ask(Kind.PAUSE, {"timeout_seconds": 0.1})
        assert (await ann.hears_of(Kind.RESUME)).correlation_id == (second.id,)
        await settled(ann.connection)
        assert [name for name, _ in recorded.calls] == ["paused", "paused", "resumed"]


async def test_a_pause_without_a_time_lasts() -> None:
    async with controlled() as (ann, bot):
        await ann.ask(Kind.PAUSE, {"timeout_seconds": 0.05})
        await ann.ask(Kind.PAUSE)
        await asyncio.sleep(0.1)
        await settled(ann.connection)
        assert ann.all(Kind.RESUME) == []
        assert bot.session.outgoing.paused_until == float("inf")


async def test_a_resume_of_who_is_not_paused_is_nothing() -> None:
    recorded = Recorded()
    async with controlled(hooks=recorded.hooks()) as (ann, _bot):
        await ann.ask(Kind.RESUME)
        await settled(ann.connection)
        assert recorded.calls == []


async def test_what_is_for_others_does_not_count() -> None:
    recorded, memory = Recorded(), counting()
    async with controlled(memory, recorded.hooks()) as (ann, bot):
        await say(ann, 3)
        for kind in (Kind.PAUSE, Kind.SHUTDOWN):
            await ann.ask(kind, to=["cy"])
        for kind in (Kind.CLEAR, Kind.RESTART, Kind.REQUEST_STATUS, Kind.COMPACT):
            await ann.ask(kind, to=["cy"])
            await ann.ask(kind, to=())
        await settled(ann.connection, bot)
        assert recorded.calls == []
        assert memory.usage().messages == 3
        assert {envelope.kind for envelope in ann.heard if envelope.sender == "bot"} == {SETTLED}


# Status (§3.9.3, §3.9.4).


async def test_a_status_goes_to_who_asked_and_counts_the_messages_in_context_3_9_4() -> None:
    async with controlled(counting(max_tokens=1_000)) as (ann, _bot):
        await say(ann, 3)
        asked = await ann.ask(Kind.REQUEST_STATUS, {})
        status = await ann.hears_of(Kind.STATUS, asked)
        assert status.to == ("ann",)
        assert status.correlation_id == (asked.id,)
        assert status.content == {
            "messages_in_context": 3,
            "tokens": 30,
            "max_tokens": 1_000,
            "headroom_tokens": 970,
            "status": "active",
        }


async def test_who_retains_nothing_says_so() -> None:
    async with controlled() as (ann, _bot):
        await say(ann, 3)
        asked = await ann.ask(Kind.REQUEST_STATUS)
        assert await ann.hears(Kind.STATUS, asked) == {"messages_in_context": 0, "status": "active"}


async def test_fields_limit_the_metrics_but_not_what_must_be_there_3_9_3() -> None:
    async def metrics() -> Mapping[str, Any]:
        return {"latency_ms": 350, "model": "m"}

    async with controlled(counting(max_tokens=100), Hooks(metrics=metrics)) as (ann, _bot):
        asked = await ann.ask(Kind.REQUEST_STATUS, {"fields": ["tokens", "latency"]})
        assert await ann.hears(Kind.STATUS, asked) == {
            "messages_in_context": 0,
            "status": "active",
            "tokens": 0,
            "max_tokens": 100,
            "latency_ms": 350,
        }
        asked = await ann.ask(Kind.REQUEST_STATUS, {"fields": []})
        assert await ann.hears(Kind.STATUS, asked) == {"messages_in_context": 0, "status": "active"}


@pytest.mark.parametrize(
    "wrong", [{"tokensUsed": 1}, {"tokens": "many"}, {"messages_in_context": -1}, {"thing": object()}, None]
)
async def test_metrics_that_cannot_be_sent_are_left_out(wrong: Any) -> None:
    async def metrics() -> Mapping[str, Any]:
        return wrong  # type: ignore[no-any-return]

    async with controlled(hooks=Hooks(metrics=metrics)) as (ann, _bot):
        asked = await ann.ask(Kind.REQUEST_STATUS)
        assert await ann.hears(Kind.STATUS, asked) == {"messages_in_context": 0, "status": "active"}


async def test_an_author_may_say_it_better() -> None:
    async def metrics() -> Mapping[str, Any]:
        return {"messages_in_context": 7, "tokens": 5, "status": "thinking"}

    async with controlled(hooks=Hooks(metrics=metrics)) as (ann, _bot):
        asked = await ann.ask(Kind.REQUEST_STATUS)
        status = await ann.hears(Kind.STATUS, asked)
        assert status == {"messages_in_context": 7, "tokens": 5, "status": "thinking"}


async def test_what_may_not_be_sent_is_skipped_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    async with controlled(who="dumb") as (ann, dumb):
        for kind in (Kind.REQUEST_STATUS, Kind.CLEAR, Kind.COMPACT, Kind.REQUEST_STATUS, Kind.COMPACT):
            await ann.ask(kind, to=["dumb"])
        await settled(ann.connection)
        assert [envelope for envelope in ann.heard if envelope.sender == "dumb"] == []
        assert dumb.connected
    told = sorted(record.getMessage().split(" send ")[1].split(":")[0] for record in caplog.records)
    assert told == [Kind.CHAT_ACKNOWLEDGE, Kind.COMPACT_DONE, Kind.STATUS]


async def test_a_bad_payload_is_dropped_and_counted_4_3() -> None:
    async with controlled(counting()) as (ann, bot):
        await say(ann, 2)
        await ann.ask(Kind.FORGET, {"direction": "sideways"})
        await ann.ask(Kind.REQUEST_STATUS, {"fields": "all"})
        await ann.ask(Kind.COMPACT, {"target_tokens": -1})
        asked = await ann.ask(Kind.REQUEST_STATUS)
        assert (await ann.hears(Kind.STATUS, asked))["messages_in_context"] == 2
        assert len(ann.all(Kind.STATUS)) == 1
        assert bot.session.misconduct[ann.connection.session.me].count == 3


async def test_a_status_is_sent_once_for_each_time_headroom_falls_under_a_tenth_3_9_4() -> None:
    async with controlled(counting(max_tokens=100)) as (ann, bot):
        await say(ann, 9)
        await settled(ann.connection, bot)
        assert ann.all(Kind.STATUS) == []
    memory = EnvelopeMemory(count=lambda _: 1, max_tokens=100)
    async with controlled(memory) as (ann, bot):
        await say(ann, 94)
        status = await ann.hears_of(Kind.STATUS)
        assert status.to == ()
        assert (status.content["tokens"], status.content["headroom_tokens"]) == (91, 9)
        await ann.ask(Kind.FORGET, {"direction": "oldest", "entries": 20})
        await ann.hears(Kind.STATUS, many=2)
        await say(ann, 19)
        await ann.hears(Kind.STATUS, many=3)
        await settled(ann.connection, bot)
        assert len(ann.all(Kind.STATUS)) == 3


# Forget (§3.9.5), clear (§3.9.8).


@pytest.mark.parametrize(("direction", "left"), [("oldest", ["3", "4"]), ("newest", ["0", "1"])])
async def test_it_forgets_and_says_so_3_9_5(direction: Direction, left: list[str]) -> None:
    memory = counting()
    async with controlled(memory) as (ann, _bot):
        await say(ann, 5)
        asked = await ann.ask(Kind.FORGET, {"direction": direction, "entries": 3})
        assert (await ann.hears(Kind.STATUS, asked))["messages_in_context"] == 2
        assert [envelope.content["text"] for envelope in memory] == left


async def test_it_acknowledges_where_it_may_not_send_a_status_3_9_5() -> None:
    async with controlled(counting(), who="mute") as (ann, _mute):
        asked = await ann.ask(Kind.FORGET, {"direction": "oldest"}, to=["mute"])
        assert await ann.hears(Kind.CHAT_ACKNOWLEDGE, asked) == {"status": "done"}


async def test_clear_erases_everything_and_confirms_it_3_9_8() -> None:
    memory = counting()
    async with controlled(memory) as (ann, _bot):
        await say(ann, 5)
        asked = await ann.ask(Kind.CLEAR)
        assert (await ann.hears(Kind.STATUS, asked))["messages_in_context"] == 0
        assert len(memory) == 0


# Compact (§3.9.6, §3.9.7).


async def test_a_compaction_is_announced_done_and_reported_3_9_6() -> None:
    async with controlled(counting()) as (ann, _bot):
        await say(ann, 5)
        asked = await ann.ask(Kind.COMPACT, {"reason": "token_pressure", "target_tokens": 20})
        done = await ann.hears_of(Kind.COMPACT_DONE, asked)
        assert (done.to, done.correlation_id) == (("ann",), (asked.id,))
        assert done.content == {"status": "compacted", "freed_messages": 3, "freed_tokens": 30}
        await ann.hears(Kind.STATUS, asked, many=2)
        told = [
            (envelope.kind, envelope.content["status"])
            for envelope in ann.heard
            if asked.id in envelope.correlation_id
        ]
        assert told == [
            (Kind.STATUS, "compacting"),
            (Kind.COMPACT_DONE, "compacted"),
            (Kind.STATUS, "compacted"),
        ]


async def test_who_has_nothing_to_compact_says_that_it_was_skipped_3_9_7() -> None:
    async with controlled() as (ann, _bot):
        asked = await ann.ask(Kind.COMPACT)
        done = await ann.hears(Kind.COMPACT_DONE, asked)
        assert done["skipped"] is True
        assert done["reason"]


async def test_each_of_several_compactions_is_done_once_3_9_7() -> None:
    async with controlled(counting()) as (ann, bot):
        await say(ann, 8)
        asked = [await ann.ask(Kind.COMPACT) for _ in range(3)]
        freed = [(await ann.hears(Kind.COMPACT_DONE, each))["freed_messages"] for each in asked]
        assert freed == [4, 2, 1]
        await settled(ann.connection, bot)
        assert len(ann.all(Kind.COMPACT_DONE)) == 3


class Broken:
    """A memory whose every method fails."""

    def remember(self, envelope: Envelope) -> None:
        raise OSError("disk")

    def usage(self) -> MemoryUsage:
        raise OSError("disk")

    def forget(self, direction: Direction, entries: int | None) -> None:
        raise OSError("disk")

    async def compact(self, target_tokens: int | None) -> Freed | None:
        raise OSError("disk")

    def clear(self) -> None:
        raise OSError("disk")


async def test_a_memory_that_fails_is_answered_for() -> None:
    async with controlled(Broken()) as (ann, _bot):
        await say(ann, 3)
        asked = await ann.ask(Kind.COMPACT)
        done = await ann.hears(Kind.COMPACT_DONE, asked)
        assert done == {"status": "failed", "reason": "the compaction failed: OSError"}
        for kind, payload in ((Kind.FORGET, {"direction": "oldest"}), (Kind.CLEAR, {}), (Kind.RESTART, {})):
            asked = await ann.ask(kind, payload)
            status = await ann.hears(Kind.STATUS, asked)
            assert status["status"] == "failed"
            assert "OSError" in status["reason"]
        asked = await ann.ask(Kind.REQUEST_STATUS)
        assert (await ann.hears(Kind.STATUS, asked))["messages_in_context"] == 0


async def test_a_compaction_that_a_clear_overtakes_is_still_done_3_9_7() -> None:
    begun = asyncio.Event()

    async def summarize(kept: tuple[Envelope, ...], target_tokens: int | None) -> tuple[Envelope, ...]:
        begun.set()
        await asyncio.Event().wait()
        return kept

    memory = EnvelopeMemory(compactor=summarize)
    async with controlled(memory) as (ann, _bot):
        await say(ann, 3)
        running, waiting = await ann.ask(Kind.COMPACT), await ann.ask(Kind.COMPACT)
        await begun.wait()
        cleared = await ann.ask(Kind.CLEAR)
        assert (await ann.hears(Kind.STATUS, cleared))["messages_in_context"] == 0
        for asked in (running, waiting):
            assert (await ann.hears(Kind.COMPACT_DONE, asked))["status"] == "cancelled"


async def test_a_memory_that_is_nearly_full_is_compacted_and_that_is_told_3_9_5() -> None:
    memory = EnvelopeMemory(count=lambda _: 1, max_tokens=100)
    async with controlled(memory) as (ann, bot):
        await say(ann, 96)
        await ann.hears(Kind.STATUS, many=3)
        assert [(status.to, status.content["status"]) for status in ann.all(Kind.STATUS)] == [
            ((), "active"),
            ((), "compacting"),
            ((), "compacted"),
        ]
        compacted = ann.all(Kind.STATUS)[-1].content
        assert (compacted["tokens"], compacted["headroom_tokens"]) == (50, 50)
        await settled(ann.connection, bot)
        assert len(ann.all(Kind.STATUS)) == 3
        assert ann.all(Kind.COMPACT_DONE) == []


async def test_a_memory_that_cannot_be_compacted_is_not_tried_for_each_envelope() -> None:
    tries: list[int | None] = []

    def keep_all(kept: tuple[Envelope, ...], target_tokens: int | None) -> tuple[Envelope, ...]:
        tries.append(target_tokens)
        return kept

    memory = EnvelopeMemory(count=lambda _: 1, max_tokens=200, compactor=keep_all)
    async with controlled(memory) as (ann, bot):
        await say(ann, 191)
        await ann.hears(Kind.STATUS, many=3)
        await settled(ann.connection, bot)
        assert tries == [100]
        await say(ann, 5)
        await settled(ann.connection, bot)
        await ann.hears(Kind.STATUS, many=5)
        assert 1 < len(tries) < 5


# Restart (§3.9.9) and shutdown (§3.9.10).


async def test_a_restart_ends_all_work_and_begins_again_with_an_empty_memory_3_9_9() -> None:
    recorded, memory = Recorded(), counting()
    async with controlled(memory, recorded.hooks()) as (ann, _bot):
        await say(ann, 3)
        asked = await ann.ask(Kind.RESTART)
        status = await ann.hears(Kind.STATUS, asked)
        assert (status["status"], status["messages_in_context"]) == ("active", 0)
        assert recorded.calls == ["stop", "start"]


async def test_a_shutdown_is_acknowledged_3_9_10() -> None:
    recorded = Recorded()
    async with controlled(hooks=recorded.hooks()) as (ann, _bot):
        asked = await ann.ask(Kind.SHUTDOWN)
        assert await ann.hears(Kind.CHAT_ACKNOWLEDGE, asked) == {"status": "shutting_down"}
        await recorded.left.wait()
        await ann.ask(Kind.REQUEST_STATUS)
        await ann.ask(Kind.RESTART)
        await settled(ann.connection)
        assert ann.all(Kind.STATUS) == []
        assert recorded.calls == []


async def test_who_may_acknowledge_nothing_leaves_all_the_same_3_9_10() -> None:
    recorded = Recorded()
    async with controlled(hooks=recorded.hooks(), who="dumb") as (ann, _dumb):
        await ann.ask(Kind.SHUTDOWN, to=["dumb"])
        await recorded.left.wait()


# What an author says instead.


async def test_an_author_may_answer_a_kind_in_another_way() -> None:
    asked: list[str] = []

    def refuse(envelope: Envelope) -> None:
        asked.append(envelope.kind)

    memory = counting()
    async with controlled(memory, overrides={Kind.CLEAR: refuse}) as (ann, _bot):
        await say(ann, 3)
        await ann.ask(Kind.CLEAR)
        status = await ann.ask(Kind.REQUEST_STATUS)
        assert (await ann.hears(Kind.STATUS, status))["messages_in_context"] == 3
        assert asked == [Kind.CLEAR]


async def test_a_hook_that_fails_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def fail(*_: object) -> None:
        raise OSError("disk")

    async with controlled(hooks=Hooks(paused=fail, resumed=fail, stop=fail)) as (ann, _bot):
        await ann.ask(Kind.PAUSE)
        await ann.ask(Kind.RESUME)
        restarted = await ann.ask(Kind.RESTART)
        assert (await ann.hears(Kind.STATUS, restarted))["status"] == "failed"
        asked = await ann.ask(Kind.REQUEST_STATUS)
        assert (await ann.hears(Kind.STATUS, asked))["status"] == "active"
    assert logging.ERROR in {record.levelno for record in caplog.records}


async def test_what_is_not_known_is_no_control() -> None:
    async with controlled() as (ann, bot):
        bot.listeners[0](bot.compose("participant/dance", to=["bot"]), None)
        bot.listeners[0](bot.compose("chat", to=["bot"]), Raw())
        asked = await ann.ask(Kind.REQUEST_STATUS)
        await ann.hears(Kind.STATUS, asked)
