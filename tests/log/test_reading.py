"""A journal that is read while its gateway drops the first entries: a gap of its making is told from any other."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.log.journal import entries, fill, open_log

from mew.log.base import LogUnavailable
from mew.log.front import Cut, Front
from mew.log.reading import Dropped, JournalReader
from mew.log.record import first_break, first_link
from mew.log.sqlite import SqliteLog


async def dropping(folder: Path, last: int) -> tuple[SqliteLog, Callable[[int], None]]:
    log = open_log(folder)
    await fill(log, *(entries(n, n) for n in range(1, last + 1)))
    front = Front(folder / "entries.db", "desk")

    def drop(until: int) -> None:
        front.drop(Cut(limit=until, until=until), lambda seconds: False)

    return log, drop


async def test_a_reader_that_is_overtaken_is_told_where_the_journal_begins_now(tmp_path: Path) -> None:
    log, drop = await dropping(tmp_path, 300)
    with JournalReader(tmp_path) as reader:
        rows = reader.rows(0)
        seen = [next(rows) for _ in range(64)]  # what is read at a time
        drop(200)
        with pytest.raises(Dropped, match="what came after entry 64 is no longer kept") as caught:
            next(rows)
        assert isinstance(caught.value, LogUnavailable)
        assert [row.seq for row in seen] == list(range(1, 65))
        assert caught.value.begin == reader.begin
        assert reader.begin.seq == 200
        again = list(reader.rows(caught.value.begin.seq))
        assert first_break(again, caught.value.begin) is None
        assert again[-1].seq == 300
    log.close()


async def test_a_reader_is_told_too_when_nothing_is_left(tmp_path: Path) -> None:
    log, drop = await dropping(tmp_path, 300)
    with JournalReader(tmp_path) as reader:
        rows = reader.rows(0)
        next(rows)
        drop(300)
        with pytest.raises(Dropped):
            list(rows)
    log.close()


async def test_a_reader_ahead_of_what_goes_notices_nothing(tmp_path: Path) -> None:
    log, drop = await dropping(tmp_path, 300)
    with JournalReader(tmp_path) as reader:
        rows = reader.rows()
        seen = [next(rows) for _ in range(100)]
        drop(90)
        seen += rows
        assert [row.seq for row in seen] == list(range(1, 301))
        assert [row.seq for row in reader.rows()] == list(range(91, 301))
    log.close()


async def test_a_gap_that_somebody_else_made_is_for_who_reads_to_find(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    await fill(log, *(entries(n, n) for n in range(1, 11)))
    log.close()
    with closing(sqlite3.connect(tmp_path / "entries.db")) as connection:
        connection.execute("DELETE FROM turns WHERE last = 4")
        connection.commit()
    with JournalReader(tmp_path) as reader:
        found = first_break(reader.rows(0), first_link("desk"))
    assert found is not None
    assert found.seq == 4


async def test_a_place_before_the_beginning_is_no_longer_kept(tmp_path: Path) -> None:
    log, drop = await dropping(tmp_path, 30)
    drop(20)
    with JournalReader(tmp_path) as reader, pytest.raises(Dropped, match="begins after entry 20"):
        next(reader.rows(10))
    log.close()
