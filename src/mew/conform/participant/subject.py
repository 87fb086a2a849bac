"""The participant under test, as the kit sees it: what it was shown and what it sent, over all its connections."""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar

from mew.conform.verdicts import Transcript, Violation
from mew.conform.wire import Fits

from .frames import Frame, Way, read_frame

__all__ = ["Arrival", "Subject", "Wire"]

NAME: Final = "participant"
Found = TypeVar("Found")


class Wire(Protocol):
    """The way to a participant that is connected."""

    async def deliver(self, data: str | bytes) -> None:
        """
        Raises:
            ConnectionError: it is gone.
        """

    async def cut(self) -> None:
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
class Subject:
    """`frames` is everything in one order; `rewrite` changes what the gateway says on the way, for a check."""

    id: str
    patience_s: float
    token: str = field(default="", repr=False)
    frames: list[Frame] = field(default_factory=list)
    arrivals: list[Arrival] = field(default_factory=list)
    transcript: Transcript = field(default_factory=Transcript)
    rewrite: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    wires: list[Wire] = field(default_factory=list)
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

    def connected(self, wire: Wire) -> None:
        self.wires.append(wire)
        self._news.set()

    def left(self, wire: Wire, code: int | None) -> None:
        self.wires.remove(wire)
        self.transcript.sent(NAME, f"closed, code {code}")
        self._news.set()

    def sent(self, data: str | bytes) -> None:
        """Note what it sends; of its token, should that be in it, only that it was there."""
        if self.token and isinstance(data, str):
            data = data.replace(self.token, "[token]")
        self.transcript.sent(NAME, _told(data))
        self._add(Way.SENT, data)

    def shown(self, data: str | bytes) -> str | bytes:
        """Note what the gateway says to it; returns what it is to get."""
        frame = read_frame(self.place, Way.SHOWN, time.monotonic(), data)
        if self.rewrite is not None and frame.envelope is not None:
            changed = self.rewrite(frame.envelope)
            data = data if changed is frame.envelope else json.dumps(changed)
        self.transcript.received(NAME, _told(data))
        self._add(Way.SHOWN, data)
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

    async def hear(self, fits: Fits, what: str, *, since: int, patience_s: float | None = None) -> Frame:
        """The first envelope that it sent from there on and that fits, waited for.

        Raises:
            Violation: it did not come.
        """
        within_s = self.patience_s if patience_s is None else patience_s

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

    def said(self, fits: Fits, *, since: int = 0, until: int | None = None) -> list[Frame]:
        """All envelopes it sent there that fit."""
        return self._those(Way.SENT, fits, since, until)

    def was_shown(self, fits: Fits, *, since: int = 0, until: int | None = None) -> list[Frame]:
        """All envelopes it was shown there that fit."""
        return self._those(Way.SHOWN, fits, since, until)

    async def reached(self, envelope_id: str, since: int) -> Frame:
        """Where it was shown this.

        Raises:
            Violation: it was not, since it is gone.
        """
        found = await self.wait(
            lambda: next(iter(self.was_shown(lambda e: e.get("id") == envelope_id, since=since)), None),
            self.patience_s,
        )
        if found is None:
            raise Violation("the participant is not connected any more, or does not read")
        return found

    def _those(self, way: Way, fits: Fits, since: int, until: int | None) -> list[Frame]:
        return [
            frame
            for frame in self.frames[since:until]
            if frame.way is way and frame.envelope is not None and fits(frame.envelope)
        ]

    def _add(self, way: Way, data: str | bytes) -> None:
        self.frames.append(read_frame(self.place, way, time.monotonic(), data))
        self._news.set()


def _told(data: str | bytes) -> str:
    return data if isinstance(data, str) else f"binary {data[:200]!r}"
