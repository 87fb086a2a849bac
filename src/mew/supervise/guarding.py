"""The supervisor's end of the warden: tells it which process groups there are, and starts another if it dies."""

import asyncio
import logging
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from . import warden

__all__ = ["Guard"]

_log = logging.getLogger(__name__)

_GRACE_S: Final = 5.0
_AGAIN_S: Final = 0.2
_PROGRAM: Final = str(Path(warden.__file__))


class Guard:
    """`run` keeps a warden alive; the groups are known to it from the moment they are added."""

    def __init__(self) -> None:
        self._groups: set[int] = set()
        self._warden: asyncio.subprocess.Process | None = None

    async def run(self) -> None:
        """Until cancelled. The warden then sees the end, and ends what is left."""
        while True:
            self._warden = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", _PROGRAM, str(_GRACE_S)),
                stdin=asyncio.subprocess.PIPE,
                start_new_session=True,  # a Ctrl-C in the terminal is not for it
            )
            try:
                for group in self._groups:
                    self._tell(f"+{group}")
                await self._warden.wait()
            finally:
                await self._leave(self._warden)
            _log.warning("the warden ended, and is started again")
            await asyncio.sleep(_AGAIN_S)

    def add(self, group: int) -> None:
        self._groups.add(group)
        self._tell(f"+{group}")

    def remove(self, group: int) -> None:
        self._groups.discard(group)
        self._tell(f"-{group}")

    def _tell(self, line: str) -> None:
        if self._warden is not None and self._warden.stdin is not None:
            with suppress(ConnectionError, RuntimeError):  # it has died, and the next one is told everything
                self._warden.stdin.write(f"{line}\n".encode("ascii"))

    async def _leave(self, running: asyncio.subprocess.Process) -> None:
        self._warden = None
        if running.stdin is not None:
            running.stdin.close()
            with suppress(ConnectionError):
                await running.stdin.wait_closed()
        await running.wait()
