"""Find a journal: in the folder that is named, or in that of the space.yaml; and open it for queries."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from mew.audit.record.index import Index, Progress, catch_up
from mew.cli.errors import CommandError, ExitCode
from mew.cli.render.escape import escape_lines
from mew.cli.render.progress import progress
from mew.journal.errors import Damaged
from mew.journal.files.database import FILE
from mew.journal.files.locator import open_index
from mew.journal.port import JournalUnavailable
from mew.journal.reader import JournalReader, spaces_in_journal
from mew.journal.recovery.wal import WalStatus

__all__ = ["ConfigOption", "JournalOption", "OpenJournal", "damage", "find_journal", "open_journal"]

ConfigOption = Annotated[
    Path, typer.Option("--config", "-c", metavar="PATH", help="The space.yaml whose journal to read.")
]
JournalOption = Annotated[
    Path | None,
    typer.Option("--journal", metavar="FOLDER", help="The folder of the journal, instead of a space.yaml."),
]

_WARNING_CHARS_MAX: Final = 2_000


@dataclass(frozen=True, slots=True)
class OpenJournal:
    """A journal, and the index of it."""

    reader: JournalReader
    index: Index


def find_journal(
    config: Path, journal: Path | None, space: str | None, *, choose: str = "with --space"
) -> tuple[Path, str]:
    """Return the folder of the journal, and the space; `choose` says how to name a space to this command.

    Raises:
        CommandError: there is none, or there are several and none is named.
    """
    folder = _configured(config) if journal is None else journal
    try:
        spaces = spaces_in_journal(folder)
    except Damaged as error:
        raise CommandError(damage(error, folder)) from error
    if not spaces:
        raise CommandError(f"{folder}: there is no journal here; name its folder with --journal")
    if space is None and len(spaces) > 1:
        raise CommandError(
            f"{folder} has the journals of several spaces; choose one {choose}: {', '.join(spaces)}"
        )
    if space is not None and space not in spaces:
        raise CommandError(f"{folder} has no journal of space {space!r}; it has {', '.join(spaces)}")
    return folder, space or spaces[0]


@contextmanager
def open_journal(config: Path, journal: Path | None, space: str | None) -> Iterator[OpenJournal]:
    """Open a journal with its index up to date. If part of it cannot be read, warn at the end and exit with 1.

    Raises:
        CommandError: there is none.
        JournalUnavailable: the system refuses.
    """
    folder, name = find_journal(config, journal, space)
    with open_index(folder) as locator, JournalReader(locator, name) as reader:
        index = Index(locator, name)
        wrong = _catch_up(reader, index)
        yield OpenJournal(reader, index)
        if wrong is not None:
            typer.echo(
                f"mew audit: {escape_lines(wrong, _WARNING_CHARS_MAX)}; the answer may be incomplete",
                err=True,
            )
            raise typer.Exit(ExitCode.NO)


def damage(error: Damaged, folder: Path | None = None) -> str:
    """Say that a journal is damaged, and what to do. SQLite does not say whether it is the journal or its index."""
    if folder is None and error.path is not None:
        folder = error.path.parent
    if folder is None:
        return str(error)
    return (
        f"the journal in {folder} is damaged: {error}; restore {FILE} from a backup, or start the gateway, which"
        " keeps the damaged file under another name and continues with what can be read"
    )


def _configured(config: Path) -> Path:
    # Slow to import, and not needed if a folder is named.
    from mew.gateway.config.loader import load_config
    from mew.gateway.config.value import ConfigError

    try:
        journal = load_config(config, os.environ).journal
    except ConfigError as error:
        raise CommandError(f"{error}; or name the folder of the journal with --journal") from error
    if journal is None:
        raise CommandError(f"{config} has 'journal: off': there is no journal to read")
    return journal.folder


def _catch_up(reader: JournalReader, index: Index) -> str | None:
    """Bring the index up to date; return what could not be read. Show a progress bar only if it takes long."""
    with ExitStack() as bar:
        shown: list[Progress] = []

        def advance(done: int, total: int) -> None:
            if not shown:
                shown.append(bar.enter_context(progress("reading the journal")))
            shown[0](done, total)

        try:
            catch_up(index.locator, advance)
        except Damaged as error:
            return damage(error)
        except JournalUnavailable as error:
            return str(error)
    if reader.is_blind and reader.wal_status is not WalStatus.READ:
        return f"{reader.path}-wal could not be checked"
    return index.unread()
