"""The bounded send queue of each connection: frames built once, gathered over a turn, one write to each socket.

Backpressure is a reader's own: one that does not keep up is queued for up to a bound and then disconnected (4008).
Stream frames fill at most half of that; the rest of them are dropped, so that nobody is disconnected by a stream.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from mew.space import ConnectionId

__all__ = ["Outbox", "Outboxes"]

# What may wait in the transport; the rest waits here, where it can be dropped.
_SOCKET_BYTES: Final = 256 * 1024
_RETRY_FIRST_S: Final = 0.01
_RETRY_MOST_S: Final = 0.5


Frames: TypeAlias = dict[int, tuple[bytes, str]]


class Outbox:
    """The send queue of one connection."""

    __slots__ = (
        "_buffered_bytes",
        "_bytes_max",
        "_dropped",
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
        "_tell_dropped",
    )

    def __init__(
        self,
        transport: asyncio.WriteTransport,
        bytes_max: int,
        overflow: Callable[[], None],
        tell_dropped: Callable[[Mapping[str, int]], None],
    ) -> None:
        """`overflow` is called once, when more than `bytes_max` wait; nothing is written after that.

        `tell_dropped` is called with the number of frames that were dropped, by stream, once the reader has caught up.
        """
        # Looked up once: `write` is called for every connection in every turn.
        self._is_closing = transport.is_closing
        self._buffered_bytes = transport.get_write_buffer_size
        self._send = transport.write
        self._bytes_max = bytes_max
        self._overflow = overflow
        self._tell_dropped = tell_dropped
        self._dropped: dict[str, int] | None = None
        self._first: Iterator[bytes] | None = None  # what goes before all that is held
        self._held: deque[bytes] | None = None  # nobody needs one who reads as fast as we write
        self._held_bytes = 0
        self._retrying = False
        self._retry_s = _RETRY_FIRST_S
        # Bytes we may still write before checking the transport's buffer; 0 while our own queue is non-empty.
        self._spare_bytes = 0
        self._stopped = False

    def write(self, data: bytes) -> None:
        spare_bytes = self._spare_bytes - len(data)
        if spare_bytes < 0:
            self._write_carefully(data)
        elif not self._is_closing():  # nothing follows a close frame
            self._spare_bytes = spare_bytes
            self._send(data)

    def write_turn(self, parts: Sequence[bytes], whole: bytes, frames: Frames) -> None:
        """Write the parts, which are `whole` together; those that are among the `frames` of streams may be dropped."""
        if not self._retrying and self._buffered_bytes() <= _SOCKET_BYTES:
            self.write(whole)
            return
        for part in parts:
            if self._stopped or self._is_closing():
                return
            if id(part) in frames and self._held_bytes + len(part) > self._bytes_max // 2:
                self._drop(frames[id(part)][1])
            else:
                self._hold(part)

    def replay(self, frames: Iterator[bytes]) -> None:
        """Write these as fast as they are read, before anything else: they need not all be in memory at once."""
        if self._stopped:  # nothing follows a close frame
            return
        self._first = frames
        self._spare_bytes = 0
        self._pump()

    @property
    def waiting_bytes(self) -> int:
        """Bytes queued here and in the transport."""
        return self._held_bytes + self._buffered_bytes()

    def stop(self) -> None:
        """Write no more; what waits here is dropped."""
        self._stopped = True
        self._spare_bytes = 0
        self._first = None
        self._held = None
        self._held_bytes = 0
        self._dropped = None

    def _write_carefully(self, data: bytes) -> None:
        """Slow path of `write`: check the transport's buffer, our queue and whether it is closing."""
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

    def _drop(self, stream: str) -> None:
        if self._dropped is None:
            self._dropped = {}
        self._dropped[stream] = self._dropped.get(stream, 0) + 1
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
        """Write queued frames until the transport's buffer is full."""
        if self._is_closing():
            self.stop()
            return
        while self._buffered_bytes() <= _SOCKET_BYTES:
            data = self._next()
            if data is None:
                if self._dropped is not None:
                    dropped, self._dropped = self._dropped, None
                    self._tell_dropped(dropped)
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
    """All outboxes of a room. Nothing is written before `flush`."""

    def __init__(self) -> None:
        self._boxes: dict[ConnectionId, Outbox] = {}
        self._shared: list[bytes] = []
        # Those whose frames of this turn are not the shared ones.
        self._apart: dict[ConnectionId, list[bytes]] = {}
        self._replays: list[tuple[Outbox, Iterator[bytes]]] = []
        # Frames of streams that were gathered, and of which stream: by identity, so they are kept alive here.
        self._frames: Frames = {}

    def __len__(self) -> int:
        return len(self._boxes)

    def add(self, connection: ConnectionId, outbox: Outbox, replay: Iterator[bytes]) -> None:
        """From here on; what was gathered before in this turn is not for it, but it gets these frames first."""
        self._boxes[connection] = outbox
        self._apart[connection] = []
        self._replays.append((outbox, replay))

    def remove(self, connection: ConnectionId) -> bytes:
        """From here on nothing is for it; return what was gathered for it in this turn."""
        due = self._apart.pop(connection, self._shared if connection in self._boxes else [])
        self._boxes.pop(connection, None)
        return b"".join(due)

    def send(
        self,
        frames: bytes,
        to: Iterable[ConnectionId] | None = None,
        *,
        but: Collection[ConnectionId] = (),
    ) -> int:
        """Gather frames for all connections but some, or for those named that are here; return for how many."""
        boxes, apart = self._boxes, self._apart
        if to is None:
            if not (apart or but):
                self._shared.append(frames)
                return len(boxes)
            for connection in but:
                if connection in boxes and connection not in apart:
                    apart[connection] = self._shared.copy()
            self._shared.append(frames)
            for connection, own in apart.items():
                if connection not in but:
                    own.append(frames)
            return len(boxes) - sum(map(boxes.__contains__, but))
        count = 0
        for connection in to:
            due = apart.get(connection)
            if due is not None:
                due.append(frames)
            elif connection in boxes:
                apart[connection] = [*self._shared, frames]
            else:
                continue
            count += 1
        return count

    def send_frame(
        self,
        frame: bytes,
        stream: str,
        to: Iterable[ConnectionId] | None = None,
        *,
        but: Collection[ConnectionId] = (),
    ) -> None:
        """As `send`, for the frame of a stream: a reader that does not keep up loses it and is told so."""
        self._frames[id(frame)] = frame, stream
        self.send(frame, to, but=but)

    def flush(self) -> None:
        """One write to each connection that something is due to; a reader that overflows may be removed meanwhile."""
        apart, self._apart = self._apart, {}
        shared, self._shared = self._shared, []
        if self._replays:
            replays, self._replays = self._replays, []
            for newcomer, frames in replays:
                newcomer.replay(frames)
        if self._frames:
            self._write_with_frames(apart, shared)
            return
        for connection, own in apart.items():
            box = self._boxes.get(connection)
            if own and box is not None:
                box.write(b"".join(own))
        if shared:
            together = b"".join(shared) if len(shared) > 1 else shared[0]
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

    def _write_with_frames(self, apart: Mapping[ConnectionId, list[bytes]], shared: list[bytes]) -> None:
        """The same for a turn in which frames of streams came."""
        frames, self._frames = self._frames, {}
        together = b"".join(shared)
        for connection, box in tuple(self._boxes.items()):
            own = apart.get(connection)
            if own:
                box.write_turn(own, b"".join(own), frames)
            elif own is None and shared:
                box.write_turn(shared, together, frames)
