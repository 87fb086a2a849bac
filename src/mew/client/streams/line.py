"""What the streams of a connection share: the way out for frames, questions to the gateway, and the count of losses."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from math import inf
from typing import Any, Final

from mew.client.errors import StreamBroken
from mew.client.wire.awaiting import answered, awaiting
from mew.client.wire.connection import Connection
from mew.client.wire.transport import LinkClosed
from mew.protocol.envelope import GATEWAY, Envelope
from mew.protocol.kinds import Kind

__all__ = ["Line"]

_GATEWAY_S: Final = 10.0  # what the gateway itself says; ours takes milliseconds


class Line:
    """A connection, as its streams see it."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.losses = 0
        """How often the connection was lost: frames that were sent under another count may not have arrived."""
        self._look_again = asyncio.Event()
        connection.listen(self._hear, (Kind.PAUSE, Kind.RESUME))
        connection.lost_listeners.append(self._lost)

    @property
    def me(self) -> str:
        return self.connection.session.me

    async def unpaused(self) -> None:
        """Wait while paused (§3.9.1): a frame would be refused. Returns early when the connection is lost."""
        outgoing, loop, losses = self.connection.session.outgoing, asyncio.get_running_loop(), self.losses
        while (until := outgoing.paused_until) is not None and loop.time() < until and losses == self.losses:
            self._look_again.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout_at(None if until == inf else until):
                    await self._look_again.wait()

    async def send_frame(self, frame: bytes, *, text: bool) -> None:
        """Hand over a frame; return when there is room for the next.

        Raises:
            StreamBroken: it may or may not have arrived.
        """
        try:
            await self.connection.send_frame(frame, text=text)
        except LinkClosed as error:
            raise StreamBroken(f"the connection was lost while writing: {error.reason}") from None

    async def ask(self, kind: str, payload: Mapping[str, Any], answer_kind: str) -> None:
        """Send, and return once the gateway has answered with that kind.

        Raises:
            Refused: the gateway said no.
            Unanswered: it accepted, and did not answer.
            Disconnected: the connection ended for good.
        """
        envelope = self.connection.compose(kind, payload)

        def look(seen: Envelope, payload: Any) -> bool | None:
            ours = seen.kind == answer_kind and seen.sender == GATEWAY
            return True if ours and envelope.id in seen.correlation_id else None

        with awaiting(self.connection, look) as answer:
            await self.connection.send(envelope)
            await answered(answer, _GATEWAY_S, f"{kind} was accepted, but no {answer_kind} came")

    def _hear(self, envelope: Envelope, payload: Any) -> None:
        if envelope.kind == Kind.RESUME or envelope.kind == Kind.PAUSE:
            self._look_again.set()

    def _lost(self) -> None:
        self.losses += 1
        self._look_again.set()
