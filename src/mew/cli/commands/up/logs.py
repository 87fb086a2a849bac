"""`mew logs`: what the programs of `mew up` wrote."""

import os
import time
from pathlib import Path
from typing import Annotated, Final

import typer

from mew.cli import completion
from mew.cli.errors import CommandError
from mew.cli.locate.login import SpaceFileOption
from mew.cli.locate.space_file import state_paths
from mew.protocol.visible import visible
from mew.supervise.logs import last_lines, size_of
from mew.supervise.prepare import logs_folder

__all__ = ["logs"]

_STEP_S: Final = 0.1
_LINE_CHARS_MAX: Final = 10_000
_READ_BYTES: Final = 1 << 20


def logs(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="The program, as 'mew status' names it. Default: all of them.",
            autocompletion=completion.logs,
        ),
    ] = None,
    config: SpaceFileOption = None,
    lines: Annotated[
        int, typer.Option("--lines", "-n", min=0, help="Show this many lines of each log.")
    ] = 20,
    *,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep showing new lines.")] = False,
) -> None:
    """Show the logs of the programs that 'mew up' runs.

    Examples:
      mew logs -n 50
      mew logs -f files
    """
    folder = logs_folder(state_paths(config).state_dir)
    files = _files(folder)
    if name is not None and name not in files:
        there = f"there is {', '.join(files)}" if files else "nothing was started here yet"
        raise CommandError(f"no log of {name!r}; {there}")
    if name is not None:
        files = {name: files[name]}
    at = {one: size_of(path) for one, path in files.items()}
    for one, path in files.items():
        for line in last_lines(path, lines):
            _say(one, line, alone=len(files) == 1)
    while follow:
        time.sleep(_STEP_S)
        for one, path in (files if name is not None else _files(folder)).items():
            at[one] = _say_since(one, path, at.get(one, 0), alone=name is not None)


def _files(folder: Path) -> dict[str, Path]:
    return {path.stem: path for path in sorted(folder.glob("*.log"))}


def _say_since(name: str, path: Path, start: int, *, alone: bool) -> int:
    """Whole lines only; returns where the next begins."""
    size = size_of(path)
    if size == start:
        return start
    if size < start:
        start = 0  # it was put aside, and begins anew
    with path.open("rb") as file:
        file.seek(start, os.SEEK_SET)
        written = file.read(_READ_BYTES)
    whole, newline, rest = written.rpartition(b"\n")
    if not newline and len(rest) == _READ_BYTES:
        whole = rest  # a line of that length is shown in parts
    for line in whole.decode(errors="replace").split("\n") if whole or newline else ():
        _say(name, line, alone=alone)
    return start + len(whole) + len(newline)


def _say(name: str, line: str, *, alone: bool) -> None:
    text = visible(line, _LINE_CHARS_MAX)
    typer.echo(text if alone else f"{name}: {text}")
