"""The front of a journal while it goes: a file that is whole after every step, and for whoever is killed between."""

import shutil
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from random import Random

import pytest
from tests.log.journal import AT, entries, fill, open_log, read

from mew.log.base import Mark
from mew.log.database import Database, Durability
from mew.log.front import Cut, Front
from mew.log.reading import JournalReader
from mew.log.record import first_break, first_link, pack
from mew.log.snapshots import Snapshot, Snapshots

LAST = 60_000
MARK = Mark(LAST, AT, LAST, LAST)


def begin(folder: Path) -> int:
    """Where a journal begins; all that is left of it must be whole."""
    with JournalReader(folder) as reader:
        assert first_break(reader.rows(), reader.begin) is None
        return reader.begin.seq


async def test_the_chain_is_whole_after_every_step_and_a_crash_there_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mew.log.front._STEP_TURNS", 3)
    log = open_log(tmp_path / "desk")
    await fill(log, *(entries(n, n + 1) for n in range(1, 40, 2)))
    begins: list[int] = []

    def look(seconds: float) -> bool:
        begins.append(begin(tmp_path / "desk"))
        crashed = tmp_path / f"crashed-{begins[-1]}"
        shutil.copytree(tmp_path / "desk", crashed)
        with JournalReader(crashed) as reader:
            assert list(reader.entries()) == entries(begins[-1] + 1, 40)
        return False

    with closing(Front(tmp_path / "desk" / "entries.db", "desk")) as front:
        front.drop(Cut(limit=40, until=31), look)
    assert begins == [6, 12, 18, 24, 30]
    log.close()


def large(folder: Path, last: int) -> None:
    folder.mkdir()
    end = first_link("desk")
    database = Database.create(folder / "entries.db", "desk", end, Durability.PROCESS)
    for n in range(1, last, 3):
        packed, end = pack(entries(n, n + 2), end)
        database.write(end.seq, packed)
    Snapshots(folder).save(Snapshot(MARK, end.hash), [b"state"])
    database.close()


def killed_while_it_drops(folder: Path, after_s: float) -> None:
    command = [sys.executable, "-c", DROPPING, str(folder / "entries.db")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(after_s)
        process.kill()


DROPPING = """
import sys
import time
from pathlib import Path
from mew.log.front import Cut, Front
front = Front(Path(sys.argv[1]), "desk")
print("ready", flush=True)
front.drop(Cut(limit=60_000, until=60_000), lambda seconds: time.sleep(0.003))
"""


@pytest.mark.slow
@pytest.mark.e2e
def test_killed_at_any_moment_it_begins_at_some_step_and_the_rest_is_whole(tmp_path: Path) -> None:
    random = Random(4)
    large(tmp_path / "desk", LAST)
    begins = set()
    for round_ in range(8):
        folder = tmp_path / f"round-{round_}"
        shutil.copytree(tmp_path / "desk", folder)
        killed_while_it_drops(folder, random.uniform(0.01, 0.25))
        begins.add(begin(folder))
        assert read(folder) == (MARK, b"state", [])
        assert not list(folder.glob("*damaged*"))
    assert len(begins) > 4
