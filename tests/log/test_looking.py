"""Somebody who only looks at a journal: it is in nobody's way, leaves nothing behind, and knows what it cannot see."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Thread, Timer

import pytest
from tests.log.journal import entries, fill, open_log

from mew.log.ahead import Ahead
from mew.log.base import LogUnavailable
from mew.log.database import Busy, Database, Durability, checkpoint
from mew.log.reading import JournalReader
from mew.log.record import first_link, pack

SOON_S = 0.05


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Of a journal with three entries that nobody has open."""
    file = tmp_path / "entries.db"
    database = Database.create(file, "desk", first_link("desk"), Durability.PROCESS)
    packed, _ = pack(entries(1, 3), first_link("desk"))
    database.write(3, packed)
    database.close()
    return file


def connect(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(file, isolation_level=None, check_same_thread=False)


@contextmanager
def locked(file: Path) -> Iterator[sqlite3.Connection]:
    """Nobody else gets at it, as while the last one leaves it."""
    with closing(connect(file)) as connection:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("BEGIN IMMEDIATE")
        yield connection


def bring_in(connection: sqlite3.Connection) -> None:
    """All that is ahead; waits for readers, but not for others who do this."""
    while connection.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()[1] < 0:
        pass


def names(file: Path) -> set[str]:
    return {path.name for path in file.parent.iterdir()}


# In nobody's way.


def test_a_journal_that_is_locked_for_a_moment_is_opened_after_it(file: Path) -> None:
    with locked(file) as connection:
        later = Timer(SOON_S, connection.close)
        later.start()
        database = Database.open(file, "desk", Durability.PROCESS)
        later.join()
    assert database.last == 3
    assert database.ask("PRAGMA busy_timeout") == [(0,)]
    database.close()


async def test_a_start_beside_somebody_who_looks_finds_nothing_lost(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = open_log(file.parent)
    log.recall()
    await fill(log, entries(4, 4))
    with JournalReader(file.parent) as reader:
        log.close()  # and what was written ahead stays there
        assert file.with_name("entries.db-wal").stat().st_size
        log = open_log(file.parent)
        assert list(log.recall().entries) == entries(1, 4)
        assert reader.last == 4
    log.close()
    assert not caplog.text


def test_bringing_in_what_is_ahead_waits_for_another_who_does(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Database.open(file, "desk", Durability.PROCESS)
    with closing(connect(file)) as reader, closing(connect(file)) as other:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM turns").fetchall()
        database.write(4, pack(entries(4, 4), first_link("desk"))[0])
        reader.execute("COMMIT")
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM turns").fetchall()
        at_it = Thread(target=bring_in, args=(other,))
        at_it.start()  # until the reader is done
        while database.ask("PRAGMA wal_checkpoint(PASSIVE)")[0][1] >= 0:
            assert at_it.is_alive()
        with monkeypatch.context() as patch:
            patch.setattr("mew.log.database._BUSY_MS", 1)
            with pytest.raises(Busy):
                checkpoint(file)
        later = Timer(SOON_S, reader.execute, ("COMMIT",))
        later.start()
        ahead, done = checkpoint(file)
        assert ahead == done > 0
        later.join()
        at_it.join()
    database.close()


# What it sees.


def test_what_is_locked_is_waited_for_and_not_looked_at_without_what_is_ahead(file: Path) -> None:
    with closing(connect(file)) as writer:
        writer.execute("PRAGMA locking_mode = EXCLUSIVE")
        writer.execute("PRAGMA wal_autocheckpoint = 0")
        writer.execute("INSERT INTO turns SELECT 1000, entries FROM turns LIMIT 1")
        later = Timer(SOON_S, writer.close)
        later.start()
        with JournalReader(file.parent) as reader:
            assert reader.last == 1000
            assert not reader.is_blind
        later.join()


def test_what_stays_locked_cannot_be_looked_at(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mew.log.database._BUSY_MS", 1)
    with locked(file), pytest.raises(LogUnavailable, match="locked"):
        JournalReader(file.parent)


def test_where_there_is_no_room_to_agree_it_knows_that_it_is_blind(file: Path) -> None:
    file.with_name("entries.db-shm").symlink_to("entries.db-shm")  # as in a folder that cannot be written
    with JournalReader(file.parent) as reader:
        assert reader.is_blind
        before = reader.ahead
        assert reader.last == 3
        file.with_name("entries.db-wal").write_bytes(b"what somebody wrote")
        assert (before, reader.ahead) == (Ahead.READ, Ahead.UNREAD)
    assert names(file) == {"entries.db", "entries.db-shm", "entries.db-wal"}


# What it leaves.


def test_nothing_is_left_of_who_only_looked(file: Path) -> None:
    with JournalReader(file.parent) as one, JournalReader(file.parent) as other:
        assert one.last == other.last == 3
        assert "entries.db-wal" in names(file)
    assert names(file) == {"entries.db"}


def test_what_others_have_open_or_wrote_is_left_as_it_is(file: Path, tmp_path: Path) -> None:
    database = Database.open(file, "desk", Durability.PROCESS)
    for n in (4, 5):
        with JournalReader(file.parent) as reader:
            assert reader.last == n - 1
        assert names(file) == {"entries.db", "entries.db-wal", "entries.db-shm"}
        database.write(n, pack(entries(n, n), first_link("desk"))[0])
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    for name in ("entries.db", "entries.db-wal"):
        (crashed / name).write_bytes(file.with_name(name).read_bytes())
    database.close()
    before = (crashed / "entries.db-wal").read_bytes()
    with JournalReader(crashed) as reader:
        assert reader.last == 5
    assert (crashed / "entries.db-wal").read_bytes() == before
