"""`mew up -d`: the same in a session of its own."""

import asyncio
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any, Final

import typer
from rich.console import Console

from mew.cli.errors import CommandError
from mew.cli.locate.space_file import StatePaths

from .display import how_to_go_on
from .first_link import first_link
from .program_table import programs_table
from .status import standings_of, status_of

if TYPE_CHECKING:
    from mew.cli.locate.space_file import SpaceFile

__all__ = ["detach"]

_UP_S: Final = 60.0
_STEP_S: Final = 0.1


def detach(folder: "SpaceFile", port: int | None, *, ephemeral: bool, is_first: bool) -> None:
    """Return when it is up.

    Raises:
        CommandError: it is not; the sentence is what it said.
    """
    from mew.supervise.logs import last_line, open_log, size_of

    config = folder.config
    argv = [sys.executable, "-m", "mew", "up", "--config", str(config.file)]
    argv += [] if port is None else ["--port", str(port)]
    argv += ["--ephemeral"] if ephemeral else []
    log = config.state_dir / "up.log"  # not among those of the programs, one of which may be called so
    before = size_of(log)
    with open_log(log) as output:
        running = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    deadline_s = time.monotonic() + _UP_S
    while time.monotonic() < deadline_s:
        has_ended = running.poll() is not None
        found = status_of(StatePaths(config.file, config.state_dir))
        if has_ended and found is not None:  # its words are the last in the log
            raise CommandError(f"another 'mew up' has just begun for {config.file}; 'mew status' shows it")
        if has_ended:
            said = last_line(log, before).removeprefix("mew up: ")
            raise CommandError(said or f"it ended at once; see {log}")
        if found is not None and found["settled"]:
            _tell(folder, found, is_first=is_first)
            return
        time.sleep(_STEP_S)
    typer.echo(f"mew up: not everything is up after {_UP_S:g} s; look with 'mew status'", err=True)


def _tell(folder: "SpaceFile", found: dict[str, Any], *, is_first: bool) -> None:
    console = Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)
    standings = standings_of(found)
    console.print(programs_table(standings), soft_wrap=False)
    console.print(how_to_go_on(found["url"], standings, stop="'mew down'"))
    if is_first and console.is_terminal:  # a link is not for a file
        link = asyncio.run(first_link(folder, found["url"]))
        if link is not None:
            console.print(link)
