"""Where each host keeps its servers."""

from pathlib import Path

import pytest

from mew.mcp_bridge.host_config.hosts import Home, Host, Place, Scope, place_of

HOME, FOLDER = Path("/h"), Path("/p")


def home(platform: str, **environ: str) -> Home:
    return Home(platform=platform, home=HOME, folder=FOLDER, environ=environ)


def found(host: Host, scope: Scope, home: Home) -> Place:
    place = place_of(host, scope, home)
    assert place is not None
    return place


@pytest.mark.parametrize(
    ("host", "scope", "platform", "file"),
    [
        (Host.CLAUDE_CODE, Scope.PROJECT, "linux", "/p/.mcp.json"),
        (Host.CLAUDE_CODE, Scope.USER, "linux", "/h/.claude.json"),
        (Host.CURSOR, Scope.PROJECT, "darwin", "/p/.cursor/mcp.json"),
        (Host.CURSOR, Scope.USER, "win32", "/h/.cursor/mcp.json"),
        (Host.VSCODE, Scope.PROJECT, "linux", "/p/.vscode/mcp.json"),
        (Host.VSCODE, Scope.USER, "linux", "/h/.config/Code/User/mcp.json"),
        (Host.VSCODE, Scope.USER, "darwin", "/h/Library/Application Support/Code/User/mcp.json"),
        (Host.VSCODE, Scope.USER, "win32", "/h/AppData/Roaming/Code/User/mcp.json"),
        (Host.CLAUDE_DESKTOP, Scope.USER, "linux", "/h/.config/Claude/claude_desktop_config.json"),
        (Host.CLAUDE_CODE, Scope.LOCAL, "linux", "/h/.claude.json"),
        (
            Host.CLAUDE_DESKTOP,
            Scope.USER,
            "darwin",
            "/h/Library/Application Support/Claude/claude_desktop_config.json",
        ),
    ],
)
def test_each_host_has_its_files(host: Host, scope: Scope, platform: str, file: str) -> None:
    assert found(host, scope, home(platform)).file == Path(file)


def test_the_environment_may_say_where_settings_are() -> None:
    for host, platform, variable, file in (
        (Host.VSCODE, "linux", "XDG_CONFIG_HOME", "/x/Code/User/mcp.json"),
        (Host.VSCODE, "win32", "APPDATA", "/x/Code/User/mcp.json"),
        (Host.CLAUDE_CODE, "linux", "CLAUDE_CONFIG_DIR", "/x/.claude.json"),
    ):
        assert found(host, Scope.USER, home(platform, **{variable: "/x"})).file == Path(file)


def test_servers_stand_under_names_of_the_host() -> None:
    linux = home("linux")
    assert found(Host.VSCODE, Scope.USER, linux).path == ("servers",)
    assert found(Host.CURSOR, Scope.USER, linux).path == ("mcpServers",)
    assert found(Host.CLAUDE_CODE, Scope.LOCAL, linux).path == ("projects", "/p", "mcpServers")


@pytest.mark.parametrize(
    ("host", "scope"),
    [
        (Host.CLAUDE_DESKTOP, Scope.PROJECT),
        (Host.CLAUDE_DESKTOP, Scope.LOCAL),
        (Host.CURSOR, Scope.LOCAL),
        (Host.VSCODE, Scope.LOCAL),
    ],
)
def test_what_a_host_does_not_have_is_none(host: Host, scope: Scope) -> None:
    assert place_of(host, scope, home("linux")) is None
