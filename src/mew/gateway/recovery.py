"""From a log back to a space and what was shown in it; and snapshots, so that this never takes long."""

from typing import Final

from mew.log.base import Log, LogUnavailable, Mark
from mew.protocol.codec import encode
from mew.space import Deliver, Entry, Space
from mew.space.state import SpaceState

from .history import History, Record
from .settings import Limits

__all__ = ["Milestones", "record_of", "recover"]

_ENTRIES: Final = 30_000  # some 0.3 s to go through
_BYTES: Final = 64 << 20


def recover(log: Log, limits: Limits) -> tuple[Space, History]:
    """The space after all that is in the log, and what was shown last, within its bounds.

    Nothing is carried out: what was to be sent was sent, or its receiver is gone and asks for what it missed.

    Raises:
        LogUnavailable: the log is there and cannot be read.
    """
    past = log.recall()
    mark = past.mark
    history = History(
        limits.history_envelopes,
        limits.history_bytes,
        first=0 if mark is None else mark.end,
        dropped_at=None if mark is None or not mark.end else mark.at,
    )
    space = Space(None if mark is None else _restored(past.state))
    for entry in past.entries:
        for decision in space.apply(entry):
            if isinstance(decision, Deliver):
                history.append(record_of(entry, decision))
    return space, history


def record_of(entry: Entry, shown: Deliver) -> Record:
    """What the history keeps of a delivery."""
    return Record(entry.at, shown.envelope, shown.raw or encode(shown.envelope), shown.only)


class Milestones:
    """Has a snapshot made when enough has happened since the last."""

    def __init__(self, space: Space, history: History, log: Log) -> None:
        self._space = space
        self._history = history
        self._log = log
        self._entries = space.seq
        self._bytes = history.bytes_shown

    def pass_by(self, entry: Entry) -> None:
        """The space has come to this entry, and nothing of the log that was yielded is left to apply."""
        if entry.seq - self._entries < _ENTRIES and self._history.bytes_shown - self._bytes < _BYTES:
            return
        self._entries, self._bytes = entry.seq, self._history.bytes_shown
        mark = Mark(entry.seq, entry.at, self._history.first, self._history.end)
        self._log.save_snapshot(mark, self._space.state.pieces())


def _restored(state: bytes) -> SpaceState:
    try:
        return SpaceState.restore(state)
    except ValueError as error:
        raise LogUnavailable(f"a snapshot is none that this version of mew knows: {error}") from error
