"""What a recording showed, which part of it, and how long is waited for the next."""

from datetime import timedelta
from math import inf

import pytest
from tests.audit.conversation import conversation, shown_by
from tests.space.table import START

from mew.audit.playing import Pace, Part, Played, Replay, Shown, in_words, read_seconds, read_speed
from mew.protocol.capability import Capability
from mew.space import Entry, Sent
from mew.space.state import SpaceState


def replayed(entries: list[Entry], state: SpaceState | None) -> list[Shown]:
    replay = Replay(state)
    return [shown for entry in entries for shown in replay.take(entry)]


# What was shown.


def test_a_recording_shows_what_the_space_showed_to_the_byte() -> None:
    table = conversation()
    assert [shown.raw for shown in replayed(table.entries, SpaceState())] == shown_by(table)


def test_what_was_shown_has_the_number_and_the_time_of_its_entry() -> None:
    table = conversation()
    entries = {entry.seq: entry for entry in table.entries}
    for shown in replayed(table.entries, SpaceState()):
        assert shown.at == entries[shown.seq].at


def test_from_the_state_in_the_middle_the_rest_is_shown_as_it_was() -> None:
    table, replay = conversation(), Replay(state := SpaceState())
    for entry in table.entries[:12]:
        replay.take(entry)
    rest = replayed(table.entries[12:], SpaceState.restore(state.snapshot()))
    assert [shown.raw for shown in rest] == shown_by(table)[-len(rest) :]
    assert rest


def test_without_a_state_envelopes_are_shown_as_they_were_sent_and_the_gateway_says_nothing() -> None:
    table = conversation()
    sent = [entry.event.raw for entry in table.entries if isinstance(entry.event, Sent)]
    assert [shown.raw for shown in replayed(table.entries[5:], None)] == sent[1:]


# Which of it.


def played(part: Part) -> tuple[list[int], list[int]]:
    recording = Played(conversation().entries, part)
    return [entry.seq for entry in recording.past()], [entry.seq for entry in recording.rest()]


def test_all_of_a_recording_is_played_where_nothing_is_said() -> None:
    assert played(Part()) == ([], [entry.seq for entry in conversation().entries])


def test_a_range_of_entries_begins_and_ends_with_those_named() -> None:
    assert played(Part(first=4, last=6)) == ([1, 2, 3], [4, 5, 6])


def test_a_range_of_time_ends_before_its_end() -> None:
    since, until = START + timedelta(seconds=2), START + timedelta(seconds=5)
    assert played(Part(since=since, until=until)) == ([1, 2, 3, 4, 5], [6, 7, 8])


def test_what_begins_after_the_end_is_nothing() -> None:
    assert played(Part(first=1000))[1] == []


def test_a_kind_may_be_a_glob() -> None:
    part = Part(kind=Capability.parse({"kind": "reasoning/*"}))
    found = [shown for shown in replayed(conversation().entries, SpaceState()) if part.fits(shown)]
    assert [shown.envelope.id for shown in found] == ["think-1", "think-2"]


def test_of_a_participant_is_what_it_sent() -> None:
    part = Part(participant="files")
    found = [shown for shown in replayed(conversation().entries, SpaceState()) if part.fits(shown)]
    assert [shown.envelope.id for shown in found] == ["response-2"]


# How long.


def test_a_wait_is_as_long_as_it_was_over_the_speed() -> None:
    assert Pace(1.0).wait_s(timedelta(seconds=2)) == 2
    assert Pace(10.0).wait_s(timedelta(seconds=2)) == 0.2
    assert Pace(0.5).wait_s(timedelta(seconds=1)) == 2
    assert Pace(inf).wait_s(timedelta(hours=2)) == 0


def test_a_long_wait_is_shortened_and_said() -> None:
    pace = Pace(10.0, idle_max_s=2.0)
    assert pace.wait_s(timedelta(hours=3)) == 2
    assert pace.is_shortened(timedelta(hours=3))
    assert not pace.is_shortened(timedelta(seconds=20))


def test_where_nothing_is_waited_for_only_what_took_a_minute_is_said() -> None:
    assert not Pace(inf).is_shortened(timedelta(seconds=59))
    assert Pace(inf).is_shortened(timedelta(seconds=60))


def test_a_clock_that_was_set_back_is_not_waited_for() -> None:
    assert Pace().wait_s(timedelta(seconds=-5)) == 0
    assert not Pace().is_shortened(timedelta(hours=-5))


def test_the_speed_changes_within_bounds() -> None:
    assert str(Pace(1.0).times(2)) == "2x"
    assert str(Pace(1.0).times(0.5)) == "0.5x"
    assert Pace(inf).times(2) == Pace(inf)
    assert Pace(inf).times(0.5).speed < inf
    assert Pace(0.01).times(0.5).speed == 0.01


@pytest.mark.parametrize(
    ("text", "speed"), [("1x", 1.0), ("10x", 10.0), ("0.5x", 0.5), ("10", 10.0), ("max", inf)]
)
def test_a_speed_is_read(text: str, speed: float) -> None:
    assert read_speed(text) == speed


@pytest.mark.parametrize("text", ["", "fast", "0x", "-1x", "10y", "nan", "1e3x", "9999999x"])
def test_what_is_no_speed_is_told(text: str) -> None:
    with pytest.raises(ValueError, match="write 1x, 10x"):
        read_speed(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("2s", 2.0), ("500ms", 0.5), ("1min", 60.0), ("1 h", 3600.0), ("0", 0.0), ("off", inf)],
)
def test_a_length_of_time_is_read(text: str, seconds: float) -> None:
    assert read_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "long", "-1s", "2 weeks"])
def test_what_is_no_length_of_time_is_told(text: str) -> None:
    with pytest.raises(ValueError, match="write 2s"):
        read_seconds(text)


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
    assert in_words(timedelta(seconds=seconds)) == words
