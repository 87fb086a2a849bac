"""`mew logs`: what the programs of `mew up` wrote."""

import os
import time
from pathlib import Path
from typing import Annotated, Final

import typer

from mew.cli.reach import NearConfig
from mew.cli.telling import told
from mew.cli.where import Failed
from mew.protocol.visible import visible
from mew.supervise.logs import last_lines
from mew.supervise.preparing import logs_folder

from .finding import configured

__all__ = ["logs"]

_STEP_S: Final = 0.1
_LINE_CHARS_MAX: Final = 10_000


@told("mew logs")
def logs(
    name: Annotated[
        str | None, typer.Argument(help="Of the program, as 'mew status' shows it; without, all.")
    ] = None,
    config: NearConfig = None,
    lines: Annotated[
        int, typer.Option("--lines", "-n", min=0, help="How many of the last lines of each.")
    ] = 20,
    *,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with what is written from now on.")
    ] = False,
) -> None:
    """Show what programs of 'mew up' wrote.

    Example: mew logs -f files
    """
    folder = logs_folder(configured(config))
    names = sorted(path.stem for path in folder.glob("*.log"))
    if name is not None and name not in names:
        there = f"there is {', '.join(names)}" if names else "nothing was started here yet"
        raise Failed(f"no log of {name!r}; {there}")
    files = {one: folder / f"{one}.log" for one in (names if name is None else [name])}
    alone = len(files) == 1
    for one, path in files.items():
        for line in last_lines(path, lines):
            _say(one, line, alone=alone)
    if follow:
        _follow(files, alone=alone)


def _follow(files: dict[str, Path], *, alone: bool) -> None:
    at = {one: path.stat().st_size for one, path in files.items()}
    while True:
        for one, path in files.items():
            size = path.stat().st_size
            if size < at[one]:
                at[one] = 0  # it was put aside, and begins anew
            if size > at[one]:
                at[one] = _say_since(one, path, at[one], alone=alone)
        time.sleep(_STEP_S)


def _say_since(name: str, path: Path, start: int, *, alone: bool) -> int:
    """Whole lines only; returns where the next begins."""
    with path.open("rb") as file:
        file.seek(start, os.SEEK_SET)
        written = file.read(1 << 20)
    whole, newline, _ = written.rpartition(b"\n")
    for line in whole.decode(errors="replace").split("\n") if newline else ():
        _say(name, line, alone=alone)
    return start + len(whole) + len(newline)


def _say(name: str, line: str, *, alone: bool) -> None:
    text = visible(line, _LINE_CHARS_MAX)
    typer.echo(text if alone else f"{name}: {text}")
