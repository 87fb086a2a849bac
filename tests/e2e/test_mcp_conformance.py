"""The conformance suite of the MCP project gives the same verdicts through a space as without one.

For a server: ours, which passes all of it. For a client: the official one, and what a server sees of it through us.
"""

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from .mcp_differences import CLIENT_EXCEPTIONS, DIFFERENCES, EXCEPTIONS, VARYING
from .mcp_servers import REAL, SERVERS
from .mcp_suite import CLIENT_SCENARIOS, FIRST, SECOND, server_verdicts, wrapped_verdicts
from .mcp_way import Way, config
from .process import run_gateway

# The generation of the suite, and the server that is bridged: it speaks that one with the bridge.
BRIDGED = {FIRST: "conforming-legacy", SECOND: "conforming"}


@pytest.fixture(scope="module")
def way(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Way]:
    written = config(*BRIDGED.values())
    with run_gateway(tmp_path_factory.mktemp("way"), written) as gateway:
        yield Way(gateway, written["participants"])


@asynccontextmanager
async def conforming() -> AsyncIterator[str]:
    """The server without us: its address."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, SERVERS / "conforming", "--http", "0", stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr is not None
    try:
        async with asyncio.timeout(180):
            yield (await process.stderr.readline()).decode().strip()
    finally:
        process.terminate()
        await process.communicate()


@pytest.mark.parametrize("generation", BRIDGED)
async def test_a_server_passes_the_same_scenarios_through_a_space(
    way: Way, generation: str, tmp_path: Path
) -> None:
    server = BRIDGED[generation]
    async with (
        conforming() as direct,
        way.bridge_here(server, REAL[server], tmp_path),
        way.host_here("caller", server) as through,
        asyncio.TaskGroup() as tasks,
    ):
        wanted = tasks.create_task(server_verdicts(direct, generation, tmp_path / "direct"))
        found = tasks.create_task(server_verdicts(through, generation, tmp_path / "through"))
    failing = [check for checks in wanted.result().values() for check in checks if check[1] == "FAILURE"]
    assert not failing, "the server itself conforms"
    assert wanted.result().keys() == found.result().keys()
    different = {
        (generation, scenario)
        for scenario, checks in wanted.result().items()
        if checks != found.result()[scenario]
    }
    assert different - VARYING == {one for one in EXCEPTIONS if one[0] == generation} - VARYING


@pytest.mark.parametrize(("generation", "scenario"), CLIENT_SCENARIOS)
async def test_a_server_sees_a_conforming_client_through_mew_wrap(
    generation: str, scenario: str, tmp_path: Path
) -> None:
    """As it sees the official client alone, which passes all of these scenarios."""
    checks = await wrapped_verdicts(generation, scenario, tmp_path / scenario)
    statuses = {status for _, status in checks}
    passes = "SUCCESS" in statuses and statuses.isdisjoint({"FAILURE", "WARNING"})
    assert passes is ((generation, scenario) not in CLIENT_EXCEPTIONS), checks


def test_what_is_excepted_is_tried() -> None:
    assert CLIENT_EXCEPTIONS.keys() <= set(CLIENT_SCENARIOS)


def test_the_reference_lists_what_is_different_and_nothing_else() -> None:
    """`docs/reference/mcp.md`: three tables, with what differs in their first columns."""
    page = Path(__file__).parents[2] / "docs" / "reference" / "mcp.md"
    sections = page.read_text(encoding="utf-8").split("\n## ")
    (told,) = [section for section in sections if section.startswith("What a host sees otherwise")]
    assert set(re.findall(r"^\| ([a-z][^|]+?) \|", told, re.MULTILINE)) == set(DIFFERENCES)
    (suite,) = [section for section in sections if section.startswith("The conformance suite")]
    rows = re.findall(r"^\| `([\w-]+)` \| ([\d-]+) \| ([^|]+?) \|", suite, re.MULTILINE)
    listed = {(generation, scenario): why for scenario, generation, why in rows}
    assert listed == {**EXCEPTIONS, **CLIENT_EXCEPTIONS}
