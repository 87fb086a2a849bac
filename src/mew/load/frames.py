"""PURE. Frames and envelopes: made and masked beforehand to be sent, parsed when they come."""

from collections.abc import Iterator, Sequence
from itertools import count, cycle
from typing import Any, Final

from mew.protocol.envelope import PROTOCOL
from mew.protocol.json import encode_json

__all__ = [
    "BINARY",
    "CLOSE",
    "CLOSING",
    "CONTROL_BYTES_MAX",
    "FILLING",
    "MASK",
    "PING",
    "PONGED",
    "SLOT",
    "TEXT",
    "EnvelopeTemplate",
    "FrameParser",
    "binary_frame",
    "chat",
    "envelope",
    "head",
    "masked",
    "numbered",
    "pong",
    "read_close",
    "text_frame",
]


MASK: Final = b"\x5a\xc3\x17\xe8"
TEXT: Final = 0x81
BINARY: Final = 0x82
CLOSE: Final = 0x88
PING: Final = 0x89
CONTROL_BYTES_MAX: Final = 127
_PONG: Final = 0x8A
_MASKED: Final = 0x80
_OPCODE: Final = 0x0F
_FIN: Final = 0x80
_SHORT_MAX: Final = 125
_MEDIUM: Final = 126
_MEDIUM_MAX: Final = 0xFFFF
_NO_CODE: Final = 1005


def masked(part: bytes) -> bytes:
    """A part of a payload that begins at a multiple of four."""
    size = len(part)
    key = (MASK * (size // 4 + 1))[:size]
    return (int.from_bytes(part) ^ int.from_bytes(key)).to_bytes(size)


def head(first: int, size: int) -> bytes:
    """What stands before a payload of this size, the mask included."""
    if size <= _SHORT_MAX:
        return bytes((first, _MASKED | size)) + MASK
    if size <= _MEDIUM_MAX:
        return bytes((first, _MASKED | _MEDIUM)) + size.to_bytes(2) + MASK
    return bytes((first, _MASKED | 127)) + size.to_bytes(8) + MASK


def text_frame(payload: bytes) -> bytes:
    return head(TEXT, len(payload)) + masked(payload)


def binary_frame(payload: bytes) -> bytes:
    return head(BINARY, len(payload)) + masked(payload)


def pong(payload: bytes) -> bytes:
    return head(_PONG, len(payload)) + masked(payload)


PONGED: Final = pong(b"")
"""Says that one is there, unasked: who is heard is not pinged."""
CLOSING: Final = head(CLOSE, 2) + masked((1000).to_bytes(2))


def read_close(payload: bytes) -> tuple[int, str]:
    """Code and reason."""
    if len(payload) < 2:
        return _NO_CODE, ""
    return int.from_bytes(payload[:2]), payload[2:].decode(errors="replace")


class FrameParser:
    """Takes the bytes of a server apart. Fragments are put together."""

    __slots__ = ("_fragments", "_kind", "_need", "_rest")

    def __init__(self) -> None:
        self._rest = b""
        self._need = 2
        self._kind = 0
        self._fragments: list[bytes] = []

    def feed(self, received: bytes) -> Iterator[tuple[int, bytes, int]]:
        """Each message or control frame that is whole: its first byte, its payload, its bytes on the wire."""
        data = self._rest + received if self._rest else received
        if len(data) < self._need:
            self._rest = data  # joined again and again only up to the end of one frame
            return
        at, end, self._need = 0, len(data), 2
        while end - at >= 2:
            size, start = data[at + 1] & 0x7F, at + 2
            if size == _MEDIUM:
                start = at + 4
                size = int.from_bytes(data[at + 2 : start])
            elif size > _MEDIUM:
                start = at + 10
                size = int.from_bytes(data[at + 2 : start])
            stop = start + size
            if stop > end or start > end:
                self._need = stop - at if start <= end else 10
                break
            first, payload, wire_bytes = data[at], data[start:stop], stop - at
            at = stop
            if first in (TEXT, BINARY) or first & 0x8:
                yield first, payload, wire_bytes
            else:
                yield from self._fragment(first, payload, wire_bytes)
        self._rest = data[at:]

    @property
    def rest(self) -> bytes:
        """What came of a frame that is not whole."""
        return self._rest

    def _fragment(self, first: int, payload: bytes, wire_bytes: int) -> Iterator[tuple[int, bytes, int]]:
        self._kind = first & _OPCODE or self._kind
        self._fragments.append(payload)
        whole = b""
        if first & _FIN:
            whole, self._fragments = b"".join(self._fragments), []
        yield (_FIN | self._kind if first & _FIN else 0), whole, wire_bytes


SLOT: Final = "\N{NUMBER SIGN}\N{NUMBER SIGN}"
"""Stands in the text of a template for eight digits; within a string, never at its start or its end alone."""
_NUMBERS: Final = 10_000
_DIGITS: Final = 8
FILLING: Final = "\N{DOLLAR SIGN}fill\N{DOLLAR SIGN}"
_FOUR_DIGITS: Final = [masked(b"%04d" % number) for number in range(_NUMBERS)]


class EnvelopeTemplate:
    """A frame for each number, all of one length."""

    def __init__(self, text: bytes) -> None:
        """`text` is JSON; what is between two slots begins with the end of a string, or at the start of an object.

        Blanks are put in there, so that each slot begins at a multiple of four, as a mask does.
        """
        pieces = text.split(SLOT.encode())
        at, parts = 0, list[bytes]()
        for piece in pieces[:-1]:
            padded = piece[:1] + b" " * (-(at + len(piece)) % 4) + piece[1:]
            parts.append(masked(padded))
            at += len(padded) + _DIGITS
        parts.append(masked(pieces[-1]))
        self.payload_bytes = at + len(pieces[-1])
        self._first = head(TEXT, self.payload_bytes) + parts[0]
        self._others = parts[1:]

    def frame(self, number: int) -> bytes:
        high, low = divmod(number, _NUMBERS)
        digits = _FOUR_DIGITS[high % _NUMBERS] + _FOUR_DIGITS[low]
        return self._first + digits + digits.join(self._others)


def numbered(templates: Sequence[EnvelopeTemplate]) -> Iterator[bytes]:
    """Frames of these in turn, each with a number of its own."""
    return map(EnvelopeTemplate.frame, cycle(templates), count())


def envelope(
    ident: str,
    who: str,
    kind: str,
    payload: dict[str, Any],
    *,
    to: Sequence[str] = (),
    about: str | None = None,
    size: int = 0,
) -> EnvelopeTemplate:
    """An envelope of this id, which has a slot in it, like `about`, the id that it correlates to.

    `FILLING` in the payload becomes so long that the envelope has `size` bytes, or no less.
    """
    fields: dict[str, Any] = {"protocol": PROTOCOL, "id": ident, "from": who}
    if to:
        fields["to"] = list(to)
    fields["kind"] = kind
    if about is not None:
        fields["correlation_id"] = [about]
    text = encode_json({**fields, "payload": payload})
    least = EnvelopeTemplate(text.replace(FILLING.encode(), b"")).payload_bytes
    return EnvelopeTemplate(text.replace(FILLING.encode(), b"x" * max(size - least, 1)))


def chat(ident: str, who: str, *, to: Sequence[str] = (), size: int) -> EnvelopeTemplate:
    return envelope(ident, who, "chat", {"text": FILLING}, to=to, size=size)
