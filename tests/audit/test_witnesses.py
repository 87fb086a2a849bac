"""What others say of a chain, snapshots and checkpoints, tells what the chain itself cannot."""

import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from tests.audit.kept import (
    AT,
    ENTRIES,
    KEY,
    OTHER,
    drop_until,
    keep,
    put_turns,
    rehash,
    sent,
    sign,
    stored,
    turns_in,
)

from mew.audit.verdict import Point
from mew.audit.verify import verify_journal
from mew.log.base import Mark
from mew.log.snapshots import Snapshot, Snapshots
from mew.space import Entry, TimePassed

PUBLIC = KEY.public_key()
COUNT = len(ENTRIES)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return keep(tmp_path, 1, 5)


def at(seq: int) -> Point:
    return Point(seq, AT + timedelta(seconds=seq))


# Snapshots.


def test_a_snapshot_tells_that_the_last_entries_are_missing(home: Path) -> None:
    last = stored(home)[-1]
    Snapshots(home).save(Snapshot(Mark(last.seq, AT, 0, 0), last.hash), [b"state"])
    assert verify_journal(home).is_sound
    put_turns(home, {last: packed for last, packed in turns_in(home).items() if last <= 6})
    verdict = verify_journal(home)
    assert verdict.broken is not None
    assert verdict.broken.seq == 7
    assert f"{COUNT}.snapshot says that there was entry {COUNT}" in verdict.broken.why
    assert verdict.last == at(6)


def test_a_snapshot_tells_that_the_chain_was_made_anew(home: Path) -> None:
    Snapshots(home).save(Snapshot(Mark(6, AT, 0, 0), stored(home)[5].hash), [b"state"])
    put_turns(home, rehash([Entry(1, AT, TimePassed()), *ENTRIES[1:]]))
    verdict = verify_journal(home)
    assert verdict.broken is not None
    assert verdict.broken.seq == 1
    assert "6.snapshot says that entry 6 was another" in verdict.broken.why


def test_a_snapshot_that_is_not_whole_says_nothing(home: Path) -> None:
    Snapshots(home).save(Snapshot(Mark(6, AT, 0, 0), bytes(32)), [b"state"])
    file = home / "6.snapshot"
    file.write_bytes(file.read_bytes()[:-1])
    assert verify_journal(home).is_sound


# Checkpoints.


def forged() -> list[Entry]:
    """Another entry 4, and all after it as they were."""
    raw = b'{"protocol":"mew/v0.4","id":"e2","from":"ann","kind":"chat","payload":{"text":"never mind"}}'
    return [*ENTRIES[:3], Entry(4, ENTRIES[3].at, sent(raw)), *ENTRIES[4:]]


def test_a_chain_that_was_made_anew_is_sound_by_itself(home: Path) -> None:
    put_turns(home, rehash(forged()))
    assert verify_journal(home).is_sound


def test_a_checkpoint_tells_that_the_chain_was_made_anew_and_between_which_entries(home: Path) -> None:
    sign(home, 2, 7)
    put_turns(home, rehash(forged()))
    verdict = verify_journal(home, [PUBLIC])
    assert verdict.broken is not None
    assert verdict.broken.seq == 3
    assert "one of the entries 3 to 7 is not what was written" in verdict.broken.why
    assert (verdict.entries, verdict.last) == (2, at(2))


def test_checkpoints_made_anew_too_are_found_with_the_key(home: Path) -> None:
    put_turns(home, rehash(forged()))
    sign(home, 2, 7, key=OTHER)
    assert verify_journal(home).is_sound
    verdict = verify_journal(home, [PUBLIC])
    assert not verdict.is_sound
    assert verdict.broken is None
    assert verdict.checkpoints.wrong[0] == "the checkpoint after entry 2 was not signed with this key"


def test_checkpoints_that_fit_are_counted(home: Path) -> None:
    sign(home, 2, 7)
    unchecked = verify_journal(home).checkpoints
    assert (unchecked.fit, unchecked.checked) == (2, False)
    checked = verify_journal(home, [OTHER.public_key(), PUBLIC]).checkpoints
    assert (checked.fit, checked.checked, len(checked.keys)) == (2, True, 1)
    assert checked.last == Point(7, AT + timedelta(minutes=7))


def test_with_a_key_something_must_be_signed(home: Path) -> None:
    verdict = verify_journal(home, [PUBLIC])
    assert not verdict.is_sound
    assert "nothing here was signed" in verdict.checkpoints.wrong[0]


def test_checkpoints_older_than_what_is_kept_cannot_be_compared_but_that_where_it_begins_can(
    home: Path,
) -> None:
    sign(home, 2, 6, 8)
    drop_until(home, 6)
    checkpoints = verify_journal(home, [PUBLIC]).checkpoints
    assert (checkpoints.fit, checkpoints.before) == (2, 1)
    with closing(sqlite3.connect(home / "entries.db")) as connection:
        connection.execute("UPDATE journal SET hash = ?", (bytes(32),))
        connection.commit()
    verdict = verify_journal(home)
    assert verdict.broken is not None
    assert verdict.broken.seq == 7
    assert "says that entry 6 was another" in verdict.broken.why


def test_a_checkpoint_tells_that_the_last_entries_are_missing(home: Path) -> None:
    sign(home, 8)
    put_turns(home, {last: packed for last, packed in turns_in(home).items() if last <= 6})
    verdict = verify_journal(home, [PUBLIC])
    assert verdict.broken is not None
    assert verdict.broken.seq == 7
    assert "says that there was entry 8" in verdict.broken.why


def test_a_checkpoint_of_another_space_is_not_believed(home: Path) -> None:
    sign(home, 2, space="table")
    assert verify_journal(home).checkpoints.wrong == ("the checkpoint after entry 2 is of space table",)


def test_a_line_that_was_cut_off_is_told_and_one_that_was_changed_is_a_fault(home: Path) -> None:
    sign(home, 2, 7)
    file = home / "checkpoints.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(lines[0] + lines[1][:40])
    verdict = verify_journal(home, [PUBLIC])
    assert verdict.is_sound
    assert verdict.notes == ("line 2 of checkpoints.jsonl was cut off and does not count",)
    file.write_bytes(lines[0].replace(b'"seq"', b'"sec"') + lines[1])
    assert verify_journal(home).checkpoints.wrong == ("line 1 of checkpoints.jsonl is no checkpoint",)


def test_many_wrong_checkpoints_are_counted_not_listed(home: Path) -> None:
    sign(home, *range(1, COUNT + 1), key=OTHER)
    wrong = verify_journal(home, [PUBLIC]).checkpoints.wrong
    assert (len(wrong), wrong[-1]) == (11, f"and so on, {COUNT} in all")
