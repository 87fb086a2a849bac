"""What is due to each connection: frames built once, gathered over a turn of the loop, one write to each socket.

A reader that does not keep up is held back only up to a bound and then closed: nobody else waits for it.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final

from mew.protocol.envelope import ParticipantId
from mew.space import Connection

from .deliveries import hand_out
from .pages import Record

__all__ = ["Outbox", "Outboxes"]

# What may wait in the transport; the rest waits here, where it can be dropped.
_SOCKET_BYTES: Final = 256 * 1024
_RETRY_FIRST_S: Final = 0.01
_RETRY_MOST_S: Final = 0.5


class Outbox:
    """The way out to one connection."""

    __slots__ = (
        "_buffered_bytes",
        "_bytes_max",
        "_first",
        "_held",
        "_held_bytes",
        "_is_closing",
        "_overflow",
        "_retry_s",
        "_retrying",
        "_send",
        "_spare_bytes",
        "_stopped",
    )

    def __init__(
        self, transport: asyncio.WriteTransport, bytes_max: int, overflow: Callable[[], None]
    ) -> None:
        """`overflow` is called once, when more than `bytes_max` wait; nothing is written after that."""
        # Looked up once: `write` is called for every connection in every turn.
        self._is_closing = transport.is_closing
        self._buffered_bytes = transport.get_write_buffer_size
        self._send = transport.write
        self._bytes_max = bytes_max
        self._overflow = overflow
        self._first: Iterator[bytes] | None = None  # what goes before all that is held
        self._held: deque[bytes] | None = None  # nobody needs one who reads as fast as we write
        self._held_bytes = 0
        self._retrying = False
        self._retry_s = _RETRY_FIRST_S
        self._spare_bytes = (
            0  # so many more may wait in the transport without a look at it; none while some wait here
        )
        self._stopped = False

    def write(self, data: bytes) -> None:
        spare_bytes = self._spare_bytes - len(data)
        if spare_bytes < 0:
            self._write_carefully(data)
        elif not self._is_closing():  # nothing follows a close frame
            self._spare_bytes = spare_bytes
            self._send(data)

    def replay(self, frames: Iterator[bytes]) -> None:
        """Write these as fast as they are read, before anything else: they need not all be in memory at once."""
        self._first = frames
        self._spare_bytes = 0
        self._pump()

    @property
    def waiting_bytes(self) -> int:
        """What was written and has not left yet, here and in the transport."""
        return self._held_bytes + self._buffered_bytes()

    def stop(self) -> None:
        """Write no more; what waits here is dropped."""
        self._stopped = True
        self._spare_bytes = 0
        self._first = None
        self._held = None
        self._held_bytes = 0

    def _write_carefully(self, data: bytes) -> None:
        """Perhaps the transport is full, or something waits already, or nobody is there any more."""
        if self._stopped or self._is_closing():
            return
        spare_bytes = _SOCKET_BYTES - self._buffered_bytes()
        if self._retrying or spare_bytes < 0:
            self._hold(data)
        else:
            self._spare_bytes = max(0, spare_bytes - len(data))
            self._send(data)

    def _hold(self, data: bytes) -> None:
        self._spare_bytes = 0
        if self._held is None:
            self._held = deque()
        self._held.append(data)
        self._held_bytes += len(data)
        if self._held_bytes > self._bytes_max:
            self.stop()
            self._overflow()
        else:
            self._retry_later()

    def _retry_later(self) -> None:
        if not self._retrying:
            self._retrying = True
            asyncio.get_running_loop().call_later(self._retry_s, self._retry)
            self._retry_s = min(
                2 * self._retry_s, _RETRY_MOST_S
            )  # one that reads nothing is asked ever less often

    def _retry(self) -> None:
        self._retrying = False
        self._pump()

    def _pump(self) -> None:
        """Write as much of what waits as the transport takes."""
        if self._is_closing():
            self.stop()
            return
        while self._buffered_bytes() <= _SOCKET_BYTES:
            data = self._next()
            if data is None:
                return
            self._send(data)
            self._retry_s = _RETRY_FIRST_S
        self._retry_later()

    def _next(self) -> bytes | None:
        if self._first is not None:
            data = next(self._first, None)
            if data is not None:
                return data
            self._first = None
        if not self._held:
            return None
        data = self._held.popleft()
        self._held_bytes -= len(data)
        return data


class Outboxes:
    """The outboxes of a room. Nothing leaves before `flush`."""

    def __init__(self) -> None:
        self._boxes: dict[Connection, Outbox] = {}
        self._shared: list[bytes] = []
        # Those whose frames of this turn are not the shared ones.
        self._apart: dict[Connection, list[bytes]] = {}

    def __len__(self) -> int:
        return len(self._boxes)

    def add(self, connection: Connection, outbox: Outbox) -> None:
        """From here on; what was gathered before in this turn is not for it."""
        self._boxes[connection] = outbox
        self._apart[connection] = []

    def remove(self, connection: Connection) -> None:
        self._boxes.pop(connection, None)
        self._apart.pop(connection, None)

    def to_all(self, frame: bytes) -> None:
        self._shared.append(frame)
        if self._apart:
            for own in self._apart.values():
                own.append(frame)

    def to_all_but(self, but: Collection[Connection], frame: bytes) -> None:
        for connection in but:
            if connection in self._boxes:
                self._own(connection)
        self._shared.append(frame)
        for connection, own in self._apart.items():
            if connection not in but:
                own.append(frame)

    def to(self, connections: Iterable[Connection], frame: bytes) -> int:
        """To these, of those that are here; how many these are."""
        apart, given = self._apart, 0
        for connection in connections:
            own = apart.get(connection)
            if own is not None:
                own.append(frame)
            elif connection in self._boxes:
                apart[connection] = [*self._shared, frame]
            else:
                continue
            given += 1
        return given

    def to_each(
        self, records: list[Record], connected: Mapping[ParticipantId, tuple[Connection, ...]]
    ) -> int:
        """Each to those it is for; how many deliveries that makes."""
        return hand_out(records, connected, self._boxes, self._shared, self._apart)

    def flush(self) -> None:
        """One write to each connection that something is due to; a reader that overflows may be removed meanwhile."""
        apart, self._apart = self._apart, {}
        shared, self._shared = self._shared, []
        for connection, own in apart.items():
            box = self._boxes.get(connection)
            if own and box is not None:
                box.write(b"".join(own))
        if shared:
            together = b"".join(shared)
            boxes = tuple(self._boxes.values())
            if apart:
                boxes = tuple(box for connection, box in self._boxes.items() if connection not in apart)
            size = len(together)
            for box in boxes:  # `box.write`, without a call for each
                spare_bytes = box._spare_bytes - size
                if spare_bytes < 0 or box._is_closing():
                    box._write_carefully(together)
                else:
                    box._spare_bytes = spare_bytes
                    box._send(together)

    def _own(self, connection: Connection) -> list[bytes]:
        own = self._apart.get(connection)
        if own is None:
            own = self._apart[connection] = list(self._shared)
        return own
