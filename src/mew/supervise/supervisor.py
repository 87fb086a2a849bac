"""All programs of a plan: started in order, watched, and stopped in order."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from .cleanup import ChildCleanup
from .launch import LaunchPlan
from .logs import put_aside
from .orphans import Orphans
from .presence import PresenceProbe
from .process_supervisor import ProcessSupervisor
from .program import GATEWAY, Phase, ProgramStatus

__all__ = ["GatewayNotStarted", "SpaceSupervisor"]

_LOOK_S: Final = 0.25  # how often, while somebody is expected
_GLANCE_S: Final = 2.0  # and otherwise
_GATEWAY_S: Final = 30.0
_DEPENDED_S: Final = 30.0  # so long another is waited for that should join first
_LATE_S: Final = 20.0  # who has not joined by then is not waited for


class GatewayNotStarted(Exception):
    """The gateway did not come up; the message says what it said."""


class SpaceSupervisor:
    """`changed` is called whenever anything about a program is another. What runs is ended when `run` ends.

    `held` is the claim on the folder, which is held until the last of it has ended. For a process that does nothing
    else: whatever else it started would be taken for what a program left behind.
    """

    def __init__(
        self,
        plan: LaunchPlan,
        environ: Mapping[str, str],
        watch: PresenceProbe,
        changed: Callable[[], None] = lambda: None,
        *,
        held: int | None = None,
    ) -> None:
        self._guard = ChildCleanup(held, Orphans())
        self._watch = watch
        self._changed = changed
        self._stopping = asyncio.Event()
        self._looking = asyncio.Event()
        self.settled = asyncio.Event()
        """Set once everything has joined, or is not waited for any longer."""
        self._supervised = {
            program.name: ProcessSupervisor(program, environ, self._guard, self._note)
            for program in plan.programs
        }

    @property
    def standings(self) -> list[ProgramStatus]:
        """Of all programs, in the order of starting."""
        return [program_supervisor.standing for program_supervisor in self._supervised.values()]

    def stop(self) -> None:
        """Let `run` end."""
        self._stopping.set()

    async def restart(self, name: str) -> None:
        """End a program and start it again.

        Raises:
            KeyError: there is none of that name.
        """
        await self._supervised[name].restart()

    async def run(self) -> None:
        """Start everything, and keep it running until `stop`, or cancelled: then the gateway ends last.

        Raises:
            GatewayNotStarted: the gateway did not come up.
        """
        failed: GatewayNotStarted | None = None
        async with asyncio.TaskGroup() as group:
            guarding = group.create_task(self._guard.run())
            gateway = group.create_task(self._supervised[GATEWAY].run())
            try:
                if await self._is_gateway_up():
                    await self._run_the_others()
            except GatewayNotStarted as error:
                failed = error
            finally:
                gateway.cancel()
                await asyncio.wait((gateway,))
                guarding.cancel()
        if failed is not None:
            raise failed

    async def _run_the_others(self) -> None:
        async with asyncio.TaskGroup() as group:
            others = [
                program_supervisor for name, program_supervisor in self._supervised.items() if name != GATEWAY
            ]
            tasks = [
                group.create_task(self._run_in_turn(program_supervisor)) for program_supervisor in others
            ]
            tasks.append(group.create_task(self._look()))
            try:
                await self._stopping.wait()
            finally:
                for task in tasks:
                    task.cancel()

    async def _run_in_turn(self, program_supervisor: ProcessSupervisor) -> None:
        said = ""
        deadline_s = asyncio.get_running_loop().time() + _DEPENDED_S
        for name in program_supervisor.program.after:
            other = self._supervised[name]
            try:
                async with asyncio.timeout_at(deadline_s):
                    if not other.up.is_set():
                        program_supervisor.waits_for(name)
                    await other.up.wait()
            except TimeoutError:
                said = f"started without {name}, which has not joined after {_DEPENDED_S:g} s"
        program = program_supervisor.program
        if program.after_first_envelope:
            program_supervisor.waits_for("its first envelope over HTTP")
            while not await self._watch.has_sent(program.space or "", program.participant or ""):
                if await self._stops_within(_LOOK_S):
                    return
        await program_supervisor.run(said)

    async def _is_gateway_up(self) -> bool:
        """Wait for it; False where all was stopped before."""
        program_supervisor = self._supervised[GATEWAY]
        try:
            async with asyncio.timeout(_GATEWAY_S):
                while not await self._watch.is_ready():
                    if program_supervisor.standing.phase in (Phase.AGAIN, Phase.FAILED):
                        raise GatewayNotStarted(_why(program_supervisor.standing))
                    if await self._stops_within(_LOOK_S / 5):
                        return False
        except TimeoutError:
            raise GatewayNotStarted(f"the gateway does not answer after {_GATEWAY_S:g} s") from None
        program_supervisor.joined(is_there=True)
        return not self._stopping.is_set()

    async def _stops_within(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        return self._stopping.is_set()

    async def _look(self) -> None:
        """Keep the standings true, and the logs short."""
        while True:
            await self._look_once()
            waits = any(_is_awaited(program_supervisor) for program_supervisor in self._supervised.values())
            if not waits and not self.settled.is_set():
                self.settled.set()
                self._changed()
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_S if waits else _GLANCE_S):
                    await self._looking.wait()
            self._looking.clear()
            await self._guard.look()
            for one in self.standings:
                await asyncio.to_thread(put_aside, Path(one.log))

    async def _look_once(self) -> None:
        self._supervised[GATEWAY].joined(is_there=await self._watch.is_ready())
        spaces = {program_supervisor.program.space for program_supervisor in self._supervised.values()} - {
            None
        }
        present = {space: await self._watch.present(space) for space in spaces if space is not None}
        for program_supervisor in self._supervised.values():
            space = program_supervisor.program.space
            here = None if space is None else present[space]
            if here is not None:
                program_supervisor.joined(is_there=program_supervisor.program.participant in here)
            program_supervisor.expect(_LATE_S)

    def _note(self) -> None:
        self._looking.set()
        self._changed()


def _is_awaited(program_supervisor: ProcessSupervisor) -> bool:
    phase = program_supervisor.standing.phase
    if phase is Phase.WAITING:
        return not program_supervisor.program.after_first_envelope
    return phase is Phase.STARTING and not program_supervisor.is_late


def _why(gateway: ProgramStatus) -> str:
    if gateway.phase is Phase.FAILED:
        return f"the gateway cannot be started: {gateway.said}"
    return f"the gateway {gateway.said}"
