"""The space.yaml that is meant: the one that was typed, or the nearest."""

import os
from pathlib import Path
from typing import NamedTuple

from mew.gateway.config.settings import state_dir

from .journal import Failed
from .space_file import Folder, nearest, nearest_file, typed

__all__ = ["NO_FOLDER", "Kept", "find_folder", "folder_of", "kept_of"]

NO_FOLDER = "there is no space.yaml here or above"


class Kept(NamedTuple):
    """A space.yaml, and the folder in which what belongs to it is kept."""

    file: Path
    state_dir: Path


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


def kept_of(config: Path | None) -> Kept:
    """Without reading the file: what runs can be asked, and ended, though the file is no longer right.

    Raises:
        Failed: there is none.
    """
    file = nearest_file(Path.cwd()) if config is None else config
    if file is None:
        raise Failed(f"{NO_FOLDER}; make one with 'mew init', or name it with --config")
    if not file.exists():
        raise Failed(f"{file}: no such file")
    return Kept(file.absolute(), state_dir(file.absolute()))
