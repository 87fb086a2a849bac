"""What every question to the record needs: the journal, and the index of it brought up to date."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer

from mew.audit.record.index import Index, Progress, catch_up
from mew.cli.render.progress import progress
from mew.journal.files.database import Damaged
from mew.journal.files.locator import open_index
from mew.journal.port import JournalUnavailable
from mew.journal.reader import JournalReader
from mew.journal.recovery.wal import WalStatus
from mew.protocol.visible import visible

from .journal import Failed, damage, find_journal

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
    """The record, as far as it can be read. If some cannot, the answer is given all the same, and it ends with 1.

    Raises:
        Failed: there is no journal.
        JournalUnavailable: there is one, and the system says no.
    """
    folder, name = find_journal(config, journal, space)
    with open_index(folder) as locator, JournalReader(locator, name) as reader:
        record = Index(locator, name)
        wrong = _caught_up(reader, record)
        yield Asked(reader, record)
        if wrong is not None:
            typer.echo(
                f"mew audit: {visible(wrong, _WARNING_CHARS_MAX)}; the answer may lack something", err=True
            )
            raise typer.Exit(1)


def _caught_up(journal: JournalReader, record: Index) -> str | None:
    """What is in the way of it; None: nothing. A bar is shown only if it takes long."""
    with ExitStack() as bar:
        shown: list[Progress] = []

        def told(done: int, of: int) -> None:
            if not shown:
                shown.append(bar.enter_context(progress("reading the journal")))
            shown[0](done, of)

        try:
            catch_up(record.locator, told)
        except Damaged as error:
            return damage(error)
        except JournalUnavailable as error:
            return str(error)
    if journal.is_blind and journal.wal_status is not WalStatus.READ:
        return f"{journal.path}-wal could not be looked at"
    return record.unread()


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
