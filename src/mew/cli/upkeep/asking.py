"""`mew status`, `mew restart`, `mew down`: what a running `mew up` is asked."""

import asyncio
import os
import time
from contextlib import suppress
from typing import Annotated, Any, Final

import typer

from mew.cli.reach import NearConfig
from mew.cli.tables import console, put, written_json
from mew.cli.telling import told
from mew.cli.where import Failed
from mew.gateway.config import Config
from mew.supervise.control import ask

from .finding import configured
from .table import programs_table

__all__ = ["down", "restart", "status", "status_of"]

Json = Annotated[bool, typer.Option("--json", help="As JSON, for programs.")]
_DOWN_S: Final = 30.0
_STEP_S: Final = 0.05


def status_of(config: Config) -> dict[str, Any] | None:
    """What the `mew up` of a space.yaml says of itself; None where none runs."""
    return _ask(config, {"ask": "status"})


@told("mew status")
def status(config: NearConfig = None, *, as_json: Json = False) -> None:
    """Show what 'mew up' runs here, and how it is doing. Exit code 1 where something has failed or none runs.

    Example: mew status --json
    """
    read = configured(config)
    found = status_of(read)
    if found is None:
        if as_json:
            typer.echo(written_json({"url": None, "programs": []}))
        else:
            typer.echo(f"nothing runs for {read.file}; 'mew up' starts it")
        raise typer.Exit(1)
    if as_json:
        typer.echo(written_json(found))
    else:
        put(console(), programs_table(found["programs"]))
        typer.echo(f"at {found['url']}")
    if any(one["phase"] in ("failed", "again soon") for one in found["programs"]):
        raise typer.Exit(1)


@told("mew restart")
def restart(
    name: Annotated[str, typer.Argument(help="Of the program, as 'mew status' shows it.")],
    config: NearConfig = None,
) -> None:
    """End one program of 'mew up', and start it again.

    Example: mew restart files
    """
    read = configured(config)
    try:
        answer = _ask(read, {"ask": "restart", "name": name})
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
    read = configured(config)
    answer = _ask(read, {"ask": "down"})
    if answer is None:
        typer.echo(f"nothing runs for {read.file}")
        return
    deadline_s = time.monotonic() + _DOWN_S
    while _is_alive(answer["pid"]):
        if time.monotonic() > deadline_s:
            raise Failed(f"process {answer['pid']} has not ended after {_DOWN_S:g} s")
        time.sleep(_STEP_S)
    typer.echo("everything has ended")


def _ask(config: Config, question: dict[str, Any]) -> dict[str, Any] | None:
    try:
        return asyncio.run(ask(config.state_dir, question))
    except TimeoutError:
        raise Failed(f"the 'mew up' of {config.file} does not answer") from None


def _is_alive(pid: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False
