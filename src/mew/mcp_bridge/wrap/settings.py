"""PURE. What to wrap and how, and where it came to be."""

from dataclasses import dataclass, field
from pathlib import Path

from mew.mcp_bridge.host_profiles import ProfileName
from mew.mcp_bridge.policy.policy import PolicySettings
from mew.mcp_bridge.server.settings import Command, Endpoint

__all__ = ["RunningWrap", "WrapSettings"]


@dataclass(frozen=True, kw_only=True)
class WrapSettings:
    """What to wrap, and how.

    `command` tells this command from others with the same name, or is None where they are to share a space.
    `keep_token`: keep the reviewer's token in a file, where every program of the user can read it (decision 0021).
    `policy` holds whatever `policy_file` says beside it, which is followed as it changes.
    `wait_s` is how long a host waits for your word at a time, `open_s` how long what it wants stays proposed.
    """

    name: str
    server: Command | Endpoint
    command: str | None = None
    policy: PolicySettings = field(default_factory=PolicySettings)
    policy_file: Path | None = None
    port: int = 0
    ephemeral: bool = False
    keep_token: bool = False
    http: tuple[str, int] | None = None
    wait_s: float = 50.0
    open_s: float = 3_600.0
    host: ProfileName | None = None


@dataclass(frozen=True)
class RunningWrap:
    """Where it is: the name to find it by, the gateway, and its space.yaml.

    `hosts` is where they are served, if not over stdio, and `secret` the file with what they need there.
    """

    name: str
    gateway: str
    file: Path
    hosts: str | None = None
    secret: Path | None = None
