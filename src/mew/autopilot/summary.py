"""PURE. What the autopilot did, counted by day, for `autopilot/summary`."""

from collections import deque
from datetime import datetime
from statistics import median
from typing import Any, Final

from msgspec import Struct

__all__ = ["DayFigures", "Figures"]

_DAYS_MAX: Final = 30
_REVIEWS_MAX: Final = 200
_REVIEW_S_MAX: Final = 300.0  # a longer wait was not spent on the review


class DayFigures(Struct):
    """Counts of one day (UTC). `disagreed` are audits that a reviewer rejected; `objected` came afterwards."""

    day: str
    proposals: int = 0
    alone: int = 0
    audited: int = 0
    disagreed: int = 0
    objected: int = 0
    demoted: int = 0


class Figures:
    """Fed with what happened, in order; at most thirty days are remembered."""

    def __init__(self) -> None:
        self.days: deque[DayFigures] = deque(maxlen=_DAYS_MAX)
        self._review_s: deque[float] = deque(maxlen=_REVIEWS_MAX)

    def on(self, at: datetime) -> DayFigures:
        """The counts of this day, to be added to."""
        day = at.date().isoformat()
        known = next((one for one in reversed(self.days) if one.day == day), None)
        if known is None:
            known = DayFigures(day)
            self.days.append(known)
        return known

    def reviewed(self, took_s: float) -> None:
        """A reviewer decided after this long."""
        self._review_s.append(min(max(took_s, 0.0), _REVIEW_S_MAX))

    def as_dict(self) -> dict[str, Any]:
        """The days, and the minutes saved: decided alone, times the median time that a review takes."""
        review_s = round(median(self._review_s), 1) if self._review_s else 0.0
        alone = sum(one.alone for one in self.days)
        return {
            "days": list(self.days),
            "review_s": review_s,
            "minutes_saved": round(alone * review_s / 60, 1),
        }
