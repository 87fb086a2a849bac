"""Open the journal after a restart: salvage a damaged file if needed, and restore each space from its snapshot.

Nothing here deletes: a file that is damaged gets another name, and what can be read of it goes into a new one. At every
moment there is a file in its place, so a crash in the middle only means that this is done again.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Final

from mew.journal.errors import damaged, unavailable
from mew.journal.files.database import FILE, Damaged, Database, Durability, SpaceRow, checkpoint
from mew.journal.files.folder import free_name, keep_aside, set_aside, space_folder, spaces_in
from mew.journal.files.high_water import HighWaterMark, HighWaterMarks, read_losses, record_loss
from mew.journal.files.locator import INDEX_FILE, Locator, RecordLocation, set_aside_if_damaged
from mew.journal.files.snapshots import Snapshot, Snapshots
from mew.journal.port import Delivered, JournalUnavailable, LostEntries
from mew.journal.record import (
    ChainLink,
    Record,
    RecordRow,
    find_break,
    from_microseconds,
    genesis_link,
    unpack,
)
from mew.space import Entry

from .salvage import salvage
from .wal import has_lost_commits

__all__ = ["RecoveredSpace", "Recovery", "delivered", "entries"]

_logger = logging.getLogger(__name__)

_ADVICE: Final = "if you have a better copy, stop the gateway, put it there and start again"
_TRIES: Final = 4


@dataclass(frozen=True, slots=True)
class RecoveredSpace:
    """A space whose records from `begin` to `end` are whole, and the state after `begin`; None: it had just begun.

    Also the first and the last record that are kept, about how many bytes all of them take, and what is missing.
    """

    row: SpaceRow
    state: bytes | None
    begin: ChainLink
    end: ChainLink
    first: RecordLocation | None
    last: RecordLocation | None
    bytes: int
    losses: tuple[LostEntries, ...]


class Recovery:
    """Of one folder."""

    def __init__(self, folder: Path, durability: Durability, marks: HighWaterMarks) -> None:
        self._folder = folder
        self._path = folder / FILE
        self._durability = durability
        self._marks = marks

    def open_file(self) -> Database:
        """The file, or a new one.

        Raises:
            JournalUnavailable: it cannot be opened, or is of another version.
        """
        try:
            if not self._path.exists():
                return self._created()
            try:
                database = self._opened()
            except Damaged as error:
                return self._salvaged(None, str(error))
            try:
                database.last()
            except Damaged as error:
                return self._salvaged(database, _unreadable(error))
            return database
        except (Damaged, OSError) as error:
            raise self._unavailable(error) from error

    def open_space(self, database: Database, space: str) -> tuple[Database, RecoveredSpace]:
        """A space, and the file: another one if it had to be made again.

        Raises:
            JournalUnavailable: it cannot be read.
        """
        snapshots = Snapshots(space_folder(self._folder, space))
        try:
            for _ in range(_TRIES):
                try:
                    return database, self._open_space(database, snapshots, space)
                except Damaged as error:
                    if not set_aside_if_damaged(self._folder):
                        database = self._salvaged(database, _unreadable(error))
                except _Broken:
                    database = self._salvaged(database, "a hash chain is broken")
        except (Damaged, OSError) as error:
            raise self._unavailable(error) from error
        raise JournalUnavailable(f"{self._path}: it is damaged again and again")

    def locator(self) -> Locator:
        """The index, up to date."""
        locator = Locator(self._folder)
        try:
            locator.locate()
        except BaseException:
            locator.close()
            raise
        return locator

    def _salvaged(self, database: Database | None, why: str) -> Database:
        """Put a new file in its place with all that can be read of it, of each space as far as its chain is whole."""
        if database is not None:
            with suppress(Damaged, JournalUnavailable):
                checkpoint(self._path)  # the file alone has all of it then
            with suppress(Damaged, JournalUnavailable):
                database.close()
        aside = keep_aside(self._path)
        draft = self._path.with_name(f".{FILE}.saved")
        try:
            damaged = Database.rescue(aside)
            told = salvage(damaged, draft, self._durability, self._good_snapshots)
        except Damaged:
            self._tell(f"{why}; each space is as it was at its last snapshot", aside)
            Database.create(draft, self._durability).close()
        else:
            damaged.close()
            self._tell(why, aside)
            for what in told:
                self._tell(what, aside)
        self._doubt_index()
        draft.replace(self._path)
        return Database.open(self._path, self._durability)

    def _good_snapshots(self, space: str) -> list[Snapshot]:
        return Snapshots(space_folder(self._folder, space)).good()

    def _doubt_index(self) -> None:
        """Before the file is replaced: whatever happens after that, what is lost will be noticed."""
        try:
            with Locator(self._folder) as locator:
                locator.doubt()
        except Damaged:
            set_aside(self._folder / INDEX_FILE)

    def _open_space(self, database: Database, snapshots: Snapshots, space: str) -> RecoveredSpace:
        for aside in snapshots.set_damaged_aside():
            self._tell(f"a snapshot of space {space!r} cannot be read", aside)
        with self.locator() as locator:
            row = database.spaces().get(space)
            if row is None:
                row = self._added(database, locator, snapshots, space)
            locator.forget(space, row.begin.seq)  # a crash may have come between dropping them and this
            first = next(locator.places(space), None)
            snapshot = self._newest(database, locator, snapshots, row)
            if _is_begin_damaged(database, row, first, snapshot):
                raise _Broken(f"space {space!r} does not begin where it says")
            start = row.begin if snapshot is None else snapshot.link
            if snapshot is None and start != genesis_link(space):
                raise JournalUnavailable(
                    f"{self._path}: the first entries of space {space!r} are gone and no snapshot is left, so it"
                    f" cannot be replayed; {_ADVICE}, or move the folder away to start anew"
                )
            end = _follow(database, locator, row, start)
            last = locator.last(space)
            self._marks.track(space, row.id)
            self._compare_with_mark(database, locator, row, end, last)
            state = None if snapshot is None else snapshots.load(snapshot)
            size = locator.bytes_after(space, row.begin.seq)
            losses = read_losses(self._folder, space, row.begin.seq)
            return RecoveredSpace(row, state, start, end, first, last, size, losses)

    def _compare_with_mark(
        self, database: Database, locator: Locator, row: SpaceRow, end: ChainLink, last: RecordLocation | None
    ) -> None:
        """Notice that entries are missing which were committed, and keep a record of that."""
        mark = self._marks.of(row.name)
        if mark is None or _holds(database, locator, row, mark):
            return
        if end.seq < mark.seq:
            after, since = end.seq, None if last is None else from_microseconds(last.at)
            what = f"it ends with entry {end.seq}"
        else:
            after, since = row.begin.seq, None
            what = f"entry {mark.seq} is not the one that was committed here: it is another journal, or an older copy"
        loss = LostEntries(after, mark.seq, datetime.now(UTC), since)
        self._tell(
            f"of space {row.name!r}, entries {after + 1} to {mark.seq} are missing, which were committed: {what}"
        )
        record_loss(self._folder, row.name, loss)
        self._marks.reset(row.id, HighWaterMark(0 if last is None else last.n, *end))

    def _added(self, database: Database, locator: Locator, snapshots: Snapshots, space: str) -> SpaceRow:
        """One that is new, or that goes on from a snapshot because its records are gone."""
        good, last = snapshots.good(), locator.last(space)
        if good:
            self._tell(f"it has no records of space {space!r}, which is as it was after entry {good[-1].seq}")
        elif last is not None:
            self._tell(
                f"it has no records of space {space!r}, which had {last.last} entries; it begins empty"
            )
        if last is not None:  # records that are of another space now
            locator.doubt()
            locator.locate()
        return database.add_space(space, good[-1].link if good else None)

    def _newest(
        self, database: Database, locator: Locator, snapshots: Snapshots, row: SpaceRow
    ) -> Snapshot | None:
        """The newest snapshot that fits the records; later ones are set aside."""
        last = locator.last(row.name)
        end = row.begin.seq if last is None else last.last
        for snapshot in reversed(snapshots.good()):
            if snapshot.link == row.begin or _fits(database, locator, row.name, snapshot):
                return snapshot
            if snapshot.seq < row.begin.seq:
                return None  # of what was dropped; it could not be deleted
            for aside in snapshots.set_aside(snapshot):
                if snapshot.seq > end:
                    what = (
                        f"space {row.name!r} ends with entry {end}, a snapshot says there was {snapshot.seq}"
                    )
                else:
                    what = f"the snapshot of space {row.name!r} after entry {snapshot.seq} does not fit it"
                self._tell(what, aside)
        return None

    def _created(self) -> Database:
        wal = self._path.with_name(f"{FILE}-wal")
        if wal.exists():  # or it would be taken for the new one's
            self._tell("it is gone, but not what was written last", wal.rename(free_name(wal)))
        if any(Snapshots(space_folder(self._folder, name)).good() for name in spaces_in(self._folder)):
            self._tell("it is gone, but snapshots are left; each space is as it was at its last one")
        return Database.create(self._path, self._durability)

    def _opened(self) -> Database:
        database = Database.open(self._path, self._durability)
        try:
            database.spaces()
            self._check_wal(database)
        except BaseException:
            with suppress(Damaged, JournalUnavailable):
                database.close()
            raise
        return database

    def _check_wal(self, database: Database) -> None:
        """Once the file is open: before, somebody who only looked at it could still move the write-ahead log."""
        ahead = self._path.with_name(f"{FILE}-wal")
        written = ahead.read_bytes() if ahead.exists() else b""
        if not written:
            return
        frames, _ = checkpoint(self._path)
        if has_lost_commits(written, frames) or self._is_cut_off(database):
            aside = free_name(ahead)
            with open(os.open(aside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
                file.write(written)
            self._tell("what was written last cannot be read, and is lost", aside)

    def _is_cut_off(self, database: Database) -> bool:
        """Whether the last committed record of a space is neither there nor dropped."""
        for row in database.spaces().values():
            mark = self._marks.of(row.name)
            if mark is not None and row.begin.seq < mark.seq and database.row(mark.n) is None:
                return True
        return False

    def _unavailable(self, error: Damaged | OSError) -> JournalUnavailable:
        return damaged(self._path, error) if isinstance(error, Damaged) else unavailable(self._folder, error)

    def _tell(self, what: str, aside: Path | None = None) -> None:
        kept = "" if aside is None else f"; what was there is kept as {aside.name}"
        _logger.error("journal %s is damaged: %s%s; %s", self._path, what, kept, _ADVICE)


class _Broken(Exception):
    """The chain of a space is broken."""


def _unreadable(error: Damaged) -> str:
    return f"a part of it cannot be read ({error})"


def _fits(database: Database, locator: Locator, space: str, snapshot: Snapshot) -> bool:
    """Whether it was made after one of the records, or the next record follows it."""
    for seq in (snapshot.seq, snapshot.seq + 1):
        place = locator.find(space, seq)
        row = None if place is None else database.row(place.n)
        if row is None:
            continue
        if (row.last, row.hash) == snapshot.link or find_break(row, snapshot.link) is None:
            return True
    return False


def _holds(database: Database, locator: Locator, space: SpaceRow, mark: HighWaterMark) -> bool:
    """Whether the record that was marked is there, or was dropped."""
    if space.begin.seq >= mark.seq:
        return space.begin.seq > mark.seq or space.begin == mark.link
    row = database.row(mark.n)
    if row is None or (row.last, row.hash) != mark.link:  # it may have been moved
        place = locator.find(space.name, mark.seq)
        row = None if place is None else database.row(place.n)
    return row is not None and (row.last, row.hash) == mark.link


def _is_begin_damaged(
    database: Database, row: SpaceRow, first: RecordLocation | None, snapshot: Snapshot | None
) -> bool:
    """Whether a space does not begin where it says, and a start can be made all the same."""
    begin = genesis_link(row.name)
    if row.begin.seq == 0:
        return row.begin != begin
    if first is None or first.last > row.begin.seq:
        return False
    record = database.row(first.n)
    return snapshot is not None or (record is not None and find_break(record, begin) is None)


def _follow(database: Database, locator: Locator, row: SpaceRow, start: ChainLink) -> ChainLink:
    """The last place up to which the chain is whole."""
    end = start
    for record in database.rows(place.n for place in locator.places(row.name, after=start.seq)):
        broken = find_break(record, end)
        if broken is not None:
            raise _Broken(broken.why)
        end = ChainLink(record.last, record.hash)
    return end


def entries(database: Database, locator: Locator, space: str, after: int) -> Iterator[Entry]:
    """The entries of a space after this one, in order; their chain was followed before."""
    for row in database.rows(place.n for place in locator.places(space, after=after)):
        yield _record(database, row).entry


def delivered(database: Database, locator: Locator, space: SpaceRow, end: ChainLink) -> Iterator[Delivered]:
    """What was delivered in a space up to this place, the newest first, as far back as the chain is whole."""
    row: RecordRow | None = None
    why = None
    try:
        for before in chain(_backwards(database, locator, space, end), (None,)):
            if row is not None:
                broken = find_break(
                    row, space.begin if before is None else ChainLink(before.last, before.hash)
                )
                if broken is not None:
                    why = broken.why
                    break
                yield _delivered(database, row)
            row = before
    except Damaged as error:
        why = f"what comes before entry {end.seq if row is None else row.last} cannot be read ({error})"
    if why is not None:
        shown = "nothing is shown" if row is None else f"what is shown begins after entry {row.last}"
        what = f"space {space.name!r}: {why}; {shown}"
        _logger.error("journal %s is damaged: %s; %s", database.path, what, _ADVICE)


def _backwards(database: Database, locator: Locator, space: SpaceRow, end: ChainLink) -> Iterator[RecordRow]:
    for place in locator.places(space.name, until=end.seq, newest_first=True):
        row = database.row(place.n)
        if row is not None:
            yield row


def _delivered(database: Database, row: RecordRow) -> Delivered:
    record = _record(database, row)
    try:
        return record.delivered
    except ValueError as error:
        raise _unknown(database, row, error) from error


def _record(database: Database, row: RecordRow) -> Record:
    try:
        return unpack(row.body)
    except ValueError as error:
        raise _unknown(database, row, error) from error


def _unknown(database: Database, row: RecordRow, error: ValueError) -> JournalUnavailable:
    return JournalUnavailable(
        f"{database.path}: entry {row.last} is none that this version of mew knows: {error}"
    )
