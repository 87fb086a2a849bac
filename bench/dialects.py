"""How the load speaks to a server: how a member joins, what it writes for an envelope, what comes back for one.

All dialects carry the same envelopes, as long as the workload says; what a protocol wraps around them comes on top.
Every frame of a run has the same length, and so has every delivery: bytes are deliveries.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, Protocol

from bench.workloads import Kind, Workload

__all__ = [
    "DIALECTS",
    "Dialect",
    "Seat",
    "Step",
    "Template",
    "delivery_bytes",
    "due_to",
    "frames_of",
    "masked",
    "template",
]

NUMBER_DIGITS = 8
"""In the id of an envelope: what makes each another. Two groups of four, which is the length of a mask."""


@dataclass(frozen=True)
class Seat:
    """Who one connection is: a member of a space."""

    workload: Workload
    space: int
    member: int

    @property
    def number(self) -> int:
        """Among all who share names: addressed traffic has its pairs in one space where a server knows addresses."""
        paired = self.workload.kind is Kind.ADDRESSED
        return self.space * self.workload.members + self.member if paired else self.member

    @property
    def peer(self) -> int | None:
        """To whom it writes; None where it writes to all."""
        return self.number ^ 1 if self.workload.kind is Kind.ADDRESSED else None

    @property
    def space_name(self) -> str:
        return self.workload.space_names[self.space]


class Step(NamedTuple):
    """A part of joining: write this, then read until what came ends a reply that starts as it should."""

    write: bytes
    reply_start: bytes
    reply_end: bytes


class Dialect(Protocol):
    """A protocol as the load needs it: no more than prebuilt bytes and their lengths."""

    mask: bytes
    """Four bytes that a client's payload is masked with; zeros where it is not."""
    settle_s: float
    """How long after the last join a server may still write something of its own."""

    def join(self, seat: Seat) -> list[Step]:
        """What a member does to be in its space."""
        ...

    def wrapping(self, seat: Seat) -> tuple[bytes, bytes, bytes]:
        """What the sender's frame, in clear, has before its payload; and around the envelope within the payload."""
        ...

    def delivered(self, seat: Seat, envelope: bytes) -> bytes:
        """The bytes that each member of the seat's space gets for an envelope of this length."""
        ...


class WebSocket:
    """Bare WebSocket: an envelope is a text frame, and is passed on as one; the space is in the address."""

    mask = b"\x5a\xc3\x17\xe8"
    settle_s = 0.0
    opening, closing = b"", b""

    def join(self, seat: Seat) -> list[Step]:
        return [Step(self.upgrade(f"/ws?space={seat.space_name}"), b"HTTP/1.1 101 ", b"\r\n\r\n")]

    @staticmethod
    def upgrade(path: str, *headers: str) -> bytes:
        lines = [
            f"GET {path} HTTP/1.1",
            "Host: 127.0.0.1",
            "Upgrade: websocket",
            "Connection: Upgrade",
            "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
            *headers,
        ]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    def wrapping(self, seat: Seat) -> tuple[bytes, bytes, bytes]:
        length = len(self.opening) + seat.workload.bytes + len(self.closing)
        return b"\x81" + _length(length, mask_bit=0x80) + self.mask, self.opening, self.closing

    def delivered(self, seat: Seat, envelope: bytes) -> bytes:
        payload = self.opening + envelope + self.closing
        return b"\x81" + _length(len(payload), mask_bit=0) + payload


class Mew(WebSocket):
    """Our own: who comes says so by a token, and addressed traffic goes by `to` within one space."""

    def join(self, seat: Seat) -> list[Step]:
        space = seat.workload.space_names[0] if seat.peer is not None else seat.space_name
        upgrade = self.upgrade(f"/ws?space={space}", f"Authorization: Bearer t{seat.number}")
        return [Step(upgrade, b"HTTP/1.1 101 ", b'"system/welcome"')]


class SocketIo(WebSocket):
    """Socket.IO over WebSocket alone: an envelope is the argument of an event, and the space is a room."""

    opening, closing = b'42["e",', b"]"

    def join(self, seat: Seat) -> list[Step]:
        path = f"/socket.io/?EIO=4&transport=websocket&space={seat.space_name}"
        connect = b"\x81\x82" + self.mask + masked(b"40", self.mask)  # to the namespace /
        return [
            Step(self.upgrade(path), b"HTTP/1.1 101 ", b'"maxPayload":'),
            Step(connect, b"", b'40{"sid":"'),
        ]


class Nats:
    """NATS over TCP, its own protocol: the space is a subject, and who has subscribed to it gets its own echo."""

    mask = bytes(4)
    settle_s = 3.0  # it pings each client once, 2 to 2.4 s after it came, to know the way there and back

    def join(self, seat: Seat) -> list[Step]:
        connect = b'CONNECT {"verbose":false,"pedantic":false,"echo":true}\r\n'
        subscribe = f"SUB {seat.space_name} 1\r\nPING\r\n".encode()
        return [Step(b"", b"INFO ", b"\r\n"), Step(connect + subscribe, b"", b"PONG\r\n")]

    def wrapping(self, seat: Seat) -> tuple[bytes, bytes, bytes]:
        return f"PUB {seat.space_name} {seat.workload.bytes}\r\n".encode(), b"", b"\r\n"

    def delivered(self, seat: Seat, envelope: bytes) -> bytes:
        return f"MSG {seat.space_name} 1 {len(envelope)}\r\n".encode() + envelope + b"\r\n"


DIALECTS: dict[str, Dialect] = {
    "websocket": WebSocket(),
    "mew": Mew(),
    "socket.io": SocketIo(),
    "nats": Nats(),
}


def delivery_bytes(dialect: Dialect, workload: Workload) -> int:
    """How long every delivery of a run is."""
    return len(dialect.delivered(Seat(workload, 0, 0), bytes(workload.bytes)))


def due_to(dialect: Dialect, senders: list[Seat], number: int = 0) -> list[bytes]:
    """The deliveries that each member of a space gets for an envelope of each of its senders, by its number."""
    due = []
    for seat in senders:
        before, after = envelope_parts(seat, opening_bytes=len(dialect.wrapping(seat)[1]))
        due.append(dialect.delivered(seat, before + b"%0*d" % (NUMBER_DIGITS, number) + after))
    return due


def envelope_parts(seat: Seat, *, opening_bytes: int = 0) -> tuple[bytes, bytes]:
    """A chat envelope before and after the number in its id, which starts at a multiple of four in its payload."""
    before = f'{{"protocol":"mew/v0.4","id":"{f"m{seat.number}":->6}-'  # the number at the same place for all
    before += "-" * (-(opening_bytes + len(before)) % 4)
    to = "" if seat.peer is None else f'"to":["p{seat.peer}"],'
    after = f'","from":"p{seat.number}",{to}"kind":"chat","payload":{{"text":"'
    end = '"}}'
    text = "x" * (seat.workload.bytes - len(before) - NUMBER_DIGITS - len(after) - len(end))
    return before.encode(), (after + text + end).encode()


class Template(NamedTuple):
    """A sender's frame as it goes over the wire, with the number 0 in it; and where that is."""

    frame: bytes
    number_at: int


def template(dialect: Dialect, seat: Seat) -> Template:
    """What a sender's frames are made from: each has another number, masked as its place demands."""
    head, opening, closing = dialect.wrapping(seat)
    before, after = envelope_parts(seat, opening_bytes=len(opening))
    payload = opening + before + b"0" * NUMBER_DIGITS + after + closing
    return Template(head + masked(payload, dialect.mask), len(head) + len(opening) + len(before))


def frames_of(dialect: Dialect, seat: Seat) -> Iterator[bytes]:
    """A sender's frames, one after another: a hundred million of them, then no more."""
    frame, at = template(dialect, seat)
    begin, end = frame[:at], frame[at + NUMBER_DIGITS :]
    groups = _four_digits(dialect.mask)
    for high in groups:
        start = begin + high
        for low in groups:
            yield start + low + end


def masked(payload: bytes, mask: bytes) -> bytes:
    """A payload, or a part of one that starts at a multiple of four, as a client sends it."""
    return bytes(byte ^ key for byte, key in zip(payload, itertools.cycle(mask), strict=False))


@cache
def _four_digits(mask: bytes) -> list[bytes]:
    return [masked(b"%04d" % number, mask) for number in range(10_000)]


def _length(length: int, *, mask_bit: int) -> bytes:
    if length < 126:
        return bytes((mask_bit | length,))
    assert length < 1 << 16, f"{length} bytes need a longer head"
    return bytes((mask_bit | 126,)) + length.to_bytes(2)
