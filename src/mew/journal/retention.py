"""Retention: trim old records of each space in a background thread, a few at a time.

A step is one transaction: what goes, and where the space begins from then on. A crash leaves a file that begins where
one of the steps ended. The writer has the file to itself for most of the time.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from threading import Event
from typing import Final

from .files.database import FILE, Damaged, Database, Durability, SpaceRow, checkpoint
from .files.locator import Locator, RecordLocation
from .files.snapshots import Snapshots
from .port import JournalUnavailable, RetentionPolicy, RetentionStats
from .record import ChainLink, from_microseconds, to_microseconds

__all__ = ["KEEP_ALL", "Retention", "Trimmer"]

_logger = logging.getLogger(__name__)

KEEP_ALL: Final = RetentionPolicy()
_STEP_RECORDS: Final = 256
_STEP_BYTES: Final = 128 << 10  # some 0.4 ms
_PAUSE_S: Final = 0.008
_PAUSE_FACTOR: Final = 19  # times as long as the step took
_WAL_BYTES: Final = 8 << 20
_TRUNCATE_EVERY_S: Final = 3600.0  # where much is written, what went is overwritten long before
_SETTINGS: Final = ("PRAGMA busy_timeout = 5000", "PRAGMA secure_delete = FAST", "PRAGMA temp_store = MEMORY")


class Retention:
    """For all spaces of a gateway. The policy may be changed."""

    def __init__(self, policy: RetentionPolicy = KEEP_ALL, now: Callable[[], datetime] | None = None) -> None:
        self.policy = policy
        self.now = now or partial(datetime.now, UTC)
        self.worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="mew-retention")
        self.stopped = Event()
        self.truncated_s = -_TRUNCATE_EVERY_S
        self.told_of: set[Path] = set()

    @property
    def kept_since(self) -> datetime | None:
        """What happened before this need not be kept, and need not be shown; None: all is."""
        return None if self.policy.age is None else self.now() - self.policy.age

    def close(self) -> None:
        """Drop no more; return once nothing is being dropped."""
        self.stopped.set()
        self.worker.shutdown(cancel_futures=True)


class Trimmer:
    """Drops what need not be kept of one space, as far as a start can do without it and the index has it."""

    def __init__(self, folder: Path, space: str, snapshots: Snapshots, retention: Retention) -> None:
        self._folder = folder
        self._space = space
        self._snapshots = snapshots
        self._retention = retention
        self._begin = 0
        self._since: datetime | None = None
        self._bytes = 0  # when it was last known
        self._appended = 0  # bytes appended until then
        self._first: datetime | None = None  # when the first of those was made that came after the last start
        self._trimming: asyncio.Future[RetentionStats | None] | None = None
        self._again: tuple[int, int] | None = None  # after another snapshot meanwhile

    def stats(self, end: int, appended: int) -> RetentionStats:
        """What is kept, up to this entry, after this many bytes were appended."""
        return RetentionStats(
            self._since, end - self._begin, self._bytes + appended - self._appended, self._begin
        )

    def open(self, begin: int, first: RecordLocation | None, size: int) -> None:
        """What is there: after which entry it begins, its first record, and the bytes of all."""
        self._begin, self._bytes = begin, size
        self._since = None if first is None else from_microseconds(first.at)
        self._tell_of_old_damage()

    def note(self, at: datetime) -> None:
        """An entry was made."""
        if self._first is None:
            self._first = at
            if self._since is None:
                self._since = at

    def start(self, end: int, appended: int) -> None:
        """Drop what is too much of the entries up to this one, without waiting. To be called after a snapshot."""
        if self._retention.policy == KEEP_ALL or self._retention.stopped.is_set():
            return
        if self._trimming is not None:
            self._again = end, appended
            return
        self._first = None
        work = partial(self._trim, self._retention.policy, self._retention.now(), end)
        self._trimming = asyncio.get_running_loop().run_in_executor(self._retention.worker, work)
        self._trimming.add_done_callback(lambda done: self._trimmed(done, appended))

    def _trimmed(self, done: asyncio.Future[RetentionStats | None], appended: int) -> None:
        self._trimming = None
        stats = None if done.cancelled() else done.result()
        if stats is not None:
            self._begin, self._since = stats.begin, stats.since or self._first
            self._bytes, self._appended = stats.bytes, appended
        again, self._again = self._again, None
        if again is not None:
            self.start(*again)

    def _trim(self, policy: RetentionPolicy, now: datetime, end: int) -> RetentionStats | None:
        """What is left; None: nothing was dropped."""
        self._tell_of_old_damage()
        try:
            with (
                Locator(self._folder) as locator,
                closing(Database.open(self._folder / FILE, Durability.PROCESS)) as database,
            ):
                for setting in _SETTINGS:
                    database.ask(setting)
                space = database.spaces()[self._space]
                try:
                    self._drop(database, locator, space, self._steps(database, locator, policy, now, end))
                except (Damaged, JournalUnavailable) as error:
                    self._tell_undropped(error)
                begin = database.spaces()[self._space].begin
                if begin == space.begin:
                    return None
                self._truncate(database, policy)
                first = next(locator.places(self._space, after=begin.seq), None)
                since = None if first is None else from_microseconds(first.at)
                return RetentionStats(since, 0, locator.bytes_after(self._space, begin.seq), begin.seq)
        except (Damaged, JournalUnavailable, OSError) as error:
            self._tell_undropped(error)
            return None

    def _tell_undropped(self, error: Exception) -> None:
        what = {"space": self._space, "error": str(error)}
        _logger.warning("old entries could not be dropped from the journal", extra=what)

    def _drop(
        self, database: Database, locator: Locator, space: SpaceRow, steps: Iterator[list[RecordLocation]]
    ) -> None:
        locator.locate()
        locator.forget(space.name, space.begin.seq)  # a crash may have come between dropping them and this
        wal_bytes = 0
        for step in steps:
            begun_s = time.monotonic()
            last = database.row(step[-1].n)
            if last is None:
                raise Damaged(f"record {step[-1].n} is missing")
            _drop_step(database, space.id, [place.n for place in step], ChainLink(last.last, last.hash))
            locator.forget(space.name, last.last)
            if self._retention.stopped.wait(max(_PAUSE_S, _PAUSE_FACTOR * (time.monotonic() - begun_s))):
                break
            wal_bytes += _STEP_BYTES
            if wal_bytes > _WAL_BYTES:
                wal_bytes = 0
                checkpoint(database.path)

    def _steps(
        self, database: Database, locator: Locator, policy: RetentionPolicy, now: datetime, end: int
    ) -> Iterator[list[RecordLocation]]:
        """The records that go, some at a time."""
        limit, indexed = self._limit(database, locator), locator.indexed
        until = 0 if policy.entries is None else end - policy.entries
        before = 0 if policy.age is None else to_microseconds(now - policy.age)
        surplus = 0 if policy.bytes is None else locator.bytes_after(self._space, 0) - policy.bytes
        step: list[RecordLocation] = []
        step_bytes = 0
        for place in locator.places(self._space, until=limit):
            if place.last > limit or place.n > indexed:
                break
            if not (place.last <= until or place.at < before or surplus > 0):
                break
            if step and (len(step) == _STEP_RECORDS or step_bytes + place.bytes > _STEP_BYTES):
                yield step
                step, step_bytes = [], 0
            step.append(place)
            step_bytes += place.bytes
            surplus -= place.bytes
        if step:
            yield step

    def _limit(self, database: Database, locator: Locator) -> int:
        """The last entry that a start can do without: the older of the last two snapshots does not need it."""
        good = self._snapshots.good()
        if len(good) < 2:
            return 0
        place = locator.find(self._space, good[-2].seq)
        row = None if place is None else database.row(place.n)
        if row is None or (row.last, row.hash) != good[-2].link:
            return 0
        return good[-2].seq

    def _truncate(self, database: Database, policy: RetentionPolicy) -> None:
        """Leave nothing that went in the write-ahead log, unless somebody reads it now."""
        pause_s = (
            _TRUNCATE_EVERY_S
            if policy.age is None
            else min(_TRUNCATE_EVERY_S, policy.age.total_seconds() / 20)
        )
        retention = self._retention
        if time.monotonic() - retention.truncated_s <= pause_s or retention.stopped.is_set():
            return
        checkpoint(database.path)  # most of it, while the writer goes on
        database.ask("PRAGMA busy_timeout = 50")
        database.ask("PRAGMA wal_checkpoint(TRUNCATE)")
        retention.truncated_s = time.monotonic()

    def _tell_of_old_damage(self) -> None:
        """Files that were set aside hold entries too, and only their owner may delete them."""
        since = self._retention.kept_since
        if since is None:
            return
        told = self._retention.told_of
        with suppress(OSError):
            for folder in (self._folder, self._snapshots.folder):
                for path in sorted(set(folder.glob("*.damaged-*")) - told):
                    if path.stat().st_mtime < since.timestamp():
                        told.add(path)
                        _logger.warning(
                            "a file that was set aside as damaged holds entries older than 'journal.keep_days';"
                            " delete it if nobody needs it",
                            extra={"file": str(path)},
                        )


def _drop_step(database: Database, space: int, numbers: list[int], begin: ChainLink) -> None:
    marks = ", ".join("?" * len(numbers))
    database.ask("BEGIN IMMEDIATE")
    try:
        database.ask(f"DELETE FROM records WHERE n IN ({marks})", numbers)
        database.ask("UPDATE spaces SET seq = ?, hash = ? WHERE id = ?", (*begin, space))
        database.ask("COMMIT")
    except BaseException:
        with suppress(Damaged, JournalUnavailable):
            database.ask("ROLLBACK")
        raise
