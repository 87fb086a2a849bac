"""A bar on stderr for what takes long, where somebody sits at a terminal to see it."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

__all__ = ["counting", "progress", "steps"]


@contextmanager
def progress(what: str, *, hidden: bool = False) -> Iterator[Callable[[int, int], None]]:
    """Gives a function that is told how much is done, and of how much (0: nobody knows)."""
    console = Console(stderr=True)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
        disable=hidden or not console.is_terminal,
    ) as bar:
        task = bar.add_task(what, total=None)

        def told(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total or None)

        yield told


_EVERY_S: Final = 10.0


@contextmanager
def counting(total: int, now_s: Callable[[], float] = time.monotonic) -> Iterator[Callable[[object], None]]:
    """Gives a function that is called as each check begins."""
    begun, told_s = 0, now_s()
    with progress("trying") as tell:

        def begins(check: object) -> None:
            nonlocal begun, told_s
            tell(begun, total)
            if not sys.stderr.isatty() and now_s() - told_s >= _EVERY_S:
                told_s = now_s()
                typer.echo(f"mew conform: {begun} of {total} checks", err=True)
            begun += 1

        yield begins


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
