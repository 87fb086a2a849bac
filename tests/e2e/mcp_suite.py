"""The conformance suite of the MCP project, run against an address or a command: its verdicts, by scenario."""

import asyncio
import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from .mcp_servers import SERVERS

__all__ = ["CLIENT_SCENARIOS", "FIRST", "SECOND", "Checks", "server_verdicts", "wrapped_verdicts"]

FIRST = "2025-11-25"
SECOND = "2026-07-28"
Checks = list[tuple[str, str]]
"""Each check of a scenario and how it went, in order."""

CLIENT_SCENARIOS = [
    (FIRST, "tools_call"),
    (FIRST, "elicitation-sep1034-client-defaults"),
    (FIRST, "sse-retry"),
    (SECOND, "request-metadata"),
    (SECOND, "sep-2322-client-request-state"),
    (SECOND, "http-standard-headers"),
    (SECOND, "http-custom-headers"),
    (SECOND, "http-invalid-tool-headers"),
    (SECOND, "json-schema-2020-12-preservation"),
]
"""Those that say more than the others, and are not about logging in."""

_SUITE = SERVERS / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
_NODE = Path(sys.executable).with_name("node")
_WITHIN_S = 120.0
_RUN = re.compile(r"(?:server-)?(.+)-\d{4}-\d\d-\d\dT[\d-]+Z")


async def server_verdicts(url: str, generation: str, folder: Path) -> Mapping[str, Checks]:
    """Run every scenario of a generation against a server; those of extensions are not among them."""
    return await _run(folder, "server", "--url", url, "--suite", "all", "--spec-version", generation)


async def wrapped_verdicts(generation: str, scenario: str, folder: Path) -> Checks:
    """Run one scenario against the official client with `mew wrap` between it and the server of the suite."""
    client = f"{sys.executable} {SERVERS / 'suite_client.py'} --wrapped"
    asked = ["--command", client, "--scenario", scenario, "--spec-version", generation]
    environ = {**os.environ, "XDG_STATE_HOME": str(folder / "state")}
    (checks,) = (await _run(folder, "client", *asked, environ=environ)).values()
    return checks


async def _run(
    folder: Path, *arguments: str, environ: Mapping[str, str] | None = None
) -> Mapping[str, Checks]:
    assert _SUITE.is_file(), "the conformance suite is not installed: scripts/setup-tests .venv"
    process = await asyncio.create_subprocess_exec(
        *[str(_NODE), str(_SUITE), *arguments, "--output-dir", str(folder)],
        cwd=folder.parent,
        env=environ,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(_WITHIN_S):
            said, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    found = await asyncio.to_thread(_read, folder)
    assert found, said.decode(errors="replace")[-2000:]
    return found


def _read(folder: Path) -> Mapping[str, Checks]:
    found: dict[str, Checks] = {}
    for checks in sorted(folder.glob("**/checks.json")):
        named = _RUN.fullmatch(checks.parent.name)
        assert named is not None, checks
        found[named[1]] = [(check["id"], check["status"]) for check in json.loads(checks.read_text())]
    return found
