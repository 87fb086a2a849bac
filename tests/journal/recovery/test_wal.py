"""What SQLite takes for the end of a write-ahead file, and what was behind it: read, lost, or not looked at."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from mew.journal.files.database import FILE, Database, Durability
from mew.journal.recovery.wal import WalStatus, has_lost_commits, wal_status

TRANSACTIONS = 6
FRAME = 24 + 4096


@pytest.fixture
def wal(tmp_path: Path) -> Iterator[bytes]:
    """A write-ahead file with some transactions of one page each, as a killed process leaves it."""
    with closing(sqlite3.connect(tmp_path / "x.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (n INTEGER PRIMARY KEY)")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        for n in range(TRANSACTIONS):
            connection.execute("INSERT INTO t VALUES (?)", (n,))
        yield (tmp_path / "x.db-wal").read_bytes()


def test_a_whole_file_has_lost_nothing(wal: bytes) -> None:
    assert len(wal) == 32 + TRANSACTIONS * FRAME
    assert not has_lost_commits(wal, TRANSACTIONS)


def test_what_lies_behind_a_spoilt_frame_is_lost(wal: bytes) -> None:
    assert has_lost_commits(wal, 2)


def test_a_frame_with_a_spoilt_head_hides_nothing(wal: bytes) -> None:
    at = 32 + 2 * FRAME + 8
    assert has_lost_commits(wal[:at] + b"\0\0\0\0" + wal[at + 4 :], 2)


def test_a_last_transaction_that_was_cut_off_is_no_damage(wal: bytes) -> None:
    assert not has_lost_commits(wal, TRANSACTIONS - 1)
    assert not has_lost_commits(wal[:-100], TRANSACTIONS - 1)


def test_what_is_left_from_before_the_file_was_begun_anew_does_not_count(wal: bytes) -> None:
    old = bytearray(wal)
    for n in range(1, TRANSACTIONS):
        old[32 + n * FRAME + 8] ^= 1
    assert not has_lost_commits(bytes(old), 1)


def test_a_spoilt_header_is_damage(wal: bytes) -> None:
    assert has_lost_commits(wal[:20] + b"\xff" + wal[21:], 0)


@pytest.mark.parametrize("size", [0, 10, 32, 40])
def test_a_file_without_a_frame_has_lost_nothing(wal: bytes, size: int) -> None:
    assert not has_lost_commits(wal[:size], 0)


# Of a journal, while it is open to be looked at.


def write(database: Database, n: int) -> None:
    database.write([(n, 1, n, n, False, b"hash", b"body")])


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """The file of a journal whose writer was killed: all its records are ahead of it."""
    file = tmp_path / "killed" / FILE
    file.parent.mkdir()
    database = Database.create(tmp_path / FILE, Durability.PROCESS)
    for n in range(1, 31):
        write(database, n)
    for suffix in ("", "-wal"):
        shutil.copy(tmp_path / f"{FILE}{suffix}", f"{file}{suffix}")
    database.close()
    return file


def look(file: Path) -> tuple[WalStatus, int]:
    with ExitStack() as files:
        database = Database.view(file)
        last = database.last()
        found = wal_status(file, files)
        database.close()
    return found, last


def test_what_a_killed_process_left_is_read(killed: Path) -> None:
    assert look(killed) == (WalStatus.READ, 30)


@pytest.mark.parametrize("at", [9, 32 + 5 * FRAME + 10, 32 + 5 * FRAME + 2000])
def test_what_a_damage_took_is_missed(killed: Path, at: int) -> None:
    ahead = killed.with_name(f"{FILE}-wal")
    content = bytearray(ahead.read_bytes())
    content[at] ^= 1
    ahead.write_bytes(content)
    found, last = look(killed)
    assert found is WalStatus.LOST
    assert last < 30


def test_without_a_write_ahead_log_nothing_is_missed(killed: Path) -> None:
    killed.with_name(f"{FILE}-wal").unlink()
    assert look(killed) == (WalStatus.READ, 0)


def test_what_nobody_looked_at_is_not_said_to_be_read(killed: Path) -> None:
    with ExitStack() as files:
        assert wal_status(killed, files) is WalStatus.UNREAD
        assert wal_status(killed, files, is_blind=True) is WalStatus.UNREAD


def test_a_writer_that_begins_anew_meanwhile_loses_nothing(tmp_path: Path) -> None:
    file = tmp_path / FILE
    writer = Database.create(file, Durability.PROCESS)
    reader = Database.view(file)
    for n in range(1, 201):
        write(writer, n)
        if n % 10 == 0:
            writer.ask("PRAGMA wal_checkpoint(RESTART)")
        assert reader.last() == n
        with ExitStack() as files:
            assert wal_status(file, files) is WalStatus.READ
    reader.close()
    writer.close()
