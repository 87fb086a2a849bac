"""Hostile bytes: they never crash it, never reach another, always get an answer or a close code (issue 2)."""

import asyncio
import itertools
import json
import os
import random
import socket
import struct
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import pytest

from .client import Client, Door, RawSocket, envelope, fresh_address
from .process import WAIT_S, Gateway

SEED = int(os.environ.get("MEW_TEST_SEED", "4"))
GOOD: dict[str, Any] = {
    "protocol": "mew/v0.4",
    "id": "x",
    "ts": "2025-08-26T14:00:00Z",
    "from": "bob",
    "to": ["ann"],
    "kind": "chat",
    "correlation_id": ["y"],
    "context": "a/b",
    "payload": {"text": "hello", "n": [1, {"a": None}]},
}


@pytest.fixture
def chance() -> random.Random:
    return random.Random(SEED)


async def attack(door: Door, act: Callable[[Gateway, str], None]) -> None:
    """A bystander and a healthy client are there before; after it the one has seen nothing, the other works."""
    bystander, healthy = await door.meet("cat", "ann")
    await asyncio.to_thread(act, door.gateway, f"/ws?space={door.space}")
    said = await healthy.say("chat", {"text": "unharmed"})
    await bystander.until_id(said)
    seen = [one for one in (*bystander.seen, *healthy.seen) if not is_harmless(one)]
    assert seen == []
    late = await door.join("bot")
    await late.say("chat", {"text": "and newcomers are let in"})


def is_harmless(said: Any) -> bool:
    """What a bystander may see while others misbehave: who comes and goes, and what the healthy one says."""
    if not isinstance(said, dict):
        return False
    return said["kind"] in ("system/presence", "system/welcome") or said["payload"].get("text") == "unharmed"


def answered(raw: RawSocket, sent: str | bytes, first: int = 0x81) -> dict[str, Any] | int:
    """Send one message; the error it got, or the code it was closed with. An echo fails."""
    raw.send_frame(first, sent.encode() if isinstance(sent, str) else sent)
    while True:
        try:
            opcode, data = raw.receive()
        except (EOFError, ConnectionError):
            return 1006
        if opcode == 0x88:
            return int.from_bytes(data[:2], "big")
        if opcode == 0x81:
            said: dict[str, Any] = json.loads(data)
            if said["kind"] == "system/error":
                return said
            assert said["kind"] in ("system/welcome", "system/presence"), said


def each_answered(
    tokens: Mapping[str, str], messages: Iterator[str | bytes]
) -> Callable[[Gateway, str], None]:
    def act(gateway: Gateway, path: str) -> None:
        raw = RawSocket(gateway, path, tokens["bob"])
        try:
            for message in messages:
                text = isinstance(message, str) or is_utf8(message)
                answer = answered(raw, message, 0x81 if text else 0x82)
                if isinstance(answer, int):
                    assert answer in (1002, 1007, 1009), (answer, message)
                    raw.socket.close()
                    raw = RawSocket(gateway, path, tokens["bob"])
                else:
                    assert answer["payload"]["error"], message
        finally:
            raw.socket.close()

    return act


def is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


async def test_random_bytes(door: Door, chance: random.Random) -> None:
    noise = (chance.randbytes(chance.choice([1, 2, 10, 125, 126, 1000, 70_000])) for _ in range(120))
    await attack(door, each_answered(door.tokens, noise))


async def test_random_text(door: Door, chance: random.Random) -> None:
    letters = '{}[]",:\\u0041 truefalsn0123456789.eE+-"protocol"mew/v0.4#é\x00\x1f😀'
    noise = ("".join(chance.choices(letters, k=chance.randrange(1, 300))) for _ in range(120))
    await attack(door, each_answered(door.tokens, noise))


async def test_truncated_envelopes(door: Door) -> None:
    whole = json.dumps(GOOD)
    await attack(door, each_answered(door.tokens, (whole[:n] for n in range(0, len(whole)))))


async def test_mutated_envelopes(door: Door, chance: random.Random) -> None:
    """One byte changed, put in or taken out, in an envelope nobody may send: it must stay refused."""
    whole = json.dumps({**GOOD, "from": "ann"}).encode()  # bob's connection

    def mutants() -> Iterator[bytes]:
        for _ in range(200):
            at = chance.randrange(len(whole))
            change = chance.choice(
                [chance.randbytes(1), b"", whole[at : at + 1] + chance.randbytes(1), b'"', b"}"]
            )
            yield whole[:at] + change + whole[at + 1 :]

    await attack(door, each_answered(door.tokens, mutants()))


WRONG: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    1.5,
    1e308,
    "",
    [],
    {},
    [None],
    [[]],
    {"a": 1},
    [1],
    10**30,
    "\ud800",
]


async def test_wrong_types_in_every_field(door: Door) -> None:
    fits: dict[str, list[Any]] = {
        "to": [[]],
        "correlation_id": [[]],
        "context": [""],
        "payload": [{}, {"a": 1}],
    }

    def wrong() -> Iterator[str]:
        for field, value in itertools.product(GOOD, WRONG):
            if value not in fits.get(field, []):
                yield json.dumps({**GOOD, "id": str(uuid.uuid4()), field: value})

    await attack(door, each_answered(door.tokens, wrong()))


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("capability/grant", ["recipient", "capabilities", "expires_at", "ttl_seconds"]),
        ("capability/revoke", ["recipient", "grant_id", "capabilities"]),
        ("space/invite", ["participant_id", "initial_capabilities", "email"]),
        ("space/kick", ["participant_id"]),
        ("stream/request", ["direction", "target", "expected_size_bytes"]),
        ("stream/close", ["stream_id"]),
        ("stream/grant-write", ["stream_id", "participant_id"]),
        ("stream/transfer-ownership", ["stream_id", "new_owner"]),
        ("participant/pause", ["timeout_seconds"]),
    ],
)
async def test_wrong_types_in_the_payloads_the_gateway_reads(
    door: Door, kind: str, fields: list[str]
) -> None:
    """Whatever comes of each: the gateway answers, with the echo or with an error, and goes on."""
    ann, cat = await door.meet("ann", "cat")
    await ann.say("chat", {"text": "unharmed"})
    for field, value in itertools.product(
        fields, [*WRONG, "x" * 5000, ["chat"] * 300, "/(/", "$..[", "**" * 50]
    ):
        payload = {"recipient": "cat", "capabilities": ["chat"], "direction": "upload", field: value}
        made = envelope("ann", kind, payload, to=["nobody"])
        await ann.connection.send(json.dumps(made))
        while True:
            said = await ann.next()
            if said["id"] == made["id"] or made["id"] in said.get("correlation_id", ()):
                break
            if said["kind"] == "system/error" and "correlation_id" not in said:
                assert value == "\ud800"  # of what is no JSON not even the id is known
                break
    await cat.say("chat", {"text": "unharmed"})


async def test_deep_nesting(door: Door) -> None:
    def deep() -> Iterator[str]:
        for depth in (65, 100, 1000, 100_000, 400_000):
            for opening, closing in (("[", "]"), ('{"a":', "}")):
                if depth * len(opening) < 900_000:
                    middle = opening * depth + "1" + closing * depth
                    yield json.dumps({**GOOD, "payload": ...}, default=lambda _: None).replace("null", middle)
                    yield opening * depth
                    yield json.dumps(GOOD)[:-1] + ', "unknown": ' + middle + "}"

    await attack(door, each_answered(door.tokens, deep()))


async def test_huge_strings_and_numbers(door: Door) -> None:
    big = "x" * 1_100_000

    def huge() -> Iterator[str]:
        for field in ("id", "kind", "context", "from", "protocol", "ts"):
            yield json.dumps({**GOOD, field: big})
            yield json.dumps({**GOOD, field: "y" * 5000})
        yield json.dumps({**GOOD, "payload": {"text": big}})
        yield json.dumps({**GOOD, "id": int("9" * 4000)})
        yield big
        yield '"' + big

    await attack(door, each_answered(door.tokens, huge()))


async def test_duplicate_keys(door: Door) -> None:
    def twice() -> Iterator[str]:
        for field in GOOD:
            rest = json.dumps(GOOD)[1:]
            for name in (field, field.replace(field[0], f"\\u{ord(field[0]):04x}", 1)):
                yield f'{{"{name}": {json.dumps(GOOD[field])}, {rest}'

    await attack(door, each_answered(door.tokens, twice()))


async def test_bad_utf8_in_raw_frames(door: Door) -> None:
    whole = json.dumps(GOOD).encode()

    def act(gateway: Gateway, path: str) -> None:
        for bad in (b"\xff", b"\xc3", b"\xc0\x80", b"\xed\xa0\x80", b"\xf5\x80\x80\x80"):
            for made in (
                whole.replace(b"hello", bad),
                whole.replace(b"chat", b"ch" + bad),
                b"#stream-1#" + bad,
            ):
                with RawSocket(gateway, path, door.tokens["bob"]) as raw:
                    answered(raw, "[]")  # so that we are surely in
                    raw.send_frame(0x81, made)
                    code, came = raw.until_closed()
                    assert code == 1007
                    assert came[-1]["payload"]["error"] == "malformed"

    await attack(door, act)


async def test_frames_for_closed_unknown_and_foreign_streams(door: Door, chance: random.Random) -> None:
    owner = await door.join("ann")
    await owner.say("stream/request", {"direction": "upload"})
    theirs = (await owner.until("stream/open"))["payload"]["stream_id"]
    await owner.connection.close()

    def frames() -> Iterator[bytes]:
        for name in (theirs, "stream-999", "", "#", "x" * 127, "x" * 129, "../..", "\x00", "stream-1\n"):
            yield f"#{name}#data".encode()
            yield f"#{name}#".encode() + chance.randbytes(50)
            yield f"#{name}".encode()

    await attack(door, each_answered(door.tokens, frames()))


async def test_binary_garbage(door: Door, chance: random.Random) -> None:
    def act(gateway: Gateway, path: str) -> None:
        with RawSocket(gateway, path, door.tokens["bob"]) as raw:
            for _ in range(60):
                answer = answered(raw, chance.randbytes(chance.randrange(1, 3000)), 0x82)
                assert isinstance(answer, dict)
                assert answer["payload"]["error"] in ("malformed", "unknown_stream")
            answer = answered(raw, json.dumps(GOOD), 0x82)
            assert isinstance(answer, dict)

    await attack(door, act)


async def test_broken_websocket_framing(door: Door, chance: random.Random) -> None:
    broken = {
        "no mask": b"\x81\x05hello",
        "reserved bits": RawSocket.frame(0xF1, b"x"),
        "compressed without an agreement": RawSocket.frame(0xC1, b"x"),
        "unknown opcode": RawSocket.frame(0x83, b"x"),
        "continuation of nothing": RawSocket.frame(0x80, b"x"),
        "two beginnings": RawSocket.frame(0x01, b"x") + RawSocket.frame(0x81, b"y"),
        "long ping": RawSocket.frame(0x89, b"x" * 126),
        "ping in fragments": RawSocket.frame(0x09, b"x"),
        "bad close code": RawSocket.frame(0x88, struct.pack("!H", 1005)),
        "half a close code": RawSocket.frame(0x88, b"\x03"),
        "absurd length": b"\x81\xff" + struct.pack("!Q", 1 << 63) + bytes(4),
        "large length": b"\x81\xff" + struct.pack("!Q", 1 << 40) + bytes(4),
        "HTTP": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        **{f"noise {n}": b"\x7f" + chance.randbytes(200) for n in range(10)},
    }

    def act(gateway: Gateway, path: str) -> None:
        for name, sent in broken.items():
            with RawSocket(gateway, path, door.tokens["bob"]) as raw:
                answered(raw, "[]")  # so that we are surely in
                raw.send(sent)
                code, came = raw.until_closed()
                assert code in (1002, 1007, 1009), name
                assert came[-1]["payload"]["error"] == "malformed", name

    await attack(door, act)


async def test_an_envelope_before_a_broken_frame_still_counts(door: Door) -> None:
    """Whether both came in one packet or two."""
    cat = await door.join("cat")
    made = envelope("bob", "chat", {"text": "before"})

    def act() -> int:
        with RawSocket(door.gateway, f"/ws?space={door.space}", door.tokens["bob"]) as raw:
            raw.send(raw.frame(0x81, json.dumps(made).encode()) + raw.frame(0x83, b"broken"))
            return raw.until_closed()[0]

    assert await asyncio.to_thread(act) == 1002
    await cat.until_id(made["id"])


async def test_half_handshakes_and_http_garbage(door: Door, chance: random.Random) -> None:
    def request(path: str) -> list[bytes]:
        line = f"GET {path} HTTP/1.1\r\n".encode()
        upgrade = b"Host: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        return [
            b"",
            b"G",
            line,
            line + upgrade,
            line + upgrade + b"Sec-WebSocket-Key: x\r\n\r\n",
            line + upgrade + b"Sec-WebSocket-Version: 13\r\n\r\n",
            line + upgrade + b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: \xc3\xa9\xff\r\n\r\n",
            line.replace(b"GET", b"POST") + upgrade + b"Content-Length: 5\r\n\r\nhello",
            line.replace(b"HTTP/1.1", b"HTTP/0.9") + b"\r\n",
            line + b"Host: x\r\nContent-Length: -1\r\n\r\n",
            line + b"Host: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
            line + b"Host: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nzzz",
            line + b"Host: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            line + b"X: " + b"y" * 100_000 + b"\r\n\r\n",
            b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
            b"GET /\xff\xfe%zz HTTP/1.1\r\nHost: x\r\n\r\n",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100),
            b"\r\n" * 1000,
            *(chance.randbytes(500) for _ in range(10)),
        ]

    def act(gateway: Gateway, path: str) -> None:
        held = []
        for sent in request(path):
            one = socket.create_connection(
                ("127.0.0.1", gateway.port), timeout=WAIT_S, source_address=(fresh_address(), 0)
            )
            held.append(one)
            one.sendall(sent)
            one.shutdown(socket.SHUT_WR)
        for one in held:
            answer = b""
            try:
                while more := one.recv(65_536):
                    answer += more
            except ConnectionError:
                pass
            assert not answer.startswith((b"HTTP/1.1 2", b"HTTP/1.1 5")), answer[:200]
            assert b"Traceback" not in answer
            one.close()

    await attack(door, act)


async def test_many_who_attack_at_once(door: Door, chance: random.Random) -> None:
    seeds = [chance.random() for _ in range(8)]

    def one(gateway: Gateway, path: str, seed: float) -> None:
        noise = random.Random(seed)
        for _ in range(5):
            with RawSocket(gateway, path, door.tokens["bob"]) as raw:
                try:
                    for _ in range(40):
                        raw.send(
                            raw.frame(
                                noise.choice([0x81, 0x82, 0x01, 0x89]), noise.randbytes(noise.randrange(120))
                            )
                        )
                except OSError:
                    pass  # closed on us, as it should be

    def act(gateway: Gateway, path: str) -> None:
        threads = [threading.Thread(target=one, args=(gateway, path, seed)) for seed in seeds]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
            assert not thread.is_alive()

    await attack(door, act)


async def test_garbage_as_the_first_frame(door: Door, chance: random.Random) -> None:
    def act(gateway: Gateway, path: str) -> None:
        for sent in (
            b"",
            b"{}",
            b"\x00",
            json.dumps(GOOD).encode(),
            b"[" * 5000,
            b'{"type":"join","token":' + b"9" * 5000,
        ):
            for first in (0x81, 0x82):
                with RawSocket(gateway, "/any", None) as raw:
                    raw.send_frame(first, sent)
                    assert raw.until_closed()[0] == 4505
        for _ in range(20):
            with RawSocket(gateway, "/any", None) as raw:
                raw.send(chance.randbytes(300))
                raw.socket.shutdown(socket.SHUT_WR)
                assert raw.until_closed()[0] in (1002, 1006, 1007, 1009, 4505)

    await attack(door, act)


async def test_a_flood_of_pings_and_of_fragments_without_data(door: Door) -> None:
    def act(gateway: Gateway, path: str) -> None:
        before = gateway.rss_bytes
        with RawSocket(gateway, path, door.tokens["bob"]) as raw:
            reader = threading.Thread(target=raw.until_closed, daemon=True)
            reader.start()
            raw.send(raw.frame(0x89, b"x" * 100) * 5000)
            raw.send_frame(0x01, b"")
            for _ in range(50):
                raw.send(raw.frame(0x00, b"") * 20_000)
            raw.send_frame(0x80, b"")
            raw.send_frame(0x88, b"\x03\xe8")
            reader.join(WAIT_S)
        assert gateway.rss_bytes - before < 30 * 1024 * 1024

    await attack(door, act)


@pytest.mark.parametrize(
    "message", [b"[]", b"#x#y", json.dumps(GOOD).encode()], ids=["malformed", "frames", "rate"]
)
async def test_a_flood_is_nobody_elses(door: Door, message: bytes) -> None:
    """A socket may hold a million small messages; the others get their turn in between."""
    ann = await door.join("ann")
    stopped = threading.Event()

    def drain(raw: RawSocket) -> None:
        with suppress(OSError):
            while raw.socket.recv(1 << 20):
                pass

    def flood() -> None:
        with RawSocket(door.gateway, f"/ws?space={door.space}", door.tokens["bob"]) as raw, suppress(OSError):
            threading.Thread(target=drain, args=(raw,), daemon=True).start()
            many = raw.frame(0x81, message) * 500
            while not stopped.is_set():
                raw.send(many)

    flooding = asyncio.create_task(asyncio.to_thread(flood))  # noqa: TID251  # ended below
    try:
        await ann.until("system/presence", lambda said: said["payload"]["participant"]["id"] == "bob")
        for _ in range(20):
            await ann.say("chat", {"text": "x"})  # which would never come back behind a flood without an end
    finally:
        stopped.set()
        await flooding


async def test_pings_of_one_who_does_not_read_fill_no_memory(door: Door) -> None:
    def act(gateway: Gateway, path: str) -> None:
        before = gateway.rss_bytes
        with RawSocket(gateway, path, door.tokens["bob"], receive_buffer=4096) as raw:
            pings = raw.frame(0x89, b"x" * 125) * 5000
            for _ in range(100):
                raw.send(pings)  # 65 MB
        assert gateway.rss_bytes - before < 30 * 1024 * 1024

    await attack(door, act)


async def test_the_space_serves_on_after_a_client_was_cut_off_in_every_state(door: Door) -> None:
    """Right after the handshake, before the welcome, in the middle of a stream, with envelopes on their way."""
    ann = await door.join("ann")
    made = [json.dumps(envelope("bob", "chat", {"text": "unharmed"})).encode() for _ in range(20)]

    def act() -> None:
        for n in range(20):
            raw = RawSocket(door.gateway, f"/ws?space={door.space}", door.tokens["bob"])
            raw.send(b"".join(raw.frame(0x81, one) for one in made[:n]))
            raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            raw.socket.close()  # a reset, not an end

    await asyncio.to_thread(act)
    await ann.say("chat", {"text": "unharmed"})
    cat: Client = await door.join("cat")
    await cat.say("chat", {"text": "unharmed"})


async def test_who_floods_with_what_is_refused_is_told_to_come_back_later(door: Door) -> None:
    ann = await door.join("ann")
    path = f"/ws?space={door.space}"
    with await asyncio.to_thread(RawSocket, door.gateway, path, door.tokens["cat"]) as cat:
        cat.send(RawSocket.frame(0x81, b"nonsense") * 3000)
        code, answers = await asyncio.to_thread(cat.until_closed)
    assert code == 4012
    assert sum(said["kind"] == "system/error" for said in answers) >= 2000
    assert await ann.say("chat", {"text": "and nobody else minds"})
