"""All that was delivered in a space: the newest is in memory, what is older is read from the journal in a thread.

Which is where changes all the time. So an answer notes first up to where the journal is asked; if memory has moved on
when that is answered, the page ends there, and the next goes on.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from pathlib import Path
from threading import Event
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from mew.audit.record.indexer import Indexer
from mew.journal.port import RetentionStats
from mew.journal.retention import Retention

from .cursor import Cursor
from .journal_query import (
    CorrelatedEntries,
    JournalQuery,
    ScanResult,
    correlated_in_journal,
    deadline,
    scan_journal,
)
from .query import HistoryPage, HistoryQuery, PageBuilder, matcher
from .recent import RecentHistory

__all__ = ["Archive", "ArchiveBusy", "Archives"]

_logger = logging.getLogger(__name__)

_Result = TypeVar("_Result")

_THREADS: Final = 2
_READING_MAX: Final = 1  # of a space: others have one too
_WAITING_MAX: Final = 64
_ROUNDS_MAX: Final = 4
_SETTLE_S: Final = 2.0


class ArchiveBusy(Exception):
    """Too many history queries are waiting."""


class Archives:
    """The reader threads shared by the archives of all spaces."""

    def __init__(self, folder: Path, retention: Retention, indexer: Indexer) -> None:
        self.folder = folder
        self.retention = retention
        self.indexer = indexer
        self.threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="mew-archive")
        self.stopped = Event()

    def close(self) -> None:
        """Returns when nobody reads any more."""
        self.stopped.set()
        self.threads.shutdown(cancel_futures=True)


class Archive:
    """Answer history queries from memory and the journal as one history."""

    def __init__(self, archives: Archives, space: str, committed: Callable[[], Awaitable[None]]) -> None:
        """`committed` returns when all that was evicted from memory is in the journal."""
        self._archives = archives
        self._space = space
        self._committed = committed
        self._reading = asyncio.Semaphore(_READING_MAX)
        self._waiting = 0

    async def select(self, history: RecentHistory, stats: RetentionStats, query: HistoryQuery) -> HistoryPage:
        """A page of what matches; another may follow where it ends, also if there is nothing on this one.

        `stats`: what the journal keeps.

        Raises:
            ArchiveBusy: not now.
            TookTooLong: an id was to be found, and was not found in time.
        """
        if _is_in_memory(history, query):
            return history.select(query)
        page = await self._select(history, stats, query)
        return replace(page, complete=False) if page.complete and history.has_lost(query) else page

    async def _select(
        self, history: RecentHistory, stats: RetentionStats, query: HistoryQuery
    ) -> HistoryPage:
        page = self._newest(history, stats, query)
        if page is not None:
            return page
        async with self._turn():
            await self._indexed()
            chain = None if query.correlation is None else await self._chain(history, query)
            await self._committed()
            if query.newest_first:
                return await self._newest_first(history, query, chain)
            return await self._oldest_first(history, query, chain)

    def _newest(
        self, history: RecentHistory, stats: RetentionStats, query: HistoryQuery
    ) -> HistoryPage | None:
        """The newest, if memory has more than a page of that: all who come back ask so, and all at once."""
        if not query.newest_first or query.after is not None or query.correlation is not None:
            return None
        builder = PageBuilder(query.limit)
        if _fill(builder, history, query, None):
            return None
        complete = self._has_all_since(stats, query.since)
        behind = history.cursor_behind(builder.taken, query)
        return HistoryPage(tuple(builder.taken), more=True, complete=complete, cursor=behind)

    def _has_all_since(self, stats: RetentionStats, moment: datetime | None) -> bool:
        """Whether nothing delivered at or after this moment is gone; None: nothing at all."""
        since = self._archives.retention.kept_since
        is_whole = not stats.begin and (since is None or stats.since is None or stats.since >= since)
        if is_whole or moment is None or stats.since is None:
            return is_whole
        return stats.since < moment and (since is None or since < moment)

    async def _oldest_first(
        self, history: RecentHistory, query: HistoryQuery, chain: CorrelatedEntries | None
    ) -> HistoryPage:
        begin, builder = history.begin, PageBuilder(query.limit)
        ends_before = _range_in_memory(history, query) is None
        found = await self._read(history, query, builder, chain)
        if found.next is not None or ends_before:
            return _page(builder, found, found.next, more=found.next is not None)
        read, behind = len(builder.taken), begin.text()
        if history.begin != begin:
            return _page(builder, found, behind, more=True)
        more = not _fill(builder, history, query, chain)
        if len(builder.taken) > read:
            behind = history.cursor_behind(builder.taken, query) or behind
        return _page(builder, found, behind if more or builder.taken else None, more=more)

    async def _newest_first(
        self, history: RecentHistory, query: HistoryQuery, chain: CorrelatedEntries | None
    ) -> HistoryPage:
        builder = PageBuilder(query.limit)
        if _fill(builder, history, query, chain):
            found = await self._read(history, query, builder, chain)
            return _page(builder, found, found.next, more=found.next is not None)
        behind = history.cursor_behind(builder.taken, query)
        found = await self._read(history, query, None, chain)
        return _page(builder, found, behind, more=True)

    async def _read(
        self,
        history: RecentHistory,
        query: HistoryQuery,
        builder: PageBuilder | None,
        chain: CorrelatedEntries | None,
    ) -> ScanResult:
        """What the journal has of it, up to where memory begins now."""
        ends_in_memory = query.before is None or history.position_before(query.before) is not None
        if query.after is not None and history.position_after(query.after) is not None:
            return ScanResult(None, ends_in_memory and chain is None)
        if ends_in_memory:
            query = replace(query, before=None)
        archives = self._archives
        asked = JournalQuery(
            archives.folder, self._space, query, history.begin, archives.retention.kept_since, chain
        )
        return await self._run(scan_journal, asked, builder, deadline(archives.stopped))

    async def _chain(self, history: RecentHistory, query: HistoryQuery) -> CorrelatedEntries:
        """What is connected leads from memory to the journal and back. Never complete: not all talk is indexed."""
        assert query.correlation is not None, "a chain of nothing"
        found = CorrelatedEntries({query.correlation}, [], complete=False)
        is_over = deadline(self._archives.stopped)
        for _ in range(_ROUNDS_MAX):
            here = history.chain(found.ids, query.who)
            found = await self._run(
                correlated_in_journal, self._archives.folder, self._space, here.ids, query.who, is_over
            )
            if found.ids == here.ids:
                break
        return replace(found, complete=False)

    async def _indexed(self) -> None:
        """The index has what is no longer in memory, or could not take it in time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_SETTLE_S):
                await self._archives.indexer.settle()

    async def _run(self, work: Callable[..., _Result], *values: Any) -> _Result:
        return await asyncio.get_running_loop().run_in_executor(self._archives.threads, work, *values)

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


def _is_in_memory(history: RecentHistory, query: HistoryQuery) -> bool:
    """Whether all that is asked for is in memory."""
    if not history.evicted:
        return True
    if query.correlation is not None:
        return False
    if query.before is not None and history.position_before(query.before) is None:
        return False
    if query.after is not None:
        return history.position_after(query.after) is not None
    return query.since is not None and history.reaches_back_to(query.since)


def _range_in_memory(
    history: RecentHistory, query: HistoryQuery
) -> tuple[Cursor | None, Cursor | None] | None:
    """The positions in memory between which it is asked for; None: all of it is before those."""
    start = end = None
    if query.before is not None:
        end = history.position_before(query.before)
        if end is None:
            return None
    if query.after is not None:
        start = history.position_after(query.after)
    return start, end


def _fill(
    builder: PageBuilder, history: RecentHistory, query: HistoryQuery, chain: CorrelatedEntries | None
) -> bool:
    """Put in what memory has; whether all of it fitted."""
    found = _range_in_memory(history, query)
    if found is None:
        return True
    matches = matcher(query, None if chain is None else chain.ids)
    return builder.fill(history.between(*found, newest_first=query.newest_first), matches)


def _page(builder: PageBuilder, found: ScanResult, following: str | None, *, more: bool) -> HistoryPage:
    return HistoryPage(tuple(builder.taken), more, found.complete, following)
