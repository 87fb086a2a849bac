"""`mew up` and its kin as processes: what should come back comes back, and nothing is left running."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mew.supervise.claim import is_claimed
from mew.supervise.control import ask

pytestmark = pytest.mark.e2e

WAIT_S = 60.0
PARTICIPANT = """
import os, pathlib, mew

bot = mew.Participant("bot")

@bot.tool
def add(a: int, b: int) -> int:
    return a + b

bot.run(os.environ["MEW_GATEWAY"], space=os.environ["MEW_SPACE"], token=pathlib.Path(os.environ["MEW_TOKEN_FILE"]))
"""


class Home:
    """A folder with a space.yaml, and `mew` run in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, participants: str) -> None:
        (self.folder / "space.yaml").write_text(f"space: {{id: demo}}\nparticipants:\n{participants}")

    def mew(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "mew", *arguments],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def status(self) -> dict[str, Any]:
        """As `mew status --json` has it, without the time it takes to start."""
        said = asyncio.run(ask(self.folder / ".mew", {"ask": "status"}))
        assert said is not None, "nothing runs"
        return said

    def program(self, name: str) -> dict[str, Any]:
        return next(one for one in self.status()["programs"] if one["name"] == name)

    def is_back(self, name: str, former: int) -> bool:
        """All run, and this one as another process than it was."""
        programs = {one["name"]: one for one in self.status()["programs"]}
        running = all(one["phase"] == "running" for one in programs.values())
        return running and programs[name]["pid"] != former

    def left(self) -> list[str]:
        """The processes that were started from this folder, by what they have as their own."""
        mark = f"MEW_TEST_HOME={self.folder}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal() and int(entry.name) != os.getpid():
                try:
                    if mark in (entry / "environ").read_bytes():
                        found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
                except OSError:
                    continue  # gone, or another's
        return found


def until(holds: Callable[[], bool], what: str) -> None:
    deadline_s = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < deadline_s, what
        time.sleep(0.05)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    monkeypatch.setenv("MEW_TEST_HOME", str(tmp_path))
    (tmp_path / "bot.py").write_text(PARTICIPANT)
    made = Home(tmp_path)
    made.write(f"  ann: {{capabilities: ['*']}}\n  bot: {{command: '{sys.executable}', args: [bot.py]}}\n")
    yield made
    if made.left():
        made.mew("down")


def test_it_starts_everything_and_down_ends_everything(home: Home) -> None:
    started = home.mew("up", "-d", "--port", "0")
    assert started.returncode == 0, started.stderr
    assert "The space is up at http://127.0.0.1:" in started.stderr
    said = json.loads(home.mew("status", "--json").stdout)
    programs = {one["name"]: one["phase"] for one in said["programs"]}
    assert programs == {"gateway": "running", "bot": "running"}
    assert home.mew("up", "-d").returncode == 2
    assert "bot is bot in space demo" in home.mew("logs", "bot").stdout
    assert home.mew("down").stdout == "everything has ended\n"
    assert home.left() == []
    assert home.mew("status").returncode == 1


def test_a_client_with_an_output_log_joins_once_it_has_posted_over_http(home: Home) -> None:
    home.write("  ann: {capabilities: ['*'], tokens: [token-of-ann-0123456789], output_log: ./ann.log}\n")
    file = home.folder / "space.yaml"
    file.write_text(file.read_text().replace("demo", "'the {{NAME}} of a space?'"))
    assert home.mew("up", "-d", "--port", "0").returncode == 0
    assert home.program("ann")["phase"] == "waiting"
    post = urllib.request.Request(
        f"{home.status()['url']}/participants/ann/messages",
        json.dumps({"kind": "chat", "payload": {"text": "hi"}}).encode(),
        {"Authorization": "Bearer token-of-ann-0123456789", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(post) as answer:
        assert answer.status // 100 == 2
    log = home.folder / "ann.log"
    until(lambda: log.exists() and "system/welcome" in log.read_text(), "a welcome in the log")


@pytest.mark.parametrize("victim", ["gateway", "bot"])
def test_what_is_killed_comes_back(home: Home, victim: str) -> None:
    home.mew("up", "-d", "--port", "0")
    killed = home.program(victim)["pid"]
    os.kill(killed, signal.SIGKILL)
    until(lambda: home.is_back(victim, killed), f"{victim} did not come back")
    assert home.program(victim)["restarts"] == 1


def test_a_supervisor_that_is_killed_leaves_nothing(home: Home) -> None:
    home.mew("up", "-d", "--port", "0")
    os.kill(home.status()["pid"], signal.SIGKILL)
    until(lambda: home.left() == [], "something is left")
    again = home.mew("up", "-d", "--port", "0")
    assert again.returncode == 0, again.stderr


def test_a_reaper_and_a_supervisor_that_are_killed_together_leave_nothing(home: Home) -> None:
    home.mew("up", "-d", "--port", "0")
    pid = home.status()["pid"]
    children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    (reaper,) = (c for c in children if b"reaper.py" in Path(f"/proc/{c}/cmdline").read_bytes())
    os.kill(pid, signal.SIGSTOP)  # so that it starts no other
    os.kill(reaper, signal.SIGKILL)
    os.kill(pid, signal.SIGKILL)
    until(lambda: home.left() == [], "something is left")


def test_ctrl_c_ends_it_in_order(home: Home) -> None:
    running = subprocess.Popen(
        [sys.executable, "-m", "mew", "up", "--port", "0"],
        cwd=home.folder,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert running.stderr is not None
    said = []
    for line in running.stderr:
        said.append(line)
        if line.startswith("The space is up"):
            break
    os.killpg(running.pid, signal.SIGINT)
    said += running.stderr.read().splitlines()
    assert running.wait(WAIT_S) == 130, said
    stopped = [line.partition(":")[0] for line in said if line.endswith(": stopped")]
    assert stopped == ["bot", "gateway"]
    assert home.left() == []
    running.stderr.close()


def test_a_taken_port_is_one_sentence(home: Home) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = home.mew("up", "--port", str(port))
    assert said.returncode == 2
    assert said.stderr == (
        f"mew up: port {port} is taken by another program; choose one with --port, or 0 for any that is free\n"
    )


def test_a_file_that_is_wrong_is_one_sentence(home: Home) -> None:
    home.write("  bot: {command: bot, depends_on: [cat]}\n")
    said = home.mew("up", "-d", "--port", "0")
    assert said.returncode == 2
    assert said.stderr.startswith("mew up: ")
    assert "space.yaml:3: participants.bot.depends_on: cat: not started by this file" in said.stderr


def test_a_missing_command_is_said_and_the_others_run(home: Home) -> None:
    home.write("  ann: {capabilities: ['*']}\n  gone: {command: no-such-thing}\n")
    assert home.mew("up", "-d", "--port", "0").returncode == 0
    shown = home.mew("status")
    assert shown.returncode == 1
    assert "no-such-thing' is not there" in " ".join(shown.stdout.split())


def test_one_program_is_started_again_on_request(home: Home) -> None:
    home.mew("up", "-d", "--port", "0")
    before = home.program("bot")["pid"]
    assert home.mew("restart", "bot").stdout == "bot is started again\n"
    until(lambda: home.is_back("bot", before), "it did not come back")
    wrong = home.mew("restart", "cat")
    assert (wrong.returncode, wrong.stderr) == (
        2,
        "mew restart: no program 'cat' runs here; there is gateway, bot\n",
    )


def test_two_at_the_same_moment_are_one(home: Home) -> None:
    both = [
        subprocess.Popen(
            [sys.executable, "-m", "mew", "up", "-d", "--port", "0"],
            cwd=home.folder,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    said = [one.communicate(timeout=60)[1] for one in both]
    assert sorted(one.returncode for one in both) == [0, 2], said
    assert sum(" -m mew up --config" in line for line in home.left()) == 1
    assert any("mew up: another 'mew up' " in line for line in said), said


def test_down_while_it_starts_ends_it(home: Home) -> None:
    running = subprocess.Popen(
        [sys.executable, "-m", "mew", "up", "--port", "0"],
        cwd=home.folder,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    until(lambda: is_claimed(home.folder / ".mew"), "it did not begin")
    assert home.mew("down").stdout == "everything has ended\n"
    running.communicate(timeout=WAIT_S)
    assert running.returncode == 0
    assert home.left() == []


def test_down_after_a_supervisor_was_killed_waits_until_its_reaper_is_done(home: Home) -> None:
    home.mew("up", "-d", "--port", "0")
    os.kill(home.status()["pid"], signal.SIGKILL)
    assert home.mew("down").stdout in (
        "everything has ended\n",
        f"nothing runs for {home.folder}/space.yaml\n",
    )
    assert home.left() == []


def test_what_keeps_dying_is_shown_with_its_last_words(home: Home) -> None:
    home.write(
        "  ann: {capabilities: ['*']}\n  bot: {command: sh, args: [-c, 'echo out of paper; exit 3']}\n"
    )
    home.mew("up", "-d", "--port", "0")
    until(lambda: home.mew("status").returncode == 1, "it is not shown as failing")
    assert "ended with exit code 3: out of paper" in home.mew("status").stdout


def test_a_token_in_the_environment_is_for_the_gateway_alone(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEW_TOKEN_ANN", "the-secret-of-ann")
    home.write("  ann: {capabilities: ['*']}\n  bot: {command: sh, args: [-c, 'env; sleep 1000']}\n")
    started = subprocess.Popen(
        [sys.executable, "-m", "mew", "up", "--port", "0"], cwd=home.folder, start_new_session=True
    )
    log = home.folder / ".mew" / "logs" / "bot.log"
    until(lambda: log.exists() and "MEW_AS=bot" in log.read_text(), "it did not start")
    assert "the-secret-of-ann" not in log.read_text()
    home.mew("down")
    assert started.wait(WAIT_S) == 0


def test_what_runs_can_be_ended_though_the_file_is_no_longer_right(home: Home) -> None:
    home.mew("up", "-d", "--port", "0")
    (home.folder / "space.yaml").write_text("space: {")
    assert home.mew("status").returncode == 0
    assert home.mew("down").stdout == "everything has ended\n"
    assert home.left() == []
