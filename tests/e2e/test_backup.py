"""Backup while a gateway runs, restore, upgrade check and reload, as an operator runs them."""

import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

pytestmark = pytest.mark.e2e

WAIT_S = 60.0
GOLDEN = Path(__file__).parents[1] / "golden"
CONFIG = """\
space: {id: work}
server: {port: 0}
participants:
  ann: {capabilities: ["*"]}
  bot: {capabilities: [chat]}
"""


def mew(folder: Path, *arguments: str, code: int = 0) -> str:
    command = [sys.executable, "-m", "mew", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def make_space(folder: Path) -> None:
    folder.mkdir()
    (folder / "space.yaml").write_text(CONFIG)
    mew(folder, "up", "-d")
    for text in ("one", "two"):
        mew(folder, "send", "chat", text, "--as", "ann")
    mew(folder, "grant", "bot", "mcp/request", "--as", "ann")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("backup") / "space"
    make_space(folder)
    yield folder
    mew(folder, "down")


def chats(folder: Path) -> list[str]:
    lines = mew(folder, "tail", "--no-follow", "--json", "-k", "chat", "--as", "ann").splitlines()
    return [json.loads(line)["payload"]["text"] for line in lines]


def test_a_backup_of_a_running_gateway_is_sound_and_can_be_restored(running: Path, tmp_path: Path) -> None:
    copy, restored = tmp_path / "copy", tmp_path / "restored"
    assert "work: " in mew(running, "backup", str(copy))
    assert "is not empty" in mew(running, "backup", str(copy), code=2)
    assert (copy / "journal" / "journal.db").stat().st_mode & 0o077 == 0
    assert "sound" in mew(tmp_path, "restore", str(copy), str(restored))
    assert "sound" in mew(restored, "audit", "verify")
    mew(restored, "up", "-d")
    try:
        assert chats(restored)[:2] == ["one", "two"]
    finally:
        mew(restored, "down")


def test_a_restore_replaces_a_journal_only_when_told_and_keeps_it(running: Path, tmp_path: Path) -> None:
    copy, restored = tmp_path / "copy", tmp_path / "restored"
    mew(running, "backup", str(copy))
    mew(tmp_path, "restore", str(copy), str(restored))
    assert "--replace" in mew(tmp_path, "restore", str(copy), str(restored), code=2)
    assert "is kept as" in mew(tmp_path, "restore", str(copy), str(restored), "--replace")
    assert (restored / ".mew" / "journal.before-restore-1" / "journal.db").exists()
    assert "another process" in mew(tmp_path, "restore", str(copy), str(running), "--replace", code=2)


def test_a_backup_that_was_changed_is_not_restored(running: Path, tmp_path: Path) -> None:
    copy, restored = tmp_path / "copy", tmp_path / "restored"
    mew(running, "backup", str(copy))
    with sqlite3.connect(copy / "journal" / "journal.db") as journal:
        journal.execute("UPDATE records SET body = zeroblob(20) WHERE n = 3")
    journal.close()
    assert "NOT SOUND" in mew(tmp_path, "restore", str(copy), str(restored), code=1)
    assert not restored.exists()


def test_a_dry_run_of_reload_shows_who_would_gain_and_lose_rights(running: Path) -> None:
    assert "Nobody would gain or lose a right" in mew(running, "reload", "--dry-run")
    try:
        (running / "space.yaml").write_text(CONFIG.replace("[chat]", '["reasoning/*"]') + "  eve: {}\n")
        changes = {
            one["participant"]: one for one in json.loads(mew(running, "reload", "--dry-run", "--json"))
        }
        assert {"kind": "chat"} in changes["bot"]["loses"]
        assert {"kind": "reasoning/*"} in changes["bot"]["gains"]
        assert changes["eve"]["loses"] == []
        assert "ann" not in changes
        assert "  - chat" in mew(running, "reload", "--dry-run")
    finally:
        (running / "space.yaml").write_text(CONFIG)


def test_this_version_reads_the_journals_of_released_ones(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """With `--rewrite`, the journal of this version is made anew: only before its release."""
    if request.config.getoption("--rewrite"):
        rewrite_golden(tmp_path / "made", GOLDEN / version("mew-protocol"))
    versions = sorted(path for path in GOLDEN.iterdir())
    assert versions[-1].name == version("mew-protocol")
    for golden in versions:
        folder = tmp_path / golden.name
        mew(tmp_path, "restore", str(golden), str(folder))
        said = mew(folder, "upgrade", "--check")
        assert "entries replayed" in said
        with sqlite3.connect(folder / ".mew" / "journal" / "journal.db") as journal:
            journal.execute("PRAGMA user_version = 99")
        journal.close()
        assert "PROBLEM" in mew(folder, "upgrade", "--check", code=1)


def rewrite_golden(folder: Path, golden: Path) -> None:
    make_space(folder)
    try:
        shutil.rmtree(golden, ignore_errors=True)
        mew(folder, "backup", str(golden))
    finally:
        mew(folder, "down")
    shutil.rmtree(golden / "state")  # tokens
