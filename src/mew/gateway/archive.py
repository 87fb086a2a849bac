"""What was shown in a space, all of it: the newest is in memory, what is older is read from the journal in a thread.

Which is where changes all the time. So an answer notes first up to which entry it is the journal that is asked; where
memory has moved on when that is answered, the page ends there, and the next goes on.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from threading import Event
from typing import Final, TypeVar

from msgspec.structs import replace

from mew.audit.auditor import Auditor
from mew.audit.links import Linked
from mew.log.retention import Retention

from .excerpts import Asked, Excerpt, link, read_covered, read_excerpt
from .history import History
from .pages import Filling, Page, Query, fitting
from .places import Place, cursor

__all__ = ["Archive", "ArchiveBusy", "Archives", "Readers"]

Result = TypeVar("Result")

_THREADS: Final = 2
_READING_MAX: Final = 2
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

    def open(self, space: str, auditor: Auditor) -> "Archive":
        """That of a space, whose id is fit to name a folder; the auditor is who writes its index."""
        return Archive(self._folder / space, self._retention, self._readers, auditor.settle)

    def close(self) -> None:
        self._readers.close()


Settle = Callable[[int], Awaitable[None]]
"""Returns when the index has the facts of the entries up to this one, as far as it can."""


class Archive:
    """Answers from what is in memory and what is in the journal as if it were one."""

    def __init__(self, folder: Path, retention: Retention, readers: Readers, settle: Settle) -> None:
        self._folder = folder
        self._retention = retention
        self._readers = readers
        self._settle = settle
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
        async with self._turn():
            chain = None if query.correlation is None else await self._chain(history, query)
            if query.newest_first:
                return await self._newest_first(history, query, chain)
            return await self._oldest_first(history, query, chain)

    async def _oldest_first(self, history: History, query: Query, chain: Linked | None) -> Page:
        gone, filling = history.gone, Filling(query.limit)
        here = _here(history, query)
        found = await self._read(history, query, filling, chain)
        if found.next is not None or here is None:
            return _page(filling, found, found.next)
        read, behind = len(filling.taken), Place(gone + 1, 0)
        if history.gone != gone:
            return _page(filling, found, behind)
        more = not _fill(filling, history, query, chain)
        return _page(filling, found, behind if more and len(filling.taken) == read else None, more=more)

    async def _newest_first(self, history: History, query: Query, chain: Linked | None) -> Page:
        filling = Filling(query.limit)
        more = not _fill(filling, history, query, chain)
        found = await self._read(history, query, None if more else filling, chain)
        return _page(filling, found, found.next, more=more)

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
        found = await self._run(read_excerpt, asked, filling)
        if found is None:
            await self._settled(asked.until)
            found = await self._run(read_covered, asked, filling)
        return found

    async def _chain(self, history: History, query: Query) -> Linked:
        """What hangs together leads from memory to the journal and back. Never complete: not all talk is known."""
        assert query.correlation is not None, "a chain of nothing"
        await self._settled(history.gone)
        found = Linked({query.correlation}, [], complete=False)
        for _ in range(_ROUNDS_MAX):
            here = history.chain(found.ids, query.who)
            found = await self._run(link, self._folder, here.ids, query.who)
            if found.ids == here.ids:
                break
        return replace(found, complete=False)

    async def _settled(self, until: int) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_SETTLE_S):
                await self._settle(until)

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


def _page(filling: Filling, found: Excerpt, following: Place | None, *, more: bool = False) -> Page:
    on = None if following is None else cursor(following)
    return Page(tuple(filling.taken), more or following is not None, found.complete, on)
