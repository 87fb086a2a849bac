"""A server of ours in the configuration of a host, as text in and text out."""

import json
from pathlib import Path

import pytest

from mew.mcp_bridge.host_config.hosts import HostConfigFile
from mew.mcp_bridge.host_config.servers import HostConfigError, installed, ours, uninstalled, wrapped

FILE = Path("mcp.json")
PLACE = HostConfigFile(FILE, ("mcpServers",))
MEW = "/opt/bin/mew"
MCP = [MEW, "mcp", "--config", "/p/space.yaml", "--as", "bot"]
WRAP = [MEW, "wrap", "--allow", "read_*"]
FILES = """\
{
  "theme": "dark",
  "mcpServers": {
    "filesystem": {
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-filesystem", "/data"],
      "env": {
        "KEY": "secret"
      },
      "disabled": false
    },
    "clock": {
      "command": "mcp-server-time"
    },
    "remote": {
      "url": "https://mcp.example.org",
      "headers": {
        "X-Key": "${KEY}"
      }
    },
    "old": {
      "type": "sse",
      "url": "https://mcp.example.org/sse"
    }
  }
}
"""


@pytest.mark.parametrize(
    "place",
    [
        PLACE,
        HostConfigFile(FILE, ("servers",), (("type", "stdio"),)),
        HostConfigFile(FILE, ("projects", "/p", "mcpServers"), (("type", "stdio"),)),
    ],
)
def test_a_server_is_put_in_and_taken_out(place: HostConfigFile) -> None:
    text = installed("", place, "mew", MCP)
    servers = json.loads(text)
    for key in place.path:
        servers = servers[key]
    assert servers["mew"]["command"] == MEW
    assert servers["mew"]["args"] == MCP[1:]
    assert servers["mew"].get("type") == ("stdio" if place.fields else None)
    assert ours(text, place) == ["mew"]
    assert ours(uninstalled(text, place, "mew"), place) == []


def test_a_server_comes_beside_those_that_are_there() -> None:
    text = installed(FILES, PLACE, "mew", MCP)
    assert list(json.loads(text)["mcpServers"]) == ["filesystem", "clock", "remote", "old", "mew"]
    assert uninstalled(text, PLACE, "mew") == FILES


def test_one_of_ours_is_replaced_and_no_other() -> None:
    text = installed(FILES, PLACE, "mew", MCP)
    again = installed(text, PLACE, "mew", [MEW, "mcp", "--as", "cat"])
    assert json.loads(again)["mcpServers"]["mew"]["args"] == ["mcp", "--as", "cat"]
    with pytest.raises(
        HostConfigError, match="'clock' already; choose another --name, or wrap it with --wrap-existing"
    ):
        installed(FILES, PLACE, "clock", MCP)


def test_a_server_is_wrapped_where_it_is_and_restored() -> None:
    text = wrapped(FILES, PLACE, "filesystem", WRAP)
    entry = json.loads(text)["mcpServers"]["filesystem"]
    before = json.loads(FILES)["mcpServers"]["filesystem"]
    assert entry["command"] == MEW
    assert entry["args"] == [*WRAP[1:], "--in-place", "--", before["command"], *before["args"]]
    assert (entry["env"], entry["disabled"]) == (before["env"], before["disabled"])
    assert uninstalled(text, PLACE, "filesystem") == FILES


def test_a_server_without_arguments_is_wrapped_under_the_name_that_the_host_has_for_it() -> None:
    text = wrapped(FILES, PLACE, "clock", WRAP)
    entry = json.loads(text)["mcpServers"]["clock"]
    assert entry["args"] == [*WRAP[1:], "--name", "clock", "--in-place", "--", "mcp-server-time"]
    assert uninstalled(text, PLACE, "clock") == FILES


def test_a_server_that_was_put_in_with_its_command_is_taken_out_whole() -> None:
    text = installed(FILES, PLACE, "git", [*WRAP, "--", "uvx", "mcp-server-git", "--", "--in-place"])
    assert uninstalled(text, PLACE, "git") == FILES


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("nothing", "there is no server 'nothing' to be wrapped; there is filesystem, clock, remote, old"),
        ("old", "'old' speaks HTTP.SSE"),
    ],
)
def test_what_cannot_be_wrapped_is_said(name: str, why: str) -> None:
    with pytest.raises(HostConfigError, match=why):
        wrapped(FILES, PLACE, name, WRAP)


def test_a_server_is_wrapped_once() -> None:
    with pytest.raises(HostConfigError, match="'clock' is ours already"):
        wrapped(wrapped(FILES, PLACE, "clock", WRAP), PLACE, "clock", WRAP)


def test_what_is_not_ours_is_not_taken_out() -> None:
    with pytest.raises(HostConfigError, match="'clock' is not ours"):
        uninstalled(FILES, PLACE, "clock")
    with pytest.raises(HostConfigError, match="there is no server 'mew'; ours are not there"):
        uninstalled(FILES, PLACE, "mew")


@pytest.mark.parametrize(
    ("command", "args", "is_ours"),
    [
        ("mew", ["mcp"], True),
        (r"C:\bin\mew.exe", ["wrap", "--", "x"], True),
        ("mew", [], False),
        ("mew", ["gateway"], False),
        ("mew", ["mcp", 7], False),
        ("mewl", ["mcp"], False),
        (7, ["mcp"], False),
    ],
)
def test_ours_is_what_starts_mew(command: object, args: list[object], *, is_ours: bool) -> None:
    text = json.dumps({"mcpServers": {"it": {"command": command, "args": args}, "odd": 7}})
    assert ours(text, PLACE) == (["it"] if is_ours else [])


def test_a_server_elsewhere_is_wrapped_with_its_headers_in_variables_and_restored() -> None:
    text = wrapped(FILES, PLACE, "remote", WRAP)
    assert json.loads(text)["mcpServers"]["remote"] == {
        "command": MEW,
        "args": [
            *("wrap", "--allow", "read_*", "--name", "remote", "--header", "X-Key: ${HEADER_X_KEY}"),
            *("--in-place", "--", "https://mcp.example.org"),
        ],
        "env": {"HEADER_X_KEY": "${KEY}"},
    }
    assert json.loads(uninstalled(text, PLACE, "remote")) == json.loads(FILES)
