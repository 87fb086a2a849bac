"""Keeps a supervisor from leaving anything behind: a reaper that knows its process groups, and a look at orphans."""

import asyncio
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from mew.supervise import reaper
from mew.supervise.orphans import Orphans
from mew.supervise.program import MARK
from mew.supervise.reaper import end_groups

__all__ = ["ChildCleanup", "end_leftovers"]

_log = logging.getLogger(__name__)

_GRACE_S: Final = 5.0
_AGAIN_S: Final = 0.2
_LEAVE_S: Final = 2 * _GRACE_S
_PROGRAM: Final = str(Path(reaper.__file__))


class ChildCleanup:
    """`run` keeps a reaper alive; the groups are known to it from the moment they are added."""

    def __init__(self, held: int | None = None, orphans: Orphans | None = None) -> None:
        """`held` is the claim on the folder, which the reaper holds too, for as long as it has something to end.

        `orphans` only where every child of this process is started by this package: another would be taken for one.
        """
        self._held = () if held is None else (held,)
        self._groups: set[int] = set()
        self._reaper: asyncio.subprocess.Process | None = None
        self._starting = 0
        self._orphans = orphans
        self._due = False  # a program has ended, and what it left is to be ended
        self._stray: set[int] = set()  # groups of orphans, as the reaper was told

    async def run(self) -> None:
        """Until cancelled. The reaper then sees the end, and ends what is left."""
        while True:
            try:
                with self.starting():
                    self._reaper = await asyncio.create_subprocess_exec(
                        *(sys.executable, "-I", "-S", _PROGRAM, str(_GRACE_S)),
                        stdin=asyncio.subprocess.PIPE,
                        start_new_session=True,  # a Ctrl-C in the terminal is not for it
                        pass_fds=self._held,
                    )
            except OSError as error:
                _log.warning("the reaper cannot be started now: %s", error.strerror)
            else:
                await self._attend(self._reaper)
                _log.warning("the reaper ended, and is started again")
            await asyncio.sleep(_AGAIN_S)

    @contextmanager
    def starting(self) -> Iterator[None]:
        """A child that is started inside this block, and is not yet known, is no orphan."""
        self._starting += 1
        try:
            yield
        finally:
            self._starting -= 1

    def add(self, group: int) -> None:
        self._groups.add(group)
        self._tell(f"+{group}")

    async def remove(self, group: int) -> None:
        """It has ended; what it left outside of its group is ended, too."""
        self._groups.discard(group)
        self._tell(f"-{group}")
        self._due = True
        await self._sweep()

    async def look(self) -> None:
        """Let the reaper know what programs have put into the background, outside of their groups."""
        await self._sweep()
        if self._starting or self._orphans is None:
            return
        found = self._orphans.note(self._ours())
        for sign, groups in (("+", found - self._stray), ("-", self._stray - found)):
            for group in groups:
                self._tell(f"{sign}{group}")
        self._stray = found

    async def _sweep(self) -> None:
        if self._due and not self._starting and self._orphans is not None:  # else at the next look
            self._due = False
            await self._orphans.end_new(self._ours())

    async def _attend(self, running: asyncio.subprocess.Process) -> None:
        try:
            for group in self._groups | self._stray:
                self._tell(f"+{group}")
            await running.wait()
        except asyncio.CancelledError:
            if self._orphans is not None:
                await self._orphans.end_all(self._ours())
            raise
        finally:
            await self._leave(running)

    def _ours(self) -> set[int]:
        return self._groups if self._reaper is None else self._groups | {self._reaper.pid}

    def _tell(self, line: str) -> None:
        if self._reaper is not None and self._reaper.stdin is not None:
            with suppress(ConnectionError, RuntimeError):  # it has died, and the next one is told everything
                self._reaper.stdin.write(f"{line}\n".encode("ascii"))

    async def _leave(self, running: asyncio.subprocess.Process) -> None:
        self._reaper = None
        if running.stdin is not None:
            running.stdin.close()
            with suppress(ConnectionError):
                await running.stdin.wait_closed()
        try:
            async with asyncio.timeout(_LEAVE_S):
                await running.wait()
        except TimeoutError:
            running.kill()  # somebody has stopped it


def end_leftovers(folder: Path) -> bool:
    """End what has the mark of this folder; whether there was any. Only where there is a `/proc`.

    For who has claimed the folder, so that no supervisor runs. Waits for them to end.
    """
    groups = _groups(f"{MARK}={folder}".encode())
    end_groups(groups, _GRACE_S)
    return bool(groups)


def _groups(mark: bytes) -> set[int]:
    found = set()
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        return set()
    for pid in pids:
        try:
            if mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                found.add(os.getpgid(pid))
        except OSError:
            continue  # gone, or another's
    return found - {os.getpgrp()}
