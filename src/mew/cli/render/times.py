"""Moments as people write them on a command line, and as they are shown there."""

from datetime import UTC, datetime, timedelta
from typing import Final

from mew.cli.locate.journal import Failed

__all__ = ["read_time", "show_moment"]

_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def read_time(option: str, written: str | None, now: datetime) -> datetime | None:
    """What an option says: a moment, or how long before now. A moment that names no zone is this machine's.

    Raises:
        Failed: it is neither.
    """
    if written is None:
        return None
    number, unit = written[:-1], _UNITS.get(written[-1:])
    try:
        if unit is not None and number.isascii() and number.replace(".", "", 1).isdigit():
            return now - timedelta(**{unit: float(number)})
        return datetime.fromisoformat(written).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise Failed(
            f"{option} {written!r} is no time; write 2026-01-31, 2026-01-31T12:30:00Z, or 2h or 3d for so long ago"
        ) from error


def show_moment(at: datetime | None) -> str:
    """To the second, in UTC, so that two machines say the same."""
    return "at an unknown time" if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%SZ}"
