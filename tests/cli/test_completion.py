"""What a shell completes after `mew`: through Typer, with names and ids of what there is here."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from typer.testing import CliRunner

from mew.cli.main import app

SPACE = """
space: {id: desk}
participants:
  ann: {capabilities: ["*"], tokens: [secret-of-ann]}
  bot: {capabilities: [chat]}
server: {port: %d}
"""
LISTS = {
    "proposals": [
        {"id": "3f2a91c0", "proposer": "bot", "method": "tools/call", "params": {"name": "write_file"}},
        {"id": "$(reboot)", "proposer": "bot"},
    ],
    "participants": [{"id": "ann", "connected": True}, {"id": "late", "connected": False}],
}


@pytest.fixture
def port() -> Iterator[int]:
    """A gateway that lists proposals and participants."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            what = self.path.partition("?")[0].rpartition("/")[2]
            is_known = self.headers["Authorization"] == "Bearer secret-of-ann"
            body = json.dumps({what: LISTS.get(what, [])} if is_known else {}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("MEW_GATEWAY", "MEW_SPACE", "MEW_AS", "MEW_TOKEN", "MEW_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "space.yaml").write_text(SPACE % 1)
    return tmp_path


def completed(line: str) -> list[str]:
    """What bash is offered for the last word of the line."""
    words = line.split(" ")
    environ = {"_MEW_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    return CliRunner(env=environ).invoke(app, []).stdout.split()


@pytest.mark.parametrize(
    ("line", "offers"),
    [
        ("mew appr", ["approve"]),
        ("mew audit chai", ["chain"]),
        ("mew participant res", ["resume", "restart"]),
        ("mew gateway --log-level w", ["warning"]),
        ("mew gateway --ephem", ["--ephemeral"]),
        ("mew init --template f", ["files"]),
        ("mew reject 3f2 --reason un", ["unsafe"]),
        ("mew send reasoning/c", ["reasoning/cancel", "reasoning/conclusion"]),
    ],
)
def test_commands_options_and_choices_are_completed(folder: Path, line: str, offers: list[str]) -> None:
    assert completed(line) == offers


def test_names_come_from_the_file_if_no_gateway_runs(folder: Path) -> None:
    assert completed("mew token show b") == ["bot"]
    assert completed("mew participant pause ") == ["ann", "bot"]
    assert completed("mew tail --space d") == ["desk"]


def test_names_and_ids_come_from_a_gateway_on_this_machine(folder: Path, port: int) -> None:
    (folder / "space.yaml").write_text(SPACE % port)
    assert completed("mew approve --as ann ") == ["3f2a91c0"]
    assert completed("mew kick --as ann ") == ["ann", "late"]


def test_what_a_shell_could_evaluate_is_not_offered(folder: Path) -> None:
    logs = folder / ".mew" / "logs"
    logs.mkdir(parents=True)
    for name in ("gateway", "$(reboot)", "a b", "`id`"):
        (logs / f"{name}.log").touch()
    assert completed("mew logs ") == ["gateway"]


def test_a_file_that_is_invalid_completes_nothing_and_prints_nothing(folder: Path) -> None:
    (folder / "space.yaml").write_text("surprise: 1")
    assert completed("mew participant pause ") == []
