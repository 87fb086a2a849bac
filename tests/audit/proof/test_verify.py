"""Every record of a journal is what was written, or the first entry that is not is named."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.audit.kept import (
    AT,
    ENTRIES,
    SPACE,
    as_indexed,
    at,
    drop_until,
    keep,
    put_records,
    record_alone,
    records_in,
)

from mew.audit.proof.verification_result import EntryTime
from mew.audit.proof.verify import verify_journal
from mew.journal.files.database import FILE, Database, Durability
from mew.journal.files.high_water import MARKS_FILE
from mew.journal.files.locator import INDEX_FILE
from mew.journal.port import JournalUnavailable
from mew.journal.record import RecordRow, genesis_link, join_record, read_header, split_record
from mew.space import Entry, TimePassed

COUNT = ENTRIES[-1].last


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return keep(tmp_path / "journal")


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return keep(tmp_path_factory.mktemp("pristine") / "journal")


def point(seq: int) -> EntryTime:
    return EntryTime(seq, at(seq))


def passing(count: int) -> list[Entry]:
    return [Entry(n, AT + timedelta(seconds=n), TimePassed()) for n in range(1, count + 1)]


def test_a_journal_that_was_left_alone_is_sound(folder: Path) -> None:
    verdict = verify_journal(folder, SPACE)
    assert verdict.is_sound
    assert verdict.begins
    assert (verdict.space, verdict.entries) == (SPACE, COUNT)
    assert (verdict.first, verdict.last) == (point(1), point(COUNT))


def test_a_space_without_entries_is_sound(tmp_path: Path) -> None:
    verdict = verify_journal(keep(tmp_path, []), SPACE)
    assert verdict.is_sound
    assert (verdict.entries, verdict.first, verdict.last) == (0, None, None)


def test_how_far_it_is_is_told(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    keep(tmp_path, passing(10_000))
    verify_journal(tmp_path, SPACE, walked=lambda done, total: told.append((done, total)))
    assert told == [(4096, 10_000), (8192, 10_000)]


def test_no_other_space_in_the_file_matters(folder: Path) -> None:
    keep(folder, passing(30), "hall")
    put_records(folder, [row._replace(hash=bytes(32)) for row in records_in(folder, "hall")], "hall")
    assert verify_journal(folder, SPACE).is_sound
    assert not verify_journal(folder, "hall").is_sound


def test_no_index_is_trusted(folder: Path) -> None:
    with as_indexed(folder) as (_, index):
        index.locator.ask("DELETE FROM places WHERE last > 3")
        index.locator.ask("UPDATE progress SET located = 3")
    put_records(folder, [row for row in records_in(folder) if row.last <= 5])
    verdict = verify_journal(folder, SPACE)
    assert (verdict.is_sound, verdict.entries) == (True, 5)
    (folder / INDEX_FILE).write_bytes(b"no index")
    assert verify_journal(folder, SPACE) == verdict
    assert (folder / INDEX_FILE).read_bytes() == b"no index"


# What is done to the records.


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_bit_flipped_in_any_record_is_found_and_its_first_entry_is_named(
    pristine: Path, data: st.DataObject
) -> None:
    rows = records_in(pristine)
    number = data.draw(st.integers(0, len(rows) - 1))
    row = rows[number]
    whole = bytearray(row.body + row.hash)
    whole[data.draw(st.integers(0, len(whole) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    spoilt = row._replace(body=bytes(whole[:-32]), hash=bytes(whole[-32:]))
    folder = pristine.with_name("flipped")
    if not folder.exists():
        shutil.copytree(pristine, folder)
    put_records(folder, [*rows[:number], spoilt, *rows[number + 1 :]])
    verdict = verify_journal(folder, SPACE)
    expected = read_header(row.body).seq
    assert verdict.broken is not None
    assert verdict.broken.seq == expected
    assert verdict.entries == expected - 1
    assert verdict.last == (point(expected - 1) if expected > 1 else None)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_any_byte_flipped_in_the_file_is_found_or_changes_no_record(
    pristine: Path, data: st.DataObject
) -> None:
    content = bytearray((pristine / FILE).read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    folder = pristine.with_name("spoilt")
    folder.mkdir(exist_ok=True)
    (folder / FILE).write_bytes(content)
    try:
        verdict = verify_journal(folder, SPACE)
    except JournalUnavailable:
        return  # it does not even look like a journal, or like one of this space
    if verdict.is_sound:
        assert [row[1:] for row in records_in(folder)] == [row[1:] for row in records_in(pristine)]


Rows = list[RecordRow]


def without(*numbers: int) -> Callable[[Rows], Rows]:
    return lambda rows: [row for row in rows if row.last not in numbers]


def changed(last: int, change: Callable[[RecordRow], RecordRow]) -> Callable[[Rows], Rows]:
    return lambda rows: [change(row) if row.last == last else row for row in rows]


def swapped(rows: Rows) -> Rows:
    """Entries 3 and 4."""
    third, fourth = rows[2], rows[3]
    return [*rows[:2], fourth._replace(n=third.n), third._replace(n=fourth.n), *rows[4:]]


def inserted(rows: Rows) -> Rows:
    """Another entry 4, chained to entry 3, in front of the one there was."""
    forged = record_alone(Entry(4, AT, TimePassed()), rows[2].hash)
    return _numbered([*rows[:3], forged, *rows[3:]])


def repeated(rows: Rows) -> Rows:
    return _numbered([*rows[:4], rows[2], *rows[4:]])


def numbered_0(rows: Rows) -> Rows:
    """Where readers skip it."""
    forged = record_alone(Entry(0, AT, TimePassed()), genesis_link(SPACE).hash)
    return _numbered([*rows[:3], forged, *rows[3:]])


def _numbered(rows: Rows) -> Rows:
    return [row._replace(n=n) for n, row in enumerate(rows, 1)]


def altered(row: RecordRow) -> RecordRow:
    return row._replace(body=row.body.replace(b"read_file", b"read_fire").replace(b"two", b"owt"))


def renumbered(row: RecordRow) -> RecordRow:
    return row._replace(body=(4).to_bytes(8, "big") + row.body[8:])


def without_an_envelope(row: RecordRow) -> RecordRow:
    """The second of a batch of three."""
    head, event, audiences, raws = split_record(row.body)
    return row._replace(
        last=row.last - 1, body=join_record(head._replace(own=2), event, audiences, (raws[0], raws[2]))
    )


TAMPERED: dict[str, tuple[Callable[[Rows], Rows], int, str]] = {
    "one with the number of another": (
        changed(5, renumbered),
        5,
        "entry 5 is not what was written: its number is 4",
    ),
    "an entry altered": (changed(4, altered), 4, "entry 4 is not what was written"),
    "one of a batch altered": (
        changed(8, altered),
        6,
        "one of the entries 6 to 8 is not what was written",
    ),
    "one of a batch removed": (
        changed(8, without_an_envelope),
        6,
        "one of the entries 6 to 7 is not what was written",
    ),
    "the time altered": (
        changed(4, lambda row: row._replace(at=row.at + 1)),
        4,
        "entry 4 is not what was written: the moment",
    ),
    "the number altered under which it is kept": (
        changed(4, lambda row: row._replace(last=7)),
        4,
        "entry 4 is not where it was written, but as entry 7",
    ),
    "the first removed": (without(1), 1, "entry 1 is missing, the next one is 2"),
    "one removed": (without(4), 4, "entry 4 is missing, the next one is 5"),
    "several removed": (without(4, 5), 4, "entry 4 is missing, the next one is 6"),
    "a batch removed": (without(8), 6, "entry 6 is missing, the next one is 9"),
    "two swapped": (swapped, 3, "entry 3 is missing, the next one is 4"),
    "one put in": (inserted, 4, "there are two entries 4"),
    "one put in twice": (repeated, 3, "there are two entries 3"),
    "one put in where nobody reads it": (numbered_0, 4, "after entry 3 an entry 0 was put in"),
    "one put in that is empty": (
        changed(5, lambda row: row._replace(body=b"")),
        5,
        "entry 5 is not what was written: a record breaks off",
    ),
    "one cut off": (changed(5, lambda row: row._replace(body=row.body[:-1])), 5, "entry 5 is not what was"),
    "one that goes on": (
        changed(5, lambda row: row._replace(body=row.body + b"x")),
        5,
        "entry 5 is not what",
    ),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_what_was_done_to_the_records_is_found(folder: Path, name: str) -> None:
    tamper, seq, why = TAMPERED[name]
    put_records(folder, tamper(records_in(folder)))
    verdict = verify_journal(folder, SPACE)
    assert verdict.broken is not None
    assert verdict.broken.seq == seq
    assert why in verdict.broken.why
    assert verdict.entries == seq - 1


def test_a_record_that_is_text_is_found(folder: Path) -> None:
    with closing(sqlite3.connect(folder / FILE)) as connection:
        connection.execute("UPDATE records SET body = 'text' WHERE last = 4")
        connection.commit()
    verdict = verify_journal(folder, SPACE)
    assert verdict.broken is not None
    assert verdict.broken.seq == 4


def test_the_records_of_another_space_do_not_pass_for_those_of_this_one(folder: Path) -> None:
    with closing(sqlite3.connect(folder / FILE)) as connection:
        connection.execute("UPDATE spaces SET name = 'table'")
        connection.commit()
    verdict = verify_journal(folder, "table")
    assert verdict.broken is not None
    assert verdict.broken.seq == 1
    assert "'table'" in verdict.broken.why


def test_a_record_moved_to_another_space_is_found_in_both(folder: Path) -> None:
    keep(folder, passing(3), "hall")
    with closing(sqlite3.connect(folder / FILE)) as connection:
        connection.execute(
            "UPDATE records SET space = (SELECT id FROM spaces WHERE name = 'hall') WHERE n = 4"
        )
        connection.commit()
    for space, seq in ((SPACE, 4), ("hall", 1)):
        broken = verify_journal(folder, space).broken
        assert broken is not None
        assert broken.seq == seq


def test_a_damaged_page_is_told_with_what_is_sound_before_it(tmp_path: Path) -> None:
    folder = keep(tmp_path, passing(2_000))
    content = bytearray((folder / FILE).read_bytes())
    content[20 * 4096 : 20 * 4096 + 4096] = bytes(4096)
    (folder / FILE).write_bytes(content)
    verdict = verify_journal(folder, SPACE)
    assert verdict.broken is not None
    assert verdict.broken.seq is not None
    assert 100 < verdict.broken.seq == verdict.entries + 1 < 2_000


def test_a_file_that_is_no_journal_is_not_sound(folder: Path) -> None:
    (folder / FILE).write_bytes(b"x" * 8192)
    verdict = verify_journal(folder, SPACE)
    assert verdict.broken is not None
    assert verdict.broken.seq is None
    assert verdict.space == SPACE


def test_a_table_that_is_another_hides_no_entries(folder: Path) -> None:
    """With the key of the records written otherwise none of them would be found."""
    file = folder / FILE
    file.write_bytes(file.read_bytes().replace(b"n INTEGER PRIMARY KEY", b"n INTEGER_PRIMARY KEY"))
    verdict = verify_journal(folder, SPACE)
    assert verdict.broken is not None
    assert "tables are not those of a journal" in verdict.broken.why


def test_a_page_that_lost_its_last_record_is_found(folder: Path) -> None:
    """Of the last page with records, the count of what is in it."""
    file = folder / FILE
    content = bytearray(file.read_bytes())
    with closing(sqlite3.connect(file)) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'records'").fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    at_count = (page - 1) * size + 4
    assert (content[at_count - 4], content[at_count]) == (13, len(ENTRIES))  # a leaf
    content[at_count] -= 1
    file.write_bytes(content)
    verdict = verify_journal(folder, SPACE)
    assert verdict.broken is not None
    assert verdict.broken.seq == 12
    assert "the high-water mark in high-water says that there was entry 12" in verdict.broken.why
    (folder / MARKS_FILE).unlink()
    verdict = verify_journal(folder, SPACE)
    assert verdict.broken is not None
    assert verdict.broken.seq is None
    assert "the file is damaged" in verdict.broken.why
    assert verdict.last == point(11)


def test_without_a_journal_or_a_space_there_is_no_verdict(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(JournalUnavailable, match="there is no journal here"):
        verify_journal(tmp_path, SPACE)
    with pytest.raises(JournalUnavailable, match="there is no space 'hall' in it"):
        verify_journal(folder, "hall")


def test_records_written_ahead_that_a_damage_took_are_missed(tmp_path: Path) -> None:
    folder = keep(tmp_path / "journal", ENTRIES[:3])
    killed = tmp_path / "killed"
    with closing(Database.open(folder / FILE, Durability.PROCESS)) as database:
        before = records_in(folder)[-1].hash
        for n, entry in enumerate(passing(60)[3:], 4):
            row = record_alone(entry, before)
            database.write([(n, 1, row.last, row.at, True, row.hash, row.body)])
            before = row.hash
        shutil.copytree(folder, killed, ignore=shutil.ignore_patterns("*-shm"))
    assert verify_journal(killed, SPACE).entries == 60
    (killed / f"{FILE}-shm").unlink(missing_ok=True)
    ahead = bytearray((killed / f"{FILE}-wal").read_bytes())
    ahead[32 + 4 * (24 + 4096) + 1000] ^= 1
    (killed / f"{FILE}-wal").write_bytes(ahead)
    verdict = verify_journal(killed, SPACE)
    assert verdict.broken is not None
    assert verdict.broken.seq == verdict.entries + 1 < 60
    assert f"{FILE}-wal" in verdict.broken.why


def test_what_is_ahead_and_cannot_be_looked_at_is_told_of(folder: Path) -> None:
    (folder / f"{FILE}-shm").symlink_to(f"{FILE}-shm")  # as in a folder that cannot be written
    assert verify_journal(folder, SPACE).notes == ()
    (folder / f"{FILE}-wal").write_bytes(b"the newest entries")
    verdict = verify_journal(folder, SPACE)
    assert verdict.is_sound
    assert verdict.notes == (f"what may be in {FILE}-wal could not be looked at",)


# While records are dropped.


def test_entries_that_are_no_longer_kept_are_no_damage(folder: Path) -> None:
    drop_until(folder, 5)
    verdict = verify_journal(folder, SPACE)
    assert verdict.is_sound
    assert not verdict.begins
    assert verdict.after is not None
    assert (verdict.after.seq, verdict.first) == (5, point(6))


def test_a_journal_whose_first_records_are_dropped_meanwhile_is_gone_through_from_there(
    tmp_path: Path,
) -> None:
    folder = keep(tmp_path, passing(10_000))
    dropped: list[int] = []

    def drop(done: int, total: int) -> None:
        if not dropped:
            dropped.append(done)
            drop_until(folder, 9_000)

    verdict = verify_journal(folder, SPACE, walked=drop)
    assert dropped
    assert verdict.is_sound
    assert (verdict.entries, verdict.first) == (1_000, EntryTime(9_001, AT + timedelta(seconds=9_001)))
