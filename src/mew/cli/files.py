"""Files that a command writes: whole or not at all, for the owner's eyes only, and over nothing by mistake."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from .errors import CommandError

__all__ = ["new_file"]


@contextmanager
def new_file(path: Path, *, force: bool = False) -> Iterator[BinaryIO]:
    """A file that appears under its name when the block has ended, and not if it raises.

    Raises:
        CommandError: there is one of this name (and no `force`), or it cannot be written.
    """
    if path.is_dir():
        raise CommandError(f"{path}: is a folder")
    if path.exists() and not force:
        raise _taken(path)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        _publish(draft, path, force=force)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from error
    finally:
        draft.unlink(missing_ok=True)


def _publish(draft: Path, path: Path, *, force: bool) -> None:
    if not force:
        try:
            os.link(draft, path)  # unlike a rename it fails if somebody was faster
            return
        except FileExistsError:
            raise _taken(path) from None
        except OSError:  # a file system without links
            if path.exists():
                raise _taken(path) from None
    draft.replace(path)


def _taken(path: Path) -> CommandError:
    return CommandError(f"{path}: is there already; --force overwrites it")
