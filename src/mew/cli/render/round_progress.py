"""How far a measurement is: a line on stderr, changed between rounds only: a bar that moves would be measured."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import typer

__all__ = ["steps"]

_CLEAR: Final = "\r\x1b[2K"


@contextmanager
def steps(what: str, of: int) -> Iterator[Callable[[], None]]:
    """Gives a function that is called after each round; at a terminal nothing is left of the line in the end."""
    is_terminal = bool(sys.stderr and sys.stderr.isatty())
    done = 0

    def one_more() -> None:
        nonlocal done
        done += 1
        if is_terminal:
            typer.echo(f"{_CLEAR}{what}: round {done} of {of}", err=True, nl=False)

    typer.echo(f"{what} …", err=True, nl=not is_terminal)
    try:
        yield one_more
    finally:
        if is_terminal:
            typer.echo(_CLEAR, err=True, nl=False)
