"""What is typed while something plays: one key at a time, without Enter, and the terminal is left as it was."""

import asyncio
import os
import signal
import sys
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import Final, Protocol

__all__ = ["QUIT", "Keyboard", "Keys"]

QUIT: Final = "q"
_KEYS_BYTES: Final = 64


class Keys(Protocol):
    """What may come in while one waits."""

    def now(self) -> float:
        """Seconds on the clock by which is waited."""

    async def within(self, seconds: float | None) -> str | None:
        """The next key; None if there was none in this time. Without a time: when there is one."""


class Keyboard:
    """The terminal that is typed at, if there is one; else there are no keys. A context in a running loop.

    Told to stop by a signal, it is as if `QUIT` was typed.
    """

    def __init__(self, *signals: signal.Signals) -> None:
        self._signals = signals
        self._keys: asyncio.Queue[str] = asyncio.Queue()
        self._stack = ExitStack()
        # where the output goes to a program, the keys are that program's
        self.is_there = sys.platform != "win32" and sys.stdin.isatty() and sys.stdout.isatty()

    def __enter__(self) -> "Keyboard":
        loop = asyncio.get_running_loop()
        with ExitStack() as stack:
            for one in self._signals:
                loop.add_signal_handler(one, self._keys.put_nowait, QUIT)
                stack.callback(loop.remove_signal_handler, one)
            if self.is_there:
                self._listen(loop, stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def within(self, seconds: float | None) -> str | None:
        if seconds is not None and seconds <= 0:
            await asyncio.sleep(0)  # whatever else is to be done gets its turn
            return None if self._keys.empty() else self._keys.get_nowait()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                return await self._keys.get()
        return None

    def _listen(self, loop: asyncio.AbstractEventLoop, stack: ExitStack) -> None:
        import termios  # neither is to be had on Windows
        import tty

        terminal = sys.stdin.fileno()
        before = termios.tcgetattr(terminal)
        stack.callback(termios.tcsetattr, terminal, termios.TCSADRAIN, before)
        tty.setcbreak(terminal)
        loop.add_reader(terminal, self._read, terminal)
        stack.callback(loop.remove_reader, terminal)
        # the shell has its own way with the terminal while this is stopped by Ctrl-Z
        loop.add_signal_handler(signal.SIGCONT, tty.setcbreak, terminal)
        stack.callback(loop.remove_signal_handler, signal.SIGCONT)

    def _read(self, terminal: int) -> None:
        typed = os.read(terminal, _KEYS_BYTES)
        for key in typed.decode("ascii", "ignore") if typed else QUIT:  # nothing: the terminal is gone
            self._keys.put_nowait(key)
