"""Our gateway as a candidate: the `space.yaml` a workload needs, and the command that serves it."""

import json
import subprocess
import sys
from pathlib import Path

from bench.workloads import Kind, Workload

__all__ = ["command", "ephemeral", "missing"]

COMMAND = Path(sys.executable).parent / "mew"

# High enough that no limit is ever met: what is measured is the way through, not the refusal.
LIMITS = {
    "envelopes_per_second": 1_000_000,
    "bytes_per_second": "64GiB",
    "bytes_burst": "64GiB",
    "burst": 1_000_000,
    "connections_per_space": 5_000,
    "outbox_bytes": "256MiB",
}


def missing() -> str | None:
    """Say why the gateway cannot be started, or None."""
    if not COMMAND.exists():
        return f"no mew command beside {Path(sys.executable).name}"
    tried = subprocess.run([COMMAND, "gateway", "--help"], capture_output=True, text=True)
    if tried.returncode == 0:
        return None
    return f"mew gateway does not start: {(tried.stderr.strip() or 'no output').splitlines()[-1]}"


def command(workload: Workload, port: int, scratch: Path) -> list[str]:
    """Write the configuration of a workload; return the command that serves it."""
    config = scratch / "space.yaml"
    config.write_text(json.dumps(_space_yaml(workload)))  # JSON is YAML
    return [str(COMMAND), "gateway", "--config", str(config), "--port", str(port)]


def ephemeral(workload: Workload, port: int, scratch: Path) -> list[str]:
    """The same without a journal."""
    return [*command(workload, port, scratch), "--ephemeral"]


def _space_yaml(workload: Workload) -> dict[str, object]:
    addressed = workload.kind is Kind.ADDRESSED
    people = workload.connections if addressed else workload.members
    names = workload.space_names[:1] if addressed else workload.space_names  # the pairs meet in one space
    return {
        **({"space": {"id": names[0]}} if len(names) == 1 else {"spaces": [{"id": name} for name in names]}),
        "participants": {f"p{n}": {"tokens": [f"t{n}"], "capabilities": ["chat"]} for n in range(people)},
        "delivery": "addressed" if addressed else "everyone",
        "limits": LIMITS,
        "server": {"keepalive_s": 600},  # the others send no pings, and the load counts every byte
    }
