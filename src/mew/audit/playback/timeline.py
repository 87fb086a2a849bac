"""PURE. The timeline of a playback: which envelopes, which range, and the delay before the next."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import chain
from math import inf, isinf
from typing import Final

from msgspec import Struct

from mew.journal.record import Record
from mew.protocol.capability import Capability
from mew.protocol.codec import decode
from mew.protocol.envelope import Envelope
from mew.space import Entry

__all__ = [
    "PlaybackCursor",
    "PlaybackRange",
    "PlaybackSpeed",
    "RecordedEnvelope",
    "duration_in_words",
    "parse_seconds",
    "parse_speed",
    "recorded_envelopes",
]

_SPEED: Final = re.compile(r"(\d{1,6}(?:\.\d{1,6})?)x?")
_SECONDS: Final = re.compile(r"(\d{1,9}(?:\.\d{1,6})?) ?(ms|s|min|m|h)?")
_SECONDS_OF: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_SLOWEST: Final = 0.01
_FASTEST: Final = 100_000.0
_LONG_S: Final = 60.0  # what is worth a word where nothing is waited for


class RecordedEnvelope(Struct, frozen=True, gc=False):
    """An envelope that was delivered, because of which entry and when. `raw` are the bytes of it."""

    seq: int
    at: datetime
    envelope: Envelope
    raw: bytes


def recorded_envelopes(record: Record) -> list[RecordedEnvelope]:
    """What was delivered because of an entry, in order: what the gateway made has the number of the last envelope."""
    entry = record.entry
    numbers = [
        number for place, number in enumerate(range(entry.seq, entry.last + 1)) if place not in record.refused
    ]
    raws = record.delivered.raws
    own = len(raws) - len(record.made)
    numbers = [*numbers[:own], *[entry.last] * len(record.made)]
    return [
        RecordedEnvelope(number, entry.at, decode(raw), raw)
        for number, raw in zip(numbers, raws, strict=True)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaybackRange:
    """A part of a recording, and of what it showed that which fits.

    By number, both ends included, and by time, from `since` on and before `until`.
    """

    first: int = 0
    last: int | None = None
    since: datetime | None = None
    until: datetime | None = None
    kind: Capability | None = None
    participant: str | None = None

    def has_begun(self, entry: Entry) -> bool:
        return entry.last >= self.first and (self.since is None or entry.at >= self.since)

    def is_over(self, entry: Entry) -> bool:
        return (self.last is not None and entry.seq > self.last) or (
            self.until is not None and entry.at >= self.until
        )

    def fits(self, shown: RecordedEnvelope) -> bool:
        envelope = shown.envelope
        return (
            shown.seq >= self.first
            and (self.last is None or shown.seq <= self.last)
            and (self.participant is None or envelope.sender == self.participant)
            and (self.kind is None or self.kind.fits(envelope.kind, envelope.to, lambda: None))
        )


class PlaybackCursor:
    """Records gone through once: first `past`, those before the part, then `rest`."""

    def __init__(self, records: Iterable[Record], part: PlaybackRange) -> None:
        self._records = iter(records)
        self._part = part
        self._first: tuple[Record, ...] = ()

    def past(self) -> Iterator[Record]:
        for record in self._records:
            if self._part.has_begun(record.entry):
                self._first = (record,)
                return
            yield record

    def rest(self) -> Iterator[Record]:
        for record in chain(self._first, self._records):
            if self._part.is_over(record.entry):
                return
            yield record


@dataclass(frozen=True, slots=True)
class PlaybackSpeed:
    """How fast to play: `speed` times as fast as it was, and no wait longer than `idle_max_s`."""

    speed: float = 1.0
    idle_max_s: float = 3.0

    def wait_s(self, gap: timedelta) -> float:
        """How long to wait where so much time passed."""
        return min(max(0.0, gap.total_seconds()) / self.speed, self.idle_max_s)

    def is_shortened(self, gap: timedelta) -> bool:
        """Whether so much time is worth a word, because it is not waited for."""
        passed_s = gap.total_seconds()
        return passed_s >= _LONG_S if isinf(self.speed) else passed_s / self.speed > self.idle_max_s

    def times(self, factor: float) -> "PlaybackSpeed":
        """So many times as fast; what is as fast as it goes stays so until it is slowed down."""
        if isinf(self.speed):
            return self if factor > 1 else replace(self, speed=_FASTEST)
        return replace(self, speed=min(max(self.speed * factor, _SLOWEST), _FASTEST))

    def __str__(self) -> str:
        return "max" if isinf(self.speed) else f"{self.speed:g}x"


def parse_speed(text: str) -> float:
    """`10x`, `0.5x`, `10`, or `max`.

    Raises:
        ValueError: it is none of these, in words.
    """
    if text == "max":
        return inf
    found = _SPEED.fullmatch(text)
    if found is None or not _SLOWEST <= float(found[1]) <= _FASTEST:
        raise ValueError(f"{text!r} is no speed; write 1x, 10x, 0.5x or max")
    return float(found[1])


def parse_seconds(text: str) -> float:
    """`2s`, `500ms`, `1min`, `2`, or `off` for any length.

    Raises:
        ValueError: it is none of these, in words.
    """
    if text == "off":
        return inf
    found = _SECONDS.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no length of time; write 2s, 500ms, 1min or off")
    return float(found[1]) * _SECONDS_OF[found[2] or "s"]


def duration_in_words(gap: timedelta) -> str:
    """A length of time in its two largest units: `3 h 12 min`."""
    seconds = round(gap.total_seconds())
    if seconds < 1:
        return f"{gap.total_seconds():.1f} s"
    parts = []
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        count, seconds = divmod(seconds, size)
        parts.append((count, unit))
    first = next(place for place, (count, _) in enumerate(parts) if count)
    return " ".join(f"{count} {unit}" for count, unit in parts[first : first + 2] if count)
