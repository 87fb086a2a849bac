"""A command at a terminal of its own, for tests: what it shows is read, and answers are typed."""

import fcntl
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Self

from .process import WAIT_S

__all__ = ["Terminal"]

MEW = Path(sys.executable).with_name("mew")


class Terminal:
    """A command at a terminal of its own."""

    def __init__(self, *words: str, **environ: str) -> None:
        self.seen = ""
        self._master, slave = pty.openpty()
        self._process = subprocess.Popen(
            [MEW, *words],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**os.environ, **environ, "TERM": "xterm"},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # so that it is /dev/tty there
        )
        os.close(slave)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        os.close(self._master)

    def wait_for(self, text: str, *, times: int = 1) -> None:
        deadline = time.monotonic() + 4 * WAIT_S
        while self.seen.count(text) < times:
            left = deadline - time.monotonic()
            readable, _, _ = select.select([self._master], [], [], max(left, 0))
            assert readable, self.seen
            try:
                self.seen += os.read(self._master, 65_536).decode()
            except OSError:  # it has ended
                assert text in self.seen, self.seen
                return

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def interrupt(self) -> None:
        self._process.send_signal(signal.SIGINT)

    def ended(self) -> int:
        return self._process.wait(2 * WAIT_S)
