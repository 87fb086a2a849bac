"""`mew completion`: have a shell complete what is typed after `mew`."""

import os
from pathlib import Path
from typing import Annotated

import typer

from mew.cli.completion_scripts import MARK, Shell, place_of, script_of
from mew.cli.errors import told
from mew.cli.files import whole_file
from mew.cli.locate.journal import Failed

__all__ = ["completion"]


@told("mew completion")
def completion(
    shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")],
    *,
    install: Annotated[
        bool, typer.Option("--install", help="Put it where the shell looks, and say what was done.")
    ] = False,
) -> None:
    """Print what makes a shell complete commands, options, names and ids of mew, or install it.

    Participants, tools and proposals are those of the gateway that runs here; nobody in the space notices.

    Examples:
      mew completion bash --install
      source <(mew completion bash)
      mew completion fish | source
    """
    if not install:
        typer.echo(script_of(shell), nl=False)
        return
    place = place_of(shell, Path.home(), os.environ)
    _write(place.script, script_of(shell))
    if place.startup is not None:
        _add(place.startup, place.line)
    typer.echo(f"it takes effect in the next {shell} that you start")


def _write(path: Path, script: str) -> None:
    if path.exists() and MARK not in _read(path):
        raise Failed(f"{path}: is there, and not from mew; move it away first")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Failed(f"{path.parent}: {error.strerror}") from error
    with whole_file(path, force=True) as file:
        file.write(script.encode())
    typer.echo(f"wrote {path}")


def _add(startup: Path, line: str) -> None:
    """A line to what the shell reads when it starts, once; a link to such a file stays one."""
    if startup.exists() and line in _read(startup).splitlines():
        typer.echo(f"kept  {startup}, which has the line that loads it")
        return
    try:
        with startup.open("a", encoding="utf-8") as file:
            file.write(f"\n# completion of mew\n{line}\n")
    except OSError as error:
        raise Failed(f"{startup}: {error.strerror}") from error
    typer.echo(f"added to {startup}:\n  {line}")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise Failed(f"{path}: {error.strerror}") from error
