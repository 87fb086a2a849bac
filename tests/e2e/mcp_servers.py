"""The real servers that tests run, each with something of its own to work on."""

import base64
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mcp.client.stdio import StdioServerParameters

from .mcp_host import LEGACY, MODERN, Generation

__all__ = ["PAGES", "REAL", "SERVERS", "Real"]

SERVERS = Path(__file__).parents[1] / "servers"
PAGES: Mapping[str, tuple[str, str]] = {
    "/page.html": ("text/html", "<html><body><h1>Hello</h1><p>A <b>page</b> to fetch.</p></body></html>"),
}
_BIN = Path(sys.executable).parent
_PACKAGES = SERVERS / "node_modules" / "@modelcontextprotocol"
_PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)


@dataclass(frozen=True)
class Real:
    """A server that others wrote: how it is started for a folder, and what the folder has at first."""

    command: Callable[[Path], list[str]]
    modern: bool = False
    """Whether the bridge is told to prefer the second generation."""
    environment: Callable[[Path], dict[str, str]] = field(default=lambda _: {})
    fill: Callable[[Path], None] = field(default=lambda _: None)

    @property
    def generation(self) -> Generation:
        """What it speaks with the bridge."""
        return MODERN if self.modern else LEGACY

    def parameters(self, folder: Path) -> StdioServerParameters:
        """For a client that starts it itself."""
        program, *arguments = self.command(folder)
        return StdioServerParameters(
            command=program, args=arguments, env=self.environment(folder), cwd=folder
        )


def _npm(package: str, *arguments: str) -> list[str]:
    program = _PACKAGES / package / "dist" / "index.js"
    assert program.is_file(), "the MCP servers are not installed: scripts/setup-tests .venv"
    return [str(_BIN / "node"), str(program), *arguments]


def _fill_files(folder: Path) -> None:
    (folder / "pixel.png").write_bytes(_PIXEL)


def _fill_repository(folder: Path) -> None:
    def git(*command: str) -> None:
        author = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        for role in ("AUTHOR", "COMMITTER"):
            author |= {f"GIT_{role}_NAME": "Ann", f"GIT_{role}_EMAIL": "ann@example.org"}
        subprocess.run(["git", *command], cwd=folder, check=True, timeout=10, env=os.environ | author)

    git("init", "-q", "-b", "main")
    git("config", "user.name", "Ann")
    git("config", "user.email", "ann@example.org")
    (folder / "note.txt").write_text("hello\n")
    git("add", "note.txt")
    git("commit", "-q", "-m", "Say hello")
    (folder / "note.txt").write_text("goodbye\n")


REAL: Mapping[str, Real] = {
    "filesystem": Real(lambda folder: _npm("server-filesystem", str(folder)), fill=_fill_files),
    "memory": Real(
        lambda _: _npm("server-memory"),
        environment=lambda folder: {"MEMORY_FILE_PATH": str(folder / "graph.jsonl")},
    ),
    "everything": Real(lambda _: _npm("server-everything")),
    "time": Real(lambda _: [str(_BIN / "mcp-server-time"), "--local-timezone", "UTC"]),
    "git": Real(lambda _: [str(_BIN / "mcp-server-git")], fill=_fill_repository),
    "fetch": Real(lambda _: [str(_BIN / "mcp-server-fetch"), "--allow-private-ips"], modern=True),
    "conforming": Real(lambda _: [sys.executable, str(SERVERS / "conforming")], modern=True),
    "conforming-legacy": Real(lambda _: [sys.executable, str(SERVERS / "conforming"), "--legacy"]),
}
