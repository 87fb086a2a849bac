"""A real Redis for tests: a process of its own, on a socket in a folder, without a port."""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

__all__ = ["RedisServer", "redis_server"]

_START_S = 20.0


class RedisServer:
    """`url` is for `--redis`. What it was told survives `restart`, for it writes everything to its file."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self.socket = folder / "redis.sock"
        self.url = f"unix://{self.socket}"
        self._options = options
        self.process: subprocess.Popen[bytes]
        self.start()

    def start(self) -> None:
        program = shutil.which("redis-server") or shutil.which("valkey-server")
        assert program is not None, "redis-server is missing; scripts/setup-tests installs it"
        given = ["--port", "0", "--unixsocket", str(self.socket), "--dir", str(self.folder), "--save", ""]
        kept = ["--appendonly", "yes", "--appendfsync", "always"]
        command = [program, *given, *kept, *self._options]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        give_up_at = time.monotonic() + _START_S
        while not self._answers():
            assert self.process.poll() is None, "redis-server ended at its start"
            assert time.monotonic() < give_up_at, "redis-server did not answer"
            time.sleep(0.01)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def command(self, *words: str) -> bytes:
        """The answer to a command, as it came."""
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(5)
            line.connect(str(self.socket))
            line.sendall(" ".join(words).encode() + b"\r\n")
            return line.recv(1 << 20)

    def _answers(self) -> bool:
        with suppress(OSError):
            return self.command("PING").startswith(b"+PONG")
        return False


@contextmanager
def redis_server(*options: str) -> Iterator[RedisServer]:
    # not the folder of a test: the name of a socket must be short
    with TemporaryDirectory(prefix="mew-redis-") as folder:
        server = RedisServer(Path(folder), *options)
        try:
            yield server
        finally:
            server.kill()
