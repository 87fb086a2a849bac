"""PURE. A recorded space played again: what was shown, which part of it, and how long to wait for the next."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import chain
from math import inf, isinf
from typing import Final

from msgspec import Struct

from mew.protocol.capability import Capability
from mew.protocol.codec import encode
from mew.protocol.envelope import Envelope
from mew.space import Deliver, Entry, Sent, Space
from mew.space.state import SpaceState

__all__ = ["Pace", "Part", "Played", "Replay", "Shown", "in_words", "read_seconds", "read_speed"]

_SPEED: Final = re.compile(r"(\d{1,6}(?:\.\d{1,6})?)x?")
_SECONDS: Final = re.compile(r"(\d{1,9}(?:\.\d{1,6})?) ?(ms|s|min|m|h)?")
_SECONDS_OF: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_SLOWEST: Final = 0.01
_FASTEST: Final = 100_000.0
_LONG_S: Final = 60.0  # what is worth a word where nothing is waited for


class Shown(Struct, frozen=True, gc=False):
    """An envelope that the space showed, because of which entry and when. `raw` are the bytes of it."""

    seq: int
    at: datetime
    envelope: Envelope
    raw: bytes


class Replay:
    """Takes the entries of a recording in their order, and says what each showed."""

    def __init__(self, state: SpaceState | None) -> None:
        """`state` is that before the first entry.

        Without it nothing can be decided: every envelope that was sent counts as shown, also one that was refused
        after all, and what the gateway itself said is not known.
        """
        self._space = None if state is None else Space(state)

    def take(self, entry: Entry) -> list[Shown]:
        if self._space is not None:
            decided = self._space.apply(entry)
            return [_shown(entry, one) for one in decided if isinstance(one, Deliver)]
        event = entry.event
        return [Shown(entry.seq, entry.at, event.envelope, event.raw)] if isinstance(event, Sent) else []


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
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
        return entry.seq >= self.first and (self.since is None or entry.at >= self.since)

    def is_over(self, entry: Entry) -> bool:
        return (self.last is not None and entry.seq > self.last) or (
            self.until is not None and entry.at >= self.until
        )

    def fits(self, shown: Shown) -> bool:
        envelope = shown.envelope
        return (self.participant is None or envelope.sender == self.participant) and (
            self.kind is None or self.kind.fits(envelope.kind, envelope.to, lambda: None)
        )


class Played:
    """Entries gone through once: first `past`, those before the part, then `rest`."""

    def __init__(self, entries: Iterable[Entry], part: Part) -> None:
        self._entries = iter(entries)
        self._part = part
        self._first: tuple[Entry, ...] = ()

    def past(self) -> Iterator[Entry]:
        for entry in self._entries:
            if self._part.has_begun(entry):
                self._first = (entry,)
                return
            yield entry

    def rest(self) -> Iterator[Entry]:
        for entry in chain(self._first, self._entries):
            if self._part.is_over(entry):
                return
            yield entry


@dataclass(frozen=True, slots=True)
class Pace:
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

    def times(self, factor: float) -> "Pace":
        """So many times as fast; what is as fast as it goes stays so until it is slowed down."""
        if isinf(self.speed):
            return self if factor > 1 else replace(self, speed=_FASTEST)
        return replace(self, speed=min(max(self.speed * factor, _SLOWEST), _FASTEST))

    def __str__(self) -> str:
        return "max" if isinf(self.speed) else f"{self.speed:g}x"


def read_speed(text: str) -> float:
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


def read_seconds(text: str) -> float:
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


def in_words(gap: timedelta) -> str:
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


def _shown(entry: Entry, decision: Deliver) -> Shown:
    return Shown(entry.seq, entry.at, decision.envelope, decision.raw or encode(decision.envelope))
