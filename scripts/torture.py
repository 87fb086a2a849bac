"""Kill anything that `mew up` runs, at any moment, again and again: what should come back does, and nothing is left.

.venv/bin/python scripts/torture.py --rounds 50
"""

import argparse
import asyncio
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mew.supervise.control import ask

MARK = "TORTURE_HOME"
BACK_S = 90.0

SPACE = """
space: {{id: demo}}
participants:
  you: {{capabilities: ["*"]}}
  files: # behind a bridge, deaf to SIGTERM and to the end of its input, with a child in a session of its own
    mcp_server: {{command: "{python}", args: [deaf.py], env: {{{mark}: "${{{mark}}}"}}}}
    capabilities: [participant/status]
  bot: {{command: "{python}", args: [bot.py], depends_on: [files], capabilities: [chat]}}
server: {{port: 0}}
"""
BOT = """
import mew, signal, subprocess
subprocess.Popen(["sh", "-c", "trap '' TERM; sleep 1000; sleep 1000"])
mew.Participant("bot").run()
"""
DEAF = """
import os, signal, subprocess, sys, time
from pathlib import Path
from mew.demo.files import serve

signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.Popen(["sleep", "1000"], start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
try:
    serve(Path()).run()
finally:
    time.sleep(1000)
"""


class Home:
    """A folder with a space.yaml, and what runs from it, found by a variable that all of it has."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environ = {**os.environ, MARK: str(folder)}
        (folder / "space.yaml").write_text(SPACE.format(python=sys.executable, mark=MARK))
        (folder / "bot.py").write_text(BOT)
        (folder / "deaf.py").write_text(DEAF)

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "mew", *arguments],
            cwd=self.folder,
            env={name: value for name, value in self.environ.items() if arguments[0] == "up" or name != MARK},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )

    def mew(self, *arguments: str) -> None:
        running = self.start(*arguments)
        said = running.communicate(timeout=BACK_S)[1]
        assert running.returncode == 0, f"mew {' '.join(arguments)}: {said.decode()}"

    def status(self) -> dict[str, Any] | None:
        return asyncio.run(ask(self.folder / ".mew", {"ask": "status"}))

    def all_run(self) -> bool:
        found = self.status()
        return found is not None and all(one["phase"] == "running" for one in found["programs"])

    def processes(self) -> dict[int, str]:
        """Those that live, by what they were started with."""
        mark = f"{MARK}={self.folder}".encode()
        found = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal() and int(entry.name) != os.getpid():
                try:
                    if mark in (entry / "environ").read_bytes().split(b"\0"):
                        found[int(entry.name)] = (
                            (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                        )
                except OSError:
                    continue  # gone, or another's
        return found


def until(holds: Callable[[], bool], told: Callable[[], object]) -> None:
    deadline_s = time.monotonic() + BACK_S
    while not holds():
        assert time.monotonic() < deadline_s, told()
        time.sleep(0.05)


def kill_some(home: Home, choice: random.Random) -> tuple[list[str], bool]:
    """Kill one to three of them; returns what they were, and whether the supervisor was among them."""
    found = home.processes()
    victims = choice.sample(sorted(found), min(choice.choice((1, 1, 1, 2, 3)), len(found)))
    for pid in victims:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    names = [found[pid].replace(sys.executable, "").strip()[-60:] for pid in victims]
    return names, any(" -m mew up" in found[pid] for pid in victims)


def killed_while_it_runs(home: Home, choice: random.Random) -> str:
    home.mew("up", "-d")
    said = []
    for _ in range(choice.randrange(1, 4)):
        until(home.all_run, lambda: f"did not come back: {home.status()}")
        names, is_supervisor = kill_some(home, choice)
        said += names
        if is_supervisor:
            break
    else:
        until(home.all_run, lambda: f"did not come back: {home.status()}")
    return f"killed {said}"


def killed_while_it_starts(home: Home, choice: random.Random) -> str:
    starting = home.start("up", "-d")
    time.sleep(choice.uniform(0, 6))
    said = kill_some(home, choice)[0]
    starting.communicate(timeout=BACK_S)
    return f"killed while starting {said}"


def ended_while_it_starts(home: Home, choice: random.Random) -> str:
    starting = home.start("up")
    time.sleep(choice.uniform(0, 6))
    number = choice.choice((signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
    starting.send_signal(number)
    starting.communicate(timeout=BACK_S)
    return f"{number.name} while starting"


def two_at_once(home: Home, _: random.Random) -> str:
    both = [home.start("up", "-d"), home.start("up", "-d")]
    for one in both:
        one.communicate(timeout=BACK_S)
    until(home.all_run, lambda: f"neither is up: {home.status()}")
    supervisors = [line for line in home.processes().values() if " -m mew up --config" in line]
    assert len(supervisors) == 1, supervisors
    return "two at once"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=int(time.time()), help="for who is killed, and when")
    asked = parser.parse_args()
    choice = random.Random(asked.seed)
    print(f"{asked.rounds} rounds, seed {asked.seed}", flush=True)
    ways = (killed_while_it_runs,) * 5 + (killed_while_it_starts,) * 3 + (ended_while_it_starts, two_at_once)
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder))
        for number in range(1, asked.rounds + 1):
            try:
                said = choice.choice(ways)(home, choice)
            finally:
                home.mew("down")
            left = home.processes()
            assert not left, f"round {number}, {said}: left after 'mew down': {left}"
            print(f"round {number}: {said}; nothing is left", flush=True)


if __name__ == "__main__":
    main()
