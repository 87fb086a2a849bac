"""What runs still after a supervisor and its warden were both killed, found by a variable that all programs have."""

import os
from pathlib import Path
from typing import Final

from .program import MARK
from .warden import end_groups

__all__ = ["end_leftovers"]

_GRACE_S: Final = 5.0


def end_leftovers(folder: Path) -> bool:
    """End what has the mark of this folder; whether there was any. Only where there is a `/proc`.

    For who has claimed the folder, so that no supervisor runs. Waits for them to end.
    """
    groups = _groups(f"{MARK}={folder}".encode())
    end_groups(groups, _GRACE_S)
    return bool(groups)


def _groups(mark: bytes) -> set[int]:
    found = set()
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        return set()
    for pid in pids:
        try:
            if mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                found.add(os.getpgid(pid))
        except OSError:
            continue  # gone, or another's
    return found - {os.getpgrp()}
