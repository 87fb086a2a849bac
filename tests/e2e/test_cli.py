"""The everyday commands as they are typed, at a gateway that runs as a process."""

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import mew
from mew.cli.main import app

from .process import WAIT_S, Gateway, run_gateway
from .terminal import Terminal

MEW = Path(sys.executable).with_name("mew")
Typed = Callable[..., Result]


@pytest.fixture
def space(unused: Iterator[int]) -> str:
    return f"space-{next(unused)}"


@pytest.fixture
def typed(gateway: Gateway, tokens: dict[str, str], space: str) -> Typed:
    """Type a command as somebody in this test's space."""

    def run(who: str, *words: str) -> Result:
        environ = {"MEW_GATEWAY": gateway.url, "MEW_SPACE": space, "MEW_TOKEN": tokens[who]}
        return CliRunner(env={**environ, "COLUMNS": "160", "TZ": "UTC"}).invoke(app, words)

    return run


@pytest.fixture
def files(gateway: Gateway, tokens: dict[str, str], space: str) -> Iterator[mew.Participant]:
    """`bob` serves files in this test's space."""
    served = mew.Participant("files")
    here = threading.Event()

    @served.on_start
    async def started() -> None:
        here.set()

    @served.tool(destructive=True)
    def write_file(path: str, content: str = "") -> str:
        """Write a file."""
        if path == "/":
            raise mew.ToolError("that is a folder\x1b[2J")
        return f"wrote {content!r} to {path}"

    @served.tool
    async def deploy(call: mew.Call) -> str:
        """Ask where to."""
        schema = {
            "type": "object",
            "properties": {"times": {"type": "integer"}, "branch": {"type": "string"}},
        }
        asked = {"message": "Where to?", "requestedSchema": {**schema, "required": ["branch"]}}
        answer = await served.client.request(call.sender, "elicitation/create", asked)
        return f"{answer['action']} {answer.get('content')}"

    thread = threading.Thread(
        target=served.run,
        args=(gateway.ws_url,),
        kwargs={"space": space, "token": tokens["bob"]},
        daemon=True,
    )
    thread.start()
    assert here.wait(WAIT_S)
    yield served
    served.stop()
    thread.join(WAIT_S)
    assert not thread.is_alive()


def told(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_proposal_goes_from_one_command_to_the_next(
    typed: Typed, files: mew.Participant, gateway: Gateway, space: str, tmp_path: Path
) -> None:
    proposal = told(typed("bot", "propose", "bob", "write_file", "path=a", "--no-wait", "--json"))["proposal"]
    assert f"{proposal[:8]}  bot proposes write_file of bob" in typed("ann", "proposals").stdout
    file = tmp_path / "space.yaml"
    file.write_text(f"{{space: {{id: {space}}}, approvals: {{unattended: true}}}}")
    unattended = ("--yes", "--config", str(file), "--gateway", gateway.url)
    done = told(typed("ann", "approve", proposal[:8], *unattended, "--set", "content=hi", "--json"))
    assert done == {"proposal": proposal, "edited": True, "value": "wrote 'hi' to a"}
    again = typed("ann", "reject", proposal, "-r", "unsafe")
    assert (again.exit_code, "no longer waits: fulfilled, approved by ann" in again.stderr) == (1, True)
    (record,) = told(typed("ann", "proposals", "--json"))
    assert (record["id"], record["status"]) == (proposal, "fulfilled")


def test_yes_approves_nothing_unless_a_space_yaml_allows_it(
    typed: Typed, files: mew.Participant, gateway: Gateway, space: str, tmp_path: Path
) -> None:
    proposal = told(typed("bot", "propose", "bob", "write_file", "path=a", "--no-wait", "--json"))["proposal"]
    file = tmp_path / "space.yaml"
    file.write_text(f"{{space: {{id: {space}}}}}")
    refused = typed("ann", "approve", proposal, "--yes", "--config", str(file), "--gateway", gateway.url)
    assert refused.exit_code == 2
    assert f"{file} does not allow that: set 'approvals: {{unattended: true}}' there" in refused.stderr
    (record,) = told(typed("ann", "proposals", "--json"))
    assert record["status"] == "open"


def test_without_a_terminal_what_is_piped_in_is_no_confirmation(
    gateway: Gateway, tokens: dict[str, str], space: str, typed: Typed, files: mew.Participant
) -> None:
    proposal = told(typed("bot", "propose", "bob", "write_file", "path=a", "--no-wait", "--json"))["proposal"]
    where = {"MEW_GATEWAY": gateway.url, "MEW_SPACE": space, "MEW_TOKEN": tokens["ann"]}
    done = subprocess.run(
        [MEW, "approve", proposal],
        input="y\n",
        env={**os.environ, **where},
        capture_output=True,
        text=True,
        start_new_session=True,  # so without a controlling terminal
        timeout=4 * WAIT_S,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "cannot ask for confirmation: there is no terminal" in done.stderr


def test_a_rejection_ends_a_proposal_that_waits_for_it(
    gateway: Gateway, tokens: dict[str, str], space: str, typed: Typed, files: mew.Participant
) -> None:
    where = {"MEW_GATEWAY": gateway.url, "MEW_SPACE": space, "MEW_TOKEN": tokens["bot"]}
    with Terminal("propose", "bob", "write_file", "path=a", **where) as terminal:
        terminal.wait_for("waiting for approval")
        (record,) = told(typed("ann", "proposals", "--json"))
        rejected = typed("ann", "reject", record["id"], "-r", "unsafe", "-m", "not there")
        assert rejected.exit_code == 0, rejected.output
        terminal.wait_for('mew propose: rejected by ann: unsafe ("not there")')
        assert terminal.ended() == 1


def test_tools_are_listed_and_called(typed: Typed, files: mew.Participant) -> None:
    assert "write_file(path, [content])  says it may destroy" in typed("ann", "tools", "bob").stdout
    assert typed("ann", "call", "bob", "write_file", "path=b").stdout == "wrote '' to b\n"
    wrong = typed("ann", "call", "bob", "write_file", "pth=b")
    assert (wrong.exit_code, "unknown argument 'pth'" in wrong.stderr) == (1, True)
    failed = typed("ann", "call", "bob", "write_file", "path=/")
    assert (failed.exit_code, failed.stderr) == (1, "mew call: that is a folder\\u001b[2J\n")


def test_what_is_said_is_seen(typed: Typed) -> None:
    sent = told(typed("bob", "send", "chat", "Hello,", "\x1b[2Jall", "--json"))
    (seen,) = [
        json.loads(line)
        for line in typed("ann", "tail", "--no-follow", "--json", "-k", "chat").stdout.splitlines()
    ]
    assert seen == sent
    shown = typed("ann", "tail", "--no-follow", "--from", "bob").stdout.splitlines()
    assert re.fullmatch(r"..:..:..  bob +Hello, \\u001b\[2Jall", shown[-1])
    refused = typed("bot", "send", "space/kick", "participant_id=ann")
    assert (refused.exit_code, "capability_violation" in refused.stderr) == (1, True)


def test_who_may_do_what_is_said_and_changed(typed: Typed) -> None:
    what = "mcp/request:tools/call:write_file"
    assert typed("ann", "can", "cat", what).exit_code == 1
    grant = told(typed("ann", "grant", "cat", what, "--for", "1h", "--json"))["id"]
    verdict = told(typed("ann", "can", "cat", what, "--json"))
    assert [(one["from"], one["grant"]) for one in verdict["because"]] == [("granted by ann", grant)]
    assert typed("ann", "revoke", "cat", "--grant", grant[:8]).exit_code == 0
    assert "it was taken by ann" in typed("ann", "can", "cat", what).stdout
    invited = told(typed("ann", "invite", "dog", "chat", "--json"))
    assert {"participant_id", "token", "connection_url", "email"} == set(invited)
    assert [one["id"] for one in told(typed("ann", "participants", "--json"))][-1] == "dog"
    assert typed("ann", "kick", "dog").exit_code == 0


def test_an_invitation_is_kept_in_a_file_and_not_shown(typed: Typed, tmp_path: Path) -> None:
    file = tmp_path / "dog.token"
    result = typed("ann", "invite", "dog", "chat", "--output", str(file))
    assert result.exit_code == 0, result.output
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.read_text().strip() not in result.output
    again = typed("ann", "invite", "dog", "chat", "--output", str(file))
    assert (again.exit_code, "is there already" in again.stderr) == (2, True)


def test_others_are_controlled(typed: Typed, files: mew.Participant) -> None:
    assert typed("ann", "participant", "pause", "bob", "--for", "1h").exit_code == 0
    assert "paused by ann until" in typed("ann", "participants", "--here").stdout
    assert typed("ann", "participant", "resume", "bob").exit_code == 0
    assert "status" in told(typed("ann", "participant", "status", "bob", "--json"))
    assert typed("ann", "participant", "clear", "bob").exit_code == 0
    assert typed("ann", "participant", "clear", "cat").exit_code == 1
    assert typed("ann", "participant", "shutdown", "bob").exit_code == 0


def test_the_doctor_finds_a_gateway_well(
    typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = {one["about"]: one for one in told(typed("ann", "doctor", "--json"))}
    assert {one["level"] for one in found.values()} == {"ok"}, found
    assert {"gateway", "clock", "spaces", "token"} <= set(found)


def test_a_new_token_is_taken_by_the_gateway_at_once(tmp_path: Path) -> None:
    config = {"space": {"id": "desk", "name": "desk"}, "participants": {"ann": {"capabilities": ["*"]}}}
    file = tmp_path / ".mew" / "tokens" / "ann.token"
    with run_gateway(tmp_path, config) as gateway:

        def run(*words: str) -> Result:
            return CliRunner().invoke(app, [*words, "--config", str(gateway.config)])

        old = file.read_text().strip()
        assert run("participants").exit_code == 0
        made = run("token", "new", "ann")
        assert "the gateway has been told" in made.stderr, made.output
        gateway.wait_for("configuration reloaded")
        assert run("participants").exit_code == 0
        refused = run("participants", "--token", old)
        assert (refused.exit_code, "does not know this token" in refused.stderr) == (2, True)
        assert run("doctor").exit_code == 0


# At a terminal.


def test_who_approves_sees_what_will_run_and_may_edit_it(
    gateway: Gateway, tokens: dict[str, str], space: str, typed: Typed, files: mew.Participant, tmp_path: Path
) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i \'s/"draft"/"final"/\' "$1"\n')
    editor.chmod(0o700)
    words = ("bot", "propose", "bob", "write_file", "path=a", "content=draft", "--no-wait", "--json")
    proposal = told(typed(*words))["proposal"]
    where = {
        "MEW_GATEWAY": gateway.url,
        "MEW_SPACE": space,
        "MEW_TOKEN": tokens["ann"],
        "EDITOR": str(editor),
    }
    with Terminal("approve", proposal[:8], **where) as terminal:
        terminal.wait_for("[e]dit: ")
        assert 'content: "draft"' in terminal.seen
        assert "bob says it is destructive" in terminal.seen
        terminal.type("e\n")
        terminal.wait_for('+ "final"')
        assert '- "draft"' in terminal.seen
        terminal.wait_for("[e]dit: ", times=2)
        terminal.type("y\n")
        terminal.wait_for("wrote 'final' to a")
        assert terminal.ended() == 0


def test_who_is_asked_may_say_no_and_may_leave(
    gateway: Gateway, tokens: dict[str, str], space: str, typed: Typed, files: mew.Participant
) -> None:
    proposal = told(typed("bot", "propose", "bob", "write_file", "path=a", "--no-wait", "--json"))["proposal"]
    where = {"MEW_GATEWAY": gateway.url, "MEW_SPACE": space, "MEW_TOKEN": tokens["ann"]}
    with Terminal("approve", proposal[:8], **where) as terminal:
        terminal.wait_for("[e]dit: ")
        terminal.type("n\n")
        terminal.wait_for("stays open")
        assert terminal.ended() == 1
    with Terminal("approve", proposal[:8], **where) as terminal:
        terminal.wait_for("[e]dit: ")
        terminal.interrupt()
        assert terminal.ended() == 130
    (record,) = told(typed("ann", "proposals", "--json"))
    assert record["status"] == "open"


def test_what_a_tool_asks_meanwhile_is_asked_at_the_terminal(
    gateway: Gateway, tokens: dict[str, str], space: str, files: mew.Participant
) -> None:
    where = {"MEW_GATEWAY": gateway.url, "MEW_SPACE": space, "MEW_TOKEN": tokens["ann"]}
    with Terminal("call", "bob", "deploy", **where) as terminal:
        terminal.wait_for("bob asks: Where to?")
        terminal.wait_for("Answer? [y]es, [n]o: ")
        terminal.type("y\n")
        terminal.wait_for("times (may be left out): ")
        terminal.type("two\n")
        terminal.wait_for("expected integer")
        terminal.wait_for("times (may be left out): ", times=2)
        terminal.type("2\n")
        terminal.wait_for("branch: ")
        terminal.type("main\n")
        terminal.wait_for("accept {'times': 2, 'branch': 'main'}")
        assert terminal.ended() == 0


def test_a_command_may_join_by_a_frame(typed: Typed) -> None:
    sent = typed("ann", "send", "--join", "frame", "chat", "hello")
    assert sent.exit_code == 0, sent.output
    assert "hello" in typed("ann", "tail", "--no-follow").output
