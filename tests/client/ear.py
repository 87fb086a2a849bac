"""Somebody who listens in a space, who can be waited for."""

import asyncio
from collections.abc import Sequence
from typing import Any

from mew.client.connection.connection import ClientConnection
from mew.protocol.envelope import Envelope

__all__ = ["SETTLED", "Ear", "settled"]

SETTLED = "participant/settled"


class Ear:
    """All that a connection was shown, from the making of this on."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.heard: list[Envelope] = []
        self._news = asyncio.Event()
        connection.listen(self._hear)

    async def ask(
        self, kind: str, payload: Any = None, *, to: Sequence[str] = ("bot",), context: str | None = None
    ) -> Envelope:
        """Send an envelope, and return it once it was accepted."""
        return await self.connection.send(self.connection.compose(kind, payload, to=to, context=context))

    def all(self, kind: str, about: Envelope | None = None) -> list[Envelope]:
        """What was heard so far of a kind, and about an envelope."""
        return [
            envelope
            for envelope in self.heard
            if envelope.kind == kind and (about is None or about.id in envelope.correlation_id)
        ]

    async def hears(self, kind: str, about: Envelope | None = None, *, many: int = 1) -> dict[str, Any]:
        """The payload of the envelope of that kind, once that many were heard: the last of them."""
        return (await self.hears_of(kind, about, many=many)).content

    async def hears_of(self, kind: str, about: Envelope | None = None, *, many: int = 1) -> Envelope:
        while len(found := self.all(kind, about)) < many:
            self._news.clear()
            await self._news.wait()
        return found[many - 1]

    def _hear(self, envelope: Envelope, payload: Any) -> None:
        self.heard.append(envelope)
        self._news.set()


async def settled(*connections: ClientConnection) -> None:
    """Whatever these were about to say has been said: for what must not happen."""
    for _ in range(5):
        for connection in connections:
            await connection.send(connection.compose(SETTLED))
