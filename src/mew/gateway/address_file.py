"""Where the gateway of a space.yaml listens now: a file beside its tokens, good for as long as the gateway runs."""

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
    """Inside it, `read_address` finds the gateway of this space.yaml at `url`.

    It is a convenience, and fails for no reason: a folder that cannot be written, and a gateway that was there
    before, are left as they are.
    """
    path = state_dir(file) / _FILE
    if read_address(file) is not None:
        yield
        return
    held = _lit(path, url)
    try:
        yield
    finally:
        if held is not None:
            _put_out(path, held)


def read_address(file: Path) -> str | None:
    """The URL of the gateway that runs for this space.yaml; None: none is known."""
    try:
        with (state_dir(file) / _FILE).open("rb") as found:
            if not _is_held(found.fileno()):
                return None  # left by one that was killed
            written = json.loads(found.read(_BYTES_MAX))
    except (OSError, ValueError, RecursionError):
        return None
    url = written.get("url") if isinstance(written, dict) else None
    return url if isinstance(url, str) else None


def _lit(path: Path, url: str) -> int | None:
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    written = {"url": url, "pid": os.getpid(), "started": datetime.now(UTC).isoformat(timespec="seconds")}
    try:
        _prepare(path.parent)
        held = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError:
        return None
    try:
        os.write(held, (json.dumps(written) + "\n").encode())
        _hold(held)  # before it is found, so that it is never seen as left behind
        draft.replace(path)
    except OSError:
        os.close(held)
        with suppress(OSError):
            draft.unlink()
        return None
    return held


def _put_out(path: Path, held: int) -> None:
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
    """Whether who wrote it is there still. A lock tells better than a process id, which others are given later."""
    if sys.platform == "win32":
        return True  # a locked file could not be read there
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False
