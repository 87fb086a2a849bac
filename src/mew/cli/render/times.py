"""Moments as people write them on a command line, and as they are shown there."""

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final

import typer

from mew.cli.errors import CommandError

__all__ = ["Lasting", "SinceOption", "UntilOption", "read_time", "seconds_of", "show_moment"]

SinceOption = Annotated[
    str | None,
    typer.Option(
        "--since",
        metavar="TIME",
        help="From this time on: 2026-01-31, 2026-01-31T12:30:00Z, or 2h for 2 hours ago.",
    ),
]
UntilOption = Annotated[
    str | None, typer.Option("--until", metavar="TIME", help="Before this time, written the same way.")
]

_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def read_time(option: str, written: str | None, now: datetime) -> datetime | None:
    """What an option says: a moment, or how long before now. A moment that names no zone is this machine's.

    Raises:
        CommandError: it is neither.
    """
    if written is None:
        return None
    number, unit = written[:-1], _UNITS.get(written[-1:])
    try:
        if unit is not None and number.isascii() and number.replace(".", "", 1).isdigit():
            return now - timedelta(**{unit: float(number)})
        return datetime.fromisoformat(written).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise CommandError(
            f"{option} {written!r} is no time; write 2026-01-31, 2026-01-31T12:30:00Z, or 2h or 3d for so long ago"
        ) from error


def show_moment(at: datetime | None) -> str:
    """To the second, in UTC, so that two machines say the same."""
    return "at an unknown time" if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%SZ}"


Lasting = Annotated[
    str | None,
    typer.Option("--for", metavar="TIME", help="For how long: 90s, 15m, 2h or 1d. Default: permanently."),
]

_TIME: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|min|h|d)?", re.ASCII)
_SECONDS: Final = {"s": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400, None: 1}


def seconds_of(written: str | None) -> float | None:
    """So many seconds; None where nothing was written.

    Raises:
        CommandError: it is no time.
    """
    if written is None:
        return None
    found = _TIME.fullmatch(written.strip())
    if found is None:
        raise CommandError(f"--for {written!r} is no time; write 90s, 15m, 2h or 1d")
    return float(found[1]) * _SECONDS[found[2]]
