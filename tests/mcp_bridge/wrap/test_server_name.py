"""What a server is called, told from its command."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mew.mcp_bridge.wrap.server_name import command_digest, name_of, participant_name
from mew.protocol.envelope import is_participant_id


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("npx -y @modelcontextprotocol/server-filesystem /data", "filesystem"),
        ("npx -y @modelcontextprotocol/server-filesystem@2026.1.14 /data", "filesystem"),
        ("npx @playwright/mcp@latest --headless", "playwright"),
        ("npx -y @notionhq/mcp-server", "notionhq"),
        ("mcp-server-time", "time"),
        ("mcp-server-time --local-timezone Europe/Berlin", "time"),
        ("/opt/venv/bin/mcp-server-git", "git"),
        ("uvx mcp-server-git --repository /x", "git"),
        ("uvx --from git+https://example.org/y mcp-server-fetch", "fetch"),
        ("uvx mcp-server-sqlite==1.2 --db x", "sqlite"),
        ("python -m mcp_server_time", "time"),
        ("/usr/bin/python3.12 -m mcp_server_time", "time"),
        ("python3 weather.py", "weather"),
        ("python3 server.py", "server"),
        ("node /opt/weather/build/index.js", "weather"),
        ("docker run -i --rm -e TOKEN ghcr.io/github/github-mcp-server:1.0", "github"),
        ("docker run -i --rm --mount type=bind,src=/x,dst=/y mcp/fetch", "fetch"),
        ("/usr/bin/env KEY=1 npx -y tavily-mcp@0.1.4", "tavily"),
        ("cmd /c npx -y tavily-mcp", "tavily"),
        (r"C:\servers\server-memory.exe", "memory"),
        ("uv --directory /x run weather.py", "weather"),
        ("uv run --with mcp mcp run clock.py", "clock"),
        ("npx", "server"),
        ("@@@", "server"),
        ("user", "user-server"),
        ("host", "host-server"),
        ("gateway", "server"),
        ("https://example.org/mcp", "example"),
        ("https://mcp.linear.app:8443/mcp", "linear"),
        ("http://localhost:8000/mcp", "localhost"),
        ("http://127.0.0.1:8000/mcp", "server"),
    ],
)
def test_a_server_is_called_what_its_command_calls_it(command: str, name: str) -> None:
    assert name_of(command.split()) == name


@given(st.lists(st.text(max_size=20), max_size=4))
def test_any_command_gives_a_name_that_a_participant_may_have(command: list[str]) -> None:
    assert is_participant_id(name_of(command))


@given(st.text())
def test_any_text_gives_a_name_that_stays_as_it_is(text: str) -> None:
    name = participant_name(text)
    assert is_participant_id(name)
    assert participant_name(name) == name


def test_a_digest_tells_commands_apart() -> None:
    assert command_digest(["a", "b"]) == command_digest(("a", "b"))
    assert len({command_digest(c) for c in (["a", "b"], ["a b"], ["a"], ["a", "b", ""])}) == 4
