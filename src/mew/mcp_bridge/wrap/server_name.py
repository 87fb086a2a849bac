"""PURE. What a server is called in its space, told from the command that starts it."""

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Final

from mew.protocol.envelope import is_participant_id, similar_id

__all__ = ["HOST", "VIEWER", "YOU", "command_digest", "name_of", "participant_name"]

HOST: Final = "host"
"""Who the MCP host is in the space of a wrapped server."""
YOU: Final = "user"
"""Who decides there."""
VIEWER: Final = "viewer"
"""Who looks on there, and may say no: the one participant whose token is in a file."""

_ANY: Final = "server"
_LENGTH_MAX: Final = 40
_TAKEN: Final = frozenset({HOST, YOU, VIEWER})
_LAUNCHERS: Final = frozenset(
    {"npx", "bunx", "uvx", "pnpx", "pipx", "uv", "npm", "pnpm", "yarn", "bun", "deno", "node", "tsx", "env"}
    | {"cmd", "docker", "podman", "python", "py", "mcp", "fastmcp"}
)
_VERBS: Final = frozenset({"run", "exec", "x", "dlx", "tool"})
_TAKES_A_VALUE: Final = frozenset(
    {"--from", "--with", "--python", "--package", "-p", "--directory", "--project", "--env", "-e", "-v"}
    | {"--volume", "--mount", "--network", "--name", "--user", "-u", "--env-file", "-w", "--workdir"}
)
_VERSION = re.compile(r"(?<=.)(?:@[^@/]*|[=<>~!]=.*|(?<=[^/]{2}):[^:/\\]*)$")
_VARIABLE = re.compile(r"[A-Za-z_]\w*=")
_AROUND = re.compile(r"^(?:mcp[-_]server[-_]|server[-_]|mcp[-_])|(?:[-_]mcp[-_]server|[-_]mcp|[-_]server)$")
_SAYS_NOTHING: Final = frozenset(
    {"index", "main", "server", "app", "cli", "start", "build", "dist", "src", "bin", "lib"}
    | {"mcp", "mcp-server", "server-mcp", "mcp_server"}
)
_SUFFIX = re.compile(r"\.(?:py|js|mjs|cjs|ts|exe|cmd|bat|sh|jar)$", re.IGNORECASE)
_FOREIGN = re.compile(r"[^A-Za-z0-9._-]+")


def name_of(command: Sequence[str]) -> str:
    """A short name, a participant's: `filesystem` for `npx -y @modelcontextprotocol/server-filesystem /data`."""
    if len(command) == 1 and command[0].startswith(("http://", "https://")):
        return _site(command[0])
    word = _VERSION.sub("", _package(command)).replace("\\", "/")
    parts = [_SUFFIX.sub("", part) for part in word.split("/") if part]
    telling = [part for part in parts if part.lower() not in _SAYS_NOTHING]
    return participant_name(_AROUND.sub("", telling[-1] if telling else _ANY))


def participant_name(text: str) -> str:
    """The same as far as a participant can be called that."""
    name = _FOREIGN.sub("-", text)[:_LENGTH_MAX].strip("-._").lower()
    if not is_participant_id(name):
        return _ANY
    is_taken = name in _TAKEN or similar_id(name, _TAKEN) is not None
    return f"{name}-{_ANY}" if is_taken else name


def command_digest(command: Sequence[str]) -> str:
    """What tells one command from another without repeating it: there may be secrets in it."""
    return hashlib.sha256(json.dumps(list(command)).encode()).hexdigest()


def _site(url: str) -> str:
    """What stands before the last dot of where it is."""
    host = url.split("/")[2].rpartition("@")[2].partition(":")[0]
    *_, name, last = ["", *host.split(".")] if "." not in host else host.split(".")
    return _ANY if last.isdecimal() else participant_name(name or last)


def _package(command: Sequence[str]) -> str:
    """The program itself, past what only launches it."""
    words = list(command)
    launched = False
    while words:
        word = words.pop(0)
        if launched and word in _TAKES_A_VALUE:
            words = words[1:]
        elif word.startswith("-") or (launched and _is_passed_over(word)):
            continue
        elif _program(word) in _LAUNCHERS:
            launched = True
        else:
            return word
    return _ANY


def _is_passed_over(word: str) -> bool:
    return word in _VERBS or word.lower() == "/c" or _VARIABLE.match(word) is not None


def _program(word: str) -> str:
    """Without its folder, its suffix and its version: `python` of `/usr/bin/python3.12`."""
    return _SUFFIX.sub("", word.replace("\\", "/").rpartition("/")[2]).lower().rstrip("0123456789.")
