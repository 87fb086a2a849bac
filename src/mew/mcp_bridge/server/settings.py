"""PURE. What a bridge is told: the server to start or to call, whom to ask, and its limits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

__all__ = ["Command", "Endpoint", "Restart", "ServerSettings", "is_ours"]

Restart = Literal["always", "on-failure", "never"]

_OURS: Final = "MEW_"


def is_ours(variable: str) -> bool:
    """Whether a variable of the environment is for us: a token may be in it, and no server gets it."""
    return variable.upper().startswith(_OURS)


@dataclass(frozen=True, kw_only=True)
class Command:
    """A server that is started here and spoken to over its standard input and output."""

    program: str
    arguments: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Beside the few variables that every program needs; nothing else of ours passes."""
    directory: Path | None = None
    hidden: Sequence[Path] = ()
    """Folders and files that the server and all it starts cannot see; empty: it is not confined."""


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """A server that runs elsewhere and is spoken to over Streamable HTTP."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """One server and how it is to be kept."""

    server: Command | Endpoint
    restart: Restart = "always"
    ask: Sequence[str] = ()
    """Who is asked what the server asks of its client; whoever made the request, where nobody is named."""
    roots: Sequence[str] = ()
    """What `roots/list` is answered with: URIs."""
    fingerprints: Path | None = None
    """Where the tools as first seen are kept; None: only as long as this runs."""
    modern: bool = False
    """Whether one that speaks both generations of MCP is met as one of the second."""
    request_timeout_s: float = 300.0
    start_timeout_s: float = 120.0
    ask_timeout_s: float = 300.0
    restart_delay_s: float = 0.5
    """Before the server is started again; twice as long each time, up to a minute."""
