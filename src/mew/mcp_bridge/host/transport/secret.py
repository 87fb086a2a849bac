"""The secret with which hosts come in over HTTP: in a file that its owner alone can read, made when first needed."""

import os
import secrets
from pathlib import Path
from typing import Final

__all__ = ["secret_in"]

_BYTES: Final = 32
_CHARS_MIN: Final = 16


def secret_in(path: Path) -> str:
    """The secret in this file; a new one where there is no file.

    Raises:
        OSError: it cannot be read or written.
        ValueError: what is in it is no secret, or others can read it.
    """
    try:
        return _read(path)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    made = secrets.token_urlsafe(_BYTES)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:  # another was faster
        return _read(path)
    with os.fdopen(descriptor, "w") as file:
        file.write(f"{made}\n")
    return made


def _read(path: Path) -> str:
    with path.open(encoding="ascii", errors="replace") as file:
        if os.name == "posix" and os.fstat(file.fileno()).st_mode & 0o077:
            raise ValueError(f"{path}: others can read it; do 'chmod 600 {path}', or remove it for a new one")
        found = file.read(4_096).strip()
    if len(found) < _CHARS_MIN or not found.isprintable() or " " in found:
        raise ValueError(
            f"{path}: that is no secret of {_CHARS_MIN} characters or more; remove it for a new one"
        )
    return found
