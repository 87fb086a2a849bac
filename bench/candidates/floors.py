"""The two floors as candidates: the least that a server can do in Python on uvloop, and in C with epoll."""

import sys
from pathlib import Path

from bench.compiled import CannotCompile, compiled
from bench.workloads import Workload

__all__ = ["in_c", "in_python", "no_compiler"]

SOURCE = Path(__file__).parent / "floor.c"


def in_python(_workload: Workload, port: int, _scratch: Path) -> list[str]:
    return [sys.executable, str(Path(__file__).parent / "floor.py"), str(port)]


def in_c(_workload: Workload, port: int, _scratch: Path) -> list[str]:
    return [str(compiled(SOURCE)), str(port)]


def no_compiler() -> str | None:
    """Compile it, if need be; say why it cannot be, or None."""
    try:
        compiled(SOURCE)
    except CannotCompile as error:
        return str(error)
    return None
