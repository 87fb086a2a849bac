"""The journal over several lives: what is there when it is opened again, and what its files are like."""

import asyncio
import os
import resource
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from threading import get_ident

import pytest
from tests.journal.journals import (
    AT,
    append,
    batch,
    commit,
    entries,
    fill,
    following,
    open_journal,
    read,
    snapshot,
    snapshots_in,
    written,
)
from tests.space.table import capabilities, envelope_of

from mew.audit.proof.verify import verify_journal
from mew.journal.files.database import FILE, Durability
from mew.journal.files.folder import space_folder
from mew.journal.port import JournalUnavailable
from mew.journal.reader import spaces_in_journal
from mew.journal.sqlite import SqliteStorage
from mew.protocol.envelope import ParticipantId
from mew.protocol.envelopes import Envelopes
from mew.space import Configured, ConnectionId, Deliver, Entry, Joined, Rules


def copy_as_a_crash_would(folder: Path, to: Path) -> Path:
    """What another process finds if this one is killed now."""
    shutil.copytree(folder, to, ignore=shutil.ignore_patterns(".lock"))
    return to


# What is there afterwards.


async def test_what_was_committed_is_there_after_a_crash(tmp_path: Path) -> None:
    opened = open_journal(tmp_path / "journal")
    await fill(opened, entries(1, 3), [batch(4, 8), *entries(9, 9)])
    crashed = copy_as_a_crash_would(tmp_path / "journal", tmp_path / "crashed")
    assert read(crashed) == (None, [*entries(1, 3), batch(4, 8), *entries(9, 9)])
    opened.close()


async def test_what_was_appended_and_not_committed_never_happened(tmp_path: Path) -> None:
    opened = open_journal(tmp_path / "journal")
    await fill(opened, entries(1, 1))
    append(opened.journal, entries(2, 3))
    crashed = copy_as_a_crash_would(tmp_path / "journal", tmp_path / "crashed")
    assert read(crashed) == (None, entries(1, 1))
    opened.close()
    assert read(tmp_path / "journal") == (None, entries(1, 1))


@pytest.mark.parametrize("durability", Durability)
async def test_a_journal_goes_on_where_it_ended(tmp_path: Path, durability: Durability) -> None:
    for n in (1, 2, 3):
        opened = open_journal(tmp_path, durability=durability)
        assert list(opened.past.entries) == entries(1, n - 1)
        await fill(opened, entries(n, n))
        assert opened.seen == entries(n, n)
        opened.close()
    assert verify_journal(tmp_path, "desk").broken is None


async def test_what_was_delivered_is_read_back_the_newest_first(tmp_path: Path) -> None:
    await written(tmp_path, [batch(1, 3)], entries(4, 4), [batch(5, 5)])
    opened = open_journal(tmp_path)
    assert opened.past.at == AT + timedelta(seconds=5)
    found = [(one.seq, one.ids, one.only) for one in opened.past.delivered]
    assert found == [(5, ("e5",), None), (4, (), None), (1, ("e1", "e2", "e3"), None)]
    opened.close()


async def test_several_spaces_are_committed_together_or_not_at_all(tmp_path: Path) -> None:
    opened = open_journal(tmp_path, "one")
    other, _ = opened.storage.open("other", following([]))
    await fill(opened, entries(1, 1))
    append(opened.journal, entries(2, 2))
    append(other, entries(1, 1))
    is_last = "BEFORE INSERT ON records WHEN NEW.space = 2"
    with closing(sqlite3.connect(tmp_path / FILE)) as connection:
        connection.execute(f"CREATE TRIGGER full {is_last} BEGIN SELECT RAISE(ABORT, 'no room'); END")
    with pytest.raises(
        JournalUnavailable, match=r"is damaged: no room; stop the gateway, put a backup in its place"
    ):
        await commit(opened.storage)
    opened.close()
    with closing(sqlite3.connect(tmp_path / FILE)) as connection:
        connection.execute("DROP TRIGGER full")
    assert read(tmp_path, "one") == (None, entries(1, 1))
    assert read(tmp_path, "other") == (None, [])


async def test_after_a_commit_that_failed_a_space_that_is_opened_again_goes_on(tmp_path: Path) -> None:
    opened = open_journal(tmp_path)
    await fill(opened, entries(1, 1))
    with closing(sqlite3.connect(tmp_path / FILE)) as connection:
        connection.execute("CREATE TRIGGER full BEFORE INSERT ON records BEGIN SELECT RAISE(ABORT, ''); END")
        append(opened.journal, entries(2, 3))
        with pytest.raises(JournalUnavailable):
            await commit(opened.storage)
        opened.journal.close()
        connection.execute("DROP TRIGGER full")
    opened.journal, past = opened.storage.open("desk", following([]))
    assert list(past.entries) == entries(1, 1)
    await fill(opened, [batch(2, 4)])
    opened.close()
    assert read(tmp_path) == (None, [*entries(1, 1), batch(2, 4)])


async def test_a_space_that_is_no_longer_configured_keeps_its_journal(tmp_path: Path) -> None:
    await written(tmp_path, entries(1, 2), space="old")
    await written(tmp_path, entries(1, 3), space="new")
    assert spaces_in_journal(tmp_path) == ["new", "old"]
    assert read(tmp_path, "old") == (None, entries(1, 2))


# What happened before anybody came.


def configured(*kinds: str) -> Configured:
    return Configured(Rules(id="desk", profiles={ParticipantId("ann"): capabilities(kinds)}), "epoch")


async def test_that_a_space_was_configured_is_written_with_what_happens_next(tmp_path: Path) -> None:
    opened = open_journal(tmp_path / "journal")
    opened.journal.append(AT, configured("chat"))
    await commit(opened.storage)
    opened.journal.save_snapshot([b"state"])
    crashed = copy_as_a_crash_would(tmp_path / "journal", tmp_path / "crashed")
    assert read(crashed) == (None, [])
    joined = Joined(ParticipantId("ann"), ConnectionId("c1"))
    opened.journal.append(AT, joined)
    await commit(opened.storage)
    opened.close()
    assert [entry.event for entry in read(tmp_path / "journal")[1]] == [configured("chat"), joined]
    assert not space_folder(tmp_path / "journal", "desk").exists()


async def test_a_configuration_that_somebody_was_told_of_is_committed_before_that(tmp_path: Path) -> None:
    told = Deliver(Envelopes.of(*envelope_of("system:gateway", "system/presence", id="g1")))
    storage = SqliteStorage(tmp_path / "journal")
    journal, _ = storage.open("desk", lambda entry: [told] if entry.seq == 2 else [])
    journal.append(AT, Joined(ParticipantId("ann"), ConnectionId("c1")))
    journal.append(AT, configured("mcp/*"))
    await commit(storage)
    crashed = copy_as_a_crash_would(tmp_path / "journal", tmp_path / "crashed")
    storage.close()
    opened = open_journal(crashed)
    assert [one.ids for one in opened.past.delivered] == [("g1",), ()]
    opened.close()


# Snapshots.


async def test_a_start_begins_with_the_newest_snapshot(tmp_path: Path) -> None:
    opened = open_journal(tmp_path)
    await fill(opened, entries(1, 2))
    await snapshot(opened, b"two")
    await fill(opened, [batch(3, 5)])
    await snapshot(opened, b"five")
    await fill(opened, entries(6, 7))
    opened.close()
    assert read(tmp_path) == (b"five", entries(6, 7))
    opened = open_journal(tmp_path)
    assert [one.seq for one in opened.past.delivered] == [7, 6, 3, 2, 1]
    opened.close()


async def test_the_last_two_snapshots_are_kept(tmp_path: Path) -> None:
    opened = open_journal(tmp_path)
    for n in range(1, 5):
        await fill(opened, entries(n, n))
        await snapshot(opened, b"state %d" % n)
    assert snapshots_in(tmp_path) == ["3.snapshot", "4.snapshot"]
    await snapshot(opened, b"state 4")
    assert snapshots_in(tmp_path) == ["4-2.snapshot", "4.snapshot"]
    await snapshot(opened, b"state 4")
    assert snapshots_in(tmp_path) == ["4-2.snapshot", "4-3.snapshot"]
    opened.close()
    assert read(tmp_path) == (b"state 4", [])


async def test_a_snapshot_is_saved_only_once_what_it_has_is_committed(tmp_path: Path) -> None:
    opened = open_journal(tmp_path)
    await fill(opened, entries(1, 1))
    append(opened.journal, entries(2, 2))
    await snapshot(opened, b"two")
    assert not space_folder(tmp_path, "desk").exists()
    with ThreadPoolExecutor(1) as worker:
        asyncio.get_running_loop().set_default_executor(worker)
        await commit(opened.storage)
    assert snapshots_in(tmp_path) == ["2.snapshot"]
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    opened.close()
    assert read(tmp_path) == (b"two", [])


async def test_a_snapshot_waits_for_a_commit_that_is_under_way(tmp_path: Path) -> None:
    opened = open_journal(tmp_path)
    loop = asyncio.get_running_loop()
    with closing(sqlite3.connect(tmp_path / FILE, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        append(opened.journal, entries(1, 2))
        done: asyncio.Future[JournalUnavailable | None] = loop.create_future()
        opened.storage.commit(done.set_result)
        await snapshot(opened, b"two")
        assert not space_folder(tmp_path, "desk").exists()
        with ThreadPoolExecutor(1) as worker:
            loop.set_default_executor(worker)
            other.execute("ROLLBACK")
            assert await done is None
        loop.set_default_executor(ThreadPoolExecutor(1))
    assert snapshots_in(tmp_path) == ["2.snapshot"]
    opened.close()


async def test_a_snapshot_of_what_could_not_be_committed_is_not_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mew.journal.files.database._BUSY_MS", 1)
    opened = open_journal(tmp_path)
    with closing(sqlite3.connect(tmp_path / FILE, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        append(opened.journal, entries(1, 2))
        await snapshot(opened, b"two")
        with pytest.raises(JournalUnavailable):
            await commit(opened.storage)
    await commit(opened.storage)
    opened.close()
    assert not space_folder(tmp_path, "desk").exists()
    assert read(tmp_path) == (None, [])


async def test_a_snapshot_that_cannot_be_saved_is_told_and_not_missed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    opened = open_journal(tmp_path)
    await fill(opened, entries(1, 1))
    (tmp_path / "spaces").write_text("in the way")
    await snapshot(opened, b"state")
    assert "a snapshot could not be saved" in caplog.text
    await fill(opened, entries(2, 2))
    opened.close()
    (tmp_path / "spaces").unlink()
    assert read(tmp_path) == (None, entries(1, 2))


# The files.


async def test_a_closed_journal_leaves_files_for_the_owner_alone_and_out_of_git(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "journal"
    opened = open_journal(folder)
    await fill(opened, entries(1, 2))
    await snapshot(opened, b"two")
    opened.close()
    assert set(os.listdir(folder)) == {
        ".gitignore",
        ".lock",
        "high-water",
        "index.db",
        "journal.db",
        "spaces",
    }
    private = [path for path in folder.rglob("*") if path.is_file() and path.name != ".gitignore"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in private} == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert (folder / ".gitignore").read_text() == "*\n"


async def test_every_space_has_a_folder_for_its_snapshots_whatever_its_name(tmp_path: Path) -> None:
    spaces = ("desk", "a.b@c-d", "..", "x/y", "Ω", ".hidden", "50%")
    for space in spaces:
        opened = open_journal(tmp_path, space)
        await fill(opened, entries(1, 1))
        await snapshot(opened, space.encode())
        opened.close()
    assert len(os.listdir(tmp_path / "spaces")) == len(spaces)
    for space in spaces:
        assert read(tmp_path, space) == (space.encode(), [])


def test_a_second_gateway_is_told_who_has_the_folder(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path / "journal")
    told = (
        rf"journal: another process \(pid {os.getpid()}\) keeps its journal here; stop it, or give this one a"
    )
    with pytest.raises(JournalUnavailable, match=told):
        SqliteStorage(tmp_path / "journal")
    storage.close()
    SqliteStorage(tmp_path / "journal").close()


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(JournalUnavailable, match="the journal cannot be kept here: Not a directory"):
        SqliteStorage(tmp_path / "file" / "journal")


async def test_the_journal_of_a_later_version_is_refused(tmp_path: Path) -> None:
    file = await written(tmp_path, entries(1, 1))
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(JournalUnavailable, match="written by a later version of mew, format 99"):
        SqliteStorage(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
async def test_a_journal_that_may_not_be_read_is_refused_and_not_taken_for_damaged(tmp_path: Path) -> None:
    file = await written(tmp_path, entries(1, 1))
    file.chmod(0)
    with pytest.raises(JournalUnavailable, match=r"journal\.db"):
        SqliteStorage(tmp_path)


# Commits that take longer.


async def test_safe_from_power_cuts_a_commit_is_done_in_a_thread_and_heard_of_later(tmp_path: Path) -> None:
    opened = open_journal(tmp_path, durability=Durability.POWER)
    loop = asyncio.get_running_loop()
    threads: list[int] = []
    loop.set_default_executor(ThreadPoolExecutor(1, initializer=lambda: threads.append(get_ident())))
    append(opened.journal, entries(1, 2))
    done: asyncio.Future[JournalUnavailable | None] = loop.create_future()
    opened.storage.commit(done.set_result)
    assert not done.done()
    assert await done is None
    assert threads
    assert get_ident() not in threads
    opened.close()
    assert read(tmp_path) == (None, entries(1, 2))


async def test_who_else_writes_is_waited_for_in_a_thread(tmp_path: Path) -> None:
    opened = open_journal(tmp_path)
    await fill(opened, entries(1, 1))
    with closing(sqlite3.connect(tmp_path / FILE, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        append(opened.journal, entries(2, 3))
        done: asyncio.Future[JournalUnavailable | None] = asyncio.get_running_loop().create_future()
        opened.storage.commit(done.set_result)
        await asyncio.sleep(0)
        assert not done.done()
        other.execute("ROLLBACK")
        assert await done is None
    opened.close()
    assert read(tmp_path) == (None, entries(1, 3))


async def test_who_writes_for_ever_is_not_waited_for_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mew.journal.files.database._BUSY_MS", 1)
    opened = open_journal(tmp_path)
    with closing(sqlite3.connect(tmp_path / FILE, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        append(opened.journal, entries(1, 1))
        with pytest.raises(JournalUnavailable, match=r"another program keeps it locked"):
            await commit(opened.storage)
    opened.close()


@contextmanager
def files_up_to(size: int) -> Iterator[None]:
    """No file of this process may get larger, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("durability", Durability)
async def test_a_disk_that_is_full_is_told_to_who_commits(tmp_path: Path, durability: Durability) -> None:
    opened = open_journal(tmp_path, durability=durability)
    await fill(opened, entries(1, 2))
    append(opened.journal, [batch(3, 200, "x" * 1000)])
    with (
        files_up_to(50_000),
        pytest.raises(JournalUnavailable, match=r"the disk refuses to read or write it"),
    ):
        await commit(opened.storage)
    opened.journal.close()
    opened.journal, past = opened.storage.open("desk", following([]))
    assert list(past.entries) == entries(1, 2)
    await fill(opened, entries(3, 3))
    opened.close()
    assert read(tmp_path) == (None, entries(1, 3))


async def test_the_write_ahead_log_is_moved_into_the_file_beside_the_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mew.journal.sqlite._WAL_BYTES", 0)
    monkeypatch.setattr("mew.journal.sqlite._WAL_BYTES_MAX", 0)
    worker = ThreadPoolExecutor(1)
    asyncio.get_running_loop().set_default_executor(worker)
    opened = open_journal(tmp_path)
    wal, sizes = tmp_path / f"{FILE}-wal", []
    for n in range(1, 60):
        await fill(opened, entries(n, n))
        await asyncio.wrap_future(worker.submit(lambda: None))  # it is moved
        await asyncio.sleep(0)
        sizes.append(wal.stat().st_size)
    assert max(sizes) <= 8 * 4096  # begun anew again and again
    opened.close()
    assert read(tmp_path) == (None, entries(1, 59))


async def test_a_reader_that_stays_does_not_keep_the_write_ahead_log_from_being_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mew.journal.sqlite._WAL_BYTES", 0)
    monkeypatch.setattr("mew.journal.sqlite._WAL_BYTES_MAX", 0)
    monkeypatch.setattr("mew.journal.files.database._BUSY_MS", 1)
    with ThreadPoolExecutor(1) as worker:
        asyncio.get_running_loop().set_default_executor(worker)
        opened = open_journal(tmp_path)
        await fill(opened, entries(1, 1))
        with closing(sqlite3.connect(tmp_path / FILE, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT * FROM records").fetchall()
            await fill(opened, *(entries(n, n) for n in range(2, 20)))
        opened.close()
    assert read(tmp_path) == (None, entries(1, 19))


async def test_a_large_turn_comes_back_whole(tmp_path: Path) -> None:
    turn: list[Entry] = [batch(n, n + 99, "x" * 1000) for n in range(1, 2000, 100)]
    await written(tmp_path, turn)
    assert read(tmp_path) == (None, turn)


async def test_a_journal_is_not_closed_while_a_thread_saves_what_has_no_name(tmp_path: Path) -> None:
    """Without a lock the process dies, sooner or later: SQLite would use what was freed."""
    for n in range(20):
        opened = open_journal(tmp_path / f"{n}")
        await fill(opened, *([batch(4 * m + 1, 4 * m + 4, "x" * 1000)] for m in range(50)))
        (tmp_path / f"{n}" / f"{FILE}-wal").unlink()
        with ThreadPoolExecutor(1) as worker:
            saving = worker.submit(opened.storage.save_unlinked)
            opened.close()
            saving.result()
        _, found = read(tmp_path / f"{n}")
        assert len(found) == 50
