"""What a space.yaml says is to be started."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mew.gateway.config.loader import ConfigError, load_config
from mew.supervise.launch import LaunchPlan, plan
from mew.supervise.participant import LaunchContext, Token
from mew.supervise.program import GATEWAY, MARK, Program, Restart

Read = Callable[..., LaunchPlan]
MEW = ("python", "-m", "mew")


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """The plan of a file with these participants."""

    def plan_of(participants: str, *, spaces: str = "space: {id: demo}", **environ: str) -> LaunchPlan:
        file = tmp_path / "space.yaml"
        file.write_text(f"{spaces}\nparticipants:\n{participants}")
        config = load_config(file, {})
        given = LaunchContext(
            python="python", url="http://127.0.0.1:7000", port=7000, logs=tmp_path / "logs", environ=environ
        )
        tokens = {
            (space.id, str(who)): Token(f"t-{who}", tmp_path / f"{who}.token")
            for space in config.spaces.values()
            for who in space.participants
        }
        return plan(config, given, tokens)

    return plan_of


def only(found: LaunchPlan) -> Program:
    gateway, program = found.programs
    assert gateway.name == GATEWAY
    return program


def test_the_gateway_comes_first_and_is_always_started_again(read: Read, tmp_path: Path) -> None:
    gateway, *others = read("  ann: {capabilities: ['*']}").programs
    assert others == []
    assert gateway.argv == (*MEW, "gateway", "--config", str(tmp_path / "space.yaml"), "--port", "7000")
    assert gateway.restart is Restart.ALWAYS


def test_a_command_is_run_with_its_variables_filled_in(read: Read, tmp_path: Path) -> None:
    program = only(
        read(
            "  bot:\n"
            "    command: node\n"
            "    args: [bot.js, --port, '${PORT}', '${SPACE}/${TOKEN}', 7, true]\n"
            "    env: {KEY: '${SECRET}', EMPTY: , COUNT: 3}\n"
            "    cwd: sub\n",
            SECRET="hidden",
        )
    )
    assert program.argv == ("node", "bot.js", "--port", "7000", "demo/t-bot", "7", "true")
    assert program.env == {
        "KEY": "hidden",
        "EMPTY": "",
        "COUNT": "3",
        "MEW_GATEWAY": "http://127.0.0.1:7000",
        "MEW_SPACE": "demo",
        "MEW_AS": "bot",
        "MEW_TOKEN_FILE": str(tmp_path / "bot.token"),
    }
    assert program.folder == tmp_path / "sub"
    assert "t-bot" not in repr(program) + program.what
    assert "hidden" not in repr(program) + program.what


def test_the_variables_that_are_always_there_say_where_things_are(read: Read, tmp_path: Path) -> None:
    words = "['${PYTHON}', '${URL}', '${TOKEN_FILE}']"
    program = only(read(f"  bot: {{command: bot, args: {words}}}", PYTHON="not this", URL="nor this"))
    assert program.argv[1:] == ("python", "http://127.0.0.1:7000", str(tmp_path / "bot.token"))


def test_a_server_is_bridged_and_its_variables_are_passed_by_name(read: Read) -> None:
    program = only(
        read(
            "  files:\n"
            "    env: {OUTER: a}\n"
            "    mcp_server: {command: npx, args: [-y, server, /data], env: {API_KEY: '${SECRET}'}, ask: [ann]}\n",
            SECRET="hidden",
        )
    )
    options = ("--env", "OUTER", "--env", "API_KEY", "--env", MARK, "--ask", "ann")
    assert program.argv == (*MEW, "bridge", *options, "--", "npx", "-y", "server", "/data")
    assert (program.env["API_KEY"], program.env["OUTER"]) == ("hidden", "a")
    assert "hidden" not in " ".join(program.argv)


def test_a_server_is_unconfined_only_where_the_file_says_so(read: Read) -> None:
    for written, expected in (("true", ("--unconfined",)), ("false", ())):
        program = only(read(f"  files: {{mcp_server: {{command: npx, unconfined: {written}}}}}"))
        assert program.argv == (*MEW, "bridge", "--env", MARK, *expected, "--", "npx")


@pytest.mark.parametrize(
    "written",
    [
        "{mcp_server: https://example.org/mcp}",
        "{mcp_server: {url: https://example.org/mcp}}",
    ],
)
def test_a_server_elsewhere_is_bridged_by_its_url(read: Read, written: str) -> None:
    assert only(read(f"  far: {written}")).argv == (*MEW, "bridge", "https://example.org/mcp")


def test_the_headers_of_a_server_keep_their_variables_for_the_bridge(read: Read) -> None:
    headers = "{Authorization: 'Bearer ${KEY}'}"
    written = f"  far: {{mcp_server: {{url: 'https://example.org/mcp', headers: {headers}}}}}"
    program = only(read(written, KEY="hidden"))
    assert program.env["KEY"] == "hidden"
    assert program.argv[4:6] == ("--header", "Authorization: Bearer ${KEY}")


def test_a_command_whose_type_is_a_server_is_bridged_too(read: Read) -> None:
    program = only(read("  files: {type: mcp_server, command: node, args: [server.js], auto_start: true}"))
    assert program.argv == (*MEW, "bridge", "--env", MARK, "--", "node", "server.js")


def test_who_is_not_to_start_by_itself_does_not(read: Read) -> None:
    assert len(read("  bot: {command: bot, auto_start: false}").programs) == 1


def test_each_is_started_after_what_it_depends_on(read: Read) -> None:
    found = read(
        "  c: {command: c, depends_on: [b, a]}\n  b: {command: b, depends_on: a}\n  a: {command: a}\n"
    )
    assert [program.name for program in found.programs] == [GATEWAY, "a", "b", "c"]
    assert found.programs[-1].after == (GATEWAY, "b", "a")


def test_where_there_are_several_spaces_names_say_which(read: Read) -> None:
    found = read(
        "  bot: {command: bot, depends_on: [files]}\n  files: {command: files}\n",
        spaces="spaces: [{id: one}, {id: two}]",
    )
    assert [program.name for program in found.programs[1:]] == [
        *("one.files", "two.files"),
        *("one.bot", "two.bot"),
    ]
    assert found.programs[-1].after == (GATEWAY, "two.files")


@pytest.mark.parametrize(
    ("policy", "restart"), [("always", Restart.ALWAYS), ("no", Restart.NEVER), ("on-failure", "on-failure")]
)
def test_a_policy_says_when_it_is_started_again(read: Read, policy: str, restart: Any) -> None:
    assert only(read(f"  bot: {{command: bot, restart_policy: '{policy}'}}")).restart == restart


@pytest.mark.parametrize(
    ("participants", "line", "why"),
    [
        ("  bot: {command: bot, depends_on: [cat]}", 3, "cat: not started by this file"),
        (
            "  a: {command: a, depends_on: [b]}\n  b: {command: b, depends_on: [a]}",
            3,
            "none can be the first",
        ),
        ("  bot: {command: bot, restart_policy: sometimes}", 3, "expected one of always, on-failure, never"),
        ("  bot: {mcp_server: {command: x, args: ['${TOKEN}']}}", 3, "is given no token of the space"),
        ("  bot: {type: mcp-bridge}", 3, "expected 'mcp_server: {command: …, args: […]}'"),
        ("  bot: {mcp_server: {args: [x]}}", 3, "expected a 'command' with 'args', or a 'url'"),
        ("  bot: {mcp_server: {url: 'http://x', cwd: y}}", 3, "of no use to a server at a 'url'"),
        ("  bot: {mcp_server: {command: x, headers: {A: b}}}", 3, "headers: needs a 'url'"),
        ("  bot:\n    command: mew\n    args: [bridge, start]", 5, "without '--mcp-command'"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(read: Read, participants: str, line: int, why: str) -> None:
    with pytest.raises(ConfigError) as error:
        read(participants)
    assert f"space.yaml:{line}: participants." in str(error.value)
    assert why in str(error.value)


@pytest.mark.parametrize(
    ("participant", "line", "why"),
    [
        (
            "  bot:\n    command: bot\n    env: {KEY: '${GONE}'}",
            5,
            "'${GONE}' is not set in the environment, nor in .mew/env; bot is not started",
        ),
        (
            "  bot:\n    command: mew\n    args: [agent, run]",
            5,
            "'mew agent run' is an agent of the TypeScript implementation",
        ),
    ],
)
def test_what_cannot_be_started_here_is_named_with_its_line_and_the_others_are(
    read: Read, participant: str, line: int, why: str
) -> None:
    found = read(f"{participant}\n  late: {{command: late, depends_on: [bot]}}\n  cat: {{command: cat}}")
    assert [one.name for one in found.programs] == ["gateway", "cat"]
    bot, late = found.notes
    assert f"space.yaml:{line}: participants.bot." in bot
    assert why in bot
    assert late.endswith("bot: not started by this file; late is not started")


def test_a_client_with_an_output_log_writes_down_what_it_receives(read: Read, tmp_path: Path) -> None:
    found = read("  client: {auto_connect: true, output_log: ./logs/x.log}\n  late: {output_log: ./y.log}")
    _, client, late = found.programs
    assert client.argv[3:] == late.argv[3:] == ("tail", "--json", "--number", "0", "--kind", "*")
    assert client.log == tmp_path / "logs" / "x.log"
    assert not client.after_first_envelope
    assert late.after_first_envelope
    assert not found.notes
