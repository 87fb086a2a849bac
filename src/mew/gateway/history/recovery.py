"""The space and its recent history from a journal, and the snapshots that keep this short.

Nothing is shown that the journal need not keep any longer, and the journal drops only what no start needs: so a
snapshot is also made where something is to go.
"""

from datetime import datetime, timedelta
from typing import Final

from mew.gateway.config.settings import Limits
from mew.journal.port import (
    Delivered,
    Journal,
    JournalContents,
    JournalUnavailable,
    RetentionPolicy,
    RetentionStats,
)
from mew.space import Decision, Deliver, Entry, Space
from mew.space.state import SpaceState

from .recent import RecentHistory

__all__ = ["SnapshotScheduler", "bounds", "recover"]

_ENTRIES: Final = 200_000  # some 0.5 s to replay
_BYTES: Final = 256 << 20
_ENTRIES_MIN: Final = 250
_BYTES_MIN: Final = 1 << 20
_SHARE: Final = 10  # of what is kept: so much more there may be, twice
_SHARE_OF_AGE: Final = 20
_PAUSE: Final = timedelta(seconds=1)  # between snapshots that are made only so that something may go
_RETRY: Final = timedelta(hours=1)  # and where they did not help


def bounds(limits: Limits, policy: RetentionPolicy) -> tuple[int, int]:
    """Those of a history: not more envelopes, and not more bytes, than its journal may drop to."""
    envelopes, size = limits.history_envelopes, limits.history_bytes
    return (
        envelopes if policy.entries is None else min(envelopes, policy.entries),
        size if policy.bytes is None else min(size, policy.bytes // 2),
    )


def recover(
    past: JournalContents,
    limits: Limits,
    policy: RetentionPolicy,
    now: datetime,
    life: str = "",
    space_type: type[Space] = Space,
) -> tuple[Space, RecentHistory]:
    """The space after all that is in a journal, and its recent history.

    Nothing is carried out: what was to be sent was sent, or its receiver is gone and asks for what it missed.
    `life`: a name for this process in cursors, if the journal ends with it.

    Raises:
        JournalUnavailable: it is there and cannot be read.
    """
    space = space_type(None if past.state is None else _restored(past.state))
    history = RecentHistory(*bounds(limits, policy), life=life, losses=past.losses)
    if past.begin:
        history.begin_after(past.begin, now)
    for entry in past.entries:
        decisions = space.apply(entry)
        if past.shared is not None:
            _remember(history, entry, decisions)
    for delivered in past.delivered:
        is_late = policy.age is None or delivered.at >= now - policy.age
        if is_late and (not delivered.ids or history.prepend(delivered)):
            continue
        history.begin_after(delivered.seq, delivered.at, len(delivered.ids))
        break
    return space, history


class SnapshotScheduler:
    """Has a snapshot made when enough has happened since the last, or something is to go from the journal.

    One is due after the entry `seq_due`, and once more than `bytes_due` bytes were delivered.
    """

    def __init__(self, space: Space, history: RecentHistory, journal: Journal) -> None:
        self._space = space
        self._history = history
        self._journal = journal
        self._made = (space.seq, history.evicted)  # when the last snapshot was made
        self._policy = journal.policy
        self._heed(self._policy)

    def make(self, at: datetime) -> None:
        """So much has happened, the last of it at this moment, that a snapshot is due."""
        if self._at is None or not self._hurried or at - self._at >= _PAUSE:
            self._save(at)

    def pass_time(self, now: datetime) -> None:
        """Evict what is too old, and see whether something is to go from the journal. To be called every minute."""
        policy = self._journal.policy
        if policy != self._policy:
            self._policy = policy
            self._heed(policy)
        if policy.age is not None:
            self._history.forget(now - policy.age)
        if self._is_due(policy, now):
            self._save(now)

    def _heed(self, policy: RetentionPolicy) -> None:
        self._at: datetime | None = None
        self._entries, self.bytes_due = _ENTRIES, _BYTES
        if policy.entries is not None:
            self._entries = max(_ENTRIES_MIN, min(_ENTRIES, policy.entries // _SHARE))
        if policy.bytes is not None:
            self.bytes_due = max(_BYTES_MIN, min(_BYTES, policy.bytes // _SHARE))
        self._hurried = (self._entries, self.bytes_due) != (_ENTRIES, _BYTES)
        self.seq_due = self._made[0] + self._entries

    def _is_due(self, policy: RetentionPolicy, now: datetime) -> bool:
        stats = self._journal.stats
        if not stats.entries:
            return False
        has_changed = self._made != (self._space.seq, self._history.evicted)
        waited = timedelta.max if self._at is None else now - self._at
        if policy.age is not None and waited >= policy.age / _SHARE_OF_AGE:
            return has_changed or (stats.since is not None and stats.since < now - policy.age)
        return has_changed and waited >= _RETRY and _is_over(policy, stats)

    def _save(self, now: datetime) -> None:
        self._at, self._made = now, (self._space.seq, self._history.evicted)
        self.seq_due = self._space.seq + self._entries
        self._journal.save_snapshot(self._space.state.pieces())


def _remember(history: RecentHistory, entry: Entry, decisions: list[Decision]) -> None:
    start = 0
    for decision in decisions:
        if type(decision) is Deliver:
            envelopes = decision.envelopes
            delivered = Delivered(entry.seq, entry.at, envelopes.ids, envelopes.raws, decision.only, start)
            history.append(delivered, sum(map(len, envelopes.raws)))
            start += len(envelopes.ids)


def _is_over(policy: RetentionPolicy, stats: RetentionStats) -> bool:
    return (policy.entries is not None and stats.entries > policy.entries) or (
        policy.bytes is not None and stats.bytes > policy.bytes
    )


def _restored(state: bytes) -> SpaceState:
    try:
        return SpaceState.restore(state)
    except ValueError as error:
        raise JournalUnavailable(f"a snapshot is none that this version of mew knows: {error}") from error
