"""Several gateway processes on one machine that listen on one port: nodes over a shared Redis, one per core."""

import asyncio
import logging
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from .config.value import ConfigError

__all__ = ["GatewayWorkers", "reserve_port"]

_logger = logging.getLogger(__name__)

_RESTART_S: Final = 1.0
_CONFIG_ERROR: Final = 2
_HANDLED: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)

Serve = Callable[[Callable[[str], None]], None]
"""What a worker does until it is stopped: it reports the URL once it listens. It may raise `ConfigError`."""


def reserve_port(host: str, port: int) -> socket.socket:
    """Bind a port without listening on it, so that all workers can share it.

    Raises:
        ConfigError: the port is taken, or this system cannot share ports.
    """
    if sys.platform == "win32" or not hasattr(socket, "SO_REUSEPORT"):
        raise ConfigError("--workers: this system cannot share a port between processes")
    reserved = None
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        reserved = socket.socket(family)
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        reserved.bind(address[:2])
    except OSError as error:
        if reserved is not None:
            reserved.close()
        raise ConfigError(f"cannot listen on {host}:{port}: {error.strerror}") from None
    return reserved


class GatewayWorkers:
    """Fork workers, replace those that die, and stop all of them together. Use before any thread or loop is started."""

    def __init__(self, serve: Serve, count: int, ready: Callable[[str], None]) -> None:
        """`ready` is called with the URL once all workers listen."""
        self._serve = serve
        self._count = count
        self._ready = ready
        self._workers: dict[int, bool] = {}  # by their process ids: whether they listened
        self._is_ready = self._is_stopping = False
        self._restart_at_s = 0.0
        self._code = 0

    def run(self) -> int:
        """Run until SIGINT or SIGTERM; pass SIGHUP on to the workers. Return the exit code."""
        self._reports, self._report = os.pipe()
        self._alive, self._parent = os.pipe()  # its end tells the workers that the parent died
        woken, wake = os.pipe()
        for end in (self._reports, woken, wake):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wake)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: self._stop())
        signal.signal(signal.SIGHUP, lambda *_: self._send(signal.SIGHUP))
        signal.signal(signal.SIGCHLD, lambda *_: None)  # it only wakes us
        while self._workers or not self._is_stopping:
            wait_s = self._fork_missing()
            select.select((self._reports, woken), (), (), wait_s)
            with suppress(BlockingIOError):
                os.read(woken, 4096)
            self._take_reports()
            self._reap()
        return self._code

    def _fork_missing(self) -> float | None:
        """Start as many workers as are missing, or return in how many seconds that may be tried."""
        while len(self._workers) < self._count and not self._is_stopping:
            if (wait_s := self._restart_at_s - time.monotonic()) > 0:
                return wait_s
            signal.pthread_sigmask(
                signal.SIG_BLOCK, _HANDLED
            )  # a worker must not handle them as its parent does
            if (pid := os.fork()) == 0:
                self._work()
            self._workers[pid] = False
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _HANDLED)
        return None

    def _work(self) -> None:
        """Be a worker, until the end of the process."""
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            for number in (
                signal.SIGINT,
                signal.SIGTERM,
            ):  # before the gateway handles them there is nothing to end
                signal.signal(number, lambda *_: os._exit(0))
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _HANDLED)
            os.close(self._parent)
            self._serve(self._listens)
            code = 0
        except ConfigError:
            code = _CONFIG_ERROR
        except Exception:
            _logger.exception("worker failed")
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _listens(self, url: str) -> None:
        os.write(self._report, f"{os.getpid()} {url}\n".encode())
        loop = asyncio.get_running_loop()

        def orphaned() -> None:
            loop.remove_reader(self._alive)
            os.kill(os.getpid(), signal.SIGTERM)

        loop.add_reader(self._alive, orphaned)

    def _take_reports(self) -> None:
        with suppress(BlockingIOError):
            for line in os.read(self._reports, 1 << 16).decode().splitlines():
                pid, _, url = line.partition(" ")
                self._workers[int(pid)] = True
                if not self._is_ready and sum(self._workers.values()) == self._count:
                    self._is_ready = True
                    self._ready(url)

    def _reap(self) -> None:
        while self._workers:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            listened = self._workers.pop(pid)
            code = os.waitstatus_to_exitcode(status)
            if self._is_stopping:
                continue
            if code == _CONFIG_ERROR and not listened and not self._is_ready:  # it said why; so would another
                self._code = code
                self._stop()
                continue
            _logger.error("worker ended, starting another", extra={"pid": pid, "code": code})
            self._restart_at_s = time.monotonic() + _RESTART_S

    def _stop(self) -> None:
        self._is_stopping = True
        self._send(signal.SIGTERM)

    def _send(self, number: signal.Signals) -> None:
        for pid in tuple(self._workers):
            with suppress(ProcessLookupError):
                os.kill(pid, number)
