"""PURE. A space.yaml from the MCP servers that a host has in its configuration."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from mew.mcp_bridge.host_config.jsonc import InvalidJson, read

from .templates import space_id

__all__ = ["Imported", "NoServers", "imported"]

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_OF_THE_HOST = re.compile(r"\$\{(workspaceFolder|userHome|input:|env:|pathSeparator|/)")
_SECRETIVE = re.compile(r"(?i)(key|token|secret|password|passwd)[^/]*=?|^sk-|^ghp_")
_KEYS: Final = ("mcpServers", "servers", "mcp_servers")
_CAPABILITIES: Final = (
    "participant/status",
    "mcp/request:notifications/**",
    "mcp/request:elicitation/create",
)

_HEAD: Final = """\
# The MCP servers of {source}, in a space: you may call them, and the agent proposes what it may not do.
#
#   mew up          starts everything; Ctrl-C stops it
#   mew proposals   what waits for you; then mew approve ID, or mew reject ID -m "why not"
#   mew mcp --as agent …   is how an MCP host works here: mew mcp install --help
#
# Every key is in docs/reference/configuration.md, capabilities in docs/reference/capabilities.md.

space:
  id: {space}
  default_participant: you

participants:
  you: # may do everything
    capabilities: ["*"]

  agent: # may look, talk and propose; let it call what is harmless by lines like the last
    capabilities:
      - chat
      - chat/*
      - mcp/proposal
      - mcp/withdraw
      - mcp/request:*/list
      - mcp/request:tools/call:read_*
"""


class NoServers(ValueError):
    """The file names no MCP servers; the message says what was expected."""


@dataclass(frozen=True, slots=True)
class Imported:
    """The text of a space.yaml. `secrets` are the values that stand in `.mew/env` in its place; `notes` for people."""

    text: str
    secrets: Mapping[str, str]
    servers: tuple[str, ...]
    notes: tuple[str, ...] = ()


def imported(written: str, *, source: str, space: str, port: int) -> Imported:
    """The servers of a host's configuration, as Claude Desktop, Claude Code, Cursor and VS Code write it.

    Values of variables and headers are taken out of it: they may be secrets.

    Raises:
        NoServers: it is no JSON, or has no servers.
    """
    servers = _servers(written)
    made = _Making()
    parts = [_HEAD.format(source=source, space=space)]
    names: list[str] = []
    for given, server in servers.items():
        name = made.name(given)
        part = made.part(name, given, server)
        if part is not None:
            names.append(name)
            parts.append(part)
    if not names:
        raise NoServers("none of its servers has a 'command' or a 'url'")
    parts.append(f"server:\n  port: {port}\n")
    return Imported("\n".join(parts), made.secrets, tuple(names), tuple(made.notes))


def _servers(written: str) -> dict[str, Any]:
    try:
        root = read(written).plain
    except InvalidJson as error:
        raise NoServers(f"it is no JSON: {error}") from None
    if isinstance(root, dict) and isinstance(root.get("mcp"), dict):
        root = root["mcp"]  # settings.json of VS Code
    found = next((root[key] for key in _KEYS if key in root), None) if isinstance(root, dict) else None
    if not isinstance(found, dict) or not found:
        raise NoServers("expected 'mcpServers' or 'servers' with servers in it")
    return found


class _Making:
    """Collects what the entries have in common: names that are taken, and secrets."""

    def __init__(self) -> None:
        self.secrets: dict[str, str] = {}
        self.notes: list[str] = []
        self._names = {"you", "agent", "system", "gateway"}

    def name(self, given: str) -> str:
        """An id that nobody has yet."""
        wanted = name = space_id(given, otherwise="server").lstrip("_")
        number = 2
        while name in self._names:
            name, number = f"{wanted}-{number}", number + 1
        self._names.add(name)
        if name != given:
            self.notes.append(f"{given!r} is called {name} here")
        return name

    def part(self, name: str, given: str, server: Any) -> str | None:
        """The entry of one server; None where it cannot be one."""
        fields = server if isinstance(server, dict) else {}
        lines = [f"  {name}:", "    mcp_server:"]
        match fields:
            case {"command": str(command)}:
                lines.append(f"      command: {_scalar(command)}")
                if arguments := fields.get("args"):
                    lines.append(f"      args: [{', '.join(_scalar(str(word)) for word in arguments)}]")
                if folder := fields.get("cwd"):
                    lines.append(f"      cwd: {_scalar(str(folder))}")
            case {"url": str(url)} | {"serverUrl": str(url)}:
                lines.append(f"      url: {_scalar(url)}")
            case _:
                self.notes.append(f"{given!r} has neither a 'command' nor a 'url', and is left out")
                return None
        for key in ("env", "headers"):
            values = fields.get(key)
            if isinstance(values, dict) and values:
                lines.append(f"      {key}:")
                lines += [f"        {_scalar(one)}: {self._hidden(name, one, values[one])}" for one in values]
        self._doubt(name, fields)
        if fields.get("disabled") is True:
            lines.append("    auto_start: false")
        lines.append(f"    capabilities: [{', '.join(map(_scalar, _CAPABILITIES))}]\n")
        return "\n".join(lines)

    def _doubt(self, name: str, fields: Mapping[str, Any]) -> None:
        """What stands in the file as it was, and may not be as one wants it."""
        words = [str(word) for word in (*(fields.get("args") or ()), fields.get("url") or "")]
        if any(_OF_THE_HOST.search(word) for word in words):
            self.notes.append(
                f"{name} has variables of its host, like ${{workspaceFolder}}: write what they stand for"
            )
        if any(_SECRETIVE.search(word) for word in words):
            self.notes.append(
                f"{name} seems to have a secret in its arguments or URL: put ${{NAME}} there, and its value in .mew/env"
            )
        if fields.get("type") == "sse":
            self.notes.append(f"{name} speaks the old HTTP with SSE, which the bridge does not")

    def _hidden(self, name: str, variable: str, value: Any) -> str:
        """A reference to the value, which is kept elsewhere; one that is a reference already stays."""
        text = value if isinstance(value, str) else json.dumps(value)
        if "\n" in text or "\r" in text:
            self.notes.append(f"{variable} of {name} has several lines: set it in the environment")
            return _scalar(f"${{{variable}}}")
        if _VARIABLE.fullmatch(text):
            return _scalar(text)
        wanted = re.sub(r"[^A-Za-z0-9_]", "_", variable).upper()
        if wanted[:1].isdecimal() or self.secrets.get(wanted, text) != text:
            wanted = re.sub(r"[^A-Za-z0-9_]", "_", f"{name}_{variable}").upper()
        self.secrets[wanted] = text
        return _scalar(f"${{{wanted}}}")


def _scalar(text: str) -> str:
    """A text as YAML takes it; what JSON writes is YAML, too."""
    plain = re.fullmatch(r"[A-Za-z./_][A-Za-z0-9./_*-]*(:[A-Za-z0-9./_*-]+)*", text)
    if plain and text.lower() not in ("true", "false", "null", "yes", "no", "on", "off", "~", "y", "n"):
        return text
    return json.dumps(text, ensure_ascii=False)
