"""Gateways that forward the frames of streams wrongly."""

from collections.abc import Callable
from typing import Any

import pytest

from mew.gateway.room.ports import RoomConnection
from mew.gateway.room.room import Room
from mew.gateway.room.streams import FrameRelay
from mew.gateway.websocket.frames import binary_frame, text_frame
from mew.protocol.envelope import ParticipantId
from mew.protocol.errors import ProtocolError, Refusal
from mew.protocol.frames import join, split
from mew.protocol.json import encode_json
from mew.space import Decision, Deliver, Entry, RefusalDetails, streams

from .breaks import Break, Mutant, replaced, wrapping
from .deciding import refusing
from .doors import afterwards, framing_streams, show

__all__ = ["MUTANTS"]


Change = Callable[[bytes], bytes]
Forward = Callable[[bytes], None]


def framing(*, text: Change = bytes, binary: Change = bytes) -> Break:
    """Change what is in the frames that are forwarded."""
    return framing_streams(
        text=lambda data: text_frame(text(data)), binary=lambda data: binary_frame(binary(data))
    )


def forwarding(forward: Callable[[bytes, Forward], None]) -> Break:
    """Do something else than to forward each frame, once."""

    def forwarded(
        right: Any, relay: FrameRelay, connection: RoomConnection, frame: bytes, **how: Any
    ) -> None:
        def rightly(data: bytes) -> None:
            right(relay, connection, data, **how)

        try:
            split(frame)
        except ProtocolError:
            rightly(frame)  # it is none, and refused
        else:
            forward(frame, rightly)

    return wrapping(FrameRelay, "forward", forwarded)


def wrapped(data: bytes) -> bytes:
    return encode_json({"kind": "stream/data", "payload": {"data": data.decode()}})


def with_data(change: Change) -> Change:
    def changed(frame: bytes) -> bytes:
        stream_id, data = split(frame)
        return join(stream_id, change(data))

    return changed


def unless(when: Callable[[bytes], bool]) -> Break:
    """Some frames are lost."""

    def forward(frame: bytes, right: Forward) -> None:
        if not when(split(frame)[1]):
            right(frame)

    return forwarding(forward)


def twice(frame: bytes, right: Forward) -> None:
    right(frame)
    right(frame)


def in_halves(frame: bytes, right: Forward) -> None:
    stream_id, data = split(frame)
    cut = 60_000
    right(join(stream_id, data[:cut]))
    if data[cut:]:
        right(join(stream_id, data[cut:]))


def in_pairs() -> Break:
    held: dict[str, bytes] = {}

    def forward(frame: bytes, right: Forward) -> None:
        stream_id, data = split(frame)
        if not data.startswith((b"3:", b"4:")):
            right(frame)
        elif stream_id not in held:
            held[stream_id] = frame
        else:
            right(held[stream_id] + data)

    return forwarding(forward)


def swapped() -> Break:
    held: dict[str, bytes] = {}

    def forward(frame: bytes, right: Forward) -> None:
        stream_id, data = split(frame)
        if data.startswith(b"7:"):
            held[stream_id] = frame
            return
        right(frame)
        if stream_id in held:
            right(held.pop(stream_id))

    return forwarding(forward)


def late(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last frame before a close is forwarded after it."""
    held: list[bytes] = []

    def forward(frame: bytes, right: Forward) -> None:
        if split(frame)[1] == b"before 4":
            held.append(frame)
        else:
            right(frame)

    def then(room: Room, entry: Entry, decision: Decision) -> None:
        if isinstance(decision, Deliver) and decision.envelopes.kinds == ("stream/close",):
            for frame in held:
                show(room, frame, is_binary=True)
            held.clear()

    forwarding(forward)(monkeypatch)
    afterwards(then)(monkeypatch)


def routing(route: Any) -> Break:
    return replaced(streams, "route", route)


def unknown(stream_id: str) -> RefusalDetails:
    return RefusalDetails(Refusal.UNKNOWN_STREAM, f"there is no stream {stream_id!r}")


def to_everyone(state: Any, at: Any, writer: Any, stream_id: str) -> Any:
    return streams.FrameRoute(None)


def by_its_beginning(state: Any, at: Any, writer: Any, stream_id: str) -> Any:
    """As if any stream that begins so were meant."""
    found = [one for one in state.streams if one.startswith(stream_id) or stream_id.startswith(one)]
    return streams.FrameRoute(None) if stream_id and found else unknown(stream_id)


def to_streamers(state: Any, at: Any, writer: Any, stream_id: str) -> Any:
    right = route_of_ours(state, at, writer, stream_id)
    return (
        streams.FrameRoute((ParticipantId("owner"), ParticipantId("peer")))
        if isinstance(right, streams.FrameRoute)
        else right
    )


def split_at_the_last(frame: bytes, right: Forward) -> None:
    """As if the id of the stream went up to the last mark."""
    right(frame if frame.count(b"#") == 2 else b"#no stream" + frame)


def no_more_than_announced(state: Any, at: Any, writer: Any, stream_id: str) -> Any:
    stream = state.streams.get(stream_id)
    if stream is not None and stream.requested.get("expected_size_bytes") == 0:
        return unknown(stream_id)
    return route_of_ours(state, at, writer, stream_id)


route_of_ours = streams.route

BARE = "streams.frames_travel_bare_and_whole"
PREFIX = "streams.a_frame_is_told_by_its_prefix"
BOUNDS = "streams.frames_keep_their_boundaries_and_order"
SIZE = "streams.the_expected_size_binds_nobody"
SILENT = "streams.nothing_follows_the_close"


def text_if_text(frame: bytes) -> bytes:
    try:
        frame.decode()
    except UnicodeDecodeError:
        return binary_frame(frame)
    return text_frame(frame)


BINARY = "streams.a_binary_frame_stays_binary"

MUTANTS = (
    Mutant("stream.same-socket", BARE, framing(text=wrapped), "bare (§3.10.3)"),
    Mutant(
        "stream.same-socket",
        BARE,
        framing(binary=lambda data: data.decode(errors="replace").encode()),
        "bare (§3.10.3)",
    ),
    Mutant("stream.same-socket", BARE, framing(text=lambda data: data[:65536]), "(200"),
    Mutant("stream.same-socket", BARE, unless(lambda data: data.startswith(b"{")), "#{"),
    Mutant("stream.same-socket", BARE, routing(to_streamers), "expected that listener receives the frame"),
    Mutant("stream.same-socket", BARE, forwarding(twice), "received 16 frames of 8"),
    Mutant("stream.binary-unchanged", BINARY, framing_streams(binary=text_if_text), "as text"),
    Mutant("stream.frame-prefix", PREFIX, forwarding(split_at_the_last), "##'"),
    Mutant("stream.frame-prefix", PREFIX, unless(lambda data: not data), "expected that peer receives"),
    Mutant("stream.frame-prefix", PREFIX, framing(text=with_data(bytes.strip)), "expected that peer"),
    Mutant("stream.frame-prefix", PREFIX, framing(binary=lambda data: split(data)[1]), "expected that peer"),
    Mutant("stream.frame-prefix", PREFIX, routing(to_everyone), "a frame of no open stream"),
    Mutant("stream.frame-prefix", PREFIX, routing(by_its_beginning), "a frame of no open stream"),
    Mutant("stream.boundaries", BOUNDS, forwarding(in_halves), "joined or split"),
    Mutant("stream.boundaries", BOUNDS, in_pairs(), "joined or split"),
    Mutant("stream.boundaries", BOUNDS, swapped(), "in another order"),
    Mutant("stream.boundaries", BOUNDS, forwarding(twice), "not each once"),
    Mutant("stream.boundaries", BOUNDS, unless(lambda data: data.startswith(b"20:")), "not each once"),
    Mutant(
        "stream.size-omitted",
        SIZE,
        refusing(lambda e: e.kind == "stream/request" and "expected_size_bytes" not in e.content),
        "a stream/request was refused",
    ),
    Mutant("stream.size-omitted", SIZE, routing(no_more_than_announced), "expected that peer receives"),
    Mutant("stream.closed-is-silent", SILENT, routing(to_everyone), "must reach no one"),
    Mutant("stream.closed-is-silent", SILENT, late, "and after it the frame"),
    Mutant(
        "stream.closed-is-silent",
        SILENT,
        unless(lambda data: data == b"before 4"),
        "written before the close",
    ),
)
