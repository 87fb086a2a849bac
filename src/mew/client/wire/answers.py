"""Who waits for the gateway to accept what was sent."""

import asyncio

from mew.client.errors import Disconnected, MewError
from mew.protocol.envelope import Envelope, EnvelopeId

__all__ = ["Answers"]


class Answers:
    """A future for each envelope on its way. One that nobody looks at is not complained about."""

    def __init__(self) -> None:
        self._waiting: dict[str, tuple[Envelope, asyncio.Future[Envelope]]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def expect(self, envelope: Envelope) -> asyncio.Future[Envelope]:
        """Raises ValueError where one with this id is on its way already."""
        if envelope.id in self._waiting:
            raise ValueError(f"envelope {envelope.id} is already on its way")
        future: asyncio.Future[Envelope] = asyncio.get_running_loop().create_future()
        self._waiting[envelope.id] = envelope, future
        return future

    def abandon(self, envelope: Envelope) -> None:
        """Nobody waits for it any more."""
        self._waiting.pop(envelope.id, None)

    def accepted(self, envelope_id: EnvelopeId) -> None:
        found = self._waiting.pop(envelope_id, None)
        if found is not None and not found[1].done():
            found[1].set_result(found[0])

    def failed(self, envelope_id: EnvelopeId, error: MewError) -> None:
        found = self._waiting.pop(envelope_id, None)
        if found is not None and not found[1].done():
            found[1].set_exception(error)
            found[1].exception()  # looked at, so that asyncio does not say that nobody did

    def over(self, why: Disconnected) -> None:
        """Nobody will be answered any more."""
        for envelope_id in tuple(self._waiting):
            self.failed(EnvelopeId(envelope_id), why.copy())
