"""The door for the participant under test: all it sends and is shown passes here, to and from a real gateway.

So the kit sees what it tries, also what the gateway then refuses, and can put before it what no gateway would.
"""

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Final

import aiohttp
from aiohttp import WSMsgType, web

from .subject import Arrival, Subject

__all__ = ["CannotListen", "Relay"]

_FRAME_BYTES_MAX: Final = 64 << 20
_CLOSE_S: Final = 1.0
_GOING_AWAY: Final = 1001
_RESTARTING: Final = 1012
_BEARER: Final = "mew.bearer."
_TOKEN_IN_URL: Final = ("token", "access_token", "authorization")


class CannotListen(Exception):
    """The address is taken, or not one of this machine."""


class Relay:
    """An async context: inside it, it listens at `url` and passes on to the gateway at `upstream`."""

    def __init__(self, subject: Subject, upstream: str, host: str, port: int) -> None:
        self.subject = subject
        self.url = ""
        self._upstream = upstream
        self._host = host
        self._port = port
        self._session: aiohttp.ClientSession
        self._runner: web.AppRunner

    async def __aenter__(self) -> "Relay":
        """
        Raises:
            CannotListen: not there.
        """
        self._session = aiohttp.ClientSession()
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, shutdown_timeout=_CLOSE_S, access_log=None)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self._host, self._port).start()
        except OSError as error:
            await self.__aexit__(None, None, None)
            raise CannotListen(f"cannot listen on {self._host}:{self._port}: {error.strerror}") from error
        host, port = self._runner.addresses[0][:2]
        self.url = f"ws://[{host}]:{port}" if ":" in host else f"ws://{host}:{port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()  # so that what passes on ends
        await self._runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        if "websocket" not in request.headers.get("Upgrade", "").lower():
            raise web.HTTPNotFound(text="this gateway has a WebSocket at /ws, and nothing else")
        offered = tuple(
            part.strip() for part in request.headers.get("Sec-WebSocket-Protocol", "").split(",") if part
        )
        headers = {name: request.headers[name] for name in ("Authorization",) if name in request.headers}
        try:
            gateway = await self._session.ws_connect(
                f"{self._upstream}{request.path_qs}",
                headers=headers,
                protocols=offered,
                max_msg_size=_FRAME_BYTES_MAX,
                compress=0,
            )
        except aiohttp.WSServerHandshakeError as error:
            self.subject.arrived(self._arrival(request, offered, admitted=False))
            return web.Response(status=error.status)
        except (aiohttp.ClientError, OSError):
            return web.Response(status=503)
        self.subject.arrived(self._arrival(request, offered, admitted=True))
        chosen = () if gateway.protocol is None else (gateway.protocol,)
        socket = web.WebSocketResponse(
            protocols=chosen, max_msg_size=_FRAME_BYTES_MAX, compress=False, timeout=_CLOSE_S
        )
        await socket.prepare(request)
        await _Passing(self.subject, socket, gateway).run()
        return socket

    def _arrival(self, request: web.Request, offered: tuple[str, ...], *, admitted: bool) -> Arrival:
        """What it says without the token: that is named by where it was."""
        query = {
            key: "[token]" if key.lower() in _TOKEN_IN_URL else value for key, value in request.query.items()
        }
        brings = "no place"
        if any(key.lower() in _TOKEN_IN_URL for key in query):
            brings = "the URL"
        elif request.headers.get("Authorization", "").lower().startswith("bearer "):
            brings = "the Authorization header"
        elif any(name.startswith(_BEARER) for name in offered):
            brings = "a subprotocol"
        return Arrival(request.path, query, brings, admitted, self.subject.place)


class _Passing:
    """One connection of the participant, and the one to the gateway behind it."""

    def __init__(
        self, subject: Subject, socket: web.WebSocketResponse, gateway: aiohttp.ClientWebSocketResponse
    ) -> None:
        self._subject = subject
        self._socket = socket
        self._gateway = gateway

    async def run(self) -> None:
        """Until either side ends."""
        self._subject.connected(self)
        async with asyncio.TaskGroup() as tasks:
            down = tasks.create_task(self._down())
            try:
                await self._up()
            finally:
                self._subject.left(self, self._socket.close_code)
                await self._gateway.close()
                down.cancel()

    async def deliver(self, data: str | bytes) -> None:
        if isinstance(data, str):
            await self._socket.send_str(data)
        else:
            await self._socket.send_bytes(data)

    async def cut(self) -> None:
        await self._socket.close(code=_RESTARTING)

    async def _up(self) -> None:
        async for message in self._socket:
            if message.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
                continue
            self._subject.sent(message.data)
            with suppress(
                ConnectionError
            ):  # what it tries was seen, and that the gateway is gone it will hear
                if isinstance(message.data, str):
                    await self._gateway.send_str(message.data)
                else:
                    await self._gateway.send_bytes(message.data)

    async def _down(self) -> None:
        with suppress(ConnectionError):
            async for message in self._gateway:
                if message.type in (WSMsgType.TEXT, WSMsgType.BINARY):
                    await self.deliver(self._subject.shown(message.data))
        await self._socket.close(code=self._gateway.close_code or _GOING_AWAY)
