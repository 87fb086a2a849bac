"""How the command line begins and ends: what is said where something goes wrong, and with which code."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import typer
from typer.testing import CliRunner

from mew.cli.errors import ExitCode
from mew.cli.main import app, hint, main
from mew.cli.registry import COMMANDS, Listed
from mew.gateway.address_file import published_address

Run = Callable[..., tuple[int, str, str]]
MEW = [sys.executable, "-m", "mew"]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """`mew` with these words, to its end."""
    monkeypatch.delenv("MEW_DEBUG", raising=False)

    def typed(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["mew", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, said.out, said.err

    return typed


@pytest.fixture
def fail_with(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    """Makes `mew broken` raise it."""

    def fail(error: BaseException) -> None:
        def broken(token: str = "") -> None:
            raise error

        module = ModuleType("mew.cli.commands.broken")
        module.broken = broken  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "mew.cli.commands.broken", module)
        monkeypatch.setitem(COMMANDS, "broken", Listed("broken:broken", "Broken", "Fail."))

    return fail


# What mew itself does wrong.


def test_what_nobody_expected_is_one_sentence_that_asks_for_debug(
    run: Run, fail_with: Callable[[BaseException], None]
) -> None:
    fail_with(KeyError("secret-of-ann"))
    code, out, err = run("broken", "--token", "secret-of-ann")
    assert (code, out) == (ExitCode.INTERNAL, "")
    assert err == (
        "mew: this is a bug in mew (KeyError); run 'mew --debug broken …' to see where it happens\n"
    )


def test_debug_shows_where_and_nothing_in_it_acts_on_the_terminal(
    run: Run, fail_with: Callable[[BaseException], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_with(RuntimeError("a\x1b[2Jb"))
    code, _, err = run("--debug", "broken")
    assert code == ExitCode.INTERNAL
    assert "Traceback (most recent call last):" in err
    assert "in broken\n    raise error\nRuntimeError: a\\u001b[2Jb\n" in err
    assert "\x1b" not in err
    monkeypatch.setenv("MEW_DEBUG", "1")
    assert "Traceback (most recent call last):" in run("broken")[2]


def test_debug_shows_where_a_sentence_comes_from(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = run("--debug", "token")
    first, *lines = err.splitlines()
    assert (code, first.startswith("mew token: there is no space.yaml")) == (ExitCode.ERROR, True)
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-1].startswith("mew.cli.errors.CommandError: ")


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (OSError(28, "No space left on device"), ExitCode.ERROR, "mew: No space left on device\n"),
        (OSError(13, "Permission denied", "/x\n"), ExitCode.ERROR, "mew: /x\\n: Permission denied\n"),
        (KeyboardInterrupt(), ExitCode.INTERRUPTED, ""),
        (typer.Abort(), ExitCode.INTERRUPTED, ""),
        (BrokenPipeError(), ExitCode.BROKEN_PIPE, ""),
        (ExceptionGroup("several", [BrokenPipeError()]), ExitCode.BROKEN_PIPE, ""),
        (typer.Exit(1), ExitCode.NO, ""),
    ],
)
def test_what_the_world_does_ends_it_with_a_code_of_its_own(
    run: Run, fail_with: Callable[[BaseException], None], error: BaseException, code: ExitCode, says: str
) -> None:
    fail_with(error)
    assert run("broken")[::2] == (code, says)


# What was typed.


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["gatewya"], "mew: no such command 'gatewya'; did you mean 'gateway'?"),
        (["--nonsense"], "mew: no such option: --nonsense; see 'mew --help'"),
        (["send"], "mew send: missing argument 'KIND'; see 'mew send --help'"),
        (
            ["gateway", "--prt"],
            "mew gateway: no such option: --prt (Possible options: --port); see 'mew gateway --help'",
        ),
        (["audit", "--space"], "mew audit: no such option: --space; see 'mew audit --help'"),
        (["tail", "-n"], "mew tail: option '-n' requires an argument; see 'mew tail --help'"),
    ],
)
def test_what_is_typed_wrongly_is_one_sentence(run: Run, words: list[str], says: str) -> None:
    assert run(*words) == (ExitCode.ERROR, "", f"{says}\n")


@pytest.mark.parametrize("group", [["audit"], ["reasoning"], ["conform"]])
def test_a_group_without_a_command_shows_its_help(run: Run, group: list[str]) -> None:
    code, out, err = run(*group)
    assert (code, err) == (ExitCode.OK, "")
    assert out.startswith(f"Usage: mew {group[0]} ")


def test_mew_alone_lists_the_commands_and_says_what_to_do_next(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run()
    assert (code, err) == (ExitCode.OK, "")
    assert all(f"\n  {name}" in out for name in COMMANDS)
    assert out.endswith(
        "\nThere is no space.yaml here. Run 'mew init' to write one, then 'mew up' to start it.\n"
    )


def test_the_hint_knows_whether_the_space_runs(tmp_path: Path) -> None:
    file = tmp_path / "space.yaml"
    file.write_text("space: {id: demo}\n")
    below = tmp_path / "workspace"
    below.mkdir()
    assert hint(tmp_path) == "The space in space.yaml is not running. Start it with 'mew up'."
    assert hint(below) == f"The space in {file} is not running. Start it with 'mew up'."
    with published_address(file, "http://127.0.0.1:8080"):
        assert hint(tmp_path).startswith("The space in space.yaml is running at http://127.0.0.1:8080. ")


# What is read, and by whom.


def test_colours_are_for_terminals_that_want_them(tmp_path: Path) -> None:
    plain = subprocess.run([*MEW, "--help"], capture_output=True, timeout=20, check=True)
    forced = {**os.environ, "GITHUB_ACTIONS": "true"}
    also = subprocess.run(
        [*MEW, "approve", "--help"], capture_output=True, timeout=20, check=True, env=forced
    )
    assert b"\x1b" not in plain.stdout + also.stdout


def test_no_color_turns_off_what_is_not_drawn_by_rich(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: list[bool | None] = []

    def look(context: typer.Context) -> None:
        seen.append(context.color)

    module = ModuleType("mew.cli.commands.looking")
    module.look = look  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mew.cli.commands.looking", module)
    monkeypatch.setitem(COMMANDS, "look", Listed("looking:look", "Look", "Look."))
    for value in ("1", ""):
        CliRunner(env={"NO_COLOR": value}).invoke(app, ["look"])
    assert seen == [False, None]


def test_nobody_reading_is_no_complaint() -> None:
    with subprocess.Popen([*MEW, "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        assert running.stderr.read() == b""
        assert running.wait(20) == ExitCode.BROKEN_PIPE


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full disk here")
def test_a_full_disk_is_one_sentence() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*MEW, "--version"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=20, check=False
        )
    assert (done.returncode, done.stderr) == (ExitCode.ERROR, "mew: No space left on device\n")
