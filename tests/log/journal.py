"""Journals for tests: filled, read again, and spoilt."""

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from mew.log.base import Log, Mark
from mew.log.sqlite import SqliteLog
from mew.space import Connection, Entry, Left

__all__ = ["AT", "entries", "fill", "open_log", "read", "snapshot", "trimmed"]

AT: Final = datetime(2026, 1, 1, 12, 30, tzinfo=UTC)


def entries(first: int, last: int) -> list[Entry]:
    return [Entry(n, AT + timedelta(seconds=n), Left(Connection(f"c{n}"))) for n in range(first, last + 1)]


def open_log(folder: Path, space: str = "desk") -> SqliteLog:
    return SqliteLog(folder, space)


async def fill(log: Log, *turns: Iterable[Entry]) -> None:
    """Append these, a turn of the loop for each, and see them come round; the log stays open."""
    after = 0
    for turn in turns:
        expected = list(turn)
        for entry in expected:
            log.append(entry.at, entry.event)
        follower = log.follow(after)
        async with asyncio.timeout(5):
            assert list(await anext(follower)) == expected
        await follower.aclose()
        after = expected[-1].seq


async def snapshot(log: SqliteLog, mark: Mark, state: bytes) -> None:
    """Save one and wait until it is there."""
    log.save_snapshot(mark, [state[:3], state[3:]])
    assert log._saving is not None
    await log._saving


async def trimmed(log: SqliteLog) -> None:
    """Wait until what need not be kept is gone, after a snapshot."""
    await asyncio.sleep(0)
    async with asyncio.timeout(5):
        while (trimming := log._trimmer._trimming) is not None:
            await trimming
            await asyncio.sleep(0)


def read(folder: Path, space: str = "desk") -> tuple[Mark | None, bytes, list[Entry]]:
    """What a log that is opened anew recalls."""
    log = SqliteLog(folder, space)
    past = log.recall()
    found = past.mark, past.state, list(past.entries)
    log.close()
    return found
