"""What the connections of a room say, gathered over a turn of the loop and taken together.

Sockets become readable in any order. Taken room by room, what they brought finds all that a room needs at hand, and not
in memory far away for every message anew.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from .ports import Guest
from .websocket import Message

__all__ = ["Inbox"]

_log = logging.getLogger(__name__)

_INTERNAL: Final = 1011  # RFC 6455 §7.4.1


class Inbox:
    """The messages of this turn, in the order they came."""

    __slots__ = ("_end", "_heard", "_loop", "_take")

    def __init__(
        self,
        take: Callable[[Guest, int, bytes], None],
        end: Callable[[], None],
    ) -> None:
        """`take` is handed the messages one by one, each with its opcode; `end` is called after those of a turn."""
        self._loop = asyncio.get_running_loop()
        self._heard: list[tuple[Guest, Sequence[Message]]] = []
        self._take = take
        self._end = end

    def put(self, guest: Guest, messages: Sequence[Message]) -> None:
        if not self._heard:
            self._loop.call_soon(self.empty)
        self._heard.append((guest, messages))

    def empty(self) -> None:
        """Have everything taken, now."""
        heard, self._heard = self._heard, []
        if not heard:
            return
        take = self._take
        try:
            for guest, messages in heard:
                for opcode, data in messages:
                    if guest.closed:
                        break
                    try:
                        take(guest, opcode, data)
                    except Exception:
                        _log.exception("a message could not be handled")
                        guest.close(_INTERNAL, "the gateway failed on this message")
        finally:
            self._end()
