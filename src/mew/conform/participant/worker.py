"""A participant of the kit with two tools, for the one under test to call, or to propose to call."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from mew.conform.connection import ScriptedClient

__all__ = ["INITIALIZE", "TOOLS", "Worker"]

INITIALIZE: Final = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "mew conform", "version": "1"},
}

_ARGUMENTS: Final = {"type": "object", "properties": {"text": {"type": "string"}}}
TOOLS: Final = (
    {
        "name": "read_note",
        "description": "Read the note.",
        "inputSchema": {"type": "object", "properties": {}},
        "annotations": {"readOnlyHint": True},
    },
    {"name": "write_note", "description": "Write the note.", "inputSchema": _ARGUMENTS},
)

Reply = Callable[[Mapping[str, Any]], dict[str, Any] | None]


class Worker:
    """Answers what it is asked. `reply` says what a call of a tool returns, as a payload without its id; None: nothing.

    `named` says what `correlation_id` of the response names.
    """

    def __init__(self, client: ScriptedClient) -> None:
        self.client = client
        self.note = "nothing"
        self.reply: Reply = self._carry_out
        self.named: Callable[[str], list[str]] = lambda request: [request]
        self.called: list[dict[str, Any]] = []
        self._was_called = asyncio.Event()

    @property
    def id(self) -> str:
        return self.client.id

    async def awaited(self, within_s: float, many: int = 1) -> bool:
        """Whether its tools were called so often in this check, waited for."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while len(self.called) < many:
                    self._was_called.clear()
                    await self._was_called.wait()
        return len(self.called) >= many

    async def work(self) -> None:
        seen = 0
        while not self.client.is_closed:
            for envelope in self.client.received[seen:]:
                seen += 1
                if envelope.get("kind") == "mcp/request" and self.id in (envelope.get("to") or ()):
                    await self._answer(envelope)
            if seen == len(self.client.received):
                await self.client.more()

    async def _answer(self, request: dict[str, Any]) -> None:
        payload = request.get("payload") or {}
        if "id" not in payload:
            return
        said = self._said(request, payload)
        if said is None:
            return
        await self.client.send(
            "mcp/response",
            {"jsonrpc": "2.0", "id": payload["id"], **said},
            to=[request["from"]],
            correlation_id=self.named(request["id"]),
        )

    def _said(self, request: dict[str, Any], payload: Mapping[str, Any]) -> dict[str, Any] | None:
        match payload.get("method"):
            case "initialize":
                about = {"name": "worker", "version": "1"}
                return {
                    "result": {
                        "protocolVersion": "2025-06-18",
                        "capabilities": {"tools": {}},
                        "serverInfo": about,
                    }
                }
            case "ping":
                return {"result": {}}
            case "tools/list":
                return {"result": {"tools": list(TOOLS)}}
            case "tools/call":
                self.called.append(request)
                self._was_called.set()
                return self.reply(payload)
        return {"error": {"code": -32601, "message": "no such method"}}

    def _carry_out(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        params = payload.get("params") or {}
        if params.get("name") == "write_note":
            self.note = str((params.get("arguments") or {}).get("text"))
        return {"result": {"content": [{"type": "text", "text": f"the note: {self.note}"}]}}
