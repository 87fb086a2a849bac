"""One upgraded connection: bytes in, messages on, and how it ends."""

import asyncio
import base64
import binascii
import hashlib
import logging
from collections import deque
from collections.abc import Callable, Sequence
from math import inf
from typing import Final, Protocol, TypeAlias, cast

from aiohttp import web

from .guard import Denied
from .lobby import Visitor
from .websocket import (
    CONTROL,
    TOO_BIG,
    Message,
    Opcode,
    Reader,
    WireError,
    close_code,
    close_frame,
    ping,
    pong,
)

__all__ = ["Hear", "Upgrade", "Wire"]

_log = logging.getLogger(__name__)

_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_CLOSE_S: Final = 3.0
_NORMAL: Final = 1000
_ABNORMAL: Final = 1006
_INTERNAL: Final = 1011
_TURN_MESSAGES: Final = 128  # heard in a turn of the loop, and as many received: a socket may have a million
_PONG_BYTES: Final = 64 * 1024


class Upgrade(web.StreamResponse):
    """The answer that makes a request a WebSocket (RFC 6455 §4.2.2)."""

    def __init__(self, request: web.Request, subprotocol: str) -> None:
        """Answers with `subprotocol` where the client offers it.

        Raises:
            Denied: it is no proper request for a WebSocket.
        """
        super().__init__(status=101, headers={"Upgrade": "websocket", "Connection": "Upgrade"})
        self.headers["Sec-WebSocket-Accept"] = _accept(request)
        offered = [name.strip() for name in request.headers.get("Sec-WebSocket-Protocol", "").split(",")]
        if subprotocol in offered:
            self.headers["Sec-WebSocket-Protocol"] = subprotocol
        self.force_close()

    async def write_eof(self, data: bytes = b"") -> None:
        """Nothing follows that is ours to send: the connection is another's."""


Hear: TypeAlias = Callable[[bytes, int, int], int]


class Listener(Protocol):
    """Who takes the messages of a connection."""

    hear: Hear | None
    """Takes what the usual frames say that bytes begin with, of so many bytes each, and so many at most.

    It returns how many bytes those are. What it leaves is received, and so is all where there is none.
    """

    def receive(self, messages: Sequence[Message]) -> None:
        """One or more came, none of them a control frame."""

    def broken(self, error: WireError) -> None:
        """The client broke RFC 6455; the connection is closed after this."""


class _Tail:
    """What aiohttp has read behind the request."""

    def __init__(self) -> None:
        self.data = b""

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        self.data += data
        return False, b""

    def feed_eof(self) -> None:
        pass


class Wire(asyncio.Protocol):
    """Reads messages and passes them on; answers pings and closes. Takes the transport over from aiohttp.

    Before `attach` messages wait: nothing is lost, and the client is held back after the first. Ten thousand may be
    idle, so it keeps nothing that is not needed now.
    """

    __slots__ = (
        "_closing",
        "_early",
        "_end",
        "_failure",
        "_first",
        "_first_bytes_left",
        "_has_arrived",
        "_hear",
        "_http",
        "_listener",
        "_loop",
        "_reader",
        "_turn",
        "_waiting",
        "close_code",
        "has_ended",
        "heard_s",
        "transport",
    )

    def __init__(self, request: web.Request, transport: asyncio.Transport, bytes_max: int) -> None:
        self.transport = transport
        self.close_code = _ABNORMAL
        self.heard_s = asyncio.get_running_loop().time()
        self._loop = asyncio.get_running_loop()
        self._reader = Reader(bytes_max)
        self._listener: Listener | None = None
        self._hear: Hear | None = None
        self._early: list[Message] = []
        self._waiting: deque[Message] | None = None
        self._failure: WireError | None = None  # what comes after those that wait
        self._turn: asyncio.Handle | None = None
        self._first: asyncio.Future[None] | None = None
        self._first_bytes_left = inf  # until somebody waits for the first
        self._has_arrived = False
        self.has_ended = False
        self._end: Callable[[], None] | None = None
        self._closing = False
        self._http: Visitor | None = cast(Visitor, request.protocol)
        tail = _Tail()
        self._http.set_parser(tail)  # type: ignore[arg-type]  # feed_data and feed_eof is all it uses
        transport.set_protocol(self)
        if tail.data:
            self.data_received(tail.data)
        if transport.is_closing():
            self._over()

    async def first(self, bytes_max: int) -> Message | None:
        """The first message; None if the connection ended before it, or sent more than this without one.

        None after it may be larger, until `allow` says otherwise.
        """
        self._first_bytes_left = bytes_max
        try:
            if not self._has_arrived:
                self._first = self._loop.create_future()
                await self._first
        finally:
            self._reader.bytes_max = bytes_max
        return self._early.pop(0) if self._early else None

    def attach(self, listener: Listener) -> None:
        """From here on the listener is handed every message."""
        self._listener = listener
        self._hear = listener.hear
        if self._early or self._waiting:
            self._waiting = deque((*self._early, *(self._waiting or ())))
            self._early = []
        self._take_turn()

    def allow(self, bytes_max: int) -> None:
        """From here on messages may have this many bytes."""
        self._reader.bytes_max = bytes_max

    def hand_over(self) -> None:
        """Whoever is on it has shown who it is: aiohttp and the lobby need not know of it any longer."""
        if self._http is not None:
            http, self._http = self._http, None
            http.hand_over()

    def when_ended(self, call: Callable[[], None]) -> None:
        """Once, when the connection is gone; for one who wants to know."""
        assert self._end is None, "somebody else waits for the end"
        if self.has_ended:
            call()
        else:
            self._end = call

    async def ended(self) -> None:
        """Return when the connection is gone."""
        gone = asyncio.Event()
        self.when_ended(gone.set)
        await gone.wait()

    def close(self, code: int, reason: str = "") -> None:
        """Start to close; a client that does not answer in time is cut off."""
        if self._closing or self.transport.is_closing():
            return
        self._closing = True
        self.close_code = code
        self.transport.write(close_frame(code, reason))
        self.transport.resume_reading()  # its answer, where messages were held back
        self._loop.call_later(_CLOSE_S, self.transport.abort)

    def ping(self) -> None:
        if not self._closing and not self.transport.is_closing():
            self.transport.write(ping())

    # What the transport calls.

    def data_received(self, data: bytes) -> None:
        self.heard_s = self._loop.time()
        hear, reader = self._hear, self._reader
        if hear is not None and not self._waiting and not self._closing and not reader.has_part:
            try:
                taken = hear(data, reader.bytes_max, _TURN_MESSAGES)
            except Exception:
                self._give_up()
                return
            if taken == len(data):
                return
            data = data[taken:]
        self._read(data)

    def _read(self, data: bytes) -> None:
        """What was not heard: a part of a message, a control frame, what cannot be handed on now, or all of it."""
        try:
            messages = self._reader.feed(data)
        except WireError as error:
            messages, self._failure = error.before, error  # however the bytes were cut on their way
        if self._waiting or self._failure is not None or len(messages) > _TURN_MESSAGES:
            self._waiting = self._waiting or deque()
            self._waiting.extend(messages)
            self._take_turn()
        else:
            self._pass_on(messages)
        if self._listener is None and not self._has_arrived:
            self._count_early(len(data))

    def connection_lost(self, error: Exception | None) -> None:
        if self._http is not None:
            http, self._http = self._http, None
            http.connection_lost(error)
        self._over()

    def _over(self) -> None:
        self._closing = True
        self._arrive()
        self.has_ended = True
        if self._end is not None:
            call, self._end = self._end, None
            call()

    def _arrive(self) -> None:
        """There is a first message, or there will be none."""
        self._has_arrived = True
        if self._first is not None and not self._first.done():
            self._first.set_result(None)

    def _count_early(self, received: int) -> None:
        """What comes before the first message is whole is bounded."""
        self._first_bytes_left -= received
        if self._first_bytes_left < 0:
            self.close(TOO_BIG, "the first message is too large")
            self._arrive()

    def _take_turn(self) -> None:
        """Hand on some of those that wait, and then let the others have their turn: no flood is anyone else's."""
        if self._turn is not None:
            return
        waiting = self._waiting
        if waiting is not None:
            self._pass_on([waiting.popleft() for _ in range(min(_TURN_MESSAGES, len(waiting)))])
        if waiting:
            if not self.transport.is_closing():
                self.transport.pause_reading()
            self._turn = self._loop.call_soon(self._next_turn)
            return
        self._waiting = None
        if self._failure is not None:
            if self._listener is not None or not self._has_arrived:  # else after those kept for it
                self._fail(self._failure)
        elif self._listener is not None and not self.transport.is_closing():
            self.transport.resume_reading()

    def _next_turn(self) -> None:
        self._turn = None
        self._take_turn()

    def _fail(self, error: WireError) -> None:
        if self._listener is not None and not self._closing:
            self._listener.broken(error)
        self.close(error.code, str(error))

    def _pass_on(self, messages: list[Message]) -> None:
        listener = self._listener
        try:
            if listener is not None and messages and not self._closing and not _has_control(messages):
                listener.receive(messages)
                return
            for opcode, data in messages:
                if opcode & CONTROL:
                    self._control(opcode, data)
                elif self._closing:
                    pass
                elif listener is not None:
                    listener.receive(((opcode, data),))
                else:
                    self._keep((opcode, data))
        except Exception:
            self._give_up()

    def _give_up(self) -> None:
        _log.exception("a message could not be handled")
        self.close(_INTERNAL, "the gateway failed on this message")

    def _control(self, opcode: int, data: bytes) -> None:
        if opcode == Opcode.PING:
            if not self._closing and self.transport.get_write_buffer_size() < _PONG_BYTES:
                self.transport.write(pong(data))  # who does not read need not be answered every time
        elif opcode == Opcode.CLOSE:
            if self._early and not self._closing:
                self._keep((opcode, data))  # what was said before it comes first
                return
            if not self._closing:
                self.close_code = close_code(data)
                self._closing = True
                self.transport.write(close_frame(self.close_code if data else _NORMAL))
                self._loop.call_later(_CLOSE_S, self.transport.abort)
            self.transport.close()

    def _keep(self, message: Message) -> None:
        self._early.append(message)
        self._arrive()
        self.transport.pause_reading()


def _has_control(messages: list[Message]) -> bool:
    return any(opcode & CONTROL for opcode, _ in messages)


def _accept(request: web.Request) -> str:
    key = request.headers.get("Sec-WebSocket-Key", "")
    try:
        whole = len(base64.b64decode(key, validate=True)) == 16
    except binascii.Error:
        whole = False
    if request.method != "GET" or not whole or request.headers.get("Sec-WebSocket-Version") != "13":
        raise Denied(400, "bad_handshake", "not a WebSocket handshake as RFC 6455 has it, version 13")
    return base64.b64encode(hashlib.sha1(key.encode() + _GUID).digest()).decode()
