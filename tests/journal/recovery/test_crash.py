"""`kill -9` at any moment: what was committed is there, in all spaces or in none, and nothing else is."""

import asyncio
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from tests.journal.journals import batch, read

from mew.audit.proof.verify import verify_journal
from mew.journal.files.database import Durability

SIZE = 3  # envelopes in a batch
WRITING = """
import asyncio
import sys
from pathlib import Path

from mew.journal.files.database import Durability
from tests.journal.journals import append, batch, commit, following, open_journal


async def main(folder, durability):
    opened = open_journal(folder, "one", durability)
    other, past = opened.storage.open("other", following([]))
    written = sum(entry.size for entry in past.entries)
    while True:
        for journal in (opened.journal, other):
            append(journal, [batch(written + 1, written + 3)])
        await commit(opened.storage)
        written += 3
        print(written, flush=True)


asyncio.run(main(Path(sys.argv[1]), Durability(sys.argv[2])))
"""


def killed_while_it_writes(folder: Path, durability: Durability, commits: int) -> int:
    """The number of the last entry of which it said that it is committed."""
    command = [sys.executable, "-c", WRITING, str(folder), durability]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = [process.stdout.readline() for _ in range(commits)]
        process.kill()
        return int([*told, *process.stdout][-1])


@pytest.mark.slow
@pytest.mark.e2e
@pytest.mark.parametrize("durability", Durability)
async def test_what_was_committed_is_there_in_all_spaces_and_the_next_life_goes_on(
    tmp_path: Path, durability: Durability, caplog: pytest.LogCaptureFixture
) -> None:
    for commits in Random(4).sample(range(20, 200), 4):
        told = await asyncio.to_thread(killed_while_it_writes, tmp_path, durability, commits)
        found = [read(tmp_path, space) for space in ("one", "other")]
        assert found[0] == found[1]
        written = len(found[0][1]) * SIZE
        assert told <= written <= told + SIZE
        assert found[0][1] == [batch(n, n + SIZE - 1) for n in range(1, written, SIZE)]
        assert verify_journal(tmp_path, "one").broken is None
    assert not caplog.text
