"""Connections to a gateway: from the first byte to the welcome, and after it: counting, reading or sending."""

import asyncio
import secrets
import ssl
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from itertools import islice
from typing import Any, Final, Protocol, TypeVar, cast
from urllib.parse import quote, urlencode, urlsplit

from msgspec import Struct, field

from mew.protocol.errors import CloseCode, ProtocolError, Refusal
from mew.protocol.json import decode_json

from .frames import (
    BINARY,
    CLOSE,
    CLOSING,
    CONTROL_BYTES_MAX,
    PING,
    PONGED,
    TEXT,
    FrameParser,
    pong,
    read_close,
)

__all__ = [
    "NOTHING_DUE",
    "CountingConnection",
    "Credentials",
    "GatewayAddress",
    "JoinRefused",
    "LoadFailed",
    "LoadPhase",
    "LoadRefused",
    "RateLimited",
    "ReadingConnection",
    "SendingConnection",
    "WelcomedConnection",
    "close_all",
    "enter",
    "enter_all",
    "first_of",
    "fresh_run",
    "seat_counters",
    "secure_context",
    "some",
    "was_closed",
    "was_refused",
]


_PORTS = {"ws": 80, "http": 80, "wss": 443, "https": 443}
_KEY = "dGhlIHNhbXBsZSBub25jZQ=="  # anybody's: what it is good against, proxies that cache, is not in the way here


class Credentials(Struct, frozen=True):
    """Somebody one may be."""

    who: str
    token: str = field(default="")

    def __repr__(self) -> str:
        return f"Seat({self.who!r})"


class GatewayAddress(Struct, frozen=True):
    """A space of a gateway; None where it has a single one."""

    host: str
    port: int
    space: str | None = None
    secure: bool = False
    path: str = ""

    @classmethod
    def at(cls, url: str, space: str | None = None) -> "GatewayAddress":
        """From the URL of a gateway, with `/ws` at its end or not.

        Raises:
            ValueError: it is none.
        """
        parts = urlsplit(url)
        if parts.scheme not in _PORTS or not parts.hostname:
            raise ValueError(f"{url!r} is not the URL of a gateway; it looks like ws://127.0.0.1:8080")
        path = parts.path.rstrip("/").removesuffix("/ws")
        secure = parts.scheme in ("wss", "https")
        return cls(parts.hostname, parts.port or _PORTS[parts.scheme], space, secure, path)

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    def upgrade(self, credentials: Credentials) -> bytes:
        """The request for a WebSocket."""
        return (
            f"GET {self.path}/ws{self._query} HTTP/1.1\r\nHost: {self.authority}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {_KEY}\r\n"
            f"Authorization: Bearer {credentials.token}\r\n\r\n"
        ).encode()

    def post(self, credentials: Credentials, body_bytes: int) -> bytes:
        """The head of a request that injects an envelope of this size (§5.3)."""
        return (
            f"POST {self.path}/participants/{quote(credentials.who, safe='')}/messages{self._query} HTTP/1.1\r\n"
            f"Host: {self.authority}\r\nAuthorization: Bearer {credentials.token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {body_bytes}\r\n\r\n"
        ).encode()

    @property
    def _query(self) -> str:
        return "" if self.space is None else f"?{urlencode({'space': self.space})}"


_RATE: Final = "limits.envelopes_per_second and limits.burst"


class LoadFailed(Exception):
    """There is no figure, and why."""


class JoinRefused(LoadFailed):
    """The door stayed shut: `code` is the gateway's own word for it, where it has one."""

    def __init__(self, message: str, status: int, code: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class LoadRefused(LoadFailed):
    """A rule of the gateway says no to what is sent."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class RateLimited(LoadRefused):
    """More was sent than the gateway takes of one: it is not the gateway's speed that would be measured."""

    def __init__(self, message: str) -> None:
        super().__init__(message, Refusal.RATE_LIMITED)


def was_refused(code: str, message: str) -> LoadRefused:
    """For a `system/error`, or a problem over HTTP."""
    if code == Refusal.RATE_LIMITED:
        return RateLimited(
            "the gateway allows a sender fewer envelopes than it could take: what would be measured is that limit;"
            f" raise {_RATE} in its space.yaml, or stay below them (mew bench --rate)"
        )
    return LoadRefused(f"the gateway refused what was sent: {code}: {message}", code)


def was_closed(code: int, reason: str) -> LoadFailed:
    """For a connection that the gateway closed."""
    if code == CloseCode.FLOODING:
        return RateLimited(
            f"the gateway closed a connection for sending too much ({reason}): raise {_RATE} in its space.yaml"
        )
    if code == CloseCode.SLOW_READER:
        return LoadFailed(
            "the gateway closed a connection for reading too slowly: raise limits.outbox_bytes, or send less at once"
        )
    said = f"{code}: {reason}" if reason else str(code)
    return LoadFailed(f"the gateway closed a connection in the middle ({said})")


_AT_ONCE: Final = 32
_WELCOME_S: Final = 30.0
_UPGRADED: Final = b"HTTP/1.1 101"
_CLOSED_S: Final = 5.0


class WelcomedConnection(Protocol):
    """A connection that has been welcomed: what comes from here on is its."""

    transport: asyncio.Transport | None
    gone: asyncio.Event

    def begin(self, transport: asyncio.Transport, rest: bytes) -> None:
        """Take over; `rest` is what came behind the welcome."""


class Handshake(asyncio.Protocol):
    """Asks for an upgrade and waits for the welcome."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self._head = b""
        self._is_open = False
        self._frames = FrameParser()
        self._welcome: bytes | None = None
        self._behind: list[bytes] = []
        self.transport: asyncio.Transport | None = None
        self.welcomed: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's own is no subclass
        self.transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        if self._welcome is not None:
            self._behind.append(data)
            return
        if not self._is_open:
            self._head += data
            head, end, data = self._head.partition(b"\r\n\r\n")
            if not self._head.startswith(_UPGRADED[: len(self._head)]):
                if _is_whole(head, data):
                    self._fail(_not_let_in(head, data))
                return
            if not end:
                return
            self._is_open = True
        self._take(data)

    def _take(self, data: bytes) -> None:
        for first, payload, _ in self._frames.feed(data):
            if self._welcome is not None:
                continue  # presence of others, and the like: nobody looks at it
            if first == TEXT:
                self._welcome = payload
            elif first == PING and self.transport is not None:
                self.transport.write(pong(payload))
            elif first == CLOSE:
                self._fail(was_closed(*read_close(payload)))
        if self._welcome is not None and not self.welcomed.done():
            self.welcomed.set_result(self._welcome)

    def connection_lost(self, error: Exception | None) -> None:
        head, _, body = self._head.partition(b"\r\n\r\n")
        if self._is_open or not head:
            self._fail(LoadFailed(f"the gateway ended a connection at once: {error or 'without a word'}"))
        else:
            self._fail(_not_let_in(head, body))

    def hand_over(self, line: WelcomedConnection) -> None:
        """To who goes on with the connection."""
        assert self.transport is not None, "handed over before it was made"
        self.transport.set_protocol(cast(asyncio.BaseProtocol, line))
        line.begin(self.transport, self._frames.rest + b"".join(self._behind))

    def _fail(self, error: Exception) -> None:
        if not self.welcomed.done():
            self.welcomed.set_exception(error)


@cache
def secure_context() -> ssl.SSLContext:
    return ssl.create_default_context()


async def enter(
    address: GatewayAddress, credentials: Credentials, line: WelcomedConnection
) -> dict[str, Any]:
    """Join; return the payload of the welcome.

    Raises:
        LoadFailed: nobody is there, or one is not let in.
    """
    loop = asyncio.get_running_loop()
    transport: asyncio.Transport | None = None
    try:
        async with asyncio.timeout(_WELCOME_S):
            transport, handshake = await loop.create_connection(
                lambda: Handshake(address.upgrade(credentials)),
                address.host,
                address.port,
                ssl=secure_context() if address.secure else None,
            )
            welcome = await handshake.welcomed
    except TimeoutError as late:
        _abort(transport)
        raise LoadFailed(f"no welcome came from {address.authority} within {_WELCOME_S:.0f} s") from late
    except OSError as error:
        raise LoadFailed(f"no connection to {address.authority}: {error.strerror or error}") from error
    except BaseException:
        _abort(transport)
        raise
    handshake.hand_over(line)
    found = _read_welcome(welcome)
    if found is None:
        _abort(transport)
        raise LoadFailed(f"{address.authority} does not begin with a welcome: is it a gateway?")
    return found


async def enter_all(
    address: GatewayAddress,
    those: Iterable[tuple[Credentials, WelcomedConnection]],
    *,
    at_once: int = _AT_ONCE,
) -> list[dict[str, Any]]:
    """All of them, some at a time; the welcomes, in their order.

    Raises:
        LoadFailed: as `enter`, for the first that fails; the others may be connected.
    """
    gate = asyncio.Semaphore(at_once)

    async def one(credentials: Credentials, line: WelcomedConnection) -> dict[str, Any]:
        async with gate:
            return await enter(address, credentials, line)

    try:
        async with asyncio.TaskGroup() as entering:
            tasks = [entering.create_task(one(credentials, line)) for credentials, line in those]
    except ExceptionGroup as failed:
        raise first_of(failed) from None
    return [task.result() for task in tasks]


async def close_all(lines: Sequence[WelcomedConnection]) -> None:
    """Say goodbye, and return when they are gone or that takes too long."""
    for line in lines:
        if line.transport is not None and not line.transport.is_closing():
            line.transport.write(CLOSING)
    with suppress(TimeoutError):
        async with asyncio.timeout(_CLOSED_S):
            for line in lines:
                if line.transport is not None:
                    await line.gone.wait()
    for line in lines:
        _abort(line.transport)


def _read_welcome(received: bytes) -> dict[str, Any] | None:
    """Its payload; None: it is none."""
    with suppress(ProtocolError):
        match decode_json(received):
            case {"kind": "system/welcome", "payload": {"you": {"id": str()}} as payload}:
                found: dict[str, Any] = payload
                return found
    return None


def _abort(transport: asyncio.Transport | None) -> None:
    if transport is not None:
        transport.abort()


def first_of(group: ExceptionGroup[Exception]) -> Exception:
    """The first that went wrong."""
    error = group.exceptions[0]
    return first_of(error) if isinstance(error, ExceptionGroup) else error


def _is_whole(head: bytes, body: bytes) -> bool:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            with suppress(ValueError):
                return len(body) >= int(line.partition(b":")[2])
    return False  # the end of the connection is its end


def _not_let_in(head: bytes, body: bytes) -> JoinRefused:
    words = head.split(b"\r\n")[0].split(maxsplit=2)
    status = int(words[1]) if len(words) > 1 and words[1].isdigit() else 0
    code = told = ""
    with suppress(ProtocolError):
        problem = decode_json(body)
        if isinstance(problem, dict):
            code = str(problem.get("error", problem.get("code", "")))
            told = str(problem.get("message", problem.get("detail", problem.get("title", ""))))
    why = told or words[-1].decode(errors="replace")
    return JoinRefused(f"the gateway does not let one in: {why}", status, code)


NOTHING_DUE: Final = 1 << 62
"""Bytes to come while nothing is sent: what others say completes no phase."""
_ERROR: Final = b'"system/error"'


class LoadPhase:
    """What connections share while envelopes are in flight: the bytes that are still to come."""

    def __init__(self) -> None:
        self.left = NOTHING_DUE
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.over.set_result(None)
        self.on_reached: Callable[[], None] = self.complete

    def start(self, due_bytes: int, on_reached: Callable[[], None] | None = None) -> None:
        self.left = due_bytes
        self.on_reached = on_reached or self.complete
        self.over = asyncio.get_running_loop().create_future()

    def reached(self) -> None:
        """So many bytes came as were due, or more."""
        self.on_reached()

    def complete(self) -> None:
        self.left = NOTHING_DUE
        if not self.over.done():
            self.over.set_result(None)

    def fail(self, why: LoadFailed) -> None:
        self.left = NOTHING_DUE
        if not self.over.done():
            self.over.set_exception(why)


class CountingConnection(asyncio.BufferedProtocol):
    """A member that does nothing but add up bytes; all of them read into one buffer, for nobody looks at it."""

    buffer = memoryview(bytearray(1 << 18))

    def __init__(self, phase: LoadPhase) -> None:
        self.phase = phase
        self.received = 0
        self.transport: asyncio.Transport | None = None
        self.gone = asyncio.Event()

    def begin(self, transport: asyncio.Transport, rest: bytes) -> None:
        self.transport = transport
        self.received = len(rest)

    def get_buffer(self, _size_hint: int) -> memoryview:
        return CountingConnection.buffer

    def buffer_updated(self, count: int) -> None:
        if count <= CONTROL_BYTES_MAX and self._is_control(count):
            return
        self.received += count
        phase = self.phase
        phase.left -= count
        if phase.left <= 0:
            phase.reached()

    def connection_lost(self, error: Exception | None) -> None:
        self.transport = None
        self.gone.set()
        self.phase.fail(
            LoadFailed(f"a connection was lost in the middle: {error or 'closed by the gateway'}")
        )

    def stay(self) -> None:
        """Let the gateway hear that somebody is there."""
        if self.transport is not None:
            self.transport.write(PONGED)

    def _is_control(self, count: int) -> bool:
        """A control frame that came by itself; envelopes are longer, and none begins like one."""
        first = self.buffer[0]
        if first not in (PING, CLOSE) or self.buffer[1] + 2 != count:
            return False
        payload = bytes(self.buffer[2:count])
        if first == CLOSE:
            self.phase.fail(was_closed(*read_close(payload)))
        elif self.transport is not None:
            self.transport.write(pong(payload))
        return True


class ReadingConnection(asyncio.Protocol):
    """A member that reads what comes. `received` is its bytes, without control frames."""

    def __init__(self, phase: LoadPhase) -> None:
        self.phase = phase
        self.received = 0
        self.transport: asyncio.Transport | None = None
        self.gone = asyncio.Event()
        self._frames = FrameParser()

    def begin(self, transport: asyncio.Transport, rest: bytes) -> None:
        self.transport = transport
        if rest:
            self.data_received(rest)

    def data_received(self, data: bytes) -> None:
        came = 0
        for first, payload, size in self._frames.feed(data):
            if first == TEXT:
                came += size
                self.heard(payload)
            elif first == BINARY or not first & 0x8:
                came += size
            else:
                self._control(first, payload)
        self.took(came)

    def took(self, came: int) -> None:
        """So many bytes have been heard."""
        self.received += came
        self.caught_up()
        phase = self.phase
        phase.left -= came
        if phase.left <= 0:
            phase.reached()

    def connection_lost(self, error: Exception | None) -> None:
        self.transport = None
        self.gone.set()
        self.phase.fail(
            LoadFailed(f"a connection was lost in the middle: {error or 'closed by the gateway'}")
        )

    def heard(self, payload: bytes) -> None:
        """A text came. What of it is a refusal fails the phase."""
        if _ERROR in payload:
            with suppress(ProtocolError, AttributeError):
                envelope = decode_json(payload)
                if envelope.get("kind") == "system/error":
                    self.refused(envelope)

    def refused(self, envelope: dict[str, Any]) -> None:
        said = envelope.get("payload", {})
        self.phase.fail(was_refused(str(said.get("error", "")), str(said.get("message", ""))))

    def caught_up(self) -> None:
        """All that came with one read has been heard."""

    def say(self, frames: bytes) -> None:
        if self.transport is not None:
            self.transport.write(frames)

    def stay(self) -> None:
        """Let the gateway hear that somebody is there."""
        self.say(PONGED)

    def _control(self, first: int, payload: bytes) -> None:
        if first == PING:
            self.say(pong(payload))
        elif first == CLOSE:
            self.phase.fail(was_closed(*read_close(payload)))


class SendingConnection(ReadingConnection):
    """A member that talks, and keeps a window of envelopes in flight: its own echoes refill it."""

    def __init__(self, phase: LoadPhase, frames: Iterator[bytes], *, run: str, tag: str, window: int) -> None:
        """The ids of its envelopes begin with `run`, a `-`, `tag` and another `-`."""
        super().__init__(phase)
        self.window = window
        self.frame_bytes = 0
        """Of each envelope of the run as it comes, once that is known."""
        self.ours = self.echoes = 0
        self._frames_to_send = frames
        self._run = f'"id":"{run}-'.encode()
        self._own = f'"id":"{run}-{tag}-'.encode()
        self._sent = self._quota = 0

    def start(self, envelopes: int) -> None:
        self.ours = self.echoes = self._sent = 0
        self._quota = envelopes
        self.caught_up()

    def send_one(self) -> None:
        """Out of turn."""
        self.say(next(self._frames_to_send))

    def data_received(self, data: bytes) -> None:
        """Mostly whole envelopes of the run, all of one length, one after the other: they are counted at once."""
        size = self.frame_bytes
        if size and not self._frames.rest and not len(data) % size:
            number = len(data) // size
            if data.count(self._run) == number:
                self.ours += number
                self.echoes += data.count(self._own)
                self.took(len(data))
                return
        super().data_received(data)

    def heard(self, payload: bytes) -> None:
        if self._own in payload:
            self.echoes += 1
            self.ours += 1
        elif self._run in payload:
            self.ours += 1
        else:
            super().heard(payload)

    def caught_up(self) -> None:
        due = min(self.echoes + self.window, self._quota) - self._sent
        if due > 0:
            self._sent += due
            self.say(b"".join(islice(self._frames_to_send, due)))


_FULL: Final = frozenset({"too_many_connections", "space_full"})
_Made = TypeVar("_Made", CountingConnection, ReadingConnection)


def fresh_run() -> str:
    """What the ids of all envelopes of a run begin with, and no other's."""
    return f"bench-{secrets.token_hex(4)}"


def some(number: int, what: str) -> str:
    """So many of something, for a sentence."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


async def seat_counters(
    address: GatewayAddress, seats: Sequence[Credentials], made: Callable[[], _Made]
) -> tuple[list[_Made], str | None]:
    """A connection for each of these seats, some of which may be the same; and why there are fewer, where there are.

    Raises:
        LoadFailed: not one could be connected, or another reason than that there are too many.
    """
    seated: list[_Made] = []
    for start in range(0, len(seats), _AT_ONCE):
        some = [(credentials, made()) for credentials in seats[start : start + _AT_ONCE]]
        try:
            await enter_all(address, some)
            seated += [line for _, line in some]
        except JoinRefused as full:
            seated += [line for _, line in some if line.transport is not None]
            if full.code not in _FULL:
                raise
            return seated, str(full)
    return seated, None
