"""How a server and we come to terms: `initialize`, or `server/discover` of 2026-07-28, with the JSON as it is."""

from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Final

from mcp.shared.dispatcher import CallOptions, Outbound
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_METHOD_HEADER, MCP_PROTOCOL_VERSION_HEADER
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    PROTOCOL_VERSION_META_KEY,
    SERVER_INFO_META_KEY,
    UNSUPPORTED_PROTOCOL_VERSION,
)
from mcp_types.version import (
    HANDSHAKE_PROTOCOL_VERSIONS,
    LATEST_HANDSHAKE_VERSION,
    LATEST_MODERN_VERSION,
    MODERN_PROTOCOL_VERSIONS,
)

from mew.protocol.visible import literal

__all__ = ["HandshakeResult", "modern_meta", "negotiate"]

_DISCOVER_S: Final = 10.0
_INFO: Final = {"name": "mew", "title": "MEW bridge", "version": version("mew-protocol")}


@dataclass(frozen=True)
class HandshakeResult:
    """What both agreed on, and what the server said of itself."""

    version: str
    capabilities: dict[str, Any]
    server: dict[str, Any]
    instructions: str | None = None

    @property
    def is_modern(self) -> bool:
        """Each request stands alone, and a server that needs something answers `input_required`."""
        return self.version in MODERN_PROTOCOL_VERSIONS

    def has(self, *path: str) -> bool:
        """Whether the server says it can do this: `has("resources", "subscribe")`."""
        found: Any = self.capabilities
        for name in path:
            found = found.get(name) if isinstance(found, dict) else None
        return found is not None and found is not False


async def negotiate(server: Outbound, ours: dict[str, Any], *, modern: bool) -> HandshakeResult:
    """Shake hands, by preference as the second generation does it or as the first.

    A server that speaks both is best met as one of the first: what it asks of its client then works whichever way it
    was written to ask.

    Raises:
        MCPError: the server does not want to.
        ValueError: what it answers makes no sense, or is of another time.
    """
    terms = await _discover(server, ours, LATEST_MODERN_VERSION) if modern else None
    if terms is not None:
        return terms
    try:
        return await _initialize(server, ours)
    except (MCPError, ValueError) as error:
        # It knows no other generation, says so or agrees to one of its versions; or was slow to start and took a
        # probe for the first word.
        named = _mutual(error) if isinstance(error, MCPError) else None
        later = await _discover(server, ours, named or LATEST_MODERN_VERSION)
        if later is None:
            raise
        return later


def modern_meta(version: str, ours: dict[str, Any]) -> dict[str, Any]:
    """What each request carries in its `_meta` from 2026-07-28 on."""
    return {
        PROTOCOL_VERSION_META_KEY: version,
        CLIENT_INFO_META_KEY: _INFO,
        CLIENT_CAPABILITIES_META_KEY: ours,
    }


async def _discover(
    server: Outbound, ours: dict[str, Any], version: str, *, again: bool = True
) -> HandshakeResult | None:
    """None: it is none of that generation, as far as it lets us know."""
    options: CallOptions = {
        "timeout": _DISCOVER_S,
        "cancel_on_abandon": False,
        "headers": {MCP_PROTOCOL_VERSION_HEADER: version, MCP_METHOD_HEADER: "server/discover"},
    }
    params = {"_meta": modern_meta(version, ours)}
    try:
        said = await server.send_raw_request("server/discover", params, options)
    except MCPError as error:
        mutual = _mutual(error)
        if mutual is not None and again:
            return await _discover(server, ours, mutual, again=False)
        return None
    supported = said.get("supportedVersions")
    known = [one for one in MODERN_PROTOCOL_VERSIONS if isinstance(supported, list) and one in supported]
    if not known or not isinstance(said.get("capabilities"), dict):
        return None
    meta = said.get("_meta")
    info = meta.get(SERVER_INFO_META_KEY) if isinstance(meta, dict) else None
    return _terms(known[-1], said, info)


async def _initialize(server: Outbound, ours: dict[str, Any]) -> HandshakeResult:
    params = {"protocolVersion": LATEST_HANDSHAKE_VERSION, "capabilities": ours, "clientInfo": _INFO}
    said = await server.send_raw_request("initialize", params, {"cancel_on_abandon": False})
    agreed = said.get("protocolVersion")
    if agreed not in HANDSHAKE_PROTOCOL_VERSIONS:
        raise ValueError(f"it speaks MCP of {literal(agreed)}, and no version that is known here")
    terms = _terms(agreed, said, said.get("serverInfo"))
    await server.notify(
        "notifications/initialized", None, {"headers": {MCP_PROTOCOL_VERSION_HEADER: terms.version}}
    )
    return terms


def _terms(version: str, said: dict[str, Any], info: Any) -> HandshakeResult:
    capabilities, instructions = said.get("capabilities"), said.get("instructions")
    return HandshakeResult(
        version,
        capabilities if isinstance(capabilities, dict) else {},
        info if isinstance(info, dict) else {},
        instructions if isinstance(instructions, str) else None,
    )


def _mutual(error: MCPError) -> str | None:
    """The version of that generation that a server names when it does not take ours."""
    data = error.data
    supported = data.get("supported") if isinstance(data, dict) else None
    if error.code != UNSUPPORTED_PROTOCOL_VERSION or not isinstance(supported, list):
        return None
    known = [version for version in MODERN_PROTOCOL_VERSIONS if version in supported]
    return known[-1] if known else None
