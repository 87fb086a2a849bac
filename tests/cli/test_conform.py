"""`mew conform`, as it is typed: what it says of a gateway that is not there."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner, Result

from mew.cli.conform import conform

TOKEN = "secret-of-the-owner"


@pytest.fixture
def cast(tmp_path: Path) -> Path:
    """Nobody listens at its address."""
    file = tmp_path / "conform.toml"
    file.write_text(
        f'url = "ws://127.0.0.1:1"\nspace = "a"\npatience_s = 0.1\nroles.owner.token = "{TOKEN}"\n'
    )
    return file


def run(*words: str) -> Result:
    return CliRunner(env={"COLUMNS": "200"}).invoke(conform, words)


def test_a_failure_has_the_words_of_the_document_and_the_evidence_and_no_token(cast: Path) -> None:
    told = run("ws://127.0.0.1:1", "-c", str(cast), "--only", "connect.websocket")
    assert told.exit_code == 1
    lines = [line.strip() for line in told.stdout.splitlines()]
    assert "§5.2 MUST connect.websocket" in lines
    assert "the document:      “WebSocket server at `GET /ws?space=<name>`”" in lines
    assert any(line.startswith("what happened:     ws://127.0.0.1:1 cannot be reached") for line in lines)
    assert "owner → GET ws://127.0.0.1:1/ws?space=a as header" in lines
    assert lines[-1] == "MUST        1 fail"
    assert TOKEN not in told.output


def test_how_we_read_the_document_is_told_where_it_leaves_room(cast: Path) -> None:
    told = run("-c", str(cast), "--only", "delivery.visible-to-all")
    assert told.exit_code == 0, "a SHOULD that fails is no failure of the command"
    assert "our note:          Our reading: `to` says who is to act" in told.stdout
    assert "SHOULD      1 fail" in told.stdout


def test_what_nobody_can_see_is_not_run_and_why(cast: Path) -> None:
    told = run("-c", str(cast), "--only", "6.5")
    assert told.exit_code == 0
    assert "not run" in told.stdout
    assert "it is said to who deploys" in " ".join(told.stdout.split())


def test_programs_are_told_in_json_and_junit(cast: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    told = run("-c", str(cast), "--only", "connect.websocket", "--json", "--junit", str(report))
    assert told.exit_code == 1
    document = json.loads(told.stdout)
    assert document["gateway"] == "ws://127.0.0.1:1"
    assert [one["id"] for one in document["requirements"]] == ["connect.websocket"]
    assert ElementTree.parse(report).getroot().get("failures") == "1"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--only", "99"), "--only 99: no requirement about gateways is there"),
        (("http://127.0.0.1:1",), "expected one like ws://127.0.0.1:8080"),
        (("-c", "no-such-file.toml"), "'mew conform example' writes one to start from"),
    ],
)
def test_what_cannot_be_used_is_said(words: tuple[str, ...], problem: str, cast: Path) -> None:
    told = run("-c", str(cast), *words) if "-c" not in words else run(*words)
    assert told.exit_code == 2
    assert problem in " ".join(told.output.split())
