"""The servers that are compared. All carry the same envelopes from the same load; one entry in CANDIDATES each.

A further one is a function that says how to start it, the dialect that the load speaks to it and, where something
must be installed first, a function that installs it or says why it cannot.
"""

import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.candidates import floors, mew, nats, node
from bench.workloads import Workload

__all__ = ["CANDIDATES", "FLOOR_C", "MEW", "MEW_EPHEMERAL", "Candidate"]


SLOW = {
    **{
        f"fan-out-{members}-4k": "with 4 KB the slower ones are measured at 50 receivers only, to keep the run short"
        for members in (10, 200, 1000)
    },
    **{
        f"one-at-a-time-{members}": "the slower ones are measured at 50 receivers only, to keep the run short"
        for members in (10, 200)
    },
}


def _ready() -> str | None:
    return None


@dataclass(frozen=True)
class Candidate:
    """A server: how to get it ready once, how to start it for a workload, how to speak to it."""

    name: str
    about: str
    command: Callable[[Workload, int, Path], list[str]]
    """The command line for a workload, a port and a scratch folder, which is also its working directory."""
    dialect: str = "websocket"
    missing: Callable[[], str | None] = _ready
    """Why the candidate cannot run as things are, or None."""
    install: Callable[[], str | None] | None = None
    """Get what is missing; return why it cannot be got, or None."""
    not_for: dict[str, str] = field(default_factory=dict)
    """Workloads that it is left out of, and why."""

    def prepare(self) -> str | None:
        """Install what is missing; return why the candidate cannot run, or None."""
        why_not = self.missing()
        return why_not if why_not is None or self.install is None else self.install()


def _script(name: str) -> Callable[[Workload, int, Path], list[str]]:
    """A server in this folder, run by this Python."""
    return lambda _workload, port, _scratch: [sys.executable, str(Path(__file__).parent / name), str(port)]


def _without(module: str) -> Callable[[], str | None]:
    def missing() -> str | None:
        return None if importlib.util.find_spec(module) else f"the Python package {module} is not installed"

    return missing


def _on_node(name: str, about: str, script: str, **more: Any) -> Candidate:
    return Candidate(name, about, node.serving(script), missing=node.missing, install=node.install, **more)


MEW = Candidate("mew", "this gateway, with its journal", mew.command, "mew", mew.missing)
MEW_EPHEMERAL = Candidate("mew-ephemeral", "this gateway, keeping nothing", mew.ephemeral, "mew", mew.missing)
FLOOR_C = Candidate(
    "floor-c", "what the floor does, in C with epoll: the limit", floors.in_c, missing=floors.no_compiler
)

CANDIDATES = {
    candidate.name: candidate
    for candidate in (
        MEW,
        MEW_EPHEMERAL,
        Candidate("floor", "bare uvloop protocol, prebuilt coalesced frames", floors.in_python),
        FLOOR_C,
        Candidate("nats-server", "NATS, a broker in Go", nats.command, "nats", nats.missing, nats.install),
        _on_node("node-ws", "Node ws, JSON.stringify per receiver", "ws.js"),
        _on_node("node-ws-prepared", "Node ws, one prepared frame for all", "ws_prepared.js"),
        _on_node("socketio-node", "Socket.IO, rooms", "socketio.js", dialect="socket.io", not_for=SLOW),
        Candidate(
            "websockets",
            "Python websockets, its broadcast, on uvloop",
            _script("websockets_broadcast.py"),
            missing=_without("websockets"),
            not_for=SLOW,
        ),
        Candidate(
            "python-socketio",
            "python-socketio on aiohttp and uvloop, rooms",
            _script("python_socketio.py"),
            "socket.io",
            _without("socketio"),
            not_for=SLOW,
        ),
    )
}
