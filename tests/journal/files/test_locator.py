"""The index beside a journal: it can be lost, and notices what the journal has lost."""

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from tests.journal.journals import alter, batch, entries, fill, index, open_journal, read, written

from mew.journal.files.database import FILE
from mew.journal.files.locator import INDEX_FILE, Locator, RecordLocation, open_index, set_aside_if_damaged

EACH = [entries(n, n) for n in range(1, 9)]


@contextmanager
def located(folder: Path) -> Iterator[Locator]:
    with Locator(folder) as locator:
        locator.locate()
        yield locator


def places(folder: Path, space: str = "desk") -> list[RecordLocation]:
    with located(folder) as locator:
        return list(locator.places(space))


def lasts(folder: Path, space: str = "desk") -> list[int]:
    return [place.last for place in places(folder, space)]


async def test_every_record_is_found_by_its_space_and_its_last_entry(tmp_path: Path) -> None:
    await written(tmp_path, *EACH, [batch(9, 12)])
    await written(tmp_path, [batch(1, 3)], space="other")
    assert lasts(tmp_path) == [*range(1, 9), 12]
    with located(tmp_path) as locator:
        assert [place.last for place in locator.places("desk", newest_first=True)] == [12, *range(8, 0, -1)]
        assert [place.last for place in locator.places("desk", after=6, until=10)] == [7, 8, 12]
        assert [place.last for place in locator.places("other")] == [3]
        assert list(locator.places("nobody's")) == []
        assert locator.located == 10
        found = [locator.find("desk", seq) for seq in (8, 9, 12, 13)]
        assert [None if place is None else place.last for place in found] == [8, 12, 12, None]
        sizes = sum(place.bytes for place in locator.places("desk", after=7))
        assert locator.bytes_after("desk", 7) == sizes
    assert list(open_past(tmp_path)) == [*entries(1, 8), batch(9, 12)]


def open_past(folder: Path) -> list[object]:
    return list(read(folder)[1])


async def test_it_takes_in_what_is_committed_while_it_is_open(tmp_path: Path) -> None:
    opened = open_journal(tmp_path)
    with Locator(tmp_path) as locator:
        for n in range(1, 5):
            await fill(opened, entries(n, n))
            last = locator.last("desk")
            assert (0 if last is None else last.last) == n - 1
            locator.locate()
            last = locator.last("desk")
            assert last is not None
            assert last.last == n
    opened.close()


async def test_an_index_that_was_deleted_is_made_again(tmp_path: Path) -> None:
    await written(tmp_path, *EACH)
    before = places(tmp_path)
    (tmp_path / INDEX_FILE).unlink()
    assert places(tmp_path) == before
    (tmp_path / INDEX_FILE).unlink()
    assert read(tmp_path) == (None, entries(1, 8))


@pytest.mark.parametrize("what", ["no database", "another version"])
async def test_a_file_that_is_no_index_is_kept_aside_and_made_again(
    tmp_path: Path, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    await written(tmp_path, *EACH)
    before, file = places(tmp_path), tmp_path / INDEX_FILE
    if what == "no database":
        file.write_bytes(b"no index" * 1000)
    else:
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("PRAGMA user_version = 99")
    spoilt = file.read_bytes()
    assert places(tmp_path) == before
    assert (tmp_path / f"{INDEX_FILE}.damaged-1").read_bytes() == spoilt
    assert "the index is made again; what was there is kept as index.db.damaged-1" in caplog.text


async def test_an_index_with_a_page_that_cannot_be_read_is_kept_aside_when_that_is_asked(
    tmp_path: Path,
) -> None:
    await written(tmp_path, *([batch(n, n)] for n in range(1, 1000)))
    before = places(tmp_path)
    assert not set_aside_if_damaged(tmp_path)
    file = tmp_path / INDEX_FILE
    content = bytearray(file.read_bytes())
    content[-4096:] = bytes(4096)
    file.write_bytes(content)
    assert set_aside_if_damaged(tmp_path)
    assert (tmp_path / f"{INDEX_FILE}.damaged-1").read_bytes() == content
    assert places(tmp_path) == before


async def test_a_journal_that_has_lost_its_tail_is_noticed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = await written(tmp_path, *EACH)
    index(tmp_path)
    alter(file, "DELETE FROM records WHERE last > 5")
    with located(tmp_path) as locator:
        assert [place.last for place in locator.places("desk")] == [1, 2, 3, 4, 5]
        assert (locator.located, locator.indexed) == (5, 5)
        assert locator.ask("SELECT * FROM lost") == [(locator.space("desk"), 5)]
    assert "the journal is not the one that was indexed" in caplog.text


async def test_what_was_lost_is_noticed_although_as_much_was_written_since(tmp_path: Path) -> None:
    """As after a power cut: the numbers are used again, in batches of another size."""
    shutil.copytree(tmp_path, tmp_path / "journal")
    folder = tmp_path / "journal"
    await written(folder, *EACH[:4])
    shutil.copytree(folder, tmp_path / "older")
    await written(folder, *EACH[4:])
    index(folder)
    shutil.copy(tmp_path / "older" / FILE, folder / FILE)
    await written(folder, [batch(5, 7)], [batch(8, 8)], [batch(9, 9)], [batch(10, 10)], [batch(11, 12)])
    assert lasts(folder) == [1, 2, 3, 4, 7, 8, 9, 10, 12]
    with located(folder) as locator:
        assert locator.indexed == 4
        assert locator.ask("SELECT after FROM lost") == [(4,)]


async def test_another_journal_in_its_place_is_noticed(tmp_path: Path) -> None:
    await written(tmp_path / "one", *EACH)
    index(tmp_path / "one")
    await written(tmp_path / "other", *([batch(n, n + 1)] for n in range(1, 30, 2)))
    shutil.copy(tmp_path / "other" / FILE, tmp_path / "one" / FILE)
    assert lasts(tmp_path / "one") == list(range(2, 31, 2))
    with located(tmp_path / "one") as locator:
        assert locator.indexed == 0
        assert locator.ask("SELECT after FROM lost") == [(0,)]


async def test_records_that_went_from_the_middle_are_noticed_after_a_salvage(tmp_path: Path) -> None:
    """The last record of the file is what it was, so nothing but the salvage tells."""
    file = await written(tmp_path, *EACH)
    await written(tmp_path, *EACH, space="other")
    index(tmp_path)
    alter(file, "UPDATE records SET body = x'00' WHERE (space, last) = (1, 5)")
    assert read(tmp_path) == (None, entries(1, 4))
    assert lasts(tmp_path) == [1, 2, 3, 4]
    assert lasts(tmp_path, "other") == list(range(1, 9))
    with located(tmp_path) as locator:
        assert locator.ask("SELECT * FROM lost") == [(locator.space("desk"), 4)]
        assert locator.indexed == 4


async def test_what_was_dropped_on_purpose_is_not_missed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = await written(tmp_path, *EACH)
    assert lasts(tmp_path) == list(range(1, 9))
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("UPDATE spaces SET (seq, hash) = (SELECT last, hash FROM records WHERE last = 8)")
        connection.execute("DELETE FROM records")
        connection.commit()
    with located(tmp_path) as locator:
        assert list(locator.places("desk")) == []
        assert locator.ask("SELECT * FROM lost") == []
    assert not caplog.text


async def test_it_is_for_the_owner_alone(tmp_path: Path) -> None:
    await written(tmp_path, *EACH)
    (tmp_path / INDEX_FILE).unlink()
    with open_index(tmp_path) as locator:
        locator.locate()
        files = [tmp_path / name for name in os.listdir(tmp_path) if name.startswith(INDEX_FILE)]
        assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
