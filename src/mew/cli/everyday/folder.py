"""The space.yaml that is meant: the one that was typed, or the nearest."""

import os
from pathlib import Path

from mew.cli.reach_folder import Folder, nearest, typed
from mew.cli.where import Failed

__all__ = ["NO_FOLDER", "find_folder", "folder_of"]

NO_FOLDER = "there is no space.yaml here or above"


def find_folder(config: Path | None, wrapped: str | None = None) -> Folder | None:
    """As read; None where none is named, and none is here or above.

    Raises:
        Failed: the one that is named is not there, or it is wrong.
    """
    if config is not None or wrapped is not None:
        return typed(config, wrapped, os.environ)
    return nearest(Path.cwd(), os.environ)


def folder_of(config: Path | None) -> Folder:
    """As read.

    Raises:
        Failed: there is none, or it is wrong.
    """
    found = find_folder(config)
    if found is None:
        raise Failed(f"{NO_FOLDER}; make one with 'mew init', or name it with --config")
    return found
