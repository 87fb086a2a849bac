"""What `make run` shows: an agent looks around, proposes, a person decides, and it goes on."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.e2e

WAIT_S = 60.0


class Demo:
    """A folder made from a template, with `mew` run in it."""

    def __init__(self, folder: Path, template: str) -> None:
        self.folder = folder
        self.mew("init", ".", "--template", template, "--yes", "--port", "0")
        file = folder / "space.yaml"
        file.write_text(f"{file.read_text()}\napprovals: {{unattended: true}}\n")
        self.mew("up", "-d")

    def mew(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "mew", *arguments],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def proposal(self, tool: str) -> dict[str, Any]:
        """The open proposal to call this tool, waited for."""
        deadline_s = time.monotonic() + WAIT_S
        while time.monotonic() < deadline_s:
            for one in json.loads(self.mew("proposals", "--json")):
                if one["params"]["name"] == tool and one["status"] == "open":
                    return dict(one)
        raise AssertionError(f"nobody proposed {tool}")

    def said(self, words: str) -> str:
        """The chat that begins so, waited for."""
        deadline_s = time.monotonic() + WAIT_S
        while time.monotonic() < deadline_s:
            for line in self.mew("tail", "--no-follow", "--json", "-k", "chat").splitlines():
                text = str(json.loads(line)["payload"]["text"])
                if text.startswith(words):
                    return text
        raise AssertionError(f"nobody said {words!r}")


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    made = Demo(tmp_path, "files")
    yield made
    made.mew("down")


def test_an_agent_proposes_and_what_is_approved_is_done_and_what_is_rejected_is_not(demo: Demo) -> None:
    writing = demo.proposal("write_file")
    demo.mew("approve", writing["id"], "--yes")
    summary = (demo.folder / "workspace" / "summary.md").read_text()
    assert summary == writing["params"]["arguments"]["content"]
    deleting = demo.proposal("delete_file")
    demo.mew("reject", deleting["id"], "-r", "unsafe", "-m", "somebody may need them")
    assert (demo.folder / "workspace" / "old-notes.txt").exists()
    chain = demo.mew("audit", "chain", writing["id"])
    assert f"you approved {writing['id'][:8]} write_file" in chain, chain
    assert "as proposed" in chain, chain


def test_a_granted_agent_acts_at_once_and_says_what_it_was_told_and_what_failed(demo: Demo) -> None:
    demo.mew("approve", demo.proposal("write_file")["id"], "--yes")
    deleting = demo.proposal("delete_file")["id"]
    demo.mew("reject", deleting, "-r", "unsafe", "-m", "somebody may need them")
    assert demo.said("I leave old-notes.txt as it is: rejected by you: unsafe")
    (demo.folder / "workspace" / "summary.md").unlink()
    assert "agent may now call write_file" in demo.mew("grant", "agent", "write_file", "delete_file")
    demo.mew("send", "chat", "again")
    assert demo.said("write_file of summary.md is done, as I may do that myself")
    assert demo.said("delete_file of old-notes.txt is done, as I may do that myself")
    assert (demo.folder / "workspace" / "summary.md").exists()
    assert not [one for one in json.loads(demo.mew("proposals", "--json")) if one["status"] == "open"]
    demo.mew("send", "chat", "again")
    assert demo.said("delete_file of old-notes.txt failed: ")
