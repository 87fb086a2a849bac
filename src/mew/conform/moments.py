"""PURE. Dates and times as RFC 3339 has them."""

import re
from datetime import datetime
from typing import Final

__all__ = ["moment"]

_RFC3339: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d):(\d\d)(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)", re.ASCII
)


def moment(text: object) -> datetime | None:
    """The moment that a date and time with an offset names, at the most a leap second early; None: it is none."""
    found = _RFC3339.fullmatch(text) if isinstance(text, str) else None
    if found is None or int(found[3]) > 60:
        return None
    day, minute, second, fraction, offset, _ = found.groups()
    try:
        return datetime.fromisoformat(
            f"{day}T{minute}:{min(int(second), 59):02}{(fraction or '')[:7]}{offset.upper()}"
        )
    except ValueError:
        return None
