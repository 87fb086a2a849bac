"""A space with a journal and snapshots that runs without a gateway, and can be started again."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

from tests.space.table import START, Table

from mew.gateway.config.settings import Limits
from mew.gateway.history.query import DeliveredEnvelope, envelopes_in
from mew.gateway.history.recovery import SnapshotScheduler, recover
from mew.journal.files.database import Durability
from mew.journal.port import Delivered, JournalUnavailable, RetentionPolicy
from mew.journal.retention import KEEP_ALL, Retention
from mew.journal.sqlite import SqliteStorage
from mew.space import Decision, Deliver, Entry

__all__ = ["SPACE", "Life", "settled"]

SPACE = "desk"


class Life:
    """One life of a space, from where the last one ended. `shown`: what was delivered in it."""

    def __init__(
        self,
        folder: Path,
        limits: Limits | None = None,
        policy: RetentionPolicy = KEEP_ALL,
        now: datetime = START,
    ) -> None:
        self.now = now
        self.shown: list[DeliveredEnvelope] = []
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))  # so that `settled` comes last
        self.retention = Retention(policy, lambda: self.now)
        self.storage = SqliteStorage(folder, Durability.PROCESS, self.retention)
        self.journal, past = self.storage.open(SPACE, self._apply)
        self.last_at = past.at
        self.space, self.history = recover(past, limits or Limits(), policy, now)
        self.snapshots = SnapshotScheduler(self.space, self.history, self.journal)

    async def live(self, table: Table) -> None:
        """All that happened at the table and did not happen here yet."""
        for entry in table.entries:
            if entry.seq > self.space.seq:
                self.journal.append(entry.at, entry.event)
                self.storage.commit(_expect_success)
                self.now = entry.at
                if self.space.seq > self.snapshots.seq_due:
                    self.snapshots.make(entry.at)
                    await settled(self.retention)

    def end(self) -> None:
        self.journal.close()
        self.storage.close()

    def _apply(self, entry: Entry) -> Sequence[Decision]:
        decisions = self.space.apply(entry)
        start = 0
        for decision in decisions:
            if isinstance(decision, Deliver):
                ids, raws = decision.envelopes.ids, decision.envelopes.raws
                delivered = Delivered(entry.seq, entry.at, ids, raws, decision.only, start)
                self.history.append(delivered, sum(map(len, raws)))
                self.shown += envelopes_in(delivered)
                start += len(ids)
        return decisions


async def settled(retention: Retention) -> None:
    """Return when a snapshot that was begun is saved, and what it allows to go is gone."""
    loop = asyncio.get_running_loop()
    for _ in range(2):  # there may have been another snapshot meanwhile
        await loop.run_in_executor(None, _nothing)
        await loop.run_in_executor(retention.worker, _nothing)


def _nothing() -> None:
    """After all that was given to the same thread before."""


def _expect_success(error: JournalUnavailable | None) -> None:
    assert error is None, error
