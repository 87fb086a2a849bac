"""What a journal need not keep goes from its front, while it is written: what is left is whole, at every moment."""

import asyncio
import shutil
import subprocess
import sys
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from threading import Event
from typing import Any

import pytest
from tests.journal.journals import (
    AT,
    Opened,
    alter,
    append,
    batch,
    entries,
    fill,
    flip,
    following,
    index,
    open_journal,
    read,
    save_snapshot,
    snapshot,
    snapshots_in,
    trimmed,
    written,
)

from mew.audit.proof.verify import verify_journal
from mew.journal.files.database import FILE, Database
from mew.journal.files.folder import space_folder
from mew.journal.files.locator import INDEX_FILE, open_index
from mew.journal.port import RetentionPolicy
from mew.journal.reader import JournalReader
from mew.journal.retention import Retention
from mew.space import Entry

DAY = timedelta(days=1)


def keeping(folder: Path, policy: RetentionPolicy, now: datetime = AT, space: str = "desk") -> Opened:
    opened = open_journal(folder, space, retention=Retention(policy, lambda: now))
    list(opened.past.entries)
    return opened


def begin(folder: Path, space: str = "desk") -> int:
    """After which entry a journal begins; all that is left of it must be whole."""
    assert verify_journal(folder, space).broken is None
    with closing(Database.view(folder / FILE)) as database:
        return database.spaces()[space].begin.seq


def kept(folder: Path) -> list[Entry]:
    with open_index(folder) as locator, JournalReader(locator, "desk") as reader:
        return list(reader.entries())


async def dropping(
    folder: Path,
    last: int,
    policy: RetentionPolicy,
    *,
    now: datetime = AT,
    each: int = 1,
) -> Opened:
    """A journal with so many entries, all that may go is gone."""
    opened = keeping(folder, policy, now)
    await fill(opened, *(turn(n, min(n + each - 1, last)) for n in range(1, last + 1, each)))
    await drop(opened)
    return opened


def turn(first: int, last: int) -> list[Entry]:
    return [batch(first, last)] if last > first else entries(first, last)


async def drop(opened: Opened, state: bytes = b"state") -> None:
    """Two snapshots of the same state: a start needs nothing before it."""
    index(opened.storage.folder)
    await snapshot(opened, state)
    await snapshot(opened, state)


# What goes.


async def test_only_so_many_entries_are_kept(tmp_path: Path) -> None:
    opened = await dropping(tmp_path, 30, RetentionPolicy(entries=10))
    assert begin(tmp_path) == 20
    assert (opened.journal.stats.entries, opened.journal.stats.begin) == (10, 20)
    opened.close()
    assert read(tmp_path) == (b"state", [])
    assert kept(tmp_path) == entries(21, 30)


async def test_a_batch_goes_as_a_whole_when_none_of_it_need_be_kept(tmp_path: Path) -> None:
    opened = await dropping(tmp_path, 30, RetentionPolicy(entries=8), each=5)
    assert begin(tmp_path) == 20
    opened.close()
    assert kept(tmp_path) == [batch(21, 25), batch(26, 30)]


async def test_only_entries_up_to_an_age_are_kept(tmp_path: Path) -> None:
    now = AT + DAY + timedelta(seconds=12)
    opened = await dropping(tmp_path, 30, RetentionPolicy(age=DAY), now=now)
    assert begin(tmp_path) == 11
    stats = opened.journal.stats
    assert (stats.since, stats.entries, stats.begin) == (AT + timedelta(seconds=12), 19, 11)
    opened.close()


async def test_all_may_go_and_the_numbers_go_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    opened = await dropping(tmp_path, 5, RetentionPolicy(age=DAY), now=AT + 2 * DAY)
    assert begin(tmp_path) == 5
    stats = opened.journal.stats
    assert (stats.since, stats.entries, stats.bytes) == (None, 0, 0)
    await fill(opened, entries(6, 6))
    assert opened.journal.stats.since == entries(6, 6)[0].at
    opened.close()
    assert read(tmp_path) == (b"state", entries(6, 6))
    opened = open_journal(tmp_path)
    assert (list(opened.past.entries), opened.past.begin) == (entries(6, 6), 5)
    await fill(opened, [batch(7, 9)])
    opened.close()
    index(tmp_path)
    assert kept(tmp_path) == [*entries(6, 6), batch(7, 9)]
    assert not caplog.text


async def test_only_so_many_bytes_are_kept_and_the_file_gets_shorter(tmp_path: Path) -> None:
    opened = await dropping(tmp_path, 20_000, RetentionPolicy(bytes=1 << 20), each=500)
    assert 0 < begin(tmp_path) < 20_000
    assert 0.8 * (1 << 20) < opened.journal.stats.bytes <= 1 << 20
    opened.close()
    assert (tmp_path / FILE).stat().st_size <= 1.2 * (1 << 20)
    opened = open_journal(tmp_path)
    assert 0.8 * (1 << 20) < opened.journal.stats.bytes <= 1 << 20
    opened.close()


async def test_nothing_of_what_went_is_left_in_the_files(tmp_path: Path) -> None:
    opened = await dropping(tmp_path, 200, RetentionPolicy(entries=10))
    found = b"".join(path.read_bytes() for path in (tmp_path / FILE, tmp_path / f"{FILE}-wal"))
    assert b'"c200"' in found
    assert not [n for n in range(1, 191) if f'"c{n}"'.encode() in found]
    opened.close()


async def test_without_a_bound_nothing_goes(tmp_path: Path) -> None:
    opened = await dropping(tmp_path, 30, RetentionPolicy(), now=AT + 10_000 * DAY)
    assert begin(tmp_path) == 0
    opened.close()


async def test_what_is_to_be_kept_may_change_while_it_runs(tmp_path: Path) -> None:
    opened = await dropping(tmp_path, 30, RetentionPolicy())
    opened.storage.retention.policy = RetentionPolicy(entries=3)
    assert opened.journal.policy == RetentionPolicy(entries=3)
    await drop(opened)
    assert begin(tmp_path) == 27
    opened.close()


async def test_each_space_goes_by_itself(tmp_path: Path) -> None:
    opened = keeping(tmp_path, RetentionPolicy(entries=2))
    other, _ = opened.storage.open("other", following([]))
    for n in range(1, 11):
        append(other, entries(n, n))
        await fill(opened, entries(n, n))
    await drop(opened)
    opened.close()
    assert (begin(tmp_path), begin(tmp_path, "other")) == (8, 0)
    assert read(tmp_path, "other") == (None, entries(1, 10))


async def test_since_when_there_are_entries_is_known_from_the_first_on(tmp_path: Path) -> None:
    opened = open_journal(tmp_path)
    assert opened.journal.stats.since is None
    await fill(opened, entries(3, 4))
    assert opened.journal.stats.since == entries(3, 3)[0].at
    opened.close()


# What stays.


async def test_what_a_start_needs_stays(tmp_path: Path) -> None:
    opened = keeping(tmp_path, RetentionPolicy(entries=1))
    await fill(opened, *(entries(n, n) for n in range(1, 11)))
    index(tmp_path)
    await snapshot(opened, b"ten")
    assert begin(tmp_path) == 0
    await fill(opened, *(entries(n, n) for n in range(11, 21)))
    index(tmp_path)
    await snapshot(opened, b"twenty")
    assert begin(tmp_path) == 10
    opened.close()
    assert read(tmp_path) == (b"twenty", [])


@pytest.mark.parametrize("harm", ["gone", "flipped"])
async def test_a_start_can_do_without_the_newest_snapshot(tmp_path: Path, harm: str) -> None:
    opened = keeping(tmp_path, RetentionPolicy(entries=1))
    for last, state in ((10, b"ten"), (20, b"twenty")):
        await fill(opened, *(entries(n, n) for n in range(last - 9, last + 1)))
        index(tmp_path)
        await snapshot(opened, state)
    opened.close()
    assert begin(tmp_path) == 10
    newest = space_folder(tmp_path, "desk") / "20.snapshot"
    if harm == "gone":
        newest.unlink()
    else:
        flip(newest, -40)
    assert read(tmp_path) == (b"ten", entries(11, 20))


async def test_with_one_good_snapshot_alone_nothing_goes(tmp_path: Path) -> None:
    opened = keeping(tmp_path, RetentionPolicy())
    await fill(opened, *(entries(n, n) for n in range(1, 11)))
    await drop(opened)
    opened.storage.retention.policy = RetentionPolicy(entries=1)
    for name in snapshots_in(tmp_path):
        flip(space_folder(tmp_path, "desk") / name, -1)
    await fill(opened, entries(11, 11))
    index(tmp_path)
    await snapshot(opened, b"eleven")
    assert begin(tmp_path) == 0
    opened.close()


async def test_a_snapshot_of_what_was_dropped_is_no_damage(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It could not be deleted when that was due."""
    opened = await dropping(tmp_path, 10, RetentionPolicy(entries=1))
    shutil.copy(space_folder(tmp_path, "desk") / "10.snapshot", tmp_path / "kept")
    await fill(opened, *(entries(n, n) for n in range(11, 31)))
    await drop(opened, b"thirty")
    opened.close()
    assert begin(tmp_path) == 29
    (tmp_path / "kept").rename(space_folder(tmp_path, "desk") / "10.snapshot")
    assert read(tmp_path) == (b"thirty", [])
    assert not caplog.text


async def test_what_is_not_indexed_yet_stays(tmp_path: Path) -> None:
    opened = keeping(tmp_path, RetentionPolicy(entries=1))
    await fill(opened, *(entries(n, n) for n in range(1, 13)))
    index(tmp_path)
    await fill(opened, *(entries(n, n) for n in range(13, 31)))
    for _ in range(2):
        await snapshot(opened, b"thirty")
    assert begin(tmp_path) == 12
    await drop(opened, b"thirty")
    assert begin(tmp_path) == 29
    opened.close()


async def test_files_that_were_set_aside_are_told_of_once_they_are_old(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await written(tmp_path, entries(1, 10))
    await written(tmp_path, entries(1, 10), space="other")
    aside = [tmp_path / f"{FILE}.damaged-1", space_folder(tmp_path, "desk") / "5.snapshot.damaged-1"]
    aside[1].parent.mkdir(parents=True)
    for path in aside:
        path.touch()
    now = datetime.now(AT.tzinfo)
    keeping(tmp_path, RetentionPolicy(age=DAY), now + timedelta(hours=23)).close()
    assert not caplog.text
    opened = keeping(tmp_path, RetentionPolicy(age=DAY), now + timedelta(hours=25))
    opened.storage.open("other", following([]))
    await fill(opened, entries(11, 11))
    await drop(opened)
    opened.close()
    assert [vars(record)["file"] for record in caplog.records] == [str(path) for path in aside]
    assert "delete it if nobody needs it" in caplog.text
    assert all(path.exists() for path in aside)


# While it goes.


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mew.journal.retention._STEP_RECORDS", 3)


class Steps(Event):
    """Waits between two steps as long as the test does."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[int] = []
        self.look: Any = lambda: None

    def wait(self, timeout: float | None = None) -> bool:
        self.look()
        return self.is_set()


@pytest.mark.usefixtures("small_steps")
async def test_the_chain_is_whole_after_every_step_and_a_crash_there_costs_nothing(tmp_path: Path) -> None:
    opened = keeping(tmp_path / "journal", RetentionPolicy(entries=9))
    steps = opened.storage.retention.stopped = Steps()

    def look() -> None:
        steps.seen.append(begin(tmp_path / "journal"))
        shutil.copytree(tmp_path / "journal", tmp_path / f"crashed-{steps.seen[-1]}")

    steps.look = look
    await fill(opened, *([batch(n, n + 1)] for n in range(1, 40, 2)))
    await drop(opened)
    opened.close()
    assert steps.seen == [6, 12, 18, 24, 30]
    for seq in steps.seen:
        crashed = tmp_path / f"crashed-{seq}"
        assert read(crashed) == (b"state", [])
        assert kept(crashed) == [batch(n, n + 1) for n in range(seq + 1, 40, 2)]
        opened = keeping(crashed, RetentionPolicy(entries=9))
        await fill(opened, entries(41, 41))
        await drop(opened, b"more")
        assert opened.journal.stats.entries == 9
        opened.close()
        assert begin(crashed) == 32


@pytest.mark.usefixtures("small_steps")
async def test_a_crash_between_the_journal_and_its_index_costs_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What was dropped is still in the index: it goes on all the same."""
    opened = keeping(tmp_path, RetentionPolicy(entries=9))
    await fill(opened, *(entries(n, n) for n in range(1, 31)))
    index(tmp_path)
    for suffix in ("", "-wal"):
        if (tmp_path / f"{INDEX_FILE}{suffix}").exists():
            shutil.copy(tmp_path / f"{INDEX_FILE}{suffix}", tmp_path / f"before{suffix}")
    await drop(opened)
    opened.close()
    assert begin(tmp_path) == 21
    shutil.move(tmp_path / "before", tmp_path / INDEX_FILE)
    opened = keeping(tmp_path, RetentionPolicy(entries=5))
    stats = opened.journal.stats
    assert (stats.begin, stats.entries, stats.since) == (21, 9, AT + timedelta(seconds=22))
    await fill(opened, entries(31, 31))
    await drop(opened, b"more")
    opened.close()
    assert begin(tmp_path) == 26
    assert not caplog.text


@pytest.mark.usefixtures("small_steps")
async def test_what_is_written_meanwhile_is_there(tmp_path: Path) -> None:
    opened = keeping(tmp_path, RetentionPolicy(entries=100))
    steps = opened.storage.retention.stopped = Steps()
    loop = asyncio.get_running_loop()
    last = 300

    async def write() -> None:
        nonlocal last
        last += 1
        await fill(opened, entries(last, last))

    steps.look = lambda: asyncio.run_coroutine_threadsafe(write(), loop).result(5)
    await fill(opened, *(entries(n, n) for n in range(1, 301)))
    await drop(opened)
    opened.close()
    assert last > 320
    assert begin(tmp_path) == 200
    assert read(tmp_path) == (b"state", entries(301, last))


@pytest.mark.usefixtures("small_steps")
async def test_a_journal_that_is_closed_stops_at_the_next_step(tmp_path: Path) -> None:
    opened = keeping(tmp_path, RetentionPolicy(entries=1))
    steps = opened.storage.retention.stopped = Steps()
    steps.look = steps.set
    await fill(opened, *(entries(n, n) for n in range(1, 31)))
    await drop(opened)
    opened.close()
    assert begin(tmp_path) == 3
    assert read(tmp_path) == (b"state", [])


@pytest.mark.usefixtures("small_steps")
async def test_what_went_before_it_came_to_a_damage_is_known_to_be_gone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    opened = keeping(tmp_path, RetentionPolicy(entries=1))
    await fill(opened, *(entries(n, n) for n in range(1, 11)))
    index(tmp_path)
    alter(tmp_path / FILE, "DELETE FROM records WHERE last = 6")
    await drop(opened)
    assert "old entries could not be dropped from the journal" in caplog.text
    assert (opened.journal.stats.entries, opened.journal.stats.begin) == (7, 3)
    opened.close()


async def test_a_snapshot_while_something_goes_lets_more_go_after_it(tmp_path: Path) -> None:
    opened = keeping(tmp_path, RetentionPolicy(entries=1))
    steps = opened.storage.retention.stopped = Steps()
    loop = asyncio.get_running_loop()

    async def more() -> None:
        await fill(opened, *(entries(n, n) for n in range(11, 21)))
        index(tmp_path)
        for _ in range(2):
            await save_snapshot(opened, b"twenty")
            await asyncio.sleep(0)

    def look() -> None:
        steps.look = lambda: None
        asyncio.run_coroutine_threadsafe(more(), loop).result(5)

    steps.look = look
    await fill(opened, *(entries(n, n) for n in range(1, 11)))
    await drop(opened)
    await trimmed(opened)
    opened.close()
    assert begin(tmp_path) == 19


# Killed.

LAST = 3_000
DROPPING = """
import asyncio
import sys
from pathlib import Path
from threading import Event

import mew.journal.retention
from mew.journal.port import RetentionPolicy
from tests.journal.journals import open_journal, snapshot


class Steps(Event):
    def wait(self, timeout=None):
        print("step", flush=True)
        return super().wait(timeout)


async def main():
    retention = mew.journal.retention.Retention(RetentionPolicy(entries=1))
    retention.stopped = Steps()
    await snapshot(open_journal(Path(sys.argv[1]), retention=retention), b"state")


mew.journal.retention._STEP_RECORDS = 20
asyncio.run(main())
"""


def killed_while_it_drops(folder: Path, steps: int) -> None:
    command = [sys.executable, "-c", DROPPING, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for _ in range(steps):
            assert process.stdout.readline() == "step\n"
        process.kill()


@pytest.mark.slow
@pytest.mark.e2e
async def test_killed_at_any_moment_it_begins_at_some_step_and_the_rest_is_whole(tmp_path: Path) -> None:
    opened = keeping(tmp_path / "journal", RetentionPolicy())
    await fill(opened, *([batch(n, n + 2)] for n in range(1, LAST, 3)))
    await drop(opened)
    opened.close()
    for steps in Random(4).sample(range(1, 40), 8):
        folder = tmp_path / f"after-{steps}"
        shutil.copytree(tmp_path / "journal", folder)
        await asyncio.to_thread(killed_while_it_drops, folder, steps)
        first = begin(folder)
        assert first % 60 == 0 or first == LAST - 3
        assert first >= steps * 60
        assert read(folder) == (b"state", [])
        assert kept(folder) == [batch(n, n + 2) for n in range(first + 1, LAST, 3)]
