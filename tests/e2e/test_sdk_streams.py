"""Streams (§3.10): what the SDK asks for, writes, reads and ends, against plain frames."""

import asyncio
import os
from hashlib import sha256
from pathlib import Path

import pytest

import mew

from .client import Client, Door
from .process import WAIT_S
from .test_sdk_connection import first, joined

PIECES: list[str | bytes] = ["text", "Grüße #1#", b"\x00\xff#2#", "", b"", "#", b"last"]


async def opened(client: Client, **payload: object) -> str:
    """A stream of a plain client: its id."""
    request = await client.say("stream/request", {"direction": "upload", **payload})
    said = await client.until("stream/open", lambda one: request in one["correlation_id"])
    return str(said["payload"]["stream_id"])


def frame(stream_id: str, data: str | bytes) -> str | bytes:
    return f"#{stream_id}#{data}" if isinstance(data, str) else f"#{stream_id}#".encode() + data


def as_bytes(data: str | bytes) -> bytes:
    return data.encode() if isinstance(data, str) else data


async def test_a_stream_is_asked_for_and_has_the_id_the_gateway_gave(door: Door) -> None:
    """§3.10.1: direction, size and description; §3.10.2 MUST: ids are unique, and the gateway's."""
    ann = await door.join("ann")
    async with joined(door) as bob:
        one = await bob.streams.open(description="export", expected_size_bytes=10, correlation_id=["why"])
        other = await bob.streams.open()
        request = await ann.until("stream/request")
        assert request["payload"] == {
            "direction": "upload",
            "description": "export",
            "expected_size_bytes": 10,
        }
        assert request["correlation_id"] == ["why"]
        said = await ann.until("stream/open")
        assert (said["from"], said["correlation_id"]) == ("system:gateway", [request["id"]])
        assert said["payload"]["stream_id"] == one.id != other.id


async def test_each_piece_that_is_written_is_one_frame_of_its_stream(door: Door) -> None:
    """§3.10.3 MUST: "framing preserves boundaries so receivers can demultiplex concurrent streams", writing."""
    ann = await door.join("ann")
    async with joined(door) as bob, await bob.streams.open() as one, await bob.streams.open() as other:
        for piece in PIECES:
            await one.write(piece)
            await other.write(piece)
        ids = one.id, other.id
    frames = [await ann.frame() for _ in range(2 * len(PIECES))]
    assert frames == [frame(stream_id, piece) for piece in PIECES for stream_id in ids]


async def test_frames_of_several_streams_come_apart_again(door: Door) -> None:
    """§3.10.3 MUST, reading: each stream gets its own pieces, whole and in order, whatever is in them."""
    ann = await door.join("ann")
    async with joined(door) as bob:
        incoming = bob.streams.incoming()
        ids = [await opened(ann), await opened(ann)]
        for piece in PIECES:
            for stream_id in ids:
                await ann.connection.send(frame(stream_id, piece))
        await ann.connection.send("#stream-nobody-knows#x")
        for stream_id in ids:
            await ann.say("stream/close", {"stream_id": stream_id, "reason": "complete"})
        async with asyncio.timeout(WAIT_S):
            streams = [await anext(incoming), await anext(incoming)]
            assert [stream.id for stream in streams] == ids
            for stream in streams:
                assert [data async for data in stream] == [as_bytes(piece) for piece in PIECES]
                assert (stream.closed, stream.close_reason) == (True, "complete")


async def test_what_is_too_large_for_a_frame_becomes_several_in_order(door: Door) -> None:
    """§3.10.3 MUST: nothing of another `write` comes between, and text is cut between characters."""
    ann = await door.join("ann")
    large, text = bytes(range(256)) * 4_000, "ü" * 300_000
    async with joined(door) as bob, await bob.streams.open() as stream, asyncio.TaskGroup() as tasks:
        tasks.create_task(stream.write(large))
        tasks.create_task(stream.write(text))
    prefix = f"#{stream.id}#"
    data, said = b"", ""
    while len(said) < len(text):
        came = await ann.frame()
        if isinstance(came, bytes):
            assert not said, "the bytes were written first"
            data += came.removeprefix(prefix.encode())
        else:
            said += came.removeprefix(prefix)
    assert (data, said) == (large, text)


async def test_the_end_of_a_stream_tells_how_it_went(door: Door) -> None:
    """§3.10.4 SHOULD: "`payload.reason` SHOULD distinguish between normal completion and errors"."""
    ann = await door.join("ann")
    async with joined(door) as bob:
        async with await bob.streams.open():
            pass
        with pytest.raises(OSError, match="disk"):
            async with await bob.streams.open():
                raise OSError("disk")
        await (await bob.streams.open()).close("timeout")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05), await bob.streams.open():
                await asyncio.Event().wait()
        pairs = [(await ann.until("stream/open"), await ann.until("stream/close")) for _ in range(4)]
    reasons = [closed["payload"]["reason"] for _, closed in pairs]
    assert reasons == ["complete", "error", "timeout", "cancelled"]
    assert [closed["correlation_id"] for _, closed in pairs] == [[opened["id"]] for opened, _ in pairs]


async def test_nothing_is_written_to_a_stream_that_is_closed(door: Door) -> None:
    """§3.10.4 MUST: "After closing, no additional `#streamID#...` frames MUST be sent"."""
    ann = await door.join("ann")
    async with joined(door) as bob:
        stream = await bob.streams.open()
        await stream.write("before")
        await stream.close()
        with pytest.raises(mew.Refused) as refused:
            await stream.write("after")
        assert refused.value.why == "unknown_stream"
    await ann.until("stream/close")
    await ann.until("system/presence")
    assert [said for said in ann.seen if isinstance(said, str)] == [f"#{stream.id}#before"]


async def test_a_stream_that_its_owner_closes_is_closed_for_all_who_write_to_it(door: Door) -> None:
    """§3.10.4 MUST, for another's stream; MAY: "Either side MAY send `stream/close`"."""
    ann = await door.join("ann")
    async with joined(door) as bob:
        incoming, closes = bob.streams.incoming(), bob.envelopes("stream/close")
        request = await ann.say("stream/request", {"direction": "download"}, to=["bob"])
        stream_id = (await ann.until("stream/open", lambda one: request in one["correlation_id"]))["payload"][
            "stream_id"
        ]
        async with asyncio.timeout(WAIT_S):
            stream = await anext(incoming)
        assert (stream.id, stream.owner, stream.direction) == (stream_id, "ann", "download")
        await stream.write(b"data")
        assert await ann.frame() == frame(stream_id, b"data")
        await ann.say("stream/close", {"stream_id": stream_id, "reason": "complete"})
        await first(closes)
        with pytest.raises(mew.Refused):
            await stream.write(b"more")
    await ann.until("system/presence")
    assert len([said for said in ann.seen if isinstance(said, bytes)]) == 1
    assert not [said for said in ann.seen if isinstance(said, dict) and said["kind"] == "system/error"]


async def test_a_file_is_sent_in_frames_of_a_stream_that_ends_with_its_checksum(
    door: Door, tmp_path: Path
) -> None:
    """§3.10: "high-volume or binary data transfer"; §3.10.4 SHOULD: the end says that it is all there."""
    content = bytes(range(256)) * 3_000
    (tmp_path / "data.bin").write_bytes(content)
    ann = await door.join("ann")
    async with joined(door) as bob:
        sent = await bob.upload(tmp_path / "data.bin", target="ann")
    shown = (await ann.until("stream/open"))["payload"]
    assert (shown["name"], shown["size"], shown["target"]) == ("data.bin", len(content), "ann")
    end = (await ann.until("stream/close"))["payload"]
    assert (end["reason"], end["size"], end["sha256"]) == ("complete", len(content), sent.sha256)
    prefix = f"#{shown['stream_id']}#".encode()
    frames = [said for said in ann.seen if isinstance(said, bytes)]
    assert all(one.startswith(prefix) for one in frames)
    assert b"".join(one.removeprefix(prefix) for one in frames) == content
    assert sha256(content).hexdigest() == sent.sha256


@pytest.mark.parametrize("honest", [True, False])
async def test_a_file_is_saved_if_it_is_what_was_sent_and_not_at_all_otherwise(
    door: Door, tmp_path: Path, *, honest: bool
) -> None:
    """§4.3 SHOULD: what others say is checked, here the checksum of a stream's end."""
    ann = await door.join("ann")
    async with joined(door) as bob:
        incoming = bob.streams.incoming()
        stream_id = await opened(ann, name="../../etc/passwd")
        await ann.connection.send(frame(stream_id, b"first "))
        await ann.connection.send(frame(stream_id, b"second"))
        digest = sha256(b"first second" if honest else b"something else").hexdigest()
        await ann.say("stream/close", {"stream_id": stream_id, "reason": "complete", "sha256": digest})
        async with asyncio.timeout(WAIT_S):
            stream = await anext(incoming)
            path = tmp_path / mew.safe_name(stream)
            if honest:
                assert (await bob.save(stream, path)).verified
            else:
                with pytest.raises(mew.Corrupt):
                    await bob.save(stream, path)
    assert await asyncio.to_thread(os.listdir, tmp_path) == (["passwd"] if honest else [])
