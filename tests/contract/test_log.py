"""What every log promises. A further one joins with a line in `LOGS`."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest

from mew.log.base import Log, LogUnavailable
from mew.log.database import Durability
from mew.log.memory import MemoryLog
from mew.log.sqlite import SqliteLog
from mew.protocol.capability import Capability
from mew.protocol.codec import decode
from mew.protocol.envelope import EnvelopeId, ParticipantId
from mew.protocol.errors import Refusal
from mew.space import (
    Configured,
    Connection,
    Entry,
    Event,
    Identified,
    Joined,
    Left,
    Rules,
    Sent,
    TimePassed,
    Violated,
)

LOGS: Final[dict[str, Callable[[Path], Log]]] = {
    "memory": lambda folder: MemoryLog(),
    "sqlite": lambda folder: SqliteLog(folder, "desk"),
    "sqlite, safe from power cuts": lambda folder: SqliteLog(folder, "desk", Durability.POWER),
}

AT: Final = datetime(2026, 1, 1, 12, 30, 15, 123456, tzinfo=UTC)
RAW: Final = b'{"protocol":"mew/v0.4","id":"e1","from":"ann","kind":"chat","x":1,"payload":{"text": "hi"}}'
CAPABILITIES: Final = (
    Capability.parse("chat"),
    Capability.parse({"kind": "mcp/*", "except": ["mcp/request"]}),
)
ANN: Final = ParticipantId("ann")
EVENTS: Final[tuple[Event, ...]] = (
    Configured(
        Rules(id="desk", profiles={ANN: CAPABILITIES}, baseline=CAPABILITIES[:1], streams_max=3), "epoch"
    ),
    Identified(ParticipantId("zoe"), CAPABILITIES),
    Joined(ANN, Connection("c1")),
    Joined(ANN, Connection("c2"), resumed=False),
    Left(Connection("c2")),
    Sent(decode(RAW), RAW, Connection("c1")),
    Sent(decode(RAW), RAW, None, lenient=True, token_hash="abc"),
    Violated(ANN, EnvelopeId("e2"), "mcp/request", Refusal.CAPABILITY_VIOLATION),
    TimePassed(),
)


@pytest.fixture(params=LOGS)
async def log(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Log]:
    opened = LOGS[request.param](tmp_path)
    assert list(opened.recall().entries) == []
    async with asyncio.timeout(5):
        yield opened
    opened.close()


def left(n: int) -> Left:
    return Left(Connection(f"c{n}"))


def append(log: Log, *numbers: int) -> None:
    for n in numbers:
        log.append(AT + timedelta(seconds=n), left(n))


def entries(*numbers: int) -> list[Entry]:
    return [Entry(n, AT + timedelta(seconds=n), left(n)) for n in numbers]


async def read(log: Log, count: int, after: int = 0) -> list[Entry]:
    """The next so many; whoever reads stops in the middle of nothing: batches are taken whole."""
    found: list[Entry] = []
    async for batch in log.follow(after):
        found += batch
        if len(found) >= count:
            break
    return found


async def read_all(log: Log, after: int = 0) -> list[Entry]:
    return [entry async for batch in log.follow(after) for entry in batch]


async def test_entries_come_in_the_order_they_were_appended_numbered_from_one(log: Log) -> None:
    append(log, 1, 2, 3)
    assert await read(log, 3) == entries(1, 2, 3)


async def test_every_event_comes_back_as_it_was(log: Log) -> None:
    for event in EVENTS:
        log.append(AT, event)
    assert [entry.event for entry in await read(log, len(EVENTS))] == list(EVENTS)


async def test_those_of_one_turn_come_together(log: Log) -> None:
    follower = log.follow(0)
    asyncio.get_running_loop().call_soon(append, log, 1, 2, 3)
    assert list(await anext(follower)) == entries(1, 2, 3)
    asyncio.get_running_loop().call_soon(append, log, 4, 5)
    assert list(await anext(follower)) == entries(4, 5)


async def test_what_has_its_place_at_once_comes_between_those_that_are_yielded(log: Log) -> None:
    seen: list[int] = []
    end = 0

    async def follow() -> None:
        async for batch in log.follow(0):
            seen.extend(entry.seq for entry in batch)

    def place() -> None:
        nonlocal end
        end += 1
        if log.is_at_rest:
            log.place(1)
            seen.append(end)
        else:
            append(log, 0)

    async with asyncio.TaskGroup() as following:
        following.create_task(follow())
        for n in range(40):
            place()
            if n % 4 == 0:
                append(log, n)
                end += 1
                place()
            for _ in range(n % 5):
                await asyncio.sleep(0)
        log.close()
    assert seen == list(range(1, 61))


async def test_nothing_has_its_place_at_once_behind_what_is_not_yielded_yet_or_after_the_end(
    log: Log,
) -> None:
    assert not log.is_at_rest, "nobody follows"
    async with asyncio.TaskGroup() as tasks:
        following = tasks.create_task(read(log, 1))
        await asyncio.sleep(0)
        append(log, 1)
        assert not log.is_at_rest
    assert following.result() == entries(1)
    log.close()
    assert not log.is_at_rest


async def test_a_batch_that_was_yielded_does_not_grow(log: Log) -> None:
    follower = log.follow(0)
    append(log, 1)
    batch: Sequence[Entry] = await anext(follower)
    append(log, 2)
    assert list(batch) == entries(1)
    assert list(await anext(follower)) == entries(2)


async def test_a_follower_that_starts_late_gets_everything(log: Log) -> None:
    for n in range(1, 6):
        append(log, n)
        await asyncio.sleep(0)
    assert await read(log, 5) == entries(1, 2, 3, 4, 5)


async def test_a_follower_goes_on_where_it_was(log: Log) -> None:
    append(log, 1, 2)
    assert await read(log, 2) == entries(1, 2)
    append(log, 3)
    assert await read(log, 1, after=2) == entries(3)


async def test_what_is_appended_while_entries_are_handled_comes_after_them(log: Log) -> None:
    append(log, 1)
    seen: list[Entry] = []
    async for batch in log.follow(0):
        for entry in batch:
            seen.append(entry)
            if entry.seq < 4:
                append(log, entry.seq + 1)
        if len(seen) == 4:
            break
    assert seen == entries(1, 2, 3, 4)


async def test_a_closed_log_is_read_to_its_end(log: Log) -> None:
    append(log, 1, 2)
    log.close()
    assert await read_all(log) == entries(1, 2)


async def test_a_log_that_is_closed_while_it_is_followed_ends_after_its_last_entry(log: Log) -> None:
    def last_words() -> None:
        append(log, 2)
        log.close()

    append(log, 1)
    asyncio.get_running_loop().call_later(0.01, last_words)
    assert await read_all(log) == entries(1, 2)


async def test_a_follower_that_waits_for_more_is_let_go_by_closing(log: Log) -> None:
    asyncio.get_running_loop().call_later(0.01, log.close)
    assert await read_all(log) == []


async def test_closing_while_a_batch_is_handled_loses_nothing(log: Log) -> None:
    append(log, 1)
    seen: list[Entry] = []
    async for batch in log.follow(0):
        seen += batch
        if len(seen) == 1:
            append(log, 2)
            log.close()
    assert seen == entries(1, 2)


async def test_a_closed_log_takes_nothing(log: Log) -> None:
    append(log, 1)
    log.close()
    with pytest.raises(LogUnavailable):
        append(log, 2)
    assert await read_all(log) == entries(1)


async def test_closing_twice_is_closing(log: Log) -> None:
    log.close()
    log.close()
    assert await read_all(log) == []
