"""Callers that talk HTTP to a real gateway on a free port of loopback."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from mew.gateway.server import Gateway

__all__ = ["SPACE_YAML", "Answer", "Caller", "Serve", "Served"]

SPACE_YAML = """
space: {id: demo, name: Demo, description: A space to try}
participants:
  ann: {tokens: [t-ann], capabilities: ["*"]}
  bot: {tokens: [t-bot], capabilities: [chat, mcp/proposal]}
  eve: {tokens: [t-eve], capabilities: [chat, mcp/reject]}
server: {port: 0}
"""


@dataclass
class Answer:
    """A response, read whole."""

    status: int
    type: str
    headers: dict[str, str]
    body: bytes
    json: Any = field(repr=False, default=None)


class Caller:
    """Somebody with a token, or without."""

    def __init__(self, session: aiohttp.ClientSession, url: str, who: str, token: str | None) -> None:
        self._session = session
        self.url = url
        self.who = who
        self.headers = {} if token is None else {"Authorization": f"Bearer {token}"}

    async def ask(self, method: str, path: str, **options: Any) -> Answer:
        headers = {**self.headers, **options.pop("headers", {})}
        async with self._session.request(method, self.url + path, headers=headers, **options) as response:
            body = await response.read()
            json = await response.json(content_type=None) if "json" in response.content_type else None
            return Answer(response.status, response.content_type, dict(response.headers), body, json)

    async def get(self, path: str, **params: str | int | float) -> Answer:
        return await self.ask("GET", path, params=params)

    async def send(self, envelope: Any, **params: str) -> Answer:
        options: dict[str, Any] = {"data" if isinstance(envelope, bytes) else "json": envelope}
        return await self.ask("POST", f"/participants/{self.who}/messages", params=params, **options)

    async def say(self, kind: str = "chat", **fields: Any) -> str:
        """Send an envelope that is accepted; return its id."""
        answer = await self.send({"kind": kind, **fields})
        assert answer.status == 200, answer.json
        return str(answer.json["id"])

    async def messages(self, **params: str | int | float) -> Answer:
        return await self.get(f"/participants/{self.who}/messages", **params)

    async def connect(self) -> aiohttp.ClientWebSocketResponse:
        """A WebSocket, past its welcome."""
        socket = await self._session.ws_connect(self.url + "/ws?space=demo", headers=self.headers)
        await socket.receive(timeout=5)
        return socket


@dataclass
class Served:
    """A running gateway and those who call it."""

    gateway: Gateway
    session: aiohttp.ClientSession
    stop: Callable[[], Awaitable[None]]

    def caller(self, who: str, token: str | None = "") -> Caller:
        return Caller(self.session, self.gateway.url, who, f"t-{who}" if token == "" else token)

    @property
    def ann(self) -> Caller:
        return self.caller("ann")

    @property
    def bot(self) -> Caller:
        return self.caller("bot")

    @property
    def eve(self) -> Caller:
        return self.caller("eve")

    @property
    def nobody(self) -> Caller:
        return self.caller("ann", None)


Serve = Callable[..., Awaitable[Served]]
