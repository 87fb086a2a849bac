"""Bounds on everything, and that who breaks one costs nobody else (design 3.17)."""

import asyncio
import itertools
import json
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from .client import Client, Door, RawSocket, envelope
from .process import WAIT_S, Gateway, run_gateway

KIB = 1024
MIB = 1024 * KIB


@pytest.fixture(scope="module")
def bounded(tmp_path_factory: pytest.TempPathFactory, participants: dict[str, object]) -> Iterator[Gateway]:
    unlimited = {"envelopes_per_second": 1_000_000, "burst": 1_000_000, "bytes_burst": "64GiB"}
    config = {
        "spaces": [
            {"id": "small", "limits": {"envelope_bytes": 4096, "frame_bytes": 8192}},
            {"id": "large", "limits": {"frame_bytes": "6MiB", "outbox_bytes": "8MiB"}},
            {"id": "rated", "limits": {"envelopes_per_second": 20, "burst": 10}},
            {"id": "full", "limits": {"connections_per_space": 2}},
            {"id": "each", "limits": {"connections_per_participant": 2}},
            {"id": "streams", "limits": {"streams_per_space": 2}},
            {"id": "short", "limits": {"history_envelopes": 10}},
            {"id": "slow", "limits": {"outbox_bytes": "4MiB", "history_bytes": "1MiB", **unlimited}},
            {"id": "slow-back", "limits": {"outbox_bytes": "4MiB", **unlimited}},
            {"id": "slow-stream", "limits": {"outbox_bytes": "4MiB", **unlimited}},
        ],
        "participants": participants,
        "server": {"keepalive_s": 60},  # sockets by hand answer no pings, and may take their time
    }
    with run_gateway(tmp_path_factory.mktemp("bounded"), config) as running:
        yield running


@pytest.fixture
async def bounded_door(bounded: Gateway, tokens: dict[str, str]) -> AsyncIterator[Door]:
    async with Door(bounded, tokens, "small") as door:
        yield door


def at(door: Door, space: str) -> Door:
    door.space = space
    return door


async def test_an_envelope_may_be_as_large_as_the_limit_and_not_larger(bounded_door: Door) -> None:
    ann, cat = await at(bounded_door, "small").meet("ann", "cat")
    empty = json.dumps(envelope("ann", "chat", {"text": ""}))
    for size, code in ((4096, None), (4097, "too_large"), (8192, "too_large")):
        made = envelope("ann", "chat", {"text": "x" * (size - len(empty))})
        await ann.connection.send(json.dumps(made))
        if code is None:
            await cat.until_id(made["id"])
            await ann.until_id(made["id"])
        else:
            error = await ann.until("system/error")
            assert error["payload"]["error"] == code
            assert error["correlation_id"] == [made["id"]]
    assert await cat.since_now() == []


async def test_what_no_envelope_and_no_frame_may_be_closes_the_connection_as_too_big(
    bounded_door: Door,
) -> None:
    ann, cat = await at(bounded_door, "small").meet("ann", "cat")
    await ann.connection.send(json.dumps(envelope("ann", "chat", {"text": "x" * 9000})))
    assert (await ann.closed())[0] == 1009
    assert ann.seen[-1]["kind"] == "system/error"  # and it is told in our words too
    assert (await cat.until("system/presence"))["payload"]["event"] == "leave"
    assert [said for said in await cat.since_now() if said["kind"] == "chat"] == []


async def test_a_frame_may_be_as_large_as_its_own_limit(bounded_door: Door) -> None:
    ann, cat = await at(bounded_door, "small").meet("ann", "cat")
    await ann.say("stream/request", {"direction": "upload"})
    mark = f"#{(await ann.until('stream/open'))['payload']['stream_id']}#".encode()
    largest = mark + b"x" * (8192 - len(mark))
    await ann.connection.send(largest)
    assert await cat.frame() == largest
    await ann.connection.send(largest + b"x")
    assert (await ann.closed())[0] == 1009


async def test_a_client_that_joined_by_frame_has_the_limits_of_its_space_too(bounded_door: Door) -> None:
    door = at(bounded_door, "large")
    ann = await door.join("ann")
    bob = await door.join_by_frame({"type": "join", "space": "large", "token": door.tokens["bob"]}, who="bob")
    await bob.connection.send(json.dumps({"kind": "stream/request", "payload": {"direction": "upload"}}))
    mark = f"#{(await bob.until('stream/open'))['payload']['stream_id']}#".encode()
    await bob.connection.send(mark + b"x" * (5 * MIB))
    assert len(await ann.frame()) == len(mark) + 5 * MIB


async def test_who_sends_too_fast_is_told_when_to_go_on(bounded_door: Door) -> None:
    ann, cat = await at(bounded_door, "rated").meet("ann", "cat")
    sent = [await ann.send("chat", {"text": str(n)}) for n in range(30)]
    errors = [said async for said in answers_to(ann, sent) if said["kind"] == "system/error"]
    assert len(errors) >= 15
    for error in errors:
        assert error["payload"]["error"] == "rate_limited"
        assert 0 < error["payload"]["retry_after_s"] <= 0.06
    await cat.say("chat", {"text": "the others are not held back"})
    await asyncio.sleep(errors[-1]["payload"]["retry_after_s"] + 0.005)  # what it said
    await ann.say("chat", {"text": "again"})


async def answers_to(client: Client, sent: list[str]) -> AsyncIterator[dict[str, Any]]:
    left = set(sent)
    while left:
        said = await client.next()
        answered = {said["id"], *said.get("correlation_id", ())} & left
        if answered:
            left -= answered
            yield said


async def test_a_space_that_is_full_is_503_before_the_upgrade(bounded_door: Door) -> None:
    door = at(bounded_door, "full")
    first = await door.join("ann")
    await door.join("bob")
    answer = await door.upgrade("/ws?space=full", authorization=f"Bearer {door.tokens['cat']}")
    assert (answer.status, answer.json["error"]) == (503, "space_full")
    assert int(answer.headers["Retry-After"]) > 0
    by_frame = await door.join_by_frame({"type": "join", "space": "full", "token": door.tokens["cat"]})
    code, _ = await by_frame.closed()
    assert 4000 <= code < 4500  # come back
    await first.connection.close()
    assert (await door.join("cat")).welcome["to"] == ["cat"]


async def test_one_participant_has_only_so_many_connections(bounded_door: Door) -> None:
    door = at(bounded_door, "each")
    await door.join("ann")
    await door.join("ann")
    answer = await door.upgrade("/ws?space=each", authorization=f"Bearer {door.tokens['ann']}")
    assert (answer.status, answer.json["error"]) == (429, "too_many_connections")
    await door.join("bob")


async def test_a_space_has_only_so_many_streams(bounded_door: Door) -> None:
    ann = await at(bounded_door, "streams").join("ann")
    request = {"direction": "upload"}
    for _ in range(2):
        await ann.say("stream/request", request)
    stream = (await ann.until("stream/open"))["payload"]["stream_id"]
    assert (await ann.refused("stream/request", request))["error"] == "limit_reached"
    await ann.say("stream/close", {"stream_id": stream})
    await ann.say("stream/request", request)


async def test_what_the_history_no_longer_has_is_answered_with_resumed_false(bounded_door: Door) -> None:
    door = at(bounded_door, "short")
    ann = await door.join("ann")
    ids = [await ann.say("chat", {"text": str(n)}) for n in range(20)]
    assert (await door.join("cat", query=f"&after={ids[0]}")).welcome["payload"]["resumed"] is False
    assert (await door.join("cat", query=f"&after={ids[-1]}")).welcome["payload"]["resumed"] is True


# Slow readers.


def next_chats(raw: RawSocket, count: int) -> list[int]:
    """The numbers of the next chats."""
    numbers: list[int] = []
    while len(numbers) < count:
        first, data = raw.receive()
        if first == 0x81 and b'"kind": "chat"' in data[:300]:
            numbers.append(json.loads(data)["payload"]["n"])
    return numbers


@pytest.mark.slow
def test_one_that_never_reads_costs_the_others_nothing_and_memory_stays_flat(
    bounded: Gateway, tokens: dict[str, str]
) -> None:
    """200 MiB go out past a reader that has stopped; the four others get every envelope in order."""
    batch, text, numbers = 16, "x" * 64 * KIB, itertools.count()
    with ExitStack() as stack:
        path = "/ws?space=slow"
        ann, *others = (
            stack.enter_context(RawSocket(bounded, path, tokens[who])) for who in ("ann", "bob", "cat", "bot")
        )
        mute = stack.enter_context(RawSocket(bounded, path, tokens["reader"], receive_buffer=4096))

        def pump(batches: int) -> int:
            sent_bytes = 0
            for _ in range(batches):
                sent = list(itertools.islice(numbers, batch))
                for n in sent:
                    made = json.dumps(envelope("ann", "chat", {"n": n, "text": text})).encode()
                    ann.send_frame(0x81, made)
                    sent_bytes += len(made)
                for reader in (ann, *others):
                    assert next_chats(reader, batch) == sent
            return sent_bytes

        pump(12)  # past the outbox of the mute one; the history is full
        before = bounded.rss_bytes
        assert pump(52) * 4 > 200 * MIB
        after = bounded.rss_bytes
        assert after - before < 16 * MIB, f"{before / MIB:.0f} MiB before, {after / MIB:.0f} MiB after"
        bounded.wait_for("slow reader closed.*who=reader")
        assert mute.until_closed()[0] in (4008, 1006)  # it may have been cut off before it read that far


async def test_a_slow_reader_is_closed_with_4008_and_can_come_back_for_what_it_missed(
    bounded_door: Door,
) -> None:
    door = at(bounded_door, "slow-back")
    asyncio.get_running_loop().set_debug(False)
    ann = await door.join("ann")
    mark = await ann.say("chat", {"text": "the last that was seen"})
    slow = await asyncio.to_thread(
        RawSocket, door.gateway, "/ws?space=slow-back", door.tokens["cat"], receive_buffer=4096
    )
    sent = []
    with slow:
        for _ in range(16):
            sent += [await ann.send("chat", {"text": "x" * 64 * KIB}) for _ in range(16)]
            await ann.until_id(sent[-1])  # who reads is not held back
        code, came = await asyncio.to_thread(slow.until_closed)
    assert code == 4008
    got = [said["id"] for said in came if said["kind"] == "chat"]
    assert got == sent[: len(got)]
    assert len(got) < len(sent)
    back = await door.join("cat", query=f"&after={got[-1] if got else mark}")
    assert back.welcome["payload"]["resumed"] is True
    assert [(await back.until("chat"))["id"] for _ in sent[len(got) :]] == sent[len(got) :]


async def test_a_slow_reader_of_a_stream_loses_frames_and_is_told_and_stays(bounded_door: Door) -> None:
    door = at(bounded_door, "slow-stream")
    ann = await door.join("ann")
    slow = await asyncio.to_thread(
        RawSocket, door.gateway, "/ws?space=slow-stream", door.tokens["cat"], receive_buffer=4096
    )
    with slow:
        await ann.until("system/presence", lambda said: said["payload"]["participant"]["id"] == "cat")
        await ann.say("stream/request", {"direction": "upload"})
        stream = (await ann.until("stream/open"))["payload"]["stream_id"]
        frame = f"#{stream}#".encode() + bytes(256 * KIB)
        for _ in range(100):
            await ann.connection.send(frame)
        last = await ann.say("chat", {"text": "done"})

        def read() -> tuple[int, int, bool]:
            frames, dropped, has_last = 0, 0, False
            while not (has_last and dropped):
                first, data = slow.receive()
                said = json.loads(data) if first == 0x81 else {}
                frames += first == 0x82
                has_last |= said.get("id") == last
                if said.get("kind") == "system/error":
                    assert said["payload"]["error"] == "frames_dropped"
                    assert said["payload"]["stream_id"] == stream
                    dropped += said["payload"]["dropped"]
            return frames, dropped, has_last

        frames, dropped, _ = await asyncio.to_thread(read)
        assert frames + dropped == 100
        slow.send_text(json.dumps(envelope("cat", "chat", {"text": "still here"})))
        await ann.until("chat", lambda said: said["from"] == "cat")


async def test_a_replay_larger_than_the_outbox_is_not_taken_for_slow_reading(bounded_door: Door) -> None:
    door = at(bounded_door, "slow-back")
    asyncio.get_running_loop().set_debug(False)
    ann = await door.join("ann")
    mark = await ann.say("chat", {"text": "mark"})
    sent = [await ann.say("chat", {"text": "x" * 64 * KIB}) for _ in range(160)]  # 10 MiB
    back = await door.join("cat", query=f"&after={mark}")
    assert [(await back.until("chat"))["id"] for _ in sent] == sent


# Keep-alive.


@pytest.fixture
async def pinging(
    tmp_path: Path, participants: dict[str, object], tokens: dict[str, str]
) -> AsyncIterator[Door]:
    """The door of a gateway that pings who was silent for a second."""
    config = {"space": {"id": "demo"}, "participants": participants, "server": {"keepalive_s": 1}}
    with run_gateway(tmp_path, config) as gateway:
        async with Door(gateway, tokens, "demo") as door:
            yield door


async def test_who_is_silent_is_pinged_and_stays_as_long_as_it_answers(pinging: Door) -> None:
    ann = await pinging.join("ann")

    def listen() -> tuple[int, int]:
        with RawSocket(pinging.gateway, "/ws?space=demo", pinging.tokens["cat"]) as cat:
            pings, began = 0, time.monotonic()
            while pings < 3 and time.monotonic() - began < WAIT_S:
                first, data = cat.receive()
                if first == 0x89:
                    pings += 1
                    cat.send_frame(0x8A, data)
            made = envelope("cat", "chat", {"text": "still here"})
            cat.send_text(json.dumps(made))
            while True:
                first, data = cat.receive()
                if first == 0x81 and made["id"].encode() in data:
                    return pings, first

    assert await asyncio.to_thread(listen) == (3, 0x81)
    await ann.until("chat")


async def test_who_does_not_answer_is_cut_off_and_leaves(pinging: Door) -> None:
    ann = await pinging.join("ann")
    dead = await asyncio.to_thread(RawSocket, pinging.gateway, "/ws?space=demo", pinging.tokens["cat"])
    with dead:
        left = await ann.until("system/presence", lambda said: said["payload"]["event"] == "leave")
        assert left["payload"]["participant"]["id"] == "cat"
        assert await asyncio.to_thread(dead.until_closed)
    await ann.say("chat", {"text": "who answers pings stays"})


# Many at once.


@pytest.mark.slow
async def test_a_hundred_connections_see_the_same_order(
    gateway: Gateway, tokens: dict[str, str], door: Door
) -> None:
    names = ["ann", "bob", "cat", "bot"]
    clients = [await door.join(names[n % 4]) for n in range(100)]
    ids = [str(uuid.uuid4()) for _ in range(20)]
    asyncio.get_running_loop().set_debug(False)

    async def heard(client: Client) -> list[str]:
        return [(await client.until("chat"))["id"] for _ in ids]

    async with asyncio.TaskGroup() as tasks:
        orders = [tasks.create_task(heard(client)) for client in clients]
        for n, one in enumerate(ids):
            await clients[n].send("chat", {"text": "x"}, id=one)
    assert len({tuple(order.result()) for order in orders}) == 1
    assert sorted(orders[0].result()) == sorted(ids)


async def test_who_vanishes_in_the_middle_of_a_message_harms_nobody(door: Door) -> None:
    ann, cat = await door.meet("ann", "cat")

    def vanish() -> None:
        with RawSocket(door.gateway, f"/ws?space={door.space}", door.tokens["bob"]) as bob:
            bob.send_frame(0x01, b'{"protocol":')
            bob.send(bob.frame(0x80, b"x" * 70_000)[:5000])

    await asyncio.to_thread(vanish)
    await ann.until("system/presence", lambda said: said["payload"]["event"] == "leave")
    assert [said["kind"] for said in await cat.since_now()] == ["system/presence"] * 2
