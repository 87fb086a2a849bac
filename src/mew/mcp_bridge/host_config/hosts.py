"""PURE. The MCP hosts we know, and where each keeps the servers it starts."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

__all__ = ["HostConfigFile", "HostEnvironment", "InstallScope", "KnownHost", "config_file_of"]

_SERVERS: Final = "mcpServers"
_TYPED: Final = (("type", "stdio"),)


class KnownHost(StrEnum):
    """An MCP host by the name it is given on the command line."""

    CLAUDE_CODE = "claude-code"
    CLAUDE_DESKTOP = "claude-desktop"
    CURSOR = "cursor"
    VSCODE = "vscode"
    CODEX = "codex"
    GEMINI_CLI = "gemini-cli"
    ZED = "zed"
    WINDSURF = "windsurf"


class InstallScope(StrEnum):
    """For whom a server is: all who work in this folder, this user in this folder, or this user everywhere."""

    PROJECT = "project"
    LOCAL = "local"
    USER = "user"


@dataclass(frozen=True, kw_only=True)
class HostEnvironment:
    """Where files can be: the platform as Python names it, the user's home, the environment, and the folder here."""

    platform: str
    home: Path
    folder: Path
    environ: Mapping[str, str]

    def settings(self) -> Path:
        """The folder in which programs keep their settings, by the custom of the platform."""
        match self.platform:
            case "darwin":
                return self.home / "Library" / "Application Support"
            case "win32":
                return self.said("APPDATA", self.home / "AppData" / "Roaming")
            case _:
                return self.said("XDG_CONFIG_HOME", self.home / ".config")

    def said(self, variable: str, usual: Path) -> Path:
        return Path(said) if (said := self.environ.get(variable, "")) else usual


@dataclass(frozen=True)
class HostConfigFile:
    """Where a host has its servers: the file, there or not, and under what they stand in it.

    `fields`: what it wants beside the command, such as that a server speaks over stdio. `url`: what it calls the
    address of a server that runs elsewhere.
    """

    file: Path
    path: tuple[str, ...]
    fields: tuple[tuple[str, str], ...] = ()
    url: str = "url"


def config_file_of(host: KnownHost, scope: InstallScope, home: HostEnvironment) -> HostConfigFile | None:
    """None where the host has none of this scope."""
    match host:
        case KnownHost.CLAUDE_CODE:
            return _of_claude_code(scope, home)
        case KnownHost.CLAUDE_DESKTOP if scope is InstallScope.USER:
            return HostConfigFile(home.settings() / "Claude" / "claude_desktop_config.json", (_SERVERS,))
        case KnownHost.CURSOR if scope is not InstallScope.LOCAL:
            folder = home.home if scope is InstallScope.USER else home.folder
            return HostConfigFile(folder / ".cursor" / "mcp.json", (_SERVERS,))
        case KnownHost.VSCODE if scope is not InstallScope.LOCAL:
            folder = (
                home.settings() / "Code" / "User" if scope is InstallScope.USER else home.folder / ".vscode"
            )
            return HostConfigFile(folder / "mcp.json", ("servers",), _TYPED)
        case KnownHost.CODEX if scope is not InstallScope.LOCAL:
            user = home.said("CODEX_HOME", home.home / ".codex")
            folder = user if scope is InstallScope.USER else home.folder / ".codex"
            return HostConfigFile(folder / "config.toml", ("mcp_servers",))
        case KnownHost.GEMINI_CLI if scope is not InstallScope.LOCAL:
            folder = home.home if scope is InstallScope.USER else home.folder
            return HostConfigFile(folder / ".gemini" / "settings.json", (_SERVERS,), url="httpUrl")
        case KnownHost.ZED if scope is InstallScope.USER:
            return HostConfigFile(_of_zed(home), ("context_servers",), (("source", "custom"),))
        case KnownHost.WINDSURF if scope is InstallScope.USER:
            file = home.home / ".codeium" / "windsurf" / "mcp_config.json"
            return HostConfigFile(file, (_SERVERS,), url="serverUrl")
        case _:
            return None


def _of_zed(home: HostEnvironment) -> Path:
    folder = home.home / ".config" / "zed" if home.platform == "darwin" else home.settings() / "zed"
    return (folder.with_name("Zed") if home.platform == "win32" else folder) / "settings.json"


def _of_claude_code(scope: InstallScope, home: HostEnvironment) -> HostConfigFile:
    if scope is InstallScope.PROJECT:
        return HostConfigFile(home.folder / ".mcp.json", (_SERVERS,), _TYPED)
    file = home.said("CLAUDE_CONFIG_DIR", home.home) / ".claude.json"
    within = ("projects", str(home.folder)) if scope is InstallScope.LOCAL else ()
    return HostConfigFile(file, (*within, _SERVERS), _TYPED)
