"""`mew replay`, as it is typed."""

import asyncio
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from tests.audit.conversation import SPACE, conversation, shown_by
from tests.audit.kept import keep
from typer.testing import CliRunner, Result

import mew
from mew.cli.main import app

MEW: Final = Path(sys.executable).with_name("mew")
WAIT_S: Final = 40


@pytest.fixture(scope="module")
def journals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return keep(tmp_path_factory.mktemp("journals"), conversation().entries)


@pytest.fixture
def export(journals: Path, tmp_path: Path) -> Path:
    file = tmp_path / "desk.jsonl"
    run("audit", "export", "--journal", str(journals), "-o", str(file))
    return file


def run(*words: str) -> Result:
    return CliRunner(env={"TZ": "UTC", "COLUMNS": "100"}).invoke(app, words)


def lines(result: Result) -> list[str]:
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


def ids(result: Result) -> list[str]:
    return [json.loads(line)["envelope"]["id"] for line in lines(result)]


def all_ids(after: int = 0) -> list[str]:
    return [json.loads(raw)["id"] for raw in shown_by(conversation(), after)]


# What is shown.


def test_a_space_is_shown_line_by_line(journals: Path) -> None:
    shown = lines(run("replay", SPACE, "--journal", str(journals)))
    assert any(re.fullmatch(r"..:..:01  ann +→ bot: Please write a readme\.", line) for line in shown)
    assert any(re.search(r"bot +proposes write_file\(path: \"README.md\"", line) for line in shown)
    assert any(re.search(r"ann +rejects #proposal: unsafe", line) for line in shown)
    assert any(re.search(r"gateway +takes from bot the grant #grant-1: expired", line) for line in shown)
    assert "… 3 h later" in shown


def test_a_space_that_is_the_only_one_need_not_be_named(journals: Path) -> None:
    assert (
        run("replay", "--journal", str(journals)).stdout
        == run("replay", SPACE, "--journal", str(journals)).stdout
    )


def test_for_a_program_each_envelope_is_a_line_as_it_was(journals: Path) -> None:
    shown = [json.loads(line) for line in lines(run("replay", "--journal", str(journals), "--json"))]
    assert [one["envelope"] for one in shown] == [json.loads(raw) for raw in shown_by(conversation())]
    assert all(set(one) == {"seq", "at", "envelope"} for one in shown)


def test_an_export_is_shown_as_the_space_is(journals: Path, export: Path) -> None:
    assert run("replay", str(export)).stdout == run("replay", "--journal", str(journals)).stdout


def test_a_range_of_the_journal_is_what_was_shown_then(journals: Path) -> None:
    result = run("replay", "--journal", str(journals), "--from", "13", "--to", "20", "--json")
    assert ids(result) == [one for one in all_ids(12) if one not in all_ids(20)]


def test_a_time_without_a_zone_is_this_machines(journals: Path) -> None:
    result = run("replay", "--journal", str(journals), "--since", "2026-01-01T03:00Z", "--json")
    assert ids(result) == all_ids(22)
    result = run("replay", "--journal", str(journals), "--until", "2026-01-01T00:00:02Z", "--json")
    assert ids(result) == all_ids()[:4]


def test_kind_and_participant_say_what_is_shown(journals: Path) -> None:
    where = ("replay", "--journal", str(journals), "--json")
    assert ids(run(*where, "--kind", "reasoning/*")) == ["think-1", "think-2"]
    assert ids(run(*where, "--participant", "files")) == ["response-2"]
    assert ids(run(*where, "--kind", "mcp/*", "--participant", "ann")) == ["reject-1", "request-2"]


def test_an_export_from_the_middle_shows_what_the_gateway_said_too(journals: Path, tmp_path: Path) -> None:
    part = tmp_path / "part.jsonl"
    run("audit", "export", "--journal", str(journals), "--from", "7", "-o", str(part))
    result = run("replay", str(part), "--json")
    assert ids(result) == all_ids(6)


# What is said instead.


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["nobody"], "no journal of space 'nobody'"),
        (["no/such.jsonl"], "no/such.jsonl: there is no such file"),
        (["--speed", "fast"], "'fast' is no speed"),
        (["--idle-max", "long"], "'long' is no length of time"),
        (["--since", "yesterday"], "--since 'yesterday' is no time"),
        (["--kind", "a" * 5000], "--kind"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(journals: Path, words: list[str], why: str) -> None:
    result = run("replay", "--journal", str(journals), *words)
    assert result.exit_code == 2
    assert result.stderr.startswith("mew replay: ")
    assert why in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_of_several_spaces_one_must_be_named(tmp_path: Path) -> None:
    for space in ("desk", "hall"):
        keep(tmp_path, conversation().entries, space)
    result = run("replay", "--journal", str(tmp_path))
    assert result.exit_code == 2
    assert "has the journals of several spaces; choose one by its name: desk, hall" in result.stderr
    assert ids(run("replay", "hall", "--journal", str(tmp_path), "--json")) == all_ids()


def test_a_part_in_which_nothing_was_shown_is_said_to_be_so(journals: Path) -> None:
    result = run("replay", "--journal", str(journals), "--from", "1000")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "nothing was shown" in result.stderr


def test_an_export_that_was_changed_is_played_up_to_there(export: Path) -> None:
    export.write_text(export.read_text().replace("A title will do", "A title won't do"))
    result = run("replay", str(export))
    assert result.exit_code == 2
    assert "begins to think" in result.stdout
    assert "thinks:" not in result.stdout
    assert "entry 7 is not what was written" in result.stderr


def test_what_was_changed_before_the_part_is_not_served(export: Path) -> None:
    export.write_text(export.read_text().replace("A title will do", "A title won't do"))
    result = run("replay", str(export), "--serve", "--from", "12")
    assert result.exit_code == 2
    assert result.stderr.startswith("mew replay: entry 7 is not what was written")


def test_a_part_cannot_be_served(journals: Path, tmp_path: Path) -> None:
    part = tmp_path / "part.jsonl"
    run("audit", "export", "--journal", str(journals), "--from", "7", "-o", str(part))
    result = run("replay", str(part), "--serve")
    assert result.exit_code == 2
    assert "replay it without --serve" in result.stderr


# As a process.


@contextmanager
def replaying(*words: str, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    environ = {**os.environ, "PYTHONWARNINGS": "error", "TZ": "UTC", "TERM": "xterm"}
    process = subprocess.Popen([str(MEW), "replay", *words], env=environ, **options)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=WAIT_S)


async def said(process: subprocess.Popen[bytes], pattern: str) -> str:
    """What the next line on its stderr says in this place."""
    assert process.stderr is not None
    line = await asyncio.wait_for(asyncio.to_thread(process.stderr.readline), WAIT_S)
    found = re.search(pattern, line.decode())
    assert found is not None, line
    return found[1]


@pytest.mark.e2e
async def test_a_recording_is_served_to_who_has_the_token_in_the_file(journals: Path) -> None:
    words = ("--journal", str(journals), "--serve", "--speed", "100x", "--idle-max", "400ms")
    with replaying(*words, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        url = await said(process, r"serves space desk at (http://127\.0\.0\.1:\d+)")
        token = Path(await said(process, r"the token is in (\S+)"))
        seen = list[str]()
        async with mew.connect(url.replace("http", "ws"), space=SPACE, token=token, recall=1000) as me:
            seen += [envelope.id for envelope in me.recalled]
            async with asyncio.timeout(WAIT_S):
                async for envelope in me.envelopes():
                    seen += [envelope.id] if envelope.kind != "system/welcome" else []
                    if envelope.id == all_ids()[-1]:
                        break
            assert seen == all_ids()
            with pytest.raises(mew.Refused, match="this is a recording"):
                await me.chat("hello")
        await said(process, "(is over)")
        process.send_signal(signal.SIGINT)
        assert await asyncio.to_thread(process.wait, WAIT_S) == 0
        assert not await asyncio.to_thread(token.exists)


@contextmanager
def terminal() -> Iterator[tuple[int, int]]:
    ours, theirs = pty.openpty()
    try:
        yield ours, theirs
    finally:
        os.close(ours)
        os.close(theirs)


def read_until(screen: int, text: bytes) -> None:
    shown = b""
    while text not in shown:
        assert select.select([screen], [], [], WAIT_S)[0], shown
        shown += os.read(screen, 4096)


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("end", "code"), [(b"q", 0), (signal.SIGINT, 130), (signal.SIGTERM, 0)], ids=["q", "ctrl-c", "terminated"]
)
def test_keys_work_at_a_terminal_and_it_is_left_as_it_was(
    journals: Path, end: bytes | signal.Signals, code: int
) -> None:
    with terminal() as (ours, theirs):
        before = termios.tcgetattr(theirs)
        words = ("--journal", str(journals), "--speed", "1x", "--idle-max", "off")
        with replaying(*words, stdin=theirs, stdout=theirs, stderr=theirs) as process:
            read_until(ours, b"joins")
            assert termios.tcgetattr(theirs) != before
            os.write(ours, b" ")
            read_until(ours, b"paused; space goes on")
            os.write(ours, b"+")
            read_until(ours, b"speed 2x")
            if isinstance(end, bytes):
                os.write(ours, end)
            else:
                process.send_signal(end)
            assert process.wait(WAIT_S) == code
        assert termios.tcgetattr(theirs) == before
