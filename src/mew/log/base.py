"""The port: an ordered log of one space."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Protocol

from mew.space import Entry, Event

__all__ = ["Log", "LogUnavailable"]


class LogUnavailable(Exception):
    """The log cannot be written or read. What was appended may or may not be in it: follow it to know."""


class Log(Protocol):
    """Orders the events of one space. An event has happened when `follow` yields it, and not before."""

    def append(self, at: datetime, event: Event) -> None:
        """Hand over an event, without waiting. Events appended here keep their order.

        Raises:
            LogUnavailable: it was not taken.
        """

    def follow(self, after: int) -> AsyncIterator[Sequence[Entry]]:
        """The entries after this sequence number, as they come: those of one turn of the loop together.

        Ends when the log is closed and everything in it was yielded.

        Raises:
            LogUnavailable: no more can be read.
        """

    def close(self) -> None:
        """Take no more; what was taken is still yielded."""
