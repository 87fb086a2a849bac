"""Ends what a supervisor leaves behind: run by its path, with nothing but the standard library.

Lines on stdin say which process groups there are: `+123` and `-123`. When stdin ends, who wrote them is gone, however
it went, and those that are left are told to end, and killed if they do not within the seconds that the argument says.
"""

import os
import signal
import sys
import time

_STEP_S = 0.05


def _main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # only the end of the supervisor counts
    left = _remaining(set())
    _send(left, signal.SIGTERM)
    deadline = time.monotonic() + float(sys.argv[1])
    while left and time.monotonic() < deadline:
        time.sleep(_STEP_S)
        _send(left, 0)
    _send(left, signal.SIGKILL)


def _remaining(groups: set[int]) -> set[int]:
    """The groups that were named and not taken back, once stdin has ended."""
    for line in sys.stdin:
        sign, number = line[0], line[1:].strip()
        if number.isdecimal() and int(number) > 1:
            (groups.add if sign == "+" else groups.discard)(int(number))
    return groups


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
