"""How a command that looks at a journal says no: one sentence on stderr, exit code 2, and no traceback."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from mew.journal.files.database import Damaged
from mew.journal.port import JournalUnavailable
from mew.protocol.visible import visible

from .exit_codes import Exit
from .locate.journal import Failed, damage

__all__ = ["told"]

_SENTENCE_CHARS_MAX = 2_000


@contextmanager
def told(command: str = "mew audit") -> Iterator[None]:
    """Also a decorator, `@told()`, under which Typer still sees the parameters of the function."""
    try:
        yield
    except (Failed, JournalUnavailable, Damaged) as error:
        sentence = damage(error) if isinstance(error, Damaged) else str(error)
        typer.echo(f"{command}: {visible(sentence, _SENTENCE_CHARS_MAX)}", err=True)
        raise typer.Exit(Exit.WRONG) from None
