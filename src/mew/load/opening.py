"""A connection from the first byte to the welcome."""

import asyncio
import ssl
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, Final, Protocol, cast

from mew.protocol.errors import ProtocolError
from mew.protocol.json import decode_json

from .frames import CLOSE, CLOSING, PING, TEXT, Frames, pong, read_close
from .place import Place, Seat
from .problems import LoadFailed, NotLetIn, was_closed

__all__ = ["Line", "close_all", "enter", "enter_all", "first_of", "secure_context"]

_AT_ONCE: Final = 32
_WELCOME_S: Final = 30.0
_UPGRADED: Final = b"HTTP/1.1 101"
_CLOSED_S: Final = 5.0


class Line(Protocol):
    """A connection that has been welcomed: what comes from here on is its."""

    transport: asyncio.Transport | None
    gone: asyncio.Event

    def begin(self, transport: asyncio.Transport, rest: bytes) -> None:
        """Take over; `rest` is what came behind the welcome."""


class Knocking(asyncio.Protocol):
    """Asks for an upgrade and waits for the welcome."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self._head = b""
        self._is_open = False
        self._frames = Frames()
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

    def hand_over(self, line: Line) -> None:
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


async def enter(place: Place, seat: Seat, line: Line) -> dict[str, Any]:
    """Join; return the payload of the welcome.

    Raises:
        LoadFailed: nobody is there, or one is not let in.
    """
    loop = asyncio.get_running_loop()
    transport: asyncio.Transport | None = None
    try:
        async with asyncio.timeout(_WELCOME_S):
            transport, knocking = await loop.create_connection(
                lambda: Knocking(place.upgrade(seat)),
                place.host,
                place.port,
                ssl=secure_context() if place.secure else None,
            )
            welcome = await knocking.welcomed
    except TimeoutError as late:
        _abort(transport)
        raise LoadFailed(f"no welcome came from {place.authority} within {_WELCOME_S:.0f} s") from late
    except OSError as error:
        raise LoadFailed(f"no connection to {place.authority}: {error.strerror or error}") from error
    except BaseException:
        _abort(transport)
        raise
    knocking.hand_over(line)
    found = _read_welcome(welcome)
    if found is None:
        _abort(transport)
        raise LoadFailed(f"{place.authority} does not begin with a welcome: is it a gateway?")
    return found


async def enter_all(
    place: Place, those: Iterable[tuple[Seat, Line]], *, at_once: int = _AT_ONCE
) -> list[dict[str, Any]]:
    """All of them, some at a time; the welcomes, in their order.

    Raises:
        LoadFailed: as `enter`, for the first that fails; the others may be connected.
    """
    gate = asyncio.Semaphore(at_once)

    async def one(seat: Seat, line: Line) -> dict[str, Any]:
        async with gate:
            return await enter(place, seat, line)

    try:
        async with asyncio.TaskGroup() as entering:
            tasks = [entering.create_task(one(seat, line)) for seat, line in those]
    except ExceptionGroup as failed:
        raise first_of(failed) from None
    return [task.result() for task in tasks]


async def close_all(lines: Sequence[Line]) -> None:
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


def _not_let_in(head: bytes, body: bytes) -> NotLetIn:
    words = head.split(b"\r\n")[0].split(maxsplit=2)
    status = int(words[1]) if len(words) > 1 and words[1].isdigit() else 0
    code = told = ""
    with suppress(ProtocolError):
        problem = decode_json(body)
        if isinstance(problem, dict):
            code = str(problem.get("error", problem.get("code", "")))
            told = str(problem.get("message", problem.get("detail", problem.get("title", ""))))
    why = told or words[-1].decode(errors="replace")
    return NotLetIn(f"the gateway does not let one in: {why}", status, code)
