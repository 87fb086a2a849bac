"""The servers that are compared. Each takes the same bytes from the same load; one entry in CANDIDATES each.

A further one is a function that says how to start it and, where something must be installed first, one that
installs it or says why it cannot.
"""

import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.candidates import mew
from bench.workloads import Workload

__all__ = ["CANDIDATES", "FLOOR", "MEW", "MEW_EPHEMERAL", "NODE", "Candidate"]

NODE_FOLDER = Path(__file__).parent / "node_ws"


@dataclass(frozen=True)
class Candidate:
    """A server: how to get it ready once, how to start it for a workload."""

    name: str
    about: str
    prepare: Callable[[], str | None]
    """Install what is missing; return why the candidate cannot run, or None."""
    command: Callable[[Workload, int, Path], list[str]]
    """The command line for a workload, a port and a scratch folder, which is also its working directory."""


def _prepare_node() -> str | None:
    if shutil.which("node") is None or shutil.which("npm") is None:
        return "node and npm are not on the PATH"
    if (NODE_FOLDER / "node_modules" / "ws").is_dir():
        return None
    print("node-ws: installing its dependency (npm ci)", file=sys.stderr)
    install = ["npm", "ci", "--no-audit", "--no-fund"]
    done = subprocess.run(install, cwd=NODE_FOLDER, capture_output=True, text=True)
    return None if done.returncode == 0 else f"npm ci failed: {done.stderr.strip()[-300:]}"


def _node_command(_workload: Workload, port: int, _scratch: Path) -> list[str]:
    return ["node", str(NODE_FOLDER / "server.js"), str(port)]


def _floor_command(_workload: Workload, port: int, _scratch: Path) -> list[str]:
    return [sys.executable, str(Path(__file__).parent / "floor.py"), str(port)]


NODE = Candidate("node-ws", "Node ws, JSON.stringify per receiver", _prepare_node, _node_command)
FLOOR = Candidate("floor", "bare uvloop protocol, prebuilt coalesced frames", lambda: None, _floor_command)
MEW = Candidate("mew", "this gateway, with its journal", mew.prepare, mew.command)
MEW_EPHEMERAL = Candidate("mew-ephemeral", "this gateway, keeping nothing", mew.prepare, mew.ephemeral)

CANDIDATES = {candidate.name: candidate for candidate in (NODE, FLOOR, MEW_EPHEMERAL, MEW)}
