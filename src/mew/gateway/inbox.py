"""What the connections of a room say, gathered over a turn of the loop and taken together.

Sockets become readable in any order. Taken room by room, what they brought finds all that a room needs at hand, and not
in memory far away for every message anew.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from .plain import Heard
from .ports import Guest
from .websocket import Message

__all__ = ["Inbox"]

_log = logging.getLogger(__name__)

_INTERNAL: Final = 1011  # RFC 6455 §7.4.1


class Inbox:
    """The messages of this turn, in the order they came."""

    __slots__ = ("_end", "_heard", "_loop", "_take", "_take_plain")

    def __init__(
        self,
        take_plain: Callable[[list[Heard], int], int],
        take: Callable[[Guest, int, bytes], None],
        end: Callable[[], None],
    ) -> None:
        """`take_plain` takes as many as it can from a place on and says where it stopped, `take` the one there.

        `end` is called after those of a turn.
        """
        self._loop = asyncio.get_running_loop()
        self._heard: list[Heard] = []
        self._take_plain = take_plain
        self._take = take
        self._end = end

    def put(self, guest: Guest, messages: Sequence[Message]) -> None:
        heard = self._heard
        if not heard:
            self._loop.call_soon(self.empty)
        for opcode, data in messages:
            heard.append((guest, opcode, data))

    def empty(self) -> None:
        """Have everything taken, now."""
        heard, self._heard = self._heard, []
        if not heard:
            return
        at, end = 0, len(heard)
        try:
            while (at := self._take_plain(heard, at)) < end:
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
