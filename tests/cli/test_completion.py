"""What a shell is told may come next, and how it is told to ask."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from tests.e2e.process import Gateway, run_gateway
from typer.testing import CliRunner

from mew.cli.completion_scripts import Shell, place_of, script_of
from mew.cli.completion_words import Next, Way, answer, next_words
from mew.cli.main import app

HEAVY = (
    "aiohttp",
    "mcp",
    "yaml",
    "rich",
    "mew.gateway",
    "mew.client.client",
    "mew.cli.everyday",
    "mew.supervise",
)
SPACE = """
space: {id: desk, name: Desk, default_participant: ann}
participants:
  ann: {capabilities: ["*"], tokens: [secret-of-ann]}
  bot: {capabilities: [chat, mcp/proposal], tokens: [secret-of-bot]}
  fs: {capabilities: [mcp/response], tokens: [secret-of-fs]}
server: {port: 1}
"""
BREAKS = " \t\n\"'@><=;|&(:"


def values(found: Next) -> list[str]:
    return [offer.value for offer in found.offers]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("MEW_GATEWAY", "MEW_SPACE", "MEW_AS", "MEW_TOKEN", "MEW_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "space.yaml").write_text(SPACE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


# What may come next.


def test_the_first_word_is_a_command_and_loads_none() -> None:
    look = (
        "import sys; from mew.cli.completion_words import next_words;"
        "print(*[one.value for one in next_words([], 'appr').offers]);"
        f"print([module for module in {HEAVY} if module in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", look], capture_output=True, text=True, timeout=20, check=True
    )
    assert done.stdout.splitlines() == ["approve", "[]"]


def test_a_command_is_said_with_what_it_does() -> None:
    (offer,) = next_words(["--debug"], "kic").offers
    assert offer.value == "kick"
    assert offer.says.startswith("Remove somebody from the space")


@pytest.mark.parametrize(
    ("words", "typed", "offered"),
    [
        (["audit"], "ver", ["verify"]),
        (["token"], "", ["show", "new", "seal"]),
        (["approve"], "--ed", ["--edit"]),
        (["approve", "--edit"], "--ed", []),
        (["approve", "--set", "a=b"], "--se", ["--set"]),
        (["gateway", "--log-level"], "w", ["warning"]),
        (["gateway"], "--log-level=w", ["--log-level=warning"]),
        (["gateway", "--port"], "8", []),
        (["init", "--template"], "", ["files", "reviewers", "mixed", "empty"]),
        (["forget", "bot"], "", ["oldest", "newest"]),
        (["completion"], "", ["bash", "zsh", "fish"]),
        (["send"], "reasoning/c", ["reasoning/cancel", "reasoning/conclusion"]),
        (["reject", "-r"], "un", ["unsafe"]),
        (["no-such-command"], "x", []),
        (["no-such-command", "--flag"], "--", []),
    ],
)
def test_options_and_values_are_those_that_fit(words: list[str], typed: str, offered: list[str]) -> None:
    assert values(next_words(words, typed)) == offered


@pytest.mark.parametrize(
    ("words", "way"),
    [
        (["up", "--config"], Way.FILES),
        (["audit", "verify"], Way.FILES),
        (["audit", "verify", "--key"], Way.FILES),
        (["audit", "list", "--journal"], Way.FOLDERS),
        (["init"], Way.FOLDERS),
        (["bridge", "--", "npx"], Way.FILES),
        (["invite"], Way.NOTHING),
        (["send", "chat"], Way.NOTHING),
        (["pause", "--for"], Way.NOTHING),
    ],
)
def test_files_and_folders_are_left_to_the_shell(folder: Path, words: list[str], way: Way) -> None:
    assert next_words(words, "").way is way


def test_names_are_those_of_the_file_where_no_gateway_runs(folder: Path) -> None:
    assert values(next_words(["pause"], "")) == ["ann", "bot", "fs"]
    assert values(next_words(["send", "--to"], "b")) == ["bot"]
    assert values(next_words(["token", "show"], "a")) == ["ann"]
    assert values(next_words(["tail", "--space"], "")) == ["desk"]
    assert values(next_words(["audit", "list", "--who"], "f")) == ["fs"]
    assert values(next_words(["approve"], "")) == []
    assert values(next_words(["restart"], "")) == []


def test_programs_are_those_that_have_a_log(folder: Path) -> None:
    (folder / ".mew" / "logs").mkdir(parents=True)
    for name in ("bot", "gateway"):
        (folder / ".mew" / "logs" / f"{name}.log").touch()
    assert values(next_words(["logs", "-f"], "")) == ["bot", "gateway"]


def test_tools_are_those_a_bridge_saw_where_nobody_has_asked(folder: Path) -> None:
    (folder / ".mew" / "bridge").mkdir(parents=True)
    (folder / ".mew" / "bridge" / "fs.json").write_text('{"tools": {"read_file": {}, "$(reboot)": {}}}')
    assert values(next_words(["call", "fs"], "")) == ["read_file"]
    assert values(next_words(["call", "../fs"], "")) == []


def test_a_file_that_is_wrong_offers_nothing(folder: Path) -> None:
    (folder / "space.yaml").write_text("space: [")
    assert next_words(["pause"], "").way is Way.NOTHING


def test_a_gateway_that_does_not_answer_is_not_waited_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("MEW_GATEWAY", f"ws://127.0.0.1:{silent.getsockname()[1]}")
        next_words(["pause"], "")  # loads what it needs
        began = time.monotonic()
        assert values(next_words(["pause"], "")) == ["ann", "bot", "fs"]
        assert time.monotonic() - began < 1


def test_a_gateway_elsewhere_is_not_asked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEW_GATEWAY", "ws://192.0.2.1:8080")
    monkeypatch.setenv("MEW_TOKEN", "secret")
    began = time.monotonic()
    assert values(next_words(["approve", "--space", "desk"], "")) == []
    assert time.monotonic() - began < 1


# What a shell hands over.


@pytest.mark.parametrize(
    ("line", "lines"),
    [
        ("mew gateway --log-level=w", ["values", "warning"]),
        ("mew gateway --log-level w", ["values", "warning"]),
        ("FOO=1 mew gateway --log-level 'w", ["values", "warning"]),
        ("mew send chat 'it is' --markd", ["values", "--markdown"]),
        ("mew appr", ["values", "approve"]),
        ("mew audit verify ", ["files"]),
        ("mew audit 'veri", ["values", "verify"]),
        ("mew up --port ", ["nothing"]),
    ],
)
def test_bash_is_given_what_comes_after_the_last_break_of_its_word(line: str, lines: list[str]) -> None:
    assert answer("bash", line, BREAKS) == lines


def test_others_are_given_words_and_what_they_mean() -> None:
    assert answer("fish", "init", "--template", "mix") == [
        "values",
        "mixed\tfour profiles in one space: who administers, who serves, who is new, …",
    ]


def test_whatever_is_asked_nothing_is_said_of_what_went_wrong(tmp_path: Path) -> None:
    for shell, typed in (("bash", b"too\0much\0of it\0"), ("fish", b"audit\0\xff\0")):
        done = subprocess.run(
            [sys.executable, "-m", "mew", "__complete", shell],
            input=typed,
            capture_output=True,
            timeout=20,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b""), shell


# What is known of a space, while its gateway runs.


@pytest.fixture
def gateway(folder: Path) -> Iterator[Gateway]:
    with run_gateway(folder, SPACE) as running:
        yield running


def post(gateway: Gateway, who: str, **envelope: object) -> str:
    asked = Request(
        f"{gateway.url}/participants/{who}/messages?space=desk",
        json.dumps(envelope).encode(),
        {"Authorization": f"Bearer secret-of-{who}", "Content-Type": "application/json"},
    )
    with urlopen(asked, timeout=5) as answered:
        return str(json.load(answered)["id"])


@pytest.mark.e2e
def test_proposals_tools_and_their_arguments_are_those_of_the_space(gateway: Gateway) -> None:
    params = {"name": "write_file", "arguments": {"path": "a"}}
    proposed = {"method": "tools/call", "params": params}
    first = post(gateway, "bot", kind="mcp/proposal", to=["fs"], payload=proposed)
    second = post(gateway, "bot", kind="mcp/proposal", to=["fs"], payload=proposed)
    post(gateway, "ann", kind="mcp/reject", to=["bot"], correlation_id=[second], payload={"reason": "unsafe"})
    tools = [
        {"name": "write_file", "inputSchema": {"properties": {"path": {}, "content": {}, "a;b": {}}}},
        {"name": "x; reboot", "description": "\x1b]0;title\x07"},
    ]
    answered = {"jsonrpc": "2.0", "id": 1, "result": {"tools": tools}}
    post(gateway, "fs", kind="mcp/response", to=["ann"], payload=answered)
    where = ["--gateway", gateway.url]

    # One rejection leaves a proposal open for others (§3.3.2).
    offered = {first: "bot: write_file of fs", second: "bot: write_file of fs"}
    assert dict(next_words(["approve", *where], "").offers) == offered
    assert values(next_words(["call", *where, "fs"], "")) == ["write_file"]
    assert values(next_words(["call", *where, "fs", "write_file", "path=x"], "")) == ["content="]
    assert set(next_words(["pause", *where], "").offers) == {
        ("ann", "is away"),
        ("bot", "is away"),
        ("fs", "is away"),
    }


# The scripts.


@pytest.mark.parametrize("shell", Shell)
def test_the_script_is_one_that_its_shell_reads(shell: Shell, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    script = tmp_path / "script"
    script.write_text(script_of(shell))
    done = subprocess.run([shell, "-n", script], capture_output=True, text=True, timeout=20, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("line", "replies"),
    [("mew appr", "approve"), ("mew gateway --log-level=w", "warning"), ("mew audit chai", "chain")],
)
def test_bash_completes(tmp_path: Path, line: str, replies: str) -> None:
    program = tmp_path / "mew"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m mew "$@"\n')
    program.chmod(0o755)
    (tmp_path / "script").write_text(script_of(Shell.BASH))
    tried = 'source "$1"; COMP_LINE=$3 COMP_POINT=${#3}; _mew "$2"; printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(
        ["bash", "--norc", "-c", tried, "bash", tmp_path / "script", program, line],
        capture_output=True,
        text=True,
        timeout=20,
        check=True,
        env={**os.environ, "COMP_WORDBREAKS": BREAKS},
    )
    assert (done.stdout, done.stderr) == (f"{replies}\n", "")


# Where they go.


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "ZDOTDIR", "BASH_COMPLETION_USER_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def install(shell: Shell) -> str:
    result = CliRunner().invoke(app, ["completion", shell, "--install"])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize("shell", Shell)
def test_installing_says_what_it_does_and_twice_is_like_once(home: Path, shell: Shell) -> None:
    place = place_of(shell, home, {})
    said = install(shell)
    assert f"wrote {place.script}" in said
    assert place.script.read_text() == script_of(shell)
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    install(shell)
    assert {path: path.read_bytes() for path in home.rglob("*") if path.is_file()} == before
    if place.startup is not None:
        assert f"added to {place.startup}:\n  {place.line}\n" in said
        assert place.startup.read_text().splitlines().count(place.line) == 1


def test_a_startup_file_that_is_a_link_stays_one_and_keeps_what_is_in_it(home: Path) -> None:
    (home / "dotfiles").mkdir()
    (home / "dotfiles" / "zshrc").write_text("alias ll='ls -l'")
    (home / ".zshrc").symlink_to(home / "dotfiles" / "zshrc")
    install(Shell.ZSH)
    assert (home / ".zshrc").is_symlink()
    assert (home / ".zshrc").read_text().startswith("alias ll='ls -l'\n")


def test_a_script_of_somebody_else_is_left_alone(home: Path) -> None:
    place = place_of(Shell.FISH, home, {})
    place.script.parent.mkdir(parents=True)
    place.script.write_text("# mine")
    result = CliRunner().invoke(app, ["completion", "fish", "--install"])
    assert (result.exit_code, "not from mew; move it away" in result.stderr) == (2, True)
    assert place.script.read_text() == "# mine"


def test_folders_of_the_user_go_before_those_of_the_system(tmp_path: Path) -> None:
    environ = {"XDG_CONFIG_HOME": "/there", "ZDOTDIR": "/zsh", "XDG_DATA_HOME": "relative"}
    assert place_of(Shell.FISH, tmp_path, environ).script == Path("/there/fish/completions/mew.fish")
    zsh = place_of(Shell.ZSH, tmp_path, environ)
    assert (zsh.startup, zsh.script.is_relative_to(tmp_path)) == (Path("/zsh/.zshrc"), True)


def test_without_install_the_script_is_printed_and_nothing_written(home: Path) -> None:
    result = CliRunner().invoke(app, ["completion", "zsh"])
    assert result.stdout == script_of(Shell.ZSH)
    assert list(home.iterdir()) == []
