"""What every storage of journals promises. A further one joins with a line in `STORAGES`."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest
from tests.nodes.redis_server import RedisServer, redis_server
from tests.space.table import capabilities, envelope_of

from mew.journal.files.database import Durability
from mew.journal.memory import MemoryStorage
from mew.journal.port import Journal, JournalStorage, JournalUnavailable, RetentionPolicy
from mew.journal.redis.address import RedisAddress
from mew.journal.redis.storage import RedisStorage
from mew.journal.sqlite import SqliteStorage
from mew.protocol.envelope import EnvelopeId, ParticipantId
from mew.protocol.envelopes import Envelopes
from mew.protocol.errors import Refusal
from mew.space import (
    Configured,
    ConnectionId,
    Decision,
    Deliver,
    Entry,
    Event,
    Identified,
    Joined,
    Left,
    NodeLeft,
    Rules,
    Sent,
    TimePassed,
    Violated,
)

STORAGES: Final[dict[str, Callable[[Path, str], JournalStorage]]] = {
    "memory": lambda folder, redis: MemoryStorage(),
    "sqlite": lambda folder, redis: SqliteStorage(folder),
    "sqlite, safe from power cuts": lambda folder, redis: SqliteStorage(folder, Durability.POWER),
    "redis": lambda folder, redis: RedisStorage(RedisAddress.parse(redis)),
}

AT: Final = datetime(2026, 1, 1, 12, 30, 15, 123456, tzinfo=UTC)
ANN: Final = ParticipantId("ann")
HELD: Final = capabilities(["chat", {"kind": "mcp/*", "except": ["mcp/request"]}])


def chat(*ids: str) -> Envelopes:
    several = Envelopes((), (), (), (), (), ())
    for envelope_id in ids:
        several = several.joined(Envelopes.of(*envelope_of("ann", "chat", {"text": "hi"}, id=envelope_id)))
    return several


EVENTS: Final[tuple[Event, ...]] = (
    Configured(Rules(id="desk", profiles={ANN: HELD}, baseline=HELD[:1], streams_max=3), "epoch"),
    Identified(ParticipantId("zoe"), HELD),
    Joined(ANN, ConnectionId("c1")),
    Sent(chat("e1"), (ConnectionId("c1"),)),
    Sent(chat("e2", "e3", "e4"), (ConnectionId("c1"), None, ConnectionId("c2")), judged_at=3),
    Left(ConnectionId("c2")),
    NodeLeft("n1"),
    Sent(chat("e2"), (None,), lenient=True, token_hash="abc"),
    Violated(ANN, EnvelopeId("e2"), "mcp/request", Refusal.CAPABILITY_VIOLATION),
    TimePassed(),
)
NUMBERS: Final = [1, 2, 3, 4, 5, 8, 9, 10, 11, 12]  # of EVENTS; a batch has one for each of its envelopes


class Follower:
    """Applies entries as a space does, and notes what it was given, and by whom."""

    def __init__(self, space: str, given: list[tuple[str, Entry]]) -> None:
        self._space = space
        self._given = given

    def __call__(self, entry: Entry) -> Sequence[Decision]:
        self._given.append((self._space, entry))
        return [Deliver(entry.event.envelopes)] if isinstance(entry.event, Sent) else []


class Desk:
    """Spaces of a storage, and the entries that their followers were given, in order."""

    def __init__(self, storage: JournalStorage) -> None:
        self.storage = storage
        self.given: list[tuple[str, Entry]] = []

    async def open(self, space: str) -> Journal:
        await self.storage.prepare([space])
        journal, past = self.storage.open(space, Follower(space, self.given))
        assert (past.state, past.begin, list(past.entries), list(past.delivered)) == (None, 0, [], [])
        return journal

    async def commit(self) -> None:
        """Returns when all that was appended has come round too."""
        done: asyncio.Future[JournalUnavailable | None] = asyncio.get_running_loop().create_future()
        self.storage.commit(done.set_result)
        async with asyncio.timeout(20):
            assert await done is None


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisServer]:
    with redis_server() as server:
        yield server


@pytest.fixture(params=STORAGES)
async def desk(request: pytest.FixtureRequest, tmp_path: Path, redis: RedisServer) -> AsyncIterator[Desk]:
    redis.command("FLUSHALL")
    storage = STORAGES[request.param](tmp_path, redis.url)
    yield Desk(storage)
    storage.close()


def left(n: int) -> Left:
    return Left(ConnectionId(f"c{n}"))


async def test_entries_come_in_the_order_they_were_appended_numbered_from_one(desk: Desk) -> None:
    journal = await desk.open("desk")
    for n in (1, 2, 3):
        journal.append(AT + timedelta(seconds=n), left(n))
    await desk.commit()
    assert [(space, entry.seq, entry.event) for space, entry in desk.given] == [
        ("desk", n, left(n)) for n in (1, 2, 3)
    ]
    if not desk.storage.is_shared:  # or they have the moments of the clock that all nodes share
        assert [entry.at for _, entry in desk.given] == [AT + timedelta(seconds=n) for n in (1, 2, 3)]


async def test_every_event_comes_as_it_was_and_a_batch_takes_as_many_numbers_as_it_has_envelopes(
    desk: Desk,
) -> None:
    journal = await desk.open("desk")
    for event in EVENTS:
        journal.append(AT, event)
    await desk.commit()
    assert [entry.event for _, entry in desk.given] == list(EVENTS)
    assert [entry.seq for _, entry in desk.given] == NUMBERS
    assert [entry.last for _, entry in desk.given] == [*(n - 1 for n in NUMBERS[1:]), NUMBERS[-1]]


async def test_what_is_appended_after_a_commit_goes_on_with_the_numbers(desk: Desk) -> None:
    journal = await desk.open("desk")
    for n in range(1, 6):
        journal.append(AT, left(n))
        await desk.commit()
    assert [entry.seq for _, entry in desk.given] == [1, 2, 3, 4, 5]


async def test_spaces_have_numbers_of_their_own_and_one_commit(desk: Desk) -> None:
    one, other = await desk.open("one"), await desk.open("other")
    for n in (1, 2, 3):
        one.append(AT, left(n))
        other.append(AT, Sent(chat(f"e{n}", f"f{n}"), (None, None)))
    await desk.commit()
    assert [entry.seq for space, entry in desk.given if space == "one"] == [1, 2, 3]
    assert [entry.seq for space, entry in desk.given if space == "other"] == [1, 3, 5]


async def test_a_commit_of_nothing_is_done(desk: Desk) -> None:
    await desk.commit()
    await desk.open("desk")
    await desk.commit()
    assert desk.given == []


async def test_what_is_appended_while_a_commit_is_under_way_is_of_the_next(desk: Desk) -> None:
    journal = await desk.open("desk")
    done: asyncio.Future[JournalUnavailable | None] = asyncio.get_running_loop().create_future()
    journal.append(AT, left(1))
    desk.storage.commit(done.set_result)
    journal.append(AT, left(2))
    assert await done is None
    await desk.commit()
    assert [entry.seq for _, entry in desk.given] == [1, 2]


async def test_a_closed_journal_takes_nothing_and_what_it_took_before_is_committed(desk: Desk) -> None:
    journal = await desk.open("desk")
    journal.append(AT, left(1))
    journal.close()
    journal.close()
    with pytest.raises(JournalUnavailable):
        journal.append(AT, left(2))
    journal.save_snapshot([b"state"])
    await desk.commit()
    assert [entry.seq for _, entry in desk.given] == [1]


async def test_nothing_is_dropped_unless_it_is_asked_for(desk: Desk) -> None:
    journal = await desk.open("desk")
    if not desk.storage.is_shared:  # what is shared is not kept for good
        assert journal.policy == RetentionPolicy()
    assert journal.stats.begin == journal.stats.entries == 0
    journal.append(AT, left(1))
    await desk.commit()
    assert journal.stats.begin == 0
