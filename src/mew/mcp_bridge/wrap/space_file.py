"""PURE. The space of a wrapped server, as a space.yaml has it: the server, the host, and you."""

from typing import Any

import yaml

from mew.mcp_bridge.policy.policy import CallPolicy

from .server_name import HOST, VIEWER, YOU

__all__ = ["space_text"]

_NOTE = "# Written by 'mew wrap' at each start: what you change here is lost.\n"
_LISTINGS = ["**/list"]


def space_text(
    space: str, server: str, policy: CallPolicy, *, ephemeral: bool, keep_token: bool = False
) -> str:
    """The file: the host may see what the server offers and call or propose what the policy lets it.

    Commands look on as the viewer, whose token is in a file. Unless `keep_token`, that of the reviewer is in none.
    """
    person = YOU if keep_token else VIEWER
    file: dict[str, Any] = {
        "space": {"id": space, "default_participant": person, "reviewer": YOU},
        "server": {"port": 0, "shutdown_grace_s": 1},
        "limits": {"envelopes_per_second": 10_000, "burst": 20_000},
        "journal": "off" if ephemeral else {"keep_bytes": "1GiB"},
        "participants": {
            YOU: {"capabilities": ["*"]},
            VIEWER: {"capabilities": _of_viewer(server)},
            HOST: {"capabilities": _of_host(server, policy)},
            server: {"capabilities": _of_server()},
        },
    }
    return _NOTE + yaml.safe_dump(file, sort_keys=False)


def _of_host(server: str, policy: CallPolicy) -> list[Any]:
    harmless = [*_LISTINGS, "initialize", "server/discover", "ping", "logging/setLevel", "notifications/**"]
    return [
        {"kind": "mcp/request", "to": server, "payload": {"method": harmless}},
        *policy.capabilities(),
        {"kind": "mcp/withdraw"},
        {"kind": ["chat", "chat/acknowledge", "participant/status"]},
    ]


def _of_viewer(server: str) -> list[Any]:
    return [
        {"kind": "mcp/request", "to": server, "payload": {"method": _LISTINGS}},
        {"kind": ["mcp/reject", "chat", "chat/acknowledge", "participant/request-status"]},
    ]


def _of_server() -> list[Any]:
    asks = ["elicitation/create", "sampling/createMessage", "roots/list", "notifications/**"]
    return [
        {"kind": "mcp/request", "payload": {"method": asks}},
        {"kind": ["stream/*", "participant/status", "chat/acknowledge"]},
    ]
