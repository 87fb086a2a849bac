"""Puts the parts together, and is the only place that does: config, rooms, doors, signals."""

import asyncio
import errno
import gc
import logging
import signal
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

from aiohttp import web

from mew.protocol.errors import CloseCode

from .auth import Authenticator, Chain, StaticTokens
from .config import load_config
from .config_node import ConfigError
from .guard import Guard
from .http import HttpDoor, problems
from .jwt import JwtVerifier
from .node import Node
from .settings import Config
from .socket import SocketDoor
from .tokens import load_tokens
from .trace import Trace

__all__ = ["Gateway", "serve"]

_logger = logging.getLogger(__name__)

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Ready = Callable[[str], None]


class Gateway:
    """A running gateway. An async context: inside it the gateway serves."""

    def __init__(self, config: Config, environ: Mapping[str, str], trace: Path | None = None) -> None:
        self._config = config
        self._environ = environ
        self._trace_file = trace
        self._stack = AsyncExitStack()
        self._node: Node
        self._guard: Guard
        self._sockets: SocketDoor
        self._site: web.SockSite
        self._tls: ssl.SSLContext | None = None
        self.url = ""

    async def __aenter__(self) -> "Gateway":
        async with AsyncExitStack() as stack:
            await self._start(stack)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *exc: object) -> None:
        _logger.info("stopping")
        await self._site.stop()  # nobody new is let in while the others are seen out
        goodbye = "the gateway is stopping; come back"
        self._sockets.dismiss(CloseCode.SHUTDOWN, goodbye)
        await self._node.dismiss(CloseCode.SHUTDOWN, goodbye)
        await self._stack.aclose()

    def reload(self) -> None:
        """Read the file again; an invalid one changes nothing and says why."""
        try:
            config = load_config(self._config.file, self._environ)
            authenticator = _authenticator(config, self._environ)
            self._reload_tls(config)
        except ConfigError as error:
            _logger.error("configuration not reloaded: %s", error)
            return
        self._config = config
        self._guard.authenticator = authenticator
        self._guard.server = replace(config.server, host=self._guard.server.host)
        self._node.reconfigure(config)
        _logger.info("configuration reloaded", extra={"file": str(config.file)})

    def _reload_tls(self, config: Config) -> None:
        """Handshakes from here on use the certificate that the file names now."""
        if (self._tls is None) != (config.tls is None):
            raise ConfigError("tls: cannot be turned on or off while running; restart the gateway")
        if self._tls is not None and config.tls is not None:
            _tls(config)  # a pair that does not fit must not spoil the context in use
            self._tls.load_cert_chain(config.tls.cert, config.tls.key)

    async def _start(self, stack: AsyncExitStack) -> None:
        config = self._config
        authenticator = _authenticator(config, self._environ)
        self._tls = _tls(config)
        trace = None
        if self._trace_file is not None:
            trace = _trace(self._trace_file)
            stack.callback(trace.close)
        listener = _bind(config)
        stack.callback(listener.close)
        self.url = _url(config, listener.getsockname()[1])
        self._node = await stack.enter_async_context(Node(config, _as_ws(self.url), trace))
        self._guard = Guard(self._node.rooms, authenticator, config.server)
        self._sockets = SocketDoor(self._guard, self._node.now)
        stack.callback(self._node.spawn(self._sockets.keep_alive()).cancel)
        runner = web.AppRunner(
            self._app(self._sockets), access_log=None, shutdown_timeout=config.server.shutdown_grace_s
        )
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        self._site = web.SockSite(runner, listener, ssl_context=self._tls, backlog=1024)
        await self._site.start()
        for note in config.notes:
            _logger.warning(note)
        if self._tls is None and not _is_loopback(config.server.host):
            _logger.warning("tokens travel unencrypted: no 'tls', and not only this machine can connect")

    def _app(self, socket_door: SocketDoor) -> web.Application:
        http_door = HttpDoor(self._guard, self._node)

        @web.middleware
        async def upgrades(request: web.Request, handler: _Handler) -> web.StreamResponse:
            if "websocket" in request.headers.get("Upgrade", "").lower():
                return await socket_door.handle(request)
            return await handler(request)

        app = web.Application(middlewares=[problems, upgrades])
        http_door.add_routes(app.router)
        return app


async def serve(config: Config, environ: Mapping[str, str], *, trace: Path | None, ready: Ready) -> None:
    """Serve until told to stop by SIGINT or SIGTERM; reload on SIGHUP. `ready` is told where once it listens.

    Raises:
        ConfigError: it cannot start so: a token, the certificate, or the address.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    async with Gateway(config, environ, trace) as gateway:
        for name in ("SIGINT", "SIGTERM"):
            loop.add_signal_handler(getattr(signal, name), stop.set)
        if hasattr(signal, "SIGHUP"):
            loop.add_signal_handler(signal.SIGHUP, gateway.reload)
        gc.collect()
        gc.freeze()  # what is here now stays: no collection need look at it again
        ready(gateway.url)
        await stop.wait()


def _authenticator(config: Config, environ: Mapping[str, str]) -> Authenticator:
    tokens = load_tokens(config, environ)
    for path in tokens.made:
        _logger.info("token made", extra={"file": str(path)})
    for note in tokens.notes:
        _logger.warning(note)
    static = StaticTokens(tokens.tables)
    return static if config.jwt is None else Chain(static, JwtVerifier(config.jwt))


def _trace(file: Path) -> Trace:
    try:
        return Trace(file)
    except OSError as error:
        raise ConfigError(f"--trace {file}: cannot be written: {error.strerror}") from None


def _bind(config: Config) -> socket.socket:
    host, port = config.server.host, config.server.port
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = found[0]
        return socket.create_server(address[:2], family=family, backlog=1024)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise ConfigError(f"port {port} on {host} is taken; choose another with --port") from None
        raise ConfigError(f"cannot listen on {host}:{port}: {error.strerror}") from None


def _tls(config: Config) -> ssl.SSLContext | None:
    if config.tls is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(config.tls.cert, config.tls.key)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"tls: {config.tls.cert} and {config.tls.key} do not load: {error}") from None
    return context


def _url(config: Config, port: int) -> str:
    if config.server.public_url is not None:
        return config.server.public_url.rstrip("/")
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(config.server.host, config.server.host)
    if ":" in host and not host.startswith("["):
        host = f"[{host}]"
    return f"{'http' if config.tls is None else 'https'}://{host}:{port}"


def _is_loopback(host: str) -> bool:
    return host == "localhost" or host.startswith("127.") or host == "::1"


def _as_ws(url: str) -> str:
    return "ws" + url.removeprefix("http")
