"""What SQLite takes for the end of a write-ahead file, and what was behind it."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from mew.log.wal import has_lost_commits

TRANSACTIONS = 6


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


FRAME = 24 + 4096


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
