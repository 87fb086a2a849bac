"""What a recording showed, which part of it, and how long is waited for the next."""

from datetime import timedelta
from math import inf

import pytest
from tests.audit.conversation import RULES, conversation, shown_by
from tests.audit.kept import chat, record_of
from tests.space.table import START, Table

from mew.audit.playback.timeline import (
    PlaybackCursor,
    PlaybackRange,
    PlaybackSpeed,
    RecordedEnvelope,
    duration_in_words,
    parse_seconds,
    parse_speed,
    recorded_envelopes,
)
from mew.journal.record import Record
from mew.protocol.capability import Capability
from mew.protocol.envelopes import Envelopes
from mew.space import Sent


def records(table: Table) -> list[Record]:
    return [record_of(entry, decided) for entry, decided in zip(table.entries, table.decided, strict=True)]


def shown(table: Table) -> list[RecordedEnvelope]:
    return [one for record in records(table) for one in recorded_envelopes(record)]


# What was shown.


def test_a_recording_shows_what_the_space_showed_to_the_byte() -> None:
    table = conversation()
    assert [one.raw for one in shown(table)] == shown_by(table)


def test_what_was_shown_has_the_number_and_the_time_of_its_entry() -> None:
    table = conversation()
    times = {number: entry.at for entry in table.entries for number in range(entry.seq, entry.last + 1)}
    assert all(one.at == times[one.seq] for one in shown(table))
    batch = {one.envelope.id: one.seq for one in shown(table) if one.envelope.id.startswith("batch-")}
    assert batch == {"batch-1": 18, "batch-2": 19, "batch-3": 20}


def test_what_was_refused_at_its_place_was_not_shown_and_keeps_its_number() -> None:
    table = Table(RULES)
    raws = (chat("a", "nobody", "hi"), chat("b", "ann", "ho"), chat("c", "ann", "hu"))
    table.apply(Sent(Envelopes.decode(raws), (None,) * 3))
    assert [(one.seq, one.envelope.kind) for one in shown(table)] == [
        *((3, "chat"), (4, "chat"), (4, "system/error")),
    ]


# Which of it.


def played(part: PlaybackRange) -> tuple[list[int], list[int]]:
    recording = PlaybackCursor(records(conversation()), part)
    return [record.entry.seq for record in recording.past()], [
        record.entry.seq for record in recording.rest()
    ]


def test_all_of_a_recording_is_played_where_nothing_is_said() -> None:
    assert played(PlaybackRange()) == ([], [entry.seq for entry in conversation().entries])


def test_a_range_of_entries_begins_and_ends_with_those_named() -> None:
    assert played(PlaybackRange(first=4, last=6)) == ([1, 2, 3], [4, 5, 6])


def test_a_range_within_a_batch_shows_no_more_of_it() -> None:
    part = PlaybackRange(first=19, last=20)
    assert played(part) == (list(range(1, 18)), [18])
    assert [one.envelope.id for one in shown(conversation()) if part.fits(one)] == ["batch-2", "batch-3"]


def test_a_range_of_time_ends_before_its_end() -> None:
    since, until = START + timedelta(seconds=2), START + timedelta(seconds=5)
    assert played(PlaybackRange(since=since, until=until)) == ([1, 2, 3, 4, 5], [6, 7, 8])


def test_what_begins_after_the_end_is_nothing() -> None:
    assert played(PlaybackRange(first=1000))[1] == []


def test_a_kind_may_be_a_glob() -> None:
    part = PlaybackRange(kind=Capability.parse({"kind": "reasoning/*"}))
    found = [one for one in shown(conversation()) if part.fits(one)]
    assert [one.envelope.id for one in found] == ["think-1", "think-2"]


def test_of_a_participant_is_what_it_sent() -> None:
    part = PlaybackRange(participant="files")
    found = [one for one in shown(conversation()) if part.fits(one)]
    assert [one.envelope.id for one in found] == ["response-2"]


# How long.


def test_a_wait_is_as_long_as_it_was_over_the_speed() -> None:
    assert PlaybackSpeed(1.0).wait_s(timedelta(seconds=2)) == 2
    assert PlaybackSpeed(10.0).wait_s(timedelta(seconds=2)) == 0.2
    assert PlaybackSpeed(0.5).wait_s(timedelta(seconds=1)) == 2
    assert PlaybackSpeed(inf).wait_s(timedelta(hours=2)) == 0


def test_a_long_wait_is_shortened_and_said() -> None:
    pace = PlaybackSpeed(10.0, idle_max_s=2.0)
    assert pace.wait_s(timedelta(hours=3)) == 2
    assert pace.is_shortened(timedelta(hours=3))
    assert not pace.is_shortened(timedelta(seconds=20))


def test_where_nothing_is_waited_for_only_what_took_a_minute_is_said() -> None:
    assert not PlaybackSpeed(inf).is_shortened(timedelta(seconds=59))
    assert PlaybackSpeed(inf).is_shortened(timedelta(seconds=60))


def test_a_clock_that_was_set_back_is_not_waited_for() -> None:
    assert PlaybackSpeed().wait_s(timedelta(seconds=-5)) == 0
    assert not PlaybackSpeed().is_shortened(timedelta(hours=-5))


def test_the_speed_changes_within_bounds() -> None:
    assert str(PlaybackSpeed(1.0).times(2)) == "2x"
    assert str(PlaybackSpeed(1.0).times(0.5)) == "0.5x"
    assert PlaybackSpeed(inf).times(2) == PlaybackSpeed(inf)
    assert PlaybackSpeed(inf).times(0.5).speed < inf
    assert PlaybackSpeed(0.01).times(0.5).speed == 0.01


@pytest.mark.parametrize(
    ("text", "speed"), [("1x", 1.0), ("10x", 10.0), ("0.5x", 0.5), ("10", 10.0), ("max", inf)]
)
def test_a_speed_is_read(text: str, speed: float) -> None:
    assert parse_speed(text) == speed


@pytest.mark.parametrize("text", ["", "fast", "0x", "-1x", "10y", "nan", "1e3x", "9999999x"])
def test_what_is_no_speed_is_told(text: str) -> None:
    with pytest.raises(ValueError, match="write 1x, 10x"):
        parse_speed(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("2s", 2.0), ("500ms", 0.5), ("1min", 60.0), ("1 h", 3600.0), ("0", 0.0), ("off", inf)],
)
def test_a_length_of_time_is_read(text: str, seconds: float) -> None:
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "long", "-1s", "2 weeks"])
def test_what_is_no_length_of_time_is_told(text: str) -> None:
    with pytest.raises(ValueError, match="write 2s"):
        parse_seconds(text)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.25, "0.2 s"),
        (5, "5 s"),
        (61, "1 min 1 s"),
        (11_520, "3 h 12 min"),
        (10_800, "3 h"),
        (90_000, "1 d 1 h"),
        (86_405, "1 d"),
    ],
)
def test_a_length_of_time_is_said_in_its_two_largest_units(seconds: float, words: str) -> None:
    assert duration_in_words(timedelta(seconds=seconds)) == words
