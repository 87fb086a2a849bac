"""A stream of binary frames (§3.10): how many megabytes pass, and what that costs."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from mew.protocol.envelope import PROTOCOL
from mew.protocol.errors import ProtocolError
from mew.protocol.frames import join
from mew.protocol.json import decode_json, encode_json

from .frames import binary_frame, text_frame
from .lines import NOTHING_DUE, Counter, Listener, Phase
from .measuring import Effort, Measured, Meter, Outcome, envelopes_for
from .opening import close_all, enter, enter_all
from .place import Place, Seat
from .problems import LoadFailed
from .seating import fresh_run, some

__all__ = ["Streams", "run"]


class Streams(Struct, frozen=True, tag="streams", kw_only=True):
    """The readers are others than the writer: nobody hears their own frames. Nobody else is shown them."""

    place: Place
    writer: Seat
    readers: tuple[Seat, ...]
    frame_bytes: int = 65_536
    window: int = 16


class _Reader(Counter):
    """Counts, and tells the writer that it has read."""

    writer: "_Writer"

    def buffer_updated(self, count: int) -> None:
        super().buffer_updated(count)
        self.writer.refill()


class _Writer(Listener):
    """Has so many frames in flight as the slowest reader has not got."""

    def __init__(self, phase: Phase, window: int) -> None:
        super().__init__(phase)
        self.window = window
        self.readers: Sequence[_Reader] = ()
        self.frame = b""
        self.frame_bytes = 1
        self.opened: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._asked = ""
        self._sent = self._quota = 0

    def request(self, asked: Streams, name: str) -> None:
        self._asked = f"{name}-s"
        payload = {
            "direction": "upload",
            "description": "mew bench",
            "target": sorted({seat.who for seat in asked.readers}),
        }
        fields = {"protocol": PROTOCOL, "id": self._asked, "from": asked.writer.who, "kind": "stream/request"}
        self.say(text_frame(encode_json({**fields, "payload": payload})))

    def finish(self, asked: Streams, name: str, stream: str) -> None:
        fields = {"protocol": PROTOCOL, "id": f"{name}-c", "from": asked.writer.who, "kind": "stream/close"}
        self.say(text_frame(encode_json({**fields, "payload": {"stream_id": stream}})))

    def heard(self, payload: bytes) -> None:
        super().heard(payload)
        if not self.opened.done() and b'"stream/open"' in payload:
            try:
                envelope: dict[str, Any] = decode_json(payload)
                if self._asked in envelope.get("correlation_id", ()):
                    self.opened.set_result(str(envelope["payload"]["stream_id"]))
            except (ProtocolError, KeyError, TypeError):
                self.phase.fail(LoadFailed("the gateway answered a stream/request with no stream/open"))

    def start(self, frames: int) -> None:
        self._sent, self._quota = 0, frames
        self.refill()

    def refill(self) -> None:
        got = min(reader.received for reader in self.readers) // self.frame_bytes
        due = min(got + self.window, self._quota) - self._sent
        if due > 0:
            self._sent += due
            self.say(self.frame if due == 1 else b"".join([self.frame] * due))


async def run(asked: Streams, effort: Effort, tell: Callable[[], None] = lambda: None) -> Outcome:
    """As many frames as can be, in rounds.

    Raises:
        LoadFailed: a reader did not get exactly the bytes that were due, or the gateway says no.
    """
    phase, name = Phase(), fresh_run()
    writer = _Writer(phase, asked.window)
    readers = [_Reader(phase) for _ in asked.readers]
    for reader in readers:
        reader.writer = writer
    writer.readers = readers
    stream = ""
    try:
        await enter(asked.place, asked.writer, writer)
        await enter_all(asked.place, zip(asked.readers, readers, strict=True))
        stream = await _opened(asked, writer, name, effort)
        data = b"x" * (asked.frame_bytes - len(stream) - 2)
        writer.frame = binary_frame(join(stream, data))
        await _flow(phase, writer, 1, effort)
        writer.frame_bytes = readers[0].received

        async def trial(frames: int) -> None:
            await _flow(phase, writer, frames, effort)

        frames = await envelopes_for(trial, effort, at_least=asked.window)
        rounds = []
        for _ in range(effort.rounds):
            rounds.append(await _round(phase, writer, frames, effort))
            tell()
    finally:
        phase.complete()
        if stream:
            writer.finish(asked, name, stream)
        await close_all([writer, *readers])
    about = f"frames of {asked.frame_bytes // 1024} KiB to {some(len(readers), 'reader')}, {asked.window} in flight"
    return Outcome(workload="streams", of="frames", about=about, rounds=tuple(rounds))


async def _opened(asked: Streams, writer: _Writer, name: str, effort: Effort) -> str:
    await asyncio.sleep(0.1)  # the presence of the readers
    writer.phase.start(NOTHING_DUE)
    writer.request(asked, name)
    either: list[asyncio.Future[Any]] = [writer.opened, writer.phase.over]
    await asyncio.wait(either, timeout=effort.patience_s, return_when=asyncio.FIRST_COMPLETED)
    if writer.phase.over.done():
        writer.phase.over.result()
    if not writer.opened.done():
        raise LoadFailed("the gateway did not answer a stream/request")
    await asyncio.sleep(0.1)  # the readers are shown that it is open
    return writer.opened.result()


async def _flow(phase: Phase, writer: _Writer, frames: int, effort: Effort) -> None:
    """So many frames, until every reader has them.

    Raises:
        LoadFailed: one did not get them, or other bytes.
    """
    writer.stay()
    for reader in writer.readers:
        reader.received = 0
        reader.stay()
    is_first = writer.frame_bytes == 1
    due = frames * (len(writer.frame) - 4 if is_first else writer.frame_bytes)  # a server does not mask
    phase.start(due * len(writer.readers))
    writer.start(frames)
    before = -1
    while not phase.over.done():
        await asyncio.wait([phase.over], timeout=effort.patience_s)
        came = sum(reader.received for reader in writer.readers)
        if came == before and not phase.over.done():
            phase.fail(LoadFailed(f"{phase.left:,} bytes of {frames:,} frames did not come"))
        before = came
    phase.over.result()
    odd = [reader.received for reader in writer.readers if reader.received != due]
    if odd:
        raise LoadFailed(f"{len(odd)} readers got other bytes than the {due:,} due, e.g. {odd[0]:,}")


async def _round(phase: Phase, writer: _Writer, frames: int, effort: Effort) -> Measured:
    meter = Meter(effort.server_pid)
    meter.start()
    try:
        await _flow(phase, writer, frames, effort)
        deliveries = frames * len(writer.readers)
        return meter.stop(frames, deliveries, transferred=sum(reader.received for reader in writer.readers))
    finally:
        meter.give_up()
