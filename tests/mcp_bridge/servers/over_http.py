"""A server of the first generation over Streamable HTTP, without the SDK: sessions, streams, and what goes wrong."""

import asyncio
import gzip
import json
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from aiohttp import web

__all__ = ["HttpServer"]

_SESSION = "mcp-session-id"


class HttpServer:
    """`status` is answered to all but the handshake, where it is not None; `forget` ends all sessions.

    One that is `gone` hangs up on whoever calls. `stranger` is answered to who has no session. Where it does not say
    goodbye, the end of a session is never answered.
    """

    def __init__(self) -> None:
        self.sessions: set[str] = set()
        self.handshakes = 0
        self.gone = False
        self.stranger = 404
        self.says_goodbye = True
        self.goodbyes = 0
        self.status: int | None = None
        self.seen: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.url = ""
        self._news = asyncio.Event()
        self._answers: dict[Any, asyncio.Future[Any]] = {}

    def forget(self) -> None:
        self.sessions.clear()

    async def hears(self, method: str) -> dict[str, Any]:
        while not (found := [one for one in self.seen if one.get("method") == method]):
            self._news.clear()
            await self._news.wait()
        return found[-1]

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        app = web.Application()
        app.router.add_post("/mcp", self._post)
        app.router.add_get("/mcp", self._get)
        app.router.add_delete("/mcp", self._delete)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        address = runner.addresses[0]
        self.url = f"http://{address[0]}:{address[1]}/mcp"
        try:
            yield self.url
        finally:
            await runner.cleanup()

    async def _get(self, _: web.Request) -> web.StreamResponse:
        return web.Response(status=405)

    async def _delete(self, _: web.Request) -> web.StreamResponse:
        self.goodbyes += 1
        if not self.says_goodbye:
            await asyncio.Event().wait()
        return web.Response(status=204)

    async def _post(self, request: web.Request) -> web.StreamResponse:
        message = await request.json()
        if self.gone and request.transport is not None:
            request.transport.close()
        self.seen.append(message)
        self.headers.append(dict(request.headers))
        self._news.set()
        method = message.get("method")
        if method == "initialize":
            return self._initialize(message)
        if method == "server/discover":
            return web.Response(status=400)
        if request.headers.get(_SESSION) not in self.sessions:
            return web.Response(status=self.stranger, text="No valid session ID")
        if self.status is not None:
            return web.Response(status=self.status)
        if method is None:
            self._answers[message["id"]].set_result(message.get("result", message.get("error")))
        if "id" not in message or method is None:
            return web.Response(status=202)
        return await self._answer(request, message)

    def _initialize(self, message: dict[str, Any]) -> web.Response:
        self.handshakes += 1
        session = uuid.uuid4().hex
        self.sessions.add(session)
        result = {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "http", "version": "1"},
        }
        return web.json_response(
            {"jsonrpc": "2.0", "id": message["id"], "result": result}, headers={_SESSION: session}
        )

    async def _answer(self, request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
        name = message.get("params", {}).get("name")
        if name == "hang":
            await asyncio.sleep(60)
        if name == "endless":
            return await _endless(request)
        if name == "packed":
            headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
            return web.Response(body=gzip.compress(b"0" * (1 << 20)), headers=headers)
        if name in ("ask", "break"):
            return await self._stream(request, message, breaks=name == "break")
        result = {"tools": []} if message["method"] == "tools/list" else {"content": [], "n": 1.0}
        return web.json_response({"jsonrpc": "2.0", "id": message["id"], "result": result})

    async def _stream(
        self, request: web.Request, message: dict[str, Any], *, breaks: bool
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        if breaks:
            return response
        number = len(self.seen)
        self._answers[number] = asyncio.get_running_loop().create_future()
        question = {"method": "elicitation/create", "params": {"message": "Which?"}}
        await _event(response, {"jsonrpc": "2.0", "id": number, **question})
        answered = await self._answers[number]
        await _event(response, {"jsonrpc": "2.0", "id": message["id"], "result": {"answered": answered}})
        return response


async def _endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    with suppress(ConnectionError):
        while True:
            await response.write(b" " * (1 << 20))
    return response


async def _event(response: web.StreamResponse, message: dict[str, Any]) -> None:
    await response.write(f"event: message\ndata: {json.dumps(message)}\n\n".encode())
