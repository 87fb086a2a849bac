"""nats-server as a candidate: Debian's package, installed where it is missing and that is allowed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from bench.workloads import Workload

__all__ = ["command", "install", "missing"]

PATH = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin"))  # where Debian has it

# A client that cannot be written to for long is no slow consumer here, and none is pinged within a run.
CONFIG = """\
host: 127.0.0.1
port: {port}
max_connections: 5000
max_pending: 256MB
write_deadline: "60s"
ping_interval: "60m"
"""


def missing() -> str | None:
    """Say why it cannot run as things are, or None."""
    return None if shutil.which("nats-server", path=PATH) else "nats-server is not installed"


def install() -> str | None:
    """Install the package; say why it cannot be, or None."""
    apt = shutil.which("apt-get")
    if apt is None:
        return "nats-server is not installed, and there is no apt-get to install it"
    root = os.geteuid() == 0
    if not root and shutil.which("sudo") is None:
        return "nats-server is not installed, and installing it needs root or sudo"
    sudo = [] if root else ["sudo"] if sys.stdin.isatty() else ["sudo", "-n"]
    print(f"nats-server: installing the package with {' '.join([*sudo, 'apt-get'])}", file=sys.stderr)
    done = _install(sudo, apt)
    if done.returncode != 0:
        return f"nats-server could not be installed: {(done.stderr or done.stdout).strip()[-300:]}"
    return missing()


def command(_workload: Workload, port: int, scratch: Path) -> list[str]:
    """Write a configuration; return the command that serves it."""
    config = scratch / "nats.conf"
    config.write_text(CONFIG.format(port=port))
    found = shutil.which("nats-server", path=PATH)
    assert found is not None, "install() has seen to it"
    return [found, "--config", str(config)]


def _install(sudo: list[str], apt: str) -> subprocess.CompletedProcess[str]:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        whole = [*sudo, "env", "DEBIAN_FRONTEND=noninteractive", apt, *words]
        return subprocess.run(whole, capture_output=True, text=True)

    run("update", "-q")  # what it knows already may do
    return run("install", "-y", "-q", "nats-server")
