"""A journal that is not whole: it is told, kept aside, and everything before the damage is served."""

import asyncio
import logging
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.journal.journals import (
    AT,
    alter,
    append,
    batch,
    commit,
    entries,
    fill,
    flip,
    following,
    index,
    open_journal,
    read,
    snapshot,
    snapshots_in,
    written,
)

from mew.audit.proof.verify import verify_journal
from mew.journal.files.database import FILE, Database, Durability
from mew.journal.files.folder import space_folder
from mew.journal.files.locator import INDEX_FILE
from mew.journal.port import JournalUnavailable
from mew.journal.record import ChainLink
from mew.journal.sqlite import SqliteStorage
from mew.space import Entry

PAGE = 4096
LARGE = 3_000  # entries for several pages


@pytest.fixture(autouse=True)
def listening(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, "mew.journal")


def each(last: int) -> list[list[Entry]]:
    return [entries(n, n) for n in range(1, last + 1)]


def blank(file: Path, page: int) -> None:
    content = bytearray(file.read_bytes())
    content[page * PAGE : (page + 1) * PAGE] = bytes(PAGE)
    file.write_bytes(content)


def root_of(file: Path, table: str) -> int:
    with closing(sqlite3.connect(file)) as connection:
        ((root,),) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,))
        return int(root) - 1


async def large(folder: Path, *, space: str = "desk", state: bytes = b"") -> Path:
    """With a snapshot at its end if there is a state."""
    opened = open_journal(folder, space)
    await fill(opened, *(entries(n, n + 99) for n in range(1, LARGE, 100)))
    if state:
        await snapshot(opened, state)
    opened.close()
    return folder / FILE


def kept_aside(folder: Path) -> list[str]:
    return sorted(name for name in os.listdir(folder) if "damaged" in name)


# Records that are not what was written.


async def test_an_altered_entry_ends_what_is_served_and_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = await written(tmp_path, *each(10))
    alter(
        file, "UPDATE records SET body = CAST(replace(CAST(body AS TEXT), 'c7', 'c8') AS BLOB) WHERE last = 7"
    )
    assert read(tmp_path) == (None, entries(1, 6))
    assert f"journal {file} is damaged" in caplog.text
    assert "space 'desk': entry 7 is not what was written" in caplog.text
    assert "all up to entry 6 is served" in caplog.text
    assert "kept as journal.db.damaged-1" in caplog.text
    assert all(record.levelno == logging.ERROR for record in caplog.records)


async def test_of_a_batch_that_was_altered_the_entries_are_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = await written(tmp_path, entries(1, 2), [batch(3, 7)], entries(8, 8))
    ((body,),) = rows(file, "SELECT body FROM records WHERE last = 7")
    assert isinstance(body, bytes)
    alter(file, "UPDATE records SET body = ? WHERE last = 7", body.replace(b"e5", b"e6"))
    assert read(tmp_path) == (None, entries(1, 2))
    assert "one of the entries 3 to 7 is not what was written; all up to entry 2 is served" in caplog.text


def rows(file: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute(query).fetchall()


MEDDLING = {
    "removed": "DELETE FROM records WHERE last = 4",
    "put in": "INSERT INTO records SELECT 100, space, 11, at, indexed, hash, body FROM records WHERE n = 2",
    "moved": "UPDATE records SET last = 40 WHERE last = 4",
    "moved to the front": "UPDATE records SET last = 2 WHERE last = 6",
    "given another moment": "UPDATE records SET at = at + 1 WHERE last = 5",
    "given another hash": "UPDATE records SET hash = zeroblob(32) WHERE last = 5",
    "made text": "UPDATE records SET body = 'text' WHERE last = 5",
    "given to another space": "UPDATE records SET space = 2 WHERE last = 6",
}


@pytest.mark.parametrize("what", MEDDLING)
async def test_a_record_that_somebody_meddled_with_ends_what_is_served(
    tmp_path: Path, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    file = await written(tmp_path, *each(10))
    await written(tmp_path, *each(2), space="other")
    alter(file, MEDDLING[what])
    (tmp_path / INDEX_FILE).unlink()  # it would know better where some of them belong
    assert verify_journal(tmp_path, "desk").broken is not None
    _, found = read(tmp_path)
    assert found == entries(1, len(found))
    assert "journal.db.damaged-1" in caplog.text
    caplog.clear()
    more = batch(len(found) + 1, len(found) + 3)
    await written(tmp_path, [more])
    assert read(tmp_path) == (None, [*found, more])
    assert verify_journal(tmp_path, "desk").broken is None
    assert not caplog.text


async def test_records_that_are_only_in_another_place_of_the_file_are_served(tmp_path: Path) -> None:
    file = await written(tmp_path, *each(10))
    alter(file, "UPDATE records SET n = 1000 WHERE last = 4")
    assert read(tmp_path) == (None, entries(1, 10))
    await written(tmp_path, entries(11, 11))
    assert read(tmp_path) == (None, entries(1, 11))
    broken = verify_journal(tmp_path, "desk").broken
    assert broken is not None
    assert broken.seq == 4


async def test_the_damaged_file_is_kept_and_the_new_one_is_whole(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = await written(tmp_path, *each(10))
    alter(file, "DELETE FROM records WHERE last = 4")
    damaged = file.read_bytes()
    assert read(tmp_path) == (None, entries(1, 3))
    assert (tmp_path / "journal.db.damaged-1").read_bytes() == damaged
    caplog.clear()
    await written(tmp_path, entries(4, 5))
    assert read(tmp_path) == (None, entries(1, 5))
    assert not caplog.text


async def test_a_second_damage_does_not_overwrite_what_was_kept_of_the_first(tmp_path: Path) -> None:
    file = await written(tmp_path, *each(10))
    for n in (1, 2):
        alter(file, "UPDATE records SET body = x'00' WHERE last = (SELECT max(last) FROM records)")
        assert read(tmp_path) == (None, entries(1, 10 - n))
        assert (tmp_path / f"journal.db.damaged-{n}").exists()


async def test_other_spaces_are_untouched_and_all_that_is_damaged_is_told_at_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for space in ("one", "two", "three"):
        await written(tmp_path, *each(9), space=space)
    alter(tmp_path / FILE, "UPDATE records SET body = x'00' WHERE (space, last) IN ((1, 4), (3, 7))")
    storage = SqliteStorage(tmp_path)
    found = {}
    for space in ("one", "two", "three"):
        _, past = storage.open(space, following([]))
        found[space] = list(past.entries)
    storage.close()
    assert found == {"one": entries(1, 3), "two": entries(1, 9), "three": entries(1, 6)}
    assert "space 'one': entry 4" in caplog.text
    assert "space 'three': entry 7" in caplog.text
    assert kept_aside(tmp_path) == ["journal.db.damaged-1"]


async def test_what_others_read_while_one_is_damaged_is_not_lost_either(tmp_path: Path) -> None:
    """Opened before it: its journal goes on in the new file."""
    file = await written(tmp_path, *each(3), space="one")
    await written(tmp_path, *each(3), space="two")
    alter(file, "UPDATE records SET body = x'00' WHERE (space, last) = (2, 2)")
    opened = open_journal(tmp_path, "one")
    assert list(opened.past.entries) == entries(1, 3)
    _, past = opened.storage.open("two", following([]))
    assert list(past.entries) == entries(1, 1)
    await fill(opened, entries(4, 4))
    opened.close()
    assert read(tmp_path, "one") == (None, entries(1, 4))
    assert read(tmp_path, "two") == (None, entries(1, 1))


# Files that cannot be read.


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9, 0.999])
async def test_a_page_that_cannot_be_read_ends_what_is_served(
    tmp_path: Path, share: float, caplog: pytest.LogCaptureFixture
) -> None:
    file = await large(tmp_path)
    await large(tmp_path, space="other")
    blank(file, int(file.stat().st_size * share) // PAGE)
    found = {space: read(tmp_path, space)[1] for space in ("desk", "other")}
    for space, served in found.items():
        assert served == entries(1, len(served))
        assert read(tmp_path, space)[1] == served
    damaged, whole = ("desk", "other") if share < 0.5 else ("other", "desk")
    assert 0 < len(found[damaged]) < LARGE
    assert len(found[whole]) == LARGE
    assert "a part of it cannot be read" in caplog.text
    assert kept_aside(tmp_path) == ["journal.db.damaged-1"]


async def test_between_pages_that_cannot_be_read_other_spaces_lose_nothing(tmp_path: Path) -> None:
    for space in ("one", "two", "three"):
        await large(tmp_path, space=space)
    pages = (tmp_path / FILE).stat().st_size // PAGE
    for share in (0.2, 0.8):
        blank(tmp_path / FILE, int(pages * share))
    assert len(read(tmp_path, "one")[1]) < LARGE
    assert read(tmp_path, "two") == (None, entries(1, LARGE))
    assert len(read(tmp_path, "three")[1]) < LARGE


async def test_a_file_that_was_cut_off_is_served_up_to_there(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = await large(tmp_path)
    with file.open("r+b") as opened:
        opened.truncate(file.stat().st_size // 2)
    _, found = read(tmp_path)
    assert found == entries(1, len(found))
    assert len(found) > LARGE // 4
    assert "journal.db.damaged-1" in caplog.text
    assert read(tmp_path)[1] == found


NO_JOURNALS: dict[str, Callable[[Path], object]] = {
    "no database": lambda file: file.write_bytes(b"no database" * 1000),
    "empty": lambda file: file.write_bytes(b""),
    "a first page that cannot be read": lambda file: blank(file, 0),
    "spaces that cannot be read": lambda file: blank(file, root_of(file, "spaces")),
    "other tables": lambda file: alter(file, "ALTER TABLE records ADD COLUMN more"),
}


@pytest.mark.parametrize("what", NO_JOURNALS)
async def test_without_a_journal_in_the_file_each_space_is_as_at_its_last_snapshot(
    tmp_path: Path, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    opened = open_journal(tmp_path)
    await fill(opened, *each(3))
    await snapshot(opened, b"three")
    await fill(opened, entries(4, 4))
    opened.close()
    await written(tmp_path, *each(2), space="other")
    NO_JOURNALS[what](tmp_path / FILE)
    spoilt = (tmp_path / FILE).read_bytes()
    assert read(tmp_path) == (b"three", [])
    assert read(tmp_path, "other") == (None, [])
    assert "each space is as it was at its last snapshot; what was there is kept as journal.db.damaged-1" in (
        caplog.text
    )
    assert "no records of space 'desk', which is as it was after entry 3" in caplog.text
    assert (tmp_path / "journal.db.damaged-1").read_bytes() == spoilt
    caplog.clear()
    await written(tmp_path, entries(4, 5))
    assert read(tmp_path) == (b"three", entries(4, 5))
    assert not caplog.text


async def test_without_the_file_each_space_is_as_at_its_last_snapshot_and_the_numbers_go_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    opened = open_journal(tmp_path)
    await fill(opened, entries(1, 3))
    await snapshot(opened, b"three")
    opened.close()
    (tmp_path / FILE).unlink()
    opened = open_journal(tmp_path)
    assert (opened.past.state, list(opened.past.entries)) == (b"three", [])
    assert "it is gone, but snapshots are left" in caplog.text
    assert "as it was after entry 3" in caplog.text
    await fill(opened, entries(4, 4))
    assert opened.seen == entries(4, 4)
    opened.close()
    assert read(tmp_path) == (b"three", entries(4, 4))


async def test_a_write_ahead_log_without_its_file_is_kept_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    opened = open_journal(tmp_path / "journal")
    await fill(opened, *each(3))
    shutil.copytree(tmp_path / "journal", tmp_path / "crashed")
    opened.close()
    (tmp_path / "crashed" / FILE).unlink()
    ahead = (tmp_path / "crashed" / f"{FILE}-wal").read_bytes()
    assert read(tmp_path / "crashed") == (None, [])
    assert (tmp_path / "crashed" / f"{FILE}-wal.damaged-1").read_bytes() == ahead
    assert "what was there is kept as journal.db-wal.damaged-1" in caplog.text


@pytest.mark.parametrize("at", [9, 0.5, 0.75])
async def test_a_spoilt_write_ahead_log_is_told_and_kept(
    tmp_path: Path, at: float, caplog: pytest.LogCaptureFixture
) -> None:
    opened = open_journal(tmp_path / "journal")
    await fill(opened, *each(8))
    shutil.copytree(tmp_path / "journal", tmp_path / "crashed")
    opened.close()
    ahead = tmp_path / "crashed" / f"{FILE}-wal"
    flip(ahead, at if isinstance(at, int) else int(ahead.stat().st_size * at))
    spoilt = ahead.read_bytes()
    _, found = read(tmp_path / "crashed")
    assert found == entries(1, len(found))
    assert len(found) < 8
    assert "what was written last cannot be read, and is lost" in caplog.text
    assert (tmp_path / "crashed" / f"{FILE}-wal.damaged-1").read_bytes() == spoilt


# Snapshots and damage.


async def test_damage_before_a_snapshot_costs_only_what_lies_before_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    opened = open_journal(tmp_path)
    await fill(opened, *each(5))
    await snapshot(opened, b"five")
    await fill(opened, *(entries(n, n) for n in range(6, 9)))
    opened.close()
    alter(tmp_path / FILE, "DELETE FROM records WHERE last = 3")
    opened = open_journal(tmp_path)
    assert (opened.past.state, list(opened.past.entries)) == (b"five", entries(6, 8))
    assert [one.seq for one in opened.past.delivered] == [8, 7, 6, 5]
    opened.close()
    assert "entry 3 is missing, the next one is 4; what is shown begins after entry 4" in caplog.text


async def test_a_page_before_a_snapshot_that_cannot_be_read_costs_only_what_lies_before_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = await large(tmp_path, state=b"state")
    blank(file, file.stat().st_size // PAGE // 2)
    opened = open_journal(tmp_path)
    assert (opened.past.state, list(opened.past.entries)) == (b"state", [])
    shown = [one.seq for one in opened.past.delivered]
    assert shown == list(range(LARGE, LARGE - len(shown), -1))
    assert 0 < len(shown) < LARGE
    assert "cannot be read" in caplog.text
    opened.close()


async def test_what_lies_behind_a_page_that_cannot_be_read_is_kept_too(tmp_path: Path) -> None:
    """The end is damaged, and so is a page long before it: all that can be read is in the new file."""
    opened = open_journal(tmp_path)
    await fill(opened, *(entries(n, n + 99) for n in range(1, LARGE, 100)))
    await snapshot(opened, b"state")
    await fill(opened, entries(LARGE + 1, LARGE + 1), entries(LARGE + 2, LARGE + 2))
    opened.close()
    file = tmp_path / FILE
    alter(file, "UPDATE records SET body = x'00' WHERE last = ?", LARGE + 2)
    blank(file, file.stat().st_size // PAGE // 2)
    assert read(tmp_path) == (b"state", entries(LARGE + 1, LARGE + 1))
    kept = [last for (last,) in rows(file, "SELECT last FROM records ORDER BY last")]
    assert kept[0] == 1
    assert kept[-1] == LARGE + 1
    assert LARGE - 200 <= len(kept) < LARGE + 1


async def test_a_snapshot_whose_record_cannot_be_read_is_followed_by_the_next_record(tmp_path: Path) -> None:
    opened = open_journal(tmp_path)
    await fill(opened, *each(5))
    await snapshot(opened, b"five")
    await fill(opened, *(entries(n, n) for n in range(6, 9)))
    opened.close()
    alter(tmp_path / FILE, "DELETE FROM records WHERE last IN (4, 5)")
    assert read(tmp_path) == (b"five", entries(6, 8))
    alter(tmp_path / FILE, "UPDATE records SET body = x'00' WHERE last = 8")
    assert read(tmp_path) == (b"five", entries(6, 7))


async def test_without_one_record_that_can_be_read_the_newest_snapshot_is_served_and_the_numbers_go_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = await large(tmp_path, state=b"state")
    blank(file, root_of(file, "records"))
    assert read(tmp_path) == (b"state", [])
    assert f"space 'desk': it is as it was after entry {LARGE}" in caplog.text
    caplog.clear()
    await written(tmp_path, entries(LARGE + 1, LARGE + 1))
    assert read(tmp_path) == (b"state", entries(LARGE + 1, LARGE + 1))
    assert not caplog.text


@pytest.mark.parametrize("step", ["os.link", "pathlib.Path.replace"])
async def test_a_salvage_that_was_cut_off_is_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    file = await written(tmp_path, *each(10))
    alter(file, "DELETE FROM records WHERE last = 4")

    def killed(*args: object, **options: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(step, killed)
        with pytest.raises(KeyboardInterrupt):
            read(tmp_path)
    assert read(tmp_path) == (None, entries(1, 3))


@pytest.mark.parametrize("at", [0, -33, -1])
async def test_a_snapshot_that_is_not_whole_is_kept_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, at: int
) -> None:
    opened = open_journal(tmp_path)
    await fill(opened, entries(1, 2))
    await snapshot(opened, b"two")
    opened.close()
    flip(space_folder(tmp_path, "desk") / "2.snapshot", at)
    assert read(tmp_path) == (None, entries(1, 2))
    assert "a snapshot of space 'desk' cannot be read" in caplog.text
    assert "2.snapshot.damaged-1" in caplog.text
    assert snapshots_in(tmp_path) == ["2.snapshot.damaged-1"]


async def test_the_older_snapshot_takes_the_place_of_one_that_is_not_whole(tmp_path: Path) -> None:
    opened = open_journal(tmp_path)
    for last, state in ((2, b"two"), (4, b"four")):
        await fill(opened, entries(last - 1, last))
        await snapshot(opened, state)
    await fill(opened, entries(5, 5))
    opened.close()
    flip(space_folder(tmp_path, "desk") / "4.snapshot", -40)
    assert read(tmp_path) == (b"two", entries(3, 5))


async def test_a_snapshot_of_what_a_power_cut_took_is_kept_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    opened = open_journal(tmp_path)
    await fill(opened, entries(1, 2), entries(3, 3))
    await snapshot(opened, b"three")
    opened.close()
    alter(tmp_path / FILE, "DELETE FROM records WHERE last = 3")
    assert read(tmp_path) == (None, entries(1, 2))
    assert "space 'desk' ends with entry 2, a snapshot says there was 3" in caplog.text
    assert "3.snapshot.damaged-1" in caplog.text
    caplog.clear()
    assert read(tmp_path) == (None, entries(1, 2))
    assert not caplog.text


async def test_a_space_that_begins_later_and_has_no_snapshot_is_refused_and_others_are_not(
    tmp_path: Path,
) -> None:
    await written(tmp_path, entries(1, 2), space="other")
    database = Database.open(tmp_path / FILE, Durability.PROCESS)
    database.add_space("desk", ChainLink(7, bytes(32)))
    database.close()
    with pytest.raises(
        JournalUnavailable, match=r"the first entries of space 'desk' are gone and no snapshot"
    ):
        open_journal(tmp_path)
    assert read(tmp_path, "other") == (None, entries(1, 2))


@pytest.mark.parametrize(("seq", "digest"), [(0, bytes(32)), (5, bytes(32)), (1 << 40, None)])
async def test_a_beginning_that_is_not_what_was_written_is_found_again(
    tmp_path: Path, seq: int, digest: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    file = await written(tmp_path, *each(9))
    await written(tmp_path, *each(3), space="other")
    alter(file, "UPDATE spaces SET seq = ?, hash = coalesce(?, hash) WHERE name = 'desk'", seq, digest)
    for _ in range(2):
        assert read(tmp_path) == (None, entries(1, 9))
    assert caplog.text.count("space 'desk': where it begins was not what was written") == 1
    assert kept_aside(tmp_path) == ["journal.db.damaged-1"]
    assert verify_journal(tmp_path, "desk").broken is None


async def test_a_beginning_that_cannot_be_found_again_is_that_of_a_snapshot(tmp_path: Path) -> None:
    opened = open_journal(tmp_path)
    await fill(opened, *each(5))
    await snapshot(opened, b"five")
    await fill(opened, *(entries(n, n) for n in range(6, 9)))
    opened.close()
    alter(tmp_path / FILE, "DELETE FROM records WHERE last = 1")
    alter(tmp_path / FILE, "UPDATE spaces SET seq = 1000, hash = zeroblob(32)")
    for _ in range(2):
        assert read(tmp_path) == (b"five", entries(6, 8))
    assert verify_journal(tmp_path, "desk").broken is None


async def test_a_space_that_has_lost_its_name_is_told_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = await written(tmp_path, *each(3))
    index(tmp_path)
    alter(file, "UPDATE spaces SET name = 'dusk'")
    assert read(tmp_path) == (None, [])
    await written(tmp_path, entries(1, 1))
    assert read(tmp_path) == (None, entries(1, 1))
    assert "it has no records of space 'desk', which had 3 entries; it begins empty" in caplog.text


# The index beside it.


@pytest.mark.parametrize("at", [0.3, 0.6, 0.9])
async def test_a_damaged_index_is_no_damage_of_the_journal(tmp_path: Path, at: float) -> None:
    await large(tmp_path)
    beside = tmp_path / INDEX_FILE
    read(tmp_path)
    blank(beside, int(beside.stat().st_size * at) // PAGE)
    spoilt = beside.read_bytes()
    assert read(tmp_path) == (None, entries(1, LARGE))
    assert not [name for name in kept_aside(tmp_path) if name.startswith(FILE)]
    assert (tmp_path / f"{INDEX_FILE}.damaged-1").read_bytes() == spoilt


async def test_the_time_of_the_last_entry_is_that_of_the_last_that_is_served(tmp_path: Path) -> None:
    file = await written(tmp_path, *each(9))
    alter(file, "UPDATE records SET body = x'00' WHERE last = 7")
    opened = open_journal(tmp_path)
    assert opened.past.at == AT + timedelta(seconds=6)
    await commit(opened.storage)
    opened.close()


# Any damage.


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two spaces, turn about, one of them with snapshots."""

    async def write(folder: Path) -> None:
        opened = open_journal(folder, "one")
        other, _ = opened.storage.open("other", following([]))
        for n in range(1, 200, 2):
            append(other, [batch(n, n + 1, "x" * 500)])
            await fill(opened, [batch(n, n + 1, "y" * 40)])
            if n in (51, 101):
                await snapshot(opened, b"after %d" % (n + 1))
        opened.close()

    folder = tmp_path_factory.mktemp("whole")
    asyncio.run(write(folder))
    return folder


def batches(first: int, text: str) -> list[Entry]:
    return [batch(n, n + 1, text) for n in range(first, 200, 2)]


@settings(max_examples=40)
@given(st.integers(0, 1 << 32).map(Random))
def test_whatever_happens_to_the_file_a_part_of_what_was_written_is_served(
    whole: Path, random: Random
) -> None:
    content = spoilt((whole / FILE).read_bytes(), random)
    with TemporaryDirectory() as place:
        folder = Path(place, "journal")
        shutil.copytree(whole, folder)
        (folder / FILE).write_bytes(content)
        try:
            found = {space: read(folder, space) for space in ("one", "other")}
        except JournalUnavailable as error:
            if "later version" not in str(error):
                raise
            return
        for space, (state, served) in found.items():
            assert served == FOLLOWING[space, state][: len(served)]
            assert read(folder, space) == (state, served)
        if kept_aside(folder):
            assert content in [(folder / name).read_bytes() for name in kept_aside(folder)]
        else:
            assert [len(served) for _, served in found.values()] == [49, 100]


def spoilt(written: bytes, random: Random) -> bytes:
    """A few bytes are others, some pages are blank, or a part is missing at the end; no space gets another name."""
    content = bytearray(written)
    for _ in range(random.randint(1, 3)):
        at = random.randrange(len(content))
        if any(name in content[at - 10 : at + 10] for name in (b"one", b"other")):
            continue
        match random.choice(("flip", "blank", "cut")):
            case "flip":
                content[at] ^= random.randint(1, 255)
            case "blank":
                at = at // PAGE * PAGE
                content[at : at + PAGE] = bytes(len(content[at : at + PAGE]))
            case _:
                del content[at + 1 :]
    return bytes(content)


FOLLOWING = {
    ("one", b"after 102"): batches(103, "y" * 40),
    ("one", b"after 52"): batches(53, "y" * 40),
    ("one", None): batches(1, "y" * 40),
    ("other", None): batches(1, "x" * 500),
}
