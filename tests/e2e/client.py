"""Clients that know nothing of us: plain `websockets`, plain `http.client`, and raw sockets."""

import asyncio
import base64
import hashlib
import http.client
import itertools
import json
import os
import socket
import struct
import uuid
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any

import websockets
from websockets.asyncio.client import ClientConnection

from .process import WAIT_S, Gateway

__all__ = ["Answer", "Client", "Door", "RawSocket", "envelope", "fresh_address", "request", "upgrade"]

Json = dict[str, Any]

_addresses = itertools.count(2)


def fresh_address() -> str:
    """An address of this machine nobody used yet: failed attempts are slowed down for each address."""
    n = next(_addresses)
    return f"127.1.{n // 250}.{n % 250 + 1}"


def envelope(who: str, kind: str, payload: Any = None, **fields: Any) -> Json:
    made: Json = {"protocol": "mew/v0.4", "id": str(uuid.uuid4()), "from": who, "kind": kind}
    if payload is not None:
        made["payload"] = payload
    made.update({"from" if name == "sender" else name: value for name, value in fields.items()})
    return {name: value for name, value in made.items() if value is not ...}


class Client:
    """One connection. Everything that arrived is in `seen`, in order; every wait is bounded."""

    def __init__(self, who: str, connection: ClientConnection) -> None:
        self.who = who
        self.connection = connection
        self.seen: list[Any] = []
        self.raw: list[str | bytes] = []
        self.welcome: Json = {}

    async def next(self, within_s: float = WAIT_S) -> Any:
        """The next message: an envelope as JSON, a stream frame as it is."""
        async with asyncio.timeout(within_s):
            message = await self.connection.recv()
        self.raw.append(message)
        is_json = isinstance(message, str) and not message.startswith("#")
        self.seen.append(json.loads(message) if is_json else message)
        return self.seen[-1]

    async def until(self, kind: str, fits: Callable[[Json], bool] = lambda _: True) -> Json:
        """The next envelope of this kind that fits."""
        while True:
            message = await self.next()
            if isinstance(message, dict) and message["kind"] == kind and fits(message):
                return message

    async def until_id(self, envelope_id: str) -> Json:
        while True:
            message = await self.next()
            if isinstance(message, dict) and message["id"] == envelope_id:
                return message

    async def frame(self) -> str | bytes:
        """The next stream frame."""
        while True:
            message = await self.next()
            if isinstance(message, str | bytes):
                return message

    async def send(self, kind: str, payload: Any = None, **fields: Any) -> str:
        """Send an envelope; its id."""
        made = envelope(self.who, kind, payload, **fields)
        await self.connection.send(json.dumps(made))
        return str(made["id"])

    async def say(self, kind: str, payload: Any = None, **fields: Any) -> str:
        """Send an envelope and wait for its echo, or fail with the error that came in its place."""
        sent = await self.send(kind, payload, **fields)
        while True:
            message = await self.next()
            if not isinstance(message, dict):
                continue
            if message["id"] == sent:
                return sent
            if message["kind"] == "system/error":
                assert sent not in message.get("correlation_id", []), message

    async def refused(self, kind: str, payload: Any = None, **fields: Any) -> Json:
        """Send an envelope; the payload of the error it gets."""
        sent = await self.send(kind, payload, **fields)
        return await self.error(sent)

    async def error(self, culprit: str | None = None) -> Json:
        """The payload of the next error, about the envelope named; no echo of it may come before."""
        while True:
            message = await self.next()
            if isinstance(message, dict):
                assert message["id"] != culprit, message
                if message["kind"] == "system/error" and culprit in (
                    *message.get("correlation_id", ()),
                    None,
                ):
                    assert message["to"] == [self.who]
                    assert message["from"] == "system:gateway"
                    payload: Json = message["payload"]
                    assert payload["message"]
                    return payload

    async def since_now(self) -> list[Any]:
        """What has arrived and was not looked at, up to an envelope of our own."""
        start = len(self.seen)
        await self.say("chat", {"text": "what came until here?"})
        return self.seen[start:-1]

    async def closed(self) -> tuple[int, str]:
        """Code and reason of the close, once it has come; what came before it is in `seen`."""
        said = None
        try:
            while True:
                await self.next()
        except websockets.ConnectionClosed as closed:
            said = closed.rcvd
        assert said is not None, "the connection ended without a close frame"
        return said.code, said.reason


class Door:
    """Lets clients in to one gateway, and sees them out at the end."""

    def __init__(self, gateway: Gateway, tokens: Mapping[str, str], space: str) -> None:
        self.gateway = gateway
        self.tokens = tokens
        self.space = space
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> "Door":
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._stack.aclose()

    def url(self, query: str = "", path: str = "/ws", space: str | None = None) -> str:
        return f"{self.gateway.ws_url}{path}?space={space or self.space}{query}"

    async def open(self, url: str, **options: Any) -> ClientConnection:
        """A WebSocket as `websockets` opens it."""
        plain = {
            "proxy": None,
            "max_size": None,
            "max_queue": None,
            "compression": None,
            "ping_interval": None,
        }
        options = {"open_timeout": WAIT_S, "close_timeout": WAIT_S, **plain, **options}
        return await self._stack.enter_async_context(websockets.connect(url, **options))

    async def join(
        self,
        who: str,
        *,
        query: str = "",
        token: str | None = None,
        space: str | None = None,
        **options: Any,
    ) -> Client:
        """Connect the way of §5.2 and take the welcome."""
        token = self.tokens[who] if token is None else token
        headers = {"Authorization": f"Bearer {token}"}
        connection = await self.open(self.url(query, space=space), additional_headers=headers, **options)
        client = Client(who, connection)
        welcome = await client.next()
        assert welcome["kind"] == "system/welcome"
        client.welcome = welcome
        return client

    async def meet(self, *names: str) -> list[Client]:
        """Several, each of whom has seen all that went before."""
        clients = [await self.join(name) for name in names]
        for client in clients:
            await client.until(
                "system/presence", lambda said: said["payload"]["participant"]["id"] == names[-1]
            )
        return clients

    async def join_by_frame(self, first: Json, *, path: str = "/", who: str = "") -> Client:
        """Connect as clients of the TypeScript implementation do; nothing is waited for."""
        connection = await self.open(self.gateway.ws_url + path)
        await connection.send(json.dumps(first))
        return Client(who, connection)

    async def request(self, method: str, path: str, **options: Any) -> "Answer":
        return await asyncio.to_thread(request, self.gateway, method, path, **options)

    async def upgrade(self, path: str, **headers: str) -> "Answer":
        return await asyncio.to_thread(upgrade, self.gateway, path, **headers)

    async def post(self, who: str, body: Json | bytes) -> "Answer":
        """An envelope over HTTP (§5.3)."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.tokens[who]}", "Content-Type": "application/json"}
        path = f"/participants/{who}/messages?space={self.space}"
        return await self.request("POST", path, headers=headers, body=content)


class Answer:
    """What came back over HTTP."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = response.headers
        self.body = b"" if response.status == 101 else response.read()

    @property
    def json(self) -> Json:
        said: Json = json.loads(self.body)
        return said


def request(
    gateway: Gateway, method: str, path: str, *, headers: Mapping[str, str] | None = None, body: bytes = b""
) -> Answer:
    connection = http.client.HTTPConnection(
        "127.0.0.1", gateway.port, timeout=2 * WAIT_S, source_address=(fresh_address(), 0)
    )
    try:
        connection.request(method, path, body=body or None, headers=dict(headers or {}))
        return Answer(connection.getresponse())
    finally:
        connection.close()


def upgrade(gateway: Gateway, path: str, **headers: str) -> Answer:
    """Ask for a WebSocket; `sec_websocket_protocol="x"` is a header. A refusal comes as plain HTTP."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    asked = {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
        "Sec-WebSocket-Version": "13",
        **given,
    }
    return request(gateway, "GET", path, headers=asked)


class RawSocket:
    """A WebSocket by hand, to send what no library would."""

    def __init__(self, gateway: Gateway, path: str, token: str | None, *, receive_buffer: int = 0) -> None:
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(WAIT_S)
        self.socket.connect(("127.0.0.1", gateway.port))
        key = base64.b64encode(os.urandom(16))
        bearer = "" if token is None else f"Authorization: Bearer {token}\r\n"
        self.socket.sendall(
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{gateway.port}\r\nUpgrade: websocket\r\n{bearer}"
            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key.decode()}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        self._got = bytearray()
        while b"\r\n\r\n" not in self._got:
            self._fill()
        head, _, self._got = self._got.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 101 "), head
        accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
        assert accept in head

    def __enter__(self) -> "RawSocket":
        return self

    def __exit__(self, *exc: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def send_frame(self, first: int, data: bytes) -> None:
        self.send(self.frame(first, data))

    def send_text(self, text: str | bytes) -> None:
        self.send_frame(0x81, text.encode() if isinstance(text, str) else text)

    @staticmethod
    def frame(first: int, data: bytes) -> bytes:
        """Masked with zeros, which hides nothing and is allowed."""
        size = len(data)
        if size < 126:
            head = bytes((first, 0x80 | size))
        elif size < 65_536:
            head = struct.pack("!BBH", first, 0x80 | 126, size)
        else:
            head = struct.pack("!BBQ", first, 0x80 | 127, size)
        return head + bytes(4) + data

    def receive(self) -> tuple[int, bytes]:
        """The next frame: its first byte and its data.

        Raises:
            EOFError: the gateway has hung up.
        """
        self._need(2)
        first, length = self._got[0], self._got[1]
        start = 2
        if length == 126:
            self._need(4)
            start, length = 4, int.from_bytes(self._got[2:4], "big")
        elif length == 127:
            self._need(10)
            start, length = 10, int.from_bytes(self._got[2:10], "big")
        self._need(start + length)
        data = bytes(self._got[start : start + length])
        del self._got[: start + length]
        return first, data

    def until_closed(self) -> tuple[int, list[Json]]:
        """The close code, and the envelopes that came before it; 1006 where none came."""
        came: list[Json] = []
        try:
            while True:
                first, data = self.receive()
                if first == 0x88:
                    return int.from_bytes(data[:2], "big"), came
                if first == 0x81 and data[:1] == b"{":
                    came.append(json.loads(data))
        except (EOFError, ConnectionError):
            return 1006, came

    def _need(self, size: int) -> None:
        while len(self._got) < size:
            self._fill()

    def _fill(self) -> None:
        more = self.socket.recv(1 << 16)
        if not more:
            raise EOFError("the gateway has hung up")
        self._got += more
