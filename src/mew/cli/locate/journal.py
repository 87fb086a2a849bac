"""Where a command finds the journal it is asked about: a folder that is named, or that of the space.yaml."""

import os
from pathlib import Path
from typing import Annotated

import typer

from mew.journal.files.database import FILE, Damaged
from mew.journal.port import JournalUnavailable
from mew.journal.reader import spaces_in_journal

__all__ = ["Config", "Failed", "Journal", "SpaceName", "damage", "find_journal"]

Config = Annotated[Path, typer.Option("--config", "-c", help="The space.yaml whose journal it is.")]
Journal = Annotated[
    Path | None, typer.Option("--journal", help="The folder of the journals, instead of a space.yaml.")
]
SpaceName = Annotated[
    str | None,
    typer.Option("--space", "-s", metavar="NAME", help="The space; needed where there are several."),
]


class Failed(Exception):
    """A command cannot do what it was asked; the message says why, and what to do."""


def find_journal(
    config: Path, journal: Path | None, space: str | None, *, choose: str = "with --space"
) -> tuple[Path, str]:
    """The folder of the journals, and the space; `choose` says how one names it to this command.

    Raises:
        Failed: there is none, or several and none is named.
    """
    folder = _configured(config) if journal is None else journal
    try:
        spaces = spaces_in_journal(folder)
    except JournalUnavailable as error:
        raise Failed(str(error)) from error
    except Damaged as error:
        raise Failed(damage(error, folder)) from error
    if not spaces:
        raise Failed(f"{folder}: no space has a journal here; name its folder with --journal")
    if space is None and len(spaces) > 1:
        raise Failed(f"{folder}: there are journals of {', '.join(spaces)}; choose one {choose}")
    if space is not None and space not in spaces:
        raise Failed(f"{folder}: no journal of space {space!r}; there are those of {', '.join(spaces)}")
    return folder, space or spaces[0]


def damage(error: Damaged, folder: Path | None = None) -> str:
    """Say that a journal is damaged, and what to do. SQLite does not say whether it is the journal or its index."""
    if folder is None and error.path is not None:
        folder = error.path.parent
    if folder is None:
        return str(error)
    return (
        f"the journal in {folder} is damaged: {error}; put a backup of {FILE} in its place, or start the gateway: it"
        " goes on with what can be read and keeps the damaged file under another name"
    )


def _configured(config: Path) -> Path:
    # Takes as long as all the rest, and is not needed where a folder is named.
    from mew.gateway.config.loader import load_config
    from mew.gateway.config.value import ConfigError

    try:
        journal = load_config(config, os.environ).journal
    except ConfigError as error:
        raise Failed(f"{error}; or name the folder of the journals with --journal") from error
    if journal is None:
        raise Failed(f"{config}: 'journal: off' keeps nothing that could be looked at")
    return journal.folder
