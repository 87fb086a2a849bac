"""A journal that is not whole: it is said, kept aside, and everything before the damage is served."""

import logging
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.log.journal import AT, entries, fill, open_log, read, snapshot

from mew.log.base import LogUnavailable, Mark
from mew.log.database import Database, Durability
from mew.log.record import Link, first_break, first_link
from mew.space import Entry

LARGE = 3_000  # entries for several pages


@pytest.fixture(autouse=True)
def listening(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, "mew.log")


async def journal(folder: Path, *, each: int = 1, last: int = 10) -> Path:
    log = open_log(folder)
    await fill(log, *(entries(n, n + each - 1) for n in range(1, last, each)))
    log.close()
    return folder / "entries.db"


def alter(file: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(statement, values)
        connection.commit()


def flip(file: Path, at: int) -> None:
    content = bytearray(file.read_bytes())
    content[at] ^= 0xFF
    file.write_bytes(content)


async def test_an_altered_entry_ends_what_is_served_and_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = await journal(tmp_path)
    alter(file, "UPDATE turns SET entries = replace(CAST(entries AS TEXT), 'c7', 'c8') WHERE last = 7")
    alter(file, "UPDATE turns SET entries = CAST(entries AS BLOB) WHERE last = 7")
    assert read(tmp_path)[2] == entries(1, 6)
    assert str(file) in caplog.text
    assert "entry 7" in caplog.text
    assert "all up to entry 6 is served" in caplog.text
    assert "entries.db.damaged-1" in caplog.text


async def test_the_damaged_file_is_kept_and_the_new_one_is_whole(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = await journal(tmp_path)
    alter(file, "DELETE FROM turns WHERE last = 4")
    damaged = file.read_bytes()
    assert read(tmp_path)[2] == entries(1, 3)
    assert (tmp_path / "entries.db.damaged-1").read_bytes() == damaged
    caplog.clear()
    log = open_log(tmp_path)
    assert list(log.recall().entries) == entries(1, 3)
    await fill(log, entries(4, 5))
    log.close()
    assert read(tmp_path)[2] == entries(1, 5)
    assert not caplog.text


async def test_a_second_damage_does_not_overwrite_what_was_kept_of_the_first(tmp_path: Path) -> None:
    file = await journal(tmp_path)
    for n in (1, 2):
        alter(file, "UPDATE turns SET entries = x'00' WHERE last = (SELECT max(last) FROM turns)")
        read(tmp_path)
        assert (tmp_path / f"entries.db.damaged-{n}").exists()


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9, 0.999])
async def test_a_page_that_cannot_be_read_ends_what_is_served(
    tmp_path: Path, share: float, caplog: pytest.LogCaptureFixture
) -> None:
    file = await journal(tmp_path, each=100, last=LARGE)
    content = bytearray(file.read_bytes())
    at = int(len(content) * share) // 4096 * 4096
    content[at : at + 4096] = bytes(4096)
    file.write_bytes(content)
    found = read(tmp_path)[2]
    assert found == entries(1, len(found))
    assert 0 < len(found) < LARGE
    assert len(found) % 100 == 0 or "is not what was written" in caplog.text or "breaks off" in caplog.text
    assert "damaged-1" in caplog.text
    assert read(tmp_path)[2] == found


async def test_a_file_that_was_cut_off_is_served_up_to_there(tmp_path: Path) -> None:
    file = await journal(tmp_path, each=100, last=LARGE)
    with file.open("r+b") as opened:
        opened.truncate(file.stat().st_size // 2)
    found = read(tmp_path)[2]
    assert found == entries(1, len(found))
    assert read(tmp_path)[2] == found


async def test_a_file_that_is_none_is_kept_aside_and_the_space_begins_empty(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = await journal(tmp_path)
    file.write_bytes(b"no database" * 1000)
    assert read(tmp_path) == (None, b"", [])
    assert "the space begins empty" in caplog.text
    assert (tmp_path / "entries.db.damaged-1").read_bytes().startswith(b"no database")


async def test_an_empty_file_in_its_place_is_damage(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (await journal(tmp_path)).write_bytes(b"")
    assert read(tmp_path)[2] == []
    assert "not a journal" in caplog.text


async def test_without_the_file_the_newest_snapshot_is_served_and_the_numbers_go_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = open_log(tmp_path)
    await fill(log, entries(1, 3))
    await snapshot(log, Mark(3, AT, 0, 3), b"three")
    log.close()
    (tmp_path / "entries.db").unlink()
    log = open_log(tmp_path)
    past = log.recall()
    assert (past.mark, past.state, list(past.entries)) == (Mark(3, AT, 0, 3), b"three", [])
    assert "as it was after entry 3" in caplog.text
    log.append(entries(4, 4)[0].at, entries(4, 4)[0].event)
    log.close()
    assert [entry async for batch in log.follow(3) for entry in batch] == entries(4, 4)
    assert read(tmp_path) == (Mark(3, AT, 0, 3), b"three", entries(4, 4))


async def test_damage_before_a_snapshot_costs_only_what_lies_before_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = open_log(tmp_path)
    await fill(log, *(entries(n, n) for n in range(1, 6)))
    await snapshot(log, Mark(5, AT, 0, 5), b"five")
    await fill(log, *(entries(n, n) for n in range(6, 9)))
    log.close()
    alter(tmp_path / "entries.db", "DELETE FROM turns WHERE last = 3")
    assert read(tmp_path) == (Mark(5, AT, 0, 5), b"five", entries(6, 8))
    assert "entry 3 is missing" in caplog.text


async def test_what_lies_behind_a_page_that_cannot_be_read_is_kept_too(tmp_path: Path) -> None:
    """The end is damaged, and so is a page long before it: all that can be read is in the new file."""
    log = open_log(tmp_path)
    await fill(log, *(entries(n, n + 99) for n in range(1, LARGE, 100)))
    await snapshot(log, Mark(LARGE, AT, 0, LARGE), b"state")
    await fill(log, entries(LARGE + 1, LARGE + 1), entries(LARGE + 2, LARGE + 2))
    log.close()
    file = tmp_path / "entries.db"
    alter(file, "UPDATE turns SET entries = x'00' WHERE last = ?", LARGE + 2)
    content = bytearray(file.read_bytes())
    at = len(content) // 2 // 4096 * 4096
    content[at : at + 4096] = bytes(4096)
    file.write_bytes(content)
    assert read(tmp_path) == (Mark(LARGE, AT, 0, LARGE), b"state", entries(LARGE + 1, LARGE + 1))
    database = Database.open(file, "desk", Durability.PROCESS)
    kept = [row.seq for row in database.rows(0)]
    database.close()
    assert kept[0] == 1
    assert kept[-1] == LARGE + 1
    assert LARGE - 200 <= len(kept) < LARGE + 1


async def test_without_one_entry_that_can_be_read_the_newest_snapshot_is_served_and_the_numbers_go_on(
    tmp_path: Path,
) -> None:
    log = open_log(tmp_path)
    await fill(log, *(entries(n, n + 99) for n in range(1, LARGE, 100)))
    await snapshot(log, Mark(LARGE, AT, 0, LARGE), b"state")
    log.close()
    file = tmp_path / "entries.db"
    with closing(sqlite3.connect(file)) as connection:
        ((root,),) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'turns'")
    content = bytearray(file.read_bytes())
    content[(root - 1) * 4096 : root * 4096] = bytes(4096)
    file.write_bytes(content)
    expected: tuple[Mark, bytes, list[Entry]] = (Mark(LARGE, AT, 0, LARGE), b"state", [])
    assert read(tmp_path) == expected
    assert read(tmp_path) == expected
    log = open_log(tmp_path)
    log.recall()
    more = entries(LARGE + 1, LARGE + 1)
    log.append(more[0].at, more[0].event)
    log.close()
    assert [entry async for batch in log.follow(LARGE) for entry in batch] == more
    assert read(tmp_path) == (*expected[:2], more)


@pytest.mark.parametrize("step", ["link", "replace"])
async def test_a_salvage_that_was_cut_off_is_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    file = await journal(tmp_path)
    alter(file, "DELETE FROM turns WHERE last = 4")

    def killed(*args: object, **options: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(f"os.{step}" if step == "link" else f"pathlib.Path.{step}", killed)
        with pytest.raises(KeyboardInterrupt):
            read(tmp_path)
    assert read(tmp_path)[2] == entries(1, 3)


@pytest.mark.parametrize(
    ("at", "said"),
    [
        (0, "a snapshot cannot be read"),
        (-33, "does not fit it"),
        (-1, "snapshot after entry 2 does not fit it"),
    ],
)
async def test_a_snapshot_that_is_not_whole_is_kept_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, at: int, said: str
) -> None:
    log = open_log(tmp_path)
    await fill(log, entries(1, 2))
    await snapshot(log, Mark(2, AT, 2, 2), b"two")
    log.close()
    flip(tmp_path / "2.snapshot", at)
    assert read(tmp_path) == (None, b"", entries(1, 2))
    assert said in caplog.text
    assert (tmp_path / "2.snapshot.damaged-1").exists()


async def test_a_snapshot_of_what_a_power_cut_took_is_kept_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = open_log(tmp_path)
    await fill(log, entries(1, 2), entries(3, 3))
    await snapshot(log, Mark(3, AT, 3, 3), b"three")
    log.close()
    alter(tmp_path / "entries.db", "DELETE FROM turns WHERE last = 3")
    assert read(tmp_path) == (None, b"", entries(1, 2))
    assert "it ends with entry 2, a snapshot says there was 3" in caplog.text
    caplog.clear()
    assert read(tmp_path)[2] == entries(1, 2)
    assert not caplog.text


async def test_a_journal_that_begins_later_and_has_no_snapshot_is_refused(tmp_path: Path) -> None:
    Database.create(tmp_path / "entries.db", "desk", Link(7, bytes(32)), Durability.PROCESS).close()
    with pytest.raises(LogUnavailable, match=r"entries.db: its first entries are gone"):
        open_log(tmp_path).recall()


async def test_a_spoilt_write_ahead_file_is_said_and_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = open_log(tmp_path / "desk")
    await fill(log, *(entries(n, n) for n in range(1, 9)))
    shutil.copytree(tmp_path / "desk", tmp_path / "crashed")
    log.close()
    ahead = tmp_path / "crashed" / "entries.db-wal"
    flip(ahead, ahead.stat().st_size * 3 // 4)
    written = ahead.read_bytes()
    found = read(tmp_path / "crashed")[2]
    assert found == entries(1, len(found))
    assert 0 < len(found) < 8
    assert "what was written last cannot be read" in caplog.text
    assert (tmp_path / "crashed" / "entries.db-wal.damaged-1").read_bytes() == written


async def test_an_old_entry_that_was_altered_is_found_by_going_through_the_chain(tmp_path: Path) -> None:
    """What a start does not read: `first_break` names it."""
    file = await journal(tmp_path)
    with closing(sqlite3.connect(file)) as connection:
        ((entries_of_turn,),) = connection.execute("SELECT entries FROM turns WHERE last = 2").fetchall()
    spoilt = bytearray(entries_of_turn)
    spoilt[30] ^= 1
    alter(file, "UPDATE turns SET entries = ? WHERE last = 2", bytes(spoilt))
    database = Database.open(file, "desk", Durability.PROCESS)
    found = first_break(database.rows(0), first_link("desk"))
    database.close()
    assert found is not None
    assert found.seq == 2
