"""Chat (§3.4): say something, acknowledge what others said, cancel what no longer needs attention."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal

from mew.client.wire.connection import Connection
from mew.protocol.envelope import Envelope
from mew.protocol.kinds import Acknowledgement, Chat, Kind, Reason, Welcome

from .chats import ChatQueue

__all__ = ["About", "ChatRoom", "Format", "ids_of"]

About = Envelope | str | Iterable[Envelope | str]
"""What something is about: envelopes, or their ids."""

Format = Literal["plain", "markdown"]

_MINE_MAX: Final = 1_000
_KINDS: Final = (Kind.CHAT, Kind.CHAT_ACKNOWLEDGE, Kind.CHAT_CANCEL, Kind.WELCOME)


class ChatRoom:
    """What one says, and the queue of what others said that awaits one's acknowledgement.

    All that send raise `Refused` where the gateway says no.
    """

    def __init__(self, connection: Connection) -> None:
        """From here on, what is said is in the queue; made before its connection is entered, it misses nothing."""
        self.queue = ChatQueue(connection.session.me)
        self._connection = connection
        self._mine: dict[str, Envelope] = {}
        connection.listen(self._listen, _KINDS)

    def recall(self, shown: Iterable[Envelope]) -> None:
        """Know of what was said before we came."""
        self.queue.me = self._connection.session.me
        for envelope in shown:
            self._listen(envelope, None)

    @property
    def waiting(self) -> tuple[Envelope, ...]:
        """What others said to me or to all, neither acknowledged by me nor cancelled; oldest first."""
        return self.queue.waiting

    @property
    def unacknowledged(self) -> tuple[Envelope, ...]:
        """What I said and nobody cancelled, until all it was addressed to, or anyone if it was to all, acknowledge."""
        return tuple(chat for chat in self._mine.values() if not self._is_acknowledged(chat))

    async def chat(
        self,
        text: str,
        *,
        to: Sequence[str] = (),
        format: Format = "plain",
        about: About = (),
        context: str | None = None,
    ) -> Envelope:
        """Say something, to all or, with `to`, for somebody to act on; everyone sees it either way."""
        if not isinstance(text, str):
            raise TypeError(f"a chat is text, not {type(text).__name__}")
        return await self._send(
            Kind.CHAT, Chat(text=text, format=format), to=to, about=ids_of(about), context=context
        )

    async def acknowledge(self, chat: Envelope | str, status: str = "received") -> Envelope:
        """Tell its author that one has seen a chat and has nothing to add (§3.4.1)."""
        return await self._connection.send(self._acknowledgement(self._known(chat), status))

    async def acknowledge_all(self, status: str = "read") -> tuple[Envelope, ...]:
        """Clear the queue, with one acknowledgement for each chat in it (§3.4.1)."""
        return await self._send_all(self._acknowledgement(chat, status) for chat in self.waiting)

    async def cancel_chat(self, chat: Envelope | str, reason: str = "no_longer_needed") -> Envelope:
        """Tell those to whom it was said that a chat needs no attention any more (§3.4.2)."""
        return await self._connection.send(self._cancellation(self._known(chat), reason))

    async def cancel_all(self, reason: str = "no_longer_needed") -> tuple[Envelope, ...]:
        """Cancel everything I said that is not acknowledged, with one cancellation each (§3.4.2)."""
        return await self._send_all(self._cancellation(chat, reason) for chat in self.unacknowledged)

    def _listen(self, envelope: Envelope, payload: Any) -> None:
        if isinstance(payload, Welcome):
            self.queue.me = self._connection.session.me
        self.queue.apply(envelope)
        if envelope.kind == Kind.CHAT and envelope.sender == self.queue.me:
            self._mine[envelope.id] = envelope
            if len(self._mine) > _MINE_MAX:
                del self._mine[next(iter(self._mine))]
        elif envelope.kind == Kind.CHAT_CANCEL:
            for chat_id in envelope.correlation_id:
                self._mine.pop(chat_id, None)

    def _is_acknowledged(self, chat: Envelope) -> bool:
        by = self.queue.acknowledgements(chat.id).keys()
        return by >= set(chat.to) if chat.to else bool(by)

    def _known(self, chat: Envelope | str) -> Envelope | str:
        """The chat itself, where all that we have is the id of one that we know."""
        if isinstance(chat, Envelope):
            return chat
        if chat in self._mine:
            return self._mine[chat]
        return next((known for known in self.waiting if known.id == chat), chat)

    def _acknowledgement(self, chat: Envelope | str, status: str) -> Envelope:
        to = (chat.sender,) if isinstance(chat, Envelope) else ()
        return self._about(Kind.CHAT_ACKNOWLEDGE, chat, Acknowledgement(status=status), to)

    def _cancellation(self, chat: Envelope | str, reason: str) -> Envelope:
        mine = isinstance(chat, Envelope) and chat.sender == self.queue.me
        to = chat.to if isinstance(chat, Envelope) and mine else ()
        return self._about(Kind.CHAT_CANCEL, chat, Reason(reason=reason), to)

    def _about(self, kind: str, chat: Envelope | str, payload: Any, to: Sequence[str]) -> Envelope:
        return self._connection.compose(kind, payload, to=to, correlation_id=ids_of(chat))

    async def _send(
        self, kind: str, payload: Any, *, to: Sequence[str], about: Sequence[str], context: str | None
    ) -> Envelope:
        connection = self._connection
        return await connection.send(
            connection.compose(kind, payload, to=to, correlation_id=about, context=context)
        )

    async def _send_all(self, envelopes: Iterable[Envelope]) -> tuple[Envelope, ...]:
        return tuple(await asyncio.gather(*[self._connection.post(envelope) for envelope in envelopes]))


def ids_of(about: About) -> tuple[str, ...]:
    """The ids, in order: what `correlation_id` carries."""
    if isinstance(about, Envelope | str):
        about = (about,)
    return tuple(item.id if isinstance(item, Envelope) else item for item in about)
