"""`mew up`: start everything that a space.yaml names, and keep it running."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.console import Console
from rich.live import Live

from mew.cli.reach import NearConfig
from mew.cli.telling import told
from mew.cli.where import Failed

from .table import programs_table

if TYPE_CHECKING:
    from mew.gateway.config import Config
    from mew.supervise.preparing import Prepared
    from mew.supervise.supervisor import Supervisor

__all__ = ["up"]

_REFRESH_S: Final = 0.5
_DETACHED_S: Final = 60.0
_DETACHED: Final = "MEW_UP_DETACHED"


@told("mew up")
def up(
    config: NearConfig = None,
    port: Annotated[
        int | None,
        typer.Option("--port", "-p", min=0, max=65_535, help="Where the gateway listens; 0: any free port."),
    ] = None,
    *,
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Run in the background; 'mew down' ends it.")
    ] = False,
    ephemeral: Annotated[
        bool, typer.Option("--ephemeral", help="Keep no journal: everything is forgotten at the end.")
    ] = False,
) -> None:
    """Start the gateway, the bridges and the participants that a space.yaml names, and keep them running.

    Ctrl-C stops all of them. What each writes is in .mew/logs.

    Examples:
      mew up
      mew up -d && mew status && mew down
    """
    # Here, so that other commands start without them.
    from mew.gateway.config_node import ConfigError
    from mew.supervise.preparing import prepare
    from mew.supervise.supervisor import NotStarted

    from .finding import configured

    read = configured(config)
    if detach and _DETACHED not in os.environ:
        _detach(read, port, ephemeral=ephemeral)
        return
    environ = {name: value for name, value in os.environ.items() if name != _DETACHED}
    try:
        prepared = prepare(read, environ, port=port, ephemeral=ephemeral)
        for line in prepared.plan.notes:
            typer.echo(f"mew up: {line}", err=True)
        with asyncio.Runner() as runner:
            runner.run(_run(read, prepared))
    except (ConfigError, NotStarted, FileExistsError, PermissionError) as error:
        raise Failed(str(error)) from error


async def _run(config: "Config", prepared: "Prepared") -> None:
    from mew.supervise.control import listening
    from mew.supervise.supervisor import Supervisor

    showing = _Showing(prepared.url)
    async with prepared.watch as watch:
        supervisor = Supervisor(prepared.plan, prepared.environ, watch, showing.changed)
        async with listening(config.state_dir, _answers(supervisor, prepared.url)):
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGHUP):
                loop.add_signal_handler(number, supervisor.stop)
            with showing.of(supervisor):
                await supervisor.run()


def _answers(supervisor: "Supervisor", url: str) -> Callable[[dict[str, Any]], Any]:
    """What `mew status`, `mew restart` and `mew down` are answered."""

    async def answer(question: dict[str, Any]) -> dict[str, Any]:
        match question:
            case {"ask": "status"}:
                programs = [one.as_dict() for one in supervisor.standings]
                return {
                    "url": url,
                    "pid": os.getpid(),
                    "settled": supervisor.settled.is_set(),
                    "programs": programs,
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


class _Showing:
    """A live table on a terminal; a line for each change elsewhere."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._console = Console(stderr=True)
        self._live: Live | None = None
        self._supervisor: Supervisor | None = None
        self._said: dict[str, str] = {}
        self._told = False

    def of(self, supervisor: "Supervisor") -> ExitStack:
        stack = ExitStack()
        self._supervisor = supervisor
        if self._console.is_terminal:
            self._live = stack.enter_context(
                Live(
                    get_renderable=lambda: programs_table(one.as_dict() for one in supervisor.standings),
                    console=self._console,
                    refresh_per_second=1 / _REFRESH_S,
                )
            )
        return stack

    def changed(self) -> None:
        if self._supervisor is None:
            return
        if self._supervisor.settled.is_set() and not self._told:
            self._told = True
            text = f"The space is up at {self._url}. Ctrl-C, or 'mew down', stops it."
            self._console.print(text, highlight=False, soft_wrap=True)
        if self._live is not None:
            self._live.refresh()
            return
        for one in self._supervisor.standings:
            line = f"{one.name}: {one.phase.value}" + (
                f" ({one.said})" if one.said and not one.joined else ""
            )
            if self._said.get(one.name) != line:
                self._said[one.name] = line
                typer.echo(line, err=True)


def _detach(config: "Config", port: int | None, *, ephemeral: bool) -> None:
    """Start the same in a session of its own; return when it is up, or say why it is not."""
    from mew.supervise.logs import last_lines, open_log
    from mew.supervise.preparing import logs_folder

    from .asking import status_of

    argv = [sys.executable, "-m", "mew", "up", "--config", str(config.file)]
    argv += [] if port is None else ["--port", str(port)]
    argv += ["--ephemeral"] if ephemeral else []
    log = logs_folder(config) / "up.log"
    if status_of(config) is not None:
        raise Failed(f"another 'mew up' runs for {config.file}; 'mew down' ends it")
    with open_log(log) as output:
        running = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            env={**os.environ, _DETACHED: "1"},
        )
    deadline_s = time.monotonic() + _DETACHED_S
    while time.monotonic() < deadline_s:
        if running.poll() is not None:
            said = " ".join(last_lines(log, 1))
            raise Failed(said.removeprefix("mew up: ") or f"it ended at once; see {log}")
        found = status_of(config)
        if found is not None and found["settled"]:
            _tell_detached(found)
            return
        time.sleep(_REFRESH_S / 5)
    typer.echo(f"mew up: not everything is up after {_DETACHED_S:g} s; look with 'mew status'", err=True)


def _tell_detached(found: dict[str, Any]) -> None:
    console = Console(stderr=True)
    console.print(programs_table(found["programs"]))
    console.print(f"The space is up at {found['url']}. 'mew down' stops it.", highlight=False, soft_wrap=True)
