"""The file of an index: it is its folder's owner's, nothing of it is lost, and a copy is what it was at one moment."""

import os
from pathlib import Path
from threading import Event, Thread

import pytest

from mew.audit.facts import Fact
from mew.audit.index import FILE, Index
from mew.audit.index_file import copy_file


def facts(after: int, until: int) -> list[Fact]:
    return [
        Fact(n, 0, n, "mcp/request", "ann", f"e{n * 7919 % 100_003}") for n in range(after + 1, until + 1)
    ]


def test_a_damaged_one_is_kept_with_what_was_ahead_of_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / FILE).write_bytes(b"what somebody wrote " * 100)
    (tmp_path / f"{FILE}-wal").write_bytes(b"the newest facts")
    with Index(tmp_path) as index:
        index.add(facts(0, 3), 0, 3)
        assert index.covered(0) == 3
    assert (tmp_path / f"{FILE}.damaged-1").read_bytes().startswith(b"what")
    assert (tmp_path / f"{FILE}.damaged-1-wal").read_bytes() == b"the newest facts"
    assert f"kept as {FILE}.damaged-1" in caplog.text


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root may give files away")
def test_one_that_root_makes_is_the_owners_of_the_folder(tmp_path: Path) -> None:
    os.chown(tmp_path, 1234, 4321)
    with Index(tmp_path) as index:
        index.add(facts(0, 3), 0, 3)
        owners = {path.name: (path.stat().st_uid, path.stat().st_gid) for path in tmp_path.iterdir()}
    assert owners == dict.fromkeys((FILE, f"{FILE}-wal", f"{FILE}-shm"), (1234, 4321))


def test_a_copy_has_what_is_ahead_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    with Index(tmp_path) as index:
        index.add(facts(0, 3), 0, 3)
        copy_file(tmp_path / FILE, tmp_path / "elsewhere" / FILE)
    with Index(tmp_path / "elsewhere") as copy:
        assert copy.select(tail="ORDER BY seq") == facts(0, 3)


def test_a_copy_of_one_that_is_written_meanwhile_is_whole(tmp_path: Path) -> None:
    enough = Event()

    def write() -> None:
        with Index(tmp_path) as index:
            after = 0
            while not enough.is_set():
                index.add(facts(after, after + 200), after, after + 200)
                after += 200

    Index(tmp_path).close()
    writer = Thread(target=write)
    writer.start()
    try:
        for n in range(5):
            elsewhere = tmp_path / f"{n}"
            elsewhere.mkdir()
            copy_file(tmp_path / FILE, elsewhere / FILE)
            with Index(elsewhere) as copy:
                assert copy.rows("PRAGMA integrity_check") == [("ok",)]
                assert copy.rows("SELECT count(*) FROM facts") == [(copy.covered(0),)]
    finally:
        enough.set()
        writer.join()


def test_one_that_cannot_be_shared_is_copied_as_it_is(tmp_path: Path) -> None:
    with Index(tmp_path) as index:
        index.add(facts(0, 3), 0, 3)
    (tmp_path / f"{FILE}-shm").symlink_to(f"{FILE}-shm")  # as in a folder that cannot be written
    (tmp_path / "elsewhere").mkdir()
    copy_file(tmp_path / FILE, tmp_path / "elsewhere" / FILE)
    with Index(tmp_path / "elsewhere") as copy:
        assert copy.covered(0) == 3


def test_what_is_not_there_is_not_copied(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        copy_file(tmp_path / FILE, tmp_path / "copy")
    assert list(tmp_path.iterdir()) == []


def test_it_knows_how_far_it_goes_from_a_place_on(tmp_path: Path) -> None:
    with Index(tmp_path) as index:
        assert index.covered(0) == 0
        for after, until in ((0, 10), (20, 30)):
            index.add([], after, until)
        assert [index.covered(after) for after in (0, 5, 10, 15, 20, 30, 40)] == [10, 10, 10, 15, 30, 30, 40]
