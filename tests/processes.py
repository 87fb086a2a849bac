"""Whether a process that is not our child still runs: nobody tells, so it is looked up."""

import asyncio
from pathlib import Path

__all__ = ["is_running", "until_gone"]

_SOON_S = 60


def is_running(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


async def until_gone(*pids: int) -> None:
    """A kill takes its time."""
    async with asyncio.timeout(_SOON_S):
        while any(map(is_running, pids)):  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(0.01)
