"""A file of another program, changed as its owner agrees: the difference is shown, and what was is kept beside."""

import difflib
import os
import secrets
import stat
import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Final

import typer

from mew.protocol.visible import visible

from .errors import CommandError

__all__ = ["Consent", "change_file"]

_BYTES_MAX: Final = 32 << 20
_LINE_CHARS_MAX: Final = 2_000
_BACKUP: Final = ".before-mew"


class Consent(Enum):
    """Whether a change is asked for, taken as agreed to, or only shown."""

    ASKED = auto()
    GIVEN = auto()
    REFUSED = auto()


@dataclass(frozen=True)
class _Before:
    path: Path
    content: bytes
    mode: int | None


def change_file(path: Path, edited: Callable[[str], str], consent: Consent) -> bool:
    """Show what would become of it, ask, and write it, whole or not at all; false where nothing was to be done.

    Its mode stays, and what was in it is kept beside it. Where it is a link, what it leads to is changed.

    Raises:
        CommandError: it cannot be read or written, somebody else changed it meanwhile, or nobody can be asked.
        ExitCode: its owner said no.
    """
    before = _before(path)
    old = _decoded(before)
    new = edited(old)
    if new == old:
        return False
    _show(path, old, new)
    if consent is Consent.REFUSED:
        return False
    if consent is Consent.ASKED:
        _ask(path)
    _write(before, new)
    return True


def _before(path: Path) -> _Before:
    try:
        path = path.resolve()
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            content = file.read(_BYTES_MAX + 1)
    except FileNotFoundError:
        return _Before(path, b"", None)
    except (OSError, RuntimeError) as error:  # a ring of links
        raise CommandError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if len(content) > _BYTES_MAX:
        raise CommandError(f"{path}: is larger than {_BYTES_MAX >> 20} MiB")
    return _Before(path, content, stat.S_IMODE(mode))


def _decoded(before: _Before) -> str:
    try:
        return before.content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CommandError(f"{before.path}: is not UTF-8, at byte {error.start}") from error


def _show(path: Path, old: str, new: str) -> None:
    was = str(path) if old else "/dev/null"
    for line in difflib.unified_diff(old.splitlines(), new.splitlines(), was, str(path), lineterm=""):
        typer.echo("".join(_seen(char) for char in line[:_LINE_CHARS_MAX]))


def _seen(char: str) -> str:
    return char if char in '\t"\\' else visible(char)


def _ask(path: Path) -> None:
    if not sys.stdin.isatty():
        raise CommandError(f"{path}: nothing is written, for nobody can be asked here; --yes writes it")
    if not typer.confirm("Write this?", default=False, err=True):
        typer.echo("nothing is written", err=True)
        raise typer.Exit(1)


def _write(before: _Before, new: str) -> None:
    path = before.path
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    mode = before.mode
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _keep(before)
        try:
            _put(draft, new.encode("utf-8"), mode)
            if _before(path) != before:
                raise CommandError(f"{path}: another program has just changed it; try again")
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise CommandError(f"{path}: cannot be written: {error.strerror}") from error


def _keep(before: _Before) -> None:
    if before.mode is not None:
        beside = before.path.with_name(before.path.name + _BACKUP)
        if not beside.exists():  # the first is what was there before any of ours
            _put(beside, before.content, before.mode)


def _put(path: Path, content: bytes, mode: int | None) -> None:
    begun = 0o666 if mode is None else 0o600  # nobody sees for a moment what they may not
    with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, begun), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    if mode is not None:
        path.chmod(mode)
