"""Streams (§3.10) over a real space: opened, written, read, handed over, closed and lost."""

import asyncio
import gc
import weakref
from contextlib import suppress
from typing import Any

import pytest
from tests.client.streaming import everything, joined, seen, stage, tell

from mew.client.errors import Refused, StreamBroken, Unanswered
from mew.client.streams.stream import FRAME_BYTES_MAX
from mew.gateway.config.settings import Limits
from mew.protocol.envelope import Envelope
from mew.protocol.errors import Refusal
from mew.protocol.kinds import Kind

# Opening (§3.10.1, §3.10.2).


async def test_a_stream_is_opened_with_what_was_asked_for_3_10_1() -> None:
    async with stage() as (_, ann, _, _):
        stream = await ann.open(
            description="numbers", expected_size_bytes=7, target=["bob"], encoding="text", colour="blue"
        )
        assert stream.owner == "ann"
        assert stream.writers == ("ann",)
        assert stream.direction == "upload"
        assert stream.target == ("bob",)
        assert stream.description == "numbers"
        assert stream.created is not None
        assert stream.fields["colour"] == "blue"
        assert stream.fields["expected_size_bytes"] == 7
        assert stream.fields["encoding"] == "text"
        assert not stream.closed
        assert [open.id for open in ann.active] == [stream.id]


async def test_who_may_not_open_a_stream_is_told_why() -> None:
    async with stage() as (space, _, _, _), joined(space, "mute") as mute:
        with pytest.raises(Refused) as refused:
            await mute.open()
        assert refused.value.why is Refusal.CAPABILITY_VIOLATION


async def test_a_stream_more_than_the_space_takes_is_refused() -> None:
    limits = Limits(streams_per_space=1)
    async with stage(limits) as (_, ann, _, _):
        await ann.open()
        with pytest.raises(Refused) as refused:
            await ann.open()
        assert refused.value.why is Refusal.LIMIT_REACHED


async def test_opening_is_given_up_after_a_time() -> None:
    async with stage() as (_, ann, bob, _):
        async with seen(bob.connection, Kind.PAUSE):
            await tell(ann, Kind.PAUSE, to=["bob"])
        with pytest.raises(Unanswered):
            await bob.open(within_s=0.01)
        await tell(ann, Kind.RESUME, to=["bob"])
        await tell(bob, Kind.CHAT, text="awake")
        assert ann.active == ()


async def test_a_stream_that_nobody_waits_for_any_more_is_closed_when_it_opens() -> None:
    async with stage() as (_, ann, bob, _):
        opening = asyncio.ensure_future(bob.open())

        def stop(envelope: Envelope, _: object) -> None:
            if envelope.kind == Kind.STREAM_REQUEST:
                opening.cancel()

        bob.connection.listen(stop)
        async with seen(ann.connection, Kind.STREAM_CLOSE, reason="cancelled"):
            with pytest.raises(asyncio.CancelledError):
                await opening
        assert ann.active == ()


async def test_what_a_participant_calls_stream_open_opens_nothing_3_15() -> None:
    async with stage() as (_, ann, bob, _):
        incoming = ann.incoming()
        await tell(bob, Kind.STREAM_OPEN, stream_id="mine")
        real = await bob.open()
        assert (await anext(incoming)).id == real.id
        assert [stream.id for stream in ann.active] == [real.id]


# Data (§3.10.3).


async def test_data_arrives_in_order_with_its_boundaries_3_10_3() -> None:
    sent = [b"#", b"#stream-1#x", b"", bytes(range(256)), b"\n\x00", b"{}"]
    async with stage() as (_, ann, bob, _):
        incoming = bob.incoming()
        async with await ann.open() as stream:
            for data in sent:
                await stream.write(data)
        received = await anext(incoming)
        assert await everything(received) == sent
        assert received.close_reason == "complete"
        assert bob.active == ()


async def test_text_arrives_as_its_bytes() -> None:
    async with stage() as (_, ann, bob, _):
        incoming = bob.incoming()
        async with await ann.open() as stream:
            await stream.write("grüße, 世界")
        assert await everything(await anext(incoming)) == ["grüße, 世界".encode()]


async def test_data_of_concurrent_streams_is_kept_apart_3_10_3() -> None:
    async with stage() as (_, ann, bob, eve):
        incoming = eve.incoming()
        streams = [await ann.open(n=0), await bob.open(n=1), await ann.open(n=2)]
        received = [await anext(incoming) for _ in streams]
        for n in range(100):
            await asyncio.gather(*(stream.write(b"%d of %s" % (n, stream.id.encode())) for stream in streams))
        await asyncio.gather(*(stream.close() for stream in streams))
        for stream in received:
            expected = [b"%d of %s" % (n, stream.id.encode()) for n in range(100)]
            assert await everything(stream) == expected


async def test_what_is_large_is_cut_and_no_other_write_comes_between() -> None:
    async with stage() as (_, ann, bob, _):
        incoming = bob.incoming()
        async with await ann.open() as stream:
            whole = [bytes([n]) * (2 * FRAME_BYTES_MAX + 5) for n in range(3)]
            await asyncio.gather(*map(stream.write, whole))
        frames = await everything(await anext(incoming))
        assert [len(frame) for frame in frames] == 3 * [FRAME_BYTES_MAX, FRAME_BYTES_MAX, 5]
        assert b"".join(frames) == b"".join(whole)


async def test_text_is_cut_between_characters() -> None:
    async with stage() as (_, ann, bob, _):
        incoming = bob.incoming()
        text = "x" + "€" * FRAME_BYTES_MAX
        async with await ann.open() as stream:
            await stream.write(text)
        frames = await everything(await anext(incoming))
        assert "".join(frame.decode() for frame in frames) == text
        assert max(map(len, frames)) <= FRAME_BYTES_MAX


async def test_only_its_target_gets_a_stream_3_15() -> None:
    async with stage() as (_, ann, bob, eve):
        for_bob, for_eve = bob.incoming(), eve.incoming()
        async with seen(eve.connection, Kind.STREAM_OPEN):
            stream = await ann.open(target="bob")
        async with stream:
            reading = eve.stream(stream.id).read()
            await stream.write(b"secret")
        assert await everything(await anext(for_bob)) == [b"secret"]
        assert [data async for data in reading] == []
        async with await ann.open(target=["eve", "bob"]) as stream:
            await stream.write(b"both")
        assert await everything(await anext(for_bob)) == [b"both"]
        assert await everything(await anext(for_eve)) == [b"both"]


async def test_who_comes_later_finds_what_is_open_and_reads_from_there_on() -> None:
    async with stage() as (space, ann, _, _):
        stream = await ann.open(description="long")
        await stream.write(b"before")
        async with joined(space, "cam") as cam:
            await tell(cam, Kind.CHAT, text="here")
            (found,) = cam.active
            assert (found.id, found.owner, found.description) == (stream.id, "ann", "long")
            assert found.created == stream.created
            reading, also = found.read(), cam.stream(stream.id).read()
            await stream.write(b"after")
            assert await anext(reading) == b"after"
            assert await anext(also) == b"after"
            with pytest.raises(KeyError):
                cam.stream("stream-none")


async def test_what_nobody_holds_is_not_kept() -> None:
    async with stage() as (_, ann, bob, _):
        incoming = bob.incoming()
        stream = await ann.open()
        received = await anext(incoming)
        reader = weakref.ref(aiter(received))
        await stream.write(b"x")
        del received
        gc.collect()
        assert reader() is None


# Readers that are slow.


async def test_a_slow_reader_holds_the_gateway_back_and_nobody_who_waits_for_an_answer() -> None:
    limits = Limits(outbox_bytes=64 << 20)
    async with stage(limits) as (_, ann, bob, _):
        incoming = bob.incoming()
        stream = await ann.open()
        received = aiter(await anext(incoming))
        sent = [b"%06d" % n * 10_000 for n in range(200)]
        await stream.write(sent[0])
        assert await anext(received) == sent[0]
        for data in sent[1:]:
            await stream.write(data)
        assert bob.connection.pressure.high
        assert received.waiting_bytes < sum(map(len, sent)) / 2
        await tell(bob, Kind.CHAT, text="not stuck")
        mine = await bob.open()
        await mine.close()
        await stream.close()
        assert [data async for data in received] == sent[1:]
        assert not bob.connection.pressure.high
        assert bob.connection.gaps == []


async def test_a_stream_that_nobody_reads_holds_up_nobody_and_breaks_in_the_end() -> None:
    async with stage() as (_, ann, bob, _):
        incoming = bob.incoming()
        async with await ann.open() as stream:
            ignored = await anext(incoming)
            for _ in range(40):
                await stream.write(bytes(500_000))
            assert not bob.connection.pressure.high
        await tell(bob, Kind.CHAT, text="still here")
        with pytest.raises(StreamBroken):
            await anext(aiter(ignored))
        assert bob.connection.gaps == []


# Who may write (§3.10, design §3.15).


async def test_in_a_download_those_asked_write_and_the_owner_reads_3_15() -> None:
    async with stage() as (_, ann, bob, _):
        asked = bob.incoming()
        stream = await ann.open(direction="download", to=["bob"], target="ann")
        assert stream.writers == ("bob",)
        theirs = await anext(asked)
        await theirs.write(b"here you are")
        assert await anext(aiter(stream)) == b"here you are"
        with pytest.raises(Refused) as refused:
            await stream.write(b"not mine to write")
        assert refused.value.why is Refusal.UNAUTHORIZED_STREAM_WRITE


async def test_the_owner_lets_others_write_and_no_longer_3_15() -> None:
    async with stage() as (_, ann, bob, _):
        incoming = bob.incoming()
        stream = await ann.open()
        reading, theirs = stream.read(), await anext(incoming)
        await stream.grant_write("bob")
        assert set(stream.writers) == {"ann", "bob"}
        async with seen(bob.connection, Kind.CHAT):
            await tell(ann, Kind.CHAT, text="go")
        assert theirs.writers == ("ann", "bob")
        await theirs.write(b"from bob")
        assert await anext(reading) == b"from bob"
        await stream.revoke_write("bob")
        assert stream.writers == ("ann",)
        async with seen(bob.connection, Kind.CHAT):
            await tell(ann, Kind.CHAT, text="stop")
        with pytest.raises(Refused) as refused:
            await theirs.write(b"no more")
        assert refused.value.why is Refusal.UNAUTHORIZED_STREAM_WRITE
        with pytest.raises(Refused) as refused:
            await theirs.grant_write("bob")
        assert refused.value.why is Refusal.NOT_STREAM_OWNER


async def test_a_stream_is_given_away_3_15() -> None:
    async with stage() as (_, ann, bob, _):
        incoming = bob.incoming()
        async with await ann.open() as stream:
            theirs = await anext(incoming)
            async with seen(bob.connection, Kind.STREAM_TRANSFERRED):
                await stream.transfer("bob")
            assert (stream.owner, stream.writers) == ("bob", ("bob",))
            assert (theirs.owner, theirs.writers) == ("bob", ("bob",))
            with pytest.raises(Refused) as refused:
                await stream.close()
            assert refused.value.why is Refusal.NOT_STREAM_OWNER
        assert not stream.closed
        reading = stream.read()
        async with theirs:
            await theirs.write(b"mine now")
        assert [data async for data in reading] == [b"mine now"]


async def test_who_was_kicked_writes_no_more() -> None:
    async with stage() as (_, ann, _, _):
        stream = await ann.open()
        await stream.grant_write("bob")
        await tell(ann, Kind.KICK, participant_id="bob")
        assert stream.writers == ("ann",)


async def test_a_pause_holds_frames_back_3_9_1() -> None:
    async with stage() as (_, ann, bob, _):
        incoming = ann.incoming()
        stream = await bob.open()
        reading = aiter(await anext(incoming))
        async with seen(bob.connection, Kind.PAUSE):
            await tell(ann, Kind.PAUSE, to=["bob"])
        writing = bob.connection.spawn(stream.write(b"patient"))
        with suppress(TimeoutError):
            async with asyncio.timeout(0.01):
                await asyncio.shield(writing)
        assert not writing.done()
        await tell(ann, Kind.RESUME, to=["bob"])
        assert await anext(reading) == b"patient"


async def test_a_refused_frame_is_told_with_the_next_write_or_the_close() -> None:
    limits = Limits(frame_bytes=1000)
    async with stage(limits) as (_, ann, _, _):
        stream = await ann.open()
        await stream.write(bytes(2000))
        async with seen(ann.connection, Kind.ERROR):
            pass
        with pytest.raises(Refused) as refused:
            await stream.write(b"x")
        assert refused.value.why is Refusal.TOO_LARGE
        await stream.write(b"x")
        await stream.write(bytes(2000))
        with pytest.raises(Refused):
            await stream.close()
        assert stream.closed


async def test_a_refusal_is_put_to_the_stream_that_it_names() -> None:
    async with stage() as (_, ann, _, _):
        stream = await ann.open()
        await stream.write(b"fine")
        async with seen(ann.connection, Kind.ERROR, error="unknown_stream"):
            await ann.connection.send_frame(b"#stream-none#x", text=False)
        await stream.write(b"still fine")
        await stream.close()


# The end (§3.10.4).


async def test_after_its_close_nothing_is_written_3_10_4() -> None:
    async with stage() as (_, ann, bob, _):
        incoming = bob.incoming()
        stream = await ann.open()
        await stream.close("timeout", lines=3)
        assert stream.closed
        await stream.close()
        with pytest.raises(Refused) as refused:
            await stream.write(b"too late")
        assert refused.value.why is Refusal.UNKNOWN_STREAM
        theirs = await anext(incoming)
        assert await everything(theirs) == []
        assert theirs.close_reason == "timeout"
        assert theirs.close_fields == {"lines": 3}
        assert [data async for data in theirs.read()] == []


async def test_only_its_owner_closes_a_stream_3_15() -> None:
    async with stage() as (_, ann, bob, _):
        incoming = bob.incoming()
        stream = await ann.open()
        with pytest.raises(Refused) as refused:
            await (await anext(incoming)).close()
        assert refused.value.why is Refusal.NOT_STREAM_OWNER
        assert not stream.closed


@pytest.mark.parametrize(
    ("raised", "reason"), [(ValueError("bad"), "error"), (asyncio.CancelledError(), "cancelled")]
)
async def test_an_exception_closes_the_stream_with_another_reason(raised: BaseException, reason: str) -> None:
    async with stage() as (_, ann, bob, _):
        incoming = bob.incoming()

        async def fail() -> None:
            async with await ann.open() as stream:
                await stream.write(b"some")
                raise raised

        with pytest.raises(type(raised)):
            await fail()
        theirs = await anext(incoming)
        assert await everything(theirs) == [b"some"]
        assert theirs.close_reason == reason


async def test_a_stream_ends_when_its_owner_leaves_3_15() -> None:
    async with stage() as (space, _, bob, _):
        incoming = bob.incoming()
        async with joined(space, "cam") as cam:
            stream = await cam.open()
            await stream.write(b"last words")
        theirs = await anext(incoming)
        assert await everything(theirs) == [b"last words"]
        assert theirs.close_reason == "owner_left"


# A connection that is lost.


async def test_a_reader_that_lost_its_connection_knows_that_data_is_missing() -> None:
    async with stage() as (space, ann, bob, _):
        incoming = bob.incoming()
        stream = await ann.open()
        theirs = await anext(incoming)
        await stream.write(b"one")
        async with seen(bob.connection, Kind.WELCOME):
            space.cut("bob")
            await stream.write(b"unseen")
        kept: list[bytes] = []
        with pytest.raises(StreamBroken):
            await everything(theirs, kept.append)
        assert kept == [b"one"]
        again = theirs.read()
        await stream.write(b"three")
        assert await anext(again) == b"three"
        assert not theirs.closed


async def test_a_reader_for_whom_the_gateway_dropped_frames_knows_that_data_is_missing() -> None:
    async with stage() as (space, ann, bob, _):
        incoming = bob.incoming()
        stream = await ann.open()
        theirs = await anext(incoming)
        await stream.write(b"one")
        await tell(ann, Kind.CHAT, text="and more")
        room = space._room
        assert room is not None
        slow = next(one for one in room.connections.values() if one.who == "bob")
        room.tell_dropped(slow, {stream.id: 3})
        kept: list[bytes] = []
        with pytest.raises(StreamBroken):
            await everything(theirs, kept.append)
        assert kept == [b"one"]
        assert not theirs.closed


async def test_a_writer_that_lost_its_connection_knows_that_data_may_be_missing() -> None:
    async with stage() as (space, ann, bob, _):
        incoming = bob.incoming()
        stream = await ann.open()
        await stream.write(b"one")
        async with seen(ann.connection, Kind.STREAM_CLOSE, reason="owner_left"):
            space.cut("ann")
            with pytest.raises(StreamBroken):
                await stream.write(b"two")
        with pytest.raises(StreamBroken):
            await stream.write(b"three")
        with pytest.raises(StreamBroken):
            await stream.close()
        assert (await anext(incoming)).close_reason == "owner_left"
        assert ann.active == ()


async def test_leaving_a_stream_after_a_loss_does_not_pass_for_success() -> None:
    async with stage() as (space, ann, _, _):

        async def lose_it() -> None:
            async with await ann.open() as stream:
                await stream.write(b"one")
                async with seen(ann.connection, Kind.WELCOME):
                    space.cut("ann")

        with pytest.raises(StreamBroken):
            await lose_it()
        closed = await ann.open()
        await closed.write(b"all of it")
        await closed.close()
        async with seen(ann.connection, Kind.WELCOME):
            space.cut("ann")
        assert not closed.broken


async def test_a_writer_goes_on_where_the_stream_is_anothers() -> None:
    async with stage() as (space, ann, bob, _):
        incoming = bob.incoming()
        stream = await ann.open(direction="download", to=["bob"])
        theirs = await anext(incoming)
        await theirs.write(b"one")
        async with seen(bob.connection, Kind.WELCOME):
            space.cut("bob")
        with pytest.raises(StreamBroken):
            await theirs.write(b"two")
        await bob.stream(stream.id).write(b"three")
        assert [await anext(aiter(stream)) for _ in range(2)] == [b"one", b"three"]


async def test_a_stream_opened_while_the_connection_was_lost_is_shown_and_broken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with stage() as (space, ann, bob, _):
        incoming, may_come_back = bob.incoming(), asyncio.Event()
        enter = space._enter

        async def enter_when_it_may(*given: Any) -> None:
            await may_come_back.wait()
            await enter(*given)

        monkeypatch.setattr(space, "_enter", enter_when_it_may)
        async with seen(bob.connection, Kind.WELCOME):
            space.cut("bob")
            short, long = await ann.open(), await ann.open()
            await short.write(b"unseen")
            await short.close()
            may_come_back.set()
        for missed in (short, long):
            theirs = await anext(incoming)
            assert theirs.id == missed.id
            with pytest.raises(StreamBroken):
                await everything(theirs)
        assert [stream.id for stream in bob.active] == [long.id]
        later = await ann.open()
        await later.write(b"whole")
        assert await anext(aiter(await anext(incoming))) == b"whole"
        assert later.id != long.id


async def test_what_happened_to_streams_beyond_what_is_replayed_is_in_the_welcome() -> None:
    limits = Limits(history_envelopes=1)
    async with stage(limits) as (space, ann, bob, _):
        incoming = bob.incoming()
        closed = await ann.open()
        theirs = await anext(incoming)
        async with seen(bob.connection, Kind.WELCOME):
            space.cut("bob")
            await closed.close()
            opened = await ann.open()
            for n in range(5):
                await tell(ann, Kind.CHAT, text=str(n))
        assert not bob.connection.gaps[0].complete
        assert theirs.closed
        found = await anext(incoming)
        assert found.id == opened.id
        with pytest.raises(StreamBroken):
            await everything(found)
