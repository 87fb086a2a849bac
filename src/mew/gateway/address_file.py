"""Publish the URL of a running gateway in a file beside its tokens, so that commands find it."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from .config.settings import state_dir

__all__ = ["published_address", "read_address"]

_FILE: Final = "gateway.json"
_BYTES_MAX: Final = 16_384


@contextmanager
def published_address(file: Path, url: str) -> Iterator[None]:
    """Let `read_address` find the gateway of this space.yaml at `url` while the context is open.

    Never fails: does nothing if the folder cannot be written or another gateway is already published.
    """
    path = state_dir(file) / _FILE
    if read_address(file) is not None:
        yield
        return
    held = _write_locked(path, url)
    try:
        yield
    finally:
        if held is not None:
            _remove(path, held)


def read_address(file: Path) -> str | None:
    """Return the URL of the gateway running for this space.yaml; None if none is."""
    try:
        with (state_dir(file) / _FILE).open("rb") as found:
            if not _is_held(found.fileno()):
                return None  # left behind by a killed process
            written = json.loads(found.read(_BYTES_MAX))
    except (OSError, ValueError, RecursionError):
        return None
    url = written.get("url") if isinstance(written, dict) else None
    return url if isinstance(url, str) else None


def _write_locked(path: Path, url: str) -> int | None:
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    written = {"url": url, "pid": os.getpid(), "started": datetime.now(UTC).isoformat(timespec="seconds")}
    try:
        _prepare(path.parent)
        held = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError:
        return None
    try:
        os.write(held, (json.dumps(written) + "\n").encode())
        _hold(held)  # before the rename, so that the file never appears unlocked
        draft.replace(path)
    except OSError:
        os.close(held)
        with suppress(OSError):
            draft.unlink()
        return None
    return held


def _remove(path: Path, held: int) -> None:
    with suppress(OSError):
        ours, there = os.fstat(held), path.stat()
        os.close(held)
        if (ours.st_dev, ours.st_ino) == (there.st_dev, there.st_ino):
            path.unlink()


def _prepare(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        return
    (folder / ".gitignore").write_text("*\n", encoding="ascii")


def _hold(descriptor: int) -> None:
    if sys.platform != "win32":
        import fcntl  # not to be had on Windows

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is_held(descriptor: int) -> bool:
    """Whether the writer still runs: it holds a lock, which is safer than a process id that may be reused."""
    if sys.platform == "win32":
        return True  # a locked file could not be read there
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False
