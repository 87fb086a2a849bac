"""A journal to look at while its gateway writes it and drops the first entries: nothing left out, nothing twice."""

import os
import shutil
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import timedelta
from itertools import product
from pathlib import Path
from threading import Thread, Timer

import pytest
from tests.journal.journals import (
    AT,
    Opened,
    alter,
    append,
    batch,
    commit,
    entries,
    fill,
    following,
    index,
    open_journal,
    read,
    snapshot,
    written,
)

from mew.journal.files.database import FILE, Busy, Damaged, Database, Durability, checkpoint
from mew.journal.files.high_water import MARKS_FILE
from mew.journal.files.locator import INDEX_FILE, open_index
from mew.journal.port import JournalUnavailable, RetentionPolicy
from mew.journal.reader import EntriesTrimmed, JournalReader, spaces_in_journal
from mew.journal.record import ChainLink, RecordRow, find_break, genesis_link, read_header
from mew.journal.recovery.wal import WalStatus
from mew.journal.retention import Retention
from mew.space import Entry
from mew.space.state import SpaceState

SOON_S = 0.05


@contextmanager
def reading(folder: Path, space: str = "desk") -> Iterator[JournalReader]:
    with open_index(folder) as locator, JournalReader(locator, space) as reader:
        yield reader


def first_break(rows: list[RecordRow], after: ChainLink) -> int | None:
    for row in rows:
        broken = find_break(row, after)
        if broken is not None:
            return broken.seq
        after = ChainLink(row.last, row.hash)
    return None


# What it finds.

SIZES = (1, 3, 2, 1, 4, 1, 5, 2)  # of the records
LAST = sum(SIZES)
MARKED = (1, 5, 6, 11, 12, 19)  # entries in records that hold a text
TEXT = b"wanted"


def several() -> list[Entry]:
    made, first = [], 1
    for size in SIZES:
        numbers = range(first, first + size)
        made.append(batch(first, numbers[-1], TEXT.decode() if set(numbers) & set(MARKED) else "other"))
        first += size
    return made


@pytest.fixture(params=[1, 2, 3, 7, 50_000])
async def reader(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[JournalReader]:
    """Of a journal with another one in the same file; it searches for texts in spans that are short or long."""
    monkeypatch.setattr("mew.journal.reader._SPAN", request.param)
    opened = open_journal(tmp_path)
    other, _ = opened.storage.open("other", following([]))
    for entry in several():
        append(other, [batch(entry.seq, entry.last, TEXT.decode())])
        await fill(opened, [entry])
    opened.close()
    with reading(tmp_path) as found:
        yield found


def firsts(rows: Iterator[RecordRow]) -> list[int]:
    return [read_header(row.body).seq for row in rows]


def expected(after: int, until: int, text: bytes = b"") -> list[int]:
    """Of the records that have an entry between the two, the first ones."""
    return [
        entry.seq
        for entry in several()
        if entry.last > after and entry.seq <= until and (not text or set(MARKED) & set(numbers(entry)))
    ]


def numbers(entry: Entry) -> range:
    return range(entry.seq, entry.last + 1)


def test_every_stretch_is_read_once_in_both_directions(reader: JournalReader) -> None:
    for after, until in product(range(LAST + 2), repeat=2):
        if after < until:
            assert firsts(reader.rows_between(after, until)) == expected(after, until)
            backwards = firsts(reader.rows_between(after, until, newest_first=True))
            assert backwards == expected(after, until)[::-1]


def test_what_holds_a_text_is_found_once_in_both_directions(reader: JournalReader) -> None:
    for after, until in product(range(LAST + 2), repeat=2):
        for newest_first in (False, True):
            found = list(reader.rows_with((TEXT, b"nothing"), after, until, newest_first=newest_first))
            wanted = expected(after, until, TEXT) if after < until else []
            rows = [row for row, _ in found if row is not None]
            assert firsts(iter(rows)) == (wanted[::-1] if newest_first else wanted)
            assert sum(passed for _, passed in found) >= min(until, LAST) - after


def test_who_looks_for_a_text_that_is_nowhere_can_give_up_on_the_way(reader: JournalReader) -> None:
    found = list(reader.rows_with((b"nothing",), 0, LAST))
    assert {row for row, _ in found} == {None}
    assert sum(passed for _, passed in found) == LAST


def test_the_first_since_a_moment_is_found(reader: JournalReader) -> None:
    for half_seconds in range(-2, 2 * LAST + 2):
        moment = AT + timedelta(seconds=half_seconds / 2)
        first = next((entry.seq for entry in several() if entry.at >= moment), LAST + 1)
        assert reader.first_since(moment) == first


def test_the_record_that_holds_an_entry_is_found(reader: JournalReader) -> None:
    for entry in several():
        for seq in numbers(entry):
            record = reader.record(seq)
            assert record is not None
            assert record.entry == entry
    assert reader.record(LAST + 1) is None
    assert reader.last == LAST
    assert list(reader.entries(after=4)) == several()[2:]


async def test_a_record_that_cannot_be_read_is_told_and_what_lies_before_is_read(tmp_path: Path) -> None:
    file = await written(tmp_path, entries(1, 1), entries(2, 2), entries(3, 3))
    alter(file, "UPDATE records SET body = x'00' WHERE last = 2")
    with reading(tmp_path) as reader:
        rows = reader.records()
        assert next(rows).entry == entries(1, 1)[0]
        with pytest.raises(Damaged, match="entry 2 cannot be read"):
            next(rows)
        assert firsts(reader.rows_between(2, 3)) == [3]


async def test_a_space_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(JournalUnavailable, match="there is no journal here"), reading(tmp_path / "none"):
        pass
    await written(tmp_path, entries(1, 1))
    with pytest.raises(JournalUnavailable, match="there is no space 'lab' in it"), reading(tmp_path, "lab"):
        pass
    assert spaces_in_journal(tmp_path) == ["desk"]
    assert spaces_in_journal(tmp_path / "none") == []


async def test_a_state_to_start_from_is_that_of_the_newest_snapshot_before_an_entry(tmp_path: Path) -> None:
    opened = open_journal(tmp_path)
    state = SpaceState()
    for last in (2, 4):
        await fill(opened, entries(last - 1, last))
        state.seq = last
        await snapshot(opened, b"".join(state.pieces()))
    opened.close()
    with reading(tmp_path) as reader:
        assert [reader.state_before(seq).seq for seq in (1, 2, 3, 4, 5, 9)] == [0, 0, 2, 2, 4, 4]


# While the first entries go.


async def dropping(folder: Path, last: int) -> Opened:
    opened = open_journal(folder, retention=Retention())
    await fill(opened, *(entries(n, n) for n in range(1, last + 1)))
    return opened


async def drop(opened: Opened, count: int) -> None:
    """All but so many."""
    opened.storage.retention.policy = RetentionPolicy(entries=count)
    index(opened.storage.folder)
    for _ in range(2):
        await snapshot(opened, b"state")


async def test_a_reader_that_is_overtaken_is_told_where_the_journal_begins_now(tmp_path: Path) -> None:
    opened = await dropping(tmp_path, 300)
    with reading(tmp_path) as reader:
        rows = reader.rows(0)
        seen = [next(rows) for _ in range(64)]  # what is read at a time
        await drop(opened, 100)
        with pytest.raises(EntriesTrimmed, match="what came after entry 64 is no longer kept") as caught:
            next(rows)
        assert isinstance(caught.value, JournalUnavailable)
        assert [row.last for row in seen] == list(range(1, 65))
        assert caught.value.begin == reader.begin
        assert reader.begin.seq == 200
        again = list(reader.rows(caught.value.begin.seq))
        assert first_break(again, caught.value.begin) is None
        assert again[-1].last == 300
    opened.close()


async def test_a_reader_is_told_too_when_nothing_is_left(tmp_path: Path) -> None:
    opened = await dropping(tmp_path, 300)
    with reading(tmp_path) as reader:
        rows = reader.rows(0)
        next(rows)
        await drop(opened, 0)
        with pytest.raises(EntriesTrimmed):
            list(rows)
        assert reader.last == 300
    opened.close()


async def test_a_reader_ahead_of_what_goes_notices_nothing(tmp_path: Path) -> None:
    opened = await dropping(tmp_path, 300)
    with reading(tmp_path) as reader:
        rows = reader.rows()
        seen = [next(rows) for _ in range(100)]
        await drop(opened, 210)
        seen += rows
        assert [row.last for row in seen] == list(range(1, 301))
        assert [row.last for row in reader.rows()] == list(range(91, 301))
    opened.close()


async def test_a_place_before_the_beginning_is_no_longer_kept(tmp_path: Path) -> None:
    opened = await dropping(tmp_path, 30)
    await drop(opened, 10)
    with reading(tmp_path) as reader, pytest.raises(EntriesTrimmed, match="begins after entry 20"):
        next(reader.rows(10))
    with reading(tmp_path) as reader:
        with pytest.raises(JournalUnavailable, match="no snapshot from before entry 25"):
            reader.state_before(25)
        assert reader.first_since(AT) == 21
    opened.close()


async def test_a_gap_that_somebody_else_made_is_for_who_reads_to_find(tmp_path: Path) -> None:
    file = await written(tmp_path, *(entries(n, n) for n in range(1, 11)))
    alter(file, "DELETE FROM records WHERE last = 4")
    with reading(tmp_path) as reader:
        assert first_break(list(reader.rows(0)), genesis_link("desk")) == 4


# In nobody's way.


def connect(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(file, isolation_level=None, check_same_thread=False)


@contextmanager
def locked(file: Path) -> Iterator[sqlite3.Connection]:
    """Nobody else gets at it, as while the last one leaves it."""
    with closing(connect(file)) as connection:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("BEGIN IMMEDIATE")
        yield connection


def names(folder: Path) -> set[str]:
    return {name for name in os.listdir(folder) if not name.startswith(".")}


async def test_a_journal_that_is_locked_for_a_moment_is_opened_after_it(tmp_path: Path) -> None:
    file = await written(tmp_path, entries(1, 3))
    with locked(file) as connection:
        later = Timer(SOON_S, connection.close)
        later.start()
        database = Database.open(file, Durability.PROCESS)
        later.join()
    assert database.last() == 3
    assert database.ask("PRAGMA busy_timeout") == [(0,)]
    database.close()


async def test_a_start_beside_somebody_who_looks_finds_nothing_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    opened = open_journal(tmp_path)
    await fill(opened, entries(1, 4))
    with reading(tmp_path) as reader:
        opened.close()  # and what was written ahead stays there
        assert (tmp_path / f"{FILE}-wal").stat().st_size
        assert read(tmp_path) == (None, entries(1, 4))
        await written(tmp_path, entries(5, 5))
        assert reader.last == 5
        assert reader.wal_status is WalStatus.READ
    assert not caplog.text


async def test_moving_the_write_ahead_log_waits_for_another_who_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = await written(tmp_path, entries(1, 1))
    opened = open_journal(tmp_path)
    append(opened.journal, entries(2, 2))
    with closing(connect(file)) as reader, closing(connect(file)) as other:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM records").fetchall()
        await commit(opened.storage)
        reader.execute("COMMIT")
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM records").fetchall()
        at_it = Thread(target=move_all, args=(other,))
        at_it.start()  # until the reader is done
        with closing(connect(file)) as looking:
            while looking.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[1] >= 0:
                assert at_it.is_alive()
        with monkeypatch.context() as patch:
            patch.setattr("mew.journal.files.database._BUSY_MS", 1)
            with pytest.raises(Busy):
                checkpoint(file)
        later = Timer(SOON_S, reader.execute, ("COMMIT",))
        later.start()
        pages, moved = checkpoint(file)
        assert pages == moved > 0
        later.join()
        at_it.join()
    opened.close()


def move_all(connection: sqlite3.Connection) -> None:
    """Waits for readers, but not for others who do this."""
    while connection.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()[1] < 0:
        pass


async def test_what_is_locked_is_waited_for_and_not_looked_at_without_its_write_ahead_log(
    tmp_path: Path,
) -> None:
    file = await written(tmp_path, entries(1, 3))
    with closing(connect(file)) as writer:
        writer.execute("PRAGMA locking_mode = EXCLUSIVE")
        writer.execute("PRAGMA wal_autocheckpoint = 0")
        writer.execute(
            "INSERT INTO records SELECT 9, space, 1000, at, indexed, hash, body FROM records LIMIT 1"
        )
        later = Timer(SOON_S, writer.close)
        later.start()
        with reading(tmp_path) as reader:
            assert reader.last == 1000
            assert not reader.is_blind
        later.join()


async def test_what_stays_locked_cannot_be_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = await written(tmp_path, entries(1, 3))
    monkeypatch.setattr("mew.journal.files.database._BUSY_MS", 1)
    with locked(file), pytest.raises(JournalUnavailable, match="locked"), reading(tmp_path):
        pass


async def test_where_nothing_can_be_written_it_reads_and_knows_that_it_is_blind(tmp_path: Path) -> None:
    file = await written(tmp_path, entries(1, 3))
    for name in (FILE, INDEX_FILE):
        (tmp_path / f"{name}-shm").symlink_to(f"{name}-shm")  # as in a folder that cannot be written
    before = names(tmp_path)
    with reading(tmp_path) as reader:
        assert reader.is_blind
        assert reader.last == 3
        assert list(reader.entries()) == entries(1, 3)
        statuses = [reader.wal_status]
        file.with_name(f"{FILE}-wal").write_bytes(b"what somebody wrote")
        statuses.append(reader.wal_status)
    assert statuses == [WalStatus.READ, WalStatus.UNREAD]
    assert names(tmp_path) - before <= {f"{FILE}-wal", f"{INDEX_FILE}-wal"}


async def test_nothing_is_left_of_who_only_looked(tmp_path: Path) -> None:
    await written(tmp_path, entries(1, 3))
    with reading(tmp_path) as one, reading(tmp_path) as other:
        assert one.last == other.last == 3
        assert f"{FILE}-wal" in names(tmp_path)
    assert names(tmp_path) == {FILE, INDEX_FILE, MARKS_FILE}


async def test_what_others_have_open_or_wrote_is_left_as_it_is(tmp_path: Path) -> None:
    opened = open_journal(tmp_path / "journal")
    for n in (1, 2):
        await fill(opened, entries(n, n))
        with reading(tmp_path / "journal") as reader:
            assert reader.last == n
        assert {FILE, f"{FILE}-wal", f"{FILE}-shm"} <= names(tmp_path / "journal")
    shutil.copytree(tmp_path / "journal", tmp_path / "crashed")
    opened.close()
    with suppress(FileNotFoundError):
        (tmp_path / "crashed" / f"{FILE}-shm").unlink()
    before = (tmp_path / "crashed" / f"{FILE}-wal").read_bytes()
    with reading(tmp_path / "crashed") as reader:
        assert reader.last == 2
    assert (tmp_path / "crashed" / f"{FILE}-wal").read_bytes() == before
