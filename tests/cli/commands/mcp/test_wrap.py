"""What `mew wrap` says to those who type it wrong; what it does is tried in tests/e2e."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from mew.cli.main import app


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([], "what is to be wrapped? give the command after --"),
        (["--name", "My Files", "--", "x"], "--name: 'My Files' will not do; 'my-files' would"),
        (["--name", "user", "--", "x"], "--name: 'user' will not do; 'user-server' would"),
        (["--http", "here", "--", "x"], "--http: 'here' is no address; it looks like 127.0.0.1:8090"),
        (["--http", "127.0.0.1:99999", "--", "x"], "--http: '127.0.0.1:99999' is no address"),
        (["--", "no-such-program-anywhere"], "there is no program no-such-program-anywhere to start"),
        (["--header", "A: b", "--", "env"], "--header is for a server at a URL"),
        (["https://ann:secret@example.org/mcp"], "a user or password in the URL"),
        (["--allow", "/(/", "--", "env"], "--allow: is not a regular expression of RE2: '/(/'"),
    ],
)
def test_what_is_typed_wrong_is_said_in_a_sentence(
    words: list[str], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    result = CliRunner().invoke(app, ["wrap", *words])
    assert result.exit_code == 2
    assert why in result.stderr
    assert result.stderr.startswith("mew wrap: ")
    assert len(result.stderr.splitlines()) == 1
    assert "secret" not in result.stderr
    assert not result.stdout
    assert not list(tmp_path.iterdir())
