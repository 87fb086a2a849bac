"""How a command that looks at a journal says no: one sentence on stderr, exit code 2, and no traceback."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from mew.log.base import LogUnavailable
from mew.log.database import Damaged
from mew.protocol.visible import visible

from .ending import Exit
from .where import Failed

__all__ = ["told"]

_SENTENCE_CHARS_MAX = 2_000


@contextmanager
def told(command: str = "mew audit") -> Iterator[None]:
    """Also a decorator, `@told()`, under which Typer still sees the parameters of the function."""
    try:
        yield
    except (Failed, LogUnavailable, Damaged) as error:
        typer.echo(f"{command}: {visible(str(error), _SENTENCE_CHARS_MAX)}", err=True)
        raise typer.Exit(Exit.WRONG) from None
