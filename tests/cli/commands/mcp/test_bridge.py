"""`mew bridge`: what it takes, and what it says when it cannot."""

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from mew.cli.commands.mcp.server_options import confine, read_root, read_server
from mew.cli.errors import CommandError
from mew.cli.main import app
from mew.mcp_bridge.server.settings import Command, Endpoint
from mew.mcp_bridge.server.transport.confinement import ConfinementMethod, find_method


def typed(*words: str, environ: dict[str, str] | None = None) -> Result:
    return CliRunner(env={"COLUMNS": "200", **(environ or {})}).invoke(app, ["bridge", *words])


def server(*words: str, **more: object) -> Command | Endpoint:
    given = {"env": (), "cwd": None, "headers": (), "environ": {"PATH": "/usr/bin:/bin"}, **more}
    return read_server(words, **given)  # type: ignore[arg-type]  # what a test leaves out is as nothing typed


def test_a_command_is_what_comes_after_the_dashes() -> None:
    found = server("sh", "-c", "x", env=["A=1=2", "B"], environ={"PATH": "/bin", "B": "b"}, cwd=Path("/"))
    assert found == Command(
        program="sh", arguments=("-c", "x"), environment={"A": "1=2", "B": "b"}, directory=Path("/")
    )


def test_a_url_is_a_server_elsewhere_and_its_headers_come_from_the_environment() -> None:
    found = server(
        "https://example.org/mcp",
        headers=["Authorization: Bearer ${KEY}", "X-Plain:a:b"],
        environ={"KEY": "s3cret"},
    )
    assert isinstance(found, Endpoint)
    assert found.url == "https://example.org/mcp"
    assert found.headers == {"Authorization": "Bearer s3cret", "X-Plain": "a:b"}


@pytest.mark.parametrize(
    ("words", "more", "sentence"),
    [
        ((), {}, "which server? give a URL, or a command after --"),
        (("https://",), {}, "that is not the URL of a server"),
        (("http://h:99999/",), {}, "that is not the URL of a server"),
        (("https://me:pw@h/",), {}, "a user or password in the URL"),
        (("https://h/",), {"env": ["A=1"]}, "--env and --cwd are for a server that is started here"),
        (("sh",), {"headers": ["A: b"]}, "--header is for a server at a URL"),
        (("sh",), {"env": ["MEW_TOKEN=x"]}, "--env MEW_TOKEN: variables of ours are not passed on"),
        (("sh",), {"env": ["mew_space"]}, "--env mew_space: variables of ours are not passed on"),
        (("sh",), {"env": ["=x"]}, "--env: expected NAME=VALUE, or NAME"),
        (("sh",), {"env": ["NOT_SET"]}, "--env NOT_SET: there is no such variable here"),
        (("sh",), {"cwd": Path("/no/such")}, "--cwd: there is no folder /no/such"),
        (("no-such-\x1bprogram",), {}, r"there is no program no-such-\u001bprogram to start"),
        (("https://h/",), {"headers": ["nothing"]}, "--header: expected 'NAME: VALUE'"),
        (("https://h/",), {"headers": ["A: ${NOT}"]}, "--header A: there is no variable NOT here"),
        (("https://h/",), {"headers": ["A: x\ny"]}, "--header A: its value has characters"),
    ],
)
def test_what_makes_no_sense_is_said_in_a_sentence(
    words: tuple[str, ...], more: dict[str, object], sentence: str
) -> None:
    with pytest.raises(CommandError) as raised:
        server(*words, **more)
    assert sentence in str(raised.value)


def test_a_root_is_a_folder_or_a_uri() -> None:
    assert read_root("file:///data") == "file:///data"
    assert read_root("/data x") == "file:///data%20x"
    assert read_root("here") == (Path.cwd() / "here").as_uri()


def test_without_a_server_it_says_what_to_type() -> None:
    result = typed()
    assert result.exit_code == 2
    assert "mew bridge: which server?" in result.stderr


def test_a_program_that_is_not_there_is_said_before_anything_is_connected() -> None:
    result = typed("--gateway", "ws://127.0.0.1:9", "--token", "x", "--", "no-such-program")
    assert result.exit_code == 2
    assert result.stderr == "mew bridge: there is no program no-such-program to start; is it installed?\n"


def test_no_secret_is_in_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = typed(
        "--header",
        "Authorization: Bearer ${KEY}\x00",
        "https://h/",
        environ={"KEY": "s3cret", "MEW_TOKEN": "t0ken"},
    )
    assert result.exit_code == 2
    assert "s3cret" not in result.output
    assert "t0ken" not in result.output


@pytest.mark.skipif(
    find_method() is ConfinementMethod.NONE, reason="this system has no Landlock (Linux 5.19 or newer)"
)
def test_a_server_sees_neither_the_state_of_its_space_nor_the_users_own_nor_the_token(tmp_path: Path) -> None:
    project, token = tmp_path / "project", tmp_path / "a.token"
    (project / ".mew").mkdir(parents=True)
    (project / "space.yaml").write_text("")
    environ = {"XDG_STATE_HOME": str(tmp_path / "state"), "UNDER_MEW_UP": str(tmp_path / "up" / ".mew")}
    found = confine(Command(program="sh"), token=token, environ=environ, here=project)
    assert isinstance(found, Command)
    assert {
        *(project / ".mew", project / "space.yaml", token),
        *(tmp_path / "up" / ".mew", tmp_path / "state" / "mew"),
    } <= set(found.hidden)


@pytest.mark.skipif(
    find_method() is ConfinementMethod.NONE, reason="this system has no Landlock (Linux 5.19 or newer)"
)
def test_what_is_the_users_own_in_the_folder_of_a_space_yaml_stays_visible(tmp_path: Path) -> None:
    state = tmp_path / ".mew"
    state.mkdir()
    (state / "space.yaml").write_text("")
    found = confine(Command(program="sh"), token=None, environ={}, here=tmp_path)
    assert isinstance(found, Command)
    assert state not in found.hidden
    assert {state / "tokens", state / "env", state / "space.yaml"} <= set(found.hidden)
