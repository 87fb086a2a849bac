"""One program as a process group of its own, which writes to a file."""

import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from .logs import open_log
from .program import Program

__all__ = ["CannotStart", "Process", "ended"]

_PR_SET_PDEATHSIG: Final = 1


class CannotStart(Exception):
    """The program cannot be started; the message says why, and holds no secret."""


class Process:
    """Made by `start`."""

    def __init__(self, running: asyncio.subprocess.Process) -> None:
        self._running = running

    @classmethod
    async def start(cls, program: Program, environ: Mapping[str, str]) -> "Process":
        """Start it; its output is appended to its log.

        Raises:
            CannotStart: there is no such command or folder, or it may not be run.
        """
        if not program.folder.is_dir():
            raise CannotStart(f"the folder {program.folder} is not there")
        try:
            with open_log(program.log) as log:
                running = await asyncio.create_subprocess_exec(
                    *program.argv,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd=program.folder,
                    env={**environ, **program.env},
                    start_new_session=True,
                    preexec_fn=_dies_with_its_parent(),
                )
        except FileNotFoundError:
            raise CannotStart(
                f"the command '{program.argv[0]}' is not there: install it, or give its path"
            ) from None
        except OSError as error:
            raise CannotStart(
                f"'{program.argv[0]}' cannot be run: {error.strerror or type(error).__name__}"
            ) from None
        return cls(running)

    @property
    def pid(self) -> int:
        """Of the process, and of its group."""
        return self._running.pid

    async def wait(self) -> int:
        """Return how it ended; what it left in its group is killed."""
        code = await self._running.wait()
        self._send(signal.SIGKILL)
        return code

    async def stop(self, grace_s: float) -> None:
        """Tell the group to end, and kill what is left of it after that time."""
        self._send(signal.SIGTERM)
        try:
            async with asyncio.timeout(grace_s):
                await self._running.wait()
        except TimeoutError:
            pass
        finally:
            self._send(signal.SIGKILL)
        await self._running.wait()

    def _send(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)


def ended(code: int) -> str:
    """How a process ended, for people."""
    if code >= 0:
        return "ended well" if code == 0 else f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


def _dies_with_its_parent() -> Callable[[], None] | None:
    """What a child does before it becomes the program: on Linux, it asks to be told to end when its parent is gone."""
    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(None, use_errno=True)  # before the fork: a child may do next to nothing
    parent = os.getpid()

    def ask() -> None:
        library.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # it was gone before
            os.kill(os.getpid(), signal.SIGKILL)

    return ask
