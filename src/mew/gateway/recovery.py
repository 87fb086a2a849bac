"""From a log back to a space and what was shown in it; and snapshots, so that this never takes long.

Nothing is shown that the log need not keep any more, and the log drops only what no start needs: so a snapshot is also
made where something is to go.
"""

from datetime import datetime, timedelta
from typing import Final

from mew.log.base import Keep, Kept, Log, LogUnavailable, Mark
from mew.protocol.codec import encode
from mew.space import Deliver, Entry, Space
from mew.space.state import SpaceState

from .history import History
from .pages import Record
from .settings import Limits

__all__ = ["Milestones", "bounds", "record_of", "recover"]

_ENTRIES: Final = 30_000  # some 0.3 s to go through
_BYTES: Final = 64 << 20
_ENTRIES_LEAST: Final = 250
_BYTES_LEAST: Final = 1 << 20
_SHARE: Final = 10  # of what is kept: so much more there may be, twice
_SHARE_OF_AGE: Final = 20
_PAUSE: Final = timedelta(seconds=1)  # between snapshots that are made only so that something may go
_PATIENCE: Final = timedelta(hours=1)  # and where they did not help


def bounds(limits: Limits, keep: Keep) -> tuple[int, int]:
    """Those of a history: not more envelopes, and not more bytes, than its log may drop to."""
    envelopes, size = limits.history_envelopes, limits.history_bytes
    return (
        envelopes if keep.entries is None else min(envelopes, keep.entries),
        size if keep.bytes is None else min(size, keep.bytes // 2),
    )


def recover(
    log: Log, limits: Limits, now: datetime, life: str = ""
) -> tuple[Space, History, datetime | None]:
    """The space after all that is in the log, what was shown last, within its bounds, and when the last entry was made.

    `life`: a name for this process in cursors, where the log ends with it. Nothing is carried out: what was to be sent
    was sent, or its receiver is gone and asks for what it missed.

    Raises:
        LogUnavailable: the log is there and cannot be read.
    """
    past = log.recall()
    mark = past.mark
    history = History(
        *bounds(limits, log.keep),
        first=0 if mark is None else mark.end,
        dropped_at=None if mark is None or not mark.end else mark.at,
        gone=0 if mark is None or not mark.end else mark.seq,
        life=life,
    )
    space = Space(None if mark is None else _restored(past.state))
    last_at = None if mark is None else mark.at
    for entry in past.entries:
        last_at = entry.at if last_at is None else max(last_at, entry.at)
        for decision in space.apply(entry):
            if isinstance(decision, Deliver):
                history.append(record_of(entry, decision))
    if log.keep.age is not None:
        history.forget(now - log.keep.age)
    return space, history, last_at


def record_of(entry: Entry, shown: Deliver) -> Record:
    """What the history keeps of a delivery."""
    envelope = shown.envelope
    return Record.of(envelope, shown.raw or encode(envelope), at=entry.at, only=shown.only, seq=entry.seq)


class Milestones:
    """Has a snapshot made when enough has happened since the last, or something is to go from the log."""

    def __init__(self, space: Space, history: History, log: Log) -> None:
        self._space = space
        self._history = history
        self._log = log
        self._passed = (space.seq, history.first)  # when the last snapshot was made
        self._bytes = history.bytes_shown
        self._heed(log.keep)

    def pass_by(self, entry: Entry) -> None:
        """The space has come to this entry, and nothing of the log that was yielded is left to apply."""
        if (
            entry.seq - self._passed[0] < self._entries_each
            and self._history.bytes_shown - self._bytes < self._bytes_each
        ):
            return
        if self._at is None or not self._hurried or entry.at - self._at >= _PAUSE:
            self._save(entry.at, entry.at)

    def pass_time(self, now: datetime) -> None:
        """It is so late now: forget what is too old, and see whether something else is to go. To be called often."""
        keep = self._log.keep
        if keep != self._keep:
            self._heed(keep)
        if keep.age is not None:
            self._history.forget(now - keep.age)
        if self._is_due(keep, now):
            self._save(now, self._history.shown_at or now)

    def _heed(self, keep: Keep) -> None:
        self._keep = keep
        self._at: datetime | None = None
        self._entries_each, self._bytes_each = _ENTRIES, _BYTES
        if keep.entries is not None:
            self._entries_each = max(_ENTRIES_LEAST, min(_ENTRIES, keep.entries // _SHARE))
        if keep.bytes is not None:
            self._bytes_each = max(_BYTES_LEAST, min(_BYTES, keep.bytes // _SHARE))
        self._hurried = (self._entries_each, self._bytes_each) != (_ENTRIES, _BYTES)

    def _is_due(self, keep: Keep, now: datetime) -> bool:
        kept = self._log.kept
        if not kept.entries:
            return False
        is_news = self._passed != (self._space.seq, self._history.first)
        waited = timedelta.max if self._at is None else now - self._at
        if keep.age is not None and waited >= keep.age / _SHARE_OF_AGE:
            return is_news or (kept.since is not None and kept.since < now - keep.age)
        return is_news and waited >= _PATIENCE and _is_over(keep, kept)

    def _save(self, now: datetime, shown_at: datetime) -> None:
        seq, history = self._space.seq, self._history
        self._at, self._passed, self._bytes = now, (seq, history.first), history.bytes_shown
        self._log.save_snapshot(Mark(seq, shown_at, history.first, history.end), self._space.state.pieces())


def _is_over(keep: Keep, kept: Kept) -> bool:
    return (keep.entries is not None and kept.entries > keep.entries) or (
        keep.bytes is not None and kept.bytes > keep.bytes
    )


def _restored(state: bytes) -> SpaceState:
    try:
        return SpaceState.restore(state)
    except ValueError as error:
        raise LogUnavailable(f"a snapshot is none that this version of mew knows: {error}") from error
