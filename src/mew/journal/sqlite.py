"""Journals in one SQLite file, written ahead: what happens is in the database before anyone is shown it.

One transaction for all spaces in a pass of the event loop. It is written in place, which costs less than a thread; what
waits for the disk (to survive a power cut, to move the write-ahead log into the file) is done in a thread.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Final, TypeAlias, TypeVar

from mew.space import Configured, Entry, Event, Sent

from .errors import damaged
from .files.database import Busy, Columns, Damaged, Database, Durability, checkpoint
from .files.disk_watch import FileWatch
from .files.folder import FolderLock, space_folder
from .files.high_water import HighWaterMarks
from .files.locator import Locator
from .files.snapshots import Snapshot, Snapshots
from .port import (
    CommitCallback,
    Delivered,
    Follower,
    JournalContents,
    JournalUnavailable,
    RetentionPolicy,
    RetentionStats,
)
from .record import from_microseconds, is_indexed, pack, to_microseconds
from .recovery.restore import RecoveredSpace, Recovery, delivered, entries
from .retention import Retention, Trimmer

__all__ = ["SqliteJournal", "SqliteStorage"]

_logger = logging.getLogger(__name__)

_T = TypeVar("_T")
Row: TypeAlias = tuple[int, int, bool, bytes, bytes]
"""The number of the last entry, its moment, whether the index has more to say of it, the hash, the record."""

_PAGE_BYTES: Final = 4096
_WAL_BYTES: Final = 64 << 20  # the write-ahead log is moved into the file at this size, beside the writing
_WAL_BYTES_MAX: Final = 256 << 20  # and here the writing waits for it


class SqliteStorage:
    """All journals of a gateway in one SQLite file; locks the folder until closed."""

    is_shared = False

    def __init__(
        self, folder: Path, durability: Durability = Durability.PROCESS, retention: Retention | None = None
    ) -> None:
        """
        Raises:
            JournalUnavailable: another process has the folder, or it cannot be written or read.
        """
        self.folder = folder
        self.retention = retention or Retention()
        self._lock = FolderLock(folder)
        self._durability = durability
        with ExitStack() as stack:
            stack.callback(self._lock.release)
            self._marks = HighWaterMarks(folder)
            stack.callback(self._marks.close)
            self._recovery = Recovery(folder, durability, self._marks)
            self._database = self._recovery.open_file()
            stack.pop_all()
        self._files = FileWatch(folder)
        self._using = Lock()  # it is not closed while a thread moves what has no name any more
        self._n = self._database.last()
        self._rows: list[Columns] = []
        self._is_committing = False  # in a thread
        self._when_committed: list[Callable[[], None]] = []
        self._at: datetime | None = None
        self._microseconds = 0
        self._wal_bytes = 0
        self._overdue = False
        self._checkpointing: asyncio.Future[tuple[int, int]] | None = None

    async def prepare(self, spaces: Iterable[str]) -> None:
        """`open` reads the files."""

    def open(self, space: str, follower: Follower) -> tuple["SqliteJournal", JournalContents]:
        self._files.check()
        self._database, recovered = self._recovery.open_space(self._database, space)
        self._files = FileWatch(self.folder)  # it may be another now
        self._n = max(self._n, self._database.last())
        snapshots = Snapshots(space_folder(self.folder, space))
        trimmer = Trimmer(self.folder, space, snapshots, self.retention)
        trimmer.open(recovered.row.begin.seq, recovered.first, recovered.bytes)
        past = JournalContents(
            recovered.state,
            None if recovered.last is None else from_microseconds(recovered.last.at),
            recovered.row.begin.seq,
            self._located(partial(_entries, self._database, recovered)),
            self._located(partial(_delivered, self._database, recovered)),
            recovered.losses,
        )
        return SqliteJournal(self, recovered, snapshots, trimmer, follower), past

    def check_files(self) -> None:
        """Check that the names of the files still lead to those that are open. May be called in a thread.

        Raises:
            JournalUnavailable: one does not; the message says what to do.
        """
        self._files.check()

    def save_unlinked(self) -> None:
        """Move what was committed into the file that is open, from a write-ahead log that may have no name any more.

        To be called in a thread, once nothing is appended any longer.
        """
        with self._using, suppress(Damaged, JournalUnavailable):
            self._database.ask("PRAGMA wal_checkpoint(FULL)")

    def committed(self) -> int:
        """The number of the last record that was given to a commit."""
        return self._n

    def add(self, space: int, row: Row) -> None:
        """A record of a space, for the next commit."""
        self._n += 1
        self._rows.append((self._n, space, *row))
        self._wal_bytes += len(row[4])

    def timestamp_us(self, at: datetime) -> int:
        """In microseconds since 1970; mostly the same for all spaces in a pass of the loop."""
        if at is not self._at:
            self._at, self._microseconds = at, to_microseconds(at)
        return self._microseconds

    def when_committed(self, call: Callable[[], None]) -> None:
        """Call it once all that was appended until now is committed, and not at all if it cannot be."""
        if self._rows or self._is_committing:
            self._when_committed.append(call)
        else:
            call()

    def commit(self, done: CommitCallback) -> None:
        rows, self._rows = self._rows, []
        if not rows:
            done(None)
            return
        if self._durability is Durability.POWER or self._overdue:
            self._commit_in_thread(rows, done)
            return
        try:
            self._database.write(rows)
        except Busy:
            self._commit_in_thread(rows, done)
        except (Damaged, JournalUnavailable) as error:
            self._committed(rows, error, done)
        else:
            self._committed(rows, None, done)

    def close(self) -> None:
        self.retention.close()
        self._marks.close()
        with self._using:
            try:
                self._database.close()
            except (Damaged, JournalUnavailable) as error:
                _logger.error("the journal could not be closed", extra={"error": str(error)})
        self._lock.release()

    def _located(self, read: Callable[[Locator], Iterator[_T]]) -> Iterator[_T]:
        with self._recovery.locator() as locator:
            yield from read(locator)

    def _commit_in_thread(self, rows: list[Columns], done: CommitCallback) -> None:
        database, is_overdue = self._database, self._overdue
        self._overdue = False
        self._is_committing = True

        def write() -> None:
            if is_overdue:
                self._files.check()
                with suppress(Busy):  # somebody else is at it
                    checkpoint(database.path, whole=True)
            database.write_patiently(rows)

        def written(future: asyncio.Future[None]) -> None:
            self._is_committing = False
            error = future.exception()
            if error is None or isinstance(error, Damaged | JournalUnavailable):
                self._committed(rows, error, done)
            else:
                raise error

        asyncio.get_running_loop().run_in_executor(None, write).add_done_callback(written)

    def _committed(
        self, rows: list[Columns], error: Damaged | JournalUnavailable | None, done: CommitCallback
    ) -> None:
        calls, self._when_committed = self._when_committed, []
        if error is not None:
            done(error if isinstance(error, JournalUnavailable) else damaged(self._database.path, error))
            return
        self._marks.advance(rows)
        self._wal_bytes += _PAGE_BYTES
        if self._wal_bytes > _WAL_BYTES and self._checkpointing is None:
            self._wal_bytes = 0
            loop = asyncio.get_running_loop()
            self._checkpointing = loop.run_in_executor(None, self._checkpoint)
            self._checkpointing.add_done_callback(self._checkpointed)
        for call in calls:
            call()
        done(None)

    def _checkpoint(self) -> tuple[int, int]:
        self._files.check()  # another connection would read another write-ahead log
        return checkpoint(self._database.path)

    def _checkpointed(self, done: asyncio.Future[tuple[int, int]]) -> None:
        self._checkpointing = None
        try:
            pages, _ = done.result()
        except (Damaged, JournalUnavailable) as error:
            _logger.warning("the journal's write-ahead log was not moved", extra={"error": str(error)})
        else:
            self._overdue = pages * _PAGE_BYTES > _WAL_BYTES_MAX


class SqliteJournal:
    """The journal of one space.

    That it was configured is written with what happens next: until then it concerned nobody. So a space that nobody
    ever came to has no records.
    """

    def __init__(
        self,
        storage: SqliteStorage,
        recovered: RecoveredSpace,
        snapshots: Snapshots,
        trimmer: Trimmer,
        follower: Follower,
    ) -> None:
        self._storage = storage
        self._space = recovered.row.id
        self._seq, self._hash = recovered.end
        self._snapshots = snapshots
        self._trimmer = trimmer
        self._follower = follower
        self._held: list[Row] = []  # until something happens
        self._bytes = 0  # of the records appended
        self._closed = False
        self._saving: asyncio.Future[None] | None = None

    def append(self, at: datetime, event: Event) -> None:
        if self._closed:
            raise JournalUnavailable("the journal is closed")
        size = len(event.envelopes.ids) if type(event) is Sent else 1
        entry = Entry(self._seq + 1, at, event, size)
        self._seq += size
        decisions = self._follower(entry)
        at_us = self._storage.timestamp_us(at)
        body, self._hash = pack(entry, at_us, decisions, self._hash)
        row = (self._seq, at_us, is_indexed(entry, decisions), self._hash, body)
        self._bytes += len(body)
        self._trimmer.note(at)
        if type(event) is Configured and not decisions:
            self._held.append(row)
            return
        if self._held:
            held, self._held = self._held, []
            for before in held:
                self._storage.add(self._space, before)
        self._storage.add(self._space, row)

    @property
    def policy(self) -> RetentionPolicy:
        return self._storage.retention.policy

    @property
    def stats(self) -> RetentionStats:
        return self._trimmer.stats(self._seq, self._bytes)

    def save_snapshot(self, pieces: Iterable[bytes]) -> None:
        if self._closed or self._held or (self._saving is not None and not self._saving.done()):
            return
        snapshot = Snapshot(self._seq, self._hash)
        self._storage.when_committed(partial(self._start_saving, snapshot, pieces))

    def close(self) -> None:
        self._closed = True

    def _start_saving(self, snapshot: Snapshot, pieces: Iterable[bytes]) -> None:
        self._saving = asyncio.get_running_loop().run_in_executor(None, self._save, snapshot, pieces)
        self._saving.add_done_callback(lambda done: self._trimmer.start(snapshot.seq, self._bytes))

    def _save(self, snapshot: Snapshot, pieces: Iterable[bytes]) -> None:
        try:
            self._snapshots.save(snapshot, pieces)
        except OSError as error:
            what = {"folder": str(self._snapshots.folder), "error": error.strerror}
            _logger.warning("a snapshot could not be saved; the next start takes longer", extra=what)


def _entries(database: Database, recovered: RecoveredSpace, locator: Locator) -> Iterator[Entry]:
    return entries(database, locator, recovered.row.name, recovered.begin.seq)


def _delivered(database: Database, recovered: RecoveredSpace, locator: Locator) -> Iterator[Delivered]:
    return delivered(database, locator, recovered.row, recovered.end)
