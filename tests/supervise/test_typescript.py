"""Files written for the TypeScript implementation start unchanged; what cannot be started is named with its line."""

from collections.abc import Callable
from pathlib import Path

import pytest

from mew.gateway.config.loader import load_config
from mew.supervise.launch import LaunchPlan
from mew.supervise.prepare import prepare
from mew.supervise.program import MARK

FILES = Path(__file__).parent / "typescript"
Read = Callable[[str], LaunchPlan]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """The plan of one of the files, copied to where tokens may be made."""

    def plan_of(name: str) -> LaunchPlan:
        file = tmp_path / "space.yaml"
        file.write_text((FILES / name).read_text())
        return prepare(load_config(file, {}), {}, port=0).plan

    return plan_of


def test_a_bridged_server_is_bridged_and_what_has_no_effect_is_told_with_its_line(read: Read) -> None:
    found = read("bridge.yaml")
    _, bridge, client = found.programs
    assert bridge.argv[3:] == (
        *("bridge", "--env", "LOG_LEVEL", "--env", MARK, "--restart", "never"),
        *("--", "node", "./.mew/agents/filesystem-mcp.js", "./test-files"),
    )
    assert bridge.env["MEW_TOKEN"] == "fs-token"
    assert (client.argv[3], client.log.name) == ("tail", "test-client-output.log")
    assert [note.rpartition("space.yaml:")[2].partition(": no ")[0] for note in found.notes] == [
        "24: participants.filesystem.bridge_config.init_timeout",
        "26: participants.filesystem.bridge_config.max_reconnects",
        "36: participants.test-client.fifo",
    ]


def test_agents_are_started_with_their_arguments_and_with_what_the_file_says_of_their_environment(
    read: Read,
) -> None:
    found = read("agents.yaml")
    gateway, coordinator, worker = found.programs
    port = gateway.argv[-1]
    token = Path(coordinator.env["MEW_TOKEN_FILE"]).read_text().strip()
    assert coordinator.argv[2:] == (
        *("--gateway", f"ws://localhost:{port}", "--space", "many-agents", "--token", token),
    )
    assert worker.env["MEW_GATEWAY"] == f"ws://localhost:{port}"
    assert (worker.env["MEW_TOKEN"], worker.env["DELAY"]) == ("worker-token", "2000")
    assert worker.log.name == "worker.log"
    assert found.notes == ()


def test_its_bridge_is_ours_and_its_agent_is_named_with_its_line(read: Read) -> None:
    found = read("coder.yaml")
    _, files = found.programs
    assert files.argv[3:] == (
        *("bridge", "--env", MARK, "--"),
        *("npx", "-y", "@modelcontextprotocol/server-filesystem", "../my files"),
    )
    assert files.env["MEW_SPACE"] == "my coder"
    agent, to = found.notes
    assert agent.partition("space.yaml")[2] == (
        ":17: participants.mew.args: 'mew agent run' is an agent of the TypeScript implementation;"
        " name a program of yours; mew is not started"
    )
    assert ": participants.human.default_to: no effect" in to


def test_its_own_server_is_named_with_its_line_and_so_is_what_depends_on_it(read: Read) -> None:
    found = read("maze.yaml")
    assert [one.name for one in found.programs] == ["gateway"]
    maze, watcher = found.notes
    assert ":10: participants.cat-maze.args: 'mew mcp cat-maze' is a server that comes with" in maze
    assert watcher.endswith("cat-maze: not started by this file; watcher is not started")


def test_an_agent_without_its_key_is_named_with_the_line_that_asks_for_it(read: Read) -> None:
    found = read("notes.yaml")
    assert [one.name for one in found.programs] == ["gateway"]
    (note,) = found.notes
    assert ":14: participants.assistant.env.OPENAI_API_KEY: '${OPENAI_API_KEY}' is not set" in note
