"""`mew init`: a space to begin with."""

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mew.cli.commands.init.host_import import NoServers, imported
from mew.cli.commands.init.templates import TEMPLATES, rendered, space_id
from mew.cli.main import app
from mew.gateway.config.loader import load_config
from mew.supervise.env_file import read_env
from mew.supervise.prepare import prepare


def init(*arguments: str | Path) -> tuple[int, str]:
    said = CliRunner().invoke(app, ["init", *map(str, arguments)])
    return said.exit_code, said.output


@pytest.mark.parametrize("template", TEMPLATES)
def test_what_a_template_writes_is_valid_and_can_be_started(tmp_path: Path, template: str) -> None:
    code, said = init(tmp_path / "new", "--template", template, "--yes", "--port", "0")
    assert code == 0, said
    config = load_config(tmp_path / "new" / "space.yaml", {})
    assert (list(config.spaces), config.notes) == (["new"], ())
    prepared = prepare(config, {})
    assert prepared.plan.notes == ()
    for program in prepared.plan.programs:
        assert program.argv[0] == sys.executable
        for word in program.argv[1:]:
            assert not word.endswith(".py") or (tmp_path / "new" / word).is_file()


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_template_explains_itself(template: str) -> None:
    text = rendered(template, space="demo", port=8080)[Path("space.yaml")]
    assert text.startswith("# ")
    assert text.count("#") >= 4
    assert "{{" not in text


def test_what_is_there_is_kept(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text("mine")
    code, said = init(tmp_path, "-t", "files", "-y")
    assert code == 0
    assert "which was there" in said
    assert (tmp_path / "agent.py").read_text() == "mine"
    code, said = init(tmp_path, "-t", "empty", "-y")
    assert code == 2
    assert "is there already" in said


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--template", "none"], "no template 'none'; there is files, reviewers, mixed, empty"),
        (["--space", "a b"], "'a b' is no name of a space; 'a-b' would be"),
        (["--from", "gone.json"], "gone.json: No such file"),
        (["--from", "x", "--template", "files"], "give one of them"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(tmp_path: Path, arguments: list[str], why: str) -> None:
    code, said = init(tmp_path / "new", *arguments)
    assert (code, why in said, said.count("\n")) == (2, True, 1), said
    assert not (tmp_path / "new").exists()


def test_the_servers_of_a_host_become_a_space_and_its_secrets_stay_apart(tmp_path: Path) -> None:
    source = tmp_path / "mcp.json"
    servers = {
        "git hub": {
            "command": "npx",
            "args": ["-y", "server", "yes"],
            "env": {"KEY": "s3cret", "SEEN": "${SEEN}"},
        },
        "other": {"command": "other", "env": {"KEY": "another"}, "disabled": True},
        "far": {"url": "https://example.org/mcp", "headers": {"Authorization": "Bearer t0ken"}},
        "odd": {"note": 1},
    }
    source.write_text(json.dumps({"mcpServers": servers}))
    code, said = init(tmp_path / "new", "--from", source, "--yes", "--port", "0")
    assert code == 0, said
    assert "'odd' has neither a 'command' nor a 'url'" in said
    text = (tmp_path / "new" / "space.yaml").read_text()
    for secret in ("s3cret", "another", "t0ken"):
        assert secret not in text + said
    env = tmp_path / "new" / ".mew" / "env"
    assert env.stat().st_mode & 0o777 == 0o600
    assert (env.parent / ".gitignore").read_text() == "*\n"
    assert read_env(env.parent) == {"KEY": "s3cret", "OTHER_KEY": "another", "AUTHORIZATION": "Bearer t0ken"}
    plan = prepare(load_config(tmp_path / "new" / "space.yaml", {}), {"SEEN": "seen"}).plan
    started = {program.name: program for program in plan.programs}
    assert set(started) == {"gateway", "git-hub", "far"}
    assert started["git-hub"].argv[-4:] == ("npx", "-y", "server", "yes")
    assert (started["git-hub"].env["KEY"], started["git-hub"].env["SEEN"]) == ("s3cret", "seen")
    assert started["far"].argv[-3:] == (
        "--header",
        "Authorization: ${AUTHORIZATION}",
        "https://example.org/mcp",
    )


def test_what_may_not_be_as_one_wants_it_is_said() -> None:
    servers = {
        "日本": {"command": "x", "args": ["--api-key", "sk-1", "${workspaceFolder}"], "env": {"PEM": "a\nb"}},
        "you": {"url": "https://example.org/mcp", "type": "sse"},
    }
    written = "// with a comment\n" + json.dumps({"mcpServers": servers}).replace("}}}", "}},}")
    found = imported(written, source="mcp.json", space="demo", port=1)
    assert found.servers == ("server", "you-2")
    assert "PEM" not in found.secrets
    for part in (
        "'日本' is called server here",
        "'you' is called you-2 here",
        "server has variables of its host",
        "server seems to have a secret",
        "PEM of server has several lines",
        "you-2 speaks the old HTTP with SSE",
    ):
        assert any(part in note for note in found.notes), part


def test_vs_code_s_way_of_writing_it_is_read_too() -> None:
    written = json.dumps({"servers": {"a": {"type": "stdio", "command": "x"}}, "inputs": []})
    found = imported(written, source="mcp.json", space="demo", port=1)
    assert found.servers == ("a",)


@pytest.mark.parametrize("written", ["{", "[]", "{}", '{"mcpServers": {}}', '{"mcpServers": {"a": 1}}'])
def test_what_has_no_servers_is_told(written: str) -> None:
    with pytest.raises(NoServers):
        imported(written, source="x", space="demo", port=1)


@pytest.mark.parametrize(
    ("text", "name"), [("my project", "my-project"), ("…", "space"), (".hidden", "hidden"), ("ok_1", "ok_1")]
)
def test_the_name_of_a_folder_becomes_that_of_a_space(text: str, name: str) -> None:
    assert space_id(text) == name
