"""Journals for tests: filled, read again, and spoilt."""

import asyncio
import sqlite3
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from tests.space.table import envelope_of

from mew.audit.record.index import catch_up
from mew.journal.files.database import FILE, Durability
from mew.journal.files.folder import space_folder
from mew.journal.files.locator import Locator
from mew.journal.port import Follower, Journal, JournalContents, JournalStorage, JournalUnavailable
from mew.journal.retention import Retention
from mew.journal.sqlite import SqliteJournal, SqliteStorage
from mew.protocol.envelopes import Envelopes
from mew.space import ConnectionId, Decision, Deliver, Entry, Left, Sent

__all__ = [
    "AT",
    "DESK",
    "Opened",
    "alter",
    "append",
    "batch",
    "commit",
    "decided",
    "entries",
    "fill",
    "flip",
    "following",
    "index",
    "open_journal",
    "read",
    "save_snapshot",
    "snapshot",
    "snapshots_in",
    "trimmed",
    "written",
]

AT: Final = datetime(2026, 1, 1, 12, 30, tzinfo=UTC)
DESK: Final = "desk"


def entries(first: int, last: int) -> list[Entry]:
    """Entries of one number each."""
    return [Entry(n, AT + timedelta(seconds=n), Left(ConnectionId(f"c{n}"))) for n in range(first, last + 1)]


def batch(first: int, last: int, text: str = "hi") -> Entry:
    """An entry with several envelopes."""
    envelopes = Envelopes.of(*envelope_of("ann", "chat", {"text": text}, id=f"e{first}"))
    for n in range(first + 1, last + 1):
        envelopes = envelopes.joined(Envelopes.of(*envelope_of("ann", "chat", {"text": text}, id=f"e{n}")))
    sent = Sent(envelopes, (ConnectionId("c1"),) * len(envelopes), judged_at=0)
    return Entry(first, AT + timedelta(seconds=first), sent, len(envelopes))


def decided(entry: Entry) -> list[Decision]:
    """What a space decides that delivers everything."""
    return [Deliver(entry.event.envelopes)] if isinstance(entry.event, Sent) else []


@dataclass
class Opened:
    """A storage with one space, what it held, and what was appended since then."""

    storage: SqliteStorage
    journal: SqliteJournal
    past: JournalContents
    seen: list[Entry]

    def close(self) -> None:
        self.journal.close()
        self.storage.close()


def open_journal(
    folder: Path,
    space: str = DESK,
    durability: Durability = Durability.PROCESS,
    retention: Retention | None = None,
) -> Opened:
    storage = SqliteStorage(folder, durability, retention)
    seen: list[Entry] = []
    try:
        journal, past = storage.open(space, following(seen))
    except BaseException:
        storage.close()
        raise
    return Opened(storage, journal, past, seen)


def following(seen: list[Entry]) -> Follower:
    """Notes what it is given."""

    def follow(entry: Entry) -> Sequence[Decision]:
        seen.append(entry)
        return decided(entry)

    return follow


async def commit(storage: JournalStorage) -> None:
    """
    Raises:
        JournalUnavailable: what the storage says.
    """
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def ended(error: JournalUnavailable | None) -> None:
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    storage.commit(ended)
    async with asyncio.timeout(20):
        await done


async def fill(opened: Opened, *turns: Iterable[Entry]) -> None:
    """Append these, with a commit for each turn; the journal stays open."""
    for turn in turns:
        append(opened.journal, turn)
        await commit(opened.storage)


def append(journal: Journal, turn: Iterable[Entry]) -> None:
    for entry in turn:
        journal.append(entry.at, entry.event)


async def written(folder: Path, *turns: Iterable[Entry], space: str = DESK) -> Path:
    """A journal with these that nobody has open: its file."""
    opened = open_journal(folder, space)
    list(opened.past.entries)
    await fill(opened, *turns)
    opened.close()
    return folder / FILE


def read(folder: Path, space: str = DESK) -> tuple[bytes | None, list[Entry]]:
    """The state and the entries after it that a start finds."""
    opened = open_journal(folder, space)
    try:
        return opened.past.state, list(opened.past.entries)
    finally:
        opened.close()


async def snapshot(opened: Opened, state: bytes) -> None:
    """Save one; return when it is there, and what may go is gone."""
    await save_snapshot(opened, state)
    await trimmed(opened)


async def save_snapshot(opened: Opened, state: bytes) -> None:
    """Save one; return when it is there."""
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(1) as worker:
        loop.set_default_executor(worker)
        opened.journal.save_snapshot([state[:3], state[3:]])
    loop.set_default_executor(ThreadPoolExecutor(1))
    await asyncio.sleep(0)  # what ended in a thread is heard of


async def trimmed(opened: Opened) -> None:
    """Return when what need not be kept is gone, after a snapshot."""
    for _ in range(3):
        await asyncio.sleep(0)  # what ended in a thread is heard of
        await asyncio.wrap_future(opened.storage.retention.worker.submit(lambda: None))


def index(folder: Path) -> None:
    """What the gateway does in the background: without it nothing is dropped."""
    with Locator(folder) as locator:
        catch_up(locator)


def snapshots_in(folder: Path, space: str = DESK) -> list[str]:
    return sorted(path.name for path in space_folder(folder, space).iterdir())


def alter(file: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(statement, values)
        connection.commit()


def flip(file: Path, at: int) -> None:
    content = bytearray(file.read_bytes())
    content[at] ^= 0xFF
    file.write_bytes(content)
