"""A participant that answers what it is told to: for what no good one would say."""

from typing import Any

import mew

__all__ = ["Scripted", "serve_scripted"]


class Scripted:
    """What it answers to each method: a result, or a function of the params that gives one."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    def answer(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(method)
        said = self.answers.get(method)
        if said is None:
            raise mew.RpcError(-32601, "no such method")
        if callable(said):
            said = said(params)
        return dict(said)


async def serve_scripted(client: mew.Client, scripted: Scripted) -> None:
    """Answers, one after the other."""
    async for envelope in client.envelopes("mcp/request", to_me=True):
        asked = envelope.content
        if envelope.sender == client.id or "id" not in asked:
            continue
        try:
            said: dict[str, Any] = {"result": scripted.answer(asked["method"], asked.get("params", {}))}
        except mew.RpcError as error:
            said = {"error": {"code": error.code, "message": error.message}}
        payload = {"jsonrpc": "2.0", "id": asked["id"], **said}
        await client.send("mcp/response", payload, to=envelope.sender, correlation_id=envelope.id)
