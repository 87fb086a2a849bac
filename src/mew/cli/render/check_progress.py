"""How far a run of the conformance kit is: a bar at a terminal, and a line now and then where there is none."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import typer

from .progress import progress

__all__ = ["counting"]

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
