"""The gateway at which a participant is tried: a real one, and a relay before it that sees all that passes."""

import asyncio
import os
import secrets
import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, ClassVar, Final

import aiohttp
from aiohttp import WSMsgType, web

from mew.conform.participant.prompts import Prompts
from mew.conform.participant.subject import Arrival, ParticipantUnderTest
from mew.conform.roles import KitConfig, Role
from mew.gateway.config.settings import Config, Limits, ParticipantConfig, SpaceConfig
from mew.gateway.server import Gateway
from mew.protocol.capability import Capability
from mew.protocol.envelope import ParticipantId

from .test_run import ROLES, TestRun, allowance

__all__ = ["SPACE", "CannotListen", "Relay", "TestGateway", "child_process", "open_test_gateway"]


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

    def __init__(self, subject: ParticipantUnderTest, upstream: str, host: str, port: int) -> None:
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
        self,
        subject: ParticipantUnderTest,
        socket: web.WebSocketResponse,
        gateway: aiohttp.ClientWebSocketResponse,
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

    async def abort(self) -> None:
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


SPACE: Final = "conform"
_BASELINE: Final = ("mcp/response", "capability/grant-ack")
_LIMITS: Final = Limits(envelopes_per_second=100_000, burst=100_000)
_TERMINATE_S: Final = 3.0
_STDERR: Final = 2


@dataclass(slots=True)
class TestGateway:
    """`url` and `token`, which is also in a file, are what the participant needs; `process` is it, if the kit's."""

    __test__: ClassVar = False  # its name looks like a test's to pytest
    test_run: TestRun
    url: str
    token: str = field(repr=False)
    token_file: Path
    process: asyncio.subprocess.Process | None = None

    @property
    def ended(self) -> int | None:
        """With what the process ended, if it has."""
        return None if self.process is None else self.process.returncode

    @property
    def environment(self) -> dict[str, str]:
        """What a participant finds its way by: as under `mew up`, and the address and the token by themselves."""
        return {
            "MEW_GATEWAY": self.url,
            "MEW_SPACE": SPACE,
            "MEW_TOKEN_FILE": str(self.token_file),
            "MEW_URL": self.url,
            "MEW_TOKEN": self.token,
        }


@asynccontextmanager
async def open_test_gateway(
    prompts: Prompts, host: str = "127.0.0.1", port: int = 0
) -> AsyncIterator[TestGateway]:
    """Listen there for the participant, for as long as this lasts.

    Raises:
        CannotListen: the address is not free.
    """
    # A name that nobody can guess: it has to come from the welcome (§8.2).
    name, token = f"subject-{secrets.token_hex(3)}", secrets.token_urlsafe(24)
    subject = ParticipantUnderTest(name, prompts.timeout_s, token)
    tokens = {name: token, **{role: secrets.token_urlsafe(24) for role in ROLES}}
    with TemporaryDirectory(prefix="mew-conform-") as folder:
        space = _space(subject.id, tokens, prompts)
        config = Config(file=Path(folder, "space.yaml"), spaces={SPACE: space})
        async with Gateway(config, {}, host="127.0.0.1", port=0, ephemeral=True) as gateway:
            url = "ws" + gateway.url.removeprefix("http")
            roles = {name: Role(name, tokens[name], name) for name in ROLES}
            kit = KitConfig(url, SPACE, roles, timeout_s=prompts.timeout_s)
            async with Relay(subject, url, host, port) as relay:
                file = _write_token(Path(folder), token)
                yield TestGateway(TestRun(kit, subject, prompts), relay.url, token, file)


def _write_token(folder: Path, token: str) -> Path:
    """Write the token to a file that only its owner can read."""
    file = folder / "participant.token"
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as written:
        written.write(token)
    return file


def _space(subject: str, tokens: dict[str, str], prompts: Prompts) -> SpaceConfig:
    held = {**ROLES, subject: allowance(prompts)}
    participants = {
        ParticipantId(name): ParticipantConfig(
            id=ParticipantId(name), tokens=(tokens[name],), capabilities=_parsed(capabilities)
        )
        for name, capabilities in held.items()
    }
    return SpaceConfig(
        id=SPACE, name="Conformance", participants=participants, baseline=_parsed(_BASELINE), limits=_LIMITS
    )


def _parsed(written: tuple[Any, ...]) -> tuple[Capability, ...]:
    return tuple(map(Capability.parse, written))


@asynccontextmanager
async def child_process(command: str, test_gateway: TestGateway) -> AsyncIterator[None]:
    """The participant as a process of ours, with what it needs in its environment; what it prints goes to stderr.

    Raises:
        OSError: it cannot be started.
    """

    async def start() -> None:
        await _stop(test_gateway)
        test_gateway.process = await asyncio.create_subprocess_exec(
            *shlex.split(command), env={**os.environ, **test_gateway.environment}, stdout=_STDERR
        )

    await start()
    test_gateway.test_run.revive = start
    try:
        yield
    finally:
        await _stop(test_gateway)


async def _stop(test_gateway: TestGateway) -> None:
    process = test_gateway.process
    if process is None:
        return
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(_TERMINATE_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
