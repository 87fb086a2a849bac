"""Puts the files of a new space down: all that are not there yet, and none over another."""

import os
from collections.abc import Mapping
from pathlib import Path

from mew.cli.errors import CommandError

__all__ = ["put_down", "put_secrets"]


def put_down(folder: Path, files: Mapping[Path, str]) -> tuple[list[Path], list[Path]]:
    """Write the files; returns those that were made, and those that were there already and are left as they are.

    Raises:
        CommandError: there is a space.yaml, or the system says no.
    """
    for name in ("space.yaml", ".mew/space.yaml"):
        if (folder / name).exists():
            raise CommandError(
                f"{folder / name} is there already: 'mew up' starts it; or name another folder"
            )
    made, kept = [], []
    try:
        for place, text in files.items():
            target = folder / place
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                with target.open("x", encoding="utf-8") as file:
                    file.write(text)
            except FileExistsError:
                kept.append(place)
            else:
                made.append(place)
    except OSError as error:
        raise CommandError(f"{error.filename}: {error.strerror}") from error
    return made, kept


def put_secrets(folder: Path, variables: Mapping[str, str]) -> Path:
    """Write `.mew/env`, for its owner alone, and keep git away from it.

    Raises:
        CommandError: there is one, or the system says no.
    """
    state = folder / ".mew"
    path = state / "env"
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        (state / ".gitignore").write_text("*\n", encoding="ascii")
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.writelines(f"{name}={_line(value)}\n" for name, value in variables.items())
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from error
    return path


def _line(value: str) -> str:
    return f"'{value}'" if value != value.strip() or value[:1] in "'\"" else value
