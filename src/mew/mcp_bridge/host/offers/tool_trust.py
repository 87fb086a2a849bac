"""The tools that a host may call without approval, as they were when that was allowed.

A pattern like `read_*` is given by somebody who has seen certain tools. One that changes later, or appears later under
a name that fits, has to be approved once more before calls of it go through.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from mew.mcp_bridge.server.tool_fingerprints import digest_of, replace_file
from mew.protocol.capability import Capability
from mew.protocol.json import encode_json

__all__ = ["ToolTrust", "fingerprint"]

_log = logging.getLogger(__name__)

_FILE_BYTES_MAX: Final = 16 << 20
_SEEN: Final = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")


def fingerprint(tool: Mapping[str, Any]) -> str:
    """A digest of what a person or a model decides by: what the tool is called, says, takes and gives."""
    return digest_of({field: tool[field] for field in _SEEN if field in tool})


class _File(msgspec.Struct):
    """The fingerprints that were allowed, by pattern and tool."""

    allowed: dict[str, dict[str, str]] = msgspec.field(default_factory=dict)


class ToolTrust:
    """What is trusted of one server. The first listing after a pattern was given is what the pattern was given for."""

    def __init__(self, patterns: Sequence[str], path: Path | None) -> None:
        """With no path, what is trusted is forgotten with the process."""
        self._path = path
        self._allowed: dict[str, dict[str, str]] = {}
        self._saving = asyncio.Lock()
        self.use(patterns)

    def use(self, patterns: Sequence[str]) -> None:
        """Trust by these patterns from now on; those that are new are for the tools of the next listing."""
        self._fitting = {
            pattern: Capability.parse({"kind": "*", "payload": {"name": pattern}}) for pattern in patterns
        }
        self._allowed = {name: tools for name, tools in self._allowed.items() if name in self._fitting}

    def load(self) -> None:
        """Read the file. One that is damaged trusts nothing: every tool is asked about once more.

        Raises:
            OSError: it cannot be read.
        """
        if self._path is None:
            return
        try:
            with self._path.open("rb") as file:
                kept = msgspec.json.decode(file.read(_FILE_BYTES_MAX), type=_File).allowed
        except FileNotFoundError:
            return
        except (msgspec.DecodeError, UnicodeDecodeError):
            _log.warning("%s: cannot be read, so all allowed tools need approval once more", self._path)
            kept = {pattern: {} for pattern in self._fitting}
        self._allowed = {pattern: tools for pattern, tools in kept.items() if pattern in self._fitting}

    def see(self, tools: Iterable[Mapping[str, Any]]) -> bool:
        """Take a complete listing as what new patterns were given for; return whether there is anything to save."""
        new = [pattern for pattern in self._fitting if pattern not in self._allowed]
        listed = list(tools) if new else []
        for pattern in new:
            self._allowed[pattern] = {
                tool["name"]: fingerprint(tool) for tool in listed if self._fits(pattern, tool["name"])
            }
        return bool(new)

    def trusts(self, tool: Mapping[str, Any]) -> bool:
        """Whether the tool is as it was when it was allowed, or approved since."""
        name, found = tool["name"], fingerprint(tool)
        return any(tools.get(name) == found for tools in self._allowed.values())

    def approve(self, tool: Mapping[str, Any]) -> bool:
        """Trust the tool as it is now, if a pattern allows it; return whether there is anything to save."""
        fitting = [tools for pattern, tools in self._allowed.items() if self._fits(pattern, tool["name"])]
        for tools in fitting:
            tools[tool["name"]] = fingerprint(tool)
        return bool(fitting)

    async def save(self) -> None:
        """Write the file, whole or not at all; a disk that does not take it is said in the log."""
        if self._path is None:
            return
        async with self._saving:
            written = msgspec.json.format(encode_json(msgspec.to_builtins(_File(self._allowed))), indent=1)
            try:
                await asyncio.to_thread(replace_file, self._path, written)
            except OSError as error:
                _log.warning("%s: what is trusted cannot be kept: %s", self._path, error.strerror)

    def _fits(self, pattern: str, name: str) -> bool:
        return self._fitting[pattern].fits("tools/call", (), lambda: {"name": name})
