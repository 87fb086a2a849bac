"""All programs of a plan: started in order, watched, and stopped in order."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from .guarding import Guard
from .keeper import Keeper
from .launch import Plan
from .logs import put_aside
from .orphans import Orphans
from .program import GATEWAY, Phase, Standing
from .watch import Watch

__all__ = ["NotStarted", "Supervisor"]

_LOOK_S: Final = 0.25  # how often, while somebody is expected
_GLANCE_S: Final = 2.0  # and otherwise
_GATEWAY_S: Final = 30.0
_DEPENDED_S: Final = 30.0  # so long another is waited for that should join first
_LATE_S: Final = 20.0  # who has not joined by then is not waited for


class NotStarted(Exception):
    """The gateway did not come up; the message says what it said."""


class Supervisor:
    """`changed` is called whenever anything about a program is another. What runs is ended when `run` ends.

    `held` is the claim on the folder, which is held until the last of it has ended. For a process that does nothing
    else: whatever else it started would be taken for what a program left behind.
    """

    def __init__(
        self,
        plan: Plan,
        environ: Mapping[str, str],
        watch: Watch,
        changed: Callable[[], None] = lambda: None,
        *,
        held: int | None = None,
    ) -> None:
        self._guard = Guard(held, Orphans())
        self._watch = watch
        self._changed = changed
        self._stopping = asyncio.Event()
        self._looking = asyncio.Event()
        self.settled = asyncio.Event()
        """Set once everything has joined, or is not waited for any longer."""
        self._keepers = {
            program.name: Keeper(program, environ, self._guard, self._note) for program in plan.programs
        }

    @property
    def standings(self) -> list[Standing]:
        """Of all programs, in the order of starting."""
        return [keeper.standing for keeper in self._keepers.values()]

    def stop(self) -> None:
        """Let `run` end."""
        self._stopping.set()

    async def restart(self, name: str) -> None:
        """End a program and start it again.

        Raises:
            KeyError: there is none of that name.
        """
        await self._keepers[name].restart()

    async def run(self) -> None:
        """Start everything, and keep it running until `stop`, or cancelled: then the gateway ends last.

        Raises:
            NotStarted: the gateway did not come up.
        """
        failed: NotStarted | None = None
        async with asyncio.TaskGroup() as group:
            guarding = group.create_task(self._guard.run())
            gateway = group.create_task(self._keepers[GATEWAY].run())
            try:
                if await self._is_gateway_up():
                    await self._run_the_others()
            except NotStarted as error:
                failed = error
            finally:
                gateway.cancel()
                await asyncio.wait((gateway,))
                guarding.cancel()
        if failed is not None:
            raise failed

    async def _run_the_others(self) -> None:
        async with asyncio.TaskGroup() as group:
            others = [keeper for name, keeper in self._keepers.items() if name != GATEWAY]
            tasks = [group.create_task(self._run_in_turn(keeper)) for keeper in others]
            tasks.append(group.create_task(self._look()))
            try:
                await self._stopping.wait()
            finally:
                for task in tasks:
                    task.cancel()

    async def _run_in_turn(self, keeper: Keeper) -> None:
        said = ""
        deadline_s = asyncio.get_running_loop().time() + _DEPENDED_S
        for name in keeper.program.after:
            other = self._keepers[name]
            try:
                async with asyncio.timeout_at(deadline_s):
                    if not other.up.is_set():
                        keeper.waits_for(name)
                    await other.up.wait()
            except TimeoutError:
                said = f"started without {name}, which has not joined after {_DEPENDED_S:g} s"
        await keeper.run(said)

    async def _is_gateway_up(self) -> bool:
        """Wait for it; False where all was stopped before."""
        keeper = self._keepers[GATEWAY]
        try:
            async with asyncio.timeout(_GATEWAY_S):
                while not await self._watch.is_ready():
                    if keeper.standing.phase in (Phase.AGAIN, Phase.FAILED):
                        raise NotStarted(_why(keeper.standing))
                    if await self._stops_within(_LOOK_S / 5):
                        return False
        except TimeoutError:
            raise NotStarted(f"the gateway does not answer after {_GATEWAY_S:g} s") from None
        keeper.joined(is_there=True)
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
            waits = any(_is_awaited(keeper) for keeper in self._keepers.values())
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
        self._keepers[GATEWAY].joined(is_there=await self._watch.is_ready())
        spaces = {keeper.program.space for keeper in self._keepers.values()} - {None}
        present = {space: await self._watch.present(space) for space in spaces if space is not None}
        for keeper in self._keepers.values():
            space = keeper.program.space
            here = None if space is None else present[space]
            if here is not None:
                keeper.joined(is_there=keeper.program.participant in here)
            keeper.expect(_LATE_S)

    def _note(self) -> None:
        self._looking.set()
        self._changed()


def _is_awaited(keeper: Keeper) -> bool:
    phase = keeper.standing.phase
    return phase is Phase.WAITING or (phase is Phase.STARTING and not keeper.is_late)


def _why(gateway: Standing) -> str:
    if gateway.phase is Phase.FAILED:
        return f"the gateway cannot be started: {gateway.said}"
    return f"the gateway {gateway.said}"
