"""Where a command finds the journal it is asked about: a folder that is named, or that of the space.yaml."""

import os
from pathlib import Path
from typing import Annotated

import typer

from mew.log.base import LogUnavailable
from mew.log.reading import journals_in

__all__ = ["Config", "Failed", "Journal", "SpaceName", "find_journal"]

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
) -> Path:
    """The folder with the journal of one space; `choose` says how one names it to this command.

    Raises:
        Failed: there is none, or several and none is named.
    """
    folder = _configured(config) if journal is None else journal
    try:
        spaces = journals_in(folder)
    except LogUnavailable as error:
        raise Failed(str(error)) from error
    if not spaces:
        raise Failed(f"{folder}: no space has a journal here; name its folder with --journal")
    if space is None and len(spaces) > 1:
        raise Failed(f"{folder}: there are journals of {', '.join(spaces)}; choose one {choose}")
    if space is not None and space not in spaces:
        raise Failed(f"{folder}: no journal of space {space!r}; there are those of {', '.join(spaces)}")
    return folder / (space or spaces[0])


def _configured(config: Path) -> Path:
    # Takes as long as all the rest, and is not needed where a folder is named.
    from mew.gateway.config import load_config
    from mew.gateway.config_node import ConfigError

    try:
        journal = load_config(config, os.environ).journal
    except ConfigError as error:
        raise Failed(f"{error}; or name the folder of the journals with --journal") from error
    if journal is None:
        raise Failed(f"{config}: 'journal: off' keeps nothing that could be looked at")
    return journal.folder
