"""Who is reasoning about what now, and the way to stop it (§3.5.5)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from msgspec import UNSET

from mew.client.wire.connection import Connection
from mew.proposals.bounded import oldest_of_the_greediest
from mew.protocol.envelope import Envelope, EnvelopeId, ParticipantId
from mew.protocol.kinds import Kind, Presence, Reason, Welcome
from mew.protocol.visible import cut

from .reasoning import is_about

__all__ = ["ActiveReasoning", "Reasonings"]

_ACTIVE_MAX: Final = 1_024
_MESSAGE_CHARS_MAX: Final = 2_000
_ABOUT_MAX: Final = 16
_ID_CHARS_MAX: Final = 256
_ENDS: Final = frozenset({Kind.REASONING_CONCLUSION, Kind.REASONING_CANCEL})
_HEARD: Final = _ENDS | {Kind.REASONING_START, Kind.MCP_RESPONSE, Kind.PRESENCE, Kind.WELCOME}


@dataclass(frozen=True)
class ActiveReasoning:
    """A sequence that has begun and, as far as anyone said, goes on."""

    id: EnvelopeId
    """Of its `reasoning/start`."""
    by: ParticipantId
    context: str
    """Of the envelopes in it."""
    message: str
    about: tuple[EnvelopeId, ...]
    """What it answers: the first 16 that it names."""
    stream_id: str | None
    """Of the stream that carries its thoughts, where one does."""


class Reasonings:
    """The sequences that are active: started, and neither concluded nor cancelled.

    As a conclusion is optional, one is over too when its author has left or answered what it was about, and with the
    one of which it is a part.
    """

    def __init__(self, connection: Connection) -> None:
        """From here on, those that start are known."""
        self._connection = connection
        self._active: dict[EnvelopeId, ActiveReasoning] = {}
        connection.listen(self._listen, _HEARD)

    @property
    def active(self) -> tuple[ActiveReasoning, ...]:
        """Everyone's, oldest first."""
        return tuple(self._active.values())

    @property
    def of_others(self) -> tuple[ActiveReasoning, ...]:
        me = self._connection.session.me
        return tuple(active for active in self._active.values() if active.by != me)

    async def cancel(self, start_id: str, reason: str = "cancelled") -> Envelope:
        """Stop a sequence; its author is told, whether or not it is known to be active here.

        Raises:
            Refused: the gateway said no.
        """
        connection, known = self._connection, self._active.get(EnvelopeId(start_id))
        return await connection.send(
            connection.compose(
                Kind.REASONING_CANCEL,
                Reason(reason=reason),
                to=() if known is None else (known.by,),
                correlation_id=() if known is None else known.about,
                context=start_id if known is None else known.context,
            )
        )

    def _listen(self, envelope: Envelope, payload: Any) -> None:
        kind = envelope.kind
        if kind == Kind.REASONING_START:
            self._started(envelope)
        elif kind in _ENDS:
            self._ended(envelope)
        elif kind == Kind.MCP_RESPONSE:
            answered = set(envelope.correlation_id)
            self._drop(lambda one: one.by == envelope.sender and not answered.isdisjoint(one.about))
        elif isinstance(payload, Presence | Welcome):
            here = self._connection.session.roster
            self._drop(lambda one: one.by not in here)

    def _started(self, envelope: Envelope) -> None:
        start_id, said = EnvelopeId(envelope.id), envelope.content
        stream_id, message = said.get("stream_id"), str(said.get("message", ""))
        self._active[start_id] = ActiveReasoning(
            id=start_id,
            by=ParticipantId(envelope.sender),
            context=start_id if envelope.context is UNSET else f"{envelope.context}/{start_id}",
            message=cut(message, _MESSAGE_CHARS_MAX),
            about=tuple(map(EnvelopeId, envelope.correlation_id[:_ABOUT_MAX])),
            stream_id=stream_id if isinstance(stream_id, str) and len(stream_id) <= _ID_CHARS_MAX else None,
        )
        if len(self._active) > _ACTIVE_MAX:
            held = ((one.id, one.by, 1) for one in self._active.values())
            del self._active[oldest_of_the_greediest(held)]

    def _ended(self, envelope: Envelope) -> None:
        """Anyone may cancel; only its author concludes it."""
        anyone = envelope.kind == Kind.REASONING_CANCEL
        for one in self._meant(envelope):
            if anyone or envelope.sender == one.by:
                self._drop_with_parts(one)

    def _meant(self, envelope: Envelope) -> list[ActiveReasoning]:
        if envelope.context is UNSET:
            named = map(EnvelopeId, dict.fromkeys(envelope.correlation_id))
            return [self._active[start_id] for start_id in named if start_id in self._active]
        return [one for one in self._active.values() if is_about(envelope, one.id)]

    def _drop_with_parts(self, whole: ActiveReasoning) -> None:
        path = f"{whole.context}/"
        self._drop(lambda one: one is whole or (one.by == whole.by and one.context.startswith(path)))

    def _drop(self, over: Callable[[ActiveReasoning], bool]) -> None:
        for one in self.active:
            if over(one):
                del self._active[one.id]
