"""The pace of a replay, by a clock that is set by hand, and what its keys do."""

from datetime import datetime, timedelta
from math import inf

from tests.audit.kept import JudgedTable, record_of
from tests.space.table import capabilities

from mew.audit.playback.timeline import PlaybackRange, PlaybackSpeed
from mew.cli.commands.replay.player import Ended, Player
from mew.journal.record import Record
from mew.protocol.capability import Capability
from mew.protocol.envelope import Envelope, ParticipantId
from mew.space import Entry, Rules


class Typist:
    """Types keys at given seconds; time passes only while somebody waits."""

    def __init__(self, *typed: tuple[float, str]) -> None:
        self.time = 0.0
        self._typed = list(typed)

    def now(self) -> float:
        return self.time

    async def within(self, seconds: float | None) -> str | None:
        if self._typed and (seconds is None or self._typed[0][0] <= self.time + max(0.0, seconds)):
            self.time, key = max(self.time, self._typed[0][0]), self._typed.pop(0)[1]
            return key
        assert seconds is not None, "waits for ever"
        self.time += max(0.0, seconds)
        return None


class Watched:
    """What is shown, and at which second of the clock."""

    def __init__(self, typist: Typist) -> None:
        self._typist = typist
        self.said: list[tuple[float, str]] = []

    def show(self, seq: int, at: datetime, envelope: Envelope, raw: bytes) -> None:
        self._note(envelope.id)

    def remark(self, text: str) -> None:
        self._note(text)

    def _note(self, text: str) -> None:
        self.said.append((round(self._typist.time, 6), text))


def recording(*gaps_s: float) -> list[Record]:
    """A chat at the beginning, and one after each gap: `m0`, `m1` and so on."""
    table = JudgedTable(Rules(id="desk", profiles={ParticipantId("ann"): capabilities(["*"])}))
    for n, gap_s in enumerate((0.0, *gaps_s)):
        table.now += timedelta(seconds=gap_s)
        table.send("ann", "chat" if n % 2 == 0 else "acme/note", id=f"m{n}")
    return [record_of(entry, decided) for entry, decided in zip(table.entries, table.decided, strict=True)]


async def play(
    records: list[Record], typist: Typist, pace: PlaybackSpeed, part: PlaybackRange | None = None
) -> tuple[Ended, list[tuple[float, str]]]:
    watched = Watched(typist)
    player = Player(part or PlaybackRange(), watched, typist, pace)
    return await player.play(records), watched.said


async def test_each_comes_after_as_long_as_it_took() -> None:
    ended, said = await play(recording(2, 1, 0), Typist(), PlaybackSpeed(1.0))
    assert said == [(0, "m0"), (2, "m1"), (3, "m2"), (3, "m3")]
    assert ended is Ended.PLAYED


async def test_ten_times_as_fast_takes_a_tenth() -> None:
    _, said = await play(recording(2, 1), Typist(), PlaybackSpeed(10.0))
    assert said == [(0, "m0"), (0.2, "m1"), (0.3, "m2")]


async def test_a_long_pause_is_short_and_said() -> None:
    _, said = await play(recording(3600, 1), Typist(), PlaybackSpeed(1.0, idle_max_s=2))
    assert said == [(0, "m0"), (2, "… 1 h later"), (2, "m1"), (3, "m2")]


async def test_as_fast_as_it_goes_nothing_is_waited_for() -> None:
    _, said = await play(recording(50, 70), Typist(), PlaybackSpeed(inf))
    assert said == [(0, "m0"), (0, "m1"), (0, "… 1 min 10 s later"), (0, "m2")]


async def test_what_is_not_shown_is_not_waited_for_by_itself() -> None:
    part = PlaybackRange(kind=Capability.parse({"kind": "chat"}))
    _, said = await play(recording(2, 2), Typist(), PlaybackSpeed(1.0, idle_max_s=3), part)
    assert said == [(0, "m0"), (3, "… 4 s later"), (3, "m2")]


async def test_what_is_performed_is_waited_for_shown_or_not() -> None:
    typist, performed = Typist(), list[tuple[float, int]]()
    watched, part = Watched(typist), PlaybackRange(participant="nobody")

    def perform(entry: Entry) -> None:
        performed.append((typist.time, entry.seq))

    await Player(part, watched, typist, PlaybackSpeed(1.0), perform).play(recording(2, 1))
    assert performed == [(0, 1), (0, 2), (2, 3), (3, 4)]
    assert watched.said == []


async def test_space_stops_the_clock_of_the_recording_and_starts_it_again() -> None:
    typed = Typist((1, " "), (100, " "))
    _, said = await play(recording(2), typed, PlaybackSpeed(1.0))
    assert said == [(0, "m0"), (1, "paused; space goes on"), (100, "goes on"), (101, "m1")]


async def test_plus_halves_what_is_left_to_wait_and_minus_doubles_it() -> None:
    _, said = await play(recording(3), Typist((1, "+")), PlaybackSpeed(1.0))
    assert said == [(0, "m0"), (1, "speed 2x"), (2, "m1")]
    _, said = await play(recording(2), Typist((1, "-")), PlaybackSpeed(1.0, idle_max_s=60))
    assert said == [(0, "m0"), (1, "speed 0.5x"), (3, "m1")]


async def test_the_speed_can_be_changed_while_it_is_paused() -> None:
    typed = Typist((1, " "), (50, "+"), (100, " "))
    _, said = await play(recording(3), typed, PlaybackSpeed(1.0))
    assert said[-2:] == [(100, "goes on"), (101, "m1")]


async def test_q_ends_it_also_while_it_is_paused() -> None:
    assert await play(recording(2), Typist((1, "q")), PlaybackSpeed(1.0)) == (Ended.QUIT, [(0, "m0")])
    ended, said = await play(recording(2), Typist((1, " "), (5, "q")), PlaybackSpeed(1.0))
    assert (ended, said[-1]) == (Ended.QUIT, (1, "paused; space goes on"))


async def test_another_key_does_nothing() -> None:
    _, said = await play(recording(2), Typist((1, "x")), PlaybackSpeed(1.0))
    assert said == [(0, "m0"), (2, "m1")]


async def test_keys_are_minded_where_nothing_is_waited_for() -> None:
    ended, said = await play(recording(1, 1), Typist((0, "q")), PlaybackSpeed(inf))
    assert (ended, said) == (Ended.QUIT, [])


async def test_what_a_slow_terminal_costs_is_made_up_for() -> None:
    typist = Typist()

    class Slow(Watched):
        def show(self, seq: int, at: datetime, envelope: Envelope, raw: bytes) -> None:
            super().show(seq, at, envelope, raw)
            typist.time += 0.25

    slow = Slow(typist)
    await Player(PlaybackRange(), slow, typist, PlaybackSpeed(1.0)).play(recording(1, 1))
    assert [at for at, _ in slow.said] == [0, 1, 2]
