"""Ends what a supervisor leaves behind: run by its path, with nothing but the standard library.

Lines on stdin say which process groups there are: `+123` and `-123`. When stdin ends, who wrote them is gone, however
it went, and those that are left are told to end, and killed if they do not within the seconds that the argument says;
where there is a `/proc`, with what they have started in groups of its own.
"""

import os
import signal
import sys
import time

__all__ = ["end_groups"]

_STEP_S = 0.05


def end_groups(groups: set[int], grace_s: float) -> None:
    """Tell them to end, and kill what is left of them and of all they have started after that time."""
    named = set(groups)
    left = named | _started_by(named)
    _send(named, signal.SIGTERM)  # they tell those they have started
    deadline_s = time.monotonic() + grace_s
    while left and time.monotonic() < deadline_s:
        time.sleep(_STEP_S)
        _send(left, 0)
    _send(left, signal.SIGKILL)


def _main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # only the end of the supervisor counts
    end_groups(_remaining(set()), float(sys.argv[1]))


def _remaining(groups: set[int]) -> set[int]:
    """The groups that were named and not taken back, once stdin has ended."""
    for line in sys.stdin:
        sign, number = line[0], line[1:].strip()
        if number.isdecimal() and int(number) > 1:
            (groups.add if sign == "+" else groups.discard)(int(number))
    return groups


def _started_by(groups: set[int]) -> set[int]:
    """The groups of all descendants of what is in these groups."""
    try:
        processes = {int(name): _parent_and_group(name) for name in os.listdir("/proc") if name.isdecimal()}
    except OSError:
        return set()
    family = {pid for pid, (_, group) in processes.items() if group in groups}
    size = 0
    while size < len(family):
        size = len(family)
        family |= {pid for pid, (parent, _) in processes.items() if parent in family}
    return {processes[pid][1] for pid in family} - {0, os.getpgrp()}


def _parent_and_group(pid: str) -> tuple[int, int]:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        return int(fields[1]), int(fields[2])
    except (OSError, ValueError, IndexError):
        return 0, 0  # it has ended


def _send(groups: set[int], number: int) -> None:
    """Forgets those that are gone."""
    for group in tuple(groups):
        try:
            os.killpg(group, number)
        except ProcessLookupError:
            groups.discard(group)
        except PermissionError:
            pass  # there still, and changing who they are: they are asked again


if __name__ == "__main__":
    _main()
