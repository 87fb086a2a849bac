"""The file of the index: it is its folder's owner's, nothing of it is lost, and a copy is what it was at one moment."""

import os
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Final

import pytest
from tests.audit.kept import SPACE, as_indexed, keep, opened
from tests.audit.record.test_index import ALL

from mew.audit.record.facts import Fact
from mew.audit.record.index import Index, catch_up
from mew.journal.files.locator import INDEX_FILE, Locator, open_index
from mew.journal.port import JournalUnavailable

WAIT_S: Final = 60
NOBODY: Final = 65_534


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return keep(tmp_path / "journal")


def facts_in(folder: Path) -> list[Fact]:
    with as_indexed(folder) as (_, index):
        return index.select(tail=ALL)


def test_it_is_there_when_it_is_opened_again_and_for_nobody_else(folder: Path) -> None:
    facts = facts_in(folder)
    assert (folder / INDEX_FILE).stat().st_mode & 0o077 == 0
    with opened(folder) as (_, index):
        assert index.select(tail=ALL) == facts


def test_a_damaged_one_is_kept_with_what_was_ahead_of_it(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    facts = facts_in(folder)
    (folder / INDEX_FILE).write_bytes(b"what somebody wrote " * 100)
    (folder / f"{INDEX_FILE}-wal").write_bytes(b"the newest facts")
    assert facts_in(folder) == facts
    assert (folder / f"{INDEX_FILE}.damaged-1").read_bytes().startswith(b"what")
    assert (folder / f"{INDEX_FILE}.damaged-1-wal").read_bytes() == b"the newest facts"
    assert f"kept as {INDEX_FILE}.damaged-1" in caplog.text


@pytest.mark.parametrize("version", [1, 99])
def test_one_of_another_version_is_kept_under_another_name(folder: Path, version: int) -> None:
    facts = facts_in(folder)
    (folder / INDEX_FILE).unlink()
    with closing(sqlite3.connect(folder / INDEX_FILE)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    assert facts_in(folder) == facts
    with closing(sqlite3.connect(folder / f"{INDEX_FILE}.damaged-1")) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (version,)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root may give files away")
def test_one_that_root_makes_is_the_owners_of_the_folder(folder: Path) -> None:
    (folder / INDEX_FILE).unlink()
    os.chown(folder, 1234, 4321)
    with as_indexed(folder):
        owners = {
            path.name: (path.stat().st_uid, path.stat().st_gid) for path in folder.glob(f"{INDEX_FILE}*")
        }
    assert owners == dict.fromkeys((INDEX_FILE, f"{INDEX_FILE}-wal", f"{INDEX_FILE}-shm"), (1234, 4321))


def test_to_look_at_an_index_twice_leaves_the_locks_of_the_first(folder: Path) -> None:
    with Locator(folder) as first:
        catch_up(first)
        with Locator(folder):
            pass
        ended = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('SELECT * FROM places'); c.close()"
        subprocess.run([sys.executable, "-c", ended, str(first.path)], check=True, timeout=WAIT_S)
        # The other was not the last to have it.
        assert first.path.with_name(f"{first.path.name}-wal").exists()
        assert Index(first, SPACE).select()


def test_without_a_journal_there_is_nothing_to_index(tmp_path: Path) -> None:
    with pytest.raises(JournalUnavailable, match="there is no journal here"), open_index(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


# Where nothing can be written.


READ: Final = """
import os, sys
from pathlib import Path
from mew.audit.record.index import Index, catch_up
from mew.journal.files.locator import open_index

os.setgid(int(sys.argv[2])); os.setuid(int(sys.argv[2]))
with open_index(Path(sys.argv[1])) as locator:
    catch_up(locator)
    print(locator.path.parent != Path(sys.argv[1]), len(Index(locator, "desk").select()))
    where = locator.path.parent
print(where.exists())
"""


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root may become somebody else")
@pytest.mark.parametrize("state", ["not made yet", "made", "in use"])
def test_in_a_folder_that_may_only_be_read_a_copy_is_used(state: str) -> None:
    with tempfile.TemporaryDirectory() as made, ExitStack() as stack:
        Path(made).chmod(0o755)
        folder = keep(Path(made, "journal"))
        if state == "not made yet":
            (folder / INDEX_FILE).unlink()
        else:
            facts_in(folder)
        if state == "in use":
            catch_up(stack.enter_context(Locator(folder)))
        for path in (folder, *folder.iterdir()):
            path.chmod(0o555 if path.is_dir() else 0o444)
        before = sorted(path.name for path in folder.iterdir())
        words = [sys.executable, "-c", READ, str(folder), str(NOBODY)]
        read = subprocess.run(words, capture_output=True, text=True, timeout=WAIT_S)
        assert read.stdout.split() == ["True", "8", "False"], read.stderr
        assert sorted(path.name for path in folder.iterdir()) == before


def test_one_that_cannot_be_shared_is_copied_as_it_is(folder: Path) -> None:
    facts = facts_in(folder)
    shared = folder / f"{INDEX_FILE}-shm"
    shared.symlink_to(shared.name)  # as in a folder that cannot be written
    with as_indexed(folder) as (_, index):
        assert index.locator.path.parent != folder
        assert index.select(tail=ALL) == facts
    assert not index.locator.path.parent.exists()
