"""Streamable HTTP: the server behind a secret, on a socket of our own."""

import asyncio
import contextlib
import hmac
import os
import secrets
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import uvicorn
from mcp.server.lowlevel import Server
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["is_loopback", "listen_on", "secret_in", "serve_app"]

_BYTES: Final = 32
_CHARS_MIN: Final = 16


def secret_in(path: Path) -> str:
    """The secret in this file; a new one where there is no file.

    Raises:
        OSError: it cannot be read or written.
        ValueError: what is in it is no secret, or others can read it.
    """
    try:
        return _read(path)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    made = secrets.token_urlsafe(_BYTES)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:  # another was faster
        return _read(path)
    with os.fdopen(descriptor, "w") as file:
        file.write(f"{made}\n")
    return made


def _read(path: Path) -> str:
    with path.open(encoding="ascii", errors="replace") as file:
        if os.name == "posix" and os.fstat(file.fileno()).st_mode & 0o077:
            raise ValueError(f"{path}: others can read it; do 'chmod 600 {path}', or remove it for a new one")
        found = file.read(4_096).strip()
    if len(found) < _CHARS_MIN or not found.isprintable() or " " in found:
        raise ValueError(
            f"{path}: that is no secret of {_CHARS_MIN} characters or more; remove it for a new one"
        )
    return found


_PATH: Final = "/mcp"
_BACKLOG: Final = 128
_SHUTDOWN_S: Final = 1
_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


def is_loopback(host: str) -> bool:
    """Whether nobody but this machine can come in that way, and the SDK refuses pages of other sites there."""
    return host in _LOOPBACK


@contextlib.contextmanager
def listen_on(host: str, port: int) -> Iterator[socket.socket]:
    """A socket that listens; port 0 is any that is free.

    Raises:
        OSError: the address cannot be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    # asyncio leaves it out for sockets that say no protocol; without it each answer in two parts takes 40 ms more.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        yield listening
    finally:
        listening.close()


async def serve_app(
    server: Server[Any],
    listening: socket.socket,
    *,
    host: str,
    secret: str | None,
    ready: Callable[[str], None],
) -> None:
    """Serve until cancelled. On a loopback address the SDK refuses foreign `Host` and `Origin` (DNS rebinding)."""
    app: ASGIApp = server.streamable_http_app(host=host, streamable_http_path=_PATH)
    if secret is not None:
        app = _Guarded(app, secret)
    config = uvicorn.Config(
        app, log_config=None, access_log=False, lifespan="on", timeout_graceful_shutdown=_SHUTDOWN_S
    )
    web = _Web(config, lambda: ready(_url(host, listening)))
    async with asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(web.serve(sockets=[listening]))
        try:
            await asyncio.shield(serving)
        except asyncio.CancelledError:
            web.should_exit = True  # it ends what is under way in order
            await asyncio.wait((serving,), timeout=2 * _SHUTDOWN_S)
            raise


class _Web(uvicorn.Server):
    """Leaves signals to whoever runs it, and says when it is there."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self.started:
            self._ready()


class _Guarded:
    """Lets in who brings the secret."""

    def __init__(self, app: ASGIApp, secret: str) -> None:
        self._app = app
        self._expected = f"Bearer {secret}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not self._is_known(scope):
            refused = PlainTextResponse(
                "this server needs its secret: Authorization: Bearer SECRET",
                status_code=401,
                headers={"WWW-Authenticate": "Bearer"},
            )
            await refused(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _is_known(self, scope: Scope) -> bool:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        return len(given) == 1 and hmac.compare_digest(given[0], self._expected)


def _url(host: str, listening: socket.socket) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listening.getsockname()[1]}{_PATH}"
