"""Opens a journal: where to begin, and whether what follows is whole. What is damaged is said, and kept aside.

Nothing here deletes: a file that is not whole gets another name, and what can be read of it goes into a new one.
"""

import logging
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from .base import LogUnavailable, Mark
from .database import Damaged, Database, Durability, checkpoint
from .record import Link, break_at, first_link
from .salvage import free_name, keep_aside, salvage
from .snapshots import Snapshot, Snapshots, oldest_needed
from .wal import has_lost_commits

__all__ = ["FILE", "Opened", "open_journal"]

_logger = logging.getLogger(__name__)

FILE: Final = "entries.db"
_ADVICE: Final = "if you have a better copy, stop the gateway, put it there and start again"


@dataclass(frozen=True, slots=True)
class Opened:
    """A journal whose entries from `begin` to `end` are whole; the state after `begin`, where it is not the first."""

    database: Database
    mark: Mark | None
    state: bytes
    begin: Link
    end: Link


def open_journal(folder: Path, space: str, durability: Durability) -> Opened | None:
    """What is there; None: nothing yet.

    Raises:
        LogUnavailable: it cannot be opened, is another space's, or of a later version.
    """
    opening = _Opening(folder, space, durability)
    try:
        return opening.open()
    except OSError as error:
        raise LogUnavailable(f"{folder}: {error.strerror}") from error


class _Opening:
    def __init__(self, folder: Path, space: str, durability: Durability) -> None:
        self._path = folder / FILE
        self._space = space
        self._durability = durability
        self._snapshots = Snapshots(folder)

    def open(self) -> Opened | None:
        for place, aside in self._snapshots.mend():
            self._say(f"{place.name} could not be read; its copy has taken its place", aside)
        if not self._path.exists():
            return self._anew("it is gone, but a snapshot is left") if self._snapshots.list() else None
        try:
            database = self._open_file()
        except Damaged as error:
            return self._anew(str(error))
        try:
            return self._read(database)
        except BaseException as error:
            with suppress(Damaged, LogUnavailable):
                database.close()
            if isinstance(error, Damaged):
                return self._anew(str(error))
            raise

    def _open_file(self) -> Database:
        database = Database.open(self._path, self._space, self._durability)
        try:
            self._look_ahead()
        except BaseException:
            with suppress(Damaged, LogUnavailable):
                database.close()
            raise
        return database

    def _look_ahead(self) -> None:
        """Once the file is open: before, somebody who only looked at it could still bring in what was ahead."""
        ahead = self._path.with_name(f"{self._path.name}-wal")
        written = ahead.read_bytes() if ahead.exists() else b""
        if not written:
            return
        frames, _ = checkpoint(self._path)
        if has_lost_commits(written, frames):
            aside = free_name(ahead)
            with open(os.open(aside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
                file.write(written)
            self._say("what was written last cannot be read, and is lost", aside)

    def _read(self, database: Database) -> Opened:
        good = self._good_snapshots(database)
        begin, start = self._begin(database, good)
        scan = _scan(database, start)
        unreadable = False
        while scan.why is not None:
            unreadable = unreadable or not scan.readable
            later = [snapshot for snapshot in good if snapshot.mark.seq > scan.end.seq]
            if not later:
                database = self._salvage(
                    database, scan.end, f"{scan.why}; all up to entry {scan.end.seq} is served"
                )
                return Opened(database, *self._state(begin), start, scan.end)
            why = f"{scan.why}; what is shown begins with the snapshot after entry {later[0].mark.seq}"
            self._say(why)
            begin, start = later[0], _link(later[0])
            scan = _scan(database, start)
        if unreadable:  # and not to be written to any more
            database = self._salvage(database, scan.end, "what could be read of it was copied")
        return Opened(database, *self._state(begin), start, scan.end)

    def _good_snapshots(self, database: Database) -> list[Snapshot]:
        """Those that fit the entries and are whole, the oldest first; others are set aside."""
        for aside in self._snapshots.set_strays_aside():
            self._say("a snapshot cannot be read", aside)
        good: list[Snapshot] = []
        first, last = _first(database), _last(database)
        for snapshot in self._snapshots.list():
            if snapshot.mark.seq < first:
                continue  # of what was dropped; the next one that is made deletes it
            if _fits(database, snapshot) and self._snapshots.load(snapshot) is not None:
                good.append(snapshot)
                continue
            aside = self._snapshots.set_aside(snapshot)
            if last is not None and snapshot.mark.seq > last:
                self._say(f"it ends with entry {last}, a snapshot says there was {snapshot.mark.seq}", aside)
            else:
                self._say(f"the snapshot after entry {snapshot.mark.seq} does not fit it", aside)
        return good

    def _begin(self, database: Database, good: list[Snapshot]) -> tuple[Snapshot | None, Link]:
        needed = oldest_needed([snapshot.mark for snapshot in good])
        for snapshot in good:
            if snapshot.mark == needed:
                return snapshot, _link(snapshot)
        if database.begin == first_link(self._space):
            return None, database.begin
        if good:
            return good[0], _link(good[0])
        raise LogUnavailable(
            f"{self._path}: its first entries are gone and no snapshot is left, so it cannot be gone through;"
            f" {_ADVICE}, or move the folder away to start anew"
        )

    def _state(self, begin: Snapshot | None) -> tuple[Mark | None, bytes]:
        if begin is None:
            return None, b""
        state = self._snapshots.load(begin)
        if state is None:
            raise LogUnavailable(
                f"{self._path}: the snapshot after entry {begin.mark.seq} has changed just now"
            )
        return begin.mark, state

    def _anew(self, why: str) -> Opened:
        """Nothing of the file can be read: go on from the newest snapshot that is whole, or from nothing."""
        newest, state = None, b""
        for snapshot in self._snapshots.list():
            found = self._snapshots.load(snapshot)
            if found is not None:
                newest, state = snapshot, found
        aside = keep_aside(self._path) if self._path.exists() else None
        link = first_link(self._space) if newest is None else _link(newest)
        begun = (
            "the space begins empty" if newest is None else f"the space is as it was after entry {link.seq}"
        )
        self._say(f"{why}; {begun}", aside)
        database = Database.create(self._path, self._space, link, self._durability)
        return Opened(database, None if newest is None else newest.mark, state, link, link)

    def _salvage(self, database: Database, end: Link, what: str) -> Database:
        begin = database.begin
        with suppress(Damaged, LogUnavailable):
            database.close()
        aside = keep_aside(self._path)
        self._say(what, aside)
        return salvage(self._path, aside, self._space, begin=begin, end=end, durability=self._durability)

    def _say(self, what: str, aside: Path | None = None) -> None:
        kept = "" if aside is None else f"; what was there is kept as {aside.name}"
        _logger.error("journal %s is damaged: %s%s; %s", self._path, what, kept, _ADVICE)


class _Scan(NamedTuple):
    """The last entry up to which all is what was written, and what is wrong after it."""

    end: Link
    why: str | None = None
    readable: bool = True


def _scan(database: Database, start: Link) -> _Scan:
    end = start
    try:
        for row in database.rows(start.seq):
            found = break_at(row, end)
            if found is not None:
                return _Scan(end, found.why)
            end = Link(row.seq, row.hash)
    except Damaged as error:
        return _Scan(
            end, f"entry {end.seq + 1} or one soon after it cannot be read ({error})", readable=False
        )
    return _Scan(end)


def _first(database: Database) -> int:
    try:
        return database.begin.seq
    except Damaged:
        return 0


def _last(database: Database) -> int | None:
    try:
        return database.last
    except Damaged:
        return None


def _fits(database: Database, snapshot: Snapshot) -> bool:
    try:
        return database.hash_of(snapshot.mark.seq) == snapshot.hash
    except Damaged:
        return True  # what it was made after cannot be read, so it is all the more needed


def _link(snapshot: Snapshot) -> Link:
    return Link(snapshot.mark.seq, snapshot.hash)
