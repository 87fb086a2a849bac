"""Keeps the index of a space up to date while the space runs, behind it: nobody waits for the record to be written.

What was not written when a process dies is made from the journal, by the next one or by whoever asks.
"""

import asyncio
import logging
import os
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from pathlib import Path
from threading import Event
from typing import Final

from mew.log.base import LogUnavailable
from mew.log.database import Damaged
from mew.log.opening import FILE
from mew.log.reading import JournalReader
from mew.log.record import Link
from mew.log.salvage import free_name
from mew.space import Decision, Deliver, Entry, Refuse, Sent

from .catching_up import catch_up
from .checkpoints import Checkpointing
from .facts import Fact, facts_of, is_talk
from .index import FILE as INDEX
from .index import Index

__all__ = ["Auditor", "Writers"]

_logger = logging.getLogger(__name__)

_LATE_S: Final = 10.0
_UNSIGNED_S: Final = 60.0
_MANY: Final = 4096
_BYTES_MAX: Final = 16 << 20
_BEHIND: Final = 8  # times as many: then the space waits for the record
_AT_ONCE: Final = 16
_GIVE_WAY_S: Final = 0.0001
_LAST_S: Final = 0.3  # to make up for what could not be written, when all ends

_Taken = tuple[Entry, list[Decision]]


class Writers:
    """A few threads for all auditors of a gateway: nobody who writes waits for one who makes up for much."""

    def __init__(self) -> None:
        self.writing = ThreadPoolExecutor(2, thread_name_prefix="mew-record")
        self.catching_up = ThreadPoolExecutor(1, thread_name_prefix="mew-catching-up")

    def close(self) -> None:
        """The auditors must be closed."""
        self.writing.shutdown()
        self.catching_up.shutdown()


class Auditor:
    """Takes what a space decided, entry by entry, and writes it down in a thread, now and then.

    A record that cannot be written is told of; the space goes on, and the record is made when there is room again.
    """

    def __init__(
        self,
        folder: Path,
        now: Callable[[], datetime],
        writers: Writers,
        checkpointing: Checkpointing | None = None,
    ) -> None:
        """For the folder with the journal of the space."""
        self._folder = folder
        self._now = now
        self._writers = writers
        self._checkpointing = checkpointing
        self._after = self._until = 0
        self._taken: list[_Taken] = []
        self._bytes = 0
        self._writing: asyncio.Future[object] | None = None
        self._catching_up: asyncio.Future[object] | None = None
        self._lacks = False  # the journal has what the record has not
        self._failed = False  # because that could not be written
        self._is_from_before = (folder / INDEX).exists()
        self._begun: int | None = None  # where the journal ended when there was a record before
        self._stopped = Event()
        self._timer: asyncio.TimerHandle | None = None
        self._index: Index | None = None

    def begin(self, after: int) -> None:
        """The space has come so far by itself; what the record lacks of that is made up for, beside."""
        self._after = self._until = after
        if self._is_from_before:
            self._begun = after
        if after or self._begun is not None:
            self._lacks = True
            self._start(self._opened)

    def take(self, entry: Entry, decisions: list[Decision]) -> None:
        """The space has come to this entry, and decided this."""
        self._until = entry.seq
        event = entry.event
        if type(event) is Sent:
            if len(decisions) == 1 and type(decisions[0]) is Deliver and is_talk(event.envelope.kind):
                return
            self._bytes += len(event.raw)
        told: list[Decision] = []  # not the rest: each welcome has all who are there
        for decision in decisions:
            if type(decision) is Deliver:
                told.append(decision)
                self._bytes += 0 if decision.raw else len(bytes(decision.envelope.payload))
            elif type(decision) is Refuse:
                told.append(decision)
        self._taken.append((entry, told))

    @property
    def is_behind(self) -> bool:
        """Whether so much waits to be written that the space must wait too."""
        return len(self._taken) > _MANY * _BEHIND or self._bytes > _BYTES_MAX * _BEHIND

    @property
    def is_sure(self) -> bool:
        """Whether what the record says is of this journal: one from before may tell of entries that it has lost."""
        return not self._is_from_before or self._index is not None

    def covered(self, after: int) -> int:
        """The last entry after this one up to which the record has all. May be called in any thread.

        Raises:
            LogUnavailable: that cannot be known now.
        """
        if not (self._folder / INDEX).exists():
            return after
        with Index(self._folder) as index:
            return index.covered(after)

    def pass_by(self) -> None:
        """A turn is over: write now if there is much, and some time later in any case."""
        if len(self._taken) >= _MANY or self._bytes >= _BYTES_MAX:
            self._write()
        elif self._timer is None and self._writing is None:
            self._timer = asyncio.get_running_loop().call_later(_LATE_S, self._write)

    async def keep_up(self) -> None:
        """Return when no more waits than may."""
        while self.is_behind:
            self._write()
            if self._writing is None:  # somebody took the journal away
                self._say(LogUnavailable(f"{self._folder / FILE} is gone"))
                self._let_go()
                self._lacks = self._failed = True
                return
            await asyncio.wait((self._writing,))

    async def settle(self, until: int) -> None:
        """Return when what happened up to this entry is in the record, or could not be put there."""
        await self._written_down()
        if not self.is_sure:
            self._start(self._opened)
            await self._written_down()
        if self._after < until:
            self._write()
        await self._written_down()
        if self._lacks:
            self._catch_up()
        if self._catching_up is not None:
            await asyncio.wait((self._catching_up,))

    async def close(self) -> None:
        """Write what is left, and make up for what can be in a moment: the next process does the rest."""
        self._stopped.set()
        await self._written_down()
        self._write()
        await self._written_down()
        if self._timer is not None:
            self._timer.cancel()
        if self._catching_up is not None:
            await asyncio.wait((self._catching_up,))
        try:
            await self._run(self._writers.writing, self._finish, self._until)
        except (Damaged, LogUnavailable) as error:
            self._say(error)

    async def _written_down(self) -> None:
        while self._writing is not None:
            await asyncio.wait((self._writing,))

    def _write(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._writing is not None or not self._has_journal():
            return
        if self._until == self._after and not self._is_unsigned():
            return
        after = self._after
        self._start(self._put_down, self._let_go(), after, self._until)

    def _let_go(self) -> list[_Taken]:
        taken, self._taken, self._bytes = self._taken, [], 0
        self._after = self._until
        return taken

    def _start(self, work: Callable[..., object], *values: object) -> None:
        self._writing = self._run(self._writers.writing, work, *values)
        self._writing.add_done_callback(self._written)

    def _written(self, done: asyncio.Future[object]) -> None:
        self._writing = None
        error = done.exception()
        if error is not None:
            self._lacks = self._failed = True
            self._say(error)
        elif self._lacks:
            self._catch_up()
        if self._until != self._after:
            self.pass_by()
        elif self._is_unsigned() and self._timer is None and not self._stopped.is_set():
            self._timer = asyncio.get_running_loop().call_later(_UNSIGNED_S, self._write)

    def _is_unsigned(self) -> bool:
        """Whether the last thing that happened is behind the last checkpoint."""
        return self._checkpointing is not None and self._checkpointing.seq < self._after

    def _catch_up(self) -> None:
        if self._catching_up or self._index is None or self._stopped.is_set() or not self._has_journal():
            return
        self._lacks = False
        self._catching_up = self._run(self._writers.catching_up, self._make_up, self._stopped.is_set)
        self._catching_up.add_done_callback(self._caught_up)

    def _caught_up(self, done: asyncio.Future[object]) -> None:
        self._catching_up = None
        error = done.exception()
        if error is None:
            self._failed = self._lacks
        else:
            self._lacks = not isinstance(error, Damaged)  # which does not get better
            self._say(error)

    def _run(
        self, threads: ThreadPoolExecutor, work: Callable[..., object], *values: object
    ) -> asyncio.Future[object]:
        return asyncio.get_running_loop().run_in_executor(threads, partial(work, *values))

    def _say(self, error: BaseException) -> None:
        what = {"folder": str(self._folder), "error": str(error)}
        _logger.warning("the record is not up to date; it is made from the journal later", extra=what)

    def _has_journal(self) -> bool:
        """Not before something happened to somebody; what is taken until then is written with what comes next."""
        return (self._folder / FILE).exists()

    # In a thread.

    def _opened(self) -> Index:
        if self._index is None:
            index = Index(self._folder)
            try:
                if self._begun is not None:
                    self._forget(index, self._begun)
            except BaseException:
                index.close()
                raise
            self._index = index
        return self._index

    def _forget(self, index: Index, after: int) -> None:
        """Facts of entries that the journal has lost must not be taken for those of others: they are set aside."""
        if index.rows("SELECT 1 FROM facts WHERE seq > ? LIMIT 1", (after,)):
            aside = _copy(index)
            _logger.warning(
                "the record tells of entries that the journal has lost; it is kept as it was",
                extra={"file": str(aside), "after": after},
            )
        index.forget_after(after)

    def _make_up(self, is_over: Callable[[], bool]) -> None:
        if is_over():
            return
        with JournalReader(self._folder) as journal, Index(self._folder) as index:
            catch_up(journal, index, is_over=is_over)

    def _put_down(self, taken: list[_Taken], after: int, until: int) -> None:
        if after < until:
            self._opened().add(list(_facts(taken)), after, until)
        self._sign(until)

    def _sign(self, seq: int, *, last: bool = False) -> None:
        checkpointing = self._checkpointing
        if checkpointing is None:
            return
        with JournalReader(self._folder) as journal:
            row = journal.row(seq)
        if row is None:
            return
        link, now = Link(row.seq, row.hash), self._now()
        if last or checkpointing.due(link, now):
            checkpointing.make(link, now)

    def _finish(self, until: int) -> None:
        try:
            if self._has_journal():
                self._sign(until, last=True)
                if self._failed:
                    self._opened()
                    end_s = time.monotonic() + _LAST_S
                    self._make_up(lambda: time.monotonic() >= end_s)
        finally:
            if self._index is not None:
                self._index.close()
                self._index = None


def _copy(index: Index) -> Path:
    """The whole record as it is, in a file beside it."""
    aside = free_name(index.path)
    try:
        os.close(os.open(aside, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except OSError as error:
        raise LogUnavailable(f"{aside}: {error.strerror}") from error
    index.rows("VACUUM INTO ?", (str(aside),))
    return aside


def _facts(taken: Iterable[_Taken]) -> Iterable[Fact]:
    """Some at a time: the loop gets its turn in between."""
    for place, (entry, decisions) in enumerate(taken, 1):
        yield from facts_of(entry, decisions)
        if place % _AT_ONCE == 0:
            time.sleep(_GIVE_WAY_S)
