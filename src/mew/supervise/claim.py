"""One supervisor for a state folder: a lock that it and its reaper hold, free again when both have ended."""

import os
import sys
import time
from pathlib import Path
from typing import Final

__all__ = ["Claimed", "claim", "is_claimed", "until_free"]

_FILE: Final = "up.lock"
_STEP_S: Final = 0.05
_TRIES: Final = 5  # who only looks has it for a moment


class Claimed(Exception):
    """Another has it. A lock tells better than a process id, which others are given later."""


def claim(folder: Path) -> int:
    """Have the folder to oneself for as long as what is returned stays open: best until the process has ended.

    Raises:
        Claimed: another supervisor runs, or what the last one started is still being ended.
        OSError: the folder cannot be written.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    held = os.open(folder / _FILE, os.O_RDWR | os.O_CREAT, 0o600)
    for _ in range(_TRIES):
        if _take(held):
            return held
        time.sleep(_STEP_S)
    os.close(held)
    raise Claimed(folder)


def is_claimed(folder: Path) -> bool:
    """Whether a supervisor runs for this folder, or its reaper still ends what it left."""
    try:
        looked = os.open(folder / _FILE, os.O_RDONLY)
    except OSError:
        return False
    try:
        return not _take(looked)
    finally:
        os.close(looked)


def until_free(folder: Path, within_s: float) -> bool:
    """Wait until nobody has the folder; False where somebody still has after that time."""
    deadline_s = time.monotonic() + within_s
    while is_claimed(folder):
        if time.monotonic() > deadline_s:
            return False
        time.sleep(_STEP_S)
    return True


def _take(descriptor: int) -> bool:
    if sys.platform == "win32":
        return True
    import fcntl  # not to be had on Windows

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
