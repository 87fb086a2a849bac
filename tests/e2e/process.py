"""The gateway as its user starts it: a process with a file, ended by signals."""

import os
import re
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

__all__ = ["WAIT_S", "Gateway", "listening", "run_gateway", "secret", "secrets_used", "started"]

WAIT_S = 20.0  # for what should come at once; only who hangs waits so long
_START_S = 60.0
_MEW = Path(sys.executable).with_name("mew")
_READY = re.compile(r"mew gateway listens on (https?://[^,]+:(\d+)), spaces: (.*)")

secrets_used: set[str] = set()
"""Every token of this run: none of them may be in a log."""


def secret(name: str) -> str:
    """A token nobody else has, and that we can look for afterwards."""
    made = f"{name}-{secrets.token_hex(12)}"
    secrets_used.add(made)
    return made


class Gateway:
    """A running `mew gateway`."""

    def __init__(self, process: subprocess.Popen[str], config: Path) -> None:
        self.process = process
        self.config = config
        self.port = 0
        self.url = ""
        self._lines: list[str] = []
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def log(self) -> str:
        """What it wrote to stderr so far."""
        return "".join(self._lines)

    @property
    def ws_url(self) -> str:
        return "ws" + self.url.removeprefix("http")

    @property
    def rss_bytes(self) -> int:
        """The memory it has, now."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert found is not None, status
        return int(found[1]) * 1024

    def wait_for(self, pattern: str, *, times: int = 1, within_s: float = WAIT_S) -> str:
        """The line of its log in which the pattern is found for the n-th time."""

        def found() -> str | None:
            lines = [line for line in self._lines if re.search(pattern, line)]
            return lines[times - 1] if len(lines) >= times else None

        return self._wait(found, f"no line with {pattern!r}", within_s)

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def rewrite(self, config: Mapping[str, Any] | str) -> None:
        """Put another file in place of its configuration."""
        self.config.write_text(config if isinstance(config, str) else yaml.safe_dump(dict(config)))

    def ended(self, within_s: float = 3 * WAIT_S) -> int:
        """Its exit code, once it has ended."""
        code = self.process.wait(within_s)
        self._reader.join(WAIT_S)
        return code

    def kill(self) -> None:
        """As the machine would: nothing can be tidied up."""
        self.process.kill()
        self.ended()
        assert self.process.stderr is not None
        self.process.stderr.close()

    def stop(self) -> int:
        if self.process.poll() is None:
            self.signal(signal.SIGTERM)
        try:
            return self.ended()
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            assert self.process.stderr is not None
            self.process.stderr.close()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._changed:
                self._lines.append(line)
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()

    def _wait(self, found: Callable[[], str | None], what: str, within_s: float) -> str:
        deadline = time.monotonic() + within_s
        with self._changed:
            while (line := found()) is None:
                left = deadline - time.monotonic()
                if left <= 0 or (not self._reader.is_alive() and self.process.poll() is not None):
                    raise AssertionError(f"{what} in:\n{self.log}")
                self._changed.wait(min(left, 0.2))
            return line


def started(
    folder: Path,
    config: Mapping[str, Any] | str,
    *args: str,
    environ: Mapping[str, str] | None = None,
    port: int = 0,
) -> Gateway:
    """Type `mew gateway` and do not wait for it."""
    path = folder / "space.yaml"
    path.write_text(config if isinstance(config, str) else yaml.safe_dump(dict(config)))
    process = subprocess.Popen(
        [str(_MEW), "gateway", "--config", str(path), "--port", str(port), *args],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONWARNINGS": "default", **(environ or {})},
        cwd=folder,
    )
    return Gateway(process, path)


def listening(gateway: Gateway) -> Gateway:
    """The same, once it listens."""
    ready = _READY.search(gateway.wait_for(_READY.pattern, within_s=_START_S))
    assert ready is not None
    gateway.url, gateway.port = ready[1], int(ready[2])
    return gateway


@contextmanager
def run_gateway(
    folder: Path, config: Mapping[str, Any] | str, *args: str, environ: Mapping[str, str] | None = None
) -> Iterator[Gateway]:
    """A gateway that listens; told to stop at the end. Nothing it logs may be a traceback or a token."""
    gateway = started(folder, config, *args, environ=environ)
    try:
        yield listening(gateway)
    finally:
        code = gateway.stop()
    assert code == 0, gateway.log
    assert "Traceback" not in gateway.log, gateway.log
    leaked = [token for token in secrets_used if token in gateway.log]
    assert not leaked, f"{leaked} in:\n{gateway.log}"
