"""A log in a SQLite file, written ahead: an entry is in the database before anyone is shown it.

One transaction for each turn of the loop. It is written in place, which costs less than a thread; what waits for the
disk (to make the file, to survive a power cut, to bring what was written ahead into the file) is done in a thread.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

from mew.space import Configured, Entry, Event

from .base import Keep, Kept, LogUnavailable, Mark, Past
from .database import Busy, Damaged, Database, Durability, checkpoint
from .opening import FILE, open_journal
from .record import Link, first_link, pack, to_entry
from .retention import MayGo, Retention, Trimmer
from .snapshots import Snapshot, Snapshots

__all__ = ["SqliteLog"]

_logger = logging.getLogger(__name__)

_PAGE_BYTES: Final = 4096
_AHEAD_BYTES: Final = 16 << 20  # so much is written ahead before it is brought in, beside the writing
_AHEAD_BYTES_MAX: Final = 128 << 20  # and here the writing waits for it
_TURN_BYTES_MAX: Final = 256 << 20  # SQLite takes a little less than four times that


class SqliteLog:
    """One writer, one follower, one process: `Journals` sees to that.

    A space to which nothing happened but that it was configured has no file.
    """

    def __init__(
        self,
        folder: Path,
        space: str,
        durability: Durability = Durability.PROCESS,
        retention: Retention | None = None,
        may_go: MayGo | None = None,
    ) -> None:
        self._folder = folder
        self._path = folder / FILE
        self._space = space
        self._durability = durability
        self._snapshots = Snapshots(folder)
        self._retention = retention or Retention()
        self._trimmer = Trimmer(self._path, space, self._snapshots, self._retention, may_go)
        self._database: Database | None = None
        self._end = first_link(space)  # of what was given to the database
        self._yielded = self._end
        self._seq = 0
        self._new: list[Entry] = []
        self._unkept: list[Entry] = []  # until there is a file
        self._followers = 0
        self._waiting: asyncio.Future[None] | None = None  # a follower, for something new
        self._closed = False
        self._ahead_bytes = 0
        self._overdue = False
        self._bringing_in: asyncio.Future[tuple[int, int]] | None = None
        self._saving: asyncio.Future[None] | None = None

    @property
    def keep(self) -> Keep:
        return self._retention.keep

    @property
    def kept(self) -> Kept:
        return self._trimmer.kept(self._end.seq)

    def append(self, at: datetime, event: Event) -> None:
        if self._closed:
            raise LogUnavailable("the log is closed")
        self._seq += 1
        self._new.append(Entry(self._seq, at, event))
        self._wake()

    async def follow(self, after: int) -> AsyncGenerator[Sequence[Entry], None]:
        assert after <= self._seq, f"follow after {after}, but the log ends at {self._seq}"
        self._followers += 1
        try:
            while self._new or not self._closed:
                if not self._new:
                    self._waiting = asyncio.get_running_loop().create_future()
                    await self._waiting
                    continue
                batch, self._new = self._new, []
                await self._keep(batch)
                self._yielded = self._end
                yield batch
        finally:
            self._followers -= 1
            if self._closed and not self._followers:
                await asyncio.to_thread(self._release)

    @property
    def is_at_rest(self) -> bool:
        return False

    def place(self, count: int) -> int:
        raise AssertionError("everything is kept here")

    def recall(self) -> Past:
        opened = open_journal(self._folder, self._space, self._durability)
        if opened is None:
            return Past(None, b"", iter(()))
        self._database = opened.database
        self._trimmer.open(opened.database)
        self._end = self._yielded = opened.end
        self._seq = opened.end.seq
        return Past(opened.mark, opened.state, _entries(opened.database, opened.begin, opened.end))

    def save_snapshot(self, mark: Mark, pieces: Iterable[bytes]) -> None:
        if self._database is None or self._closed or (self._saving is not None and not self._saving.done()):
            return
        assert mark.seq == self._yielded.seq, (
            f"a snapshot after {mark.seq}, the log is at {self._yielded.seq}"
        )
        snapshot = Snapshot(mark, self._yielded.hash)
        self._saving = asyncio.get_running_loop().run_in_executor(None, self._save, snapshot, pieces)
        self._saving.add_done_callback(lambda done: self._trimmer.start(mark.seq))

    def close(self) -> None:
        self._closed = True
        self._wake()
        if not self._followers:
            self._release()

    async def _keep(self, batch: list[Entry]) -> None:
        try:
            if self._overdue:
                self._overdue = False
                await asyncio.to_thread(checkpoint, self._path, whole=True)
            if self._database is None:
                batch = self._unkept = [*self._unkept, *batch]
                if all(type(entry.event) is Configured for entry in batch):
                    return  # nobody is here to be shown anything; it is written with what comes next
                self._database = await asyncio.to_thread(self._make, batch[0].seq - 1)
                self._unkept = []
            await self._write(self._database, batch)
        except (Damaged, LogUnavailable) as error:
            self._closed = True
            raise LogUnavailable(f"the journal cannot be written: {error}") from error

    async def _write(self, database: Database, turn: list[Entry]) -> None:
        packed, end = pack(turn, self._end)
        if len(packed) > _TURN_BYTES_MAX and len(turn) > 1:
            middle = len(turn) // 2
            await self._write(database, turn[:middle])
            await self._write(database, turn[middle:])
            return
        self._end = end
        if self._durability is Durability.POWER:
            await asyncio.to_thread(database.write_patiently, end.seq, packed)
        else:
            try:
                database.write(end.seq, packed)
            except Busy:
                await asyncio.to_thread(database.write_patiently, end.seq, packed)
        self._trimmer.note(turn[0].at, len(packed))
        self._ahead_bytes += _PAGE_BYTES + len(packed)
        if self._ahead_bytes > _AHEAD_BYTES and self._bringing_in is None:
            self._ahead_bytes = 0
            self._bringing_in = asyncio.get_running_loop().run_in_executor(None, checkpoint, self._path)
            self._bringing_in.add_done_callback(self._brought_in)

    def _brought_in(self, done: asyncio.Future[tuple[int, int]]) -> None:
        self._bringing_in = None
        try:
            ahead, _ = done.result()
        except (Damaged, LogUnavailable) as error:
            _logger.warning("the journal could not be brought up to date", extra={"error": str(error)})
        else:
            self._overdue = ahead * _PAGE_BYTES > _AHEAD_BYTES_MAX

    def _make(self, after: int) -> Database:
        if self._path.exists():  # closed before this was written
            return Database.open(self._path, self._space, self._durability)
        assert after == 0, f"a new file after entry {after}"
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise LogUnavailable(f"{self._folder}: {error.strerror}") from error
        return Database.create(self._path, self._space, first_link(self._space), self._durability)

    def _save(self, snapshot: Snapshot, pieces: Iterable[bytes]) -> None:
        try:
            self._snapshots.save(snapshot, pieces)
            if self._trimmer.begin:
                self._snapshots.secure()
            self._snapshots.prune()
        except OSError as error:
            what = {"file": str(self._folder), "error": error.strerror}
            _logger.warning("a snapshot could not be kept; the next start takes longer", extra=what)

    def _release(self) -> None:
        self._trimmer.stop()
        database, self._database = self._database, None
        if database is None:
            return
        try:
            database.close()
        except (Damaged, LogUnavailable) as error:
            _logger.error("the journal could not be closed", extra={"error": str(error)})

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)


def _entries(database: Database, begin: Link, end: Link) -> Iterator[Entry]:
    for row in database.rows(begin.seq):
        try:
            yield to_entry(row)
        except ValueError as error:
            raise LogUnavailable(
                f"{database.path}: entry {row.seq} is none that this version of mew knows: {error}"
            ) from error
        if row.seq == end.seq:
            return
