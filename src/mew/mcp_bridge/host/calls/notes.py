"""PURE. What happens while a call is under way, for those who wait for it: each reads from where it was."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["CallNote", "CallNotes", "LogNote", "ProgressNote", "logged"]

_KEPT_MAX: Final = 256


@dataclass(frozen=True)
class ProgressNote:
    """How far it is, as the tool says; or without `done`, where it stands."""

    message: str
    done: float | None = None
    total: float | None = None


@dataclass(frozen=True)
class LogNote:
    """A line of the participant's log."""

    params: Mapping[str, Any]


CallNote = ProgressNote | LogNote


class CallNotes:
    """The last 256 of them."""

    def __init__(self) -> None:
        self._kept: deque[CallNote] = deque(maxlen=_KEPT_MAX)
        self._count = 0

    def add(self, note: CallNote) -> None:
        self._kept.append(note)
        self._count += 1

    def since(self, read: int) -> tuple[int, tuple[CallNote, ...]]:
        """Those that came after the first `read`, as far as they are kept, and how many there are now."""
        fresh = min(self._count - read, len(self._kept))
        return self._count, tuple(self._kept)[len(self._kept) - fresh :] if fresh else ()


def logged(participant: str, params: Mapping[str, Any], only: str | None) -> Mapping[str, Any]:
    """A line, with whose it is."""
    if only is not None:
        return params
    logger = params.get("logger")
    return {**params, "logger": f"{participant}/{logger}" if isinstance(logger, str) else participant}
