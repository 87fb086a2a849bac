"""PURE. What a check of `mew doctor` finds."""

from enum import StrEnum
from typing import NamedTuple

__all__ = ["Finding", "Level"]


class Level(StrEnum):
    """How bad it is: a problem keeps something from working, a warning may."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


class Finding(NamedTuple):
    """`mend`: what to do about it."""

    level: Level
    about: str
    says: str
    mend: str = ""

    def as_dict(self) -> dict[str, str | None]:
        return {"level": self.level, "about": self.about, "says": self.says, "mend": self.mend or None}
