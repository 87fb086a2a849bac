"""Connections after the welcome: those who only count bytes, those who read what comes, and those who talk."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any, Final

from mew.protocol.errors import ProtocolError
from mew.protocol.json import decode_json

from .frames import BINARY, CLOSE, CONTROL_BYTES_MAX, PING, PONGED, TEXT, Frames, pong, read_close
from .problems import LoadFailed, was_closed, was_refused

__all__ = ["NOTHING_DUE", "Counter", "Listener", "Phase", "Talker"]

NOTHING_DUE: Final = 1 << 62
"""Bytes to come while nothing is sent: what others say completes no phase."""
_ERROR: Final = b'"system/error"'


class Phase:
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


class Counter(asyncio.BufferedProtocol):
    """A member that does nothing but add up bytes; all of them read into one buffer, for nobody looks at it."""

    buffer = memoryview(bytearray(1 << 18))

    def __init__(self, phase: Phase) -> None:
        self.phase = phase
        self.received = 0
        self.transport: asyncio.Transport | None = None
        self.gone = asyncio.Event()

    def begin(self, transport: asyncio.Transport, rest: bytes) -> None:
        self.transport = transport
        self.received = len(rest)

    def get_buffer(self, _size_hint: int) -> memoryview:
        return Counter.buffer

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


class Listener(asyncio.Protocol):
    """A member that reads what comes. `received` is its bytes, without control frames."""

    def __init__(self, phase: Phase) -> None:
        self.phase = phase
        self.received = 0
        self.transport: asyncio.Transport | None = None
        self.gone = asyncio.Event()
        self._frames = Frames()

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


class Talker(Listener):
    """A member that talks, and keeps a window of envelopes in flight: its own echoes refill it."""

    def __init__(self, phase: Phase, frames: Iterator[bytes], *, run: str, tag: str, window: int) -> None:
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
