"""Keeps one program running: starts it, starts it again when it ends, and stops it."""

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from .cleanup import ChildCleanup
from .logs import last_line, size_of
from .process import CannotStart, Process, ended
from .program import Phase, Program, ProgramStatus, Restart

__all__ = ["ProcessSupervisor"]

_FIRST_S: Final = 0.5
_LONGEST_S: Final = 30.0
_STEADY_S: Final = 10.0  # who lived so long is waited for no longer than the first time
_GRACE_S: Final = 8.0  # more than a gateway takes to see everyone out


class ProcessSupervisor:
    """One program. `changed` is called whenever its standing is another."""

    def __init__(
        self,
        program: Program,
        environ: Mapping[str, str],
        guard: ChildCleanup,
        changed: Callable[[], None],
        *,
        first_s: float = _FIRST_S,
        steady_s: float = _STEADY_S,
    ) -> None:
        self.program = program
        self.standing = ProgramStatus(program.name, program.what, log=str(program.log))
        self.up = asyncio.Event()
        """Set once it has joined, or is not going to; what depends on it waits for this."""
        self.is_late = False
        """It should have joined by now."""
        self._environ = environ
        self._guard = guard
        self._changed = changed
        self._first_s = first_s
        self._steady_s = steady_s
        self._wanted = asyncio.Event()  # it should be started again, now
        self._process: Process | None = None
        self._log_bytes = 0  # before it was started

    async def run(self, said: str = "") -> None:
        """Until cancelled, which stops it. `said` is to be known about its first start."""
        wait_s = self._first_s
        try:
            while True:
                began_s = time.monotonic()
                again = await self._live(said)
                said = ""
                if self._wanted.is_set() or time.monotonic() - began_s >= self._steady_s:
                    wait_s = self._first_s
                await self._until_wanted(wait_s if again else None)
                wait_s = min(wait_s * 2, _LONGEST_S)
                self.standing.restarts += 1
        finally:
            await self._stop()
            self._enter(Phase.STOPPED)

    def waits_for(self, name: str) -> None:
        """It is not started yet, because of another."""
        self._enter(Phase.WAITING, said=f"for {name}")

    def joined(self, *, is_there: bool) -> None:
        """It was seen in its space, or is no longer."""
        standing = self.standing
        if standing.joined is is_there:
            return
        standing.joined = is_there
        if is_there:
            self.up.set()
        if standing.phase in (Phase.STARTING, Phase.RUNNING):
            self._enter(Phase.RUNNING if is_there else Phase.STARTING, pid=standing.pid)

    def expect(self, within_s: float) -> None:
        """Say so where it runs, and has not joined in this time."""
        standing = self.standing
        if standing.phase is Phase.STARTING and not self.is_late and time.time() - standing.since >= within_s:
            self.is_late = True
            standing.said = f"runs, and has not joined after {within_s:g} s; see 'mew logs {standing.name}'"
            self._changed()

    async def restart(self) -> None:
        """End it, if it runs, and start it at once."""
        self._wanted.set()
        await self._stop()

    async def _live(self, said: str) -> bool:
        """One life of it; whether it is to be started again."""
        self._log_bytes = size_of(self.program.log)
        try:
            with self._guard.starting():
                process = self._process = await Process.start(self.program, self._environ)
                self._guard.add(process.pid)
        except CannotStart as error:
            self._enter(Phase.FAILED, said=str(error))
            self.up.set()
            return False
        finally:
            self._wanted.clear()  # who wanted it in the meantime has it
        self._enter(Phase.STARTING, pid=process.pid, said=said)
        code = await process.wait()
        await self._guard.remove(process.pid)
        self._process = None
        self.standing.joined = False
        return self._ended(code)

    def _ended(self, code: int) -> bool:
        policy = self.program.restart
        again = (
            self._wanted.is_set() or policy is Restart.ALWAYS or (policy is Restart.ON_FAILURE and code != 0)
        )
        if not again:
            self.up.set()
        said = self.standing.ended = self._last_words(code)
        self._enter(Phase.AGAIN if again else Phase.ENDED, said=said)
        return again

    def _last_words(self, code: int) -> str:
        """How it ended; where that was not well, with the last line it wrote in this life."""
        last = "" if code == 0 or self._wanted.is_set() else last_line(self.program.log, self._log_bytes)
        return f"{ended(code)}: {last}" if last else ended(code)

    async def _until_wanted(self, within_s: float | None) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._wanted.wait()

    async def _stop(self) -> None:
        process = self._process
        if process is not None:
            await process.stop(_GRACE_S)
            await self._guard.remove(process.pid)

    def _enter(self, phase: Phase, *, pid: int | None = None, said: str = "") -> None:
        standing = self.standing
        standing.phase, standing.since, standing.pid, standing.said = phase, time.time(), pid, said
        self.is_late = False
        self._changed()
