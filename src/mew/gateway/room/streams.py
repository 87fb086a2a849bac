"""Relay stream frames (§3.10.3): not journalled, but in order with the envelopes around them."""

from collections.abc import Callable, Mapping
from datetime import datetime

from mew.gateway.websocket.frames import binary_frame, text_frame
from mew.protocol.codec import encode
from mew.protocol.errors import ProtocolError, Refusal
from mew.protocol.frames import stream_of
from mew.space import RefusalDetails, Space

from . import replies
from .outbox import Outboxes
from .ports import Counters, RoomConnection

__all__ = ["FrameRelay"]


class FrameRelay:
    """Route frames to the outboxes that the space names, unchanged."""

    def __init__(
        self,
        space: Space,
        outboxes: Outboxes,
        counters: Counters,
        now: Callable[[], datetime],
        reject: Callable[[RoomConnection, RefusalDetails], None],
    ) -> None:
        self._space = space
        self._outboxes = outboxes
        self._counters = counters
        self._now = now
        self._reject = reject

    def forward(self, connection: RoomConnection, frame: bytes, *, is_text: bool, bytes_max: int) -> None:
        """Forward a frame, or refuse it."""
        if len(frame) > bytes_max:
            self._reject(connection, RefusalDetails(Refusal.TOO_LARGE, f"a frame may have {bytes_max} bytes"))
            return
        try:
            route = self._space.route(self._now(), connection.who, stream_of(frame))
        except ProtocolError as error:
            route = RefusalDetails(error.refusal, str(error))
        if isinstance(route, RefusalDetails):
            self._reject(connection, route)
            return
        self._counters.frames += 1
        wrapped, stream = text_frame(frame) if is_text else binary_frame(frame), stream_of(frame)
        own = self._space.connections_of((connection.who,))
        if connection.lenient:  # those clients expect to hear themselves
            own = [one for one in own if one != connection.id]
        if route.targets is None:
            self._outboxes.send_frame(wrapped, stream, but=own)
        else:
            targets = self._space.connections_of(route.targets)
            self._outboxes.send_frame(wrapped, stream, [one for one in targets if one not in own])

    def tell_dropped(self, connection: RoomConnection, dropped: Mapping[str, int]) -> None:
        """Frames for a connection were dropped, because it did not keep up: tell it, now that it has."""
        for stream, count in dropped.items():
            self._counters.frames_dropped += count
            told = replies.frames_dropped(self._now(), connection.who, stream, count)
            connection.outbox.write(text_frame(encode(told)))
