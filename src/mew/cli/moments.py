"""Moments as people write them on a command line, and as they are shown there."""

from datetime import UTC, datetime

from .where import Failed

__all__ = ["read_moment", "show_moment"]


def read_moment(option: str, written: str | None) -> datetime | None:
    """What an option says; a moment that names no zone is this machine's.

    Raises:
        Failed: it is no moment.
    """
    if written is None:
        return None
    try:
        return datetime.fromisoformat(written).astimezone()
    except (ValueError, OverflowError) as error:
        raise Failed(f"{option} {written!r} is no time; write 2026-01-31 or 2026-01-31T12:30:00Z") from error


def show_moment(at: datetime | None) -> str:
    """To the second, in UTC, so that two machines say the same."""
    return "at an unknown time" if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%SZ}"
