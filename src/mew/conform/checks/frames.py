"""The frames of streams (§3.10.3): bare, whole, in order, and none after the close (§3.10.4)."""

from typing import Final

from mew.conform.checking import check
from mew.conform.matching import is_id
from mew.conform.refusing import unheard
from mew.conform.sayings import fresh
from mew.conform.stage import Stage
from mew.conform.streaming import Stream, in_bytes, opened
from mew.conform.verdicts import Violation, demand
from mew.conform.wire import Actor

_LARGE_BYTES: Final = 200_000


@check("stream.same-socket")
async def frames_travel_bare_and_whole(stage: Stage) -> None:
    """Frames, text and binary, small and large, reach the others beside the envelopes, with every byte."""
    owner, peer, listener = await stage.enter_all("owner", "peer", "listener")
    looks_like_one = '{"protocol": "mew/v0.4", "id": "x", "from": "owner", "kind": "chat", "payload": {}}'
    for writer, others in ((owner, (peer, listener)), (peer, (owner, listener))):
        stream = await opened(stage, writer)
        frames: list[str | bytes] = [
            "plain",
            "zu spät \u2028 \x00 🐱",
            looks_like_one,
            bytes(range(256)),
            b"\xff\xfe\x00#",
            looks_like_one.encode(),
            "x" * _LARGE_BYTES,
            bytes(range(256)) * (_LARGE_BYTES // 256),
        ]
        for data in frames:
            await stream.carries(data, *others)
        await stage.settle(writer, *others)
        for hearer in others:
            fakes = hearer.heard(is_id("x"))
            demand(not fakes, f"{hearer.name} received a frame as an envelope: {fakes[:1]}")
            times = len(stream.received_by(hearer))
            demand(times == len(frames), f"{hearer.name} received {times} frames of {len(frames)}")


@check("stream.binary-unchanged")
async def a_binary_frame_stays_binary(stage: Stage) -> None:
    """A binary frame is received as a binary frame of the same bytes, text or not."""
    owner, peer = await stage.enter_all("owner", "peer")
    stream = await opened(stage, owner)
    for data in (bytes(range(256)), b"\xff\xfe", b"\xef\xbb\xbfmark", b"plain", b"\x00"):
        await stream.carries(data, peer)
        came_as = type(peer.frames[-1])
        demand(came_as is bytes, f"the binary frame {stream.frame(data)[:80]!r} came to {peer.name} as text")


@check("stream.frame-prefix")
async def a_frame_is_told_by_its_prefix(stage: Stage) -> None:
    """What follows `#id#` is data whatever it is, `#` or nothing; what begins otherwise belongs to no stream."""
    owner, peer, listener = await stage.enter_all("owner", "peer", "listener")
    stream = await opened(stage, owner)
    texts = ("", "#", "##", "a#b", "#a#b#", f"#{stream.id}#", " ", "\n", "\t x ", "{}", "é")
    for data in texts:
        await stream.carries(data, peer, listener)
        await stream.carries(data.encode(), peer, listener)
    mark = fresh()
    other_case = {stream.id.upper(), stream.id.lower(), stream.id.swapcase()} - {stream.id}
    near = (f"{stream.id}x", stream.id[:-1], f" {stream.id}", "", fresh(), "*", *sorted(other_case))
    for prefix in (f"#{name}#" for name in near):
        for frame in (f"{prefix}{mark}", f"{prefix}{mark}".encode()):
            if isinstance(frame, str):
                await owner.send_text(frame)
            else:
                await owner.send_binary(frame)
            await unheard(stage, owner, mark, f"a frame of no open stream, {prefix}…,", peer, listener)


@check("stream.boundaries")
async def frames_keep_their_boundaries_and_order(stage: Stage) -> None:
    """Of several streams at once each frame is received once, neither joined nor split, in the order of its stream."""
    owner, peer, listener = await stage.enter_all("owner", "peer", "listener")
    streams = [await opened(stage, writer) for writer in (owner, owner, peer)]
    written: dict[str, list[bytes]] = {stream.id: [] for stream in streams}
    for number in range(24):
        for place, stream in enumerate(streams):
            size = (0, 1, 125, 126, 1000, 70_000)[(number + place) % 6]
            data = b"%d:%d:" % (number, place) + b"." * size if size else b""
            await stream.write(data if number % 2 else data.decode())
            written[stream.id].append(data)
    for stream in streams:
        await stream.write(b"last")
        written[stream.id].append(b"last")
        for hearer in (owner, peer, listener):
            if hearer is not stream.actor:
                await _the_same(stage, stream, hearer, written[stream.id])


async def _the_same(stage: Stage, stream: Stream, hearer: Actor, written: list[bytes]) -> None:
    await stream.reaches(written[-1], hearer)
    await stage.settle(stream.actor, hearer)
    received = stream.received_by(hearer)
    if received == written:
        return
    if sorted(received) == sorted(written):
        wrong = "in another order"
    elif b"".join(received) == b"".join(written):
        wrong = "joined or split"
    else:
        wrong = "not each once and as it was"
    sizes = f"{[len(data) for data in written]} bytes were sent, {[len(data) for data in received]} came"
    raise Violation(f"{hearer.name} received the frames of stream {stream.id} {wrong}: {sizes}")


@check("stream.size-omitted")
async def the_expected_size_binds_nobody(stage: Stage) -> None:
    """A stream is opened without `expected_size_bytes`, and with it carries more, fewer or as many bytes."""
    owner, peer, listener = await stage.enter_all("owner", "peer", "listener")
    for expected in (
        {},
        {"expected_size_bytes": 0},
        {"expected_size_bytes": 10},
        {"expected_size_bytes": 10**12},
    ):
        stream = await opened(stage, owner, **expected)
        for data in (b"", b"0123456789", b"and more than was announced", "x" * 5000):
            await stream.carries(data, peer, listener)
        await stream.close()


@check("stream.closed-is-silent")
async def nothing_follows_the_close(stage: Stage) -> None:
    """What was written before a close arrives before it; what is written after it, at once or later, never does."""
    owner, peer, listener = await stage.enter_all("owner", "peer", "listener")
    for writer, others in ((owner, (peer, listener)), (peer, (owner, listener))):
        stream = await opened(stage, writer)
        of_another = {hearer: len(stream.received_by(hearer)) for hearer in others}  # that had this id before
        before = [b"before %d" % number for number in range(5)]
        for data in before:
            await stream.write(data)
        closing = await stream.close()
        mark = fresh()
        for late in (mark, mark.encode(), "", b""):
            await stream.write(late)
        await unheard(stage, writer, mark, f"a frame written after stream {stream.id} was closed", *others)
        for hearer in others:
            _silent_after(hearer, stream, closing["id"])
            received = stream.received_by(hearer)[of_another[hearer] :]
            demand(
                received == before,
                f"{hearer.name} received {received} of a stream on which {before} was written before the close",
            )


def _silent_after(hearer: Actor, stream: Stream, closing_id: str) -> None:
    closed, start = False, in_bytes(stream.frame(b""))
    for one in hearer.in_order:
        if isinstance(one, dict):
            closed |= one.get("id") == closing_id
        else:
            demand(
                not closed or not in_bytes(one).startswith(start),
                f"{hearer.name} received the stream/close of {stream.id}, and after it the frame {one[:80]!r}",
            )
