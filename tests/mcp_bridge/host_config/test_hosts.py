"""Where each host keeps its servers."""

from pathlib import Path

import pytest

from mew.mcp_bridge.host_config.hosts import (
    HostConfigFile,
    HostEnvironment,
    InstallScope,
    KnownHost,
    config_file_of,
)

HOME, FOLDER = Path("/h"), Path("/p")


def home(platform: str, **environ: str) -> HostEnvironment:
    return HostEnvironment(platform=platform, home=HOME, folder=FOLDER, environ=environ)


def found(host: KnownHost, scope: InstallScope, home: HostEnvironment) -> HostConfigFile:
    place = config_file_of(host, scope, home)
    assert place is not None
    return place


@pytest.mark.parametrize(
    ("host", "scope", "platform", "file"),
    [
        (KnownHost.CLAUDE_CODE, InstallScope.PROJECT, "linux", "/p/.mcp.json"),
        (KnownHost.CLAUDE_CODE, InstallScope.USER, "linux", "/h/.claude.json"),
        (KnownHost.CURSOR, InstallScope.PROJECT, "darwin", "/p/.cursor/mcp.json"),
        (KnownHost.CURSOR, InstallScope.USER, "win32", "/h/.cursor/mcp.json"),
        (KnownHost.VSCODE, InstallScope.PROJECT, "linux", "/p/.vscode/mcp.json"),
        (KnownHost.VSCODE, InstallScope.USER, "linux", "/h/.config/Code/User/mcp.json"),
        (KnownHost.VSCODE, InstallScope.USER, "darwin", "/h/Library/Application Support/Code/User/mcp.json"),
        (KnownHost.VSCODE, InstallScope.USER, "win32", "/h/AppData/Roaming/Code/User/mcp.json"),
        (
            KnownHost.CLAUDE_DESKTOP,
            InstallScope.USER,
            "linux",
            "/h/.config/Claude/claude_desktop_config.json",
        ),
        (KnownHost.CLAUDE_CODE, InstallScope.LOCAL, "linux", "/h/.claude.json"),
        (KnownHost.CODEX, InstallScope.USER, "linux", "/h/.codex/config.toml"),
        (KnownHost.CODEX, InstallScope.PROJECT, "linux", "/p/.codex/config.toml"),
        (KnownHost.GEMINI_CLI, InstallScope.USER, "linux", "/h/.gemini/settings.json"),
        (KnownHost.GEMINI_CLI, InstallScope.PROJECT, "linux", "/p/.gemini/settings.json"),
        (KnownHost.ZED, InstallScope.USER, "linux", "/h/.config/zed/settings.json"),
        (KnownHost.ZED, InstallScope.USER, "darwin", "/h/.config/zed/settings.json"),
        (KnownHost.ZED, InstallScope.USER, "win32", "/h/AppData/Roaming/Zed/settings.json"),
        (KnownHost.WINDSURF, InstallScope.USER, "linux", "/h/.codeium/windsurf/mcp_config.json"),
        (
            KnownHost.CLAUDE_DESKTOP,
            InstallScope.USER,
            "darwin",
            "/h/Library/Application Support/Claude/claude_desktop_config.json",
        ),
    ],
)
def test_each_host_has_its_files(host: KnownHost, scope: InstallScope, platform: str, file: str) -> None:
    assert found(host, scope, home(platform)).file == Path(file)


def test_the_environment_may_say_where_settings_are() -> None:
    for host, platform, variable, file in (
        (KnownHost.VSCODE, "linux", "XDG_CONFIG_HOME", "/x/Code/User/mcp.json"),
        (KnownHost.VSCODE, "win32", "APPDATA", "/x/Code/User/mcp.json"),
        (KnownHost.CLAUDE_CODE, "linux", "CLAUDE_CONFIG_DIR", "/x/.claude.json"),
    ):
        assert found(host, InstallScope.USER, home(platform, **{variable: "/x"})).file == Path(file)


def test_servers_stand_under_names_of_the_host() -> None:
    linux = home("linux")
    assert found(KnownHost.VSCODE, InstallScope.USER, linux).path == ("servers",)
    assert found(KnownHost.CURSOR, InstallScope.USER, linux).path == ("mcpServers",)
    assert found(KnownHost.CLAUDE_CODE, InstallScope.LOCAL, linux).path == ("projects", "/p", "mcpServers")


@pytest.mark.parametrize(
    ("host", "scope"),
    [
        (KnownHost.CLAUDE_DESKTOP, InstallScope.PROJECT),
        (KnownHost.CLAUDE_DESKTOP, InstallScope.LOCAL),
        (KnownHost.CURSOR, InstallScope.LOCAL),
        (KnownHost.ZED, InstallScope.PROJECT),
        (KnownHost.WINDSURF, InstallScope.PROJECT),
        (KnownHost.VSCODE, InstallScope.LOCAL),
    ],
)
def test_what_a_host_does_not_have_is_none(host: KnownHost, scope: InstallScope) -> None:
    assert config_file_of(host, scope, home("linux")) is None
