"""`mew status`, `mew restart`, `mew down`: what a running `mew up` is asked."""

import asyncio
import os
import time
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import typer

from mew.cli.errors import told
from mew.cli.locate.gateway import NearConfig
from mew.cli.locate.journal import Failed
from mew.cli.locate.state_folder import Kept, kept_of
from mew.cli.render.table import console, put
from mew.cli.render.text import say_json
from mew.supervise.claim import Claimed, claim, is_claimed, until_free
from mew.supervise.control import Ask, ask
from mew.supervise.leftovers import end_leftovers
from mew.supervise.program import Phase, Standing

from .program_table import programs_table

__all__ = ["down", "restart", "standings_of", "status", "status_of"]

Json = Annotated[bool, typer.Option("--json", help="Say it as JSON, for programs.")]
_DOWN_S: Final = 30.0
_STEP_S: Final = 0.05
_ANSWER_S: Final = 5.0
_RESTART_S: Final = 20.0  # more than a program is given to end


def status_of(config: Kept) -> dict[str, Any] | None:
    """What the `mew up` of a space.yaml says of itself; None where none runs."""
    return _ask(config, {"ask": "status"})


def standings_of(found: dict[str, Any]) -> list[Standing]:
    """The programs in what `status_of` returned."""
    return msgspec.convert(found["programs"], list[Standing])


@told("mew status")
def status(config: NearConfig = None, *, as_json: Json = False) -> None:
    """Show what 'mew up' runs here, and how it is doing. Exit code 1 where something has failed or none runs.

    Examples:
      mew status
      mew status --json
    """
    read = kept_of(config)
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


@told("mew restart")
def restart(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The program, as 'mew status' names it.")],
    config: NearConfig = None,
) -> None:
    """End one program of 'mew up', and start it again.

    Example: mew restart files
    """
    read = kept_of(config)
    try:
        answer = _ask(read, {"ask": "restart", "name": name}, _RESTART_S)
    except ValueError as error:
        raise Failed(str(error)) from error
    if answer is None:
        raise Failed(f"nothing runs for {read.file}; 'mew up' starts it")
    typer.echo(f"{name} is started again")


@told("mew down")
def down(config: NearConfig = None) -> None:
    """Stop everything that 'mew up' runs here; returns when all of it has ended.

    Example: mew down
    """
    read = kept_of(config)
    is_asked = _ask(read, {"ask": "down"}) is not None
    if not is_asked and not is_claimed(read.state_dir):
        ended = _end_leftovers(read.state_dir)
        typer.echo("what was left has ended" if ended else f"nothing runs for {read.file}")
        return
    deadline_s = time.monotonic() + _DOWN_S
    while not until_free(read.state_dir, _STEP_S):
        if not is_asked:  # it had only just begun; or its warden ends what it left
            is_asked = _ask(read, {"ask": "down"}) is not None
        if time.monotonic() > deadline_s:
            raise Failed(f"not everything has ended after {_DOWN_S:g} s; 'mew status' shows what runs")
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


def _ask(config: Kept, question: Ask, within_s: float = _ANSWER_S) -> dict[str, Any] | None:
    try:
        return asyncio.run(ask(config.state_dir, question, within_s=within_s))
    except TimeoutError:
        raise Failed(
            f"the 'mew up' of {config.file} does not answer; was it halted, with Ctrl-Z? 'fg' lets it go on"
        ) from None
