"""Every entry of a journal is what was written, or the first that is not is named."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.audit.kept import AT, ENTRIES, KEY, drop_until, keep, put_turns, stored, turns_in

from mew.audit.verdict import Point
from mew.audit.verify import verify_journal
from mew.log.base import LogUnavailable
from mew.log.database import Database, Durability
from mew.log.reading import JournalReader
from mew.log.record import Link, first_link, pack, pack_again, unpack
from mew.space import Entry, TimePassed

PUBLIC = KEY.public_key()
COUNT = len(ENTRIES)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return keep(tmp_path, 1, 5)


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return keep(tmp_path_factory.mktemp("pristine"), 1, 5)


def at(seq: int) -> Point:
    return Point(seq, AT + timedelta(seconds=seq))


def test_a_journal_that_was_left_alone_is_sound(home: Path) -> None:
    told: list[tuple[int, int]] = []
    verdict = verify_journal(home, walked=lambda done, total: told.append((done, total)))
    assert verdict.is_sound
    assert verdict.begins
    assert (verdict.space, verdict.entries) == ("desk", COUNT)
    assert (verdict.first, verdict.last) == (at(1), at(COUNT))


def test_a_journal_without_entries_is_sound(tmp_path: Path) -> None:
    verdict = verify_journal(keep(tmp_path, entries=[]))
    assert verdict.is_sound
    assert (verdict.entries, verdict.first, verdict.last) == (0, None, None)


# What is done to the rows.


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_bit_flipped_in_any_entry_is_found_and_the_entry_is_named(
    pristine: Path, data: st.DataObject
) -> None:
    turns = turns_in(pristine)
    last = data.draw(st.sampled_from(sorted(turns)))
    packed = bytearray(turns[last])
    place = data.draw(st.integers(0, len(packed) - 1))
    packed[place] ^= 1 << data.draw(st.integers(0, 7))
    ends = accumulate(len(row.content) + len(row.hash) for row in unpack(turns[last]))
    expected = next(row.seq for row, end in zip(unpack(turns[last]), ends, strict=True) if place < end)
    home = pristine.with_name("flipped")
    if not home.exists():
        shutil.copytree(pristine, home)
    put_turns(home, turns | {last: bytes(packed)})
    verdict = verify_journal(home)
    assert verdict.broken is not None
    assert verdict.broken.seq == expected
    assert verdict.entries == expected - 1
    assert verdict.last == (at(expected - 1) if expected > 1 else None)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_any_byte_flipped_in_the_file_is_found_or_changes_no_entry(
    pristine: Path, data: st.DataObject
) -> None:
    content = bytearray((pristine / "entries.db").read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    home = pristine.with_name("spoilt")
    home.mkdir(exist_ok=True)
    (home / "entries.db").write_bytes(content)
    try:
        verdict = verify_journal(home)
    except LogUnavailable:
        return  # it does not even look like a journal
    if verdict.is_sound:
        with JournalReader(home) as reader:
            assert list(reader.rows()) == stored(pristine)


def without(*numbers: int) -> Callable[[dict[int, bytes]], dict[int, bytes]]:
    def remove(turns: dict[int, bytes]) -> dict[int, bytes]:
        return {
            last: pack_again(row for row in unpack(packed) if row.seq not in numbers)
            for last, packed in turns.items()
        }

    return remove


def swapped(turns: dict[int, bytes]) -> dict[int, bytes]:
    rows = list(unpack(turns[6]))
    rows[1], rows[2] = rows[2], rows[1]
    return turns | {6: pack_again(rows)}


def inserted(turns: dict[int, bytes]) -> dict[int, bytes]:
    """Another entry 4, chained to entry 3, in front of the one there was."""
    rows = list(unpack(turns[6]))
    (forged,) = unpack(pack([Entry(4, AT, TimePassed())], Link(3, rows[1].hash))[0])
    return turns | {6: pack_again([*rows[:2], forged, *rows[2:]])}


def repeated(turns: dict[int, bytes]) -> dict[int, bytes]:
    rows = list(unpack(turns[6]))
    return turns | {6: pack_again([*rows[:3], rows[1], *rows[3:]])}


def numbered_0(turns: dict[int, bytes]) -> dict[int, bytes]:
    """Where readers skip it."""
    (forged,) = unpack(pack([Entry(0, AT, TimePassed())], first_link("desk"))[0])
    rows = list(unpack(turns[6]))
    return turns | {6: pack_again([*rows[:2], forged, *rows[2:]])}


def altered(turns: dict[int, bytes]) -> dict[int, bytes]:
    return turns | {6: turns[6].replace(b"read_file", b"read_fire")}


def renumbered(turns: dict[int, bytes]) -> dict[int, bytes]:
    rows = list(unpack(turns[6]))
    rows[3] = rows[3]._replace(content=(4).to_bytes(8, "big") + rows[3].content[8:])
    return turns | {6: pack_again(rows)}


TAMPERED = {
    "one with the number of another": (renumbered, 5, "entry 5 is not what was written: its number is 4"),
    "an entry altered": (altered, 4, "entry 4 is not what was written"),
    "the first removed": (without(1), 1, "a turn without entries"),
    "one removed in the middle of a turn": (without(4), 4, "entry 4 is missing, the next one is 5"),
    "several removed": (without(4, 5), 4, "entry 4 is missing, the next one is 6"),
    "the last of a turn removed": (
        without(6),
        5,
        "entry 5 is not where it was written, but under the number 6",
    ),
    "a whole turn removed": (
        lambda turns: {last: packed for last, packed in turns.items() if last != 6},
        2,
        "entry 2 is missing, the next one is 7",
    ),
    "two swapped": (swapped, 3, "entry 3 is missing, the next one is 4"),
    "one put in": (inserted, 4, "there are two entries 4"),
    "one put in twice": (repeated, 3, "there are two entries 3"),
    "one put in where nobody reads it": (numbered_0, 4, "after entry 3 an entry 0 was put in"),
    "a turn put in that is empty": (lambda turns: turns | {3: b""}, 2, "a turn without entries was put in"),
    "a turn put in before the first": (lambda turns: turns | {-3: turns[1]}, 1, "under the number -3"),
    "a turn cut off": (lambda turns: turns | {6: turns[6][:-1]}, 6, "breaks off"),
    "a turn that goes on": (lambda turns: turns | {6: turns[6] + b"x"}, 7, "breaks off"),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_what_was_done_to_the_entries_is_found(home: Path, name: str) -> None:
    tamper, seq, why = TAMPERED[name]
    put_turns(home, tamper(turns_in(home)))
    verdict = verify_journal(home)
    assert verdict.broken is not None
    assert verdict.broken.seq == seq
    assert why in verdict.broken.why
    assert verdict.entries == seq - 1


def test_a_turn_that_is_text_is_found(home: Path) -> None:
    with closing(sqlite3.connect(home / "entries.db")) as connection:
        connection.execute("UPDATE turns SET entries = 'text' WHERE last = 6")
        connection.commit()
    verdict = verify_journal(home)
    assert verdict.broken is not None
    assert verdict.broken.seq == 2


def test_a_journal_of_another_space_does_not_pass_for_this_one(home: Path) -> None:
    with closing(sqlite3.connect(home / "entries.db")) as connection:
        connection.execute("UPDATE journal SET space = 'table'")
        connection.commit()
    verdict = verify_journal(home)
    assert verdict.broken is not None
    assert verdict.broken.seq == 1
    assert "'table'" in verdict.broken.why


def test_a_damaged_page_is_told_with_what_is_sound_before_it(tmp_path: Path) -> None:
    many = [Entry(n, AT + timedelta(seconds=n), TimePassed()) for n in range(1, 2_001)]
    home = keep(tmp_path, *[20] * 100, entries=many)
    file = home / "entries.db"
    content = bytearray(file.read_bytes())
    content[20 * 4096 : 20 * 4096 + 4096] = bytes(4096)
    file.write_bytes(content)
    verdict = verify_journal(home)
    assert verdict.broken is not None
    assert verdict.broken.seq is not None
    assert 100 < verdict.broken.seq == verdict.entries + 1 < 2_000


def test_a_file_that_is_no_journal_is_not_sound(home: Path) -> None:
    (home / "entries.db").write_bytes(b"x" * 8192)
    verdict = verify_journal(home)
    assert verdict.broken is not None
    assert verdict.broken.seq is None
    assert verdict.space == "desk"


def test_a_table_that_is_another_hides_no_entries(home: Path) -> None:
    """With the key of the turns written otherwise none of them would be found."""
    file = home / "entries.db"
    file.write_bytes(file.read_bytes().replace(b"last INTEGER PRIMARY KEY", b"last INTEGER_PRIMARY KEY"))
    verdict = verify_journal(home)
    assert verdict.broken is not None
    assert "tables are not those of a journal" in verdict.broken.why


def test_a_page_that_lost_its_last_turn_is_found(home: Path) -> None:
    """Of the page with the turns, which has a page of its own, the count of what is in it: three."""
    file = home / "entries.db"
    content = bytearray(file.read_bytes())
    with closing(sqlite3.connect(file)) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'turns'").fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    at_count = (page - 1) * size + 4
    assert content[at_count] == 3
    content[at_count] = 2
    file.write_bytes(content)
    verdict = verify_journal(home)
    assert verdict.broken is not None
    assert verdict.broken.seq is None
    assert "the file is damaged" in verdict.broken.why
    assert verdict.last == at(6)


def test_a_folder_without_a_journal_is_no_verdict(tmp_path: Path) -> None:
    with pytest.raises(LogUnavailable, match="there is no journal here"):
        verify_journal(tmp_path)


def test_entries_written_ahead_that_a_damage_took_are_missed(tmp_path: Path) -> None:
    home = keep(tmp_path, 3, entries=ENTRIES[:3])
    database = Database.open(home / "entries.db", "desk", Durability.PROCESS)
    end = Link(3, stored(home)[-1].hash)
    for entry in ENTRIES[3:]:
        packed, end = pack([entry], end)
        database.write(end.seq, packed)
    killed = tmp_path / "killed"
    shutil.copytree(home, killed, ignore=shutil.ignore_patterns("*-shm"))
    database.close()
    assert verify_journal(killed).entries == COUNT
    (killed / "entries.db-shm").unlink()
    ahead = bytearray((killed / "entries.db-wal").read_bytes())
    ahead[32 + 4 * (24 + 4096) + 1000] ^= 1
    (killed / "entries.db-wal").write_bytes(ahead)
    verdict = verify_journal(killed)
    assert verdict.broken is not None
    assert verdict.broken.seq == verdict.entries + 1 < COUNT
    assert "entries.db-wal" in verdict.broken.why


def test_what_is_ahead_and_cannot_be_looked_at_is_told_of(tmp_path: Path) -> None:
    home = keep(tmp_path, 3)
    (home / "entries.db-shm").symlink_to("entries.db-shm")  # as in a folder that cannot be written
    assert verify_journal(home).notes == ()
    (home / "entries.db-wal").write_bytes(b"the newest entries")
    verdict = verify_journal(home)
    assert verdict.is_sound
    assert verdict.notes == ("what may be in entries.db-wal could not be looked at",)


# While entries are dropped.


def test_entries_that_are_no_longer_kept_are_no_damage(home: Path) -> None:
    drop_until(home, 6)
    verdict = verify_journal(home)
    assert verdict.is_sound
    assert not verdict.begins
    assert verdict.after is not None
    assert (verdict.after.seq, verdict.first) == (6, at(7))


def test_a_journal_whose_first_entries_are_dropped_meanwhile_is_gone_through_from_there(
    tmp_path: Path,
) -> None:
    many = [Entry(n, AT + timedelta(seconds=n), TimePassed()) for n in range(1, 10_001)]
    home = keep(tmp_path, *[50] * 200, entries=many)
    dropped: list[int] = []

    def drop(done: int, total: int) -> None:
        if not dropped:
            dropped.append(done)
            drop_until(home, 9_000)

    verdict = verify_journal(home, walked=drop)
    assert dropped
    assert verdict.is_sound
    assert (verdict.first, verdict.last) == (at(9_001), at(10_000))
