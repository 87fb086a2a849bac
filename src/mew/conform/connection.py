"""A participant that the kit plays: a bare connection that sends exactly what it is told, right or wrong."""

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from socket import SHUT_RDWR
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

import aiohttp
from aiohttp import WSMsgType

from .match import Predicate
from .outcome import Transcript, Violation
from .roles import JoinMethod, KitConfig, Role

__all__ = [
    "PROTOCOL",
    "ConnectOptions",
    "GatewayUnreachable",
    "ScriptedClient",
    "UpgradeRefused",
    "open_connection",
]


PROTOCOL: Final = "mew/v0.4"
_HEARD_BYTES_MAX: Final = 16 << 20
_SLICES: Final = 10
_REQUEST: Final = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
_COMPLETE: Final = {"chat": {"text": "hello"}, "mcp/request": _REQUEST, "mcp/proposal": _REQUEST}
"""Payloads that no gateway can find fault with; of other kinds an empty one is complete."""

T = TypeVar("T")


class ScriptedClient:
    """One connection. `received` is every envelope so far, in `texts` as they came; `frames` is what else came.

    `in_order` has the envelopes and the frames as they came one after the other. Who is cut off after an error, which
    a gateway may do (§8.1), comes back by `reconnect`, where there is one, before it says the next thing.
    """

    def __init__(
        self, role: Role, socket: aiohttp.ClientWebSocketResponse, transcript: Transcript, timeout_s: float
    ) -> None:
        self.role = role
        self.name = role.name
        self.id = ""
        self.space: str | None = None
        """Where it connected, if not in the first space."""
        self.welcome: dict[str, Any] = {}
        self.reconnect: Callable[[], Awaitable[object]] | None = None
        self.received: list[dict[str, Any]] = []
        self.texts: list[str] = []
        self.frames: list[bytes | str] = []
        self.in_order: list[dict[str, Any] | bytes | str] = []
        self.closings: list[int] = []
        """The codes with which the gateway closed its connections; 1006 where it did not say."""
        self._socket = socket
        self._transcript = transcript
        self._timeout_s = timeout_s
        self._claimed: set[int] = set()
        self._frames_claimed = 0
        self._before = 0  # so many envelopes came on earlier connections
        self._bytes = 0
        self._has_left = False
        self._news = asyncio.Event()
        self._told = {self._news}  # also of others that wait for what is said here
        self._closed = asyncio.Event()

    @property
    def is_closed(self) -> bool:
        return self._closed.is_set()

    @property
    def is_gone(self) -> bool:
        """Its connection is over, or being closed by itself."""
        return self.is_closed or self._has_left

    @property
    def is_cut_off(self) -> bool:
        """The gateway closed its connection, having sent it an error."""
        errors = (one for one in self.received[self._before :] if one.get("kind") == "system/error")
        return self.is_closed and not self._has_left and any(errors)

    @property
    def capabilities(self) -> list[Any]:
        """Those of its newest welcome."""
        found: list[Any] = (self.welcomes or [self.welcome])[-1]["payload"]["you"]["capabilities"]
        return found

    @property
    def welcomes(self) -> list[dict[str, Any]]:
        """Its own, not those of others, which a gateway may show too (§3.8.1)."""
        return [one for one in self.received if one.get("kind") == "system/welcome" and self._is_mine(one)]

    def _is_mine(self, welcome: dict[str, Any]) -> bool:
        payload = welcome.get("payload")
        you = payload.get("you") if isinstance(payload, dict) else None
        return isinstance(you, dict) and you.get("id") == self.id

    # What it says.

    async def send(self, kind: str, payload: Any = None, **fields: Any) -> dict[str, Any]:
        """An envelope, complete unless a field says otherwise; a field that is `...` is left out."""
        envelope = {
            "protocol": PROTOCOL,
            "id": f"conform-{uuid.uuid4()}",
            "ts": "2026-01-01T00:00:00Z",
            "from": self.id,
            "kind": kind,
            "payload": _COMPLETE.get(kind, {}) if payload is None else payload,
            **fields,
        }
        envelope = {key: value for key, value in envelope.items() if value is not ...}
        await self.send_text(json.dumps(envelope))
        return envelope

    async def send_text(self, text: str | bytes) -> None:
        """A text frame with anything in it."""
        raw = text if isinstance(text, bytes) else text.encode()
        await self._write(raw, WSMsgType.TEXT, raw.decode(errors="backslashreplace"))

    async def send_binary(self, frame: bytes) -> None:
        await self._write(frame, WSMsgType.BINARY, f"binary {frame[:200]!r}")

    async def _write(self, raw: bytes, kind: WSMsgType, shown: str) -> None:
        try:
            await self._be_there()
            self._transcript.sent(self.name, shown)
            await self._socket.send_frame(raw, kind)
        except (aiohttp.ClientError, ConnectionError) as error:
            await self.disconnected("once it cannot be written to")
            if not self.is_cut_off:
                raise Violation(f"the gateway closed the connection of {self.name}: {error}") from error
            await self._be_there()
            await self._socket.send_frame(raw, kind)

    async def _be_there(self) -> None:
        if self.reconnect is not None and self.welcome and self.is_cut_off:
            await self.reconnect()

    # What it hears.

    async def expect(
        self, fits: Predicate, what: str, *, after: "ScriptedClient | None" = None
    ) -> dict[str, Any]:
        """The first envelope not heard yet that fits, waited for, until `after`, where given, is disconnected.

        Raises:
            Violation: it did not come.
        """
        looked_at = 0

        def look() -> dict[str, Any] | None:
            nonlocal looked_at
            since, looked_at = looked_at, len(self.received)
            return self._claim(range(since, looked_at), fits)

        return await self._until(look, what, after)

    def take(self, fits: Predicate) -> dict[str, Any] | None:
        """The first envelope not heard yet that fits, if it has come."""
        return self._claim(range(len(self.received)), fits)

    def _claim(self, places: Iterable[int], fits: Predicate) -> dict[str, Any] | None:
        for place in places:
            if place not in self._claimed and fits(self.received[place]):
                self._claimed.add(place)
                return self.received[place]
        return None

    async def expect_frame(self, fits: Callable[[bytes | str], bool], what: str) -> bytes | str:
        """The first stream frame not heard yet that fits, waited for.

        Raises:
            Violation: it did not come.
        """

        def look() -> bytes | str | None:
            for place in range(self._frames_claimed, len(self.frames)):
                if fits(self.frames[place]):
                    self._frames_claimed = place + 1
                    return self.frames[place]
            return None

        return await self._until(look, what)

    async def _until(
        self, look: Callable[[], T | None], what: str, after: "ScriptedClient | None" = None
    ) -> T:
        """What is found, looked for whenever something came.

        The wait has slices, so that a time in which this program could not run at all is one of them, however long.
        """
        if after is not None:
            after._told.add(self._news)
        for _ in range(_SLICES):
            with suppress(TimeoutError):
                async with asyncio.timeout(self._timeout_s / _SLICES):
                    while (found := look()) is None:
                        for one in (self, after):
                            if one is not None and one.is_closed:
                                raise Violation(
                                    f"expected that {self.name} receives {what}; {one.name} was disconnected"
                                )
                        await self.more()
                    return found
        if (found := look()) is not None:
            return found
        raise Violation(f"expected that {self.name} receives {what}; it did not within {self._timeout_s:g} s")

    async def more(self) -> None:
        """Return when something has come, or the connection is over."""
        self._news.clear()
        await self._news.wait()

    def matching(self, fits: Predicate) -> list[dict[str, Any]]:
        """Every envelope so far that fits."""
        return [envelope for envelope in self.received if fits(envelope)]

    async def disconnected(self, why: str) -> int:
        """The code with which the gateway closes this connection, waited for.

        Raises:
            Violation: it stays open.
        """
        for _ in range(_SLICES):
            with suppress(TimeoutError):
                async with asyncio.timeout(self._timeout_s / _SLICES):
                    await self._closed.wait()
                    return self._socket.close_code or 1006
        raise Violation(f"expected that {self.name} is disconnected {why}; it is not")

    # How it comes and goes.

    def adopt(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        """Go on with another connection of the same participant; `read_loop` must run anew."""
        assert self.is_closed, f"{self.name} is connected"
        self._socket = socket
        self._closed = asyncio.Event()
        self._before, self._has_left = len(self.received), False

    async def leave(self) -> None:
        self._has_left = True
        self._transcript.sent(self.name, "closes the connection")
        await self._socket.close()

    def abort(self) -> None:
        """End the connection without a word: no close frame goes before it."""
        self._has_left = True
        self._transcript.sent(self.name, "breaks off the connection")
        self._socket.get_extra_info("socket").shutdown(SHUT_RDWR)

    async def read_loop(self) -> None:
        """Take in what comes, until the connection is closed, or too much has come."""
        try:
            async for message in self._socket:
                if message.type is WSMsgType.TEXT:
                    self._take(message.data)
                elif message.type is WSMsgType.BINARY:
                    self._take_binary(message.data)
                self._tell()
                if self._bytes > _HEARD_BYTES_MAX:
                    self._transcript.received(self.name, f"more than {_HEARD_BYTES_MAX} bytes: enough")
                    self.abort()
                    return
        except (aiohttp.ClientError, OSError, ValueError, RuntimeError) as error:
            self._transcript.received(self.name, f"what is no WebSocket: {error}")
        finally:
            self._transcript.received(self.name, f"closed, code {self._socket.close_code}")
            if not self._has_left:
                self.closings.append(self._socket.close_code or 1006)
            self._closed.set()
            self._tell()

    def _take_binary(self, data: bytes) -> None:
        """The prefix tells a stream frame from an envelope (§3.10.3), whatever the WebSocket calls it."""
        if not data.startswith(b"#"):
            with suppress(UnicodeDecodeError):
                self._take(data.decode())
                return
        self._transcript.received(self.name, f"binary {data[:200]!r}")
        self._keep(data)

    def _take(self, text: str) -> None:
        self._transcript.received(self.name, text)
        envelope: Any = None
        if not text.startswith("#"):
            with suppress(ValueError, RecursionError):
                envelope = json.loads(text)
        if not isinstance(envelope, dict):
            self._keep(text)
            return
        self._bytes += len(text)
        self.received.append(envelope)
        self.in_order.append(envelope)
        self.texts.append(text)

    def _keep(self, frame: bytes | str) -> None:
        self._bytes += len(frame)
        self.frames.append(frame)
        self.in_order.append(frame)

    def _tell(self) -> None:
        for news in self._told:
            news.set()


_MESSAGE_BYTES_MAX: Final = 8 << 20
_CLOSE_S_MAX: Final = 1.0


class UpgradeRefused(Exception):
    """The gateway did not upgrade a connection, but answered with this HTTP status."""

    def __init__(self, status: int, reason: str = "") -> None:
        super().__init__(f"HTTP {status} {reason}".strip())
        self.status = status


class GatewayUnreachable(Violation):
    """Nobody answers there, or in no way that a web server would."""


@dataclass(frozen=True, slots=True)
class ConnectOptions:
    """How one comes to the door where it is not as the cast says: what else is in the URL and among the headers."""

    join: JoinMethod | None = None
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


_AS_THE_CAST_SAYS: Final = ConnectOptions()


async def open_connection(
    session: aiohttp.ClientSession,
    config: KitConfig,
    role: Role,
    transcript: Transcript,
    *,
    space: str | None = None,
    again: ScriptedClient | None = None,
    options: ConnectOptions = _AS_THE_CAST_SAYS,
) -> ScriptedClient:
    """Connect as this role, without waiting for what the gateway says; `again` is an actor to go on with.

    Raises:
        Refused: the gateway did not upgrade the connection.
        Unreachable: there is none.
    """
    if role.token not in ("", role.id):  # those are nobody's secret, and would be struck out everywhere
        transcript.hide(role.token)
    join = options.join or config.join
    headers: dict[str, str] = {}
    protocols: tuple[str, ...] = ()
    if role.token and join is JoinMethod.HEADER:
        headers["Authorization"] = f"Bearer {role.token}"
    elif role.token and join is JoinMethod.SUBPROTOCOL:
        protocols = (PROTOCOL.replace("/", "."), f"mew.bearer.{role.token}")
    name = config.space if space is None else space
    query = urlencode({**({} if join is JoinMethod.FRAME else {"space": name}), **options.query})
    url = f"{config.url}/ws?{query}" if query else f"{config.url}/ws"
    headers |= options.headers
    transcript.sent(role.name, f"GET {url} as {join} {dict(options.headers) or ''}".rstrip())
    try:
        socket = await session.ws_connect(
            url,
            headers=headers,
            protocols=protocols,
            max_msg_size=_MESSAGE_BYTES_MAX,
            timeout=aiohttp.ClientWSTimeout(ws_close=min(config.timeout_s, _CLOSE_S_MAX)),
        )
    except aiohttp.WSServerHandshakeError as error:
        reason = _phrase(error.status)
        transcript.received(role.name, f"HTTP {error.status} {reason}, and no WebSocket")
        raise UpgradeRefused(error.status, reason) from error
    except TimeoutError as error:
        raise GatewayUnreachable(f"{config.url} cannot be reached: it does not answer") from error
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise GatewayUnreachable(
            f"{config.url} cannot be reached: {str(error) or type(error).__name__}"
        ) from error
    if again is None:
        client = ScriptedClient(role, socket, transcript, config.timeout_s)
    else:
        client = again
        client.adopt(socket)
    if join is JoinMethod.FRAME:
        joining = {"type": "join", "space": name, "token": role.token, "participantId": role.id or role.name}
        await client.send_text(json.dumps(joining))
    return client


def _phrase(status: int) -> str:
    """What HTTP calls it, if it does."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""
