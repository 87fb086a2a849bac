"""The commands there are, as `mew --help` lists them, and what is said where something is wrong."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from mew.cli.main import app
from mew.cli.registry import COMMANDS

HEAVY = (
    "aiohttp",
    "mcp",
    "yaml",
    "jsonschema",
    "mew.client.client",
    "mew.gateway.server",
    "mew.cli.commands.review",
)
SPACE = """
space: {id: desk, name: Desk, default_participant: ann}
participants:
  ann: {capabilities: ["*"]}
  bot: {capabilities: [chat], tokens: [secret-of-bot]}
server: {port: 1}
"""


def run(*words: str, **environ: str) -> Result:
    return CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1", **environ}).invoke(app, words)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("MEW_GATEWAY", "MEW_SPACE", "MEW_AS", "MEW_TOKEN", "MEW_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "space.yaml").write_text(SPACE)
    tokens = tmp_path / ".mew" / "tokens"
    tokens.mkdir(parents=True)
    (tokens / "ann.token").write_text("secret-of-ann\n")
    (tokens / "ann.token").chmod(0o600)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_says_of_each_command_what_its_help_says(name: str) -> None:
    said = " ".join(run(name, "--help").output.split())
    assert " ".join(COMMANDS[name].does.split()) in said


def test_help_loads_nothing_that_only_a_command_needs() -> None:
    look = (
        "import sys; from mew.cli.main import app; app(['--help'], standalone_mode=False);"
        f"print([module for module in {HEAVY} if module in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", look], capture_output=True, text=True, timeout=20, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["send", "chat"], "mew send: the text of a chat is missing"),
        (["grant", "bot"], "mew grant: nothing to grant"),
        (["revoke", "bot"], "mew revoke: name either capabilities or a grant"),
        (["participant", "pause", "bot", "--for", "soon"], "mew participant pause: --for 'soon' is no time"),
        (["answer", "x", "--decline", "--cancel"], "mew answer: --decline and --cancel"),
        (["can", "bot", "a:b:c"], "mew can: "),
        (["send", "chat", "\udcff"], "is not UTF-8 text"),
        (["participants"], "cannot be reached"),
        (["reasoning", "list"], "mew reasoning list: "),
    ],
)
def test_what_is_wrong_is_one_sentence_and_exit_code_2(folder: Path, words: list[str], says: str) -> None:
    result = run(*words)
    assert result.exit_code == 2, result.output
    assert says in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert "Traceback" not in result.output


def test_no_space_is_said_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MEW_GATEWAY", raising=False)
    result = run("participants")
    assert (result.exit_code, "use --gateway or --config" in result.stderr) == (2, True)


# Tokens.


def test_tokens_are_listed_and_not_shown(folder: Path) -> None:
    result = run("token", MEW_TOKEN_BOT="another-secret")
    assert result.exit_code == 0, result.output
    assert [line.split()[:2] for line in result.stdout.splitlines()[1:]] == [
        ["ann", "desk"],
        ["bot", "desk"],
        ["bot", "desk"],
    ]
    assert "$MEW_TOKEN_BOT" in result.stdout
    assert "secret" not in result.stdout.lower().replace("mew_token_bot", "")


def test_one_token_is_shown_to_who_asks(folder: Path) -> None:
    assert run("token", "show", "ann").stdout == "secret-of-ann\n"
    assert json.loads(run("token", "show", "bot", "--json").stdout) == {
        "participant": "bot",
        "token": "secret-of-bot",
    }
    result = run("token", "show", "eve")
    assert (result.exit_code, "has no participant 'eve'; it has ann, bot" in result.stderr) == (2, True)


def test_a_new_token_takes_the_place_of_the_old_for_nobody_else_to_read(folder: Path) -> None:
    result = run("token", "new", "ann")
    assert result.exit_code == 0, result.output
    file = folder / ".mew" / "tokens" / "ann.token"
    assert file.read_text().strip() not in ("", "secret-of-ann")
    assert file.read_text().strip() not in result.output
    assert file.stat().st_mode & 0o777 == 0o600
    assert "no gateway runs here now" in result.stderr
    assert "still valid beside it" in run("token", "new", "bot").stderr


# The doctor.


def findings(*words: str) -> tuple[int, dict[str, dict[str, str]]]:
    result = run("doctor", "--json", *words)
    return result.exit_code, {one["about"]: one for one in json.loads(result.stdout)}


def test_the_doctor_finds_all_well_where_no_gateway_runs(folder: Path) -> None:
    (folder / "space.yaml").chmod(0o600)
    code, found = findings()
    assert code == 0, found
    assert found["gateway"]["level"] == "warning"
    assert found["gateway"]["mend"] == "start it: mew gateway, or mew up"
    assert {one["level"] for about, one in found.items() if about != "gateway"} == {"ok"}


def test_the_doctor_finds_a_token_that_others_may_read(folder: Path) -> None:
    file = folder / ".mew" / "tokens" / "ann.token"
    file.chmod(0o644)
    code, found = findings()
    assert code == 1
    assert found["tokens"]["level"] == "problem"
    assert found["tokens"]["mend"] == f"chmod 600 {file}; if it may have been read: mew token new ann"


def test_the_doctor_finds_what_is_wrong_in_the_file(folder: Path) -> None:
    (folder / "space.yaml").write_text("space: {id: desk}\nsurprise: 1\n")
    code, found = findings()
    assert code == 1
    assert found["space.yaml"]["level"] == "problem"
    assert "surprise" in found["space.yaml"]["says"]


def test_the_doctor_says_that_there_is_no_space_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MEW_GATEWAY", raising=False)
    code, found = findings()
    assert code == 0
    assert found["space.yaml"]["level"] == "warning"
