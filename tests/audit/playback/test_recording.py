"""What can be played of a journal, from where its state is known."""

from datetime import timedelta
from pathlib import Path

import pytest
from tests.audit.conversation import conversation, shown_by
from tests.audit.kept import drop_until, keep, opened, put_records, records_in, save_snapshot
from tests.space.table import START

from mew.audit.playback.recording import recording_from_journal
from mew.audit.playback.timeline import PlaybackCursor, PlaybackRange, recorded_envelopes
from mew.journal.files.database import Damaged
from mew.journal.record import ChainLink
from mew.space import Space


def shown(folder: Path, part: PlaybackRange) -> list[bytes]:
    with opened(folder) as (journal, _):
        recording = recording_from_journal(journal, part)
        played = PlaybackCursor(recording.records, part)
        for _ in played.past():
            pass
        return [one.raw for record in played.rest() for one in recorded_envelopes(record) if part.fits(one)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return keep(tmp_path, conversation().entries)


def test_a_recording_begins_with_the_last_state_before_what_is_wanted(folder: Path) -> None:
    space = Space()
    for entry in conversation().entries[:10]:
        space.apply(entry)
    (row,) = (row for row in records_in(folder) if row.last == 10)
    save_snapshot(folder, ChainLink(10, row.hash), space.state.snapshot())
    with opened(folder) as (journal, _):
        assert recording_from_journal(journal, PlaybackRange(first=15)).after == 10
        assert recording_from_journal(journal, PlaybackRange(since=START + timedelta(hours=2))).after == 10
        assert recording_from_journal(journal, PlaybackRange(first=5)).after == 0
    assert shown(folder, PlaybackRange(first=15)) == shown_by(conversation(), after=14)


@pytest.mark.parametrize("seconds", [-1, 0, 3, 11.5, 70, 5_000, 20_000])
def test_a_moment_is_found_by_halves(folder: Path, seconds: float) -> None:
    since, table = START + timedelta(seconds=seconds), conversation()
    before = max((entry.last for entry in table.entries if entry.at < since), default=0)
    assert shown(folder, PlaybackRange(since=since)) == shown_by(table, after=before)


def test_without_its_beginning_what_is_left_is_shown_with_what_the_gateway_said(folder: Path) -> None:
    drop_until(folder, 9)
    with opened(folder) as (journal, _):
        recording = recording_from_journal(journal, PlaybackRange())
        assert (recording.after, recording.state) == (9, None)
    assert shown(folder, PlaybackRange()) == shown_by(conversation(), after=9)


def test_an_entry_that_is_missing_is_named(folder: Path) -> None:
    put_records(folder, [row for row in records_in(folder) if row.last != 8])
    with opened(folder) as (journal, _), pytest.raises(Damaged, match="entry 8 is missing"):
        list(recording_from_journal(journal, PlaybackRange()).records)
