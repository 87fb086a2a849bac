"""What a journal need not keep goes from its front, while it is written: what is left is whole, at every moment."""

import asyncio
import shutil
import sqlite3
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from tests.log.journal import AT, entries, fill, read, snapshot, trimmed

from mew.log.base import Keep, Kept, LogUnavailable, Mark
from mew.log.database import Database, Durability
from mew.log.reading import JournalReader
from mew.log.record import first_break, first_link
from mew.log.retention import Retention
from mew.log.sqlite import SqliteLog

DAY = timedelta(days=1)


def keeping(folder: Path, keep: Keep, now: datetime = AT) -> SqliteLog:
    return SqliteLog(folder, "desk", Durability.PROCESS, Retention(keep, lambda: now))


def everything_shown(seq: int) -> Mark:
    """A place of which nothing is at hand any more: a start needs nothing before it."""
    return Mark(seq, AT, seq, seq)


def begin(folder: Path) -> int:
    """Where a journal begins; all that is left of it must be whole."""
    with JournalReader(folder) as reader:
        assert first_break(reader.rows(), reader.begin) is None
        return reader.begin.seq


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


async def written(folder: Path, last: int, keep: Keep, *, now: datetime = AT, each: int = 1) -> SqliteLog:
    log = keeping(folder, keep, now)
    await fill(log, *(entries(n, min(n + each - 1, last)) for n in range(1, last + 1, each)))
    return log


# What goes.


async def test_only_so_many_entries_are_kept(tmp_path: Path) -> None:
    log = await written(tmp_path, 30, Keep(entries=10))
    await snapshot(log, everything_shown(30), b"state")
    await trimmed(log)
    assert begin(tmp_path) == 20
    assert log.kept.entries == 10
    log.close()
    assert read(tmp_path) == (everything_shown(30), b"state", [])
    with JournalReader(tmp_path) as reader:
        assert list(reader.entries()) == entries(21, 30)


async def test_a_turn_goes_as_a_whole_when_none_of_it_need_be_kept(tmp_path: Path) -> None:
    log = await written(tmp_path, 30, Keep(entries=8), each=5)
    await snapshot(log, everything_shown(30), b"state")
    await trimmed(log)
    assert begin(tmp_path) == 20
    log.close()


async def test_only_entries_up_to_an_age_are_kept(tmp_path: Path) -> None:
    log = await written(tmp_path, 30, Keep(age=DAY), now=AT + DAY + timedelta(seconds=12))
    await snapshot(log, everything_shown(30), b"state")
    await trimmed(log)
    assert begin(tmp_path) == 11
    assert log.kept == Kept(AT + timedelta(seconds=12), 19, log.kept.bytes, log.kept.begin)
    log.close()


async def test_a_turn_is_as_old_as_its_last_entry(tmp_path: Path) -> None:
    """What a space was told before it had a file is written with what came much later."""
    log = await written(tmp_path, 30, Keep(age=DAY), now=AT + DAY + timedelta(seconds=12), each=5)
    await snapshot(log, everything_shown(30), b"state")
    await trimmed(log)
    assert begin(tmp_path) == 10
    log.close()


async def test_all_may_go_and_the_numbers_go_on(tmp_path: Path) -> None:
    log = await written(tmp_path, 5, Keep(age=DAY), now=AT + 2 * DAY)
    await snapshot(log, everything_shown(5), b"five")
    await trimmed(log)
    assert begin(tmp_path) == 5
    assert log.kept == Kept(None, 0, log.kept.bytes, log.kept.begin)
    log.close()
    log = keeping(tmp_path, Keep())
    past = log.recall()
    assert (past.mark, past.state, list(past.entries)) == (everything_shown(5), b"five", [])
    await fill(log, entries(6, 7))
    assert log.kept.since == entries(6, 6)[0].at
    log.close()
    assert read(tmp_path)[2] == entries(6, 7)


async def test_only_so_many_bytes_are_kept_and_the_file_gets_shorter(tmp_path: Path) -> None:
    log = await written(tmp_path, 20_000, Keep(bytes=1 << 20), each=500)
    await snapshot(log, everything_shown(20_000), b"state")
    (tmp_path / "before").mkdir()
    await trimmed(log)
    assert 0 < begin(tmp_path) < 20_000
    assert 0.8 * (1 << 20) < log.kept.bytes <= 1 << 20
    log.close()
    assert (tmp_path / "entries.db").stat().st_size <= 1 << 20


async def test_nothing_of_what_went_is_left_in_the_files(tmp_path: Path) -> None:
    log = await written(tmp_path, 200, Keep(entries=10))
    await snapshot(log, everything_shown(200), b"state")
    await trimmed(log)
    found = b"".join((tmp_path / name).read_bytes() for name in names(tmp_path))
    assert b'"c200"' in found
    assert not [n for n in range(1, 191) if f'"c{n}"'.encode() in found]
    log.close()


async def test_without_a_bound_nothing_goes(tmp_path: Path) -> None:
    log = await written(tmp_path, 30, Keep(), now=AT + 10_000 * DAY)
    await snapshot(log, everything_shown(30), b"state")
    await trimmed(log)
    assert begin(tmp_path) == 0
    log.close()


async def test_what_is_to_be_kept_may_change_while_it_runs(tmp_path: Path) -> None:
    retention = Retention()
    log = SqliteLog(tmp_path, "desk", Durability.PROCESS, retention)
    await fill(log, *(entries(n, n) for n in range(1, 31)))
    retention.keep = Keep(entries=3)
    assert log.keep == Keep(entries=3)
    await snapshot(log, everything_shown(30), b"state")
    await trimmed(log)
    assert begin(tmp_path) == 27
    log.close()


# What stays.


async def test_what_a_start_needs_stays(tmp_path: Path) -> None:
    log = keeping(tmp_path, Keep(entries=1))
    await fill(log, *(entries(n, n) for n in range(1, 11)))
    await snapshot(log, Mark(10, AT, 0, 10), b"ten")
    await trimmed(log)
    assert begin(tmp_path) == 0
    await fill(log, *(entries(n, n) for n in range(11, 21)))
    await snapshot(log, Mark(20, AT, 12, 20), b"twenty")
    await trimmed(log)
    assert begin(tmp_path) == 10
    log.close()
    assert read(tmp_path) == (Mark(10, AT, 0, 10), b"ten", entries(11, 20))


async def test_a_journal_whose_snapshot_is_spoilt_stays_as_it_is(tmp_path: Path) -> None:
    log = await written(tmp_path, 10, Keep())
    await snapshot(log, everything_shown(10), b"ten")
    log._retention.keep = Keep(entries=1)
    file = tmp_path / "10.snapshot"
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    log._trimmer.start(10)
    await trimmed(log)
    assert begin(tmp_path) == 0
    log.close()


@pytest.mark.parametrize("harm", ["gone", "torn", "flipped"])
async def test_the_only_snapshot_has_a_copy_which_takes_its_place(
    tmp_path: Path, harm: str, caplog: pytest.LogCaptureFixture
) -> None:
    log = await written(tmp_path, 10, Keep(entries=1))
    await snapshot(log, everything_shown(10), b"ten")
    await trimmed(log)
    log.close()
    assert begin(tmp_path) == 9
    file = tmp_path / "10.snapshot"
    whole = file.read_bytes()
    file.unlink()
    if harm != "gone":
        file.write_bytes(whole[:20] if harm == "torn" else whole[:-40] + b"?" + whole[-39:])
    assert read(tmp_path) == (everything_shown(10), b"ten", [])
    assert "10.snapshot could not be read; its copy has taken its place" in caplog.text
    assert (tmp_path / "10.snapshot.damaged-1").exists() is (harm != "gone")
    assert file.read_bytes() == whole
    caplog.clear()
    assert read(tmp_path) == (everything_shown(10), b"ten", [])
    assert not caplog.text


async def test_a_journal_that_begins_later_never_has_its_state_in_one_file_alone(tmp_path: Path) -> None:
    log = keeping(tmp_path, Keep(entries=1))
    for n in range(1, 4):
        await fill(log, entries(n * 10 - 9, n * 10))
        await snapshot(log, everything_shown(n * 10), b"state")
        await trimmed(log)
        files = {f"{n * 10}.snapshot"} | ({f"{n * 10}.snapshot.copy"} if n > 1 else set())
        assert {name for name in names(tmp_path) if "snapshot" in name} == files
    log.close()


async def test_a_snapshot_of_what_was_dropped_is_no_damage(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It could not be deleted when that was due."""
    log = await written(tmp_path, 10, Keep(entries=1))
    await snapshot(log, everything_shown(10), b"ten")
    shutil.copy(tmp_path / "10.snapshot", tmp_path / "kept")
    await fill(log, entries(11, 20), entries(21, 30))
    await snapshot(log, everything_shown(30), b"thirty")
    await trimmed(log)
    log.close()
    assert begin(tmp_path) == 20
    (tmp_path / "kept").rename(tmp_path / "10.snapshot")
    assert read(tmp_path)[1] == b"thirty"
    assert not caplog.text


async def test_files_that_were_set_aside_are_told_of_once_they_are_old(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = await written(tmp_path, 10, Keep())
    log.close()
    (tmp_path / "entries.db.damaged-1").touch()
    now = datetime.now(AT.tzinfo)
    log = keeping(tmp_path, Keep(age=DAY), now + timedelta(hours=23))
    log.recall()
    assert not caplog.text
    log.close()
    log = keeping(tmp_path, Keep(age=DAY), now + timedelta(hours=25))
    list(log.recall().entries)
    await fill(log, entries(11, 11))
    await snapshot(log, everything_shown(11), b"state")
    await trimmed(log)
    log.close()
    assert [vars(record)["file"] for record in caplog.records] == [str(tmp_path / "entries.db.damaged-1")]
    assert "delete it if nobody needs it" in caplog.text
    assert (tmp_path / "entries.db.damaged-1").exists()


async def test_entries_that_cannot_be_read_stay_and_are_told_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = await written(tmp_path, 10, Keep(entries=1))
    with closing(sqlite3.connect(tmp_path / "entries.db")) as connection:
        connection.execute("UPDATE turns SET entries = x'00' WHERE last = 9")
        connection.commit()
    await snapshot(log, everything_shown(10), b"ten")
    await trimmed(log)
    log.close()
    assert "old entries could not be dropped from the journal" in caplog.text
    database = Database.open(tmp_path / "entries.db", "desk", Durability.PROCESS)
    assert database.begin == first_link("desk")
    database.close()


# While it goes.


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mew.log.front._STEP_TURNS", 3)


@pytest.mark.usefixtures("small_steps")
async def test_what_is_written_meanwhile_is_there(tmp_path: Path) -> None:
    log = await written(tmp_path, 300, Keep(entries=100))
    await snapshot(log, everything_shown(300), b"state")
    await asyncio.sleep(0)
    trimming = log._trimmer._trimming
    assert trimming is not None
    last = 300
    while not trimming.done():
        last += 1
        await fill(log, entries(last, last))
        await asyncio.sleep(0)
    assert last > 320
    log.close()
    assert begin(tmp_path) == 200
    assert read(tmp_path)[2] == entries(301, last)


@pytest.mark.usefixtures("small_steps")
async def test_a_log_that_is_closed_stops_at_the_next_step(tmp_path: Path) -> None:
    log = await written(tmp_path, 900, Keep(entries=1))
    await snapshot(log, everything_shown(900), b"state")
    await asyncio.sleep(0.05)
    log.close()
    assert names(tmp_path) == {"entries.db", "900.snapshot", "900.snapshot.copy"}
    assert 0 < begin(tmp_path) < 800
    assert read(tmp_path) == (everything_shown(900), b"state", [])


# What others still need.


async def test_what_others_still_need_stays(tmp_path: Path) -> None:
    asked: list[int] = []

    def may_go(after: int) -> int:
        asked.append(after)
        return 12

    log = SqliteLog(tmp_path, "desk", Durability.PROCESS, Retention(Keep(entries=1)), may_go)
    await fill(log, *(entries(n, n) for n in range(1, 31)))
    for _ in range(2):
        await snapshot(log, everything_shown(30), b"state")
        await trimmed(log)
        assert begin(tmp_path) == 12
    assert asked == [0, 12]
    log.close()


async def test_nothing_goes_where_others_cannot_say(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def may_go(after: int) -> int:
        raise LogUnavailable("no room")

    log = SqliteLog(tmp_path, "desk", Durability.PROCESS, Retention(Keep(entries=1)), may_go)
    await fill(log, *(entries(n, n) for n in range(1, 31)))
    await snapshot(log, everything_shown(30), b"state")
    await trimmed(log)
    assert begin(tmp_path) == 0
    assert "old entries could not be dropped" in caplog.text
    log.close()


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize("spoilt", [(6,), (4, 6)])
async def test_what_went_before_it_came_to_a_damage_is_known_to_be_gone(
    tmp_path: Path, spoilt: tuple[int, ...], caplog: pytest.LogCaptureFixture
) -> None:
    log = await written(tmp_path, 10, Keep(entries=1))
    with closing(sqlite3.connect(tmp_path / "entries.db")) as connection:
        connection.executemany("UPDATE turns SET entries = x'00' WHERE last = ?", [(n,) for n in spoilt])
        connection.commit()
    await snapshot(log, everything_shown(10), b"ten")
    await trimmed(log)
    assert "old entries could not be dropped from the journal" in caplog.text
    assert log.kept.entries == 7
    assert log._trimmer.begin == 3
    log.close()
