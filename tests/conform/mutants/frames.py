"""Gateways that forward the frames of streams wrongly."""

from collections.abc import Callable
from typing import Any

import pytest

from mew.gateway import relay
from mew.gateway.pages import Record
from mew.gateway.relay import Relay
from mew.gateway.room import Room
from mew.gateway.websocket import binary_frame, text_frame
from mew.protocol.envelope import ParticipantId
from mew.protocol.frames import split
from mew.protocol.json import encode_json
from mew.space import streams

from .breaks import Break, Mutant
from .deciding import refusing

__all__ = ["MUTANTS"]


Change = Callable[[bytes], bytes]


def framing(*, text: Change | None = None, binary: Change | None = None) -> Break:
    """Change what is in the frames that are forwarded."""

    def broken(monkeypatch: pytest.MonkeyPatch) -> None:
        if text is not None:
            monkeypatch.setattr(relay, "text_frame", lambda data: text_frame(text(data)))
        if binary is not None:
            monkeypatch.setattr(relay, "binary_frame", lambda data: binary_frame(binary(data)))

    return broken


def forwarding(forward: Callable[[Relay, Any, bytes, Callable[[bytes], None]], None]) -> Break:
    """Do something else than to forward each frame, once."""

    def broken(monkeypatch: pytest.MonkeyPatch) -> None:
        right = Relay._forward

        def forwarded(self: Relay, guest: Any, frame: bytes, *, text: bool) -> None:
            forward(self, guest, frame, lambda data: right(self, guest, data, text=text))

        monkeypatch.setattr(Relay, "_forward", forwarded)

    return broken


def wrapped(data: bytes) -> bytes:
    return encode_json({"kind": "stream/data", "payload": {"data": data.decode()}})


def with_data(change: Change) -> Change:
    def changed(frame: bytes) -> bytes:
        stream_id, data = split(frame)
        return b"#%b#%b" % (stream_id.encode(), change(data))

    return changed


def unless(when: Callable[[bytes], bool]) -> Break:
    """Some frames are lost."""

    def forward(self: Relay, guest: Any, frame: bytes, right: Callable[[bytes], None]) -> None:
        if not when(split(frame)[1]):
            right(frame)

    return forwarding(forward)


def twice(self: Relay, guest: Any, frame: bytes, right: Callable[[bytes], None]) -> None:
    right(frame)
    right(frame)


def in_halves(self: Relay, guest: Any, frame: bytes, right: Callable[[bytes], None]) -> None:
    stream_id, data = split(frame)
    cut = 60_000
    right(b"#%b#%b" % (stream_id.encode(), data[:cut]))
    if data[cut:]:
        right(b"#%b#%b" % (stream_id.encode(), data[cut:]))


def in_pairs() -> Break:
    held: dict[str, bytes] = {}

    def forward(self: Relay, guest: Any, frame: bytes, right: Callable[[bytes], None]) -> None:
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

    def forward(self: Relay, guest: Any, frame: bytes, right: Callable[[bytes], None]) -> None:
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
    right = Room._show

    def forward(self: Relay, guest: Any, frame: bytes, forwarded: Callable[[bytes], None]) -> None:
        if split(frame)[1] == b"before 4":
            held.append(frame)
        else:
            forwarded(frame)

    def show(self: Room, record: Record) -> None:
        right(self, record)
        if record.kind == "stream/close":
            for frame in held:
                self._outboxes.to_all(binary_frame(frame))
            held.clear()

    forwarding(forward)(monkeypatch)
    monkeypatch.setattr(Room, "_show", show)


def routing(route: Any) -> Break:
    return lambda monkeypatch: monkeypatch.setattr(streams, "route", route)


def to_everyone(state: Any, at: Any, writer: Any, stream_id: str) -> Any:
    return streams.Route(None)


def by_its_beginning(state: Any, at: Any, writer: Any, stream_id: str) -> Any:
    """As if any stream that begins so were meant."""
    found = [one for one in state.streams if one.startswith(stream_id) or stream_id.startswith(one)]
    return streams.Route(None) if stream_id and found else streams._unknown(stream_id)


def to_streamers(state: Any, at: Any, writer: Any, stream_id: str) -> Any:
    right = route_of_ours(state, at, writer, stream_id)
    return (
        streams.Route((ParticipantId("owner"), ParticipantId("peer")))
        if isinstance(right, streams.Route)
        else right
    )


def split_at_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay, "stream_of", lambda frame: frame[1 : frame.rindex(b"#")].decode("latin-1"))


def no_more_than_announced(state: Any, at: Any, writer: Any, stream_id: str) -> Any:
    stream = state.streams.get(stream_id)
    if stream is not None and stream.requested.get("expected_size_bytes") == 0:
        return streams._unknown(stream_id)
    return route_of_ours(state, at, writer, stream_id)


route_of_ours = streams.route

BARE = "frames.frames_travel_bare_and_whole"
PREFIX = "frames.a_frame_is_told_by_its_prefix"
BOUNDS = "frames.frames_keep_their_boundaries_and_order"
SIZE = "frames.the_expected_size_binds_nobody"
SILENT = "frames.nothing_follows_the_close"

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
    Mutant("stream.frame-prefix", PREFIX, split_at_the_last, "##'"),
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
