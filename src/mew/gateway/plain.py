"""The short way of envelopes that nothing follows from: shown at once, where nothing is kept and nothing is on its way.

Most of what is said in a space is of this kind. Those that follow one another are taken as one, in C where it is there;
what C leaves is taken one by one, and what is not plain goes through the log and all the rules.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import TypeAlias

from mew import compiled
from mew.log.base import Log
from mew.protocol.envelope import Envelope, ParticipantId
from mew.space import Space
from mew.space.space import Standing

from .intake import Intake
from .pages import Record
from .ports import Counts, Guest
from .showing import Showing

__all__ = ["Heard", "ShortWay"]

Heard: TypeAlias = tuple[Guest, int, bytes]
"""A message, with who says it and the opcode of its frame."""

PlainRun: TypeAlias = Callable[
    [list[Heard], int, Standing, type[Record], int, datetime, float, int],
    tuple[list[Record], dict[str, ParticipantId], int],
]

plain_run: PlainRun | None = compiled.plain_run


class ShortWay:
    """That of one room."""

    def __init__(
        self,
        space: Space,
        log: Log,
        intake: Intake,
        showing: Showing,
        counts: Counts,
        break_off: Callable[[Exception], None],
        *,
        is_traced: bool,
    ) -> None:
        """`break_off` is told of what fails half done. What is traced goes the whole way."""
        self.bytes_max = 0
        """So many an envelope may have."""
        self._space = space
        self._log = log
        self._intake = intake
        self._showing = showing
        self._counts = counts
        self._break_off = break_off
        self._is_traced = is_traced
        self._loop = asyncio.get_running_loop()

    @property
    def has_runs(self) -> bool:
        """Whether it is open to more than one at once. It may be closed within a turn, and is not opened within one."""
        return plain_run is not None and self._log.is_at_rest and not self._is_traced

    def take(self, envelope: Envelope, received: bytes, who: ParticipantId, at: datetime) -> bool:
        """One that `Space.is_plain`; whether it went this way."""
        if not self._log.is_at_rest or self._is_traced:
            return False
        try:
            only, seq = self._space.receivers(envelope), self._log.place(1)
            self._space.take_plain(seq, {envelope.id: who})
            self._showing.show(Record.of(envelope, received, at=at, only=only, seq=seq, sender=who))
        except Exception as error:
            self._break_off(error)
        return True

    def take_run(self, heard: list[Heard], start: int) -> int:
        """As many as can be from `start` on; where one is that cannot."""
        if plain_run is None or not self._log.is_at_rest:
            return start
        try:
            now_s = self._loop.time()
            at = self._intake.at(now_s)
            standing = self._space.standing(at)
            if standing is None:
                return start
            seq = self._space.seq + 1
            records, said, end = plain_run(heard, start, standing, Record, seq, at, now_s, self.bytes_max)
            if records:
                self._counts.received += len(records)
                self._space.take_plain(self._log.place(len(records)), said)
                self._showing.show_run(records, addressed=standing.addressed)
        except Exception as error:
            self._break_off(error)
            return len(heard)
        return end
