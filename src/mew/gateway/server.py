"""The gateway server: the one place that assembles configuration, rooms, endpoints and signal handlers."""

import asyncio
import errno
import gc
import logging
import os
import signal
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from aiohttp import web

from mew.journal.port import JournalStorage, JournalUnavailable
from mew.journal.redis.address import RedisAddress
from mew.journal.retention import KEEP_ALL
from mew.protocol.errors import CloseCode, Refusal

from .auth.authenticator import StaticTokens
from .auth.guard import AccessGuard, Admission, Denied
from .auth.jwt import JwtVerifier
from .auth.pre_auth import PreAuthLimiter
from .auth.sessions import PageSessions, sessions_path
from .auth.tokens import load_tokens
from .config.loader import load_config
from .config.server_sections import is_loopback
from .config.settings import Config, JournalConfig, ServerConfig
from .config.value import ConfigError
from .http.api import HttpApi, problems
from .http.responses import ResponseBudget
from .node import Node, OpenRoom
from .room.room import Room
from .storage import Storage
from .trace import Trace
from .websocket.endpoint import WebSocketEndpoint

__all__ = ["Gateway", "serve"]

_logger = logging.getLogger(__name__)

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Ready = Callable[[str], None]

_BACKLOG: Final = 1024
_CUT_OFF_S: Final = 0.25  # aiohttp waits this long, twice, for handlers of connections that are cut already
_GOODBYE: Final = "the gateway is shutting down; reconnect later"
_WATCHED: Final = frozenset({"/health", "/ready", "/metrics"})  # answered until the end


class Gateway:
    """A running gateway, as an async context manager.

    `host`, `port` and `redis` override the configuration file; `ephemeral` disables the journal (§2.2), or allows a
    Redis that loses it. `reuse_port`: other processes listen on the same port.
    `open_room`, `journals` and `now` replace how rooms are opened, for playback.
    """

    def __init__(
        self,
        config: Config,
        environ: Mapping[str, str],
        trace: Path | None = None,
        *,
        host: str | None = None,
        port: int | None = None,
        ephemeral: bool = False,
        redis: RedisAddress | None = None,
        reuse_port: bool = False,
        open_room: OpenRoom | None = None,
        journals: JournalStorage | None = None,
        now: Callable[[], datetime] | None = None,
    ) -> None:
        self._config = config
        self._environ = environ
        self._trace_file = trace
        self._host = config.server.host if host is None else host
        self._port = config.server.port if port is None else port
        self._ephemeral = ephemeral
        self._redis = config.redis if redis is None else redis
        self._reuse_port = reuse_port
        self._open_room = open_room
        self._journals = journals
        self._now = now
        self._stack = AsyncExitStack()
        self._jwt: JwtVerifier | None = None
        self._node: Node
        self._storage: Storage
        self._guard: _ServerGuard
        self._limiter: PreAuthLimiter
        self._sockets: WebSocketEndpoint
        self._server: asyncio.Server
        self._tls: ssl.SSLContext | None = None
        self.url = ""

    async def __aenter__(self) -> "Gateway":
        async with AsyncExitStack() as stack:
            await self._start(stack)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Shut down within `shutdown_grace_s` plus one second, even if clients stay connected."""
        _logger.info("stopping")
        try:
            self._server.close()  # accept no new connections while the open ones are closed
            self._sockets.begin_shutdown(CloseCode.SHUTDOWN, _GOODBYE)
            self._node.begin_shutdown(CloseCode.SHUTDOWN, _GOODBYE)
            async with asyncio.timeout(self._config.server.shutdown_grace_s):
                await self._limiter.quiet()
                await self._sockets.quiet()
                await self._node.mailed()
        except TimeoutError:
            _logger.info("shutdown exceeded 'shutdown_grace_s'; closing the remaining connections")
        finally:
            self._limiter.abort_all()
            self._sockets.abort_all()
            await self._stack.aclose()

    def reload(self) -> None:
        """Reload the configuration file; log the error and change nothing if it is invalid."""
        if self._node.stopping:
            _logger.info("configuration not reloaded: the gateway is stopping")
            return
        before = self._config
        try:
            config = load_config(before.file, self._environ)
            verifier = self._jwt if config.jwt == before.jwt else _verifier(config)
            configured = _configured(config, self._environ)
            self._reload_tls(config)
        except ConfigError as error:
            _logger.error("configuration not reloaded: %s", error)
            return
        self._config = config
        self._jwt = verifier
        self._guard.configured = configured
        self._guard.authenticator = verifier
        self._guard.server = self._listening(config)
        self.url = self._guard.server.local_url(config.tls)
        self._storage.update_settings(config.journal)
        self._node.reconfigure(config, _as_ws(self._guard.server.advertised_url(config.tls)))
        _logger.info("configuration reloaded", extra={"file": str(config.file)})
        _log_notes(config)
        changed = [
            key for key in ("host", "port") if getattr(config.server, key) != getattr(before.server, key)
        ]
        keys = [f"server.{key}" for key in changed]
        if _opened_once(config) != _opened_once(before) and not self._ephemeral:
            keys.append("journal")
        if keys:
            _logger.warning("these keys need a restart to take effect", extra={"keys": ", ".join(keys)})

    def _reload_tls(self, config: Config) -> None:
        """Use the certificate that the file names now for new TLS handshakes."""
        if (self._tls is None) != (config.tls is None):
            raise ConfigError("tls: cannot be turned on or off while running; restart the gateway")
        if self._tls is not None:
            _tls(config)  # an invalid pair must not replace the one in use
            _load_certificate(self._tls, config)

    async def _start(self, stack: AsyncExitStack) -> None:
        config = self._config
        self._jwt = _verifier(config)
        configured = _configured(config, self._environ)
        self._tls = _tls(config)
        trace = None
        if self._trace_file is not None:
            trace = _trace(self._trace_file)
            stack.callback(trace.close)
        listener = _bind(self._host, self._port, reuse_port=self._reuse_port)
        stack.callback(listener.close)
        self._port = listener.getsockname()[1]
        server = self._listening(config)
        self.url = server.local_url(config.tls)
        try:
            journal = None if self._ephemeral or self._open_room is not None else config.journal
            redis = None if self._open_room is not None else self._redis
            self._storage = Storage(
                journal, trace, self._now, redis=redis, is_ephemeral=self._ephemeral, describe=self._describe
            )
            stack.callback(self._storage.close)
            open_room = self._open_room or self._storage.open_room
            journals = self._journals or self._storage.journals
            node = Node(
                config, _as_ws(server.advertised_url(config.tls)), journals, open_room, now=self._storage.now
            )
            node.disk = self._storage.disk
            self._node = await stack.enter_async_context(node)
            stack.callback(self._node.spawn(self._storage.keep_index()).cancel)
            stack.callback(self._node.spawn(self._storage.watch(self._node.stop_all)).cancel)
        except JournalUnavailable as error:
            raise ConfigError(str(error)) from error
        self._limiter = PreAuthLimiter(
            head_timeout_s=lambda: self._guard.server.join_timeout_s,
            is_proxy=lambda address: self._guard.is_proxy(address),
        )
        self._guard = _ServerGuard(self._node, self._limiter, configured, self._jwt, server, self._sessions())
        self._sockets = WebSocketEndpoint(self._guard, self._node.now)
        stack.callback(self._node.spawn(self._sockets.keep_alive()).cancel)
        await self._listen(stack, listener)
        _log_notes(config)
        if self._tls is None and not is_loopback(self._host):
            _logger.warning(
                "tokens are sent unencrypted: configure 'tls', or listen on the loopback interface only"
            )

    def _describe(self) -> dict[str, Any]:
        """What `mew cluster status` shows of this node."""
        rooms = self._node.rooms.values() if hasattr(self, "_node") else ()
        return {
            "url": self.url,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "version": version("mew-protocol"),
            "spaces": len(rooms),
            "connections": sum(len(room.connections) for room in rooms),
        }

    def _sessions(self) -> PageSessions:
        passing = self._ephemeral or self._open_room is not None
        return PageSessions(None if passing else sessions_path(self._config.state_dir), self._node.now)

    async def _listen(self, stack: AsyncExitStack, listener: socket.socket) -> None:
        runner = web.AppRunner(self._app(self._sockets), shutdown_timeout=_CUT_OFF_S)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        assert runner.server is not None, "set up, and yet without a server"
        handshake_s = None if self._tls is None else self._config.server.join_timeout_s
        self._server = await asyncio.get_running_loop().create_server(
            self._limiter.connections(runner.server),
            sock=listener,
            ssl=self._tls,
            backlog=_BACKLOG,
            ssl_handshake_timeout=handshake_s,
        )
        stack.callback(self._server.close)

    def _app(self, socket_door: WebSocketEndpoint) -> web.Application:
        answers = ResponseBudget()
        http_door = HttpApi(self._guard, self._node, answers)

        @web.middleware
        async def counted(request: web.Request, handler: _Handler) -> web.StreamResponse:
            with self._limiter.serving(request.protocol):
                return await answers.send(request, handler)

        @web.middleware
        async def upgrades(request: web.Request, handler: _Handler) -> web.StreamResponse:
            if self._node.stopping and request.path not in _WATCHED:
                raise _stopping()
            if "websocket" in request.headers.get("Upgrade", "").lower():
                return await socket_door.handle(request)
            if request.headers.get("Content-Encoding", "identity").lower() != "identity":
                raise Denied(
                    415, "unsupported_encoding", "send the body as it is, without 'Content-Encoding'"
                )
            return await handler(request)

        app = web.Application(middlewares=[counted, problems, upgrades])
        http_door.add_routes(app.router)
        return app

    def _listening(self, config: Config) -> ServerConfig:
        """The configured settings with the host and port we actually listen on."""
        return replace(config.server, host=self._host, port=self._port)


class _ServerGuard(AccessGuard):
    """A guard that reports authenticated connections to the limiter and denies access during shutdown."""

    def __init__(
        self,
        node: Node,
        limiter: PreAuthLimiter,
        configured: StaticTokens,
        verifier: JwtVerifier | None,
        server: ServerConfig,
        sessions: PageSessions,
    ) -> None:
        super().__init__(node.rooms, server, configured=configured, sessions=sessions, authenticator=verifier)
        self._node = node
        self._limiter = limiter

    def room(self, name: str | None) -> Room:
        if name in self._node.failed and name not in self._node.rooms:
            raise Denied(503, Refusal.UNAVAILABLE, "the space is currently unavailable", retry_after_s=5)
        return super().room(name)

    async def admit(self, request: web.BaseRequest, token: str | None, space: str | None) -> Admission:
        admission = await super().admit(request, token, space)
        self._welcome(request, admission)
        return admission

    async def admit_anywhere(self, request: web.BaseRequest, token: str | None) -> list[Admission]:
        admissions = await super().admit_anywhere(request, token)
        self._welcome(request, admissions[0])
        return admissions

    def is_proxy(self, address: str) -> bool:
        """Whether the address is a proxy: a trusted one, or any address of this machine."""
        return is_loopback(address) or self._is_trusted(address)

    def _welcome(self, request: web.BaseRequest, admission: Admission) -> None:
        if self._node.stopping:  # shutdown may have begun while the token was verified
            raise _stopping()
        self._limiter.known(request.protocol, (admission.room.id, admission.who))


async def serve(
    config: Config,
    environ: Mapping[str, str],
    *,
    trace: Path | None,
    ready: Ready,
    host: str | None = None,
    port: int | None = None,
    ephemeral: bool = False,
    redis: RedisAddress | None = None,
    reuse_port: bool = False,
) -> None:
    """Serve until SIGINT or SIGTERM; reload on SIGHUP. `ready` is called with the URL once the gateway listens.

    Raises:
        ConfigError: a token, the certificate, the address or the journal cannot be used.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    gateway = Gateway(
        config,
        environ,
        trace,
        host=host,
        port=port,
        ephemeral=ephemeral,
        redis=redis,
        reuse_port=reuse_port,
    )
    async with gateway:
        for name in ("SIGINT", "SIGTERM"):
            loop.add_signal_handler(getattr(signal, name), stop.set)
        if hasattr(signal, "SIGHUP"):
            loop.add_signal_handler(signal.SIGHUP, gateway.reload)
        gc.collect()
        gc.freeze()  # long-lived objects: exclude them from garbage collection
        ready(gateway.url)
        await stop.wait()


def _stopping() -> Denied:
    return Denied(503, Refusal.UNAVAILABLE, _GOODBYE, retry_after_s=5)


def _verifier(config: Config) -> JwtVerifier | None:
    return None if config.jwt is None else JwtVerifier(config.jwt)


def _configured(config: Config, environ: Mapping[str, str]) -> StaticTokens:
    tokens = load_tokens(config, environ)
    for path in tokens.made:
        _logger.info("token made", extra={"file": str(path)})
    for note in tokens.notes:
        _logger.warning(note)
    return StaticTokens(tokens.tables)


def _opened_once(config: Config) -> JournalConfig | None:
    """The journal settings that need a restart."""
    return None if config.journal is None else replace(config.journal, keep=KEEP_ALL, warn_bytes=0)


def _log_notes(config: Config) -> None:
    for note in config.notes:
        _logger.warning(note)


def _trace(file: Path) -> Trace:
    try:
        return Trace(file)
    except OSError as error:
        raise ConfigError(f"--trace {file}: cannot be written: {error.strerror}") from None


def _bind(host: str, port: int, *, reuse_port: bool) -> socket.socket:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = found[0]
        return socket.create_server(address[:2], family=family, backlog=_BACKLOG, reuse_port=reuse_port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise ConfigError(f"port {port} on {host} is taken; choose another with --port") from None
        raise ConfigError(f"cannot listen on {host}:{port}: {error.strerror}") from None


def _tls(config: Config) -> ssl.SSLContext | None:
    if config.tls is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    _load_certificate(context, config)
    return context


def _load_certificate(context: ssl.SSLContext, config: Config) -> None:
    assert config.tls is not None, "a certificate without 'tls'"
    try:
        context.load_cert_chain(config.tls.cert, config.tls.key)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"tls: {config.tls.cert} and {config.tls.key} do not load: {error}") from None


def _as_ws(url: str) -> str:
    return "ws" + url.removeprefix("http")
