"""`mew mcp`, as far as it goes without a gateway: what is wrong is said in a sentence."""

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mew.cli.main import app

TOKEN = "a-token-that-nobody-should-see"
DOOR = ("--gateway", "ws://127.0.0.1:9", "--space", "demo", "--token", TOKEN)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--http", "nonsense:port"], "--http: 'nonsense:port' is no address; it looks like 127.0.0.1:8090"),
        (["--http", "99999"], "--http: '99999' is no address"),
        (["--open"], "--secret and --open are for --http"),
        (["--secret", "x"], "--secret and --open are for --http"),
        (["--http", "8090", "--open", "--secret", "x"], "--secret and --open: give one of them"),
        (["--http", "0.0.0.0:8090", "--open"], "--open: others could come in at 0.0.0.0"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(words: list[str], sentence: str) -> None:
    result = CliRunner().invoke(app, ["mcp", *DOOR, *words])

    assert result.exit_code == 2
    assert result.stderr.startswith(f"mew mcp: {sentence}")
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""
    assert TOKEN not in result.stderr


def test_where_nobody_is_named_it_says_what_to_give(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("MEW_GATEWAY", "MEW_TOKEN", "MEW_TOKEN_FILE", "MEW_AS", "MEW_SPACE"):
        monkeypatch.delenv(name, raising=False)

    result = CliRunner().invoke(app, ["mcp"])

    assert result.exit_code == 2
    assert "use --gateway" in result.stderr


def test_its_help_names_the_other_commands() -> None:
    result = CliRunner().invoke(app, ["mcp", "--help"])

    assert result.exit_code == 0
    assert "install" in result.output


def test_no_other_command_loads_what_it_needs() -> None:
    program = (
        "import sys, mew, mew.cli.main, mew.cli.commands.mcp.mcp;"
        "sys.exit(sum(m in sys.modules for m in ('mcp', 'uvicorn')))"
    )

    assert subprocess.run([sys.executable, "-c", program], timeout=30, check=False).returncode == 0
