"""Relay stream frames (§3.10.3): not journalled, but in order with the envelopes around them, on all nodes."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

import msgspec
from msgspec import Struct

from mew.gateway.websocket.frames import binary_frame, text_frame
from mew.protocol.codec import encode
from mew.protocol.envelope import ParticipantId
from mew.protocol.errors import ProtocolError, Refusal
from mew.protocol.frames import stream_of
from mew.space import ConnectionId, RefusalDetails, Space
from mew.space.streams import FrameRoute

from . import replies
from .other_nodes import OtherNodes
from .outbox import Outboxes
from .ports import Counters, RoomConnection

__all__ = ["FrameRelay"]


class _SentFrame(Struct, frozen=True, array_like=True, gc=False):
    """A frame, whose it is, and the connection that is not to get it back if its participant's others are."""

    who: ParticipantId
    frame: bytes
    is_text: bool
    echo_but: ConnectionId | None


_pack: Final = msgspec.msgpack.Encoder().encode
_frames: Final = msgspec.msgpack.Decoder(_SentFrame)


class FrameRelay:
    """Route frames to the outboxes that the space names, unchanged."""

    def __init__(
        self,
        space: Space,
        outboxes: Outboxes,
        counters: Counters,
        now: Callable[[], datetime],
        reject: Callable[[RoomConnection, RefusalDetails], None],
        others: OtherNodes | None,
    ) -> None:
        self._space = space
        self._others = others
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
        # lenient clients expect to hear themselves
        sent = _SentFrame(connection.who, frame, is_text, connection.id if connection.lenient else None)
        self._send(sent, route)
        if self._others is not None and self._others.are_connected():
            self._others.journal.publish(_pack(sent))

    def receive(self, published: bytes) -> None:
        """Forward a frame that another node took, if its writer may still write here in the order."""
        sent = _frames.decode(published)
        route = self._space.route(self._now(), sent.who, stream_of(sent.frame))
        if not isinstance(route, RefusalDetails):
            self._send(sent, route)

    def _send(self, sent: _SentFrame, route: FrameRoute) -> None:
        wrapped = text_frame(sent.frame) if sent.is_text else binary_frame(sent.frame)
        stream = stream_of(sent.frame)
        own = self._space.connections_of((sent.who,))
        if sent.echo_but is not None:
            own = [one for one in own if one != sent.echo_but]
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
