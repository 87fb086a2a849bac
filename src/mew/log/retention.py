"""What is kept of the journals of a gateway: the rest is dropped in one thread, a journal after the other."""

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from threading import Event, Lock
from typing import Final

from .base import Keep, Kept, LogUnavailable
from .database import Damaged, Database
from .front import Cut, Front, Held, held_in
from .snapshots import Snapshots

__all__ = ["KEEP_ALL", "MayGo", "Retention", "Trimmer"]

_logger = logging.getLogger(__name__)

MayGo = Callable[[int], int]
"""Of the entries after this one: the last up to which nobody needs them any more. Called in a thread; may raise
`LogUnavailable`, and then nothing goes.
"""

KEEP_ALL: Final = Keep()
_SETTLE_S: Final = 3600.0  # where much is written, what went is written over long before


class Retention:
    """For all journals of a gateway. What is to be kept may be changed."""

    def __init__(self, keep: Keep = KEEP_ALL, now: Callable[[], datetime] | None = None) -> None:
        self.keep = keep
        self.now = now or partial(datetime.now, UTC)
        self.worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="mew-retention")

    @property
    def kept_since(self) -> datetime | None:
        """What happened before this need not be kept, and need not be shown; None: all is."""
        return None if self.keep.age is None else self.now() - self.keep.age

    def close(self) -> None:
        """The journals must be closed."""
        self.worker.shutdown(cancel_futures=True)


class Trimmer:
    """Drops from the front of one journal what need not be kept, as far as a start can do without it."""

    def __init__(
        self,
        path: Path,
        space: str,
        snapshots: Snapshots,
        retention: Retention,
        may_go: MayGo | None = None,
    ) -> None:
        self._path = path
        self._may_go = may_go
        self._space = space
        self._retention = retention
        self._snapshots = snapshots
        self.begin = 0
        """The number of the last entry that was dropped."""
        self._since: datetime | None = None
        self._bytes = 0
        self._meanwhile: datetime | None = None  # when the first entry was made since a trimming began
        self._trimming: asyncio.Future[Held | None] | None = None
        self._again: int | None = None  # there was another snapshot meanwhile
        self._stopped = Event()
        self._at_work = Lock()
        self._settled_s = -_SETTLE_S
        self._told: set[Path] = set()

    def kept(self, end: int) -> Kept:
        """What the journal has, up to this entry."""
        return Kept(self._since, end - self.begin, self._bytes, self.begin)

    def open(self, database: Database) -> None:
        """Look at what is there."""
        with suppress(Damaged):  # as far as it matters, somebody else says so
            self.begin, self._since, self._bytes = held_in(database)
        self._tell_of_old_damage(self._retention.keep, self._retention.now())

    def note(self, at: datetime, size: int) -> None:
        """A turn was written that began at this moment."""
        if self._since is None:
            self._since = at
        if self._meanwhile is None:
            self._meanwhile = at
        self._bytes += size

    def start(self, end: int) -> None:
        """Drop what is too much of the entries up to this one, without waiting. To be called after a snapshot."""
        if self._retention.keep == KEEP_ALL or self._stopped.is_set():
            return
        if self._trimming is not None:
            self._again = end
            return
        self._again, self._meanwhile = None, None
        work = partial(self._trim, self._retention.keep, self._retention.now(), end)
        self._trimming = asyncio.get_running_loop().run_in_executor(self._retention.worker, work)
        self._trimming.add_done_callback(self._trimmed)

    def stop(self) -> None:
        """Drop no more; returns once nothing is being dropped."""
        self._stopped.set()
        with self._at_work:
            pass

    def _trimmed(self, done: asyncio.Future[Held | None]) -> None:
        self._trimming = None
        held = None if done.cancelled() else done.result()
        if held is not None:
            self.begin, self._since, self._bytes = held
            self._since = self._since or self._meanwhile
        if self._again is not None:
            self.start(self._again)

    def _trim(self, keep: Keep, now: datetime, end: int) -> Held | None:
        """None: nothing was dropped."""
        with self._at_work:
            if self._stopped.is_set():
                return None
            self._tell_of_old_damage(keep, now)
            try:
                with closing(Front(self._path, self._space)) as front:
                    return self._trim_front(front, keep, now, end)
            except (Damaged, LogUnavailable, OSError) as error:
                self._say(error)
                return None

    def _trim_front(self, front: Front, keep: Keep, now: datetime, end: int) -> Held | None:
        cut = Cut(
            limit=self._limit(front),
            until=0 if keep.entries is None else end - keep.entries,
            before=None if keep.age is None else now - keep.age,
            bytes=keep.bytes,
        )
        if not front.has_more_than(cut):
            return None
        self._snapshots.secure()
        try:
            front.drop(cut, self._stopped.wait)
            self._settle(front, keep)
        except (Damaged, LogUnavailable) as error:
            self._say(error)  # and some may be gone
        return self._held(front)

    def _settle(self, front: Front, keep: Keep) -> None:
        pause_s = _SETTLE_S if keep.age is None else min(_SETTLE_S, keep.age.total_seconds() / 20)
        if time.monotonic() - self._settled_s > pause_s and not self._stopped.is_set():
            front.settle()
            self._settled_s = time.monotonic()

    def _held(self, front: Front) -> Held:
        try:
            return front.held
        except Damaged:  # its first entry, of which only the number is known
            return Held(front.begin, self._since, self._bytes)

    def _limit(self, front: Front) -> int:
        """The last entry that a start can do without: it begins with a snapshot, which must be good. And that others
        can do without.
        """
        needed = self._snapshots.needed()
        if needed is None or front.hash_of(needed.mark.seq) != needed.hash:
            return 0
        if self._snapshots.load(needed) is None:
            return 0
        seq = needed.mark.seq
        return seq if self._may_go is None else min(seq, self._may_go(front.begin))

    def _say(self, error: Exception) -> None:
        what = {"file": str(self._path), "error": str(error)}
        _logger.warning("old entries could not be dropped from the journal", extra=what)

    def _tell_of_old_damage(self, keep: Keep, now: datetime) -> None:
        """Files that were set aside hold entries too, and only their owner may delete them."""
        if keep.age is None:
            return
        before_s = (now - keep.age).timestamp()
        with suppress(OSError):
            for path in sorted(set(self._path.parent.glob("*.damaged-*")) - self._told):
                if path.stat().st_mtime < before_s:
                    self._told.add(path)
                    _logger.warning(
                        "a file that was set aside as damaged holds entries older than 'journal.keep_days';"
                        " delete it if nobody needs it",
                        extra={"file": str(path)},
                    )
