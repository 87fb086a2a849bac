"""The index that is kept beside a running gateway, and the checkpoints that are signed with it."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest
from tests.audit.conversation import SPACE, conversation
from tests.audit.kept import KEY, as_indexed, keep, opened, put_records, records_in
from tests.space.table import START, Table

from mew.audit.proof.checkpoints import FILE as CHECKPOINTS
from mew.audit.proof.checkpoints import Checkpoint, Signer, has_valid_signature, read_checkpoints
from mew.audit.record.facts import Fact
from mew.audit.record.indexer import Indexer
from mew.journal.files.database import FILE
from mew.journal.files.folder import space_folder
from mew.journal.files.locator import INDEX_FILE
from mew.journal.port import Journal, JournalUnavailable
from mew.journal.sqlite import SqliteStorage
from mew.space import Entry, Space

ALL: Final = "ORDER BY seq, n"


class Running:
    """A gateway, as far as its index is concerned: it journals what happens, and indexes it."""

    def __init__(self, folder: Path, signer: Signer | None = None, *, every_s: float = 1000.0) -> None:
        self.folder = folder
        self.now = START
        self.storage = SqliteStorage(folder)
        self.indexer = Indexer(folder, self.storage.committed, lambda: self.now, signer, every_s)
        self._journals: dict[str, Journal] = {}

    def happen(self, *entries: Entry, space: str = SPACE) -> None:
        if space not in self._journals:
            replica = Space()
            self._journals[space], past = self.storage.open(space, lambda entry: replica.apply(entry))
            for entry in past.entries:
                replica.apply(entry)
        for entry in entries:
            self._journals[space].append(entry.at, entry.event)
        self.storage.commit(_succeed)

    def facts(self, space: str = SPACE) -> list[Fact]:
        with opened(self.folder, space) as (_, index):
            return index.select(tail=ALL)

    def signed(self, space: str = SPACE) -> list[Checkpoint]:
        return read_checkpoints(space_folder(self.folder, space))


def _succeed(error: JournalUnavailable | None) -> None:
    assert error is None, error


@contextmanager
def running(folder: Path, signer: Signer | None = None, *, every_s: float = 1000.0) -> Iterator[Running]:
    gateway = Running(folder, signer, every_s=every_s)
    with closing(gateway.storage), closing(gateway.indexer):
        yield gateway


@pytest.fixture
def table() -> Table:
    return conversation()


@pytest.fixture
def expected(table: Table, tmp_path: Path) -> list[Fact]:
    """The facts that the journal alone gives."""
    with as_indexed(keep(tmp_path / "alone", table.entries)) as (_, index):
        return index.select(tail=ALL)


async def until(is_so: Callable[[], bool]) -> None:
    """A thread does it."""
    async with asyncio.timeout(20):
        while not is_so():  # noqa: ASYNC110
            await asyncio.sleep(0.001)


async def test_what_is_indexed_beside_the_gateway_is_what_the_journal_gives(
    table: Table, expected: list[Fact], tmp_path: Path
) -> None:
    with running(tmp_path / "journal") as gateway:
        for entry in table.entries:
            gateway.happen(entry)
            if entry.seq % 5 == 0:
                await gateway.indexer.settle()
        await gateway.indexer.settle()
        assert gateway.facts() == expected


async def test_it_is_brought_up_to_date_every_few_seconds(
    table: Table, expected: list[Fact], tmp_path: Path
) -> None:
    with running(tmp_path / "journal", every_s=0.001) as gateway:
        async with asyncio.TaskGroup() as tasks:
            indexing = tasks.create_task(gateway.indexer.run())
            gateway.happen(*table.entries)
            await until(lambda: gateway.facts() == expected)
            indexing.cancel()


async def test_what_is_left_at_the_end_is_indexed(table: Table, expected: list[Fact], tmp_path: Path) -> None:
    with running(tmp_path / "journal") as gateway:
        gateway.happen(*table.entries)
    assert gateway.facts() == expected


async def test_the_next_process_makes_up_for_what_the_last_did_not_do(
    table: Table, expected: list[Fact], tmp_path: Path
) -> None:
    keep(tmp_path / "journal", table.entries[:10])
    with running(tmp_path / "journal") as gateway:
        gateway.happen(*table.entries[10:])
        await gateway.indexer.settle()
        assert gateway.facts() == expected


async def test_an_index_that_cannot_be_written_is_told_of_once_and_made_later(
    table: Table, expected: list[Fact], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with running(tmp_path / "journal") as gateway:
        gateway.happen(*table.entries[:10])
        (gateway.folder / INDEX_FILE).unlink()
        (gateway.folder / INDEX_FILE).mkdir()
        with caplog.at_level(logging.WARNING):
            await gateway.indexer.settle()
            await gateway.indexer.settle()
        assert caplog.text.count("the index is not up to date") == 1
        (gateway.folder / INDEX_FILE).rmdir()
        gateway.happen(*table.entries[10:])
        await gateway.indexer.settle()
        assert gateway.facts() == expected


async def test_a_gateway_goes_on_when_somebody_takes_its_journal_away(table: Table, tmp_path: Path) -> None:
    with running(tmp_path / "journal", Signer(KEY)) as gateway:
        gateway.happen(*table.entries[:10])
        (gateway.folder / FILE).rename(tmp_path / FILE)
        await gateway.indexer.settle()
        gateway.happen(*table.entries[10:])
        await gateway.indexer.settle()
    assert gateway.signed() == []


async def test_a_journal_that_took_the_place_of_another_is_indexed(
    table: Table, expected: list[Fact], tmp_path: Path
) -> None:
    """As when a space is opened whose records had to be saved from a damaged file."""
    folder = keep(tmp_path / "journal", table.entries[:10])
    saved = keep(tmp_path / "saved", table.entries)
    with closing(Indexer(folder, lambda: 1, lambda: START)) as indexer:
        await indexer.settle()
        (saved / FILE).rename(folder / FILE)
        await indexer.settle()
    with opened(folder) as (_, index):
        assert index.select(tail=ALL) == expected


# Checkpoints.


async def test_a_checkpoint_is_signed_every_minute_and_at_the_end(table: Table, tmp_path: Path) -> None:
    with running(tmp_path / "journal", Signer(KEY)) as gateway:
        seen = []
        for entry in table.entries[1:5]:
            gateway.happen(*(table.entries[:1] if entry.seq == 2 else ()), entry)
            await gateway.indexer.settle()
            seen.append([one.seq for one in gateway.signed()])
            gateway.now += timedelta(seconds=40)
    assert seen == [[2], [2], [2, 4], [2, 4]]
    assert [one.seq for one in gateway.signed()] == [2, 4, 5]
    places = {row.last: row.hash for row in records_in(gateway.folder)}
    for one in gateway.signed():
        assert has_valid_signature(one, KEY.public_key())
        assert one.link.hash == places[one.seq]


async def test_what_happened_last_is_signed_though_nothing_follows_it(table: Table, tmp_path: Path) -> None:
    with running(tmp_path / "journal", Signer(KEY), every_s=0.001) as gateway:
        async with asyncio.TaskGroup() as tasks:
            indexing = tasks.create_task(gateway.indexer.run())
            gateway.happen(*table.entries[:4])
            await until(lambda: [one.seq for one in gateway.signed()] == [4])
            gateway.happen(table.entries[4])
            gateway.now += timedelta(minutes=2)
            await until(lambda: [one.seq for one in gateway.signed()] == [4, 5])
            indexing.cancel()


async def test_each_space_is_signed_by_itself_and_where_nothing_happens_no_more(
    table: Table, tmp_path: Path
) -> None:
    with running(tmp_path / "journal", Signer(KEY)) as gateway:
        gateway.happen(*table.entries)
        gateway.happen(*table.entries[:4], space="hall")
    with running(tmp_path / "journal", Signer(KEY)) as gateway:
        gateway.happen(*table.entries[4:6], space="hall")
    last = table.entries[-1].last
    assert [one.seq for one in gateway.signed()] == [last]
    assert [(one.space, one.seq) for one in gateway.signed("hall")] == [("hall", 4), ("hall", 6)]


async def test_a_journal_that_lost_what_was_signed_is_signed_again(table: Table, tmp_path: Path) -> None:
    with running(tmp_path / "journal", Signer(KEY)) as gateway:
        gateway.happen(*table.entries[:10])
    put_records(gateway.folder, records_in(gateway.folder)[:8])
    with running(tmp_path / "journal", Signer(KEY)) as gateway:
        gateway.happen(table.entries[8])
    assert [one.seq for one in gateway.signed()] == [10, 9]


async def test_a_checkpoint_that_cannot_be_kept_stops_nothing(
    table: Table, expected: list[Fact], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with running(tmp_path / "journal", Signer(KEY)) as gateway:
        (space_folder(gateway.folder, SPACE) / CHECKPOINTS).mkdir(parents=True)
        gateway.happen(*table.entries)
        await gateway.indexer.settle()
        assert gateway.facts() == expected
    assert "Is a directory" in " ".join(str(getattr(one, "error", "")) for one in caplog.records)
