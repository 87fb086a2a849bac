"""One upgraded connection: read messages, apply backpressure, and close."""

import asyncio
import base64
import hashlib
import logging
from collections.abc import Callable
from math import inf
from typing import Final, Protocol, cast

from aiohttp import web

from mew.gateway.auth.guard import Denied
from mew.gateway.auth.pre_auth import HttpConnection

from .frames import (
    CONTROL,
    TOO_BIG,
    FrameReader,
    Message,
    Opcode,
    WireError,
    close_code,
    close_frame,
    parse_frames,
    ping,
    pong,
)

__all__ = ["MessageHandler", "Upgrade", "WebSocketWire"]

_log = logging.getLogger(__name__)

_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_CLOSE_S: Final = 3.0
_NORMAL: Final = 1000
_ABNORMAL: Final = 1006
_INTERNAL: Final = 1011
_TURN_MESSAGES: Final = 128  # passed on in a pass of the loop: a read may have thousands
_PONG_BYTES: Final = 64 * 1024


class Upgrade(web.StreamResponse):
    """The 101 response of a WebSocket upgrade (RFC 6455 §4.2.2)."""

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


class MessageHandler(Protocol):
    """Receives the messages of a connection."""

    receive: Callable[[list[bytes], int], None]
    """Text messages came, in frames of this many bytes."""

    def receive_binary(self, data: bytes) -> None:
        """A binary message came."""

    def receive_error(self, code: int, message: str) -> None:
        """The client broke RFC 6455; the connection is to be closed with this code."""


class _Tail:
    """What aiohttp has read behind the request."""

    def __init__(self) -> None:
        self.data = b""

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        self.data += data
        return False, b""

    def feed_eof(self) -> None:
        pass


class WebSocketWire(asyncio.Protocol):
    """Reads messages and passes them on; answers pings and closes. Takes the transport over from aiohttp.

    Before `attach` messages wait: nothing is lost, and the client is held back after the first. Ten thousand may be
    idle, so it keeps nothing that is not needed now.
    """

    __slots__ = (
        "_closing",
        "_early",
        "_end",
        "_first",
        "_first_bytes_left",
        "_has_arrived",
        "_has_failed",
        "_http",
        "_listener",
        "_loop",
        "_next",
        "_pauses",
        "_reader",
        "_unread",
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
        self._reader = FrameReader(bytes_max)
        self._listener: MessageHandler | None = None
        self._early: Message | None = None
        self._unread = b""  # what waits for its turn
        self._next: asyncio.Handle | None = None
        self._pauses = 0
        self._first: asyncio.Future[None] | None = None
        self._first_bytes_left = inf  # until somebody waits for the first
        self._has_arrived = False
        self.has_ended = False
        self._end: Callable[[], None] | None = None
        self._closing = False
        self._has_failed = False
        self._http: HttpConnection | None = cast(HttpConnection, request.protocol)
        tail = _Tail()
        self._http.set_parser(tail)  # type: ignore[arg-type]  # feed_data and feed_eof is all it uses
        transport.set_protocol(self)
        if tail.data:
            self.data_received(tail.data)
        if transport.is_closing():
            self._over()

    async def first(self, bytes_max: int) -> Message | None:
        """Wait for the first message; None if the connection closed or sent more than `bytes_max` without one.

        None after it may be larger, until `allow` says otherwise.
        """
        self._first_bytes_left = bytes_max
        try:
            if not self._has_arrived:
                self._first = self._loop.create_future()
                await self._first
        finally:
            self._reader.bytes_max = bytes_max
        early, self._early = self._early, None
        return early

    def attach(self, listener: MessageHandler) -> None:
        """Pass every message to the handler from now on."""
        self._listener = listener
        if self._early is not None:
            early, self._early = self._early, None
            self._pass_on(early)
        self._read_on()

    def allow(self, bytes_max: int) -> None:
        """Set the maximum message size."""
        self._reader.bytes_max = bytes_max

    def hand_over(self) -> None:
        """Whoever is on it has shown who it is: aiohttp and the lobby need not know of it any longer."""
        if self._http is not None:
            http, self._http = self._http, None
            http.hand_over()

    def when_ended(self, call: Callable[[], None]) -> None:
        """Call back once when the connection has closed; one callback only."""
        assert self._end is None, "somebody else waits for the end"
        if self.has_ended:
            call()
        else:
            self._end = call

    async def ended(self) -> None:
        """Wait until the connection has closed."""
        gone = asyncio.Event()
        self.when_ended(gone.set)
        await gone.wait()

    def pause(self) -> None:
        """Apply backpressure: pass on no messages until `resume` was called as often."""
        self._pauses += 1
        self._hold_back()

    def resume(self) -> None:
        if self._pauses:
            self._pauses -= 1
        self._read_on()

    def close(self, code: int, reason: str = "") -> None:
        """Start the closing handshake; abort if the client does not answer in time.

        After a protocol error there is no answer to wait for: the client sees the end of the connection at once.
        It still may send, and we do not read it: to close our side too would reset the connection, and the client
        might lose the close frame (RFC 6455 §7.1.7).
        """
        if self._closing or self.transport.is_closing():
            return
        self._closing = True
        self.close_code = code
        self.transport.write(close_frame(code, reason))
        self._pauses = 0
        self.transport.resume_reading()  # its answer, if it was held back
        self._loop.call_later(_CLOSE_S, self.transport.abort)
        unread, self._unread = self._unread, b""
        if not self._has_failed:
            self._read_farewell(unread, 0)
        elif self._listener is not None and self.transport.can_write_eof():
            self.transport.write_eof()
        else:  # TLS, or nobody listens yet: they must see that nothing more can be written
            self.transport.close()

    def ping(self) -> None:
        if not self._closing and not self.transport.is_closing():
            self.transport.write(ping())

    # What the transport calls.

    def data_received(self, data: bytes) -> None:
        self.heard_s = self._loop.time()
        reader = self._reader
        if self._unread or self._pauses or self._listener is None or reader.has_part or self._closing:
            self._read_slowly(data)
            return
        texts, end = parse_frames(data, 0, reader.bytes_max, _TURN_MESSAGES)
        if texts:
            try:
                self._listener.receive(texts, end)
            except Exception:
                self._give_up()
                return
        if end < len(data):
            self._read(data, end, _TURN_MESSAGES - len(texts))

    def _read_slowly(self, data: bytes) -> None:
        """What cannot be passed on at once: nobody listens yet, something waits already, or a message is in parts."""
        if self._unread or self._pauses:
            self._unread += data
        elif self._closing:
            self._read_farewell(data, 0)
        elif self._listener is None:
            self._read_early(data)
        else:
            self._read(data, 0, _TURN_MESSAGES)

    def connection_lost(self, error: Exception | None) -> None:
        if self._http is not None:
            http, self._http = self._http, None
            http.connection_lost(error)
        self._over()

    def _read(self, data: bytes, at: int, messages_max: int) -> None:
        """Pass on some of the messages in it; the rest in the next pass of the loop: no flood is anyone else's."""
        listener, reader = self._listener, self._reader
        assert listener is not None, "nobody listens"
        try:
            while at < len(data) and messages_max and not self._closing:
                if not reader.has_part:
                    texts, end = parse_frames(data, at, reader.bytes_max, messages_max)
                    if texts:
                        listener.receive(texts, end - at)
                        at, messages_max = end, messages_max - len(texts)
                        continue
                message, at = reader.feed(data, at)
                if message is not None:
                    self._pass_on(message)
                    messages_max -= 1
        except WireError as error:
            self._has_failed = True
            self.pause()  # nothing after this is read
            listener.receive_error(error.code, str(error))
            return
        except Exception:
            self._give_up()
            return
        if self._closing:
            self._read_farewell(data, at)
        elif at < len(data):
            self._unread = data[at:] + self._unread
            self._hold_back()
            if not self._pauses and self._next is None:
                self._next = self._loop.call_soon(self._read_on)

    def _give_up(self) -> None:
        _log.exception("a message could not be handled")
        self.close(_INTERNAL, "the gateway failed on this message")

    def _read_on(self) -> None:
        self._next = None
        if self._pauses or self._closing:
            return
        data, self._unread = self._unread, b""
        if data:
            self._read(data, 0, _TURN_MESSAGES)
        if not self._must_wait and not self.transport.is_closing():
            self.transport.resume_reading()

    @property
    def _must_wait(self) -> bool:
        return bool(self._pauses or self._unread) or self._early is not None

    def _read_early(self, data: bytes) -> None:
        """Before anybody listens only the first message is read; what follows waits."""
        at = 0
        try:
            while at < len(data) and self._early is None and not self._closing:
                message, at = self._reader.feed(data, at)
                if message is not None and message[0] & CONTROL:
                    self._control(*message)
                elif message is not None:
                    self._early = message
                    self._arrive()
        except WireError as error:
            self._has_failed = True
            self.close(error.code, str(error))
            self._arrive()
        self._unread = data[at:]
        if self._early is not None:
            self._hold_back()
        elif not self._has_arrived:
            self._first_bytes_left -= len(data)
            if self._first_bytes_left < 0:
                self.close(TOO_BIG, "the first message is too large")
                self._arrive()

    def _read_farewell(self, data: bytes, at: int) -> None:
        """Once we are closing, only the client's answer counts; after a protocol error nothing does."""
        if self._has_failed:
            return
        try:
            while at < len(data):
                message, at = self._reader.feed(data, at)
                if message is not None and message[0] == Opcode.CLOSE:
                    self.transport.close()
                    return
        except WireError:
            self.transport.close()

    def _pass_on(self, message: Message) -> None:
        opcode, data = message
        assert self._listener is not None, "nobody listens"
        if opcode & CONTROL:
            self._control(opcode, data)
        elif opcode == Opcode.TEXT:
            self._listener.receive([data], len(data))
        else:
            self._listener.receive_binary(data)

    def _hold_back(self) -> None:
        if not self.transport.is_closing():
            self.transport.pause_reading()

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

    def _control(self, opcode: int, data: bytes) -> None:
        if opcode == Opcode.PING:
            if self.transport.get_write_buffer_size() < _PONG_BYTES:
                self.transport.write(pong(data))  # who does not read need not be answered every time
        elif opcode == Opcode.CLOSE:
            self.close_code = close_code(data)
            self._closing = True
            self.transport.write(close_frame(self.close_code if data else _NORMAL))
            self._loop.call_later(_CLOSE_S, self.transport.abort)
            self.transport.close()


def _accept(request: web.Request) -> str:
    key = request.headers.get("Sec-WebSocket-Key", "")
    try:
        whole = len(base64.b64decode(key, validate=True)) == 16
    except ValueError:  # not base64, or not even ASCII
        whole = False
    if request.method != "GET" or not whole or request.headers.get("Sec-WebSocket-Version") != "13":
        raise Denied(400, "bad_handshake", "not a WebSocket handshake as RFC 6455 has it, version 13")
    return base64.b64encode(hashlib.sha1(key.encode() + _GUID).digest()).decode()
