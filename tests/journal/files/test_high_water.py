"""What was committed and is missing at a start is noticed, named, and never taken for the end of the journal."""

import asyncio
import logging
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.journal.journals import (
    DESK,
    batch,
    entries,
    fill,
    flip,
    index,
    open_journal,
    read,
    snapshot,
    trimmed,
    written,
)

from mew.audit.proof.verify import verify_journal
from mew.journal.files.database import FILE
from mew.journal.files.high_water import LOSSES_FILE, MARKS_FILE, high_water_mark, read_losses
from mew.journal.port import JournalUnavailable, LostEntries, RetentionPolicy
from mew.journal.retention import Retention

WAL = f"{FILE}-wal"
FRAME_BYTES = 4096 + 24


@pytest.fixture(autouse=True)
def listening(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "mew.journal")


async def marked(folder: Path, seq: int, space: str = DESK) -> None:
    """Return when the mark of a space has come to an entry."""
    async with asyncio.timeout(10):
        while True:
            mark = high_water_mark(folder, space)
            if mark is not None and mark.seq == seq:
                return
            await asyncio.sleep(0)


async def crashed(folder: Path) -> Path:
    """What is left of a gateway that was killed after it had committed entries 1 to 8 in eight transactions."""
    opened = open_journal(folder / "journal")
    await fill(opened, *(entries(n, n) for n in range(1, 9)))
    await marked(folder / "journal", 8)
    shutil.copytree(folder / "journal", folder / "crashed")
    opened.close()
    return folder / "crashed"


def losses(folder: Path, space: str = DESK) -> list[tuple[int, int]]:
    """What a start knows to be missing: after which entry, up to which."""
    opened = open_journal(folder, space)
    try:
        return [(loss.after, loss.last) for loss in opened.past.losses]
    finally:
        opened.close()


def cut_off(wal: Path) -> None:
    """Between two transactions, as if the rest had never been written."""
    with wal.open("r+b") as file:
        file.truncate(32 + 4 * FRAME_BYTES)


def insert(wal: Path) -> None:
    content = wal.read_bytes()
    middle = 32 + 5 * FRAME_BYTES + 1000
    wal.write_bytes(content[:middle] + b"seven b" + content[middle:])


SPOILT: dict[str, Callable[[Path], None]] = {
    "cut off between transactions": cut_off,
    "with bytes put in": insert,
    "emptied": lambda wal: os.truncate(wal, 0),
    "missing": os.unlink,
}


@pytest.mark.parametrize("what", SPOILT)
async def test_entries_that_are_missing_from_the_write_ahead_log_are_named(
    tmp_path: Path, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    folder = await crashed(tmp_path)
    assert verify_journal(folder, DESK).is_sound
    SPOILT[what](folder / WAL)
    spoilt = (folder / WAL).read_bytes() if (folder / WAL).exists() else b""
    opened = open_journal(folder)
    found = list(opened.past.entries)
    assert found == entries(1, len(found))
    assert len(found) < 8
    assert f"of space 'desk', entries {len(found) + 1} to 8 are missing, which were committed" in caplog.text
    assert "if you have a better copy, stop the gateway" in caplog.text
    assert [(loss.after, loss.last) for loss in opened.past.losses] == [(len(found), 8)]
    opened.close()
    if spoilt:
        assert (folder / f"{WAL}.damaged-1").read_bytes() == spoilt


async def test_a_loss_is_told_once_and_known_from_then_on_and_the_numbers_go_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = await crashed(tmp_path)
    cut_off(folder / WAL)
    _, found = read(folder)
    end = len(found)
    caplog.clear()
    await written(folder, entries(end + 1, end + 2))
    assert read(folder) == (None, entries(1, end + 2))
    assert losses(folder) == [(end, 8)]
    assert not caplog.text


async def test_verify_reports_entries_that_are_missing_before_and_after_the_start_that_notices_them(
    tmp_path: Path,
) -> None:
    folder = await crashed(tmp_path)
    cut_off(folder / WAL)
    before = verify_journal(folder, DESK)
    _, found = read(folder)
    assert before.broken is not None
    assert before.broken.seq == len(found) + 1
    assert "the high-water mark in high-water says that there was entry 8" in before.broken.why
    after = verify_journal(folder, DESK)
    assert after.broken is None
    assert not after.is_sound
    assert [(loss.after, loss.last) for loss in after.lost] == [(len(found), 8)]


async def test_an_older_copy_of_the_file_is_noticed_in_each_space_that_went_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "journal"
    await written(folder, entries(1, 3), space="quiet")
    file = await written(folder, entries(1, 3))
    shutil.copy(file, tmp_path / "older")
    await written(folder, [batch(4, 9)])
    shutil.copy(tmp_path / "older", file)
    assert read(folder) == (None, entries(1, 3))
    assert "of space 'desk', entries 4 to 9 are missing" in caplog.text
    assert losses(folder) == [(3, 9)]
    assert losses(folder, "quiet") == []


async def test_another_journal_in_its_place_is_noticed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "journal"
    await written(folder, entries(1, 3))
    other = await written(tmp_path / "other", [batch(1, 7, "of another")])
    shutil.copy(other, folder / FILE)
    assert losses(folder) == [(0, 3)]
    assert "entry 3 is not the one that was committed here" in caplog.text


async def test_a_file_that_is_gone_is_noticed_without_snapshots_too(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = await written(tmp_path, entries(1, 3))
    file.unlink()
    assert read(tmp_path) == (None, [])
    assert "of space 'desk', entries 1 to 3 are missing" in caplog.text
    await written(tmp_path, entries(1, 1))
    assert losses(tmp_path) == [(0, 3)]


async def test_what_was_salvaged_of_a_damaged_file_is_known_to_have_a_loss(tmp_path: Path) -> None:
    file = await written(tmp_path, *(entries(n, n) for n in range(1, 9)))
    content = file.read_bytes()
    file.write_bytes(content.replace(b'"c6"', b'"c7"', 1))
    assert read(tmp_path) == (None, entries(1, 5))
    assert losses(tmp_path) == [(5, 8)]


async def test_what_the_start_after_a_crash_finds_whole_is_no_loss(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    opened = open_journal(tmp_path / "journal")
    await fill(opened, *(entries(n, n) for n in range(1, 4)))
    shutil.copytree(tmp_path / "journal", tmp_path / "crashed")  # the mark may be behind
    opened.close()
    assert read(tmp_path / "crashed") == (None, entries(1, 3))
    assert losses(tmp_path / "crashed") == []
    assert not caplog.text


async def test_what_need_not_be_kept_any_longer_is_no_loss(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    opened = open_journal(tmp_path, retention=Retention(RetentionPolicy(entries=1)))
    await fill(opened, *(entries(n, n) for n in range(1, 9)))
    index(tmp_path)
    await snapshot(opened, b"eight")
    await snapshot(opened, b"eight again")
    await trimmed(opened)
    opened.close()
    assert losses(tmp_path) == []
    assert verify_journal(tmp_path, DESK).is_sound
    assert not caplog.text


async def test_a_loss_in_what_is_no_longer_kept_is_none_any_more(tmp_path: Path) -> None:
    folder = await crashed(tmp_path)
    cut_off(folder / WAL)
    _, found = read(folder)
    assert read_losses(folder, DESK, len(found) + 1) == ()
    assert len(read_losses(folder, DESK, len(found))) == 1


async def test_a_mark_that_cannot_be_read_is_told_and_the_journal_is_served(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await written(tmp_path, entries(1, 3))
    flip(tmp_path / MARKS_FILE, 40)
    assert read(tmp_path) == (None, entries(1, 3))
    assert f"{tmp_path / MARKS_FILE} is damaged: for one space nobody can tell" in caplog.text
    await written(tmp_path, entries(4, 4))
    caplog.clear()
    assert read(tmp_path) == (None, entries(1, 4))
    assert not caplog.text


async def test_a_journal_without_marks_gets_them(tmp_path: Path) -> None:
    await written(tmp_path, entries(1, 3))
    (tmp_path / MARKS_FILE).unlink()
    await written(tmp_path, entries(4, 4))
    mark = high_water_mark(tmp_path, DESK)
    assert mark is not None
    assert mark.seq == 4


async def test_a_line_of_the_losses_that_was_cut_off_hides_no_other(tmp_path: Path) -> None:
    folder = await crashed(tmp_path)
    file = folder / "spaces" / DESK / LOSSES_FILE
    file.parent.mkdir(parents=True)
    file.write_bytes(b'{"after":1,"la')
    cut_off(folder / WAL)
    read(folder)
    (loss,) = read_losses(folder, DESK)
    assert isinstance(loss, LostEntries)
    assert loss.last == 8


async def test_a_commit_that_fails_moves_no_mark(tmp_path: Path) -> None:
    opened = open_journal(tmp_path)
    await fill(opened, entries(1, 2))
    await marked(tmp_path, 2)
    with closing(sqlite3.connect(tmp_path / FILE)) as connection:
        connection.execute(
            "CREATE TRIGGER full BEFORE INSERT ON records BEGIN SELECT RAISE(ABORT, 'no room'); END"
        )
    with pytest.raises(JournalUnavailable):
        await fill(opened, entries(3, 3))
    opened.close()
    mark = high_water_mark(tmp_path, DESK)
    assert mark is not None
    assert mark.seq == 2


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_whatever_happens_to_the_write_ahead_log_all_is_served_or_the_rest_is_missed(
    after_crash: Path, data: st.DataObject
) -> None:
    content = (after_crash / WAL).read_bytes()
    at = data.draw(st.integers(0, len(content)), "at")
    put_in = data.draw(st.binary(max_size=64), "put in")
    left_out = data.draw(st.integers(0, len(content) - at), "left out")
    with TemporaryDirectory() as place:
        folder = Path(place, "journal")
        shutil.copytree(after_crash, folder)
        (folder / WAL).write_bytes(content[:at] + put_in + content[at + left_out :])
        opened = open_journal(folder)
        found = list(opened.past.entries)
        opened.close()
        assert found == entries(1, len(found))
        missing = [] if len(found) == 8 else [(len(found), 8)]
        assert [(loss.after, loss.last) for loss in opened.past.losses] == missing


@pytest.fixture(scope="module")
def after_crash(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return asyncio.run(crashed(tmp_path_factory.mktemp("crashed")))
