"""Files written for the TypeScript implementation start unchanged, or are told with the line and the reason."""

from collections.abc import Callable
from pathlib import Path

import pytest

from mew.gateway.config import ConfigError, load_config
from mew.supervise.launch import Plan
from mew.supervise.preparing import prepare
from mew.supervise.program import MARK

FILES = Path(__file__).parent / "typescript"
Read = Callable[[str], Plan]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """The plan of one of the files, copied to where tokens may be made."""

    def plan_of(name: str) -> Plan:
        file = tmp_path / "space.yaml"
        file.write_text((FILES / name).read_text())
        return prepare(load_config(file, {}), {}, port=0).plan

    return plan_of


def test_a_bridged_server_is_bridged_and_what_has_no_effect_is_told_with_its_line(read: Read) -> None:
    found = read("bridge.yaml")
    _, bridge = found.programs
    assert bridge.argv[3:] == (
        *("bridge", "--env", "LOG_LEVEL", "--env", MARK, "--restart", "never"),
        *("--", "node", "./.mew/agents/filesystem-mcp.js", "./test-files"),
    )
    assert bridge.env["MEW_TOKEN"] == "fs-token"
    assert [note.rpartition("space.yaml:")[2].partition(": no ")[0] for note in found.notes] == [
        "24: participants.filesystem.bridge_config.init_timeout",
        "26: participants.filesystem.bridge_config.max_reconnects",
        "36: participants.test-client.fifo",
        "38: participants.test-client.auto_connect",
        "37: participants.test-client.output_log",
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
    (note,) = found.notes
    assert note.endswith(
        ": participants.worker.output_log: no effect: what it writes is in .mew/logs, and 'mew logs' shows it"
    )


def test_its_own_programs_are_named_with_their_line_and_what_to_write_in_their_place(read: Read) -> None:
    with pytest.raises(ConfigError) as error:
        read("coder.yaml")
    assert str(error.value).partition("space.yaml")[2] == (
        ":11: participants.mcp-fs-bridge.args: 'mew bridge start' is its bridge;"
        " say 'mcp_server: {command: …, args: […]}' in its place"
    )
