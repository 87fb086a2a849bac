"""`mew conform participant`, as it is typed."""

import json
import socket
import sys
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest
from tests.conform.ours import SAID
from typer.testing import CliRunner, Result

from mew.cli.main import app
from mew.conform.participant.prompts import PROMPTS, read_prompts

ROOT = Path(__file__).parents[4]
OURS = f"{sys.executable} -m tests.conform.ours"


def run(*words: str) -> Result:
    return CliRunner(env={"COLUMNS": "200", "PYTHONPATH": str(ROOT)}).invoke(
        app, ["conform", "participant", *words]
    )


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "ours.toml"
    lines = ["timeout_s = 1.0", "[prompts]"]
    for name, prompt in SAID.items():
        lines.append(f"{name} = {_toml(msgspec.to_builtins(prompt))}")
    file.write_text("\n".join(lines))
    return file


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key} = {_toml(item)}' for key, item in value.items())}}}"
    return json.dumps(value)


@pytest.mark.e2e
def test_a_participant_is_started_tried_and_told_about(config: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    result = run("--command", OURS, "-c", str(config), "--only", "3.4", "--junit", str(report))
    assert result.exit_code == 0, result.output
    assert "Every `chat` has a string in `payload.text`." in result.stdout
    assert "fail" not in result.stdout
    assert ElementTree.parse(report).getroot().get("failures") == "0"


@pytest.mark.e2e
def test_the_results_are_told_to_programs_and_a_failure_is_the_exit_code(config: Path) -> None:
    result = run("--command", OURS, "-c", str(config), "--only", "3.9.10", "--json")
    document = json.loads(result.stdout)
    assert document["participant"] == OURS
    outcomes = {one["id"]: one["outcome"] for one in document["requirements"]}
    assert outcomes["shutdown.acknowledged"] == outcomes["shutdown.context"] == "pass"
    assert result.exit_code == (0 if document["conforms"] else 1)
    assert document["conforms"] == (outcomes["shutdown.ceases"] == "pass")


def test_nobody_comes(tmp_path: Path) -> None:
    result = run("--wait", "0")
    assert result.exit_code == 2
    assert "connect the participant to ws://127.0.0.1:" in result.stderr
    assert "no participant came to ws://127.0.0.1:" in result.stderr


@pytest.mark.e2e
def test_a_command_that_ends_or_cannot_be_started_is_named() -> None:
    ended = run("--command", f"{sys.executable} -c 'raise SystemExit(3)'", "--wait", "20")
    assert ended.exit_code == 2
    assert "the command ended with 3 before it connected" in ended.stderr
    missing = run("--command", "no-such-program-anywhere")
    assert missing.exit_code == 2
    assert "--command no-such-program-anywhere: " in missing.stderr


def test_an_address_that_is_none_or_taken_is_named() -> None:
    assert "expected host:port" in run("--listen", "here").stderr
    with socket.create_server(("127.0.0.1", 0)) as taken:
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        result = run("--listen", where)
    assert result.exit_code == 2
    assert f"cannot listen on {where}" in result.stderr


def test_bad_prompts_and_an_empty_choice_are_named(tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    file.write_text("[prompts]\nthink = 'x'")
    result = run("-c", str(file))
    assert result.exit_code == 2
    assert "there is no prompt 'think'" in result.stderr
    assert "no requirement about participants is there" in run("--only", "99").stderr


def test_the_prompts_that_there_are_can_be_printed_and_read(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["conform", "prompts"])
    file = tmp_path / "conform-participant.toml"
    file.write_text(result.stdout)
    assert read_prompts(file).timeout_s == 5.0
    lines = [line.removeprefix("# ") for line in result.stdout.splitlines() if " = " in line]
    assert set(PROMPTS) <= set(tomllib.loads("\n".join(lines)))
