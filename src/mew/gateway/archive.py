"""What was shown in a space, all of it: the newest is in memory, what is older is read from the journal in a thread.

Which is where changes all the time. So an answer notes first up to which entry it is the journal that is asked; where
memory has moved on when that is answered, the page ends there, and the next goes on.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from pathlib import Path
from threading import Event
from typing import Final, Protocol, TypeVar

from msgspec.structs import replace

from mew.audit.auditor import Auditor
from mew.audit.links import Linked
from mew.log.base import Kept, Log
from mew.log.retention import Retention

from .excerpts import Asked, Excerpt, link, patience, read_covered, read_excerpt
from .history import History
from .pages import Filling, Page, Query, fitting
from .places import Place, cursor

__all__ = ["Archive", "ArchiveBusy", "Archives", "Readers"]

Result = TypeVar("Result")

_THREADS: Final = 2
_READING_MAX: Final = 1  # of a space: others have one too
_WAITING_MAX: Final = 64
_ROUNDS_MAX: Final = 4
_SETTLE_S: Final = 2.0


class ArchiveBusy(Exception):
    """Too many wait for it already."""


class Readers:
    """A few threads for all who read; `stopped` is set when they are to end."""

    def __init__(self) -> None:
        self.threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="mew-archive")
        self.stopped = Event()

    def close(self) -> None:
        """Returns when nobody reads any more."""
        self.stopped.set()
        self.threads.shutdown(cancel_futures=True)


class Archives:
    """The archives of a gateway, in the folder of its journals."""

    def __init__(self, folder: Path, retention: Retention) -> None:
        self._folder = folder
        self._retention = retention
        self._readers = Readers()

    def open(self, space: str, log: Log, auditor: Auditor) -> "Archive":
        """That of a space, whose id is fit to name a folder; the auditor is who writes its index."""
        return Archive(self._folder / space, self._retention, self._readers, auditor, lambda: log.kept)

    def close(self) -> None:
        self._readers.close()


class Recording(Protocol):
    """Who writes the index."""

    @property
    def is_sure(self) -> bool:
        """Whether what it says is of this journal."""

    async def settle(self, until: int) -> None:
        """Returns when it has the facts of the entries up to this one, as far as it can."""


class Archive:
    """Answers from what is in memory and what is in the journal as if it were one."""

    def __init__(
        self,
        folder: Path,
        retention: Retention,
        readers: Readers,
        recording: Recording,
        kept: Callable[[], Kept],
    ) -> None:
        """`kept`: what the journal has now."""
        self._folder = folder
        self._retention = retention
        self._readers = readers
        self._recording = recording
        self._kept = kept
        self._reading = asyncio.Semaphore(_READING_MAX)
        self._waiting = 0

    async def select(self, history: History, query: Query) -> Page:
        """A page of what fits; one that goes on where it ends may be next, also where there is nothing on this one.

        Raises:
            ArchiveBusy: not now.
            TookTooLong: an id was to be found, and was not found in time.
        """
        if _is_at_hand(history, query):
            return history.select(query)
        page = self._at_once(history, query)
        if page is not None:
            return page
        if not self._recording.is_sure:  # before it is anybody's turn: it may take a while
            await self._settled(history.gone)
        async with self._turn():
            chain = None if query.correlation is None else await self._chain(history, query)
            if query.newest_first:
                return await self._newest_first(history, query, chain)
            return await self._oldest_first(history, query, chain)

    def _at_once(self, history: History, query: Query) -> Page | None:
        """The newest, where memory has more than a page of that: all ask so who come back, and all at once."""
        if not query.newest_first or query.after is not None or query.correlation is not None:
            return None
        filling = Filling(query.limit)
        if _fill(filling, history, query, None):
            return None
        past = history.cursor_past(filling.taken[-1], newest_first=True)
        return Page(tuple(filling.taken), more=True, complete=self._has_all_since(query.since), cursor=past)

    def _has_all_since(self, moment: datetime | None) -> bool:
        """Whether nothing that was shown at or after this moment is gone; None: nothing at all."""
        kept, since = self._kept(), self._retention.kept_since
        is_whole = not kept.begin and (since is None or kept.since is None or kept.since >= since)
        if is_whole or moment is None or kept.since is None:
            return is_whole
        return kept.since < moment and (since is None or since < moment)

    async def _oldest_first(self, history: History, query: Query, chain: Linked | None) -> Page:
        gone, filling = history.gone, Filling(query.limit)
        here = _here(history, query)
        found = await self._read(history, query, filling, chain)
        if found.next is not None or here is None:
            return _page(filling, found, _written(found.next), more=found.next is not None)
        read, behind = len(filling.taken), _written(Place(gone + 1, 0))
        if history.gone != gone:
            return _page(filling, found, behind, more=True)
        more = not _fill(filling, history, query, chain)
        if len(filling.taken) > read:
            behind = history.cursor_past(filling.taken[-1], newest_first=False)
        return _page(filling, found, behind if more or filling.taken else None, more=more)

    async def _newest_first(self, history: History, query: Query, chain: Linked | None) -> Page:
        filling = Filling(query.limit)
        if _fill(filling, history, query, chain):
            found = await self._read(history, query, filling, chain)
            return _page(filling, found, _written(found.next), more=found.next is not None)
        past = history.cursor_past(filling.taken[-1], newest_first=True)
        found = await self._read(history, query, None, chain)
        return _page(filling, found, past, more=True)

    async def _read(
        self, history: History, query: Query, filling: Filling | None, chain: Linked | None
    ) -> Excerpt:
        """What the journal has of it, up to where memory begins now."""
        ends_here = query.before is None or _before(history, query.before) is not None
        if query.after is not None and _after(history, query.after) is not None:
            return Excerpt(None, ends_here and chain is None)
        if ends_here:
            query = replace(query, before=None)
        since = self._retention.kept_since
        asked = Asked(self._folder, query, history.gone, since, chain, self._readers.stopped)
        if not self._recording.is_sure:
            return Excerpt(None, complete=False)
        found = await self._run(read_excerpt, asked, filling)
        if found is None:
            await self._settled(asked.until)
            found = await self._run(read_covered, asked, filling)
        return found

    async def _chain(self, history: History, query: Query) -> Linked:
        """What hangs together leads from memory to the journal and back. Never complete: not all talk is known."""
        assert query.correlation is not None, "a chain of nothing"
        if not self._recording.is_sure:
            return Linked(history.chain({query.correlation}, query.who).ids, [], complete=False)
        await self._settled(history.gone)
        found = Linked({query.correlation}, [], complete=False)
        is_over = patience(self._readers.stopped)
        for _ in range(_ROUNDS_MAX):
            here = history.chain(found.ids, query.who)
            found = await self._run(link, self._folder, here.ids, query.who, is_over)
            if found.ids == here.ids:
                break
        return replace(found, complete=False)

    async def _settled(self, until: int) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_SETTLE_S):
                await self._recording.settle(until)

    async def _run(self, work: Callable[..., Result], *values: object) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._readers.threads, work, *values)

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        if self._waiting >= _WAITING_MAX:
            raise ArchiveBusy
        self._waiting += 1
        try:
            await self._reading.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._reading.release()


def _is_at_hand(history: History, query: Query) -> bool:
    """Whether all that is asked for is in memory."""
    if not history.gone:
        return True
    if query.correlation is not None:
        return False
    if query.before is not None and _before(history, query.before) is None:
        return False
    if query.after is not None:
        return _after(history, query.after) is not None
    return query.since is not None and history.reaches_back_to(query.since)


def _start(history: History) -> int:
    """The number from which on memory has all."""
    start = history.number_at(Place(history.gone + 1, 0))
    assert start is not None, f"nothing is gone of entry {history.gone + 1}, and yet it is not known"
    return start


def _after(history: History, written: str) -> int | None:
    number = history.number_after(written)
    return None if number is None or number < _start(history) else number


def _before(history: History, written: str) -> int | None:
    number = history.number_before(written)
    return None if number is None or number < _start(history) else number


def _here(history: History, query: Query) -> tuple[int, int] | None:
    """The numbers in memory between which it is asked for; None: all of it is before those."""
    end = history.end if query.before is None else _before(history, query.before)
    if end is None:
        return None
    after = None if query.after is None else _after(history, query.after)
    return _start(history) if after is None else after, end


def _fill(filling: Filling, history: History, query: Query, chain: Linked | None) -> bool:
    """Put in what memory has; whether all of it fitted."""
    here = _here(history, query)
    if here is None:
        return True
    fits = fitting(query, None if chain is None else chain.ids)
    return filling.take_all(history.among(query, *here), fits)


def _page(filling: Filling, found: Excerpt, following: str | None, *, more: bool) -> Page:
    return Page(tuple(filling.taken), more, found.complete, following)


def _written(place: Place | None) -> str | None:
    return None if place is None else cursor(place)
