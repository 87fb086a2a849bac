"""What the connections of a room say, gathered over a turn of the loop and taken together.

Sockets become readable in any order. Taken room by room, what they brought finds all that a room needs at hand, and not
in memory far away for every message anew.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from mew import compiled
from mew.protocol.frames import MARK

from .plain import Heard, ShortWay
from .ports import Guest
from .websocket import Message

__all__ = ["Inbox"]

_log = logging.getLogger(__name__)

_INTERNAL: Final = 1011  # RFC 6455 §7.4.1

HearFrames: TypeAlias = Callable[[bytes, int, int, Guest, list[Heard]], int]

hear_frames: HearFrames | None = compiled.hear_frames


class Inbox:
    """The messages of this turn, in the order they came."""

    __slots__ = ("_end", "_heard", "_loop", "_short", "_take")

    def __init__(
        self, short: ShortWay, take: Callable[[Guest, int, bytes], None], end: Callable[[], None]
    ) -> None:
        """`take` is handed those that cannot go the short way; `end` is called after those of a turn."""
        self._loop = asyncio.get_running_loop()
        self._heard: list[Heard] = []
        self._short = short
        self._take = take
        self._end = end

    def put(self, guest: Guest, messages: Sequence[Message]) -> None:
        heard = self._heard
        if not heard:
            self._loop.call_soon(self.empty)
        for opcode, data in messages:
            heard.append((guest, opcode, data))

    def hear(self, guest: Guest, data: bytes, bytes_max: int, messages_max: int) -> int:
        """Put in what the usual frames say that these bytes begin with; how many bytes those are.

        Without the compiled part there are none.
        """
        if hear_frames is None:
            return 0
        heard = self._heard
        is_first = not heard
        taken = hear_frames(data, bytes_max, messages_max, guest, heard)
        if is_first and taken:
            self._loop.call_soon(self.empty)
        return taken

    def empty(self) -> None:
        """Have everything taken, now."""
        heard, self._heard = self._heard, []
        if not heard:
            return
        short, at, end = self._short, 0, len(heard)
        has_runs = short.has_runs
        try:
            while at < end:
                if has_runs and not heard[at][2].startswith(MARK):
                    at = short.take_run(heard, at)
                if at < end:
                    self._take_one(*heard[at])
                    at += 1
        finally:
            self._end()

    def _take_one(self, guest: Guest, opcode: int, data: bytes) -> None:
        if guest.closed:
            return
        try:
            self._take(guest, opcode, data)
        except Exception:
            _log.exception("a message could not be handled")
            guest.close(_INTERNAL, "the gateway failed on this message")
