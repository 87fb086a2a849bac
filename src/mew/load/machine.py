"""What Linux tells of processes: the CPU time they took, the memory they have, the port they listen on."""

import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

__all__ = ["Usage", "allow_many_connections", "listener", "memory_bytes", "own_usage", "usage"]

_PROC: Final = Path("/proc")
_LISTENING: Final = "0A"
_KIB: Final = 1024
_NANO: Final = 1e9


class Usage(NamedTuple):
    """Seconds on a core, and seconds ready to run without one."""

    cpu_s: float
    waited_s: float

    def since(self, before: "Usage") -> "Usage":
        return Usage(self.cpu_s - before.cpu_s, self.waited_s - before.waited_s)


def own_usage() -> Usage:
    """Of this process alone."""
    return Usage(time.process_time(), _waited_s(os.getpid()))


def usage(pid: int) -> Usage | None:
    """Of a process, its threads, those that ended too, and its living descendants; None where nobody can tell."""
    try:
        cpu_s = time.clock_gettime(~pid << 3 | 2)  # what clock_getcpuclockid(3) gives, to the nanosecond
        waited_s = _waited_s(pid)
        for task in (_PROC / str(pid) / "task").iterdir():
            for child in (task / "children").read_text().split():
                found = usage(int(child)) or Usage(0.0, 0.0)
                cpu_s, waited_s = cpu_s + found.cpu_s, waited_s + found.waited_s
    except (OSError, ValueError, OverflowError, AttributeError):
        return None
    return Usage(cpu_s, waited_s)


def _waited_s(pid: int) -> float:
    """0 where nobody counts it."""
    waited_s = 0.0
    with suppress(OSError, ValueError, IndexError):
        for task in (_PROC / str(pid) / "task").iterdir():
            waited_s += int((task / "schedstat").read_text().split()[1]) / _NANO
    return waited_s


def memory_bytes(pid: int) -> int | None:
    """What a process has in memory now; None where nobody can tell."""
    for name, wanted in (("smaps_rollup", "Rss:"), ("status", "VmRSS:")):
        with suppress(OSError, ValueError):
            for line in (_PROC / str(pid) / name).read_text().splitlines():
                if line.startswith(wanted):
                    return int(line.split()[1]) * _KIB
    return None


def listener(port: int) -> int | None:
    """The process of ours that listens on this port of this machine, if there is exactly one to be found."""
    if sys.platform != "linux":
        return None
    sockets = _listening(port)
    found = {pid for pid in _own_processes() if sockets and sockets & _sockets_of(pid)}
    return found.pop() if len(found) == 1 else None


def _listening(port: int) -> set[str]:
    sockets = set()
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in (_PROC / "net" / table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                    sockets.add(f"socket:[{fields[9]}]")
    return sockets


def _own_processes() -> list[int]:
    found = []
    for entry in _PROC.iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and entry.stat().st_uid == os.getuid():
                found.append(int(entry.name))
    return found


def _sockets_of(pid: int) -> set[str]:
    held = set()
    with suppress(OSError):
        for entry in (_PROC / str(pid) / "fd").iterdir():
            with suppress(OSError):
                held.add(os.readlink(entry))
    return held


def allow_many_connections() -> None:
    """As many as the system allows; what is set for a shell is often 1,024."""
    if sys.platform == "win32":
        return
    import resource  # not to be had on Windows

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # some systems allow less than they say
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
