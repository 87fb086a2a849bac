"""The journal over several lives: what is there when it is opened again, and when it is kept."""

import asyncio
import os
import shutil
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest
from tests.log.journal import AT, entries, fill, open_log, read, snapshot

from mew.log.base import LogUnavailable, Mark
from mew.log.database import Database, Durability
from mew.log.record import first_break, first_link
from mew.log.sqlite import SqliteLog
from mew.protocol.envelope import ParticipantId
from mew.space import Configured, Joined, Rules
from mew.space.entries import Connection


def copy_as_a_crash_would(folder: Path, to: Path) -> Path:
    """What another process finds if this one is killed now."""
    shutil.copytree(folder, to)
    return to


async def test_what_was_yielded_is_there_after_a_crash(tmp_path: Path) -> None:
    log = open_log(tmp_path / "desk")
    await fill(log, entries(1, 3), entries(4, 4))
    crashed = copy_as_a_crash_would(tmp_path / "desk", tmp_path / "crashed")
    assert read(crashed) == (None, b"", entries(1, 4))
    log.close()


async def test_what_was_appended_and_not_yielded_never_happened(tmp_path: Path) -> None:
    log = open_log(tmp_path / "desk")
    await fill(log, entries(1, 1))
    log.append(AT, entries(2, 2)[0].event)
    crashed = copy_as_a_crash_would(tmp_path / "desk", tmp_path / "crashed")
    assert read(crashed) == (None, b"", entries(1, 1))
    log.close()


@pytest.mark.parametrize("durability", Durability)
async def test_a_log_goes_on_where_it_ended(tmp_path: Path, durability: Durability) -> None:
    for n in (1, 2, 3):
        log = SqliteLog(tmp_path, "desk", durability)
        assert list(log.recall().entries) == entries(1, n - 1)
        log.append(entries(n, n)[0].at, entries(n, n)[0].event)
        log.close()
        assert [entry async for batch in log.follow(n - 1) for entry in batch] == entries(n, n)
    database = Database.open(tmp_path / "entries.db", "desk", durability)
    assert first_break(database.rows(0), first_link("desk")) is None
    database.close()


async def test_a_closed_log_leaves_one_file_for_the_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "journal" / "desk"
    log = open_log(folder)
    await fill(log, entries(1, 2))
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    log.close()
    assert [path.name for path in folder.iterdir()] == ["entries.db"]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


async def test_a_space_that_was_only_configured_has_no_file(tmp_path: Path) -> None:
    folder = tmp_path / "desk"
    log = open_log(folder)
    configured = Configured(Rules(id="desk"), "epoch")
    follower = log.follow(0)
    log.append(AT, configured)
    await anext(follower)
    assert not folder.exists()
    joined = Joined(ParticipantId("ann"), Connection("c1"))
    log.append(AT, joined)
    await anext(follower)
    await follower.aclose()
    log.close()
    assert [entry.event for entry in read(folder)[2]] == [configured, joined]


# Snapshots.


def mark(seq: int, first: int, end: int) -> Mark:
    return Mark(seq, AT, first, end)


async def test_reading_begins_with_the_newest_snapshot_that_is_old_enough(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    await fill(log, entries(1, 2))
    await snapshot(log, mark(2, 0, 2), b"two")
    await fill(log, entries(3, 5))
    await snapshot(log, mark(5, 3, 5), b"five")  # what is at hand here came after entry 2
    await fill(log, entries(6, 7))
    log.close()
    assert read(tmp_path) == (mark(2, 0, 2), b"two", entries(3, 7))


async def test_reading_begins_at_the_beginning_while_all_is_at_hand(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    await fill(log, entries(1, 2))
    await snapshot(log, mark(2, 0, 2), b"two")
    log.close()
    assert read(tmp_path) == (None, b"", entries(1, 2))


async def test_a_snapshot_that_no_history_needs_is_gone(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for n in range(1, 6):
        await fill(log, entries(n, n))
        await snapshot(log, mark(n, n - 1, n), b"state %d" % n)
    log.close()
    assert {name for name in os.listdir(tmp_path) if "snapshot" in name} == {"4.snapshot", "5.snapshot"}
    assert read(tmp_path) == (mark(4, 3, 4), b"state 4", entries(5, 5))


async def test_a_snapshot_that_cannot_be_kept_is_told_and_not_missed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = open_log(tmp_path)
    await fill(log, entries(1, 1))
    (tmp_path / ".1.snapshot").mkdir()
    await snapshot(log, mark(1, 1, 1), b"state")
    assert "snapshot could not be kept" in caplog.text
    await fill(log, entries(2, 2))
    log.close()
    assert read(tmp_path) == (None, b"", entries(1, 2))


async def test_a_space_without_a_file_needs_no_snapshot(tmp_path: Path) -> None:
    log = open_log(tmp_path / "desk")
    log.save_snapshot(mark(0, 0, 0), [b""])
    log.close()
    assert not (tmp_path / "desk").exists()


# What is written ahead.


async def test_what_is_written_ahead_is_brought_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mew.log.sqlite._AHEAD_BYTES", 0)
    monkeypatch.setattr("mew.log.sqlite._AHEAD_BYTES_MAX", 0)
    log = open_log(tmp_path)
    for n in range(1, 30):
        await fill(log, entries(n, n))
        if log._bringing_in is not None:
            await log._bringing_in
    await asyncio.sleep(0)
    assert (tmp_path / "entries.db-wal").stat().st_size <= 4 * 4096  # begun anew again and again
    log.close()
    assert read(tmp_path)[2] == entries(1, 29)


async def test_a_turn_that_is_too_large_for_one_row_comes_back_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mew.log.sqlite._TURN_BYTES_MAX", 200)
    log = open_log(tmp_path)
    await fill(log, entries(1, 9), entries(10, 10))
    log.close()
    assert read(tmp_path)[2] == entries(1, 10)


# What the world does.


async def test_who_else_writes_is_waited_for(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    await fill(log, entries(1, 1))
    with closing(
        sqlite3.connect(tmp_path / "entries.db", isolation_level=None, check_same_thread=False)
    ) as other:
        other.execute("BEGIN IMMEDIATE")
        asyncio.get_running_loop().call_later(0.05, other.execute, "ROLLBACK")
        await fill(log, entries(2, 2))
    log.close()
    assert read(tmp_path)[2] == entries(1, 2)


async def test_what_cannot_be_written_is_not_yielded_and_ends_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(tmp_path)
    await fill(log, entries(1, 1))

    def full(database: Database, last: int, packed: bytes) -> None:
        raise LogUnavailable("database or disk is full")

    monkeypatch.setattr(Database, "write", full)
    log.append(AT, entries(2, 2)[0].event)
    with pytest.raises(LogUnavailable, match="disk is full"):
        await anext(log.follow(1))
    with pytest.raises(LogUnavailable):
        log.append(AT, entries(3, 3)[0].event)
    monkeypatch.undo()
    log.close()
    assert read(tmp_path)[2] == entries(1, 1)


async def test_a_folder_that_cannot_be_made_ends_the_log(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    log = open_log(tmp_path / "file" / "desk")
    log.append(AT, entries(1, 1)[0].event)
    with pytest.raises(LogUnavailable, match="file"):
        await anext(log.follow(0))
    log.close()


async def test_the_journal_of_another_space_is_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path, "desk")
    await fill(log, entries(1, 1))
    log.close()
    with pytest.raises(LogUnavailable, match=r"entries.db: the journal of space 'desk', not of 'other'"):
        open_log(tmp_path, "other").recall()


async def test_the_journal_of_a_later_version_is_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    await fill(log, entries(1, 1))
    log.close()
    with closing(sqlite3.connect(tmp_path / "entries.db")) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(LogUnavailable, match="later version"):
        open_log(tmp_path).recall()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
async def test_a_journal_that_may_not_be_read_is_refused_and_not_taken_for_damaged(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    await fill(log, entries(1, 1))
    log.close()
    (tmp_path / "entries.db").chmod(0)
    with pytest.raises(LogUnavailable, match=r"entries\.db"):
        open_log(tmp_path).recall()
