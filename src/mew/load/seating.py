"""Filling a space: as many connections as are asked for, or as many as the gateway lets in."""

import secrets
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from .lines import Counter, Listener
from .opening import enter_all
from .place import Place, Seat
from .problems import NotLetIn

__all__ = ["fresh_run", "seat_counters", "some"]

_FULL: Final = frozenset({"too_many_connections", "space_full"})
_AT_ONCE: Final = 32
_Made = TypeVar("_Made", Counter, Listener)


def fresh_run() -> str:
    """What the ids of all envelopes of a run begin with, and no other's."""
    return f"bench-{secrets.token_hex(4)}"


def some(number: int, what: str) -> str:
    """So many of something, for a sentence."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


async def seat_counters(
    place: Place, seats: Sequence[Seat], made: Callable[[], _Made]
) -> tuple[list[_Made], str | None]:
    """A connection for each of these seats, some of which may be the same; and why there are fewer, where there are.

    Raises:
        LoadFailed: not one could be connected, or another reason than that there are too many.
    """
    seated: list[_Made] = []
    for start in range(0, len(seats), _AT_ONCE):
        some = [(seat, made()) for seat in seats[start : start + _AT_ONCE]]
        try:
            await enter_all(place, some)
            seated += [line for _, line in some]
        except NotLetIn as full:
            seated += [line for _, line in some if line.transport is not None]
            if full.code not in _FULL:
                raise
            return seated, str(full)
    return seated, None
