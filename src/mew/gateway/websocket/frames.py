"""PURE. The server's side of RFC 6455 after the handshake: a client's frames to messages, and frames to send.

aiohttp's reader hands every message through a queue to a task; measured, that costs more than all our rules
together. This one returns what the bytes hold, and whoever fed it goes on (see decision 0002).
"""

from enum import IntEnum
from struct import Struct
from typing import Final, TypeAlias

from mew.speedups import compiled_if_possible

try:  # aiohttp's masking in C, three times as fast as ours; it promises nothing about it, so we can do without
    from aiohttp._websocket.helpers import websocket_mask
except ImportError:
    websocket_mask = None  # type: ignore[assignment]

__all__ = [
    "CONTROL",
    "TOO_BIG",
    "FrameReader",
    "Message",
    "Opcode",
    "WireError",
    "binary_frame",
    "close_code",
    "close_frame",
    "join_frames",
    "parse_frames",
    "ping",
    "pong",
    "text_frame",
]


class Opcode(IntEnum):
    CONTINUATION = 0x0
    TEXT = 0x1
    BINARY = 0x2
    CLOSE = 0x8
    PING = 0x9
    PONG = 0xA


Message: TypeAlias = tuple[int, bytes]
"""The opcode and the data of a whole message or a control frame; fragments are put together."""


class WireError(Exception):
    """The client broke the protocol: close with this code (RFC 6455 §7.4.1)."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


PROTOCOL_ERROR: Final = 1002
INVALID_TEXT: Final = 1007
TOO_BIG: Final = 1009

_FIN: Final = 0x80
_MASKED: Final = 0x80
_FINAL_TEXT: Final = _FIN | Opcode.TEXT
_FINAL_BINARY: Final = _FIN | Opcode.BINARY
CONTROL: Final = 0x8
_KNOWN: Final = frozenset(Opcode)
_CONTROL_BYTES_MAX: Final = 125
_HEAD_MIN: Final = 6
_HEAD_MAX: Final = 14
_REFUSED_CLOSE_CODES: Final = frozenset({1004, 1005, 1006, *range(1015, 3000)})


@compiled_if_possible
def parse_frames(data: bytes, start: int, bytes_max: int, messages_max: int, /) -> tuple[list[bytes], int]:
    """Parse the complete, masked, unfragmented text frames from `start` on.

    Up to `bytes_max` each, and `messages_max` in all. Return the messages, and where the first other frame begins,
    which is for a `FrameReader`.
    """
    messages: list[bytes] = []
    at, end = start, len(data)
    while end - at >= _HEAD_MIN and len(messages) < messages_max and data[at] == _FINAL_TEXT:
        begin, length = at + _HEAD_MIN, data[at + 1] & 0x7F
        if length > 125:
            begin, length = _extended(data, at, length)
        stop = begin + length
        if data[at + 1] < _MASKED or length > bytes_max or stop > end:
            break
        payload = unmask(data[begin - 4 : begin], data[begin:stop])
        if not _is_utf8(payload):
            break
        messages.append(payload)
        at = stop
    return messages, at


class FrameReader:
    """Reads any frames, one message at a time. Feed it what the socket receives."""

    __slots__ = ("_fragments", "_held", "_kind", "_need", "bytes_max", "has_part")

    def __init__(self, bytes_max: int) -> None:
        """No message may be larger than `bytes_max`."""
        self.bytes_max = bytes_max
        self.has_part = False
        """Whether a part of a message was read, and waits for the rest."""
        self._held = bytearray()  # the beginning of a frame
        self._need = 0
        self._kind = 0  # of the message whose fragments these are
        self._fragments = bytearray()  # one buffer, so that many small ones cost no more than their bytes

    def feed(self, data: bytes, start: int) -> tuple[Message | None, int]:
        """Read one message from `start` on, and return where the next one begins; None: it is not complete yet.

        Raises:
            WireError: nothing after this may be read.
        """
        try:
            held = len(self._held)
            if not held:
                return self._read(data, start)
            self._held += data[start:]
            if len(self._held) < self._need:
                self._check_need()
                return None, len(data)
            whole = bytes(self._held)
            self._held.clear()
            message, end = self._read(whole, 0)
            return message, end + start - held
        finally:
            self.has_part = bool(self._held) or bool(self._kind)

    def _read(self, data: bytes, at: int) -> tuple[Message | None, int]:
        end = len(data)
        while end - at >= 2:
            first, second = data[at], data[at + 1]
            start, length = at + _HEAD_MIN, second & 0x7F
            if length > 125:
                start, length = _extended(data, at, length)
            self._check(first, second, length)
            stop = start + length
            if stop > end:
                break
            at = stop
            message = self._take(first, unmask(data[start - 4 : start], data[start:stop]))
            if message is not None:
                return message, at
        if at < end:
            self._hold(data[at:])
        return None, end

    def _hold(self, rest: bytes) -> None:
        """Keep the beginning of a frame until there is enough to go on with, so that large ones are read once."""
        self._held += rest
        self._need = 2
        if len(rest) >= 2:
            start, length = _HEAD_MIN, rest[1] & 0x7F
            if length > 125:
                start, length = _extended(rest, 0, length)
            self._need = start + length

    def _check_need(self) -> None:
        """The limit may have been lowered after the head of this frame was read."""
        if self._need > self.bytes_max + _HEAD_MAX:
            self._held.clear()  # who is closed for this may send on for a while
            raise WireError(TOO_BIG, f"a message may have {self.bytes_max} bytes")

    def _check(self, first: int, second: int, length: int) -> None:
        opcode = first & 0x0F
        if second < _MASKED:
            raise WireError(PROTOCOL_ERROR, "a client's frames are masked")
        if first & 0x70:
            raise WireError(PROTOCOL_ERROR, "no extension was agreed on that uses the reserved bits")
        if opcode not in _KNOWN:
            raise WireError(PROTOCOL_ERROR, f"unknown opcode {opcode}")
        if opcode & CONTROL:
            if not first & _FIN or length > _CONTROL_BYTES_MAX:
                raise WireError(PROTOCOL_ERROR, "a control frame is whole and has at most 125 bytes")
        elif opcode == Opcode.CONTINUATION:
            if not self._kind:
                raise WireError(PROTOCOL_ERROR, "a continuation of nothing")
        elif self._kind:
            raise WireError(PROTOCOL_ERROR, "a new message before the last fragment of another")
        if len(self._fragments) + length > self.bytes_max and not opcode & CONTROL:
            raise WireError(TOO_BIG, f"a message may have {self.bytes_max} bytes")

    def _take(self, first: int, payload: bytes) -> Message | None:
        """A control frame, or a fragment; a whole message is its own last fragment."""
        opcode = first & 0x0F
        if opcode & CONTROL:
            if opcode == Opcode.CLOSE:
                _check_close(payload)
            return opcode, payload
        if opcode != Opcode.CONTINUATION:
            self._kind = opcode
        self._fragments += payload
        if not first & _FIN:
            return None
        kind, whole = self._kind, bytes(self._fragments)
        self._fragments.clear()
        self._kind = 0
        if kind == Opcode.TEXT:
            _check_text(whole)
        return kind, whole


def _extended(data: bytes, at: int, length: int) -> tuple[int, int]:
    """Where the payload starts and how long it is, for a frame at `at` whose length follows in 2 or 8 bytes.

    Where they have not all come yet the length is 0: the payload then starts after the end of what has.
    """
    wide = 2 if length == 126 else 8
    start = at + _HEAD_MIN + wide
    return start, int.from_bytes(data[at + 2 : at + 2 + wide], "big") if len(data) >= start else 0


def text_frame(data: bytes) -> bytes:
    """One unfragmented frame, as a server sends it: not masked."""
    length = len(data)
    if 125 < length < 65_536:  # what most envelopes are
        return _HEAD_16(_FINAL_TEXT, 126, length) + data
    return _head(_FINAL_TEXT, length) + data


@compiled_if_possible
def join_frames(messages: tuple[bytes, ...], /) -> bytes:
    """A text frame for each message, joined."""
    return b"".join([text_frame(message) for message in messages])


def binary_frame(data: bytes) -> bytes:
    return _head(_FINAL_BINARY, len(data)) + data


def close_frame(code: int, reason: str = "") -> bytes:
    said = reason.encode()[: _CONTROL_BYTES_MAX - 2].decode(errors="ignore").encode()
    return _control(Opcode.CLOSE, code.to_bytes(2, "big") + said)


def ping(data: bytes = b"") -> bytes:
    return _control(Opcode.PING, data)


def pong(data: bytes) -> bytes:
    return _control(Opcode.PONG, data)


def close_code(data: bytes) -> int:
    """The code in a close frame; 1005 where it has none."""
    return int.from_bytes(data[:2], "big") if data else 1005


_HEAD_16: Final = Struct("!BBH").pack
_HEAD_64: Final = Struct("!BBQ").pack


def _head(first: int, length: int) -> bytes:
    if length < 126:
        return bytes((first, length))
    if length < 65_536:
        return _HEAD_16(first, 126, length)
    return _HEAD_64(first, 127, length)


def _control(opcode: Opcode, data: bytes) -> bytes:
    return bytes((_FIN | opcode, len(data))) + data


def _is_utf8(data: bytes) -> bool:
    try:
        return data.isascii() or bool(data.decode())
    except UnicodeDecodeError:
        return False


def _check_text(data: bytes) -> None:
    if not _is_utf8(data):
        raise WireError(INVALID_TEXT, "invalid UTF-8 in a text message")


def _check_close(data: bytes) -> None:
    if not data:
        return
    code = close_code(data)
    if len(data) == 1 or code < 1000 or code >= 5000 or code in _REFUSED_CLOSE_CODES:
        raise WireError(PROTOCOL_ERROR, "no such close code")
    _check_text(data[2:])


def unmask_in_python(mask: bytes, data: bytes) -> bytes:
    """As fast as Python alone can: one exclusive-or of two large numbers."""
    size = len(data)
    key = int.from_bytes((mask * (size // 4 + 1))[:size], "little")
    return (int.from_bytes(data, "little") ^ key).to_bytes(size, "little")


def _unmask_in_c(mask: bytes, data: bytes) -> bytes:
    changed = bytearray(data)
    websocket_mask(mask, changed)
    return bytes(changed)


unmask = unmask_in_python if websocket_mask is None else _unmask_in_c  # type: ignore[redundant-expr]
