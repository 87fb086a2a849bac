"""`mew upgrade --check`: whether this version can take over what another one wrote."""

from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from mew.audit.proof.verify import verify_journal
from mew.cli.errors import CommandError, ExitCode
from mew.cli.locate.login import SpaceFileOption
from mew.cli.locate.space_file import require_space_file
from mew.cli.render.text import say
from mew.journal.errors import Damaged
from mew.journal.files.database import FILE
from mew.journal.files.locator import open_index
from mew.journal.port import JournalUnavailable
from mew.journal.reader import JournalReader, spaces_in_journal
from mew.space import Space

from .backup import copy_journal

__all__ = ["replayed", "upgrade"]


def upgrade(
    config: SpaceFileOption = None,
    *,
    check: Annotated[
        bool, typer.Option("--check", help="Read everything on a copy, as a gateway that starts would.")
    ] = False,
) -> None:
    """Check whether this version of mew can read a space.yaml and its journal.

    Install the new version in an environment of its own and run it there, while the old gateway still runs. Nothing
    is changed: the journal is copied, verified and replayed. Exit code 1: this version cannot read it.

    Example: mew upgrade --check
    """
    if not check:
        raise CommandError("mew does not replace itself: install the new version with pip, then use --check")
    file = require_space_file(config)
    say(f"ok       {file.path.name}: mew {version('mew-protocol')} reads it")
    journal = file.config.journal
    if journal is None or not (journal.folder / FILE).exists():
        say("ok       journal: there is none yet")
        return
    with TemporaryDirectory(prefix="mew-upgrade-") as made:
        copy = Path(made, "journal")
        try:
            copy_journal(journal.folder, copy)
            for space in spaces_in_journal(copy):
                say(f"ok       {space}: {replayed(copy, space):,} entries replayed")
        except (Damaged, JournalUnavailable) as error:
            say(f"PROBLEM  journal: {error}".replace(str(copy), str(journal.folder)))
            raise typer.Exit(ExitCode.NO) from None


def replayed(folder: Path, space: str) -> int:
    """Verify the journal of a space and apply its entries; return how many there are.

    Raises:
        Damaged: an entry is not sound, or none that this version knows.
        JournalUnavailable: the file is of another format.
    """
    verdict = verify_journal(folder, space)
    if verdict.broken is not None:
        raise Damaged(verdict.broken.why)
    with open_index(folder) as locator, JournalReader(locator, space) as reader:
        state = reader.state_before(reader.begin.seq + 1)
        machine = Space(state)
        for entry in reader.entries(state.seq):
            machine.apply(entry)
    return verdict.entries
