"""What a participant retains, and what becomes of it (§3.9.4 to §3.9.8)."""

import asyncio
from collections.abc import Iterable

import pytest
from msgspec import Raw

from mew.client.participant.memory import EnvelopeMemory, Freed, MemoryUsage, NoMemory, concerns
from mew.protocol.envelope import PROTOCOL, Envelope


def envelope(id: str, *, kind: str = "chat", sender: str = "ann", to: tuple[str, ...] = ()) -> Envelope:
    payload = Raw(b'{"text":"hello"}')
    return Envelope(protocol=PROTOCOL, id=id, sender=sender, to=to, kind=kind, payload=payload)


def filled(memory: EnvelopeMemory, many: int) -> EnvelopeMemory:
    for number in range(many):
        memory.remember(envelope(f"e{number}"))
    return memory


def ids(memory: EnvelopeMemory) -> list[str]:
    return [kept.id for kept in memory]


async def test_no_memory_has_nothing_and_nothing_to_compact() -> None:
    memory = NoMemory()
    memory.remember(envelope("e1"))
    memory.forget("oldest", 3)
    memory.clear()
    assert memory.usage() == MemoryUsage(messages=0)
    assert await memory.compact(100) is None


def test_tokens_are_reported_only_where_somebody_says_how_to_count() -> None:
    assert filled(EnvelopeMemory(), 3).usage() == MemoryUsage(3, None, None)
    assert filled(EnvelopeMemory(count=lambda _: 7, max_tokens=100), 3).usage() == MemoryUsage(3, 21, 100)


def test_a_maximum_without_a_count_is_refused() -> None:
    with pytest.raises(ValueError, match="count"):
        EnvelopeMemory(max_tokens=100)


def test_it_forgets_the_oldest_or_the_newest_3_9_5() -> None:
    memory = filled(EnvelopeMemory(count=lambda _: 10), 6)
    memory.forget("oldest", 2)
    assert ids(memory) == ["e2", "e3", "e4", "e5"]
    memory.forget("newest", 1)
    assert ids(memory) == ["e2", "e3", "e4"]
    assert memory.usage() == MemoryUsage(3, 30)


def test_it_forgets_half_where_no_number_is_given_and_all_where_it_is_too_large() -> None:
    memory = filled(EnvelopeMemory(), 5)
    memory.forget("oldest", None)
    assert ids(memory) == ["e3", "e4"]
    memory.forget("newest", 10**12)
    assert memory.usage() == MemoryUsage(0)


def test_clear_erases_everything_3_9_8() -> None:
    memory = filled(EnvelopeMemory(count=lambda _: 10), 5)
    memory.clear()
    assert list(memory) == []
    assert memory.usage() == MemoryUsage(0, 0)


def test_it_is_bounded_by_number_and_by_bytes() -> None:
    assert ids(filled(EnvelopeMemory(envelopes_max=2, count=lambda _: 1), 5)) == ["e3", "e4"]
    assert ids(filled(EnvelopeMemory(bytes_max=1_100), 5)) == ["e3", "e4"]
    assert ids(filled(EnvelopeMemory(bytes_max=1), 5)) == ["e4"]


async def test_compacting_drops_the_oldest_half_unless_told_otherwise() -> None:
    memory = filled(EnvelopeMemory(), 5)
    assert await memory.compact(None) == Freed(messages=2)
    assert ids(memory) == ["e2", "e3", "e4"]


async def test_compacting_goes_down_to_the_tokens_that_are_wanted_3_9_6() -> None:
    memory = filled(EnvelopeMemory(count=lambda _: 10), 8)
    assert await memory.compact(35) == Freed(messages=5, tokens=50)
    assert await memory.compact(35) is None
    assert await memory.compact(0) == Freed(messages=2, tokens=20)
    assert ids(memory) == ["e7"]


async def test_what_is_empty_cannot_be_compacted() -> None:
    assert await EnvelopeMemory().compact(None) is None


async def test_the_author_says_what_stays() -> None:
    asked: list[int | None] = []

    def summarize(kept: tuple[Envelope, ...], target_tokens: int | None) -> list[Envelope]:
        asked.append(target_tokens)
        return [envelope("summary"), kept[-1]]

    memory = filled(EnvelopeMemory(count=lambda _: 10, compactor=summarize), 5)
    assert await memory.compact(20) == Freed(messages=3, tokens=30)
    assert ids(memory) == ["summary", "e4"]
    assert asked == [20]


async def test_what_comes_while_it_compacts_stays() -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def summarize(kept: tuple[Envelope, ...], target_tokens: int | None) -> Iterable[Envelope]:
        begun.set()
        await go_on.wait()
        return [envelope("summary")]

    memory = filled(EnvelopeMemory(count=lambda _: 10, compactor=summarize), 3)
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        compacting = tasks.create_task(memory.compact(None))
        await begun.wait()
        memory.remember(envelope("new"))
        go_on.set()
    assert compacting.result() == Freed(messages=2, tokens=20)
    assert ids(memory) == ["summary", "new"]


@pytest.mark.parametrize("how", ["clear", "forget"])
async def test_what_was_dropped_while_it_compacts_does_not_come_back(how: str) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def summarize(kept: tuple[Envelope, ...], target_tokens: int | None) -> Iterable[Envelope]:
        begun.set()
        await go_on.wait()
        return kept

    memory = filled(EnvelopeMemory(compactor=summarize), 3)
    with pytest.RaisesGroup(RuntimeError):
        async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
            tasks.create_task(memory.compact(None))
            await begun.wait()
            memory.clear() if how == "clear" else memory.forget("oldest", 3)
            go_on.set()
    assert len(memory) == 0


@pytest.mark.parametrize(
    "seen",
    [
        envelope("e", sender="bot"),
        envelope("e", to=("cy", "bot")),
        envelope("e"),
        envelope("e", kind="mcp/request", to=("bot",)),
        envelope("e", kind="reasoning/start", sender="bot"),
        envelope("e", kind="reasoning/thought", to=("bot",)),
    ],
)
def test_what_one_says_or_is_told_is_ones_conversation(seen: Envelope) -> None:
    assert concerns(seen, "bot")


@pytest.mark.parametrize(
    "seen",
    [
        envelope("e", to=("cy",)),
        envelope("e", kind="reasoning/thought"),
        envelope("e", kind="participant/pause", to=("bot",)),
        envelope("e", kind="participant/status", sender="bot"),
        envelope("e", kind="system/presence", sender="system:gateway"),
    ],
)
def test_what_is_said_to_others_or_about_participants_is_not(seen: Envelope) -> None:
    assert not concerns(seen, "bot")
