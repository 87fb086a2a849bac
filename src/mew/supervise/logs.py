"""The files that programs write to."""

import os
import shutil
from collections import deque
from pathlib import Path
from typing import IO, Final

__all__ = ["last_line", "last_lines", "open_log", "put_aside", "size_of"]

_SIZE_MAX: Final = 16 << 20
_TAIL_BYTES: Final = 64 << 10
_LINE_CHARS_MAX: Final = 500


def open_log(path: Path) -> IO[bytes]:
    """To be appended to, by its owner alone to be read; what is too long already is put aside."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    put_aside(path)
    return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")


def put_aside(path: Path, size_max: int = _SIZE_MAX) -> bool:
    """Copy a file that has grown past the size to `NAME.1`, and empty it; who appends to it goes on at its beginning.

    What is written between the two is lost: lines of a log, at a rate of megabytes a second.
    """
    try:
        if path.stat().st_size <= size_max:
            return False
        aside = path.with_name(f"{path.name}.1")
        shutil.copyfile(path, aside)
        aside.chmod(0o600)
        os.truncate(path, 0)
    except OSError:
        return False
    return True


def size_of(path: Path) -> int:
    """In bytes; 0 where there is no file."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def last_lines(path: Path, count: int, after: int = 0) -> list[str]:
    """The last lines of a file behind its first `after` bytes, as far as they are in its last 64 KiB.

    None where there is no file.
    """
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(
                max(after if after <= size else 0, size - _TAIL_BYTES)
            )  # it may have been put aside since
            text = file.read(_TAIL_BYTES).decode(errors="replace")
    except OSError:
        return []
    return list(deque(text.splitlines(), maxlen=count))


def last_line(path: Path, after: int = 0) -> str:
    """The last that is not empty, and not too long to be shown."""
    lines = [line.strip() for line in last_lines(path, 10, after)]
    return next((line for line in reversed(lines) if line), "")[:_LINE_CHARS_MAX]
