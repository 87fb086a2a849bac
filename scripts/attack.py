"""Attack a gateway on loopback, one way after another; measure what an innocent client and the memory notice of it.

.venv/bin/python scripts/attack.py --seconds 5
.venv/bin/python scripts/attack.py --only slow_heads guesses
"""

import argparse
import asyncio
import base64
import gzip
import json
import multiprocessing
import random
import secrets
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from jwt.algorithms import RSAAlgorithm

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.e2e.process import Gateway, run_gateway

P99_MS_MAX = 50.0
MEMORY_MB_MAX = 300.0
TOKENS = {name: f"{name}-{secrets.token_hex(16)}" for name in ("ann", "bob", "mallory", "paths", "streams")}
PATHS = [{"kind": "chat", "payload": {f"$..a{n}[?@.b > 1]..c": "x*"}} for n in range(48)]
CONFIG: dict[str, Any] = {
    "space": {"id": "demo"},
    "participants": {
        "ann": {"tokens": [TOKENS["ann"]], "capabilities": ["chat"]},
        "bob": {"tokens": [TOKENS["bob"]], "capabilities": ["chat"]},
        "mallory": {"tokens": [TOKENS["mallory"]], "capabilities": ["chat", "mcp/proposal"]},
        "paths": {"tokens": [TOKENS["paths"]], "capabilities": PATHS},
        "streams": {"tokens": [TOKENS["streams"]], "capabilities": ["stream/*", "chat"]},
    },
    "auth": {"jwt": {"jwks": "keys.json", "audience": "mew", "issuer": "us"}},
}


class Target:
    """Where to attack, and until when; goes to another process."""

    def __init__(self, port: int, seconds: float) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.ends = time.monotonic() + seconds

    @property
    def lasts(self) -> bool:
        return time.monotonic() < self.ends

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)


def bearer(who: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {TOKENS[who]}"}


def envelope(who: str, kind: str = "chat", **fields: Any) -> str:
    written = {
        "protocol": "mew/v0.4",
        "id": secrets.token_hex(8),
        "from": who,
        "kind": kind,
        "payload": {"text": "x"},
    }
    return json.dumps(written | fields)


# Without a token.


async def compressed(target: Target) -> None:
    """Bodies that unpack to 10 MiB, over eight sockets."""
    body = gzip.compress(b" " * (10 << 20))
    headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}

    async def one() -> None:
        async with aiohttp.ClientSession() as http:
            while target.lasts:
                with suppress(aiohttp.ClientError):
                    url = f"{target.url}/participants/ann/messages?space=demo"
                    async with http.post(url, data=body, headers=headers) as answer:
                        assert answer.status in (401, 413, 415, 429), answer.status

    await asyncio.gather(*(one() for _ in range(8)))


async def slow_heads(target: Target) -> None:
    """600 request heads, a byte at a time, that never end."""

    async def one() -> None:
        while target.lasts:
            with suppress(OSError):
                _, writer = await target.connect()
                writer.write(b"GET /health HTTP/1.1\r\nX-Pad: " + b"a" * 4000)
                while target.lasts and not writer.is_closing():
                    writer.write(b"a")
                    await writer.drain()
                    await asyncio.sleep(0.2)
                writer.transport.abort()
            await asyncio.sleep(0.05)

    await asyncio.gather(*(one() for _ in range(600)))


async def slow_bodies(target: Target) -> None:
    """300 bodies that are announced as 1 MB, and trickle."""
    head = "POST /sessions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n"

    async def one() -> None:
        while target.lasts:
            with suppress(OSError):
                _, writer = await target.connect()
                writer.write(head.encode() + b'{"code":"')
                while target.lasts and not writer.is_closing():
                    writer.write(b"a" * 100)
                    await writer.drain()
                    await asyncio.sleep(0.2)
                writer.transport.abort()
            await asyncio.sleep(0.05)

    await asyncio.gather(*(one() for _ in range(300)))


async def guesses(target: Target) -> None:
    """64 sockets that guess tokens."""

    async def one() -> None:
        async with aiohttp.ClientSession() as http:
            while target.lasts:
                headers = {"Authorization": f"Bearer {secrets.token_hex(16)}"}
                with suppress(aiohttp.ClientError, TimeoutError):
                    async with asyncio.timeout(1), http.get(f"{target.url}/spaces", headers=headers):
                        pass

    await asyncio.gather(*(one() for _ in range(64)))


async def jwts(target: Target) -> None:
    """JWTs with a wrong signature, over 32 sockets."""
    head = base64.urlsafe_b64encode(b'{"alg":"RS256","typ":"JWT","kid":"k"}').decode().rstrip("=")
    claims = (
        base64.urlsafe_b64encode(b'{"iss":"us","aud":"mew","sub":"eve","exp":9999999999}')
        .decode()
        .rstrip("=")
    )

    async def one() -> None:
        async with aiohttp.ClientSession() as http:
            while target.lasts:
                token = f"{head}.{claims}.{secrets.token_urlsafe(256)}"
                with suppress(aiohttp.ClientError, TimeoutError):
                    headers = {"Authorization": f"Bearer {token}"}
                    async with asyncio.timeout(1), http.get(f"{target.url}/spaces", headers=headers):
                        pass

    await asyncio.gather(*(one() for _ in range(32)))


# With a token of one's own.


async def _flood(target: Target, who: str, make: Callable[[], str | bytes]) -> None:
    async with aiohttp.ClientSession() as http:
        while target.lasts:
            with suppress(aiohttp.ClientError, OSError):
                async with http.ws_connect(f"{target.url}/ws?space=demo", headers=bearer(who)) as ws:

                    async def drain(ws: aiohttp.ClientWebSocketResponse = ws) -> None:
                        async for _ in ws:
                            pass

                    draining = asyncio.ensure_future(drain())
                    while target.lasts and not ws.closed:
                        made = make()
                        await (ws.send_str(made) if isinstance(made, str) else ws.send_bytes(made))
                        await asyncio.sleep(0)
                    draining.cancel()
            await asyncio.sleep(0.05)


async def chat(target: Target) -> None:
    """As many envelopes as one connection gets rid of."""
    await _flood(target, "mallory", lambda: envelope("mallory"))


async def reused_ids(target: Target) -> None:
    """One id for all of them."""
    await _flood(target, "mallory", lambda: envelope("mallory", id="same"))


async def refused(target: Target) -> None:
    """Envelopes of 1 MiB that are refused."""
    large = envelope("mallory", "mcp/request", to=["ann"], payload={"method": "x", "pad": "a" * (1_000_000)})
    await _flood(target, "mallory", lambda: large)


async def oversize(target: Target) -> None:
    """Envelopes of 3 MiB, where 1 MiB is the most."""
    large = envelope("mallory", payload={"text": "a" * (3 << 20)})
    await _flood(target, "mallory", lambda: large)


async def nested(target: Target) -> None:
    """Arrays in arrays, 100,000 deep."""
    deep = envelope("mallory").replace('"x"', "[" * 100_000 + "]" * 100_000)
    await _flood(target, "mallory", lambda: deep)


async def json_paths(target: Target) -> None:
    """Payloads that are as dear as can be for 48 JSONPaths."""
    node: Any = {"c": "no"}
    for _ in range(8):
        node = {f"a{n}": [{"b": 2, "c": node}] for n in range(3)} if len(json.dumps(node)) < 200_000 else node
    dear = {"protocol": "mew/v0.4", "from": "paths", "kind": "chat", "payload": node}
    await _flood(target, "paths", lambda: json.dumps(dear | {"id": secrets.token_hex(8)}))


async def stream_frames(target: Target) -> None:
    """Frames of 64 KiB on 32 streams."""
    async with aiohttp.ClientSession(headers=bearer("streams")) as http:
        ids = []
        for _ in range(40):
            body = {"kind": "stream/request", "payload": {"direction": "upload"}}
            url = f"{target.url}/participants/streams/messages?space=demo"
            async with http.post(url, json=body) as answer:
                told = await answer.json()
                ids += [told["reply"]["payload"]["stream_id"]] if "reply" in told else []
    data = b"x" * 65_536
    await _flood(target, "streams", lambda: b"#%s#" % random.choice(ids or ["none"]).encode() + data)


async def unread_answers(target: Target) -> None:
    """300 sockets that ask for the history and do not read it."""
    path = "/spaces/demo/envelopes?space=demo&limit=1000"
    head = f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKENS['mallory']}\r\n\r\n".encode()
    open_sockets = []
    for _ in range(300):
        with suppress(OSError):
            one = socket.create_connection(("127.0.0.1", target.port), 2)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            one.sendall(head * 4)
            open_sockets.append(one)
    await asyncio.sleep(target.ends - time.monotonic())


async def unread_socket(target: Target) -> None:
    """16 connections that never read, while one talks."""
    async with aiohttp.ClientSession() as http:
        held = [
            await http.ws_connect(f"{target.url}/ws?space=demo", headers=bearer("mallory")) for _ in range(16)
        ]
        for one in held:
            transport: Any = one.get_extra_info("transport") or one._conn.transport  # type: ignore[union-attr]  # no public way
            transport.pause_reading()
        await _flood(target, "mallory", lambda: envelope("mallory", payload={"text": "a" * 20_000}))


async def proposals(target: Target) -> None:
    """Proposals without end."""
    payload = {"method": "tools/call", "params": {"name": "t", "arguments": {"a": "b" * 1000}}}
    await _flood(target, "mallory", lambda: envelope("mallory", "mcp/proposal", payload=payload))


ATTACKS: list[Callable[[Target], Awaitable[None]]] = [
    *(compressed, slow_heads, slow_bodies, guesses, jwts),
    *(
        chat,
        reused_ids,
        refused,
        oversize,
        nested,
        json_paths,
        stream_frames,
        unread_answers,
        unread_socket,
        proposals,
    ),
]


def run(name: str, port: int, seconds: float) -> None:
    attack = next(one for one in ATTACKS if one.__name__ == name)

    async def bounded() -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds + 5):
                await attack(Target(port, seconds))

    asyncio.run(bounded())


async def innocent(gateway: Gateway, seconds: float) -> tuple[list[float], float]:
    """Echo times in ms of somebody who says something 50 times a second, and the most memory in MB."""
    times: list[float] = []
    most = 0.0
    async with (
        aiohttp.ClientSession() as http,
        http.ws_connect(f"{gateway.url}/ws?space=demo", headers=bearer("ann"), max_msg_size=0) as ws,
    ):
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            sent = envelope("ann")
            own = json.loads(sent)["id"].encode()
            began = time.perf_counter()
            await ws.send_str(sent)
            async for message in ws:
                raw = message.data.encode() if isinstance(message.data, str) else message.data
                if own in raw[:200]:
                    break
            else:
                raise SystemExit(f"ann was disconnected: {ws.close_code}")
            times.append(1000 * (time.perf_counter() - began))
            most = max(most, gateway.rss_bytes / 1e6)
            await asyncio.sleep(0.02)
    return times, most


def measured(gateway: Gateway, name: str | None, seconds: float) -> tuple[float, float, float]:
    context = multiprocessing.get_context("fork")
    attacker = None if name is None else context.Process(target=run, args=(name, gateway.port, seconds + 1))
    if attacker is not None:
        attacker.start()
        time.sleep(0.5)
    times, most = asyncio.run(innocent(gateway, seconds))
    if attacker is not None:
        attacker.join(seconds + 10)
        attacker.kill()
    return statistics.median(times), statistics.quantiles(times, n=100)[98], most


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0, help="for each attack")
    parser.add_argument("--only", nargs="*", default=[one.__name__ for one in ATTACKS], metavar="ATTACK")
    asked = parser.parse_args()
    bad = []
    print(f"{'attack':16} {'p50 ms':>8} {'p99 ms':>8} {'memory MB':>10}")
    for name in (None, *asked.only, None):
        with tempfile.TemporaryDirectory() as folder:
            key = RSAAlgorithm.to_jwk(generate_private_key(65_537, 2048).public_key(), as_dict=True)
            Path(folder, "keys.json").write_text(json.dumps({"keys": [key | {"kid": "k", "alg": "RS256"}]}))
            with run_gateway(Path(folder), CONFIG) as gateway:
                p50, p99, memory = measured(gateway, name, asked.seconds)
        print(f"{name or '(none)':16} {p50:8.2f} {p99:8.2f} {memory:10.0f}", flush=True)
        if name is not None and (p99 > P99_MS_MAX or memory > MEMORY_MB_MAX):
            bad.append(name)
    if bad:
        sys.exit(f"over {P99_MS_MAX:g} ms or {MEMORY_MB_MAX:g} MB: {', '.join(bad)}")


if __name__ == "__main__":
    main()
