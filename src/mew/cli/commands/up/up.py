"""`mew up`: start everything that a space.yaml names, and keep it running."""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from mew.cli.errors import CommandError
from mew.cli.locate.login import SpaceFileOption
from mew.cli.locate.space_file import StatePaths, require_space_file

if TYPE_CHECKING:
    from mew.cli.locate.space_file import SpaceFile
    from mew.gateway.config.settings import Config
    from mew.supervise.prepare import Prepared
    from mew.supervise.supervisor import SpaceSupervisor

    from .display import Showing

__all__ = ["up"]

_FREE_S: Final = 15.0  # more than a reaper takes
_STEP_S: Final = 0.2


def up(
    config: SpaceFileOption = None,
    port: Annotated[
        int | None,
        typer.Option("--port", "-p", min=0, max=65_535, help="Port of the gateway; 0 for any free port."),
    ] = None,
    *,
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Run in the background; 'mew down' stops it.")
    ] = False,
    ephemeral: Annotated[
        bool, typer.Option("--ephemeral", help="Keep no journal: everything is lost when it stops.")
    ] = False,
) -> None:
    """Start the gateway, the bridges and the participants that a space.yaml names, and keep them running.

    Ctrl-C stops all of them. What each writes is in .mew/logs.

    Examples:
      mew up
      mew up -d && mew status && mew down
    """
    # Here, so that other commands start without them.
    from mew.gateway.config.value import ConfigError
    from mew.supervise.claim import Claimed, claim
    from mew.supervise.cleanup import end_leftovers
    from mew.supervise.prepare import logs_folder, prepare
    from mew.supervise.supervisor import GatewayNotStarted

    from .detach import detach as start_detached

    folder = require_space_file(config)
    read = folder.config
    is_first = not logs_folder(read.state_dir).exists()
    _wait_until_free(read)
    try:
        held = claim(read.state_dir)  # until the very end, so nobody closes it
        end_leftovers(read.state_dir)
        prepared = prepare(read, os.environ, port=port, ephemeral=ephemeral)
        for line in (*read.notes, *prepared.plan.notes):
            typer.echo(f"mew up: {line}", err=True)
        if detach:
            os.close(held)
            start_detached(folder, port, ephemeral=ephemeral, is_first=is_first)
            return
        with asyncio.Runner() as runner:
            runner.run(_run(folder, prepared, held, is_first=is_first))
    except Claimed:
        raise CommandError(
            f"another 'mew up' has just begun for {read.file}; 'mew status' shows it"
        ) from None
    except (ConfigError, GatewayNotStarted, PermissionError) as error:
        raise CommandError(str(error)) from error


def _wait_until_free(config: "Config") -> None:
    """The reaper of one that was killed may still be at work."""
    from mew.supervise.claim import until_free

    from .status import status_of

    deadline_s = time.monotonic() + _FREE_S
    while not until_free(config.state_dir, _STEP_S):
        if status_of(StatePaths(config.file, config.state_dir)) is not None or time.monotonic() > deadline_s:
            raise CommandError(f"another 'mew up' runs for {config.file}; 'mew down' ends it")


async def _run(folder: "SpaceFile", prepared: "Prepared", held: int, *, is_first: bool) -> None:
    from mew.supervise.control import listening
    from mew.supervise.supervisor import SpaceSupervisor

    from .display import Showing

    showing = Showing(prepared.url)
    async with prepared.watch as watch:
        supervisor = SpaceSupervisor(prepared.plan, prepared.environ, watch, showing.changed, held=held)
        async with listening(folder.config.state_dir, _answers(supervisor, prepared.url)):
            for number in (signal.SIGTERM, signal.SIGHUP):
                if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup has it
                    asyncio.get_running_loop().add_signal_handler(number, supervisor.stop)
            with showing.of(supervisor):
                await _run_and_tell(supervisor, _tell_link(folder, supervisor, showing) if is_first else None)


async def _run_and_tell(supervisor: "SpaceSupervisor", telling: Coroutine[Any, Any, None] | None) -> None:
    from mew.supervise.supervisor import GatewayNotStarted

    failed: GatewayNotStarted | None = None
    async with asyncio.TaskGroup() as tasks:
        task = None if telling is None else tasks.create_task(telling)
        try:
            await supervisor.run()
        except GatewayNotStarted as error:
            failed = error
        finally:
            if task is not None:
                task.cancel()
    if failed is not None:
        raise failed


async def _tell_link(folder: "SpaceFile", supervisor: "SpaceSupervisor", showing: "Showing") -> None:
    """For who looks on: a link is not for a file."""
    from .first_link import first_link

    await supervisor.settled.wait()
    if showing.is_terminal and (said := await first_link(folder, showing.url)) is not None:
        showing.say(said)


def _answers(supervisor: "SpaceSupervisor", url: str) -> Callable[[dict[str, Any]], Any]:
    """What `mew status`, `mew restart` and `mew down` are answered."""

    async def answer(question: dict[str, Any]) -> dict[str, Any]:
        match question:
            case {"ask": "status"}:
                return {
                    "url": url,
                    "pid": os.getpid(),
                    "settled": supervisor.settled.is_set(),
                    "programs": supervisor.standings,
                }
            case {"ask": "restart", "name": str(name)}:
                names = [one.name for one in supervisor.standings]
                if name not in names:
                    raise ValueError(f"no program {name!r} runs here; there is {', '.join(names)}")
                await supervisor.restart(name)
                return {}
            case {"ask": "down"}:
                supervisor.stop()
                return {"pid": os.getpid()}
        raise ValueError("unknown question")

    return answer
