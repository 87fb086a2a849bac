"""Processes that outlived who started them. On Linux they become children of the supervisor; elsewhere nobody tells."""

import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Final

__all__ = ["Orphans"]

_PR_SET_CHILD_SUBREAPER: Final = 36
_PASSES_MAX: Final = 100  # each may bring to light what those it ended had started
_PASS_S: Final = 0.01


class Orphans:
    """Children of this process that it did not start itself.

    What a program that has just ended leaves is told from what others have put into the background by when it came:
    `note` is called now and then, and `end_new` when one has ended.
    """

    def __init__(self) -> None:
        """From now on, descendants of this process whose parent ends become its children."""
        if sys.platform == "linux":
            ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._seen: set[int] = set()
        self._noted: set[int] = set()

    def note(self, ours: Collection[int]) -> set[int]:
        """Look who is there; returns the process groups of those whose program runs still, as it did a look ago."""
        found = self._found(ours)
        self._noted, self._seen = found & self._seen, found
        return {group for group in map(_group, self._noted) if group is not None and group not in ours}

    async def end_new(self, ours: Collection[int]) -> None:
        """Kill those that are not noted, and what comes to light when they are gone."""
        await self._end(ours, self._noted)

    async def end_all(self, ours: Collection[int]) -> None:
        await self._end(ours, frozenset())

    async def _end(self, ours: Collection[int], spared: Collection[int]) -> None:
        for _ in range(_PASSES_MAX):
            found = [pid for pid in self._found(ours) if pid not in spared and _group(pid) not in ours]
            if not found:
                return
            for pid in found:
                group = _group(pid)
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL) if group is None else os.killpg(group, signal.SIGKILL)
            await asyncio.sleep(_PASS_S)

    def _found(self, ours: Collection[int]) -> set[int]:
        """Those that live; the others are seen out, as their parent would."""
        living = set()
        for pid in _children():
            if pid in ours:
                continue
            with suppress(ChildProcessError):
                if os.waitpid(pid, os.WNOHANG)[0] == 0:
                    living.add(pid)
        return living


def _children() -> set[int]:
    if sys.platform != "linux":
        return set()
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):
            found.update(map(int, (task / "children").read_text(encoding="ascii").split()))
    return found


def _group(pid: int) -> int | None:
    """Its process group, where that is not ours."""
    try:
        group = os.getpgid(pid)
    except OSError:
        return None
    return None if group == os.getpgrp() else group
