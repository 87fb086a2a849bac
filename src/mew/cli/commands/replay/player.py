"""Plays a recording at its pace: waits, shows, and minds the keys."""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import Final

from mew.audit.playback.timeline import PlaybackRange, PlaybackSpeed, duration_in_words, recorded_envelopes
from mew.cli.render.timeline import EnvelopeOutput
from mew.journal.record import Record
from mew.space import Entry

from .keyboard import QUIT, Keys

__all__ = ["Ended", "Player"]

_BEHIND_MAX_S: Final = 0.5  # what a slow terminal costs is made up for, but not by leaps
_SOME: Final = 256
_NOTHING: Final = timedelta()


class Ended(Enum):
    """How it ended: all was played, or somebody wanted no more."""

    PLAYED = auto()
    QUIT = auto()


class Player:
    """Takes its time for what is shown; with `perform`, for every entry, which is then performed.

    Space pauses and goes on, `+` and `-` change the speed, `q` ends it.
    """

    def __init__(
        self,
        part: PlaybackRange,
        output: EnvelopeOutput,
        keys: Keys,
        pace: PlaybackSpeed,
        perform: Callable[[Entry], None] | None = None,
    ) -> None:
        self._part = part
        self._output = output
        self._keys = keys
        self._pace = pace
        self._perform = perform
        self.shown = 0
        """Envelopes so far."""
        self._paused = False
        self._due_s = 0.0

    async def play(self, records: Iterable[Record]) -> Ended:
        self._due_s = self._keys.now()
        waited_for: datetime | None = None
        shown_last: datetime | None = None
        for record in records:
            entry = record.entry
            shown = [one for one in recorded_envelopes(record) if self._part.fits(one)]
            gap = _NOTHING
            if shown or self._perform is not None:
                gap = entry.at - (waited_for or entry.at)
                waited_for = entry.at
            elif entry.seq % _SOME:
                continue
            if await self._wait(gap) is Ended.QUIT:
                return Ended.QUIT
            if self._perform is not None:
                self._perform(entry)
            for one in shown:
                self._say_gap(one.at - (shown_last or one.at))
                self._output.show(one.seq, one.at, one.envelope, one.raw)
                shown_last = one.at
            self.shown += len(shown)
        return Ended.PLAYED

    def _say_gap(self, gap: timedelta) -> None:
        if self._pace.is_shortened(gap):
            self._output.remark(f"… {duration_in_words(gap)} later")

    async def _wait(self, gap: timedelta) -> Ended:
        """Until the next is due. Where the speed changes meanwhile, what is left of the wait changes with it."""
        now_s, whole_s = self._keys.now(), self._pace.wait_s(gap)
        due_s = max(self._due_s, now_s - _BEHIND_MAX_S) + whole_s
        left = 1.0
        while True:
            key = await self._keys.within(None if self._paused else due_s - now_s)
            now_s = self._keys.now()
            if key is None:
                self._due_s = due_s
                return Ended.PLAYED
            if key == QUIT:
                return Ended.QUIT
            if not self._paused and whole_s:
                left = max(0.0, due_s - now_s) / whole_s
            self._press(key)
            whole_s = self._pace.wait_s(gap)
            due_s = now_s + left * whole_s

    def _press(self, key: str) -> None:
        match key:
            case " ":
                self._paused = not self._paused
                self._output.remark("paused; space goes on" if self._paused else "goes on")
            case "+" | "=":
                self._pace = self._pace.times(2)
                self._output.remark(f"speed {self._pace}")
            case "-" | "_":
                self._pace = self._pace.times(0.5)
                self._output.remark(f"speed {self._pace}")
