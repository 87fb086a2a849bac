"""`mew status`, `mew restart`, `mew down`: what a running `mew up` is asked."""

import asyncio
import os
import time
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import typer

from mew.cli import completion
from mew.cli.errors import CommandError
from mew.cli.locate.login import SpaceFileOption
from mew.cli.locate.space_file import StatePaths, state_paths
from mew.cli.render.table import console, put
from mew.cli.render.text import say_json
from mew.supervise.claim import Claimed, claim, is_claimed, until_free
from mew.supervise.cleanup import end_leftovers
from mew.supervise.control import Ask, ask
from mew.supervise.program import Phase, ProgramStatus

from .program_table import programs_table

__all__ = ["down", "restart", "standings_of", "status", "status_of"]

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
_DOWN_S: Final = 30.0
_STEP_S: Final = 0.05
_ANSWER_S: Final = 5.0
_RESTART_S: Final = 20.0  # more than a program is given to end


def status_of(config: StatePaths) -> dict[str, Any] | None:
    """What the `mew up` of a space.yaml says of itself; None where none runs."""
    return _ask(config, {"ask": "status"})


def standings_of(found: dict[str, Any]) -> list[ProgramStatus]:
    """The programs in what `status_of` returned."""
    return msgspec.convert(found["programs"], list[ProgramStatus])


def status(config: SpaceFileOption = None, *, as_json: Json = False) -> None:
    """Show the programs that 'mew up' runs here. Exit code 1 if one has failed, or none runs.

    Examples:
      mew status
      mew status --json
    """
    read = state_paths(config)
    found = status_of(read)
    if found is None:
        if as_json:
            say_json({"url": None, "programs": []})
        elif is_claimed(read.state_dir):
            typer.echo(f"the 'mew up' of {read.file} is just beginning, or ending")
        else:
            typer.echo(f"nothing runs for {read.file}; 'mew up' starts it")
        raise typer.Exit(1)
    if as_json:
        say_json(found)
    else:
        put(console(), programs_table(standings_of(found)))
        typer.echo(f"at {found['url']}")
    if any(one.phase in (Phase.FAILED, Phase.AGAIN) for one in standings_of(found)):
        raise typer.Exit(1)


def restart(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="The program, as 'mew status' names it.", autocompletion=completion.programs
        ),
    ],
    config: SpaceFileOption = None,
) -> None:
    """Restart one program of 'mew up'.

    Example: mew restart files
    """
    read = state_paths(config)
    try:
        answer = _ask(read, {"ask": "restart", "name": name}, _RESTART_S)
    except ValueError as error:
        raise CommandError(str(error)) from error
    if answer is None:
        raise CommandError(f"nothing runs for {read.file}; 'mew up' starts it")
    typer.echo(f"{name} is started again")


def down(config: SpaceFileOption = None) -> None:
    """Stop everything that 'mew up' runs here, and wait until it has ended.

    Example: mew down
    """
    read = state_paths(config)
    is_asked = _ask(read, {"ask": "down"}) is not None
    if not is_asked and not is_claimed(read.state_dir):
        ended = _end_leftovers(read.state_dir)
        typer.echo("what was left has ended" if ended else f"nothing runs for {read.file}")
        return
    deadline_s = time.monotonic() + _DOWN_S
    while not until_free(read.state_dir, _STEP_S):
        if not is_asked:  # it had only just begun; or its reaper ends what it left
            is_asked = _ask(read, {"ask": "down"}) is not None
        if time.monotonic() > deadline_s:
            raise CommandError(f"not everything has ended after {_DOWN_S:g} s; 'mew status' shows what runs")
    _end_leftovers(read.state_dir)
    typer.echo("everything has ended")


def _end_leftovers(folder: Path) -> bool:
    if not folder.is_dir():
        return False
    try:
        held = claim(folder)
    except Claimed:
        return False  # another has begun in the meantime, and has done it
    try:
        return end_leftovers(folder)
    finally:
        os.close(held)


def _ask(config: StatePaths, question: Ask, within_s: float = _ANSWER_S) -> dict[str, Any] | None:
    try:
        return asyncio.run(ask(config.state_dir, question, within_s=within_s))
    except TimeoutError:
        raise CommandError(
            f"the 'mew up' of {config.file} does not answer; was it halted, with Ctrl-Z? 'fg' lets it go on"
        ) from None
