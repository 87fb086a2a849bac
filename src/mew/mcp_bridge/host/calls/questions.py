"""What a participant asks of us while it works on a call of ours: it is for the host, or its user, to answer.

An `elicitation/create` or a `sampling/createMessage` that is addressed to us; our answer goes back as it is given.
"""

import asyncio
from typing import Any, Final

from msgspec import UNSET

from mew.client.client import Client
from mew.client.errors import MewError, RpcError
from mew.protocol.envelope import Envelope
from mew.protocol.kinds import Kind, McpRequest

__all__ = ["ASKED", "ServerQuestion"]

ASKED: Final = ("elicitation/create", "sampling/createMessage")
_REJECTED: Final = -1  # as MCP has it where a user says no to sampling


class ServerQuestion:
    """One of them, to be answered once."""

    def __init__(self, me: Client, envelope: Envelope, request: McpRequest) -> None:
        self.key = envelope.id
        self.asker = envelope.sender
        self.about = envelope.correlation_id
        self.method = request.method
        self.params: dict[str, Any] = {} if request.params is UNSET else request.params
        self._request = request
        self._me = me
        self._is_open = True
        self._dropped = asyncio.Event()

    def is_known_as(self, request_id: Any) -> bool:
        """Whether its asker knows it by this, to take it back."""
        is_id = isinstance(request_id, str | int) and not isinstance(request_id, bool)
        return is_id and request_id in (self._request.id, self.key)

    async def answer(self, result: dict[str, Any]) -> None:
        await self._respond({"result": result})

    async def fail(self, error: RpcError) -> None:
        said = {"code": error.code, "message": error.message}
        await self._respond({"error": said if error.data is None else {**said, "data": error.data}})

    async def decline(self, reason: str) -> None:
        """There is nobody who could answer."""
        if self.method == "elicitation/create":
            await self.answer({"action": "decline", "_meta": {"mew/reason": reason}})
        else:
            await self.fail(RpcError(_REJECTED, reason))

    def drop(self) -> None:
        """Nobody wants an answer any more."""
        self._is_open = False
        self._dropped.set()

    async def dropped(self) -> None:
        """Return when nobody wants an answer any more."""
        await self._dropped.wait()

    async def _respond(self, said: dict[str, Any]) -> None:
        if not self._is_open:
            return
        self._is_open = False
        payload = self._request.response(said)
        try:
            await self._me.send(Kind.MCP_RESPONSE, payload, to=self.asker, correlation_id=self.key)
        except MewError:
            return  # it will hear that from the end of its own patience
