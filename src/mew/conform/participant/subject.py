"""The participant under test, as the kit sees it: what it was shown and what it sent, over all its connections."""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Protocol, TypeVar

from mew.conform.match import Predicate
from mew.conform.outcome import Transcript, Violation

__all__ = [
    "Arrival",
    "Frame",
    "FrameDirection",
    "ParticipantUnderTest",
    "ParticipantWire",
    "read_frame",
    "stream_of",
]


MARK: Final = "#"
_NESTING_MAX: Final = 64


class FrameDirection(StrEnum):
    """Which way a frame went, as the participant sees it."""

    SENT = "sent"
    SHOWN = "shown"


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame. `envelope` is None where it is none, and `fault` says why, unless it is a frame of a stream."""

    place: int
    way: FrameDirection
    at_s: float
    data: str | bytes
    envelope: dict[str, Any] | None = None
    fault: str = ""


def read_frame(place: int, way: FrameDirection, at_s: float, data: str | bytes) -> Frame:
    """The frame with what can be read of it."""
    if stream_of(data) is not None:
        return Frame(place, way, at_s, data)
    if isinstance(data, bytes):
        return Frame(place, way, at_s, data, fault="a binary frame that is no stream frame")
    try:
        value = json.loads(data, object_pairs_hook=_object, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        return Frame(place, way, at_s, data, fault=f"no JSON: {error}")
    if not isinstance(value, dict):
        return Frame(place, way, at_s, data, fault=f"no JSON object, but {_named(value)}")
    fault = "" if _depth(value) <= _NESTING_MAX else f"nested deeper than {_NESTING_MAX} levels"
    repeated = value.pop(_REPEATED, None)
    if repeated is not None:
        fault = f"the field {repeated!r} occurs twice"
    return Frame(place, way, at_s, data, value, fault)


def stream_of(data: str | bytes) -> tuple[str, bytes] | None:
    """The stream id and the data of `#id#data`; None where it is none."""
    raw = data.encode(errors="surrogatepass") if isinstance(data, str) else data
    if not raw.startswith(MARK.encode()):
        return None
    name, mark, content = raw[1:].partition(MARK.encode())
    return None if not mark else (name.decode(errors="replace"), content)


_REPEATED: Final = "\0repeated"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        fields[_REPEATED] = next(name for name in names if names.count(name) > 1)
    return fields


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not in JSON")


def _depth(value: Any) -> int:
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(_depth, items), default=0) if isinstance(value, dict | list) else 0


def _named(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return "an array" if isinstance(value, list) else "a string" if isinstance(value, str) else "a number"


NAME: Final = "participant"
Found = TypeVar("Found")


class ParticipantWire(Protocol):
    """The way to a participant that is connected."""

    async def deliver(self, data: str | bytes) -> None:
        """
        Raises:
            ConnectionError: it is gone.
        """

    async def abort(self) -> None:
        """End it, so that it comes back."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """How it came to the door: what its handshake said, without its secrets, and whether it was let in."""

    path: str
    query: Mapping[str, str]
    brings: str
    admitted: bool
    place: int


@dataclass(slots=True)
class ParticipantUnderTest:
    """`frames` is everything in one order; `rewrite` changes what the gateway says on the way, for a check."""

    id: str
    timeout_s: float
    token: str = field(default="", repr=False)
    frames: list[Frame] = field(default_factory=list)
    arrivals: list[Arrival] = field(default_factory=list)
    transcript: Transcript = field(default_factory=Transcript)
    rewrite: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    wires: list[ParticipantWire] = field(default_factory=list)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def present(self) -> bool:
        return bool(self.wires)

    @property
    def place(self) -> int:
        """Where the next frame goes."""
        return len(self.frames)

    # What the relay tells.

    def arrived(self, arrival: Arrival) -> None:
        self.arrivals.append(arrival)
        self.transcript.sent(NAME, f"GET {arrival.path} {dict(arrival.query)}, token in {arrival.brings}")
        self._news.set()

    def connected(self, wire: ParticipantWire) -> None:
        self.wires.append(wire)
        self._news.set()

    def left(self, wire: ParticipantWire, code: int | None) -> None:
        self.wires.remove(wire)
        self.transcript.sent(NAME, f"closed, code {code}")
        self._news.set()

    def sent(self, data: str | bytes) -> None:
        """Note what it sends; of its token, should that be in it, only that it was there."""
        if self.token and isinstance(data, str):
            data = data.replace(self.token, "[token]")
        self.transcript.sent(NAME, _told(data))
        self._add(FrameDirection.SENT, data)

    def shown(self, data: str | bytes) -> str | bytes:
        """Note what the gateway says to it; returns what it is to get."""
        frame = read_frame(self.place, FrameDirection.SHOWN, time.monotonic(), data)
        if self.rewrite is not None and frame.envelope is not None:
            changed = self.rewrite(frame.envelope)
            data = data if changed is frame.envelope else json.dumps(changed)
        self.transcript.received(NAME, _told(data))
        self._add(FrameDirection.SHOWN, data)
        return data

    # What a check does.

    async def show(self, data: str | bytes) -> None:
        """Put this before it, and before nobody else.

        Raises:
            Violation: it is not connected.
        """
        if not self.wires:
            raise Violation("the participant is not connected any more")
        self.shown(data)
        try:
            await self.wires[-1].deliver(data)
        except ConnectionError as error:
            raise Violation(f"the participant is not connected any more: {error}") from error

    async def expect(
        self, fits: Predicate, what: str, *, since: int, timeout_s: float | None = None
    ) -> Frame:
        """The first envelope that it sent from there on and that fits, waited for.

        Raises:
            Violation: it did not come.
        """
        within_s = self.timeout_s if timeout_s is None else timeout_s

        def look() -> list[Frame] | None:
            found = self.said(fits, since=since)
            return found if found or not self.present else None

        found = await self.wait(look, within_s)
        if found:
            return found[0]
        how = (
            "did not, and is not connected any more"
            if found is not None
            else f"did not within {within_s:g} s"
        )
        raise Violation(f"expected that the participant sends {what}; it {how}")

    async def wait(self, look: Callable[[], Found | None], within_s: float) -> Found | None:
        """What `look` finds, looked for whenever something happens; None: not in time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while (found := look()) is None:
                    self._news.clear()
                    await self._news.wait()
                return found
        return look()

    def said(self, fits: Predicate, *, since: int = 0, until: int | None = None) -> list[Frame]:
        """All envelopes it sent there that fit."""
        return self._those(FrameDirection.SENT, fits, since, until)

    def was_shown(self, fits: Predicate, *, since: int = 0, until: int | None = None) -> list[Frame]:
        """All envelopes it was shown there that fit."""
        return self._those(FrameDirection.SHOWN, fits, since, until)

    async def reached(self, envelope_id: str, since: int) -> Frame:
        """Where it was shown this.

        Raises:
            Violation: it was not, since it is gone.
        """
        found = await self.wait(
            lambda: next(iter(self.was_shown(lambda e: e.get("id") == envelope_id, since=since)), None),
            self.timeout_s,
        )
        if found is None:
            raise Violation("the participant is not connected any more, or does not read")
        return found

    def _those(self, way: FrameDirection, fits: Predicate, since: int, until: int | None) -> list[Frame]:
        return [
            frame
            for frame in self.frames[since:until]
            if frame.way is way and frame.envelope is not None and fits(frame.envelope)
        ]

    def _add(self, way: FrameDirection, data: str | bytes) -> None:
        self.frames.append(read_frame(self.place, way, time.monotonic(), data))
        self._news.set()


def _told(data: str | bytes) -> str:
    return data if isinstance(data, str) else f"binary {data[:200]!r}"
