"""What outlives who started it, in a process of its own: there, whatever is not known is an orphan."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere orphans become nobody's children")

PROGRAM = """
import asyncio, os, subprocess, sys
from mew.supervise.orphans import Orphans

DAEMON = "import subprocess, sys; print(subprocess.Popen(['sleep', '1000'], start_new_session=True, stdout=2).pid)"

def left() -> int:
    return int(subprocess.run([sys.executable, "-c", DAEMON], stdout=subprocess.PIPE).stdout)

def is_alive(pid: int) -> bool:
    return os.path.exists(f"/proc/{pid}")

async def main() -> None:
    orphans = Orphans()
    ours = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    early = left()
    orphans.note({ours.pid})
    assert orphans.note({ours.pid}) == {early}, "seen twice, it belongs to what still runs"
    late = left()
    await orphans.end_new({ours.pid})
    assert not is_alive(late), "new, it was left by what has just ended"
    assert is_alive(early) and is_alive(ours.pid)
    await orphans.end_all({ours.pid})
    assert not is_alive(early) and is_alive(ours.pid)
    ours.kill()
    ours.wait()

asyncio.run(main())
"""


def test_what_came_since_the_last_look_is_ended_and_what_was_there_before_only_with_all() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 0, done.stderr
