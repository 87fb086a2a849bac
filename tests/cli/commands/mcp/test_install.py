"""`mew mcp install` and `uninstall`, as somebody types them."""

import json
import os
import pty
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from mew.cli.main import app

MEW = str(Path(sys.executable).with_name("mew"))
FILES = ["--", "npx", "-y", "@modelcontextprotocol/server-filesystem", "/data"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project; the home of the user is beside it."""
    for name in [name for name in os.environ if name.startswith(("MEW_", "XDG_", "CLAUDE_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "project"


def typed(*words: str) -> Result:
    return CliRunner().invoke(app, ["mcp", *words])


def servers(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text())["mcpServers"]
    return found


def space(folder: Path) -> Path:
    file = folder / "space.yaml"
    file.write_text("space: {id: demo}\nparticipants: {ann: {capabilities: ['*']}, bot: {}}\n")
    (folder / ".mew" / "tokens").mkdir(parents=True)
    for who in ("ann", "bot"):
        (folder / ".mew" / "tokens" / f"{who}.token").write_text(f"secret-of-{who}\n")
    return file


# A server that is wrapped.


def test_what_would_change_is_shown_and_nothing_is_written_where_nobody_can_be_asked(folder: Path) -> None:
    result = typed("install", "claude-code", "--allow", "read_*", *FILES)
    assert result.exit_code == 2
    assert '+    "filesystem": {' in result.stdout.splitlines()
    assert "nobody can be asked here; --yes writes it" in result.stderr
    assert not (folder / ".mcp.json").exists()


def test_what_is_only_printed_is_not_written(folder: Path) -> None:
    result = typed("install", "claude-code", "--print", *FILES)
    assert result.exit_code == 0
    assert '+      "command": "mew",' in result.stdout.splitlines()
    assert not (folder / ".mcp.json").exists()


def test_a_server_is_put_in_to_be_wrapped_and_taken_out(folder: Path) -> None:
    assert typed("install", "claude-code", "--yes", "--allow", "read_*", *FILES).exit_code == 0
    assert servers(folder / ".mcp.json") == {
        "filesystem": {"type": "stdio", "command": "mew", "args": ["wrap", "--allow", "read_*", *FILES]}
    }
    assert typed("uninstall", "claude-code", "--yes").exit_code == 0
    assert servers(folder / ".mcp.json") == {}


def test_a_name_that_is_given_is_that_in_the_host_and_in_the_space(folder: Path) -> None:
    assert typed("install", "cursor", "--yes", "--name", "My Data", *FILES).exit_code == 0
    entry = servers(folder / ".cursor" / "mcp.json")["My Data"]
    assert entry["args"] == ["wrap", "--name", "my-data", *FILES]


def test_a_path_from_here_is_written_in_full(folder: Path) -> None:
    (folder / "bin").mkdir()
    (folder / "bin" / "serve").write_text("")
    (folder / "bin" / "serve").chmod(0o700)
    assert typed("install", "claude-desktop", "--yes", "--", "bin/serve", ".", "../x", "a/b").exit_code == 0
    entry = servers(folder.parent / "home" / ".config" / "Claude" / "claude_desktop_config.json")["serve"]
    assert entry["args"] == [
        *("wrap", "--", str(folder / "bin" / "serve"), str(folder), str(folder.parent / "x"), "a/b")
    ]


def test_a_file_for_everyone_names_no_path_of_this_machine(folder: Path) -> None:
    (folder / "policy.yaml").write_text("default: ask")
    done = typed("install", "gemini-cli", "--yes", "--policy", str(folder / "policy.yaml"), "--", "./serve")
    assert servers(folder / ".gemini" / "settings.json") == {
        "serve": {"command": "mew", "args": ["wrap", "--policy", "policy.yaml", "--", "./serve"]}
    }
    assert "mew proposals --wrapped serve" in done.stderr
    outside = typed("install", "gemini-cli", "--yes", "--policy", str(folder.parent / "p.yaml"), "--", "x")
    assert "is outside this folder" in outside.stderr


def test_codex_has_it_in_toml_and_all_else_stays(folder: Path) -> None:
    file = folder / ".codex" / "config.toml"
    file.parent.mkdir()
    text = 'model = "x" # mine\n\n[mcp_servers.time]\ncommand = "t"\nargs = ["-x"]\n'
    file.write_text(text)
    assert typed("install", "codex", "--yes", "--wrap-existing", "time").exit_code == 0
    assert tomllib.loads(file.read_text())["mcp_servers"]["time"] == {
        "command": "mew",
        "args": ["wrap", "--name", "time", "--in-place", "--", "t", "-x"],
    }
    assert typed("uninstall", "codex", "time", "--yes").exit_code == 0
    assert file.read_text() == text
    assert typed("install", "codex", "--yes", *FILES).exit_code == 0
    assert file.read_text().startswith('model = "x" # mine\n')
    assert set(tomllib.loads(file.read_text())["mcp_servers"]) == {"time", "filesystem"}


def test_to_put_in_the_same_again_changes_nothing(folder: Path) -> None:
    typed("install", "cursor", "--yes", *FILES)
    before = (folder / ".cursor" / "mcp.json").stat()
    result = typed("install", "cursor", "--yes", *FILES)
    assert result.exit_code == 0
    assert "is as it should be" in result.stderr
    assert (folder / ".cursor" / "mcp.json").stat() == before


def test_a_server_is_wrapped_where_it_is_and_restored_with_all_that_stands_around_it(folder: Path) -> None:
    file = folder / ".vscode" / "mcp.json"
    file.parent.mkdir()
    text = '{\n\t// mine\n\t"servers": {\n\t\t"time": {"command": "t", "args": ["-x"]}, // clock\n\t},\n}\n'
    file.write_text(text)
    file.chmod(0o640)
    assert typed("install", "vscode", "--yes", "--wrap-existing", "time").exit_code == 0
    assert '"args": ["wrap", "--name", "time", "--in-place", "--", "t", "-x"]}, // clock' in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o640
    backup = file.with_name("mcp.json.before-mew")
    assert backup.read_text() == text
    assert backup.stat().st_mode & 0o777 == 0o640
    assert typed("uninstall", "vscode", "time", "--yes").exit_code == 0
    assert file.read_text() == text


# A space.


def test_a_space_is_put_in_without_a_secret(folder: Path) -> None:
    file = space(folder)
    assert typed("install", "claude-code", "--yes", "--as", "bot").exit_code == 0
    entry = servers(folder / ".mcp.json")["mew"]
    assert entry["args"] == ["mcp", "--config", file.name, "--space", "demo", "--as", "bot"]
    assert "secret" not in (folder / ".mcp.json").read_text()


def test_where_nothing_would_have_to_be_approved_is_said(folder: Path) -> None:
    space(folder)
    assert "'ann' may call every tool" in typed("install", "claude-code", "--yes", "--as", "ann").stderr
    assert "every tool" not in typed("install", "claude-code", "--yes", "--as", "bot").stderr


def test_a_gateway_elsewhere_is_put_in_with_the_file_of_its_token(folder: Path) -> None:
    (folder / "host.token").write_text("secret")
    result = typed(
        *("install", "claude-desktop", "--yes", "--gateway", "wss://mew.example.org", "--space", "demo"),
        *("--token-file", "host.token"),
    )
    assert result.exit_code == 0, result.stderr
    entry = servers(folder.parent / "home" / ".config" / "Claude" / "claude_desktop_config.json")["mew"]
    assert entry["args"][1:] == [
        *("--gateway", "wss://mew.example.org", "--space", "demo"),
        *("--token-file", str(folder / "host.token")),
    ]


def test_a_token_is_never_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEW_GATEWAY", "wss://mew.example.org")
    monkeypatch.setenv("MEW_TOKEN", "secret")
    result = typed("install", "claude-code", "--yes")
    assert result.exit_code == 2
    assert "put it into a file, and give --token-file" in result.stderr
    assert not (folder / ".mcp.json").exists()


# Where it is written.


def test_a_user_has_it_everywhere(folder: Path) -> None:
    file = folder.parent / "home" / ".claude.json"
    file.write_text('{"numStartups": 7, "projects": {}}')
    assert typed("install", "claude-code", "--user", "--yes", *FILES).exit_code == 0
    assert json.loads(file.read_text())["numStartups"] == 7
    assert list(servers(file)) == ["filesystem"]


def test_what_claude_code_has_for_this_folder_alone_is_wrapped_there(folder: Path) -> None:
    file = folder.parent / "home" / ".claude.json"
    text = json.dumps(
        {"projects": {str(folder): {"mcpServers": {"time": {"command": "t", "args": []}}}}}, indent=2
    )
    file.write_text(text)
    assert typed("install", "claude-code", "--local", "--yes", "--wrap-existing", "time").exit_code == 0
    entry = json.loads(file.read_text())["projects"][str(folder)]["mcpServers"]["time"]
    assert entry["command"] == MEW
    assert typed("uninstall", "claude-code", "--local", "--yes").exit_code == 0
    assert json.loads(file.read_text())["projects"][str(folder)]["mcpServers"]["time"]["command"] == "t"


def test_what_a_link_leads_to_is_changed(folder: Path) -> None:
    kept = folder / "kept.json"
    kept.write_text("{}")
    (folder / ".mcp.json").symlink_to(kept)
    assert typed("install", "claude-code", "--yes", *FILES).exit_code == 0
    assert (folder / ".mcp.json").is_symlink()
    assert list(servers(kept)) == ["filesystem"]


# What cannot be done.


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["install", "cursor"], "no gateway: there is no space.yaml"),
        (["install", "cursor", "--allow", "x"], "--allow is for a server that is wrapped"),
        (["install", "cursor", "--wrap-existing", "x", *FILES], "a command and --wrap-existing: give one"),
        (["install", "cursor", "--wrap-existing", "x", "--name", "y"], "--name: a server that is wrapped"),
        (["install", "cursor", "--as", "bot", *FILES], "has a space of its own"),
        (["install", "cursor", "--local", *FILES], "--local: cursor has nothing of that kind"),
        (["install", "claude-code", "--local", "--user", *FILES], "--user and --local: give one of them"),
        (["install", "cursor", "--yes", "--print", *FILES], "--yes and --print: give one of them"),
        (["install", "cursor", "--wrap-existing", "x"], "there is no server 'x' to be wrapped"),
        (["uninstall", "cursor"], "no server of ours is there"),
        (["uninstall", "cursor", "x"], "there is no server 'x'"),
    ],
)
def test_what_cannot_be_done_is_said(words: list[str], why: str) -> None:
    result = typed(*words)
    assert result.exit_code == 2
    assert why in result.stderr
    assert result.stderr.startswith(f"mew mcp {words[0]}: ")


def test_a_file_that_is_no_json_is_left_and_what_to_put_in_is_shown(folder: Path) -> None:
    (folder / ".mcp.json").write_text('{"mcpServers": ')
    result = typed("install", "claude-code", "--yes", *FILES)
    assert result.exit_code == 2
    assert "line 1, column 16: expected a value; put it in by hand" in result.stderr
    assert '"filesystem": {' in result.stdout
    assert (folder / ".mcp.json").read_text() == '{"mcpServers": '


@pytest.mark.parametrize("content", [b"\xff", b'{"mcpServers": []}'])
def test_a_file_that_is_something_else_is_left(folder: Path, content: bytes) -> None:
    (folder / ".mcp.json").write_bytes(content)
    result = typed("install", "claude-code", "--yes", *FILES)
    assert result.exit_code == 2
    assert str(folder / ".mcp.json") in result.stderr
    assert (folder / ".mcp.json").read_bytes() == content


def test_several_of_ours_are_told_apart(folder: Path) -> None:
    typed("install", "cursor", "--yes", "--name", "one", *FILES)
    typed("install", "cursor", "--yes", "--name", "two", *FILES)
    result = typed("uninstall", "cursor", "--yes")
    assert result.exit_code == 2
    assert "say which: one, two" in result.stderr


def test_nothing_in_a_file_moves_the_terminal(folder: Path) -> None:
    (folder / ".mcp.json").write_text('{\n  "mcpServers": {\n    "\x7f\x9b2J": {}\n  }\n}')
    result = typed("install", "claude-code", "--print", *FILES)
    assert result.exit_code == 0
    assert "\x9b" not in result.stdout
    assert "\\u009b2J" in result.stdout


@pytest.mark.e2e
@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 1), ("", 1)])
def test_who_is_at_a_terminal_is_asked(folder: Path, answer: str, code: int) -> None:
    ours, theirs = pty.openpty()
    try:
        os.write(ours, f"{answer}\n".encode())
        words = [MEW, "mcp", "install", "claude-code", *FILES]
        done = subprocess.run(words, stdin=theirs, capture_output=True, text=True, timeout=60, check=False)
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.returncode == code
    assert "Write this?" in done.stderr
    assert (folder / ".mcp.json").exists() == (code == 0)
