"""What was written ahead of a journal's file: read, lost to a damage, or not looked at."""

import shutil
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.log.journal import entries

from mew.log.ahead import Ahead, look_ahead
from mew.log.database import Database, Durability
from mew.log.record import first_link, pack

FRAME_BYTES = 24 + 4096


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """The file of a journal whose writer was killed: all its entries are ahead of it."""
    file = tmp_path / "killed" / "entries.db"
    file.parent.mkdir()
    space, end = "desk", first_link("desk")
    database = Database.create(tmp_path / "entries.db", space, end, Durability.PROCESS)
    for n in range(1, 31):
        packed, end = pack(entries(n, n), end)
        database.write(n, packed)
    for suffix in ("", "-wal"):
        shutil.copy(tmp_path / f"entries.db{suffix}", f"{file}{suffix}")
    database.close()
    return file


def look(file: Path) -> tuple[Ahead, int]:
    with ExitStack() as files:
        database, _ = Database.view(file)
        last = database.last
        found = look_ahead(file, files)
        database.close()
    return found, last


def spoil(file: Path, at: int) -> None:
    ahead = file.with_name(f"{file.name}-wal")
    content = bytearray(ahead.read_bytes())
    content[at] ^= 1
    ahead.write_bytes(content)


def test_what_a_killed_process_left_is_read(killed: Path) -> None:
    assert look(killed) == (Ahead.READ, 30)


@pytest.mark.parametrize("at", [9, 32 + 5 * FRAME_BYTES + 10, 32 + 5 * FRAME_BYTES + 2000])
def test_what_a_damage_took_is_missed(killed: Path, at: int) -> None:
    spoil(killed, at)
    found, last = look(killed)
    assert found is Ahead.LOST
    assert last < 30


def test_nothing_ahead_is_nothing_missed(killed: Path) -> None:
    killed.with_name("entries.db-wal").unlink()
    assert look(killed) == (Ahead.READ, 0)


def test_what_nobody_looked_at_is_not_said_to_be_read(killed: Path) -> None:
    with ExitStack() as files:
        assert look_ahead(killed, files) is Ahead.UNREAD


def test_a_writer_that_begins_anew_meanwhile_loses_nothing(tmp_path: Path) -> None:
    end = first_link("desk")
    file = tmp_path / "entries.db"
    writer = Database.create(file, "desk", end, Durability.PROCESS)
    reader, _ = Database.view(file)
    for n in range(1, 201):
        packed, end = pack(entries(n, n), end)
        writer.write(n, packed)
        if n % 10 == 0:
            writer.ask("PRAGMA wal_checkpoint(RESTART)")
        assert reader.last == n
        with ExitStack() as files:
            assert look_ahead(file, files) is Ahead.READ
    reader.close()
    writer.close()
