"""Keeps the index of a space up to date while the space runs, behind it: nobody waits for the record to be written.

What was not written when a process dies is made from the journal, by the next one or by whoever asks.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial
from pathlib import Path
from time import sleep
from typing import Final

from mew.log.base import LogUnavailable
from mew.log.database import Damaged
from mew.log.opening import FILE
from mew.log.reading import JournalReader
from mew.log.record import Link
from mew.space import Decision, Deliver, Entry, Sent

from .catching_up import catch_up
from .checkpoints import Checkpointing
from .facts import Fact, facts_of, is_talk
from .index import FILE as INDEX
from .index import Index

__all__ = ["Auditor"]

_logger = logging.getLogger(__name__)

_LATE_S: Final = 10.0
_MANY: Final = 4096
_BYTES_MAX: Final = 16 << 20
_BEHIND: Final = 8  # times as many: then the space waits for the record
_AT_ONCE: Final = 16
_GIVE_WAY_S: Final = 0.0001

_Taken = tuple[Entry, list[Decision]]


class Auditor:
    """Takes what a space decided, entry by entry, and writes it down in a thread, now and then.

    A record that cannot be written is told of; the space goes on, and the record is made when there is room again.
    """

    def __init__(
        self, folder: Path, now: Callable[[], datetime], checkpointing: Checkpointing | None = None
    ) -> None:
        """For the folder with the journal of the space."""
        self._folder = folder
        self._now = now
        self._checkpointing = checkpointing
        self._after = self._until = 0
        self._taken: list[_Taken] = []
        self._bytes = 0
        self._writing: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._index: Index | None = None

    def begin(self, after: int) -> None:
        """The space has come so far by itself; what the record lacks of that is made up for, beside."""
        self._after = self._until = after
        if after or (self._folder / INDEX).exists():
            self._start(self._make_up, after)

    def take(self, entry: Entry, decisions: list[Decision]) -> None:
        """The space has come to this entry, and decided this."""
        self._until = entry.seq
        event = entry.event
        if type(event) is Sent:
            if len(decisions) == 1 and type(decisions[0]) is Deliver and is_talk(event.envelope.kind):
                return
            self._bytes += len(event.raw)
        self._taken.append((entry, decisions))

    @property
    def is_behind(self) -> bool:
        """Whether so much waits to be written that the space must wait too."""
        return len(self._taken) > _MANY * _BEHIND or self._bytes > _BYTES_MAX * _BEHIND

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
            assert self._writing is not None, "much to write, and nobody writes"
            await asyncio.wait((self._writing,))

    async def settle(self, until: int) -> None:
        """Return when what happened up to this entry is in the record, or could not be put there."""
        if self._writing is not None:
            await asyncio.wait((self._writing,))
        if self._after < until:
            self._write()
        if self._writing is not None:
            await asyncio.wait((self._writing,))

    async def close(self) -> None:
        """Write what is left."""
        while self._writing is not None:
            await asyncio.wait((self._writing,))
        self._write()
        if self._writing is not None:
            await asyncio.wait((self._writing,))
        if self._timer is not None:
            self._timer.cancel()
        try:
            await asyncio.to_thread(self._finish, self._until)
        except (Damaged, LogUnavailable) as error:
            self._say(error)

    def _write(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._writing is not None or self._until == self._after or not self._has_journal():
            return
        taken, self._taken, self._bytes = self._taken, [], 0
        after, self._after = self._after, self._until
        self._start(self._put_down, taken, after, self._until)

    def _start(self, work: Callable[..., None], *values: object) -> None:
        self._writing = asyncio.get_running_loop().run_in_executor(None, partial(work, *values))
        self._writing.add_done_callback(self._written)

    def _written(self, done: asyncio.Future[None]) -> None:
        self._writing = None
        error = done.exception()
        if error is not None:
            self._say(error)
        if self._until != self._after:
            self.pass_by()

    def _say(self, error: BaseException) -> None:
        what = {"folder": str(self._folder), "error": str(error)}
        _logger.warning("the record is not up to date; it is made from the journal later", extra=what)

    # In the thread.

    def _make_up(self, after: int) -> None:
        self._opened().forget_after(after)
        if self._has_journal():
            with JournalReader(self._folder) as journal:
                catch_up(journal, self._opened())

    def _put_down(self, taken: list[_Taken], after: int, until: int) -> None:
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
        if self._has_journal():
            self._sign(until, last=True)
        if self._index is not None:
            self._index.close()
            self._index = None

    def _opened(self) -> Index:
        if self._index is None:
            self._index = Index(self._folder)
        return self._index

    def _has_journal(self) -> bool:
        """Not before something happened to somebody; what is taken until then is written with what comes next."""
        return (self._folder / FILE).exists()


def _facts(taken: Iterable[_Taken]) -> Iterable[Fact]:
    """Some at a time: the loop gets its turn in between."""
    for place, (entry, decisions) in enumerate(taken, 1):
        yield from facts_of(entry, decisions)
        if place % _AT_ONCE == 0:
            sleep(_GIVE_WAY_S)
