"""What every question to the record needs: the journal, and the index of it brought up to date."""

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Final, NamedTuple

import typer

from mew.audit.catching_up import Progress, catch_up
from mew.audit.index import FILE, Index
from mew.audit.index_file import copy_file
from mew.log.ahead import Ahead
from mew.log.base import LogUnavailable
from mew.log.database import Damaged
from mew.log.reading import JournalReader
from mew.protocol.visible import visible

from .progress import progress
from .where import Failed, find_journal

__all__ = ["AsJson", "Limit", "Since", "Until", "Who", "asking", "plain"]

AsJson = Annotated[bool, typer.Option("--json", help="Say it as JSON, with times in UTC.")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=1_000_000, help="How many at most.")]
Since = Annotated[
    str | None,
    typer.Option(
        "--since",
        metavar="TIME",
        help="From then on: 2026-01-31, 2026-01-31T12:30:00Z, or 2h for so long ago.",
    ),
]
Until = Annotated[str | None, typer.Option("--until", metavar="TIME", help="Before then, written alike.")]
Who = Annotated[str | None, typer.Option("--who", metavar="NAME", help="Only what this participant did.")]

_WARNING_CHARS_MAX: Final = 2_000


class Asked(NamedTuple):
    """Where the answers are."""

    journal: JournalReader
    record: Index


@contextmanager
def asking(config: Path, journal: Path | None, space: str | None) -> Iterator[Asked]:
    """The record, as far as it can be read. Where some cannot, the answer is given all the same, and it ends with 1.

    Raises:
        Failed: there is no journal.
        LogUnavailable: there is one, and the system says no.
    """
    with ExitStack() as stack:
        folder = find_journal(config, journal, space)
        reader = stack.enter_context(JournalReader(folder))
        index = stack.enter_context(_index(folder, stack))
        wrong = _caught_up(reader, index)
        yield Asked(reader, index)
        if wrong is not None:
            typer.echo(
                f"mew audit: {visible(wrong, _WARNING_CHARS_MAX)}; the answer may lack something", err=True
            )
            raise typer.Exit(1)


def _index(folder: Path, stack: ExitStack) -> Index:
    """The index beside the journal; a copy of it for now, where it cannot be written."""
    try:
        return Index(folder)
    except LogUnavailable:
        elsewhere = Path(stack.enter_context(TemporaryDirectory(prefix="mew-audit-")))
        try:
            copy_file(folder / FILE, elsewhere / FILE)
        except FileNotFoundError:
            pass  # it is made from the journal
        except OSError as error:
            raise LogUnavailable(f"{folder / FILE}: {error.strerror}") from error
        except sqlite3.Error as error:
            raise LogUnavailable(f"{folder / FILE}: {error}") from error
        return Index(elsewhere)


def _caught_up(journal: JournalReader, index: Index) -> str | None:
    """What is in the way of it; None: nothing. Only who waits for long sees a bar."""
    with ExitStack() as bar:
        shown: list[Progress] = []

        def told(done: int, of: int) -> None:
            if not shown:
                shown.append(bar.enter_context(progress("reading the journal")))
            shown[0](done, of)

        try:
            catch_up(journal, index, told)
        except (Damaged, LogUnavailable) as error:
            return str(error)
    if journal.is_blind and journal.ahead is not Ahead.READ:
        return f"{journal.path}-wal could not be looked at"
    return None


def plain(option: str, written: str | None) -> str | None:
    """What an option says, if it is text at all: a shell may hand over any bytes.

    Raises:
        Failed: it is none.
    """
    if written is not None and not written.isascii():
        try:
            written.encode()
        except UnicodeEncodeError as error:
            raise Failed(f"{option}: that is not UTF-8") from error
    return written
