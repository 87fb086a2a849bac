"""Streams: opened by the gateway, written by those who may, read by the rest (§3.10, design 3.15)."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from .client import Client, Door, RawSocket, envelope
from .process import Gateway, run_gateway


async def opened(owner: Client, /, **request: Any) -> dict[str, Any]:
    """The payload of the gateway's `stream/open`."""
    to = request.pop("to", ["gateway"])
    sent = await owner.say("stream/request", {"direction": "upload", **request}, to=to)
    answer = await owner.until("stream/open")
    assert answer["from"] == "system:gateway"
    assert answer["to"] == [owner.who]
    assert answer["correlation_id"] == [sent]
    return {**answer["payload"], "open_id": answer["id"]}


async def test_a_request_is_answered_with_a_stream_of_ones_own_shown_to_all(door: Door) -> None:  # §3.10.1
    ann, cat = await door.meet("ann", "cat")
    stream = await opened(ann, description="data", expected_size_bytes=10, mime="text/plain")
    assert stream["owner"] == "ann"
    assert stream["authorized_writers"] == ["ann"]
    assert (stream["description"], stream["mime"], stream["direction"]) == ("data", "text/plain", "upload")
    seen = await cat.until("stream/open")
    assert seen["payload"]["stream_id"] == stream["stream_id"]
    other = await opened(ann)
    assert other["stream_id"] != stream["stream_id"]


async def test_the_requester_does_not_choose_what_is_the_gateways(door: Door) -> None:
    bob = await door.join("bob")
    stream = await opened(
        bob, stream_id="mine", owner="ann", authorized_writers=["ann"], created="2001-01-01T00:00:00Z"
    )
    assert stream["stream_id"] != "mine"
    assert stream["owner"] == "bob"
    assert stream["authorized_writers"] == ["bob"]
    assert not stream["created"].startswith("2001")


async def test_the_gateway_answers_whatever_to_says(
    door: Door,
) -> None:  # §3.10.1 "regardless of the `to` field"
    ann = await door.join("ann")
    await opened(ann, to=["cat"])


@pytest.mark.parametrize("data", ["", "text", "ünï ✓", "#x#y", "{}", "\n"])
async def test_text_frames_reach_all_but_the_writer_unchanged(door: Door, data: str) -> None:  # §3.10.3
    ann, bob, cat = await door.meet("ann", "bob", "cat")
    frame = f"#{(await opened(ann))['stream_id']}#{data}"
    await ann.connection.send(frame)
    for client in (bob, cat):
        assert await client.frame() == frame
    assert not [said for said in await ann.since_now() if not isinstance(said, dict)]


@pytest.mark.parametrize(
    "data", [b"", b"\x00\xff\xfe#\x80", bytes(range(256)) * 300], ids=["none", "odd", "large"]
)
async def test_binary_frames_stay_binary_and_unchanged(door: Door, data: bytes) -> None:
    ann, cat = await door.meet("ann", "cat")
    frame = f"#{(await opened(ann))['stream_id']}#".encode() + data
    await ann.connection.send(frame)
    assert await cat.frame() == frame


async def test_frames_of_several_streams_keep_their_borders_and_their_order(door: Door) -> None:
    ann, bob, cat = await door.meet("ann", "bob", "cat")
    first, second = (await opened(ann))["stream_id"], (await opened(bob))["stream_id"]
    for n in range(50):
        await ann.connection.send(f"#{first}#{n}")
        await bob.connection.send(f"#{second}#{n}".encode())
    frames = [await cat.frame() for _ in range(100)]
    assert [one for one in frames if isinstance(one, str)] == [f"#{first}#{n}" for n in range(50)]
    assert [one for one in frames if isinstance(one, bytes)] == [f"#{second}#{n}".encode() for n in range(50)]


async def test_a_frame_stands_where_it_was_sent_among_the_writers_envelopes(door: Door) -> None:
    ann, cat = await door.meet("ann", "cat")
    stream = (await opened(ann))["stream_id"]
    await cat.until("stream/open")
    await ann.connection.send(f"#{stream}#one")
    closed = await ann.send("stream/close", {"stream_id": stream, "reason": "complete"})
    assert await cat.next() == f"#{stream}#one"
    assert (await cat.next())["id"] == closed


async def test_a_frame_before_a_close_is_delivered_whatever_else_goes_on_in_the_same_moment(
    door: Door,
) -> None:
    """A change on its way must not make a frame wait until after the close that was sent behind it."""
    ann, cat = await door.meet("ann", "cat")
    stream = (await opened(ann))["stream_id"]
    await cat.until("stream/open")
    change = json.dumps(envelope("ann", "participant/pause", {"timeout_seconds": 0}, to=["bob"]))
    close = json.dumps(envelope("ann", "stream/close", {"stream_id": stream}))
    frame = f"#{stream}#the last of the data"

    def at_once() -> str | None:
        with RawSocket(door.gateway, f"/ws?space={door.space}", door.tokens["ann"]) as raw:
            raw.send(b"".join(raw.frame(0x81, said.encode()) for said in (change, frame, close)))
            while True:
                said = json.loads(raw.receive()[1])
                if said["kind"] in ("stream/close", "system/error"):
                    return str(said["kind"])

    assert await asyncio.to_thread(at_once) == "stream/close"
    assert (await cat.next())["kind"] == "participant/pause"
    assert await cat.next() == frame
    assert (await cat.next())["kind"] == "stream/close"


async def test_other_connections_of_the_writer_do_not_get_its_frames(door: Door) -> None:
    ann, cat = await door.meet("ann", "cat")
    elsewhere = await door.join("ann")
    stream = (await opened(ann))["stream_id"]
    await ann.connection.send(f"#{stream}#x")
    await cat.frame()
    assert not [said for said in await elsewhere.since_now() if not isinstance(said, dict)]


@pytest.mark.parametrize("target", ["bob", ["bob"]])
async def test_a_stream_with_a_target_reaches_it_alone(door: Door, target: object) -> None:
    ann, bob, cat = await door.meet("ann", "bob", "cat")
    stream = (await opened(ann, target=target))["stream_id"]
    await ann.connection.send(f"#{stream}#for bob")
    assert await bob.frame() == f"#{stream}#for bob"
    assert not [said for said in await cat.since_now() if not isinstance(said, dict)]


async def test_those_named_in_a_download_write_it(door: Door) -> None:
    ann, bob, cat = await door.meet("ann", "bob", "cat")
    stream = await opened(ann, direction="download", to=["bob"])
    assert stream["authorized_writers"] == ["bob"]
    frame = f"#{stream['stream_id']}#from bob"
    await bob.connection.send(frame)
    assert await ann.frame() == frame
    assert await cat.frame() == frame
    await ann.connection.send(frame)
    assert (await ann.error())["error"] == "unauthorized_stream_write"


async def test_only_its_writers_write_to_a_stream(door: Door) -> None:
    ann, bob = await door.meet("ann", "bob")
    stream = (await opened(ann))["stream_id"]
    await bob.connection.send(f"#{stream}#x")
    assert (await bob.error())["error"] == "unauthorized_stream_write"
    assert not [said for said in await ann.since_now() if not isinstance(said, dict)]


async def test_the_owner_lets_another_write_and_stops_it_again(door: Door) -> None:
    ann, bob, cat = await door.meet("ann", "bob", "cat")
    stream = (await opened(ann))["stream_id"]
    asked = await ann.say("stream/grant-write", {"stream_id": stream, "participant_id": "bob"})
    granted = await bob.until("stream/write-granted")
    assert granted["correlation_id"] == [asked]
    assert granted["payload"]["authorized_writers"] == ["ann", "bob"]
    await bob.connection.send(f"#{stream}#bob")
    assert await ann.frame() == f"#{stream}#bob"
    await ann.say("stream/revoke-write", {"stream_id": stream, "participant_id": "bob"})
    revoked = await bob.until("stream/write-revoked")
    assert revoked["payload"]["authorized_writers"] == ["ann"]
    await bob.connection.send(f"#{stream}#bob")
    assert (await bob.error())["error"] == "unauthorized_stream_write"
    await cat.frame()


async def test_the_owner_hands_a_stream_over(door: Door) -> None:
    ann, bob, cat = await door.meet("ann", "bob", "cat")
    stream = (await opened(ann))["stream_id"]
    await ann.say("stream/transfer-ownership", {"stream_id": stream, "new_owner": "bob"})
    handed = await cat.until("stream/ownership-transferred")
    assert handed["payload"]["new_owner"] == "bob"
    assert handed["payload"]["previous_owner"] == "ann"
    assert (await ann.refused("stream/close", {"stream_id": stream}))["error"] == "not_stream_owner"
    await ann.connection.send(f"#{stream}#x")
    assert (await ann.error())["error"] == "unauthorized_stream_write"
    await bob.until("stream/ownership-transferred")
    await bob.connection.send(f"#{stream}#from the new owner")
    assert await cat.frame() == f"#{stream}#from the new owner"


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        ("stream/close", {}),
        ("stream/grant-write", {"participant_id": "bob"}),
        ("stream/revoke-write", {"participant_id": "ann"}),
        ("stream/transfer-ownership", {"new_owner": "bob"}),
    ],
)
async def test_only_the_owner_manages_a_stream(door: Door, kind: str, payload: dict[str, str]) -> None:
    ann, bob = await door.meet("ann", "bob")
    stream = (await opened(ann))["stream_id"]
    assert (await bob.refused(kind, {"stream_id": stream, **payload}))["error"] == "not_stream_owner"
    assert (await ann.refused(kind, {"stream_id": "none", **payload}))["error"] == "unknown_stream"
    assert (await ann.refused(kind, {"stream_id": 7, **payload}))["error"] == "invalid_payload"


# §3.10.4.


async def test_a_stream_is_closed_by_its_id_and_then_takes_no_frame(door: Door) -> None:
    ann, cat = await door.meet("ann", "cat")
    stream = (await opened(ann))["stream_id"]
    closed = await ann.say("stream/close", {"stream_id": stream, "reason": "complete"})
    await cat.until_id(closed)
    for frame in (f"#{stream}#late", f"#{stream}#late".encode()):
        await ann.connection.send(frame)
        assert (await ann.error())["error"] == "unknown_stream"
    assert await cat.since_now() == []


async def test_a_stream_is_closed_by_the_correlation_with_its_open(door: Door) -> None:
    ann = await door.join("ann")
    stream = await opened(ann)
    await ann.say("stream/close", {"reason": "complete"}, correlation_id=[stream["open_id"]])
    await ann.connection.send(f"#{stream['stream_id']}#late")
    assert (await ann.error())["error"] == "unknown_stream"


async def test_the_gateway_closes_the_streams_of_an_owner_who_left(door: Door) -> None:
    ann, bob = await door.meet("ann", "bob")
    stream = await opened(bob)
    await bob.connection.close()
    closed = await ann.until("stream/close")
    assert closed["from"] == "system:gateway"
    assert closed["payload"]["stream_id"] == stream["stream_id"]
    assert closed["correlation_id"] == [stream["open_id"]]


async def test_a_latecomer_is_told_which_streams_are_open(door: Door) -> None:
    ann = await door.join("ann")
    stream = await opened(ann, description="long", extra={"any": 1})
    stream.pop("open_id")
    cat = await door.join("cat")
    assert cat.welcome["payload"]["active_streams"] == [stream]
    await ann.connection.send(f"#{stream['stream_id']}#x")
    assert await cat.frame() == f"#{stream['stream_id']}#x"


async def test_an_open_that_a_participant_sends_opens_nothing(door: Door) -> None:
    ann = await door.join("ann")
    await ann.say("stream/open", {"stream_id": "mine"}, to=["cat"])
    await ann.connection.send("#mine#x")
    assert (await ann.error())["error"] == "unknown_stream"


@pytest.mark.parametrize(
    "frame", ["#", "##", "##x", "#noend", "#" + "x" * 200 + "#", "#strëam#x", b"#", b"#\xff#"]
)
async def test_a_frame_without_a_proper_mark_is_refused(door: Door, frame: str | bytes) -> None:
    ann, cat = await door.meet("ann", "cat")
    await ann.connection.send(frame)
    assert (await ann.error())["error"] in ("malformed", "unknown_stream")
    assert await cat.since_now() == []


async def test_a_stream_needs_the_capability(door: Door) -> None:
    cat = await door.join("cat")
    assert (await cat.refused("stream/request", {"direction": "upload"}))["error"] == "capability_violation"


@pytest.mark.parametrize(
    "payload", [{"direction": "both"}, {"direction": 1}, {"direction": "upload", "target": []}]
)
async def test_a_request_that_makes_no_sense_is_refused(door: Door, payload: dict[str, object]) -> None:
    ann = await door.join("ann")
    assert (await ann.refused("stream/request", payload))["error"] == "invalid_payload"


async def test_a_request_over_http_is_answered_with_the_open(door: Door) -> None:  # design 3.16
    answer = await door.post("ann", {"kind": "stream/request", "payload": {"direction": "upload"}})
    assert answer.json["reply"]["kind"] == "stream/open"


# In a space with `delivery: addressed`.


@pytest.fixture(scope="module")
def addressed_gateway(
    tmp_path_factory: pytest.TempPathFactory, participants: dict[str, object]
) -> Iterator[Gateway]:
    config = {"space": {"id": "addressed"}, "delivery": "addressed", "participants": participants}
    with run_gateway(tmp_path_factory.mktemp("streams"), config) as running:
        yield running


@pytest.fixture
async def addressed(addressed_gateway: Gateway, tokens: dict[str, str]) -> AsyncIterator[Door]:
    async with Door(addressed_gateway, tokens, "addressed") as door:
        yield door


async def test_an_answer_to_a_request_reaches_the_requester_alone_where_delivery_is_addressed(
    addressed: Door,
) -> None:
    ann, cat = await addressed.meet("ann", "cat")
    await opened(ann)
    assert [said["kind"] for said in await cat.since_now()] == []
