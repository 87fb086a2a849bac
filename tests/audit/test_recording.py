"""What can be played of a journal, from where its state is known."""

from datetime import timedelta
from pathlib import Path

import pytest
from tests.audit.conversation import SPACE, conversation, journal_of, shown_by
from tests.log.journal import fill, snapshot
from tests.space.table import START

from mew.audit.playing import Part, Played, Replay
from mew.audit.recording import of_journal
from mew.log.base import Mark
from mew.log.database import Damaged, Database, Durability
from mew.log.opening import FILE
from mew.log.reading import JournalReader
from mew.log.record import Link, pack
from mew.log.sqlite import SqliteLog
from mew.space import Entry, Space


def shown(folder: Path, part: Part) -> list[bytes]:
    with JournalReader(folder / SPACE) as reader:
        recording = of_journal(reader, part)
        replay, played = Replay(recording.state), Played(recording.entries, part)
        for entry in played.past():
            replay.take(entry)
        return [one.raw for entry in played.rest() for one in replay.take(entry)]


async def with_snapshot(folder: Path, after: int) -> None:
    entries, space, log = conversation().entries, Space(), SqliteLog(folder / SPACE, SPACE)
    await fill(log, entries[:after])
    for entry in entries[:after]:
        space.apply(entry)
    await snapshot(log, Mark(after, entries[after - 1].at, 0, 0), space.state.snapshot())
    await fill(log, entries[after:])
    log.close()


def without_beginning(folder: Path, entries: list[Entry]) -> None:
    """A journal that begins with the first of these, and has no snapshot."""
    after = Link(entries[0].seq - 1, bytes(32))
    (folder / SPACE).mkdir()
    database = Database.create(folder / SPACE / FILE, SPACE, after, Durability.PROCESS)
    packed, end = pack(entries, after)
    database.write(end.seq, packed)
    database.close()


async def test_a_recording_begins_with_the_last_state_before_what_is_wanted(tmp_path: Path) -> None:
    await with_snapshot(tmp_path, after=10)
    with JournalReader(tmp_path / SPACE) as reader:
        assert of_journal(reader, Part(first=15)).after == 10
        assert of_journal(reader, Part(since=START + timedelta(hours=2))).after == 10
        assert of_journal(reader, Part(first=5)).after == 0
    assert shown(tmp_path, Part(first=15)) == shown_by(conversation(), after=14)


@pytest.mark.parametrize("seconds", [-1, 0, 3, 11.5, 70, 5_000, 20_000])
async def test_a_moment_is_found_by_halves(tmp_path: Path, seconds: float) -> None:
    since, table = START + timedelta(seconds=seconds), conversation()
    await journal_of(table.entries, tmp_path)
    before = sum(1 for entry in table.entries if entry.at < since)
    assert shown(tmp_path, Part(since=since)) == shown_by(table, after=before)


async def test_without_its_beginning_only_what_was_sent_is_known(tmp_path: Path) -> None:
    without_beginning(tmp_path, conversation().entries[9:])
    with JournalReader(tmp_path / SPACE) as reader:
        recording = of_journal(reader, Part())
        assert (recording.after, recording.state) == (9, None)
        assert len(list(recording.entries)) == len(conversation().entries) - 9


async def test_an_entry_that_is_missing_is_named(tmp_path: Path) -> None:
    entries = conversation().entries
    without_beginning(tmp_path, [*entries[3:7], *entries[8:]])
    with JournalReader(tmp_path / SPACE) as reader, pytest.raises(Damaged, match="entry 8 is missing"):
        list(of_journal(reader, Part()).entries)
